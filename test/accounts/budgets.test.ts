/** Budgets of accounts and upstreams against a plain list of what was used, over generated interleavings. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Budgets } from "../../src/accounts/budgets.ts"
import type { PooledAccount } from "../../src/accounts/PooledAccount.ts"
import type { GatewayConfig } from "../../src/config/GatewayConfig.ts"
import type { KeyLimit } from "../../src/config/windowLimit.ts"
import { GatewayError } from "../../src/domain/GatewayError.ts"
import { runs } from "../support/effort.ts"

const minute = 60_000
const lengths = { minute, hour: 60 * minute } as const
type Window = keyof typeof lengths

const limit: fc.Arbitrary<KeyLimit> = fc.record({
  window: fc.constantFrom("minute", "hour"),
  requests: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
  tokens: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
  strict: fc.boolean()
})
const limits = fc.uniqueArray(limit, { maxLength: 2, selector: ({ window }) => window })

const step = fc.oneof(
  fc.record({ kind: fc.constant("take"), account: fc.nat(1), share: fc.nat(30), most: fc.nat(60) }),
  fc.record({ kind: fc.constant("settle"), nth: fc.nat(9), tokens: fc.nat(60), counted: fc.boolean() }),
  fc.record({ kind: fc.constant("pass"), seconds: fc.nat(50) })
)

/** A try: what counts of it is its use once it is over, and until then what it has reserved in each window. */
interface Try {
  readonly account: number
  readonly at: number
  readonly share: number
  readonly most: number
  used?: { readonly tokens: number; readonly counted: boolean }
}

describe("budgets of accounts and upstreams", () => {
  it("let exactly those tries that fit, each counted at its own account, its upstream, and the window of its beginning", () => {
    fc.assert(
      fc.property(limits, limits, limits, fc.array(step, { maxLength: 40 }), (first, second, ofUpstream, steps) => {
        let now = Date.UTC(2027, 0, 4, 12)
        const own = [first, second]
        const config = { upstreams: new Map([["u", { budgets: ofUpstream }]]) } as unknown as GatewayConfig
        const accounts = own.map((budgets, i) =>
          ({ upstream: "u", hash: `h${i}`, account: { budgets } }) as unknown as PooledAccount
        )
        const budgets = new Budgets(() => config, () => now)
        const tries: Array<Try & { readonly settle: (used: { tokens: number; counted: boolean }) => void }> = []
        const strict = (all: ReadonlyArray<KeyLimit>) => all.filter((each) => each.strict).map((each) => each.window)

        const counts = (window: Window, isOf: (one: Try) => boolean, isStrict: boolean) => {
          const start = Math.floor(now / lengths[window]) * lengths[window]
          const here = tries.filter((one) => one.at >= start && isOf(one) && one.used?.counted !== false)
          const tokens = here.map(({ most, share, used }) => used?.tokens ?? (isStrict ? most : share))
          return { requests: here.length, tokens: tokens.reduce((sum, each) => sum + each, 0) }
        }
        const fits = (all: ReadonlyArray<KeyLimit>, isOf: (one: Try) => boolean, share: number, most: number) =>
          all.every(({ requests = Infinity, strict = false, tokens = Infinity, window }) => {
            const used = counts(window as Window, isOf, strict)
            return used.requests + 1 <= requests && used.tokens + (strict ? most : share) <= tokens
          })

        for (const each of steps) {
          if (each.kind === "pass") now += each.seconds * 1_000
          else if (each.kind === "settle") {
            const open = tries.filter(({ used }) => used === undefined)
            const one = open[each.nth % Math.max(1, open.length)]
            if (one === undefined) continue
            one.used = { tokens: each.tokens, counted: each.counted }
            one.settle(one.used)
          } else {
            const { account, most, share } = each
            const taken = budgets.take(accounts[account]!, {
              shareOf: (_, all) => {
                const windows = strict(all)
                return {
                  tokens: share,
                  cost: 0n,
                  ...(windows.length === 0 ? {} : { strict: { tokens: most, cost: 0n, windows } })
                }
              },
              used: () => ({ counted: false, tokens: 0 })
            })
            if (taken instanceof GatewayError) assert.fail(taken.message)
            const isOfUpstream = fits(ofUpstream, () => true, share, most)
            const isOfAccount = fits(own[account]!, (one) => one.account === account, share, most)
            if ("_tag" in taken) {
              assert.isFalse(isOfUpstream && isOfAccount)
              assert.strictEqual(taken.isOfUpstream, !isOfUpstream)
            } else {
              assert.isTrue(isOfUpstream && isOfAccount)
              tries.push({ account, at: now, share, most, settle: taken.settle })
            }
          }
        }
      }),
      { numRuns: runs(200) }
    )
  })
})
