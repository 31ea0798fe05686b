/**
 * `auto_delete`: deletes upstream sessions after the lease that made them has ended and its slot is free again.
 *
 * Best effort: runs in the background, fails nothing, and gets a bounded time when the gateway stops.
 * Rule: behaviour "The pool", leases.
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import type { AutoDeleteMode } from "../config/GatewayConfig.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Driver } from "../upstream/Upstream.ts"
import type { PooledAccount } from "./PooledAccount.ts"
import type { PoolState, Slot } from "./PoolState.ts"

/** A lease waits this long for a running deletion of all sessions; then the deletion is given up. */
export const longestWait = Duration.seconds(5)
/** Pending deletions get this long when the pool is closed. */
export const longestShutdown = Duration.seconds(5)
/** Deletions of single sessions that run at once for one lease. */
export const concurrency = 4

/** What a lease leaves behind. */
export interface Leavings {
  readonly driver: Driver
  readonly token: string | undefined
  readonly sessions: ReadonlyArray<string>
}

/** Makes the clean-up of a pool; the scope ends it. */
export const makeSessionCleanUp = Effect.fnUntraced(function*(
  state: PoolState<PooledAccount>,
  mode: () => AutoDeleteMode
) {
  const running = yield* FiberSet.make<void>()
  const fork = yield* FiberSet.runtime(running)<never>()
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(FiberSet.awaitEmpty(running), longestShutdown)))
  let done = 0
  let failed = 0

  const counted = (effect: Effect.Effect<void, UpstreamFailure>) =>
    Effect.onExit(effect, (exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit)) done++
        else failed++
      })).pipe(
        // The upstream's own words may hold what no log line may.
        Effect.tapError(({ kind, phase }) =>
          Effect.annotateLogs(Effect.logDebug("Could not delete upstream sessions"), { phase, kind })
        ),
        Effect.ignoreCause
      )

  const deleteAll = (slot: Slot<PooledAccount>, driver: Driver, token: string | undefined) => {
    const account = slot.account
    const finished = Deferred.makeUnsafe<void>()
    account.unclean = undefined
    state.setCleaning(slot, true)
    const fiber = fork(
      Effect.ensuring(
        counted(driver.deleteAllSessions(token)),
        Effect.suspend(() => {
          account.cleanUp = undefined
          state.setCleaning(slot, false)
          return Deferred.done(finished, Exit.void)
        })
      )
    )
    if (!Deferred.isDoneUnsafe(finished)) account.cleanUp = { done: finished, fiber }
  }

  return {
    /** Called when a lease's slot is free. A caller's own account (`slot` is `undefined`) is never emptied. */
    released: (slot: Slot<PooledAccount> | undefined, { driver, sessions, token }: Leavings): void => {
      const wanted = mode()
      if (driver.capabilities.sessions && wanted !== "none" && sessions.length > 0) {
        if (wanted === "all" && slot !== undefined) {
          slot.account.unclean = { driver, token }
        } else {
          fork(
            Effect.forEach(sessions, (id) => counted(driver.deleteSession(token, id)), { concurrency, discard: true })
          )
        }
      }
      if (slot === undefined || slot.inUse > 0) return
      const { cleanUp, unclean } = slot.account
      if (unclean !== undefined && cleanUp === undefined) deleteAll(slot, unclean.driver, unclean.token)
    },
    /** Lets a running deletion of all of the account's sessions end before a new lease makes one. */
    settled: (account: PooledAccount): Effect.Effect<void> =>
      Effect.suspend(() => {
        const cleanUp = account.cleanUp
        if (cleanUp === undefined) return Effect.void
        return Effect.timeoutOrElse(Deferred.await(cleanUp.done), {
          duration: longestWait,
          orElse: () => Effect.sync(() => cleanUp.fiber.interruptUnsafe())
        })
      }),
    /** Clean-ups that ended well, and those that did not. */
    counts: () => ({ done, failed })
  }
})
