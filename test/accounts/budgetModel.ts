/** Generated tries of two accounts of an upstream with budgets, compared with a plain list of what was used. */
import { assert } from "@effect/vitest"
import * as fc from "fast-check"
import type { KeyLimit } from "../../src/config/windowLimit.ts"
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

/** Why a try gets nothing: its account or upstream is used up, or one of them has too little left for it. */
export type Denied = "out" | "account" | "upstream"

/** What is compared with the list. Times are Unix milliseconds. */
export interface BudgetSubject {
  /** Reserves a share of an account and its upstream, with what strict limits reserve. */
  readonly take: (
    now: number,
    account: number,
    share: Share
  ) => Promise<Denied | ((now: number, used: Used) => Promise<void>)>
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
  const fits = (all: ReadonlyArray<KeyLimit>, isOf: (one: Try) => boolean, share: number, most: number) =>
    all.every(({ cost, requests = Infinity, strict = false, tokens = Infinity, window }) => {
      const used = counts(window as Window, isOf, strict)
      const own = amounts(strict ? most : share)
      return used.requests + 1 <= requests && used.tokens + own.tokens <= tokens &&
        (cost === undefined || used.cost + own.cost <= cost)
    })
  const isSpent = (all: ReadonlyArray<KeyLimit>, isOf: (one: Try) => boolean) =>
    all.some(({ cost, requests = Infinity, strict = false, tokens = Infinity, window }) => {
      const used = counts(window as Window, isOf, strict)
      return used.requests >= requests || used.tokens >= tokens || (cost !== undefined && used.cost >= cost)
    })

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
      const expected = isSpent(own, isOfAccount) || isSpent(upstream, () => true)
        ? "out"
        : !fits(upstream, () => true, share, most)
        ? "upstream"
        : fits(own, isOfAccount, share, most)
        ? undefined
        : "account"
      const taken = await subject.take(now, account, {
        ...amounts(share),
        strict: { ...amounts(most), windows: [] }
      })
      assert.strictEqual(typeof taken === "string" ? taken : undefined, expected)
      if (typeof taken !== "string") tries.push({ account, at: now, share, most, settle: taken })
    }
  }
}
