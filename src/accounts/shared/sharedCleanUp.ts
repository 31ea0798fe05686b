/**
 * `auto_delete` over all nodes: sessions of one lease are deleted by its node; all sessions of an account by the node whose
 * lease was the last one, while the store keeps the account behind all others. Best effort, as in one process.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import type { StoreShape } from "../../cluster/store/Store.ts"
import type { AutoDeleteMode } from "../../config/GatewayConfig.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { concurrency, type Leavings, longestShutdown, longestWait } from "../sessionCleanUp.ts"

/** Makes the clean-up of a node's leases; the scope ends it. */
export const makeSharedCleanUp = Effect.fnUntraced(function*(store: StoreShape, mode: () => AutoDeleteMode) {
  const running = yield* FiberSet.make<void>()
  const fork = yield* FiberSet.runtime(running)<never>()
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(FiberSet.awaitEmpty(running), longestShutdown)))
  let done = 0
  let failed = 0
  /** Deletions of all sessions that this node runs, by the account's name. */
  const deletions = new Map<string, Fiber.Fiber<void>>()
  const waiting = new Map<string, Set<Deferred.Deferred<void>>>()

  store.listen((kind, name) => {
    if (kind !== "cleaned") return
    for (const waiter of waiting.get(name) ?? []) Deferred.doneUnsafe(waiter, Exit.void)
    waiting.delete(name)
    // Somebody would not wait for it any longer.
    deletions.get(name)?.interruptUnsafe()
  })

  const counted = (effect: Effect.Effect<void, UpstreamFailure>) =>
    Effect.ignoreCause(Effect.onExit(effect, (exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit)) done++
        else failed++
      })))

  const wants = ({ driver, sessions }: Leavings) =>
    driver.capabilities.sessions && sessions.length > 0 ? mode() : "none"

  return {
    /** Whether a lease leaves sessions that are to be deleted with all others of the account. */
    isUnclean: (account: string, leavings: Leavings): boolean => account !== "" && wants(leavings) === "all",
    /** Called when a lease's slot is free; `clean` names the account that this node is to empty. */
    released: (account: string, leavings: Leavings, clean: string): void => {
      const { driver, sessions, token } = leavings
      const wanted = wants(leavings)
      if (wanted === "single" || (wanted === "all" && account === "")) {
        fork(Effect.forEach(sessions, (id) => counted(driver.deleteSession(token, id)), { concurrency, discard: true }))
      }
      // It may be told of one twice.
      if (clean === "" || deletions.has(clean)) return
      const fiber = fork(
        Effect.ensuring(
          counted(driver.deleteAllSessions(token)),
          Effect.suspend(() => {
            deletions.delete(clean)
            return Effect.ignore(store.run("cleaned", clean))
          })
        )
      )
      if (fiber.pollUnsafe() === undefined) deletions.set(clean, fiber)
    },
    /** Lets the deletion of an account's sessions end before a new lease makes one; then it is given up. */
    settled: (name: string): Effect.Effect<void> =>
      Effect.suspend(() => {
        const heard = Deferred.makeUnsafe<void>()
        const waiters = waiting.get(name) ?? new Set()
        waiting.set(name, waiters.add(heard))
        return Effect.timeoutOrElse(Deferred.await(heard), {
          duration: longestWait,
          orElse: () => Effect.ignore(store.run("cleaned", name))
        }).pipe(Effect.ensuring(Effect.sync(() => waiters.delete(heard))))
      }),
    counts: () => ({ done, failed })
  }
})
