/** The verdicts of the soak: what passes, and what each of them detects. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type Disturbance, Unrest } from "../../bench/soak/unrest.ts"
import {
  countVerdicts,
  drainVerdicts,
  type Footprint,
  type ProcessFigures,
  processVerdicts,
  type Rest,
  theilSen,
  unrestVerdicts
} from "../../bench/soak/verdicts.ts"

const mega = 1024 * 1024

const rest = (at: number, change: Partial<Rest> = {}): Rest => ({
  at,
  settled: 0,
  inUse: 0,
  waiting: 0,
  active: 0,
  upstream: 0,
  connections: 0,
  processes: [],
  store: undefined,
  ...change
})

const rests = (count: number, of: (i: number) => Partial<Rest> = () => ({})): ReadonlyArray<Rest> =>
  Array.from({ length: count }, (_, i) => rest(i * 300, of(i)))

const footprints = (count: number, of: (i: number) => Partial<Footprint> = () => ({})): ReadonlyArray<Footprint> =>
  Array.from({ length: count }, (_, i) => ({
    at: i * 300,
    name: "gateway",
    pid: 1,
    heap: 30 * mega,
    rss: 150 * mega,
    descriptors: 30,
    ...of(i)
  }))

const failed = (verdicts: ReadonlyArray<{ readonly name: string; readonly passed: boolean }>): ReadonlyArray<string> =>
  verdicts.filter(({ passed }) => !passed).map(({ name }) => name)

const nothing = { untrue: 0, hung: 0, internal: 0, limitsExceeded: 0, violations: 0 }

describe("the Theil-Sen slope", () => {
  it("comes from a line, whatever a minority of its points", () => {
    fc.assert(fc.property(
      fc.integer({ min: -50, max: 50 }),
      fc.integer({ min: 0, max: 8 }),
      fc.integer({ min: -1_000_000, max: 1_000_000 }),
      (slope, outlier, by) => {
        const points = Array.from({ length: 9 }, (_, x) => [x, slope * x + (x === outlier ? by : 0)] as const)
        assert.strictEqual(theilSen(points), slope)
      }
    ))
  })

  it("is 0 for fewer than two points", () => {
    assert.strictEqual(theilSen([]), 0)
    assert.strictEqual(theilSen([[1, 5]]), 0)
  })
})

describe("the verdicts of the soak", () => {
  it("pass without failures and leftovers", () => {
    assert.deepStrictEqual(failed(countVerdicts(nothing, rests(3))), [])
    assert.deepStrictEqual(failed(drainVerdicts({ streams: 8, whole: 8, exit: 0 })), [])
  })

  it("detect each kind of failure, and each leftover at any rest", () => {
    for (const name of Object.keys(nothing)) {
      assert.lengthOf(failed(countVerdicts({ ...nothing, [name]: 1 }, rests(3))), 1, name)
    }
    for (const name of ["inUse", "waiting", "active", "upstream", "connections"]) {
      assert.lengthOf(failed(countVerdicts(nothing, rests(3, (i) => i === 1 ? { [name]: 1 } : {}))), 1, name)
    }
  })

  it("detect a stop that cuts streams, and a wrong exit code", () => {
    assert.deepStrictEqual(failed(drainVerdicts({ streams: 8, whole: 7, exit: 1 })), [
      "SIGTERM: streams that end whole",
      "SIGTERM: exit code"
    ])
    assert.deepStrictEqual(failed(drainVerdicts({ streams: 8, whole: 8, exit: "SIGKILL" })), ["SIGTERM: exit code"])
  })

  const instances = new Map([["FiberImpl", 20], ["Socket", 4], ["Timeout", 9]])
  const figures: ProcessFigures = {
    name: "gateway",
    rests: footprints(13),
    first: instances,
    last: instances,
    delay: 40
  }
  const failedOf = (...changes: ReadonlyArray<Partial<ProcessFigures>>): ReadonlyArray<string> =>
    failed(processVerdicts({ minutes: 60, processes: changes.map((change) => ({ ...figures, ...change })) }))

  it("detect a heap that grows until the end, and accept one that has stopped growing", () => {
    const growing = footprints(13, (i) => ({ heap: (30 + i) * mega }))
    const stopped = footprints(13, (i) => ({ heap: (30 + Math.min(i, 5)) * mega }))
    const heap = "heap after GC, growth over the second half"
    assert.deepStrictEqual(failedOf({}), [])
    assert.deepStrictEqual(failedOf({ rests: growing }), [heap])
    assert.deepStrictEqual(failedOf({ rests: stopped }), [])
    const large = footprints(13, (i) => ({ heap: (400 + i) * mega }))
    assert.deepStrictEqual(failedOf({ rests: large }), [], "6 MB are 1.5 % of it")
  })

  it("detect growing resident memory, instances, descriptors and delays", () => {
    const last = new Map([...instances, ["FiberImpl", 37]])
    assert.deepStrictEqual(failedOf({ last }), ["fibers more than at the first rest"])
    const resident = footprints(13, (i) => ({ rss: (i > 9 ? 200 : 150) * mega }))
    assert.deepStrictEqual(failedOf({ rests: resident }), ["RSS, last 3 rests ÷ 3 before"])
    const open = footprints(13, (i) => ({ descriptors: 30 + i }))
    assert.deepStrictEqual(failedOf({ rests: open }), ["descriptors more than at the first rest"])
    assert.deepStrictEqual(failedOf({ delay: 101 }), ["loop delay p99 under load"])
  })

  it("come from the worst of several processes, with its name", () => {
    const open = footprints(13, (i) => ({ descriptors: 30 + i }))
    const processes = [{ name: "a" }, { name: "b", rests: open }, { name: "c", delay: 101 }]
    assert.deepStrictEqual(failedOf(...processes), [
      "descriptors more than at the first rest: b",
      "loop delay p99 under load: c"
    ])
    // A share that is out of bounds counts more than a larger growth within its share.
    const small = footprints(13, (i) => ({ heap: (30 + i) * mega }))
    const large = footprints(13, (i) => ({ heap: (400 + 1.5 * i) * mega }))
    assert.deepStrictEqual(failedOf({ name: "large", rests: large }, { name: "small", rests: small }), [
      "heap after GC, growth over the second half: small"
    ])
  })
})

describe("the verdicts on disturbances", () => {
  const after = (sort: "failover" | "roll" | "kill", change: Partial<Disturbance>): ReadonlyArray<string> => {
    const unrest = new Unrest()
    Object.assign(unrest.begin(sort, sort, 1000), { over: 3000, limit: 2, allowed: 12 }, change)
    return failed(unrestVerdicts(unrest.all))
  }

  it("pass without disturbances, and for one within its bounds", () => {
    assert.deepStrictEqual(unrestVerdicts([]), [])
    const within = { most: 2, used: 12, held: 9, whole: 9, refused: 40, lastRefusal: 6000, resets: 3, lost: 1 }
    assert.deepStrictEqual(after("failover", within), [])
    assert.deepStrictEqual(after("kill", within), [])
    assert.deepStrictEqual(after("roll", { ...within, refused: 0 }), [])
  })

  it("detect an exceeded limit, a stream that ended early, a late refusal and a failed request", () => {
    assert.deepStrictEqual(after("kill", { most: 3 }), ["disturbances: an account's streams above its limit"])
    assert.deepStrictEqual(after("kill", { held: 9, whole: 8 }), [
      "disturbances: open streams that did not end whole"
    ])
    assert.deepStrictEqual(after("kill", { used: 13 }), ["disturbances: uses of a limited key above its limit"])
    assert.deepStrictEqual(after("failover", { lastRefusal: 6001 }), [
      "failovers: last refusal after the new primary"
    ])
    assert.deepStrictEqual(after("roll", { untrue: 1 }), ["replacements: failed requests"])
    assert.deepStrictEqual(after("roll", { refused: 1 }), ["replacements: failed requests"])
  })
})
