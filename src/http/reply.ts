/**
 * Responses that are not streamed: JSON bodies typed by the contract, and errors.
 */
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Schema from "effect/Schema"
import type { ErrorShape } from "../contracts/shared/errorShapes.ts"
import { faultHeader, faultOf } from "../domain/fault.ts"
import type { GatewayError } from "../domain/GatewayError.ts"

/** Id of the API that all groups belong to. */
export const apiId = "gateway"

/** The success type of an endpoint without its streams. */
type Whole<Success> = Success extends HttpApiSchema.StreamSchema ? never
  : Success extends Schema.Constraint ? Success["Type"]
  : never

/** The type of an endpoint's response body. */
export type ReplyBody<Endpoint extends HttpApiEndpoint.Constraint> = Whole<HttpApiEndpoint.Success<Endpoint>>

/** The response for JSON text. */
export const jsonText = (
  text: string,
  headers: Record<string, string> = {}
): HttpServerResponse.HttpServerResponse => HttpServerResponse.text(text, { contentType: "application/json", headers })

/** The JSON text of an endpoint's body, which the compiler checks against the endpoint. */
export const bodyText = <Endpoint extends HttpApiEndpoint.Constraint>(
  _endpoint: Endpoint,
  body: ReplyBody<Endpoint>
): string => JSON.stringify(body)

/** The response of an endpoint. The compiler checks the body against the endpoint; nothing is checked or encoded at run time. */
export const respond = <Endpoint extends HttpApiEndpoint.Constraint>(
  endpoint: Endpoint,
  body: ReplyBody<Endpoint>
): HttpServerResponse.HttpServerResponse => jsonText(bodyText(endpoint, body))

/**
 * The response for an error, in the shape of its family of endpoints. `fault` says who has to act, if more is known than the error's code.
 */
export const errorResponse = (
  shape: ErrorShape,
  error: GatewayError,
  requestId?: string,
  fault = faultOf({ error: error.code })
): HttpServerResponse.HttpServerResponse => {
  const headers: Record<string, string> = {}
  if (fault !== undefined) headers[faultHeader] = fault
  if (error.retryAfter !== undefined) headers["retry-after"] = String(Math.max(1, Math.ceil(error.retryAfter)))
  if (error.retryAfterMs !== undefined) headers["retry-after-ms"] = String(error.retryAfterMs)
  if (error.serverRetry !== undefined || !error.shouldRetry) headers["x-should-retry"] = String(error.shouldRetry)
  const upstreamId = error.passed?.requestId
  if (upstreamId !== undefined) headers["x-upstream-request-id"] = upstreamId
  // RFC 9110, 15.5.22: the reply names what to upgrade to.
  if (error.code === "upgrade_required") {
    Object.assign(headers, { connection: "upgrade", upgrade: "websocket", "sec-websocket-version": "13" })
  }
  // The rest of the request body is discarded with the connection.
  if (error.code === "request_timeout") headers["connection"] = "close"
  return HttpServerResponse.text(shape.text(error, requestId), {
    status: shape.status(error),
    contentType: "application/json",
    headers
  })
}
