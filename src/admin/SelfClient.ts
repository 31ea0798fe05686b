/**
 * The gateway as a client of itself: requests take the way that every caller's take, through credentials, limits and
 * errors, without a socket.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import { type GatewayError, invalidRequest } from "../domain/GatewayError.ts"

/** Requests name a path of the gateway, such as `/v1/chat/completions`. A reply that is left early ends the request. */
export class SelfClient
  extends Context.Service<SelfClient, HttpClient.HttpClient>()("model-gateway/admin/SelfClient")
{}

/** What RFC 9110 lets a header's value have in it. */
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** Fails for a key that no caller could send either: its characters fit into no header. */
export const sendable = (key: string): Effect.Effect<string, GatewayError> =>
  headerValue.test(key)
    ? Effect.succeed(key)
    : Effect.fail(invalidRequest("api_key has characters that no header can carry", "api_key"))
