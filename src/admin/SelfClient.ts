/**
 * The gateway as a client of itself: requests take the way that every caller's take, through credentials, limits and
 * errors, without a socket.
 */
import * as Context from "effect/Context"
import type * as HttpClient from "effect/http/HttpClient"

/** Requests name a path of the gateway, such as `/v1/chat/completions`. A reply that is left early ends the request. */
export class SelfClient
  extends Context.Service<SelfClient, HttpClient.HttpClient>()("model-gateway/admin/SelfClient")
{}
