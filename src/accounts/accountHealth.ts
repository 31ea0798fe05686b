/**
 * Takes accounts out of rotation and brings them back: what was reported of them, the times of recovery, the pool's own tries.
 *
 * The one thing to know: many attempts may run on an account when it fails. Only reports of attempts that began after its last
 * fault count; older ones can at most make things worse, so that ten requests that fail together are one fault.
 */
import * as Cause from "effect/Cause"
import type { Clock } from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberHandle from "effect/FiberHandle"
import * as FiberSet from "effect/FiberSet"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { type AccountHealth, classify } from "../domain/classifyUpstreamFailure.ts"
import { monotonicMillis } from "../domain/monotonicMillis.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { type Fault, stateAfter, suspensionFor } from "./backOff.ts"
import type { PooledAccount } from "./PooledAccount.ts"
import type { PoolState, Slot } from "./PoolState.ts"

type AccountSlot = Slot<PooledAccount>

/** What a failure of a login or a try says of the account. */
export const verdictOn = (failure: UpstreamFailure) => {
  const { health, retryAfter } = classify(failure, { direct: false, mayRefresh: false, shown: false })
  return { health, retryAfter }
}

/** Whether it takes an account out of rotation. */
export const isFault = (health: AccountHealth): health is Fault => health !== "none" && health !== "token_expired"

/** It is out and being tried, so that it has no time of recovery. */
const isDue = (slot: AccountSlot): boolean => slot.state === "out" && slot.until === Number.POSITIVE_INFINITY

export interface AccountHealthKeeper {
  /**
   * What an attempt showed of an account; `undefined`: it worked. `fresh`: the attempt began after the last fault.
   * `retryAfter` is in seconds.
   */
  readonly report: (
    slot: AccountSlot,
    health: AccountHealth | undefined,
    retryAfter: number | undefined,
    fresh: boolean
  ) => Effect.Effect<void>
  /** How a login of the account ended. */
  readonly loginFailed: (slot: AccountSlot, cause: Cause.Cause<UpstreamFailure>) => Effect.Effect<void>
  /** Says that there may be an earlier time of recovery than before: an account was enabled. */
  readonly wake: () => void
}

/** Makes the keeper of the pool's health. `probe` finds out whether an account works. */
export const makeAccountHealth = Effect.fnUntraced(function*(
  state: PoolState<PooledAccount>,
  probe: (slot: AccountSlot) => Effect.Effect<void, UpstreamFailure>
): Effect.fn.Return<AccountHealthKeeper, never, Scope.Scope> {
  const fork = yield* FiberSet.makeRuntime<never, void, never>()
  const setTimer = yield* Effect.flatMap(
    FiberHandle.make<void>(),
    (timer) => FiberHandle.runtime(timer)<never>()
  )
  let wakeAt = Number.POSITIVE_INFINITY

  const wake = () => {
    if (state.nextRecovery < wakeAt) setTimer(recovery)
  }

  const suspend = (slot: AccountSlot, fault: Fault, count: number, delay: number, clock: Clock) => {
    const account = slot.account
    state.suspend(slot, stateAfter(fault), monotonicMillis(clock) + delay)
    wake()
    // Cool-downs are everyday; an account that is refused wants its operator.
    const log = stateAfter(fault) === "out" ? Effect.logWarning : Effect.logDebug
    return log("An upstream account leaves the rotation").pipe(
      Effect.annotateLogs({ account: account.hash, reason: account.reasonFor(fault), seconds: delay / 1_000, count })
    )
  }

  const failed = (slot: AccountSlot, fault: Fault, retryAfter: number | undefined, fresh: boolean) =>
    Effect.flatMap(Random.next, (random) =>
      Effect.clockWith((clock) => {
        const account = slot.account
        const next = stateAfter(fault)
        if (slot.state === "out" && next === "cooling") return Effect.void
        if (fresh || (slot.state !== "out" && next === "out")) {
          const count = account.failed(fault)
          return suspend(slot, fault, count, suspensionFor(fault, count, retryAfter, random).delay, clock)
        }
        if (slot.state !== "cooling" || retryAfter === undefined) return Effect.void
        const { delay } = suspensionFor(fault, 1, retryAfter, random)
        if (monotonicMillis(clock) + delay > slot.until) state.suspend(slot, "cooling", monotonicMillis(clock) + delay)
        return Effect.void
      }))

  const report: AccountHealthKeeper["report"] = (slot, health, retryAfter, fresh) => {
    if (!slot.member) return Effect.void
    if (health === undefined) {
      if (fresh) {
        slot.account.healed()
        state.restore(slot)
      }
      return Effect.void
    }
    return isFault(health) ? failed(slot, health, retryAfter, fresh) : Effect.void
  }

  const loginFailed: AccountHealthKeeper["loginFailed"] = (slot, cause) => {
    const failure = Cause.findErrorOption(cause)
    if (failure._tag === "None") return Effect.void
    const { health, retryAfter } = verdictOn(failure.value)
    // Leases from before may go on trying to log in; beyond the pool's own tries, these are no further faults.
    const fresh = slot.state !== "out" || isDue(slot)
    return report(slot, health, retryAfter, fresh)
  }

  /** Tries an account that is out. It comes back when that works; that it is well is shown by the next reply only. */
  const tryAgain = (slot: AccountSlot): Effect.Effect<void> =>
    Effect.flatMap(Effect.exit(probe(slot)), (exit) => {
      if (!slot.member || !isDue(slot)) return Effect.void
      if (Exit.isSuccess(exit)) {
        return Effect.andThen(
          Effect.sync(() => state.restore(slot)),
          Effect.logInfo("An upstream account is back in rotation").pipe(
            Effect.annotateLogs({ account: slot.account.hash })
          )
        )
      }
      return Effect.andThen(
        loginFailed(slot, exit.cause),
        Effect.flatMap(Random.next, (random) =>
          Effect.clockWith((clock) => {
            const { fault, faults } = slot.account
            // The try itself went wrong, which says nothing of the account: the next one comes after the same delay.
            if (!slot.member || !isDue(slot) || fault === undefined) return Effect.void
            return suspend(slot, fault, faults, suspensionFor(fault, faults, undefined, random).delay, clock)
          }))
      )
    })

  const recovery: Effect.Effect<void> = Effect.clockWith((clock) => {
    const now = monotonicMillis(clock)
    for (const slot of state.recover(now)) fork(tryAgain(slot))
    wakeAt = state.nextRecovery
    return wakeAt === Number.POSITIVE_INFINITY ? Effect.void : Effect.andThen(Effect.sleep(wakeAt - now), recovery)
  })

  return { report, loginFailed, wake }
})
