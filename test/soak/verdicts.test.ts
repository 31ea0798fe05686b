/** The verdicts of the soak: what passes, and what each of them detects. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { countVerdicts, drainVerdicts, processVerdicts, type Rest, theilSen } from "../../bench/soak/verdicts.ts"

const mega = 1024 * 1024

const rest = (at: number, change: Partial<Rest> = {}): Rest => ({
  at,
  settled: 0,
  inUse: 0,
  waiting: 0,
  active: 0,
  upstream: 0,
  connections: 0,
  heap: 30 * mega,
  rss: 150 * mega,
  descriptors: 30,
  ...change
})

const rests = (count: number, of: (i: number) => Partial<Rest> = () => ({})): ReadonlyArray<Rest> =>
  Array.from({ length: count }, (_, i) => rest(i * 300, of(i)))

const failed = (verdicts: ReadonlyArray<{ readonly name: string; readonly passed: boolean }>): ReadonlyArray<string> =>
  verdicts.filter(({ passed }) => !passed).map(({ name }) => name)

const nothing = { untrue: 0, hung: 0, internal: 0, limitsExceeded: 0, violations: 0 }

describe("the Theil-Sen slope", () => {
  it("is that of a line, whatever a minority of its points", () => {
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
  const figures = { minutes: 60, rests: rests(13), first: instances, last: instances, delay: 40 }

  it("detect a heap that grows until the end, and accept one that has stopped growing", () => {
    const growing = (i: number) => ({ heap: (30 + i) * mega })
    const stopped = (i: number) => ({ heap: (30 + Math.min(i, 5)) * mega })
    const heap = "heap after GC, growth over the second half"
    assert.deepStrictEqual(failed(processVerdicts(figures)), [])
    assert.deepStrictEqual(failed(processVerdicts({ ...figures, rests: rests(13, growing) })), [heap])
    assert.deepStrictEqual(failed(processVerdicts({ ...figures, rests: rests(13, stopped) })), [])
    const large = rests(13, (i) => ({ heap: (400 + i) * mega }))
    assert.deepStrictEqual(failed(processVerdicts({ ...figures, rests: large })), [], "6 MB are 1.5 % of it")
  })

  it("detect growing resident memory, instances, descriptors and delays", () => {
    const last = new Map([...instances, ["FiberImpl", 37]])
    assert.deepStrictEqual(failed(processVerdicts({ ...figures, last })), ["fibers more than at the first rest"])
    const resident = rests(13, (i) => ({ rss: (i > 9 ? 200 : 150) * mega }))
    assert.deepStrictEqual(failed(processVerdicts({ ...figures, rests: resident })), ["RSS, last 3 rests ÷ 3 before"])
    const open = rests(13, (i) => ({ descriptors: 30 + i }))
    assert.deepStrictEqual(failed(processVerdicts({ ...figures, rests: open })), [
      "descriptors more than at the first rest"
    ])
    assert.deepStrictEqual(failed(processVerdicts({ ...figures, delay: 101 })), ["loop delay p99 under load"])
  })
})
