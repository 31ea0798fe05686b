import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { classify } from "../../src/domain/classifyUpstreamFailure.ts"
import { plainContext } from "../../src/domain/failureRules.ts"
import { UpstreamFailure } from "../../src/domain/UpstreamFailure.ts"
import { UpstreamCooling, upstreamFault, type UpstreamTry } from "../../src/placement/UpstreamCooling.ts"
import { runs } from "../support/effort.ts"

type Op =
  | { readonly _tag: "Begin"; readonly request: string; readonly isForced: boolean }
  | { readonly _tag: "Succeed" | "End"; readonly nth: number }
  | {
    readonly _tag: "Fail"
    readonly nth: number
    readonly fault: "connection" | "trouble"
    readonly retryAfter: number | undefined
    readonly random: number
  }
  | { readonly _tag: "Advance"; readonly by: number }

const nth = fc.nat(20)
const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      _tag: fc.constant("Begin" as const),
      request: fc.constantFrom("one", "two", "three"),
      isForced: fc.integer({ min: 0, max: 3 }).map((n) => n === 0)
    })
  },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constantFrom("Succeed" as const, "End" as const), nth }) },
  {
    weight: 6,
    arbitrary: fc.record({
      _tag: fc.constant("Fail" as const),
      nth,
      fault: fc.constantFrom("trouble" as const, "trouble" as const, "connection" as const),
      retryAfter: fc.option(fc.integer({ min: 0, max: 2_000 }), { nil: undefined, freq: 8 }),
      random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    })
  },
  { weight: 4, arbitrary: fc.record({ _tag: fc.constant("Advance" as const), by: fc.integer({ min: 1, max: 9_000 }) }) }
)

/** The rules in the simplest form: the whole past, which each question scans. */
class NaiveCooling {
  /** What happened since the last event: failures that count, and coolings. */
  past: Array<{ readonly request: string } | "cooled"> = []
  until: number | undefined
  probe: UpstreamTry | undefined
  /** The tries that began after the last cooling. */
  fresh = new Set<UpstreamTry>()

  event() {
    this.past = []
    this.until = undefined
    this.probe = undefined
  }

  cools(attempt: UpstreamTry, fault: "connection" | "trouble"): boolean {
    if (this.until !== undefined) return this.probe === attempt
    if (!this.fresh.has(attempt)) return false
    this.past.push({ request: attempt.request })
    const inRow = this.past.slice(this.past.lastIndexOf("cooled") + 1)
    const requests = new Set(inRow.map((failure) => failure === "cooled" ? "" : failure.request))
    return fault === "connection" || (inRow.length >= 3 && requests.size >= 2)
  }

  cool(now: number, delay: number) {
    this.past.push("cooled")
    this.until = now + delay
    this.probe = undefined
    this.fresh.clear()
  }
}

describe("UpstreamCooling", () => {
  it("cools, probes and returns like the plain model under any interleaving", () => {
    fc.assert(
      fc.property(fc.array(op, { maxLength: 100, size: "max" }), (ops) => {
        const cooling = new UpstreamCooling()
        const naive = new NaiveCooling()
        const tries: Array<UpstreamTry> = []
        let now = 0
        for (const op of ops) {
          const skipped = naive.until !== undefined && (now < naive.until || naive.probe !== undefined)
          assert.strictEqual(cooling.isSkipped(now), skipped)
          assert.strictEqual(cooling.until, naive.until)
          if (op._tag === "Advance") {
            now += op.by
            continue
          }
          if (op._tag === "Begin") {
            if (skipped && !op.isForced) continue
            const attempt = cooling.begin(op.request, now)
            if (naive.until !== undefined && !skipped) {
              assert.isUndefined(naive.probe)
              naive.probe = attempt
            }
            naive.fresh.add(attempt)
            tries.push(attempt)
            continue
          }
          const [attempt] = tries.splice(op.nth % Math.max(1, tries.length), 1)
          if (attempt === undefined) continue
          if (op._tag === "Succeed") {
            cooling.succeeded()
            naive.event()
          } else if (op._tag === "Fail") {
            const { fault, random, retryAfter } = op
            const delay = cooling.failed(attempt, { fault, now, random, retryAfter })
            const wasCooled = naive.until !== undefined
            const cools = naive.cools(attempt, fault)
            assert.strictEqual(delay !== undefined, cools)
            const asked = retryAfter === undefined ? undefined : Math.min(600_000, Math.max(1_000, retryAfter * 1_000))
            if (delay === undefined) {
              if (wasCooled && asked !== undefined) naive.until = Math.max(naive.until!, now + asked)
              continue
            }
            const least = Math.min(60_000, 1_000 * 2 ** naive.past.filter((past) => past === "cooled").length)
            assert.isAtLeast(delay, asked ?? least)
            assert.isAtMost(delay, asked ?? Math.min(60_000, Math.round(least * 1.25)))
            naive.cool(now, delay)
          } else {
            cooling.ended(attempt)
            if (naive.probe === attempt) naive.probe = undefined
          }
        }
      }),
      { numRuns: runs(300) }
    )
  })

  const trouble = { fault: "trouble" as const, retryAfter: undefined, random: 0 }

  it("a single request cannot cool an upstream that answers others", () => {
    const cooling = new UpstreamCooling()
    for (let i = 0; i < 10; i++) {
      assert.isUndefined(cooling.failed(cooling.begin("one", i), { ...trouble, now: i }))
    }
    assert.strictEqual(cooling.failed(cooling.begin("two", 10), { ...trouble, now: 10 }), 1_000)
  })

  it("the delay doubles with each failed probe up to a minute, and begins anew after an event", () => {
    const cooling = new UpstreamCooling()
    const delays: Array<number | undefined> = []
    let now = 0
    for (let i = 0; i < 8; i++) {
      delays.push(cooling.failed(cooling.begin("one", now), { ...trouble, fault: "connection", now }))
      now = cooling.until!
    }
    assert.deepStrictEqual(delays, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
    cooling.begin("one", now)
    cooling.succeeded()
    assert.isFalse(cooling.isSkipped(now))
    assert.strictEqual(cooling.failed(cooling.begin("one", now), { ...trouble, fault: "connection", now }), 1_000)
  })

  it("a probe that ends without an answer leaves the next one to another request", () => {
    const cooling = new UpstreamCooling()
    cooling.failed(cooling.begin("one", 0), { ...trouble, fault: "connection", now: 0 })
    assert.isTrue(cooling.isSkipped(999))
    const probe = cooling.begin("two", 1_000)
    assert.isTrue(cooling.isSkipped(1_000))
    cooling.ended(probe)
    assert.isFalse(cooling.isSkipped(1_000))
  })

  it("only failures of the upstream itself cool it", () => {
    const faultOf = (facts: Partial<ConstructorParameters<typeof UpstreamFailure>[0]>) => {
      const failure = new UpstreamFailure({ phase: "completion", kind: "refused", ...facts })
      return upstreamFault(failure, classify(failure, plainContext).class)
    }
    for (const code of ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "CERT_HAS_EXPIRED", "UND_ERR_PRX_TLS"]) {
      assert.strictEqual(faultOf({ kind: "transport", cause: { code } }), "connection", code)
    }
    assert.strictEqual(faultOf({ kind: "timeout", cause: { code: "UND_ERR_CONNECT_TIMEOUT" } }), "connection")
    assert.strictEqual(faultOf({ kind: "transport", cause: { code: "ECONNRESET" } }), "trouble")
    for (const kind of ["timeout", "malformed", "truncated", "transport"] as const) {
      assert.strictEqual(faultOf({ kind }), "trouble", kind)
    }
    for (const status of [500, 502, 503, 529]) assert.strictEqual(faultOf({ status }), "trouble", `${status}`)
    for (const status of [400, 401, 402, 403, 404, 413, 422, 429]) assert.isUndefined(faultOf({ status }), `${status}`)
    assert.isUndefined(faultOf({ kind: "empty", phase: "stream" }))
    for (const kind of ["withdrawn", "overdue", "exhausted", "shutting_down"] as const) {
      assert.isUndefined(faultOf({ kind }), kind)
    }
  })
})
