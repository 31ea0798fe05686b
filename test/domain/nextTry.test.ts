import { assert, describe, it } from "@effect/vitest"
import { classify } from "../../src/domain/classifyUpstreamFailure.ts"
import type { FailureClass } from "../../src/domain/FailureClass.ts"
import { type Next, plainContext, rules } from "../../src/domain/failureRules.ts"
import { gatewayError } from "../../src/domain/GatewayError.ts"
import {
  type AlsoOn,
  errorOfTries,
  errorWithoutAccount,
  type FailedTry,
  mostTries,
  mostTriesOfTarget,
  type NextTry,
  nextTry,
  shareOfTime,
  type TriedRequest
} from "../../src/domain/nextTry.ts"
import { UpstreamFailure } from "../../src/domain/UpstreamFailure.ts"

/** The kinds of failures that differ in what follows. */
const failures: ReadonlyArray<FailedTry["failure"]> = [
  { class: "rate_limited", next: "account", retry: "elsewhere" },
  { class: "token_refused", next: "account", retry: "here_after_refresh" },
  { class: "upstream_trouble", next: "target", retry: "elsewhere" },
  { class: "endpoint_missing", next: "target", retry: "no" },
  { class: "prompt_too_long", next: "end", retry: "no" },
  { class: "withdrawn", next: "end", retry: "no" },
  { class: "caller_mistake", next: "end", retry: "no" }
]

/** The rules in words, one after the other, over lists. */
const naive = (
  { alsoOn, hasAccount, isPinned, out = new Set(), targets, tries, windows = [] }: TriedRequest
): NextTry => {
  const { failure, target } = tries.at(-1)!
  const end: NextTry = { _tag: "end" }
  if (tries.length === 8) return end
  const all = Array.from({ length: targets }, (_, index) => index)
  const of = (index: number) => tries.filter((attempt) => attempt.target === index)
  const fresh = all.filter((index) => of(index).length === 0 && !out.has(index))
  const isOpen = of(target).length < 3
  const to = (index: number | undefined): NextTry => index === undefined ? end : { _tag: "target", target: index }
  if (isOpen && failure.retry === "here_after_refresh") return { _tag: "refresh", target }
  if (isPinned) return end
  if (failure.next === "end") {
    const larger = fresh.find((index) => windows[target] !== undefined && (windows[index] ?? 0) > windows[target])
    if (failure.class === "prompt_too_long" && larger !== undefined) return to(larger)
    const isRouted = (failure.class === "prompt_too_long" && alsoOn.includes("context_length")) ||
      (failure.class === "withdrawn" && alsoOn.includes("content_filter"))
    return isRouted ? to(fresh[0]) : end
  }
  if (isOpen && hasAccount && failure.next === "account") return { _tag: "account", target }
  if (fresh.length > 0) return to(fresh[0])
  const round = [...all.slice(target + 1), ...all.slice(0, target + 1)]
  return to(
    round.find((index) => of(index).length < 3 && of(index).at(-1)?.failure.retry !== "no" && !out.has(index))
  )
}

const alsoOns: ReadonlyArray<ReadonlyArray<AlsoOn>> = [[], ["context_length"], ["content_filter"]]

/** Follows every failure that each next try may have, up to `depth` tries, and returns how many states it has seen. */
const explore = (request: Omit<TriedRequest, "hasAccount">, target: number, depth: number): number => {
  if (depth === 0) return 0
  let seen = 0
  for (const failure of failures) {
    const tries = [...request.tries, { target, failure }]
    for (const hasAccount of [true, false]) {
      const tried = { ...request, tries, hasAccount }
      const next = nextTry(tried)
      assert.deepStrictEqual(next, naive(tried), JSON.stringify(tried))
      seen++
      if (next._tag !== "end") seen += explore({ ...request, tries }, next.target, depth - 1)
    }
  }
  return seen
}

describe("nextTry", () => {
  it("follows the rules in every state of the first tries", () => {
    let seen = 0
    for (const targets of [1, 2, 3]) {
      for (const alsoOn of alsoOns) {
        for (const isPinned of [true, false]) {
          for (const out of isPinned ? [undefined] : [undefined, new Set([targets - 1])]) {
            for (const windows of targets < 2 ? [undefined] : [undefined, [8, 4, 16]]) {
              seen += explore({ targets, tries: [], alsoOn, isPinned, out, windows }, 0, windows === undefined ? 4 : 3)
            }
          }
        }
      }
    }
    assert.isAbove(seen, 10_000)
  })

  it("ends after three tries of each target, and after eight of the request", () => {
    const path = (targets: number, failure: FailedTry["failure"], hasAccount: boolean) => {
      const tries: Array<FailedTry> = [{ target: 0, failure }]
      for (let i = 0; i < 20; i++) {
        const next = nextTry({
          targets,
          tries,
          hasAccount,
          alsoOn: [],
          isPinned: false,
          windows: undefined,
          out: undefined
        })
        if (next._tag === "end") break
        tries.push({ target: next.target, failure })
      }
      return tries.map(({ target }) => target)
    }
    const [limited, , trouble, missing] = failures
    assert.deepStrictEqual(path(1, trouble!, true), [0, 0, 0])
    assert.deepStrictEqual(path(2, trouble!, true), [0, 1, 0, 1, 0, 1])
    assert.deepStrictEqual(path(4, trouble!, true), [0, 1, 2, 3, 0, 1, 2, 3])
    assert.deepStrictEqual(path(2, limited!, true), [0, 0, 0, 1, 1, 1])
    assert.deepStrictEqual(path(2, limited!, false), [0, 1, 0, 1, 0, 1])
    assert.deepStrictEqual(path(3, missing!, true), [0, 1, 2])
    assert.deepStrictEqual([mostTriesOfTarget, mostTries], [3, 8])
  })

  it("every class of failure says where a request goes", () => {
    const expected: Readonly<Record<FailureClass, Next>> = {
      rate_limited: "account",
      quota_exhausted: "account",
      token_refused: "account",
      key_missing: "account",
      account_suspended: "account",
      account_busy: "account",
      overloaded: "target",
      login_refused: "account",
      forbidden: "account",
      proxy_failed: "account",
      unreachable: "target",
      cut_off: "target",
      upstream_trouble: "target",
      timed_out: "target",
      empty_reply: "target",
      disagreement: "target",
      model_unavailable: "target",
      endpoint_missing: "target",
      session_gone: "target",
      caller_mistake: "end",
      prompt_too_long: "end",
      request_too_large: "end",
      withdrawn: "end",
      shutting_down: "end",
      overdue: "end",
      exhausted: "end"
    }
    for (const rule of rules) assert.strictEqual(rule.next, expected[rule.class], rule.class)
    assert.sameMembers([...new Set(rules.map((rule) => rule.class))], Object.keys(expected))
  })

  it("a failure after something was shown, or with the caller's own token, ends the request", () => {
    const failure = new UpstreamFailure({ phase: "stream", kind: "transport" })
    assert.strictEqual(classify(failure, plainContext).next, "target")
    assert.strictEqual(classify(failure, { ...plainContext, shown: true }).next, "end")
    assert.strictEqual(classify(failure, { ...plainContext, direct: true }).next, "end")
  })

  it("each target gets its share of the time, and at least five seconds of what is left", () => {
    assert.strictEqual(shareOfTime(120_000, 1), 120_000)
    assert.strictEqual(shareOfTime(120_000, 4), 30_000)
    assert.strictEqual(shareOfTime(12_000, 4), 5_000)
    assert.strictEqual(shareOfTime(3_000, 4), 3_000)
    assert.strictEqual(shareOfTime(90_000, 0), 90_000)
  })

  it("the error comes from the last try, with the earliest time to come back; a refusal of the request itself stands", () => {
    const tried = (failureClass: FailureClass, retryAfter?: number, target = 0) => ({
      target,
      failure: {
        class: failureClass,
        error: gatewayError(
          failureClass === "rate_limited" ? "upstream_rate_limited" : "upstream_error",
          failureClass,
          {
            retryAfter
          }
        ),
        retryAfter
      }
    })
    const error = errorOfTries([tried("rate_limited", 30), tried("rate_limited", 60)])
    assert.deepStrictEqual([error?.message, error?.retryAfter], ["rate_limited", 30])
    assert.strictEqual(errorOfTries([tried("rate_limited"), tried("unreachable")])?.message, "unreachable")
    assert.strictEqual(errorOfTries([tried("prompt_too_long"), tried("unreachable")])?.message, "prompt_too_long")
    assert.isUndefined(errorOfTries([]))
    assert.strictEqual(
      errorOfTries([tried("rate_limited"), tried("unreachable", 5, 1), tried("unreachable")])?.message,
      "unreachable (2 targets were tried)"
    )
  })
})

describe("the error of a request whose target has no account left", () => {
  const limited = (retryAfter: number | undefined, retryAfterMs?: number) => ({
    failure: classify(
      new UpstreamFailure({
        phase: "completion",
        kind: "refused",
        status: 429,
        ...retryAfter === undefined ? {} : { retryAfter },
        ...retryAfterMs === undefined ? {} : { retryAfterMs }
      }),
      plainContext
    )
  })
  const told = (waits: ReadonlyArray<number | undefined>, free: number | undefined, elapsed = 0) =>
    errorWithoutAccount(waits.map((wait) => limited(wait)), free, elapsed)?.retryAfter

  it("has the time until the first account is free, as the servers say it", () => {
    assert.strictEqual(told([287_441], 287_441), 287_441)
    assert.strictEqual(told([287_441], 287_440, 1.5), 287_441)
    assert.strictEqual(told([287_441, 7_200], 7_200), 7_200)
    assert.strictEqual(told([30, 287_441], 30), 30)
    assert.strictEqual(told([1e9], 30 * 24 * 3_600), 30 * 24 * 3_600)
  })

  it("has the time of another account that is free before", () => {
    assert.strictEqual(told([287_441], 40), 40)
    assert.strictEqual(told([30], 3), 3)
  })

  it("has the account's cooldown where no server says a time", () => {
    assert.strictEqual(told([undefined], 4), 4)
    assert.isUndefined(errorWithoutAccount([], 4, 0))
  })

  it("has the server's milliseconds beside its own seconds alone", () => {
    assert.strictEqual(errorWithoutAccount([limited(30, 29_500)], 30, 0)?.retryAfterMs, 29_500)
    assert.isUndefined(errorWithoutAccount([limited(30, 29_500)], 3, 0)?.retryAfterMs)
  })
})
