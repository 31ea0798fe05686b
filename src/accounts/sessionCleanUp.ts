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
import type * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import type { AutoDeleteMode } from "../config/GatewayConfig.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Slot } from "../placement/PoolState.ts"
import type { Driver } from "../upstream/Upstream.ts"
import type { PooledAccount } from "./PooledAccount.ts"

/** A lease waits this long for a running deletion of all sessions; then the deletion is given up. */
export const longestWait = Duration.seconds(5)
/** Pending deletions get this long when the pool is closed. */
const longestShutdown = Duration.seconds(5)
/** Deletions of single sessions that run concurrently for one lease. */
const concurrency = 4

/** What a lease leaves behind: its sessions, and what to delete them with. */
export interface Leftovers {
  readonly driver: Driver
  readonly token: string | undefined
  readonly sessions: ReadonlyArray<string>
}

/** Deletes sessions in the background; the scope ends that. */
export const makeSessionDeletions = Effect.fnUntraced(function*(mode: () => AutoDeleteMode) {
  const running = yield* FiberSet.make<void>()
  const fork = yield* FiberSet.runtime(running)<never>()
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(FiberSet.awaitEmpty(running), longestShutdown)))
  let sessionCleanUps = 0
  let sessionCleanUpFailures = 0

  const counted = (deletion: Effect.Effect<void, UpstreamFailure>) =>
    Effect.onExit(deletion, (exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit)) sessionCleanUps++
        else sessionCleanUpFailures++
      })).pipe(
        // The upstream's message is left out: it may quote secrets.
        Effect.tapError(({ kind, phase }) =>
          Effect.annotateLogs(Effect.logDebug("Could not delete upstream sessions"), { phase, kind })
        ),
        Effect.ignoreCause
      )

  return {
    /** What `auto_delete` asks for after a lease. */
    wanted: ({ driver, sessions }: Leftovers): AutoDeleteMode =>
      driver.capabilities.sessions !== undefined && sessions.length > 0 ? mode() : "none",
    /** Deletes the sessions of one lease. */
    deleteEach: ({ driver, sessions, token }: Leftovers): void => {
      fork(
        Effect.forEach(sessions, (id) => counted(driver.capabilities.sessions?.delete(token, id) ?? Effect.void), {
          concurrency,
          discard: true
        })
      )
    },
    /** Deletes all sessions of an account, then runs `ended`; `undefined` if that was done immediately. */
    deleteAll: (
      { driver, token }: Omit<Leftovers, "sessions">,
      ended: Effect.Effect<unknown>
    ): Fiber.Fiber<void> | undefined => {
      const fiber = fork(Effect.ensuring(counted(driver.capabilities.sessions?.deleteAll(token) ?? Effect.void), ended))
      return fiber.pollUnsafe() === undefined ? fiber : undefined
    },
    /** Deletions that succeeded, and those that failed. */
    counts: () => ({ sessionCleanUps, sessionCleanUpFailures })
  }
})

/** Makes the clean-up of the pool of one process; the scope ends it. `setCleaning` marks an account whose sessions are being deleted. */
export const makeSessionCleanUp = Effect.fnUntraced(function*(
  setCleaning: (slot: Slot<PooledAccount>, isCleaning: boolean) => void,
  mode: () => AutoDeleteMode
) {
  const deletions = yield* makeSessionDeletions(mode)

  const deleteAll = (slot: Slot<PooledAccount>, leftovers: Omit<Leftovers, "sessions">) => {
    const account = slot.account
    const done = Deferred.makeUnsafe<void>()
    account.unclean = undefined
    setCleaning(slot, true)
    const ended = Effect.sync(() => {
      account.cleanUp = undefined
      setCleaning(slot, false)
      Deferred.doneUnsafe(done, Exit.void)
    })
    const fiber = deletions.deleteAll(leftovers, ended)
    if (fiber !== undefined) account.cleanUp = { done, fiber }
  }

  return {
    /** Called when a lease's slot is free. A caller's own account (`slot` is `undefined`) is never emptied. */
    released: (slot: Slot<PooledAccount> | undefined, leftovers: Leftovers): void => {
      const wanted = deletions.wanted(leftovers)
      if (wanted === "all" && slot !== undefined) {
        slot.account.unclean = { driver: leftovers.driver, token: leftovers.token }
      } else if (wanted !== "none") deletions.deleteEach(leftovers)
      if (slot === undefined || slot.inUse > 0) return
      const { cleanUp, unclean } = slot.account
      if (unclean !== undefined && cleanUp === undefined) deleteAll(slot, unclean)
    },
    /** Lets a running deletion of all of the account's sessions end before a new lease makes one. */
    awaitDeletion: (account: PooledAccount): Effect.Effect<void> =>
      Effect.suspend(() => {
        const cleanUp = account.cleanUp
        if (cleanUp === undefined) return Effect.void
        return Effect.timeoutOrElse(Deferred.await(cleanUp.done), {
          duration: longestWait,
          orElse: () => Effect.sync(() => cleanUp.fiber.interruptUnsafe())
        })
      }),
    counts: deletions.counts
  }
})
