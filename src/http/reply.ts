/**
 * Replies that are not streamed: the fold of the reply's events, and JSON with the gateway's own headers.
 */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
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

/** JSON as a reply. */
export const jsonReply = (
  body: unknown,
  headers: Record<string, string> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(JSON.stringify(body), { contentType: "application/json", headers })

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
