/**
 * Replies with lists that may be very long: written in slices, so that everybody else is served meanwhile.
 */
import * as Effect from "effect/Effect"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import { type RawConfig, stringifyConfig } from "../config/json.ts"
import { jsonText, type ReplyBody } from "../http/reply.ts"

/** An endpoint's reply. The compiler holds the body to the endpoint's success, as `respond` does. */
export const respondInSlices = <Endpoint extends HttpApiEndpoint.Constraint>(
  _endpoint: Endpoint,
  body: ReplyBody<Endpoint> & object
) => Effect.map(stringifyConfig(body as unknown as RawConfig, "compact"), (text) => jsonText(text))
