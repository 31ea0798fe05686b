/**
 * Takes accounts out of rotation and brings them back, by the reports of attempts, the times of recovery and the pool's tries.
 *
 * The one thing to know: many attempts may run on an account when it fails. Only an attempt that began after the last fault
 * adds a fault or heals the account; an older one can only lengthen a cool-down or turn it into `out`. So ten requests that
 * fail together are one fault.
 */
import * as Cause from "effect/Cause"
import type { Clock } from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberHandle from "effect/FiberHandle"
import * as FiberSet from "effect/FiberSet"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { CurrentNotices, type Notices } from "../config/Notices.ts"
import { classify } from "../domain/classifyUpstreamFailure.ts"
import { type AccountHealth, plainContext } from "../domain/failureRules.ts"
import { monotonicMillis } from "../domain/time.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { MoveCause } from "../domain/warmth.ts"
import type { Slot, SlotState } from "../placement/PoolState.ts"
import { type Fault, stateAfter, type Suspension, suspensionFor } from "./backOff.ts"
import type { PooledAccount } from "./PooledAccount.ts"

type AccountSlot = Slot<PooledAccount>

/** A timer counts less than 25 days of milliseconds. A longer pause takes several. */
const longestTimer = 24 * 3_600_000

/** What the failure of a login or a try says about the account. */
export const verdictOn = (failure: UpstreamFailure) => {
  const { health, retryAfter } = classify(failure, plainContext)
  return { health, retryAfter }
}

/** Whether a verdict takes an account out of rotation. */
export const isFault = (health: AccountHealth): health is Fault => health !== "none" && health !== "token_expired"

/** Why conversations leave an account that is out of rotation. */
export const moveCauseOf = (fault: Fault | undefined): MoveCause =>
  fault === "rate_limited" ? "quota" : fault === "busy" ? "full" : "out"

/** Whether an account is out and being tried: it has no time of recovery then. */
const isDue = (slot: AccountSlot): boolean => slot.state === "out" && slot.until === Number.POSITIVE_INFINITY

/** Notes and logs that an account leaves the rotation, and publishes that it is refused. `delay` is in milliseconds. */
export const logSuspension = (
  notices: Notices,
  account: PooledAccount,
  state: Exclude<SlotState, "ready">,
  reason: string,
  delay: number,
  count: number
): Effect.Effect<void> =>
  Effect.clockWith((clock) => {
    const { hash, note, upstream } = account
    account.heldBack(state, clock.currentTimeMillisUnsafe())
    if (state === "out") notices.publish("account.refused", hash, { account: hash, note, upstream, reason })
    // Cool-downs are common; a refused account needs its operator.
    const log = state === "out" ? Effect.logWarning : Effect.logDebug
    return Effect.annotateLogs(log("An upstream account is out of rotation"), {
      account: account.hash,
      reason,
      seconds: delay / 1_000,
      count
    })
  })

/** Publishes that a refused account serves again. */
export const publishBack = (notices: Notices, { hash, note, upstream }: PooledAccount): void =>
  notices.publish("account.back", hash, { account: hash, note, upstream })

/** Logs that an account is back in rotation. */
export const logReturn = (account: PooledAccount): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logInfo("An upstream account is back in rotation"), { account: account.hash })

export interface AccountHealthKeeper {
  /**
   * Receives what an attempt showed of an account; `undefined` if it worked. `fresh`: the attempt began after the last fault.
   * `retryAfter` is in seconds.
   */
  readonly report: (
    slot: AccountSlot,
    health: AccountHealth | undefined,
    retryAfter: number | undefined,
    fresh: boolean
  ) => Effect.Effect<void>
  /** Receives the failure of a login. */
  readonly loginFailed: (slot: AccountSlot, cause: Cause.Cause<UpstreamFailure>) => Effect.Effect<void>
  /** Sets the timer to an earlier recovery, which an enabled account may bring. */
  readonly wake: () => void
}

/** Where the states of accounts are kept. Times are monotonic milliseconds. */
interface SlotStates {
  readonly recover: (now: number) => ReadonlyArray<AccountSlot>
  /** The earliest time at which `recover` has work; infinity without any. */
  readonly nextRecovery: () => number
  readonly restore: (slot: AccountSlot) => void
  readonly suspend: (slot: AccountSlot, state: Exclude<SlotState, "ready">, until: number, stated: number) => void
}

/** Makes the keeper of the accounts' health; the scope ends it. `probe` tries an account. */
export const makeAccountHealth = Effect.fnUntraced(function*(
  state: SlotStates,
  probe: (slot: AccountSlot) => Effect.Effect<void, UpstreamFailure>
): Effect.fn.Return<AccountHealthKeeper, never, Scope.Scope> {
  const fork = yield* FiberSet.makeRuntime<never, void, never>()
  const setTimer = yield* Effect.flatMap(
    FiberHandle.make<void>(),
    (timer) => FiberHandle.runtime(timer)<never>()
  )
  const notices = yield* CurrentNotices
  let wakeAt = Number.POSITIVE_INFINITY

  const wake = () => {
    if (state.nextRecovery() < wakeAt) setTimer(recovery)
  }

  const restore = (slot: AccountSlot) => {
    if (slot.state === "out") publishBack(notices, slot.account)
    state.restore(slot)
    slot.account.broughtBack()
  }

  const suspend = (slot: AccountSlot, fault: Fault, count: number, { delay, stated }: Suspension, clock: Clock) => {
    const account = slot.account
    const now = monotonicMillis(clock)
    state.suspend(slot, stateAfter(fault), now + delay, now + stated)
    wake()
    return logSuspension(notices, account, stateAfter(fault), account.reasonFor(fault), delay, count)
  }

  const failed = (slot: AccountSlot, fault: Fault, retryAfter: number | undefined, fresh: boolean) =>
    Effect.flatMap(Random.next, (random) =>
      Effect.clockWith((clock) => {
        const account = slot.account
        const next = stateAfter(fault)
        if (slot.state === "out" && next === "cooling") return Effect.void
        if (fresh || (slot.state !== "out" && next === "out")) {
          const count = account.failed(fault)
          return suspend(slot, fault, count, suspensionFor(fault, count, retryAfter, random), clock)
        }
        if (slot.state !== "cooling" || retryAfter === undefined) return Effect.void
        const { delay, stated } = suspensionFor(fault, 1, retryAfter, random)
        const now = monotonicMillis(clock)
        if (now + stated > Math.max(slot.until, slot.stated)) state.suspend(slot, "cooling", now + delay, now + stated)
        return Effect.void
      }))

  const report: AccountHealthKeeper["report"] = (slot, health, retryAfter, fresh) => {
    if (!slot.member) return Effect.void
    if (health === undefined) {
      if (fresh) {
        slot.account.healed()
        restore(slot)
      }
      return Effect.void
    }
    return isFault(health) ? failed(slot, health, retryAfter, fresh) : Effect.void
  }

  const loginFailed: AccountHealthKeeper["loginFailed"] = (slot, cause) => {
    const failure = Cause.findErrorOption(cause)
    if (failure._tag === "None") return Effect.void
    const { health, retryAfter } = verdictOn(failure.value)
    // Older leases may go on logging in while the account is out: only the pool's own tries count as more faults then.
    const fresh = slot.state !== "out" || isDue(slot)
    return report(slot, health, retryAfter, fresh)
  }

  /** Tries an account that is out, and restores it if that works. Only the next successful reply forgets its faults. */
  const tryAgain = (slot: AccountSlot): Effect.Effect<void> =>
    Effect.flatMap(Effect.exit(probe(slot)), (exit) => {
      if (!slot.member || !isDue(slot)) return Effect.void
      if (Exit.isSuccess(exit)) {
        return Effect.andThen(
          Effect.sync(() => restore(slot)),
          logReturn(slot.account)
        )
      }
      return Effect.andThen(
        loginFailed(slot, exit.cause),
        Effect.flatMap(Random.next, (random) =>
          Effect.clockWith((clock) => {
            const { fault, faults } = slot.account
            // A try that failed for another reason says nothing about the account: the next try comes after the same delay.
            if (!slot.member || !isDue(slot) || fault === undefined) return Effect.void
            return suspend(slot, fault, faults, suspensionFor(fault, faults, undefined, random), clock)
          }))
      )
    })

  const recovery: Effect.Effect<void> = Effect.clockWith((clock) => {
    const now = monotonicMillis(clock)
    for (const slot of state.recover(now)) fork(tryAgain(slot))
    wakeAt = state.nextRecovery()
    if (wakeAt === Number.POSITIVE_INFINITY) return Effect.void
    return Effect.andThen(Effect.sleep(Math.min(wakeAt - now, longestTimer)), recovery)
  })

  return { report, loginFailed, wake }
})
