/**
 * `auto_delete` over all nodes: the node of a lease deletes that lease's sessions. The node whose lease was the account's last
 * one deletes all sessions of the account; meanwhile the store puts the account behind all others.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { StoreShape } from "../../cluster/store/Store.ts"
import type { AutoDeleteMode } from "../../config/GatewayConfig.ts"
import { type Leftovers, longestWait, makeSessionDeletions } from "../sessionCleanUp.ts"

/** Makes the clean-up of a node's leases; the scope ends it. */
export const makeSharedCleanUp = Effect.fnUntraced(function*(store: StoreShape, mode: () => AutoDeleteMode) {
  const deletions = yield* makeSessionDeletions(mode)
  /** This node's running deletions of all sessions of an account, by the account's name. */
  const running = new Map<string, Fiber.Fiber<void>>()
  /** Leases that wait for a deletion, by the account's name. */
  const waiting = new Map<string, Set<Deferred.Deferred<void>>>()

  store.listen((event) => {
    if (event._tag !== "cleaned") return
    const { account } = event
    for (const waiter of waiting.get(account) ?? []) Deferred.doneUnsafe(waiter, Exit.void)
    waiting.delete(account)
    // A lease on another node may have given the deletion up.
    running.get(account)?.interruptUnsafe()
  })

  return {
    /**
     * Whether a lease can delete what others left: one that ended before it had a token leaves that to the next lease. The last lease of an
     * account may be such a one.
     */
    canDelete: ({ driver, token }: Leftovers): boolean => token !== undefined || driver.isAnonymous,
    /** Whether a lease makes the account one whose sessions must all be deleted. */
    isUnclean: (account: string, leftovers: Leftovers): boolean =>
      account !== "" && deletions.wanted(leftovers) === "all",
    /** Called when a lease's slot is free; `clean` names the account that this node is to empty. */
    released: (account: string, leftovers: Leftovers, clean: string): void => {
      const wanted = deletions.wanted(leftovers)
      if (wanted === "single" || (wanted === "all" && account === "")) deletions.deleteEach(leftovers)
      // The same account may be named twice.
      if (clean === "" || running.has(clean)) return
      const ended = Effect.suspend(() => {
        running.delete(clean)
        return Effect.ignore(store.run("cleaned", clean))
      })
      const fiber = deletions.deleteAll(leftovers, ended)
      if (fiber !== undefined) running.set(clean, fiber)
    },
    /** Lets the deletion of an account's sessions end before a new lease makes one; gives it up after `longestWait`. */
    awaitDeletion: (name: string): Effect.Effect<void> =>
      Effect.suspend(() => {
        const cleaned = Deferred.makeUnsafe<void>()
        const waiters = waiting.get(name) ?? new Set()
        waiting.set(name, waiters.add(cleaned))
        return Effect.timeoutOrElse(Deferred.await(cleaned), {
          duration: longestWait,
          orElse: () => Effect.ignore(store.run("cleaned", name))
        }).pipe(Effect.ensuring(Effect.sync(() => waiters.delete(cleaned))))
      }),
    counts: deletions.counts
  }
})
