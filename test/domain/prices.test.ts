import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { costOf } from "../../src/domain/bill.ts"
import {
  formatDecimal,
  joinAmount,
  parseDecimal,
  roundDecimal,
  splitAmount,
  toUnits
} from "../../src/domain/decimal.ts"
import { findNamed, findOfVendor, makeNameTable, noNames } from "../../src/domain/nameTable.ts"
import { findPrice, plainPrice, type Price, PricedEntry, priceOf } from "../../src/domain/prices.ts"
import { addEntry, addSums, costsOf, zero } from "../../src/usage/UsageEntry.ts"
import { costs, entry } from "../usage/support.ts"

const amounts = fc.bigInt({ min: 0n, max: 10n ** 24n })

describe("decimal numbers", () => {
  it("are read as they are written, in any form", () => {
    const cases: ReadonlyArray<readonly [number | string, bigint | undefined]> = [
      [0, 0n],
      [0.15, 150_000_000n],
      ["0.000000001", 1n],
      [1.5e-7, 150n],
      ["1.5E-07", 150n],
      ["12.", 12_000_000_000n],
      [1e21, 10n ** 30n],
      ["9007199.254740993", 9_007_199_254_740_993n],
      ["0.0000000010", 1n],
      ["0.0000000001", undefined],
      [-1, undefined],
      ["", undefined],
      [".5", undefined],
      ["1,5", undefined],
      [Number.NaN, undefined],
      [Number.POSITIVE_INFINITY, undefined],
      ["1e9999999999", undefined]
    ]
    for (const [written, amount] of cases) assert.strictEqual(parseDecimal(written), amount, String(written))
    assert.strictEqual(roundDecimal("1.5e-07", 6), 150_000_000n)
    assert.strictEqual(roundDecimal("0.00000000005", 1), 1n)
    assert.strictEqual(roundDecimal("0.000000000049", 1), 0n)
  })

  it("are the same after writing and reading, and after storing in two numbers", () => {
    fc.assert(fc.property(amounts, (amount) => {
      assert.strictEqual(parseDecimal(formatDecimal(amount)), amount)
      assert.strictEqual(joinAmount(...splitAmount(amount)), amount)
    }))
    assert.strictEqual(formatDecimal(1_050_000_000n), "1.05")
    assert.strictEqual(formatDecimal(-10n), "-0.00000001")
    assert.strictEqual(toUnits(2_500_000_000n), 2.5)
  })
})

const price = (input: bigint): Price => plainPrice(new Map([["input", input]]))
const entryOf = (...prices: ReadonlyArray<Price>) => new PricedEntry(() => prices.map((price) => ({ price })))
const tableOf = (names: ReadonlyArray<string>) =>
  makeNameTable(names.map((name, i) => [name, entryOf(price(BigInt(i)))] as const))

describe("the price of a model", () => {
  it("is the one of the most exact name", () => {
    const names = ["gpu/gpt-4o", "gpt-4o", "gpu/gpt*", "gpu/*", "gpt-4*", "gpt*", "meta/llama", "*"]
    const prices = tableOf(names)
    const chosen = (upstream: string, model: string) =>
      names[Number(priceOf(prices, 0, upstream, model)?.units.get("input"))]
    assert.deepStrictEqual(
      [
        chosen("gpu", " GPT-4o "),
        chosen("default", "gpt-4o"),
        chosen("gpu", "gpt-5"),
        chosen("gpu", "other"),
        chosen("default", "gpt-4.1"),
        chosen("default", "gpt-5"),
        chosen("default", "meta/llama"),
        chosen("gp", "u/gpt-4o"),
        chosen("default", "other")
      ],
      ["gpu/gpt-4o", "gpt-4o", "gpu/gpt*", "gpu/*", "gpt-4*", "gpt*", "meta/llama", "*", "*"]
    )
    assert.isUndefined(priceOf(noNames, 0, "default", "gpt-4o"))
    assert.isUndefined(priceOf(tableOf(["gpt*"]), 0, "gpt-server", "other"))
  })
})

describe("the names by which a price is found", () => {
  const served = {
    names: new Map([["gpu/small", "vendor-small-2026"]]),
    list: noNames,
    isListed: (upstream: string) => upstream === "gpu"
  }
  /** The entry that is found for `gpu/small`, asked for as `fast`, after those before it are gone. */
  const found = (names: ReadonlyArray<string>) =>
    findPrice({ ...tableOf(names), served }, 0, "gpu", "small", "Fast")?.entry

  it("are the gateway's, upstream/model, the model's id, and the server's own, in this order", () => {
    const names = ["fast", "gpu/small", "small", "gpu/vendor-small-2026", "vendor-small-2026"]
    names.forEach((name, first) => assert.strictEqual(found(names.slice(first).toReversed()), name))
    assert.isUndefined(found(["other", "vendor-small"]))
  })

  it("are in the vendors' list below all that is configured, by the server's own name, at servers alone", () => {
    const list = makeNameTable([
      ["vendor-large", new PricedEntry(() => [{ price: { ...price(9n), listed: "2026-11-30" } }])]
    ])
    const names = new Map([["gpu/small", "vendor/vendor-large-2026-01-31"], ["gpu/vendor-large", "llama"]])
    const at = (configured: ReadonlyArray<string>, upstream: string, model: string) =>
      findPrice({ ...tableOf(configured), served: { ...served, names, list } }, 0, upstream, model, "Fast")?.entry
    assert.deepEqual(
      [
        at([], "gpu", "small"),
        at(["*"], "gpu", "small"),
        at(["fast"], "gpu", "small"),
        at([], "gpu", "vendor-large"),
        at([], "gpu", "other"),
        at([], "sessions", "vendor-large")
      ],
      ["list price of 2026-11-30", "*", "fast", undefined, undefined, undefined]
    )
  })

  it("begin with a prefix of the upstream, then with the longest other prefix", () => {
    const prefixes = ["gpu/*", "vendor-small*", "fas*", "*"]
    prefixes.forEach((name, first) => assert.strictEqual(found(prefixes.slice(first).toReversed()), name))
    assert.strictEqual(found(["gpu/*", "vendor-small-2026"]), "vendor-small-2026")
  })
})

describe("a table of names", () => {
  it("finds what it has of a vendor's model by the names that hosts and clouds have for it", () => {
    const table = makeNameTable([["claude-sonnet-4-5", "sonnet"], ["gpt-5", "gpt"], ["gpt-5-2025-08-07", "dated"]])
    const found = (names: ReadonlyArray<string>) => names.map((name) => findOfVendor(table, name))
    const sonnets = [
      "claude-sonnet-4-5",
      "claude-sonnet-4-5-20250929",
      "claude-sonnet-4-5@20250929",
      "anthropic.claude-sonnet-4-5",
      "anthropic.claude-sonnet-4-5-v1",
      "anthropic.claude-sonnet-4-5-20250929-v1:0",
      "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
      "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
      "arn:aws:bedrock:eu-central-1:1:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
      "publishers/anthropic/models/claude-sonnet-4-5@20250929"
    ]
    assert.deepEqual(found(sonnets), sonnets.map(() => "sonnet"))
    assert.deepEqual(found(["openai/gpt-5", "gpt-5-2025-08-07", "gpt-5-2026-01-01"]), ["gpt", "dated", "gpt"])
    assert.deepEqual(found(["own.claude-sonnet-4-5", "claude-sonnet-4-5-v1", "gpt-5@large"]), [
      undefined,
      undefined,
      undefined
    ])
  })

  it("finds facts as it finds prices: by target, id and the server's name, then by the longest beginning", () => {
    const entries = ["near/big", "big", "near/qwen3:70b", "qwen3:70b", "near/b*", "qwen3*", "q*"]
    const table = (names: ReadonlyArray<string>) => makeNameTable(names.map((name) => [name, name] as const))
    const found = (names: ReadonlyArray<string>, upstream: string, model: string, served?: string) =>
      findNamed(table(names), { upstream, model, served, asked: undefined }, (name) => name)
    for (const [place, entry] of entries.entries()) {
      assert.deepStrictEqual(found(entries.slice(place), "near", "Big", "Qwen3:70b"), { entry, found: entry })
    }
    assert.isUndefined(found(entries, "far", "other"))
    assert.isUndefined(found([], "near", "big"))
  })
})

describe("dated prices", () => {
  const dated = (...from: ReadonlyArray<number | undefined>) =>
    new PricedEntry(() => from.map((from, i) => ({ from, price: price(BigInt(i)) })))
  const table = makeNameTable([["m", dated(200, undefined, 100)], ["later*", dated(100)], ["*", dated(undefined)]])
  const at = (now: number, model: string) => {
    const found = findPrice(table, now, "gpu", model)
    return [found?.entry, found?.from, Number(found?.price.units.get("input"))]
  }

  it("count from their beginning on, the latest that has begun first", () => {
    assert.deepStrictEqual([at(99, "m"), at(100, "m"), at(199, "m"), at(200, "m")], [
      ["m", undefined, 1],
      ["m", 100, 2],
      ["m", 100, 2],
      ["m", 200, 0]
    ])
  })

  it("are no prices before that", () => {
    assert.deepStrictEqual([at(99, "later-1"), at(100, "later-1")], [["*", undefined, 0], ["later*", 100, 0]])
  })
})

const simple: fc.Arbitrary<ReadonlyMap<string, bigint>> = fc.dictionary(
  fc.constantFrom("input", "cached_input", "output", "per_request"),
  costs
).map((units) => new Map(Object.entries(units)))
const tokens = fc.nat({ max: 10_000_000 })
const usages = fc.record({ promptTokens: tokens, cachedTokens: tokens, completionTokens: tokens })

describe("the cost of requests", () => {
  it("is within half a nano of the exact product of tokens and prices", () => {
    fc.assert(fc.property(simple, usages, tokens, (units, usage, reasoningTokens) => {
      const cached = BigInt(Math.min(usage.cachedTokens, usage.promptTokens))
      const priceOf = (unit: string) => units.get(unit) ?? 0n
      const exact = (BigInt(usage.promptTokens) - cached) * priceOf("input") +
        cached * (units.get("cached_input") ?? priceOf("input")) + BigInt(usage.completionTokens) * priceOf("output")
      const cost = costOf(plainPrice(units), { ...usage, reasoningTokens })
      const twice = 2n * ((cost - priceOf("per_request")) * 1_000_000n - exact)
      assert.isTrue(twice <= 1_000_000n && twice > -1_000_000n)
    }))
    const chat = new Map([["input", 150_000_000n], ["cached_input", 75_000_000n], ["output", 600_000_000n]])
    const usage = { promptTokens: 1000, cachedTokens: 400, completionTokens: 10, reasoningTokens: 0 }
    assert.strictEqual(formatDecimal(costOf(plainPrice(chat), usage)), "0.000126")
  })

  it("sums up to the same total in any order and any grouping", () => {
    const requests = fc.array(fc.option(costs, { nil: undefined }), { maxLength: 50 })
    fc.assert(
      fc.property(
        requests.chain((all) =>
          fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }), fc.nat(60))
        ),
        ([given, shuffled, cut]) => {
          const sumOf = (some: typeof given) => {
            const sums = zero()
            for (const cost of some) addEntry(sums, entry({ cost }))
            return sums
          }
          const total = given.reduce<bigint>((sum, cost = 0n) => sum + cost, 0n)
          const sums = sumOf(shuffled.slice(0, cut))
          addSums(sums, sumOf(shuffled.slice(cut)))
          assert.deepStrictEqual(costsOf(sums), {
            cost: formatDecimal(total),
            unpriced_requests: given.filter((cost) => cost === undefined).length
          })
        }
      )
    )
  })
})
