/** Budgets of accounts and upstreams against a plain list of what was used, over generated interleavings. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Budgets } from "../../src/accounts/budgets.ts"
import type { PooledAccount } from "../../src/accounts/PooledAccount.ts"
import type { GatewayConfig } from "../../src/config/GatewayConfig.ts"
import type { KeyLimit } from "../../src/config/windowLimit.ts"
import { GatewayError } from "../../src/domain/GatewayError.ts"
import { Batch } from "../../src/usage/Batch.ts"
import { runs } from "../support/effort.ts"
import { budgetCase, compareBudgets } from "./budgetModel.ts"

describe("budgets of accounts and upstreams", () => {
  it("let exactly those tries that fit, each counted at its own account, its upstream, and the window of its beginning, over restarts", async () => {
    await fc.assert(
      fc.asyncProperty(budgetCase, fc.boolean(), (one, restarts) => {
        let now = 0
        const config = { upstreams: new Map([["u", { budgets: one.upstream }]]) } as unknown as GatewayConfig
        const accounts = one.accounts.map((budgets, i) =>
          ({ upstream: "u", hash: `h${i}`, account: { budgets } }) as unknown as PooledAccount
        )
        const kept = new Batch()
        const history = { count: kept.addUse.bind(kept), counters: kept.counters.bind(kept) }
        const begin = () => new Budgets(() => config, () => now, history)
        let budgets = begin()
        let running = 0
        return compareBudgets(one, {
          take: async (at, account, { strict, ...share }) => {
            now = at
            // What ran at a restart would have no count.
            if (restarts && running === 0) budgets = begin()
            const shareOf = (all: ReadonlyArray<KeyLimit>) => {
              const windows = all.filter((each) => each.strict).map((each) => each.window)
              return windows.length === 0 || strict === undefined
                ? { ...share, strict: undefined }
                : { ...share, strict: { ...strict, windows } }
            }
            const until = Math.max(...budgets.spentOf(accounts[account]!), budgets.roomAt(accounts[account]!, shareOf))
            if (until > 0) return until
            const taken = budgets.take(accounts[account]!, {
              shareOf: (_, all) => shareOf(all),
              isStrict: false,
              sharesOf: () => ({ ...share, strict: undefined }),
              used: () => ({ counted: false, tokens: 0, cost: undefined })
            })
            if (taken instanceof GatewayError) assert.fail(taken.message)
            running++
            return async (at, used) => {
              now = at
              running--
              taken.settle(used)
            }
          }
        })
      }),
      { numRuns: runs(200) }
    )
  })
})
