/** How long requests took: percentiles of counts that are added, and their texts. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  addMeasured,
  addTimes,
  addTimesText,
  type Measured,
  percentileNames,
  type Percentiles,
  percentilesOf,
  sumOfTexts,
  type Times,
  timesText
} from "../../src/usage/Times.ts"

/** Durations of every order, up to a quarter of an hour. */
const millis = fc.oneof(
  fc.integer({ min: 0, max: 50 }),
  fc.integer({ min: 0, max: 3000 }),
  fc.integer({ min: 0, max: 900_000 })
)

const requests = fc.array(
  fc.record({
    firstEvent: fc.option(millis, { nil: undefined }),
    stream: millis,
    queued: millis,
    completionTokens: fc.oneof(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 10_000 }))
  }).map(({ firstEvent, stream, ...rest }): Measured => ({
    ...rest,
    firstEvent,
    duration: (firstEvent ?? 0) + stream
  })),
  { maxLength: 60 }
)

const timesOf = (all: ReadonlyArray<Measured>): Times => {
  const times: Times = new Map()
  for (const one of all) addMeasured(times, one)
  return times
}

/** The value that a share of values does not exceed. */
const naive = (values: ReadonlyArray<number>, share: number): number | null =>
  values.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(share * values.length)) - 1] ?? null

const naiveOf = (all: ReadonlyArray<Measured>): Percentiles => {
  const first = all.flatMap(({ firstEvent }) => firstEvent ?? [])
  const rates = all.flatMap(({ completionTokens, duration, firstEvent }) => {
    const stream = firstEvent === undefined ? 0 : duration - firstEvent
    return stream < 50 || completionTokens < 2 ? [] : [completionTokens * 1000 / stream]
  })
  return {
    first_event_p50_ms: naive(first, 0.5),
    first_event_p95_ms: naive(first, 0.95),
    duration_p95_ms: naive(all.map(({ duration }) => duration), 0.95),
    queue_p95_ms: naive(all.map(({ queued }) => queued), 0.95),
    tokens_per_second_p50: naive(rates, 0.5)
  }
}

/** The sorted counts. */
const plain = (times: Times) => [...times].sort(([a], [b]) => a - b)

const read = (text: string): Times => {
  const times: Times = new Map()
  addTimesText(times, text)
  return times
}

describe("the times of requests", () => {
  it("have percentiles within 5 percent of those of the requests themselves, from any groups of them", () => {
    fc.assert(fc.property(fc.array(requests, { minLength: 1, maxLength: 4 }), (groups) => {
      const sum: Times = new Map()
      for (const group of groups) addTimes(sum, timesOf(group))
      const shown = percentilesOf(sum)
      const exact = naiveOf(groups.flat())
      for (const name of percentileNames) {
        const [value, expected] = [shown[name], exact[name]]
        if (expected === null) assert.isNull(value, name)
        else {
          const least = name === "tokens_per_second_p50" ? 0.1 : 1
          assert.isAtMost(
            Math.abs(value! - expected),
            Math.max(least, expected * 0.05),
            `${name}: ${value} of ${expected}`
          )
        }
      }
    }))
  })

  it("are added as texts, also as one behind the other", () => {
    fc.assert(fc.property(requests, requests, (one, other) => {
      const texts = [one, other].map((each) => timesText(timesOf(each))) as [string, string]
      const sum = plain(timesOf([...one, ...other]))
      assert.deepStrictEqual(plain(read(texts.join(" "))), sum)
      assert.deepStrictEqual(plain(read(sumOfTexts(...texts) ?? "")), sum)
    }))
    assert.isNull(sumOfTexts(null, null))
    assert.strictEqual(sumOfTexts(null, "5=1"), "5=1")
  })

  it("leave out of a text what is no count of a place", () => {
    assert.deepStrictEqual(plain(read("  7=2 99999=1 = =3 8= 9=0 7=1")), [[0, 3], [7, 3]])
    assert.deepStrictEqual(plain(read("")), [])
  })

  it("have no percentiles without a request", () => {
    assert.deepStrictEqual(Object.values(percentilesOf(undefined)), [null, null, null, null, null])
  })
})
