/**
 * Replies that are not streamed: JSON with the gateway's own headers, held to the contract.
 */
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Schema from "effect/Schema"

/** Id of the API that all groups belong to. */
export const apiId = "gateway"

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
