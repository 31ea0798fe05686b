/**
 * A single call of the upstream on an account of the pool, with the failover of completions.
 */
import * as Effect from "effect/Effect"
import type { AccountPool, Caller, Lease } from "../accounts/Accounts.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { classify } from "../domain/classifyUpstreamFailure.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { mostAttempts, retryDelay } from "./attempts.ts"
import type { RequestStats } from "./RequestStats.ts"

/** Who calls, and the stats of the request. */
interface CallInput {
  readonly caller: Caller
  readonly stats: RequestStats
}

/** Makes a call on a lease; a failure of the upstream is retried as `mostAttempts` allows. Fails with the error to send. */
export const leasedCall = <A>(
  accounts: AccountPool,
  config: GatewayConfig,
  { caller, stats }: CallInput,
  call: (lease: Lease, token: string | undefined) => Effect.Effect<A, UpstreamFailure | GatewayError>
): Effect.Effect<A, GatewayError> => {
  const avoid = new Set<string>()
  const { account_max_inflight, recommended_concurrency } = config.runtime
  const alone = recommended_concurrency <= account_max_inflight
  const direct = caller._tag === "Direct"

  /** Makes one attempt on a lease; a failure is reported to the pool and returned. */
  const on = (lease: Lease) =>
    Effect.suspend(() => {
      stats.queued += lease.waited
      stats.driver = lease.driver.name
      stats.accountHash = lease.accountHash
      return Effect.flatMap(lease.credential.token, (token) => call(lease, token)).pipe(
        Effect.tap(() => lease.report(undefined, undefined)),
        Effect.map((reply) => ({ reply, judged: undefined })),
        Effect.catch((failure) => {
          if (failure._tag === "GatewayError") return Effect.fail(failure)
          const judged = classify(failure, {
            direct,
            mayRefresh: false,
            shown: false,
            alone,
            secrets: lease.secrets()
          })
          if (lease.account !== undefined) avoid.add(lease.account)
          return Effect.as(lease.report(judged.health, judged.retryAfter), { reply: undefined, judged })
        })
      )
    })

  const attempt: Effect.Effect<A, GatewayError> = Effect.suspend(() => {
    stats.attempts++
    return Effect.flatMap(
      Effect.scoped(Effect.flatMap(accounts.lease(caller, { avoid, style: stats.style }), on)),
      ({ judged, reply }): Effect.Effect<A, GatewayError> => {
        if (judged === undefined) return Effect.succeed(reply)
        const isPinned = caller._tag === "Managed" && caller.target !== undefined
        if (judged.retry === "no" || isPinned || stats.attempts >= mostAttempts) return Effect.fail(judged.error)
        if (!alone) {
          stats.failovers++
          return attempt
        }
        stats.retries++
        return judged.health === "none" ? Effect.andThen(retryDelay(stats.retries), attempt) : attempt
      }
    )
  })
  return attempt
}
