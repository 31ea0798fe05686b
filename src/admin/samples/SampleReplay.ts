/**
 * Saved samples as replies of a style: the way that every reply takes, with the sample in the upstream's place.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Scope from "effect/Scope"
import type { PlayedStyle } from "../../styles/names.ts"

/** What is to be played. */
export interface SampleToPlay {
  /** A sample of the configured folder. */
  readonly id: string
  /** The model to ask for: it says whether reasoning is shown. */
  readonly model: string
  readonly style: PlayedStyle
  readonly stream: boolean
}

/** The reply of the style, its errors included. It ends with the scope. */
export class SampleReplay extends Context.Service<
  SampleReplay,
  (sample: SampleToPlay) => Effect.Effect<HttpServerResponse.HttpServerResponse, never, Scope.Scope>
>()("model-gateway/admin/SampleReplay") {}
