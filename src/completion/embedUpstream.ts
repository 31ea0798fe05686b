/**
 * Embeddings from the upstream, on an account of the pool, with the failover of completions.
 */
import * as Effect from "effect/Effect"
import type { AccountPool, Caller, Lease } from "../accounts/Accounts.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { classify } from "../domain/classifyUpstreamFailure.ts"
import type { ServerFields } from "../domain/families/Family.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import type { EmbeddingsReply } from "../upstream/Upstream.ts"
import { mostAttempts, retryDelay } from "./attempts.ts"
import type { RequestStats } from "./RequestStats.ts"
import { noteUncarried } from "./unsentFields.ts"

/** A request for vectors. */
interface EmbedInput {
  readonly caller: Caller
  readonly model: Model
  /** Texts, or texts as token ids. */
  readonly inputs: ReadonlyArray<string | ReadonlyArray<number>>
  readonly dimensions: number | undefined
  /** Fields of the caller's body for the server. */
  readonly fields?: ServerFields | undefined
  readonly stats: RequestStats
}

const unsupported = gatewayError(
  "embeddings_unavailable",
  "The upstream makes no embeddings: embeddings.provider upstream needs an OpenAI-compatible server"
)

/** Requests the vectors of all inputs. Fails with the error to send. */
export const embedUpstream = (
  accounts: AccountPool,
  config: GatewayConfig,
  { caller, dimensions, fields, inputs, model, stats }: EmbedInput
): Effect.Effect<EmbeddingsReply, GatewayError> => {
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
      const embed = lease.driver.embed
      if (embed === undefined) return Effect.fail(unsupported)
      if (fields !== undefined) noteUncarried(fields, lease.driver, stats)
      stats.upstreamCalled = true
      return Effect.flatMap(lease.credential.token, (token) => embed({ model, inputs, dimensions, fields, token }))
        .pipe(
          Effect.tap(() => lease.report(undefined, undefined)),
          Effect.map((reply) => ({ reply, judged: undefined })),
          Effect.catch((failure) => {
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

  const attempt: Effect.Effect<EmbeddingsReply, GatewayError> = Effect.suspend(() => {
    stats.attempts++
    return Effect.flatMap(
      Effect.scoped(Effect.flatMap(accounts.lease(caller, { avoid, style: stats.style }), on)),
      ({ judged, reply }) => {
        if (reply !== undefined) return Effect.succeed(reply)
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
