/**
 * A count of a conversation's tokens by the upstream, on an account of the pool, with the failover of completions.
 */
import * as Effect from "effect/Effect"
import type { AccountPool, Caller } from "../accounts/Accounts.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { refusesModel } from "../domain/classifyUpstreamFailure.ts"
import type { Conversation } from "../domain/Conversation.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { leasedCall } from "./leasedCall.ts"
import type { RequestStats } from "./RequestStats.ts"

/** A conversation to count. */
interface CountInput {
  readonly caller: Caller
  readonly stats: RequestStats
  readonly model: Model
  readonly conversation: Conversation
}

/** A server without the endpoint, as opposed to one that lacks the model. */
const hasNoEndpoint = (failure: UpstreamFailure): boolean =>
  failure.status === 405 || failure.status === 501 || (failure.status === 404 && !refusesModel(failure))

/** Requests the count; `undefined` if the upstream counts no tokens. Fails with the error to send. */
export const countUpstream = (
  accounts: AccountPool,
  config: GatewayConfig,
  { caller, conversation, model, stats }: CountInput
): Effect.Effect<number | undefined, GatewayError> =>
  leasedCall(
    accounts,
    config,
    { caller, stats },
    ({ driver: { countTokens } }, token): Effect.Effect<number | undefined, UpstreamFailure> => {
      if (countTokens === undefined) return Effect.succeed(undefined)
      stats.upstreamCalled = true
      return Effect.catchIf(
        countTokens({ model, conversation, token }),
        hasNoEndpoint,
        () => Effect.succeed(undefined)
      )
    }
  )
