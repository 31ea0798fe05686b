/**
 * The stacked bars of the usage chart.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { viewMeasures } from "../../../src/admin/usage/rows.ts"
import { zero } from "../../../src/usage/UsageEntry.ts"
import { sumBefore, timeBefore, valuesBefore } from "../../../src/web/pages/usage/before.ts"
import { cacheStackOf, linesOf, stackOf, topsOf, type UsageRow } from "../../../src/web/pages/usage/rows.ts"
import { treeOf } from "../../../src/web/pages/usage/tree.ts"

type Named = Pick<UsageRow, "hour" | "day" | "model">

const row = (named: Named, requests: number): UsageRow => ({
  ...viewMeasures(zero()),
  ...named,
  requests,
  total_tokens: requests * 10
})

const at = (time: string): number => Date.parse(time) / 1000

const hours = { from: "2026-11-21T21:00:00Z", to: "2026-11-22T03:00:00Z" }

describe("stackOf, the bars of the usage chart", () => {
  it("contains every requested hour, with zeros for hours without a row", () => {
    const rows = [row({ hour: "2026-11-21T22:00:00Z" }, 3), row({ hour: "2026-11-22T01:00:00Z" }, 5)]
    const asked = { ...hours, rows, truncated: false }
    const { parts, times } = stackOf(asked, "hour", undefined, "requests")
    assert.deepStrictEqual(times, [0, 1, 2, 3, 4, 5].map((hour) => at(asked.from) + hour * 3600))
    assert.deepStrictEqual(parts.map(({ values }) => values), [[0, 3, 0, 0, 5, 0]])
    assert.deepStrictEqual(stackOf(asked, "hour", undefined, "tokens").parts[0]?.values, [0, 30, 0, 0, 50, 0])
    // Values after the end of a truncated reply are unknown.
    const cut = stackOf({ ...asked, truncated: true }, "hour", undefined, "requests")
    assert.deepStrictEqual(cut.parts[0]?.values, [0, 3, 0, 0, 5])
  })

  it("contains every requested day, partial first and last days included", () => {
    const rows = [row({ day: "2026-02-27" }, 1), row({ day: "2026-03-02" }, 2)]
    const asked = { from: "2026-02-27T09:00:00Z", to: "2026-03-02T10:00:00Z", rows, truncated: false }
    const { parts, times } = stackOf(asked, "day", undefined, "requests")
    assert.deepStrictEqual(
      times,
      ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"].map((day) => at(`${day}T00:00:00Z`))
    )
    assert.deepStrictEqual(parts.map(({ values }) => values), [[1, 0, 0, 2]])
  })

  it("splits each bar into at most 7 parts and the rest, whose sum is the whole", () => {
    const cells = fc.array(
      fc.record({ hour: fc.nat(5), model: fc.nat(11), requests: fc.integer({ min: 1, max: 9 }) }),
      { maxLength: 60 }
    )
    fc.assert(fc.property(cells, (given) => {
      const rows = given.map(({ hour, model, requests }) =>
        row({ hour: new Date((at(hours.from) + hour * 3600) * 1000).toISOString(), model: `m${model}` }, requests)
      )
      const stack = stackOf({ ...hours, rows, truncated: false }, "hour", "model", "requests")
      const whole = [0, 1, 2, 3, 4, 5].map((hour) =>
        given.reduce((sum, each) => each.hour === hour ? sum + each.requests : sum, 0)
      )
      const models = new Set(given.map(({ model }) => model)).size
      assert.strictEqual(stack.parts.length, models > 7 ? 8 : models)
      assert.strictEqual(stack.parts.filter(({ value }) => value === undefined).length, models > 7 ? 1 : 0)
      if (models > 0) assert.deepStrictEqual(topsOf(stack)[0], whole)
      // Largest first, without the rest.
      const sums = stack.parts.flatMap(({ total, value }) => value === undefined ? [] : [total])
      assert.deepStrictEqual(sums, sums.toSorted((a, b) => b! - a!))
    }))
  })
})

describe("cacheStackOf, the bars of prompts", () => {
  it("splits the prompts of each hour into cached, written and fresh tokens, which add up to them", () => {
    const prompt = (hour: string, prompt_tokens: number, cached_tokens: number, cache_write_tokens: number) => ({
      ...row({ hour }, 1),
      prompt_tokens,
      cached_tokens,
      cache_write_tokens
    })
    const rows = [
      prompt("2026-11-21T22:00:00Z", 1_000, 600, 100),
      prompt("2026-11-21T22:00:00Z", 50, 0, 0),
      // A server whose counts exceed its prompt.
      prompt("2026-11-22T01:00:00Z", 10, 8, 5)
    ]
    const { parts } = cacheStackOf({ ...hours, rows, truncated: false }, "hour")
    assert.deepStrictEqual(parts.map(({ value, values }) => [value, values]), [
      ["cached", [0, 600, 0, 0, 8, 0]],
      ["written", [0, 100, 0, 0, 5, 0]],
      ["fresh", [0, 350, 0, 0, 0, 0]]
    ])
  })
})

describe("linesOf, the percentiles of the usage chart", () => {
  it("has a line for each of the 5 values with the most requests, the largest of the whole time first, with gaps", () => {
    const asked = {
      ...hours,
      rows: ["a", "b", "c", "d", "e", "f"].flatMap((model, i) => [
        { ...row({ hour: "2026-11-21T22:00:00Z", model }, i + 1), duration_p95_ms: 100 * i },
        { ...row({ hour: "2026-11-22T01:00:00Z", model }, i + 1), duration_p95_ms: model === "b" ? null : 10 * i }
      ]),
      truncated: false
    }
    const totals = new Map([["b", 5], ["c", 900], ["d", 7]])
    const { parts, times } = linesOf(asked, "hour", "model", "duration_p95_ms", (value) => totals.get(value))
    assert.lengthOf(times, 6)
    assert.deepStrictEqual(parts.map(({ total, value, values }) => [value, total, values]), [
      ["c", 900, [null, 200, null, null, 20, null]],
      ["d", 7, [null, 300, null, null, 30, null]],
      ["b", 5, [null, 100, null, null, null, null]],
      ["f", undefined, [null, 500, null, null, 50, null]],
      ["e", undefined, [null, 400, null, null, 40, null]]
    ])
  })
})

describe("treeOf, the agents of a session", () => {
  const agent = (name: string, parent: string): UsageRow => ({ ...row({}, 1), agent: name, parent })
  const shown = (...rows: ReadonlyArray<UsageRow>) => treeOf(rows).map(({ depth, row }) => [row.agent, depth])

  it("places each below the one that started it", () => {
    assert.deepStrictEqual(
      shown(agent("leaf", "mid"), agent("main", "none"), agent("mid", "main"), agent("other", "gone")),
      [["main", 0], ["mid", 1], ["leaf", 2], ["other", 0]]
    )
  })

  it("has every agent once, whatever they say of their parents", () => {
    const name = fc.constantFrom("a", "b", "c", "d", "none")
    fc.assert(fc.property(fc.array(fc.tuple(name, name), { maxLength: 9 }), (pairs) => {
      const rows = pairs.map(([own, parent]) => agent(own, parent))
      assert.sameMembers(treeOf(rows).map(({ row }) => row), rows)
    }))
  })
})

describe("the time before the shown one", () => {
  const [from, to] = [hours.from, hours.to].map((time) => Date.parse(time)) as [number, number]
  const before = timeBefore({ from, to })
  const iso = (time: number) => new Date(time).toISOString()
  const reply = {
    from: iso(before.from),
    to: iso(before.to),
    rows: [0, 2, 5].map((hour) => row({ hour: iso(before.from + hour * 3_600_000) }, 10 + hour)),
    truncated: false
  }

  it("is as long, ends where the shown one begins, and has its values in the places of the bars", () => {
    assert.deepStrictEqual(before, { from: Date.parse("2026-11-21T15:00:00Z"), to: from })
    assert.deepStrictEqual(valuesBefore(reply, "hour", "requests", 6, (time) => time), [10, 0, 12, 0, 0, 15])
    // Days of a zone may be one more or less: the last ones stand below one another.
    assert.deepStrictEqual(valuesBefore(reply, "hour", "requests", 7, (time) => time), [null, 10, 0, 12, 0, 0, 15])
    assert.isUndefined(valuesBefore({ ...reply, rows: [] }, "hour", "requests", 6, (time) => time))
  })

  it("counts as far as the shown one is over", () => {
    const sum = (now: number) => sumBefore(reply, "hour", "requests", { from, to }, now, (time) => time)
    assert.strictEqual(sum(to + 1), 37)
    // Half of the last hour is over.
    assert.strictEqual(sum(to - 1_800_000), 29.5)
    assert.strictEqual(sum(from + 3_600_000), 10)
    assert.strictEqual(sum(from), 0)
  })
})
