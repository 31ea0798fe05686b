/**
 * Embeddings as the styles see them. `makeEmbeddings.ts` has the gateway's own.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Asked } from "../../../completion/admission.ts"
import type { ServerFields } from "../../../contracts/shared/Family.ts"
import type { VendorInputs } from "../../../domain/Embeddings.ts"
import { type GatewayError, gatewayError } from "../../../domain/GatewayError.ts"
import type { Input } from "./inputs.ts"

/** A request for embeddings. `dimensions` is `undefined` for the provider's default. */
export interface EmbeddingsRequest extends Asked {
  readonly inputs: ReadonlyArray<Input>
  readonly dimensions: number | undefined
  /** The vendor's own fields of each input. */
  readonly own: VendorInputs | undefined
  /** Fields of the caller's body for the server. */
  readonly fields: ServerFields | undefined
}

/** Embeddings of a request. */
export interface Embedded {
  /** A vector for each input, in their order. */
  readonly vectors: Stream.Stream<ArrayLike<number>>
  /** Returns the tokens of all inputs and notes them in the request's stats. Call it once all vectors are read. */
  readonly end: () => number
}

/** Makes embeddings. */
export interface Embeddings {
  /** The error of all requests while nothing makes embeddings; else `undefined`. */
  readonly unavailable: () => GatewayError | undefined
  /** Admits the request for the lifetime of the scope and starts to make its vectors. */
  readonly embed: (asked: EmbeddingsRequest) => Effect.Effect<Embedded, GatewayError, Scope.Scope>
}

/** The error of requests for embeddings where nothing makes them. */
export const noProvider = gatewayError(
  "embeddings_unavailable",
  "Embeddings are not enabled on this gateway. Ask the gateway's operator.",
  { cause: { setting: "embeddings.provider" } }
)

/** What makes embeddings; by default nothing does. */
export const CurrentEmbeddings = Context.Reference<Embeddings>("model-gateway/styles/Embeddings", {
  defaultValue: () => ({ unavailable: () => noProvider, embed: () => Effect.fail(noProvider) })
})

/**
 * Streams a JSON reply while the vectors are made. `item` writes the vector at an index; `tail` writes the rest of the JSON
 * from the tokens of all inputs.
 */
export const streamVectors = (
  { end, vectors }: Embedded,
  head: string,
  item: (vector: ArrayLike<number>, index: number) => string,
  tail: (tokens: number) => string
): HttpServerResponse.HttpServerResponse => {
  const items = Stream.map(
    Stream.zipWithIndex(vectors),
    ([vector, index]) => `${index === 0 ? "" : ","}${item(vector, index)}`
  )
  const last = Stream.fromEffect(Effect.sync(() => tail(end())))
  const text = Stream.succeed(head).pipe(Stream.concat(items), Stream.concat(last))
  return HttpServerResponse.stream(Stream.encodeText(text), { contentType: "application/json" })
}
