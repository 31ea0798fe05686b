/**
 * Replies that are not streamed: the fold of the reply's events, and JSON with the gateway's own headers.
 */
import * as Effect from "effect/Effect"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { CompletionOutput } from "../completion/Completion.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { gatewayError } from "../domain/GatewayError.ts"
import { type ModelTable, nativeModels } from "../domain/models.ts"
import { nearest } from "../domain/nearest.ts"
import type { Reply } from "../domain/Reply.ts"
import { foldReply } from "../domain/Reply.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"

/** Id of the API that all groups belong to. */
export const apiId = "gateway"

/** All events of a reply. */
export const wholeEvents = (output: CompletionOutput): Effect.Effect<Iterable<ReplyEvent>, GatewayError> =>
  output.whole === undefined ? Stream.runCollect(output.events) : Effect.succeed(output.whole)

/**
 * Collects a whole reply. A reply that was withdrawn before it showed anything fails with `content_filter` when it is
 * opened; one that was withdrawn later ends as that, with what it had.
 */
export const wholeReply = (output: CompletionOutput): Effect.Effect<Reply, GatewayError> =>
  Effect.map(wholeEvents(output), (events) => {
    const fold = foldReply()
    for (const event of events) fold.push(event)
    return fold.reply()
  })

/** What an endpoint replies where it sends no stream. */
type Whole<Success> = Success extends HttpApiSchema.StreamSchema ? never
  : Success extends Schema.Constraint ? Success["Type"]
  : never

/** The body of an endpoint's reply. */
export type ReplyBody<Endpoint extends HttpApiEndpoint.Constraint> = Whole<HttpApiEndpoint.Success<Endpoint>>

/** JSON that is text already as a reply. */
export const jsonText = (
  text: string,
  headers: Record<string, string> = {}
): HttpServerResponse.HttpServerResponse => HttpServerResponse.text(text, { contentType: "application/json", headers })

/** An endpoint's reply. The compiler holds the body to the endpoint's success; nothing is encoded or checked for each reply. */
export const respond = <Endpoint extends HttpApiEndpoint.Constraint>(
  _endpoint: Endpoint,
  body: ReplyBody<Endpoint>
): HttpServerResponse.HttpServerResponse => jsonText(JSON.stringify(body))

/** Names that are suggested for one that is not there. */
const mostSuggested = 3

/** No model matches the requested name; those of the table that are nearest to it are named. */
export const modelNotFound = (requested: string, { aliases, models }: ModelTable, param = "model"): GatewayError => {
  const names = [...nativeModels, ...models].map(({ id }) => id)
  const near = nearest(requested.trim(), [...names, ...aliases.keys()], mostSuggested).map((name) => `"${name}"`)
  const suggestion = near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`
  return gatewayError("model_not_found", `The model "${requested.slice(0, 200)}" does not exist${suggestion}`, {
    param
  })
}
