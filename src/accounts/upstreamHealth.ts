/**
 * Drives `UpstreamCooling` of each upstream: reports from leases go in, and pools are left out and taken in again in time.
 *
 * One machine for each upstream of the configuration bounds the memory; one timer serves all of them.
 */
import type { Clock } from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FiberHandle from "effect/FiberHandle"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { CurrentNotices, type Notices } from "../config/Notices.ts"
import { monotonicMillis } from "../domain/time.ts"
import type { Skipped } from "../placement/poolQueue.ts"
import { UpstreamCooling, type UpstreamFault, type UpstreamTry } from "../placement/UpstreamCooling.ts"
import type { Driver } from "../upstream/Upstream.ts"
import type { Drivers } from "../upstream/Upstreams.ts"

/** Why an upstream is cooled, in words for operators. */
const reasons: Readonly<Record<UpstreamFault, string>> = {
  connection: "no connection to it could be made",
  trouble: "it failed several times in a row"
}

/** Why an upstream is cooled, by the name of the fault. */
export const reasonOf = (fault: string): string => reasons[fault === "connection" ? fault : "trouble"]

interface Watched {
  readonly driver: Driver
  readonly cooling: UpstreamCooling
  fault: UpstreamFault | undefined
}

/** One try at an upstream. */
export interface ReportedTry {
  /** Receives what the try showed of the upstream; `undefined` if it worked. `retryAfter` is in seconds. */
  readonly report: (fault: UpstreamFault | undefined, retryAfter: number | undefined) => Effect.Effect<void>
  /** The try is over, whether it showed anything or not. */
  readonly ended: () => void
}

/** The state of an upstream; times are in milliseconds. */
export interface CooledUpstream {
  readonly left: number
  readonly reason: string
}

const noTry: ReportedTry = { report: () => Effect.void, ended: () => undefined }

/** Logs and publishes that an upstream is left out. `delay` is in milliseconds. */
export const logCooled = (
  notices: Notices,
  upstream: string,
  fault: UpstreamFault,
  delay: number
): Effect.Effect<void> => {
  const facts = { upstream, reason: reasons[fault], seconds: delay / 1_000 }
  notices.publish("upstream.cooled", upstream, facts)
  return Effect.annotateLogs(Effect.logWarning("An upstream is left out"), facts)
}

/** Logs and publishes that an upstream serves again. */
export const logBack = (notices: Notices, upstream: string): Effect.Effect<void> => {
  notices.publish("upstream.back", upstream, { upstream })
  return Effect.annotateLogs(Effect.logInfo("An upstream is back"), { upstream })
}

/** Makes the keeper; the scope ends it. `skip` leaves a pool out or takes it in again. */
export const makeUpstreamHealth = Effect.fnUntraced(function*(
  clock: Clock,
  skip: (upstream: string, skipped: Skipped) => void
): Effect.fn.Return<UpstreamHealthKeeper, never, Scope.Scope> {
  const setTimer = yield* Effect.flatMap(
    FiberHandle.make<void>(),
    (timer) => FiberHandle.runtime(timer)<never>()
  )
  const random = yield* Random.Random
  const notices = yield* CurrentNotices
  const now = () => monotonicMillis(clock)
  let watched = new Map<string, Watched>()
  let configured: Drivers | undefined
  let wakeAt = Number.POSITIVE_INFINITY

  const update = (name: string, { cooling }: Watched) => {
    skip(name, cooling.until === undefined ? "no" : cooling.isSkipped(now()) ? "yes" : "probe")
  }

  const wake: Effect.Effect<void> = Effect.suspend(() => {
    const at = now()
    wakeAt = Number.POSITIVE_INFINITY
    for (const [name, each] of watched) {
      const { until } = each.cooling
      if (until === undefined) continue
      if (until <= at) update(name, each)
      else wakeAt = Math.min(wakeAt, until)
    }
    return wakeAt === Number.POSITIVE_INFINITY ? Effect.void : Effect.andThen(Effect.sleep(wakeAt - at), wake)
  })

  const failed = (name: string, each: Watched, attempt: UpstreamTry, fault: UpstreamFault, retryAfter?: number) => {
    const delay = each.cooling.failed(attempt, { fault, now: now(), random: random.nextDoubleUnsafe(), retryAfter })
    if (delay === undefined) return Effect.void
    each.fault = fault
    update(name, each)
    if (each.cooling.until! < wakeAt) setTimer(wake)
    // Without another upstream, requests go to this one all the same.
    return watched.size > 1 ? logCooled(notices, name, fault, delay) : Effect.void
  }

  return {
    configure: (drivers) => {
      // Each lease applies the drivers, which are the same object until one of them changes.
      if (drivers === configured) return
      configured = drivers
      const before = watched
      watched = new Map(Array.from(drivers, ([name, driver]) => {
        const known = before.get(name)
        return [name, known?.driver === driver ? known : { driver, cooling: new UpstreamCooling(), fault: undefined }]
      }))
      for (const [name, each] of watched) if (before.get(name) !== each) update(name, each)
    },
    begin: (name, request) => {
      const each = watched.get(name)
      if (each === undefined) return noTry
      const { cooling } = each
      const attempt = cooling.begin(request, now())
      const isCurrent = () => watched.get(name) === each
      return {
        report: (fault, retryAfter) => {
          if (!isCurrent()) return Effect.void
          if (fault !== undefined) return failed(name, each, attempt, fault, retryAfter)
          const wasCooled = cooling.until !== undefined
          cooling.succeeded()
          if (!wasCooled) return Effect.void
          update(name, each)
          return watched.size > 1 ? logBack(notices, name) : Effect.void
        },
        ended: () => {
          if (cooling.until === undefined || !isCurrent()) return
          cooling.ended(attempt)
          update(name, each)
        }
      }
    },
    cooled: (name) => {
      const each = watched.get(name)
      const until = each?.cooling.until
      if (until === undefined) return undefined
      return { left: Math.max(0, until - now()), reason: reasons[each!.fault ?? "trouble"] }
    }
  }
})

export interface UpstreamHealthKeeper {
  /** Receives the drivers in effect. An upstream with another driver begins anew. */
  readonly configure: (drivers: Drivers) => void
  /** Begins a try of a request at an upstream. */
  readonly begin: (upstream: string, request: string) => ReportedTry
  /** How long an upstream is still left out, and why; `undefined` unless it is cooled. */
  readonly cooled: (upstream: string) => CooledUpstream | undefined
}
