/**
 * The gateway as a client of itself: requests without a socket, and saved samples in the place of the upstream. The server
 * provides both.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { type GatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { given, headerText } from "../domain/givenText.ts"
import { hashOfKey } from "../domain/identity.ts"
import type { PlayedStyle } from "../styles/Style.ts"

/**
 * Sends requests through credentials, limits and errors as any caller's. URLs are paths such as `/v1/chat/completions`. Leaving
 * a response early ends the request.
 */
export class SelfClient
  extends Context.Service<SelfClient, HttpClient.HttpClient>()("model-gateway/admin/SelfClient")
{}

export const defaultModel = "upstream-chat"
const defaultMessage = "你好"

/** The fields of an operator's chat request; absent or empty ones have defaults. */
interface ChatFields {
  readonly api_key?: string | null | undefined
  readonly model?: string | null | undefined
  readonly message?: string | null | undefined
  readonly messages?: ReadonlyArray<Schema.Json> | null | undefined
}

/** A chat request to the gateway itself. Without `api_key` it has the first of `keys`; fails if there is no key. */
export const chatRequest = (fields: ChatFields, keys: ReadonlyArray<string>, stream: boolean) => {
  const key = given(fields.api_key) ?? keys.find((each) => hashOfKey(each) === undefined)
  const why = keys.length === 0 ? "no key is configured" : "the configured keys are kept as hashes"
  const token: Result.Result<string, GatewayError> = key === undefined
    ? Result.fail(invalidRequest(`api_key is required: ${why}`, "api_key"))
    : headerText(key, "api_key")
  const body = {
    model: given(fields.model) ?? defaultModel,
    messages: fields.messages ?? [{ role: "user", content: given(fields.message) ?? defaultMessage }],
    stream
  }
  return Result.map(token, (bearer) => ({
    body,
    request: HttpClientRequest.post("/v1/chat/completions").pipe(
      HttpClientRequest.bearerToken(bearer),
      HttpClientRequest.bodyJsonUnsafe(body)
    )
  }))
}

/** A sample to play. */
interface SampleToPlay {
  /** A sample of the configured folder. */
  readonly id: string
  /** The requested model: it decides whether reasoning is visible. */
  readonly model: string
  readonly style: PlayedStyle
  readonly stream: boolean
}

/** Plays a saved sample as a reply of a style; errors are in the style's format too. The reply ends with the scope. */
export class SampleReplay extends Context.Service<
  SampleReplay,
  (sample: SampleToPlay) => Effect.Effect<HttpServerResponse.HttpServerResponse, never, Scope.Scope>
>()("model-gateway/admin/SampleReplay") {}
