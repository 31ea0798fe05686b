/**
 * Embeddings from the upstream, on an account of the pool, with the failover of completions.
 */
import * as Effect from "effect/Effect"
import type { AccountPool, Caller } from "../accounts/Accounts.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { ServerFields } from "../domain/families/Family.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { EmbeddingsReply, OwnInputs } from "../upstream/Upstream.ts"
import { leasedCall } from "./leasedCall.ts"
import type { RequestStats } from "./RequestStats.ts"
import { noteOwnInputs, noteUncarried } from "./unsentFields.ts"

/** A request for vectors. */
interface EmbedInput {
  readonly caller: Caller
  readonly model: Model
  /** Texts, or texts as token ids. */
  readonly inputs: ReadonlyArray<string | ReadonlyArray<number>>
  readonly dimensions: number | undefined
  /** The vendor's own fields of each input. */
  readonly own?: OwnInputs | undefined
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
  { caller, dimensions, fields, inputs, model, own, stats }: EmbedInput
): Effect.Effect<EmbeddingsReply, GatewayError> =>
  leasedCall(
    accounts,
    config,
    { caller, stats },
    ({ driver }, token): Effect.Effect<EmbeddingsReply, UpstreamFailure | GatewayError> => {
      const { embed } = driver
      if (embed === undefined) return Effect.fail(unsupported)
      if (fields !== undefined) noteUncarried(fields, driver, stats)
      if (own?.family !== driver.family) noteOwnInputs(own, stats)
      stats.upstreamCalled = true
      return embed({ model, inputs, dimensions, own, fields, token })
    }
  )
