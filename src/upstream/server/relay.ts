/** Requests that a server gets as they are, and whose replies pass as they are. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Contract } from "../../contracts/Contract.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { putBack, takePullUnsafe } from "../../domain/stream/transduce.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { ExchangeLimits } from "../Exchange.ts"
import { errorIn, firstBytes, isText } from "../relayedReply.ts"
import type { RelayedReply, RelayedRequest } from "../Upstream.ts"
import type { RequestedModel, ServerAnswers } from "./serverAnswers.ts"
import type { SendCall } from "./ServerCall.ts"

/** The server that requests are relayed to. */
interface RelayingServer extends Pick<Contract, "isError">, Pick<ServerAnswers, "refusal"> {
  readonly call: SendCall
  readonly limits: ExchangeLimits
}

/** Relays a request and waits for the first bytes of the reply. */
export const makeRelay = ({ call, isError, limits, refusal }: RelayingServer) =>
(
  { accept, body, budget, callerHeaders, path, recorder, token }: RelayedRequest,
  model: RequestedModel,
  scope: Scope.Scope
): Effect.Effect<RelayedReply, UpstreamFailure | GatewayError> => {
  const { content, contentType, length, recorded } = body(model.name)
  let fault: GatewayError | undefined
  const noteFault = Stream.tapError((error: GatewayError) => Effect.sync(() => fault = error))
  const relayed = call(
    {
      label: "carried",
      request: { budget, recorder, callerHeaders },
      model,
      token,
      path,
      body: Stream.isStream(content) ? noteFault(content) : content,
      recorded,
      session: undefined,
      // The head of a reply that is not streamed comes with its last word.
      limits: { ...limits, firstByte: Math.max(limits.firstByte, limits.silence) },
      headers: {
        accept,
        "content-type": contentType,
        ...(length === undefined ? {} : { "content-length": String(length) })
      },
      isWhole: false,
      ended: () => {}
    },
    scope,
    (exchange, round) => {
      const type = exchange.header("content-type") ?? ""
      const isRecorded = isText(type)
      const pull = Effect.flatMap(takePullUnsafe(exchange.bytes), (bytes) => {
        if (isRecorded) round?.bytes(bytes[0])
        budget.progressed()
        return budget.addBytes(bytes[0].length) ? Effect.succeed(bytes) : Effect.fail(budget.tooManyBytes("stream"))
      })
      return Effect.flatMap(firstBytes(pull, type, budget), (first): Effect.Effect<RelayedReply, UpstreamFailure> => {
        const error = errorIn(first, type)
        if (error !== undefined && isError(error)) {
          return Effect.flip(refusal("completion", exchange, JSON.stringify(error), token, model))
        }
        return Effect.succeed({
          status: exchange.status,
          header: (name) => exchange.header(name),
          bytes: putBack([first], pull)
        })
      })
    }
  )
  // The exchange ends with its body.
  return Effect.mapError(relayed, (failure) => fault ?? failure)
}
