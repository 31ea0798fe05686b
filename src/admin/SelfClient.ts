/**
 * The gateway as a client of itself: requests without a socket, and saved samples in the place of the upstream. The server
 * provides both.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Scope from "effect/Scope"
import type { PlayedStyle } from "../styles/names.ts"

/**
 * Sends requests through credentials, limits and errors as any caller's. URLs are paths such as `/v1/chat/completions`. Leaving
 * a response early ends the request.
 */
export class SelfClient
  extends Context.Service<SelfClient, HttpClient.HttpClient>()("model-gateway/admin/SelfClient")
{}

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
