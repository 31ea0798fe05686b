/** Counts of tokens by a server of the Responses contract, `POST {base_url}/responses/input_tokens`. */
import * as Effect from "effect/Effect"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import type { SealedRequests } from "../../contracts/responses/seals.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { headersFor } from "../../domain/VendorFields.ts"
import { MissingEndpoint } from "../server/MissingEndpoint.ts"
import type { RequestedModel } from "../server/serverAnswers.ts"
import type { ServerClient } from "../server/ServerClient.ts"
import { countBy, noCounts } from "../server/serverDriver.ts"
import type { CountRequest, Counts } from "../Upstream.ts"

/** The call of a count. */
interface Call {
  readonly model: RequestedModel
  readonly body: Cooperative<string>
}

/**
 * Makes the counts of a server. A server that refuses what it cannot read or find is asked once more in plain form, and one without the
 * endpoint is not asked for a while. `call` makes the request of a conversation; `now`: monotonic milliseconds.
 */
export const makeCounts = (
  client: ServerClient,
  seals: Pick<SealedRequests, "repeated">,
  call: (request: CountRequest, now: number) => Call
): Counts => {
  const endpoint = new MissingEndpoint()
  const count = Effect.fnUntraced(function*(request: CountRequest, now: number) {
    const { body, model } = call(request, now)
    return yield* countBy(client, request, {
      model,
      path: "/responses/input_tokens",
      body: yield* startCooperatively(body),
      headers: headersFor(request.conversation, "responses"),
      field: "input_tokens"
    })
  })
  const countPlain = (request: CountRequest, now: number) =>
    Effect.catch(count(request, now), (failure) => {
      const repeated = seals.repeated(failure, request.conversation, request.model, now, false)
      return repeated === undefined
        ? Effect.fail(failure)
        : Effect.map(count({ ...request, conversation: repeated.conversation }, now), (tokens) => {
          repeated.taken(now)
          return tokens
        })
    })
  return (request) =>
    Effect.clockWith((clock) => {
      const now = monotonicMillis(clock)
      return endpoint.isMissing(now)
        ? Effect.fail(noCounts)
        : endpoint.watching(countPlain(request, now))
    })
}
