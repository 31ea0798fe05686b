/** Where requests go after what they have tried, against the rules in words, and as values. */
import { assert, describe, it } from "@effect/vitest"
import { type Classification, classify } from "../../src/domain/classifyUpstreamFailure.ts"
import type { FailureClass } from "../../src/domain/FailureClass.ts"
import { type Next, plainContext, rules } from "../../src/domain/failureRules.ts"
import { gatewayError } from "../../src/domain/GatewayError.ts"
import { type AlsoOn, errorOfTries, errorWithoutAccount, shareOfTime } from "../../src/domain/tries.ts"
import { UpstreamFailure } from "../../src/domain/UpstreamFailure.ts"
import {
  failedAt,
  failedLast,
  type FailedTry,
  leavingOut,
  mostTries,
  mostTriesOfTarget,
  nothingTried,
  place,
  type PlacedTarget,
  type Placement,
  type PlaceRequest
} from "../../src/placement/place.ts"

type Failure = Pick<Classification, "class" | "next" | "retry">

const failureOf = (failure: Failure): Classification => ({
  health: "none",
  error: gatewayError("upstream_error", "no"),
  retryAfter: undefined,
  ...failure
})

/** The kinds of failures that differ in what follows. */
const failures: ReadonlyArray<Classification> = [
  { class: "rate_limited", next: "account", retry: "elsewhere" } as const,
  { class: "token_refused", next: "account", retry: "here_after_refresh" } as const,
  { class: "upstream_trouble", next: "target", retry: "elsewhere" } as const,
  { class: "endpoint_missing", next: "target", retry: "no" } as const,
  { class: "prompt_too_long", next: "end", retry: "no" } as const,
  { class: "withdrawn", next: "end", retry: "no" } as const,
  { class: "caller_mistake", next: "end", retry: "no" } as const
].map(failureOf)

interface Case {
  readonly targets: number
  readonly tries: ReadonlyArray<FailedTry>
  /** Whether the last target has an account on which the request has not failed. */
  readonly hasAccount: boolean
  readonly alsoOn: ReadonlyArray<AlsoOn>
  readonly isPinned: boolean
  readonly out: ReadonlySet<number>
  readonly windows: ReadonlyArray<number> | undefined
}

const targetOf = (upstream: string, window?: number): PlacedTarget => ({
  upstream,
  right: "account",
  isEnabled: true,
  canServe: true,
  binds: true,
  window
})

const account = (upstream: string, name: string, disabled = false) => ({ upstream, disabled, identity: [name] })

/** Where a request goes next: `undefined` if it ends. Each try was on the account `a` of its target. */
const nextOf = ({ alsoOn, hasAccount, isPinned, out, targets, tries, windows }: Case) => {
  const upstreams = Array.from({ length: targets }, (_, i) => `u${i}`)
  const request: PlaceRequest = {
    targets: upstreams.map((name, i) => targetOf(name, windows?.[i])),
    turn: undefined,
    size: undefined,
    alsoOn,
    mustBind: false,
    isPinned,
    accounts: upstreams.flatMap((name) => [account(name, "a"), ...hasAccount ? [account(name, "b")] : []])
  }
  const { order: [target], stay } = place(request, { ...nothingTried, tries, out }, "a")
  return target === undefined ? undefined : { target, stays: stay !== undefined }
}

/** The rules in words, one after the other, over lists. The only target of a request may always have another account. */
const naive = (
  { alsoOn, hasAccount, isPinned, out, targets, tries, windows = [] }: Case
): ReturnType<typeof nextOf> => {
  const { failure, target } = tries.at(-1)!
  if (tries.length === 8) return undefined
  const all = Array.from({ length: targets }, (_, index) => index)
  const of = (index: number) => tries.filter((attempt) => attempt.target === index)
  const fresh = all.filter((index) => of(index).length === 0 && !out.has(index))
  const isOpen = of(target).length < 3
  const to = (index: number | undefined) => index === undefined ? undefined : { target: index, stays: false }
  if (isOpen && failure.retry === "here_after_refresh") return { target, stays: true }
  if (isPinned) return undefined
  if (failure.next === "end") {
    const larger = fresh.find((index) => windows[target] !== undefined && (windows[index] ?? 0) > windows[target])
    if (failure.class === "prompt_too_long" && larger !== undefined) return to(larger)
    const isRouted = (failure.class === "prompt_too_long" && alsoOn.includes("context_length")) ||
      (failure.class === "withdrawn" && alsoOn.includes("content_filter"))
    return isRouted ? to(fresh[0]) : undefined
  }
  if (isOpen && (hasAccount || targets === 1) && failure.next === "account") return to(target)
  if (fresh.length > 0) return to(fresh[0])
  const round = [...all.slice(target + 1), ...all.slice(0, target + 1)]
  return to(
    round.find((index) => of(index).length < 3 && of(index).at(-1)?.failure.retry !== "no" && !out.has(index))
  )
}

const alsoOns: ReadonlyArray<ReadonlyArray<AlsoOn>> = [[], ["context_length"], ["content_filter"]]

/** Follows every failure that each next try may have, up to `depth` tries, and returns how many states it has seen. */
const explore = (one: Omit<Case, "hasAccount">, target: number, depth: number): number => {
  if (depth === 0) return 0
  let seen = 0
  for (const failure of failures) {
    const tries = [...one.tries, { target, failure }]
    for (const hasAccount of [true, false]) {
      const tried = { ...one, tries, hasAccount }
      const next = nextOf(tried)
      assert.deepStrictEqual(next, naive(tried), JSON.stringify(tried))
      seen++
      if (next !== undefined) seen += explore({ ...one, tries }, next.target, depth - 1)
    }
  }
  return seen
}

describe("the next target of a request", () => {
  it("follows the rules in every state of the first tries", () => {
    let seen = 0
    for (const targets of [1, 2, 3]) {
      for (const alsoOn of alsoOns) {
        for (const isPinned of [true, false]) {
          for (const out of isPinned ? [new Set<number>()] : [new Set<number>(), new Set([targets - 1])]) {
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
    const path = (targets: number, failure: Classification, hasAccount: boolean) => {
      const tries: Array<FailedTry> = [{ target: 0, failure }]
      for (let i = 0; i < 20; i++) {
        const more = { alsoOn: [], isPinned: false, windows: undefined, out: new Set<number>() }
        const next = nextOf({ targets, tries, hasAccount, ...more })
        if (next === undefined) break
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

const choice: PlaceRequest = {
  targets: [targetOf("one"), targetOf("two")],
  turn: undefined,
  size: undefined,
  accounts: [account("one", "a"), account("one", "b"), account("two", "c"), account("two", "off", true)],
  alsoOn: [],
  mustBind: false,
  isPinned: false
}

const failing = (next: Next, facts: Partial<Classification> = {}): Classification => ({
  ...failureOf({ class: "rate_limited", retry: "elsewhere", next }),
  ...facts
})

/** The steps after failures, each of a target and an account, and what the request has tried then. */
const follow = (choice: PlaceRequest, ...failures: ReadonlyArray<readonly [number, string, Classification]>) => {
  let next = place(choice, nothingTried, undefined)
  const steps = [next]
  for (const [target, account, failure] of failures) {
    next = place(choice, failedAt(next.tried, target, failure), account)
    steps.push(next)
  }
  return { steps: steps.map(({ counts, order, pauses, stay }) => ({ counts, order, pauses, stay })), tried: next.tried }
}

const stepTo = (order: Placement["order"], more: Partial<Placement> = {}) => ({
  counts: undefined,
  order,
  pauses: undefined,
  stay: undefined,
  ...more
})

describe("the attempts of a request", () => {
  it("go to the other account of a target, then to the next target, then round", () => {
    const limited = failing("account")
    const { steps, tried } = follow(choice, [0, "a", limited], [0, "b", limited], [1, "c", limited])
    assert.deepStrictEqual(steps, [
      stepTo([0, 1]),
      stepTo([0, 1], { counts: "failovers" }),
      stepTo([1], { counts: "failovers" }),
      stepTo([0], { counts: "retries", pauses: 1 })
    ])
    assert.deepStrictEqual([[...tried.avoid], tried.retries, tried.tries.length], [["a", "b"], 1, 3])
  })

  it("repeat with a fresh token on the same account, once", () => {
    const refused = failing("account", { class: "token_refused", retry: "here_after_refresh" })
    const { steps, tried } = follow(choice, [0, "a", refused])
    assert.deepStrictEqual(steps[1], stepTo([0], { stay: "a" }))
    assert.isTrue(tried.refreshed.has("a"))
  })

  it("pause before they repeat on the only account, unless that is out of rotation", () => {
    const alone: PlaceRequest = { ...choice, targets: [targetOf("two")] }
    const after = (failure: Classification) => follow(alone, [0, "c", failure]).steps[1]
    assert.deepStrictEqual(after(failing("account")), stepTo([0], { counts: "retries", pauses: 1 }))
    assert.deepStrictEqual(
      after(failing("account", { health: "refused_login" })),
      stepTo([0], { counts: "retries" })
    )
  })

  it("begin with the targets that bind the request's schema, and go to the others after them", () => {
    const loose = { ...targetOf("loose"), binds: false }
    const accounts = ["loose", "two", "three"].map((name) => account(name, name))
    const mixed = { ...choice, targets: [loose, targetOf("two"), targetOf("three")], accounts }
    const { steps } = follow(mixed, [1, "two", failing("target")], [2, "three", failing("target")])
    assert.deepStrictEqual(steps.map(({ order }) => order), [[1, 2, 0], [2, 0], [0]])
    const bound = follow({ ...mixed, mustBind: true }, [1, "two", failing("target")], [2, "three", failing("end")])
    assert.deepStrictEqual(bound.steps.map(({ order }) => order), [[1, 2], [2], []])
    const none = place({ ...choice, targets: [loose], mustBind: true }, nothingTried, undefined)
    assert.deepStrictEqual([none.order, none.excluded], [[], [{ target: 0, reason: "not_binding" }]])
  })

  it("begin with the target whose turn it is", () => {
    const { steps } = follow({ ...choice, turn: [1, 0] }, [1, "c", failing("target")])
    assert.deepStrictEqual(steps, [stepTo([1, 0]), stepTo([0], { counts: "failovers" })])
  })

  it("end for a request that is pinned", () => {
    assert.deepStrictEqual(follow({ ...choice, isPinned: true }, [0, "a", failing("account")]).steps[1], stepTo([]))
  })

  it("change nothing that was tried before", () => {
    const { tried } = follow(choice, [0, "a", failing("account")])
    assert.deepStrictEqual([nothingTried.tries.length, nothingTried.avoid.size, tried.avoid.size], [0, 0, 1])
  })
})

describe("a target that does not get a request", () => {
  const reasons = (targets: ReadonlyArray<PlacedTarget>, tried = nothingTried, size?: PlaceRequest["size"]) => {
    const { excluded, order } = place({ ...choice, targets, size }, tried, undefined)
    return [order, excluded.map(({ reason, target }) => [target, reason])]
  }
  const one = targetOf("one", 8)
  const two = targetOf("two", 16)

  it("has one reason", () => {
    assert.deepStrictEqual(
      reasons([{ ...one, right: "not_allowed" }, { ...one, right: "login_required" }, { ...one, right: "login" }, two]),
      [[2, 3], [[0, "not_allowed"], [1, "login_required"]]]
    )
    assert.deepStrictEqual(
      reasons([{ ...one, isEnabled: false }, { ...one, canServe: false }, two]),
      [[2], [[0, "disabled"], [1, "cannot_serve"]]]
    )
    assert.deepStrictEqual(reasons([one, two], nothingTried, { prompt: 10, output: 4 }), [[1], [[0, "too_long"]]])
    assert.deepStrictEqual(reasons([one, two], leavingOut(nothingTried, [1])), [[0], [[1, "out"]]])
    assert.deepStrictEqual(
      reasons([one, two], failedAt(nothingTried, 0, failing("target"))),
      [[1], [[0, "failed"]]]
    )
  })

  it("gets it all the same where no other one can serve: its refusal says why", () => {
    const off = [{ ...one, isEnabled: false }, { ...two, canServe: false }]
    assert.deepStrictEqual(reasons(off), [[0, 1], []])
    assert.deepStrictEqual(reasons([{ ...one, right: "login_required" }, off[1]!]), [[1], [[0, "login_required"]]])
  })

  it("is the one where it failed last, as long as others may serve it", () => {
    const tried = failedAt(nothingTried, 0, failing("target"))
    assert.strictEqual(failedLast(tried, [0, 1]), 0)
    assert.strictEqual(failedLast(tried, [0]), undefined)
    assert.strictEqual(failedLast(tried, [1, 2]), undefined)
    assert.strictEqual(failedLast(nothingTried, [0, 1]), undefined)
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
