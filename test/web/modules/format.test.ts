/**
 * Money, counts, durations and days as the console shows them; and what an overview says of an hour that was not whole.
 */
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import {
  changeOf,
  isUnknown,
  latencyScale,
  type Minute,
  numbered,
  totalsOf
} from "../../../src/web/pages/overview/hour.ts"
import {
  ago,
  bytes,
  change,
  compact,
  countdown,
  dayIn,
  dayStart,
  duration,
  exactMoney,
  exactTime,
  fullMoney,
  money,
  percent,
  points,
  sentence,
  when
} from "../../../src/web/parts/format.ts"
import { languageAtom, zoneAtom } from "../../../src/web/state/preferences.ts"
import { registry } from "../../../src/web/state/registry.ts"

afterEach(() => {
  registry.set(languageAtom, "en")
  registry.set(zoneAtom, "local")
})

describe("money in the console", () => {
  it.each([
    ["41.2", "USD", "$41.20"],
    ["1234.5", "USD", "$1,234.50"],
    ["0.03380975", "USD", "$0.034"],
    ["0.000123456", "USD", "$0.0001"],
    ["0.00001", "EUR", "<€0.0001"],
    ["0", "USD", "$0.00"],
    ["0.999", "USD", "$1.00"],
    ["2", "credits", "2.00 credits"],
    ["0.5", null, "0.50"],
    [null, "USD", "–"]
  ])("%s of %s is %s", (amount, currency, text) => {
    assert.strictEqual(money(amount, currency), text)
  })

  it("is exact on hover, and in full as a limit", () => {
    assert.strictEqual(exactMoney("0.033809750", "USD"), "0.03380975 USD")
    assert.strictEqual(fullMoney("50", "USD"), "$50")
    assert.strictEqual(fullMoney("12.5", "credits"), "12.50 credits")
  })
})

describe("numbers and times in the console", () => {
  it("counts are in full below 10,000, and shares of nothing are no number", () => {
    assert.deepStrictEqual([0, 950, 9_999, 12_400, 1_234_567].map(compact), ["0", "950", "9,999", "12.4k", "1.23M"])
    assert.deepStrictEqual([percent(0, 5), percent(12, 100), percent(0, 0)], ["0 %", "12 %", "–"])
    assert.deepStrictEqual([512, 1536, 5 * 1024 ** 2].map(bytes), ["512 B", "1.5 KiB", "5 MiB"])
  })

  it("durations are short, and Chinese in Chinese", () => {
    const times = [8, 1432, 47_200, 362_000, 7_620_000]
    assert.deepStrictEqual(times.map(duration), ["8 ms", "1.43 s", "47 s", "6 min 02 s", "2 h 07 min"])
    const now = Date.UTC(2026, 10, 27)
    assert.deepStrictEqual([18, 300].map((seconds) => ago(now - seconds * 1000, now)), ["18 s ago", "5 min ago"])
    registry.set(languageAtom, "zh")
    assert.deepStrictEqual(times.map(duration), ["8 毫秒", "1.43 秒", "47 秒", "6 分 02 秒", "2 小时 07 分"])
    assert.strictEqual(countdown(3.2), "4 秒")
  })

  it("a text of the gateway becomes a sentence with a capital", () => {
    assert.strictEqual(sentence("there is no data folder"), "There is no data folder.")
  })

  it("days begin at midnight of the chosen zone", () => {
    registry.set(zoneAtom, "utc")
    const noon = Date.UTC(2026, 10, 27, 12)
    assert.strictEqual(dayIn(noon), Date.UTC(2026, 10, 27))
    assert.strictEqual(dayStart(dayIn(noon)), Date.UTC(2026, 10, 27))
  })
})

describe("the last hour at the overview", () => {
  const start = Date.UTC(2026, 10, 27, 12)
  const minutes = Array.from({ length: 60 }, (_, index): Minute => ({
    at: start + index * 60_000,
    requests: index === 59 ? 7 : 12,
    ok: 12,
    failed: 0,
    refused: 0,
    left: 0,
    first_event_p50_ms: 100,
    first_event_p95_ms: 200,
    tokens: 60,
    cost: "0"
  }))

  it("the rate comes from the last five full minutes, or from those there are", () => {
    assert.strictEqual(totalsOf({ minutes, since: start }).requestRate, 12)
    // It started two minutes ago: both are full, and the hour before them counts for nothing.
    const young = minutes.map((each) => each.at < start + 57 * 60_000 ? { ...each, requests: 0 } : each)
    assert.strictEqual(totalsOf({ minutes: young, since: start + 57 * 60_000 }).requestRate, 12)
    assert.strictEqual(totalsOf({ minutes, since: start + 59 * 60_000 + 1 }).requestRate, 7)
    assert.strictEqual(totalsOf({ minutes, since: start }).requests, 59 * 12 + 7)
    assert.deepStrictEqual(minutes.map((each) => isUnknown(each, start + 90_000)).slice(0, 3), [true, false, false])
  })

  it("what callers are at fault for is refused, and has not failed", () => {
    const refusing = minutes.map((each) => ({ ...each, failed: 3, refused: 2 }))
    assert.deepInclude(totalsOf({ minutes: refusing, since: start }), { ok: 720, failed: 60, refused: 120 })
  })

  it("the scale of latencies is linear to three times the usual one: a doubled one is twice as high, and ten minutes flatten nothing", () => {
    const latencies = [null, 900, 1_000, 1_000, 1_100, 600_000]
    const { heightAt, top, usual } = latencyScale(latencies)!
    assert.deepStrictEqual([usual, top], [1_000, 3_000])
    assert.strictEqual(heightAt(2_000), 2 * heightAt(1_000))
    assert.deepStrictEqual([heightAt(0), heightAt(3_000), heightAt(600_000)], [0, 100, 100])
    assert.isUndefined(latencyScale([null, null]))
    // Of cut ones that stand together the slowest has its number.
    const cut = Array.from({ length: 60 }, (_, i) => i === 10 ? 4_000 : i === 12 ? 9_000 : i === 40 ? 5_000 : null)
    assert.deepStrictEqual(numbered(cut, 3_000), [12, 40])
  })

  it("the change to the hour before is known where the gateway has counted that hour whole", () => {
    const before = start - 60 * 60_000
    assert.strictEqual(changeOf({ minutes, since: before }, 150, 100), 0.5)
    assert.isUndefined(changeOf({ minutes, since: before + 1 }, 150, 100))
    assert.isUndefined(changeOf({ minutes, since: before }, 150, 0))
    assert.deepStrictEqual([0.5, -0.124, 0.0009, 0.0001, 12].map(change), [
      "+50 %",
      "−12 %",
      "+0.1 %",
      "±0 %",
      "×13"
    ])
    assert.deepStrictEqual([0.0123, -0.5, 0].map(points), ["+1.2", "−50", "±0"])
  })
})

describe("formats of the console", () => {
  afterEach(() => vi.restoreAllMocks())

  it("are made once, however many values a page shows", () => {
    const kinds = [
      vi.spyOn(Intl, "DateTimeFormat"),
      vi.spyOn(Intl, "NumberFormat"),
      vi.spyOn(Intl, "RelativeTimeFormat")
    ]
    const row = (at: number) => {
      exactTime(at)
      when(at, at + 86_400_000)
      dayIn(at)
      ago(at, at + 60_000)
      compact(at)
      money(String(at % 1000), "USD")
    }
    const made = () => kinds.reduce((sum, { mock }) => sum + mock.calls.length, 0)
    row(Date.UTC(2026, 10, 21))
    const first = made()
    for (let i = 0; i < 100; i++) row(Date.UTC(2026, 10, 22) + i * 1000)
    assert.isAbove(first, 0)
    // Amounts have two, three or four places.
    assert.isAtMost(made(), first + 2)
  })
})
