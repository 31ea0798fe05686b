/** Where the attempts of a request go, as values. */
import { assert, describe, it } from "@effect/vitest"
import {
  type Choice,
  failedAt,
  firstStep,
  hasFailedOn,
  leavingOut,
  nextStep,
  nothingTried,
  type Step,
  stepTo,
  type Tried,
  untriedOf
} from "../../src/completion/targetChoice.ts"
import type { Classification } from "../../src/domain/classifyUpstreamFailure.ts"
import { gatewayError } from "../../src/domain/GatewayError.ts"

const account = (upstream: string, name: string, disabled = false) => ({ upstream, disabled, identity: [name] })

const choice: Choice = {
  upstreams: ["one", "two"],
  accounts: [account("one", "a"), account("one", "b"), account("two", "c"), account("two", "off", true)],
  alsoOn: [],
  isPinned: false,
  windows: undefined
}

const failure = (next: Classification["next"], facts: Partial<Classification> = {}): Classification => ({
  class: "rate_limited",
  retry: "elsewhere",
  next,
  health: "none",
  error: gatewayError("upstream_error", "no"),
  retryAfter: undefined,
  ...facts
})

/** The steps after failures, each of a target and an account, and what the request has tried then. */
const follow = (choice: Choice, ...failures: ReadonlyArray<readonly [number, string, Classification]>) => {
  let tried: Tried = nothingTried
  const steps: Array<Step | undefined> = [firstStep(choice)]
  for (const [target, account, failure] of failures) {
    const next = nextStep(choice, failedAt(tried, target, failure), failure, account)
    steps.push(next?.step)
    tried = next?.tried ?? tried
  }
  return { steps, tried }
}

describe("the attempts of a request", () => {
  it("go to the other account of a target, then to the next target, then round", () => {
    const limited = failure("account")
    const { steps, tried } = follow(choice, [0, "a", limited], [0, "b", limited], [1, "c", limited])
    assert.deepStrictEqual(steps, [
      stepTo([0, 1]),
      { ...stepTo([0, 1]), counts: "failovers" },
      { ...stepTo([1]), counts: "failovers" },
      { ...stepTo([0]), counts: "retries", pauses: 1 }
    ])
    assert.deepStrictEqual([[...tried.avoid], tried.retries, tried.tries.length], [["a", "b"], 1, 3])
  })

  it("repeat with a fresh token on the same account, once", () => {
    const refused = failure("account", { class: "token_refused", retry: "here_after_refresh" })
    const { steps, tried } = follow(choice, [0, "a", refused])
    assert.deepStrictEqual(steps[1], { ...stepTo([0]), stay: "a" })
    assert.isTrue(tried.refreshed.has("a"))
  })

  it("pause before they repeat on the only account, unless that is out of rotation", () => {
    const alone: Choice = { ...choice, upstreams: ["two"] }
    assert.deepStrictEqual(follow(alone, [0, "c", failure("account")]).steps[1], {
      ...stepTo([0]),
      counts: "retries",
      pauses: 1
    })
    assert.deepStrictEqual(follow(alone, [0, "c", failure("account", { health: "refused_login" })]).steps[1], {
      ...stepTo([0]),
      counts: "retries"
    })
  })

  it("end for a request that is pinned, and leave out targets that cannot serve it", () => {
    assert.isUndefined(follow({ ...choice, isPinned: true }, [0, "a", failure("account")]).steps[1])
    const out = leavingOut(nothingTried, [1])
    assert.deepStrictEqual(untriedOf(choice, out), [0])
    assert.isUndefined(nextStep(choice, failedAt(out, 0, failure("end")), failure("end"), "a"))
    const tried: Tried = { ...failedAt(nothingTried, 0, failure("target")), avoid: new Set(["a"]) }
    assert.isTrue(hasFailedOn(tried, "a", 0))
    assert.isFalse(hasFailedOn(tried, "a", 1))
    assert.isFalse(hasFailedOn(tried, undefined, 0))
  })

  it("change nothing that was tried before", () => {
    const { tried } = follow(choice, [0, "a", failure("account")])
    assert.deepStrictEqual([nothingTried.tries.length, nothingTried.avoid.size, tried.avoid.size], [0, 0, 1])
  })
})
