/**
 * A count of a conversation's tokens by the upstream, on an account of the pool, with the failover of completions.
 */
import * as Effect from "effect/Effect"
import type { AccountPool, Caller } from "../accounts/Accounts.ts"
import type { Deadlines } from "../config/clock/Deadlines.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { Conversation } from "../domain/Conversation.ts"
import { refusesModel } from "../domain/failureReasons.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Route } from "../domain/routes.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { leasedCall } from "./leasedCall.ts"
import type { Request } from "./Request.ts"

/** A conversation to count. */
interface CountInput {
  readonly caller: Caller
  readonly config: GatewayConfig
  readonly request: Request
  readonly model: Route
  readonly conversation: Conversation
}

/** A server without the endpoint, as opposed to one that lacks the model. */
const hasNoEndpoint = (failure: UpstreamFailure): boolean =>
  failure.status === 405 || failure.status === 501 || (failure.status === 404 && !refusesModel(failure))

const hasNoSlot = ({ code }: GatewayError): boolean =>
  code === "rate_limit_exceeded" || code === "upstream_rate_limited"

/** Requests the count; `undefined` if the upstream counts no tokens, or has no slot free now. Fails with the error to send. */
export const countUpstream = (
  accounts: AccountPool,
  deadlines: Deadlines["Service"],
  { caller, config, conversation, model, request }: CountInput
): Effect.Effect<number | undefined, GatewayError> =>
  Effect.catchIf(
    leasedCall<number | undefined>(accounts, deadlines, {
      caller,
      config,
      request,
      model,
      canCall: ({ capabilities }) => capabilities.countTokens !== undefined,
      refuse: () => undefined,
      call: ({ capabilities: { countTokens } }, { model }, token) =>
        countTokens === undefined
          ? Effect.succeed(undefined)
          : Effect.catchIf(
            countTokens({ model, conversation, token, callerHeaders: request.callerHeaders }),
            hasNoEndpoint,
            () => Effect.succeed(undefined)
          ),
      // An estimate serves as well, so that a count takes no place in the queue.
      isImpatient: true,
      promptTokens: undefined
    }),
    hasNoSlot,
    () => Effect.succeed(undefined)
  )
