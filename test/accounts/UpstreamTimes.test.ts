/** The recent tries of upstreams: their counts, their quantiles, and what nodes send each other. */
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import { addTries, noTries, quantileOf, TriesText, UpstreamTimes } from "../../src/accounts/UpstreamTimes.ts"
import { runs } from "../support/effort.ts"

const minute = 60_000

const [decode, encode] = [Schema.decodeSync(TriesText), Schema.encodeSync(TriesText)]

type Act =
  | { readonly pass: number }
  | { readonly upstream: string; readonly answered: number }
  | { readonly upstream: string; readonly failed: true }

const upstreams = fc.constantFrom("gpu", "hosted")
const acts = fc.array(
  fc.oneof(
    fc.record({ pass: fc.integer({ min: 0, max: 3 * minute }) }),
    fc.record({ pass: fc.integer({ min: 0, max: 20 * minute }) }),
    fc.record({ upstream: upstreams, answered: fc.integer({ min: 0, max: 600_000 }) }),
    fc.record({ upstream: upstreams, failed: fc.constant<true>(true) })
  ),
  { maxLength: 60 }
)

const within = (shown: number | null, exact: number) => {
  assert.isNotNull(shown)
  assert.isAtMost(Math.abs(shown - exact), Math.max(1, exact * 0.05), `${shown} instead of ${exact}`)
}

/** Carries out the acts, and returns the counts beside the plain list of the tries of five minutes. */
const carryOut = (steps: ReadonlyArray<Act>) => {
  let now = 1_000_000 * minute
  const times = new UpstreamTimes(() => now)
  const tries: Array<{ readonly at: number; readonly upstream: string; readonly took: number | undefined }> = []
  for (const step of steps) {
    if ("pass" in step) {
      now += step.pass
      continue
    }
    const { upstream } = step
    times.began(upstream)
    if ("failed" in step) times.failed(upstream)
    else times.answered(upstream, step.answered)
    tries.push({ at: Math.floor(now / minute), upstream, took: "failed" in step ? undefined : step.answered })
  }
  const oldest = Math.floor(now / minute) - 4
  const step = Math.floor(now / (5 * minute))
  const ofStep = (ago: number) => tries.filter(({ at }) => Math.floor(at / 5) === step - ago)
  return { recent: times.recent(), tries: tries.filter(({ at }) => at >= oldest), ofStep }
}

describe("recent tries", () => {
  it("come from the current minute and the four before it, and of the hour in 12 steps of five minutes", () => {
    fc.assert(
      fc.property(acts, (steps) => {
        const { ofStep, recent, tries } = carryOut(steps)
        for (const name of ["gpu", "hosted"]) {
          const own = tries.filter(({ upstream }) => upstream === name)
          const counts = recent.get(name) ?? noTries()
          assert.strictEqual(counts.requests, own.length)
          assert.strictEqual(counts.errors, own.filter(({ took }) => took === undefined).length)
          const hour = Array.from({ length: 12 }, (_, i) => ofStep(11 - i).filter(({ upstream }) => upstream === name))
          assert.deepStrictEqual(
            [...counts.hour],
            hour.flatMap((of) => [of.length, of.filter(({ took }) => took === undefined).length])
          )
          const took = own.flatMap((each) => each.took ?? []).sort((a, b) => a - b)
          for (const share of [0.5, 0.95]) {
            if (took.length === 0) assert.isNull(quantileOf(counts, share))
            else within(quantileOf(counts, share), took[Math.max(0, Math.ceil(share * took.length) - 1)]!)
          }
        }
      }),
      { numRuns: runs(300) }
    )
  })

  it("of several nodes add up, also as text", () => {
    fc.assert(
      fc.property(acts, acts, (here, there) => {
        const sum = noTries()
        const parts = [here, there].map((steps) => carryOut(steps).recent.get("gpu") ?? noTries())
        for (const part of parts) addTries(sum, decode(encode(part)))
        assert.strictEqual(sum.requests, parts[0]!.requests + parts[1]!.requests)
        assert.strictEqual(sum.errors, parts[0]!.errors + parts[1]!.errors)
        sum.hour.forEach((count, i) => assert.strictEqual(count, parts[0]!.hour[i]! + parts[1]!.hour[i]!))
        sum.times.forEach((count, i) => assert.strictEqual(count, parts[0]!.times[i]! + parts[1]!.times[i]!))
      }),
      { numRuns: runs(100) }
    )
  })

  it("count times beyond 70 minutes as 70 minutes", () => {
    const times = new UpstreamTimes(() => 0)
    times.answered("gpu", 1e9)
    const counts = times.recent()
    assert.strictEqual(counts.size, 0)
    times.began("gpu")
    within(quantileOf(times.recent().get("gpu")!, 0.5), 2 ** 22)
  })
})
