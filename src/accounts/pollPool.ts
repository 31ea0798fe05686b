/**
 * Finds changes of a pool by looking at it again and again: for pools whose changes are made elsewhere.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { AccountPool, PoolWatch } from "./Lease.ts"

/** How often it is looked at. */
const interval = "1 second"

/** Tells `watch` what has changed between two looks at `pool`, until the scope ends. */
export const pollPool = (
  pool: Pick<AccountPool, "status" | "describe">,
  watch: PoolWatch
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function*() {
    let numbers = ""
    let queue = ""
    /** Accounts in use when it was looked at last, with what was seen of them. */
    let used = new Map<string, string>()
    const look = Effect.gen(function*() {
      const { available_accounts: _, in_use_accounts, oldest_wait_ms: __, waiters, ...status } = yield* pool.status
      const seen = JSON.stringify(status)
      const waiting = waiters.map(({ account, style }) => `${style} ${account}`).join("\n")
      const facts = yield* pool.describe([...new Set([...used.keys(), ...in_use_accounts])])
      const now = new Map<string, string>()
      for (const { recovery: _recovery, ...fact } of facts) {
        const text = JSON.stringify(fact)
        if (used.get(fact.identifier) !== text) watch.pool(fact.identifier)
        if (fact.inUse > 0) now.set(fact.identifier, text)
      }
      used = now
      if (seen !== numbers) watch.pool(undefined)
      if (waiting !== queue) watch.queue()
      numbers = seen
      queue = waiting
    })
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(look, Effect.sleep(interval))))
  })
