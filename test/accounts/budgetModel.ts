/** Generated tries of two accounts of an upstream with budgets, compared with a plain list of what was used. */
import { assert } from "@effect/vitest"
import * as fc from "fast-check"
import type { KeyLimit } from "../../src/config/windowLimit.ts"
import { never } from "../../src/placement/poolQueue.ts"
import type { Share, Used } from "../../src/usage/Admission.ts"

const minute = 60_000
const lengths = { minute, hour: 60 * minute } as const
type Window = keyof typeof lengths

/** What a token costs: sums of it carry over a whole unit. */
const tokenCost = 300_000_000n

const limit: fc.Arbitrary<KeyLimit> = fc.record({
  window: fc.constantFrom("minute", "hour"),
  requests: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
  tokens: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
  cost: fc.option(fc.bigInt({ min: 1n, max: 20_000_000_000n }), { nil: undefined }),
  strict: fc.boolean()
})
const limits = fc.uniqueArray(limit, { maxLength: 2, selector: ({ window }) => window })

const step = fc.oneof(
  fc.record({ kind: fc.constant("take"), account: fc.nat(1), share: fc.nat(30), most: fc.nat(60) }),
  fc.record({ kind: fc.constant("settle"), nth: fc.nat(9), tokens: fc.nat(60), counted: fc.boolean() }),
  fc.record({ kind: fc.constant("pass"), seconds: fc.nat(50) })
)

/** The budgets of the accounts 0 and 1 and of their upstream, and what happens. */
export const budgetCase = fc.record({
  accounts: fc.tuple(limits, limits),
  upstream: limits,
  steps: fc.array(step, { maxLength: 40 })
})
type BudgetCase = typeof budgetCase extends fc.Arbitrary<infer A> ? A : never

/** What is compared with the list. Times are Unix milliseconds. */
export interface BudgetSubject {
  /** Reserves a share of an account and its upstream, with what strict limits reserve; or returns when they have room for it. */
  readonly take: (
    now: number,
    account: number,
    share: Share
  ) => Promise<number | ((now: number, used: Used) => Promise<void>)>
}

/** A try: what counts of it is its use once it is over, and until then what it has reserved in each window. */
interface Try {
  readonly account: number
  readonly at: number
  readonly share: number
  readonly most: number
  readonly settle: (now: number, used: Used) => Promise<void>
  used?: { readonly tokens: number; readonly counted: boolean }
}

const amounts = (tokens: number) => ({ tokens, cost: BigInt(tokens) * tokenCost })

/** Lets exactly those tries pass that fit, each counted at its own account, its upstream, and the window of its beginning. */
export const compareBudgets = async (
  { accounts, steps, upstream }: BudgetCase,
  subject: BudgetSubject
): Promise<void> => {
  let now = Date.UTC(2027, 0, 4, 12)
  const tries: Array<Try> = []
  const counts = (window: Window, isOf: (one: Try) => boolean, isStrict: boolean) => {
    const start = Math.floor(now / lengths[window]) * lengths[window]
    const here = tries.filter((one) => one.at >= start && isOf(one) && one.used?.counted !== false)
    const tokens = here.map(({ most, share, used }) => used?.tokens ?? (isStrict ? most : share))
    return { requests: here.length, ...amounts(tokens.reduce((sum, each) => sum + each, 0)) }
  }
  /** Until when limits are used up, or leave too little for a try; 0 while it fits. */
  const fullUntil = (all: ReadonlyArray<KeyLimit>, isOf: (one: Try) => boolean, share: number, most: number) =>
    Math.max(
      0,
      ...all.map(({ cost = 10n ** 30n, requests = Infinity, strict = false, tokens = Infinity, window }) => {
        const length = lengths[window as Window]
        const end = Math.floor(now / length) * length + length
        const used = counts(window as Window, isOf, strict)
        const own = amounts(strict ? most : share)
        if (own.tokens > tokens || own.cost > cost) return end + never
        const isSpent = used.requests >= requests || used.tokens >= tokens || used.cost >= cost
        return isSpent || used.tokens + own.tokens > tokens || used.cost + own.cost > cost ? end : 0
      })
    )

  for (const each of steps) {
    if (each.kind === "pass") now += each.seconds * 1_000
    else if (each.kind === "settle") {
      const open = tries.filter(({ used }) => used === undefined)
      const one = open[each.nth % Math.max(1, open.length)]
      if (one === undefined) continue
      one.used = { tokens: each.tokens, counted: each.counted }
      await one.settle(now, { counted: each.counted, ...amounts(each.tokens) })
    } else {
      const { account, most, share } = each
      const own = accounts[account]!
      const isOfAccount = (one: Try) => one.account === account
      const expected = Math.max(
        fullUntil(own, isOfAccount, share, most),
        fullUntil(upstream, () => true, share, most)
      )
      const taken = await subject.take(now, account, {
        ...amounts(share),
        strict: { ...amounts(most), windows: [] }
      })
      assert.strictEqual(typeof taken === "number" ? taken : 0, expected)
      if (typeof taken !== "number") tries.push({ account, at: now, share, most, settle: taken })
    }
  }
}
