/** Bills: the units of a try, the place of each price, and their exact sum. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { billOf, costOf, linesOf } from "../../src/domain/bill.ts"
import { formatDecimal, roundDecimal } from "../../src/domain/decimal.ts"
import { plainPrice, type Price, type PriceLevel } from "../../src/domain/prices.ts"
import { eachUnit, pieceUnits, standIns, type TokenUnit, tokenUnits, type Usage } from "../../src/domain/units.ts"
import { costs } from "../usage/support.ts"

const plain: Usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 }

const unitsOf = (usage: Partial<Usage>) => {
  const units: Record<string, number> = {}
  eachUnit({ ...plain, ...usage }, (unit, amount) => {
    units[unit] = amount
  })
  delete units["per_request"]
  return units
}

const preferences = { currency: undefined, preferred: undefined, isUnpriced: false }

describe("the units of a usage", () => {
  it("are parts that add up to the prompt and the completion", () => {
    const count = fc.nat({ max: 1000 })
    const usages = fc.record({
      promptTokens: count,
      cachedTokens: count,
      completionTokens: count,
      reasoningTokens: count,
      cacheWriteTokens: fc.option(count, { nil: undefined }),
      details: fc.option(
        fc.dictionary(
          fc.constantFrom(
            "cacheWrite1hTokens",
            "audioTokens",
            "imageTokens",
            "cachedAudioTokens",
            "cachedImageTokens",
            "audioOutputTokens",
            "imageOutputTokens"
          ),
          count
        ),
        { nil: undefined }
      )
    })
    fc.assert(
      fc.property(usages, (usage) => {
        const units = unitsOf(usage)
        const sum = (...names: ReadonlyArray<TokenUnit>) => names.reduce((sum, name) => sum + (units[name] ?? 0), 0)
        const output = ["output", "reasoning", "audio_output", "image_output"] as const
        assert.strictEqual(sum(...output), usage.completionTokens)
        assert.strictEqual(
          sum(...tokenUnits.filter((unit) => !output.some((each) => each === unit))),
          usage.promptTokens
        )
        const cached = Math.min(usage.cachedTokens, usage.promptTokens)
        assert.strictEqual(sum("cached_input", "audio_cached_input"), cached)
        assert.strictEqual(
          sum("cache_write", "cache_write_1h"),
          Math.min(usage.cacheWriteTokens ?? 0, usage.promptTokens - cached)
        )
        assert.isTrue(Object.values(units).every((amount) => amount > 0))
      }),
      { numRuns: 500 }
    )
  })

  it("take cached tokens as text as far as the prompt has text, and then as sound", () => {
    const details = { audioTokens: 60 }
    assert.deepStrictEqual(unitsOf({ promptTokens: 100, cachedTokens: 30, details }), {
      input: 10,
      cached_input: 30,
      audio_input: 60
    })
    assert.deepStrictEqual(unitsOf({ promptTokens: 100, cachedTokens: 70, details }), {
      cached_input: 40,
      audio_input: 30,
      audio_cached_input: 30
    })
    assert.deepStrictEqual(
      unitsOf({ promptTokens: 100, cachedTokens: 30, details: { ...details, cachedAudioTokens: 25 } }),
      { input: 35, cached_input: 5, audio_input: 35, audio_cached_input: 25 }
    )
  })

  it("are cut to their whole", () => {
    const details = { cacheWrite1hTokens: 900, audioOutputTokens: 900 }
    assert.deepStrictEqual(
      unitsOf({
        promptTokens: 10,
        cachedTokens: 4,
        cacheWriteTokens: 99,
        completionTokens: 5,
        reasoningTokens: 7,
        details
      }),
      { cached_input: 4, cache_write_1h: 6, audio_output: 5 }
    )
  })
})

const level = (units: Record<string, bigint>, above: PriceLevel["above"] = []): PriceLevel => ({
  units: new Map(Object.entries(units)),
  above
})

const full: Price = {
  listed: undefined,
  ...level({ input: 1000n, output: 2000n }, [{ tokens: 100, units: new Map([["output", 5000n]]) }]),
  tiers: new Map([
    ["flex", level({ input: 300n }, [{ tokens: 100, units: new Map([["input", 700n]]) }])],
    ["cheap", level({ cached_input: 1n })]
  ]),
  factors: new Map([["speed", new Map([["fast", 6_000_000_000n]])], ["geo", new Map([["us", 1_100_000_000n]])]])
}

const placesOf = (usage: Partial<Usage>) =>
  linesOf(full, { ...plain, ...usage }).map(({ price, unit }) => `${unit}: ${price}`)

describe("the price of a unit", () => {
  it("is looked for in the step of the tier, the tier, the step of the entry and the entry", () => {
    const used = { completionTokens: 1, details: { tier: "flex" } }
    assert.deepStrictEqual(placesOf({ ...used, promptTokens: 101 }), [
      "input: tiers.flex.above.100.input",
      "output: above.100.output"
    ])
    assert.deepStrictEqual(placesOf({ ...used, promptTokens: 100 }), ["input: tiers.flex.input", "output: output"])
    assert.deepStrictEqual(placesOf({ promptTokens: 101, completionTokens: 1 }), [
      "input: input",
      "output: above.100.output"
    ])
  })

  it("comes from a stand-in in the same order, after its own everywhere", () => {
    const used = { promptTokens: 10, cachedTokens: 4, cacheWriteTokens: 5, details: { cacheWrite1hTokens: 2 } }
    assert.deepStrictEqual(placesOf({ ...used, details: { ...used.details, tier: "cheap" } }), [
      "input: input",
      "cached_input: tiers.cheap.cached_input",
      "cache_write: input",
      "cache_write_1h: input"
    ])
    assert.deepStrictEqual(placesOf({ promptTokens: 10, cachedTokens: 10, details: { tier: "flex" } }), [
      "cached_input: tiers.flex.input"
    ])
  })

  it("is multiplied by all factors of its usage if it is of tokens", () => {
    const price: Price = { ...full, units: new Map([["input", 10n ** 9n], ["per_second", 10n ** 9n]]) }
    const usage = {
      ...plain,
      promptTokens: 1000,
      details: { words: { speed: "fast", geo: "us", other: "x" }, pieces: { per_second: 2.5 } }
    }
    assert.deepStrictEqual(linesOf(price, usage), [
      { unit: "input", amount: 1000, price: "input * factors.speed.fast * factors.geo.us", cost: "0.0066" },
      { unit: "per_second", amount: 2.5, price: "per_second", cost: "2.5" }
    ])
    assert.strictEqual(formatDecimal(costOf(price, usage)), "2.5066")
  })
})

describe("a bill", () => {
  const details = { tier: "turbo", toolCalls: { web_search: 2, maps: 1 }, pieces: { per_image: 3 } }
  const usage: Usage = { ...plain, promptTokens: 7, completionTokens: 3, details }

  it("lists tokens, tools and tiers without a price, which cost nothing", () => {
    const price = plainPrice(new Map([["input", 10n ** 9n], ["per_tool_call.maps", 5n]]))
    const bill = billOf(price, usage, preferences)
    assert.deepStrictEqual(bill.unpriced, [["output", 3], ["per_tool_call.web_search", 2], ["tiers.turbo", 1]])
    assert.strictEqual(bill.cost, 7005n)
    assert.deepStrictEqual(linesOf(price, usage).filter(({ price }) => price === null).map(({ unit }) => unit), [
      "output",
      "per_tool_call.web_search"
    ])
  })

  it("has no cost without a price, and lists every token and call", () => {
    const { cost, unpriced } = billOf(undefined, usage, preferences)
    assert.isUndefined(cost)
    assert.deepStrictEqual(unpriced.map(([unit]) => unit), [
      "input",
      "output",
      "per_tool_call.web_search",
      "per_tool_call.maps"
    ])
  })

  it("is the server's own cost unless the upstream's prices are preferred, or the currency is another one", () => {
    const price = plainPrice(new Map([["input", 10n ** 9n], ["output", 0n]]))
    const told = { ...usage, details: { serverCost: 0n } }
    const bills = (given: Price | undefined, options: Parameters<typeof billOf>[2]) => {
      const { cost, source } = billOf(given, told, options)
      return [cost, source]
    }
    assert.deepStrictEqual(bills(price, preferences), [0n, "server"])
    assert.deepStrictEqual(bills(price, { ...preferences, currency: "USD" }), [0n, "server"])
    assert.deepStrictEqual(bills(undefined, { ...preferences, preferred: "prices" }), [0n, "server"])
    assert.deepStrictEqual(bills(price, { ...preferences, preferred: "prices" }), [7000n, "prices"])
    assert.deepStrictEqual(bills(price, { ...preferences, currency: "EUR" }), [7000n, "prices"])
    assert.deepStrictEqual(bills(undefined, { ...preferences, currency: "EUR" }), [undefined, "prices"])
  })

  it("equals the sum of fractions, rounded once, and so do its lines", () => {
    const amounts = fc.dictionary(fc.constantFrom(...tokenUnits, ...pieceUnits, "per_tool_call.a"), costs)
    const counts = fc.nat({ max: 5_000_000 })
    const factor = fc.option(fc.bigInt({ min: 0n, max: 10n ** 10n }), { nil: undefined })
    fc.assert(fc.property(
      amounts,
      fc.record({ promptTokens: counts, cachedTokens: counts, completionTokens: counts, reasoningTokens: counts }),
      fc.record({
        cacheWrite1hTokens: counts,
        audioTokens: counts,
        imageOutputTokens: counts,
        pieces: fc.record({ per_second: fc.nat({ max: 1e6 }).map((n) => n / 1000), per_image: counts }),
        toolCalls: fc.record({ a: counts })
      }),
      factor,
      (units, usage, details, factor) => {
        const price: Price = {
          ...plainPrice(new Map(Object.entries(units))),
          factors: factor === undefined ? new Map() : new Map([["speed", new Map([["fast", factor]])]])
        }
        const used: Usage = { ...usage, details: { ...details, words: { speed: "fast" } } }
        // In parts of 10^-24: amounts with 9 decimals, prices with 9, and millionths.
        let exact = 0n
        eachUnit(used, (unit, amount) => {
          const isToken = unit in standIns
          const names: ReadonlyArray<string> = isToken ? [unit, ...standIns[unit as TokenUnit]] : [unit]
          const each = names.map((name) => units[name]).find((found) => found !== undefined) ?? 0n
          exact += isToken
            ? BigInt(amount) * each * (factor ?? 10n ** 9n)
            : roundDecimal(amount, 0)! * each * 10n ** 6n
        })
        const divisor = 10n ** 15n
        const cost = costOf(price, used)
        assert.strictEqual(cost, (exact + divisor / 2n) / divisor)
        const sum = linesOf(price, used).reduce((sum, { cost }) => sum + roundDecimal(cost, 15)!, 0n)
        assert.strictEqual(sum, exact)
      }
    ))
  })
})
