/**
 * Accounts by what the pool knows of them.
 */
import * as Effect from "effect/Effect"
import type { AccountFacts, AccountPool } from "../../accounts/Lease.ts"
import type { Account } from "../../config/Account.ts"

/** Accounts that are looked up in the pool in one go. */
const described = 500

/** Those of the configured accounts that fit, in their order: `most` at most. Others get their turns meanwhile. */
export const accountsThat = Effect.fnUntraced(function*(
  pool: Pick<AccountPool, "describe">,
  configured: ReadonlyArray<Account>,
  fits: (facts: AccountFacts) => boolean,
  // Without its type it is `any` to who imports this.
  most: number = Number.POSITIVE_INFINITY
) {
  const found: Array<Account> = []
  for (let start = 0; start < configured.length && found.length < most; start += described) {
    if (start > 0) yield* Effect.yieldNow
    const slice = configured.slice(start, start + described)
    const facts = yield* pool.describe(slice.map((account) => account.identifier))
    const fitting = new Set(facts.filter(fits).map((each) => each.identifier))
    found.push(...slice.filter((account) => fitting.has(account.identifier)))
  }
  return found.length > most ? found.slice(0, most) : found
})
