/**
 * Embeddings for all styles: made by the gateway without an account, or by the upstream, as `embeddings.provider` says.
 *
 * The gateway makes each vector when the client reads it and processes long inputs in pieces, so that a large request
 * neither delays other requests nor is in memory as a whole.
 */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Accounts } from "../../../accounts/Accounts.ts"
import { admitRequest, type Asked, keyOf } from "../../../completion/admission.ts"
import { embedUpstream } from "../../../completion/embedUpstream.ts"
import { promptUsage } from "../../../completion/SentPrompt.ts"
import { noDriver, noteUnpassed, noteVendorInputs } from "../../../completion/unsentFields.ts"
import { runCooperatively } from "../../../config/clock/cooperative.ts"
import { Deadlines } from "../../../config/clock/Deadlines.ts"
import type { GatewayConfig } from "../../../config/GatewayConfig.ts"
import type { ServerFields } from "../../../contracts/shared/Family.ts"
import type { VendorInputs } from "../../../domain/Embeddings.ts"
import { estimateTokens } from "../../../domain/estimateTokens.ts"
import { type GatewayError, gatewayError } from "../../../domain/GatewayError.ts"
import { type Cooperative, Slice } from "../../../domain/stream/cooperative.ts"
import { WorkLimit } from "../../../http/WorkLimit.ts"
import { KeyLimits } from "../../../usage/KeyLimits.ts"
import { type Input, inputTokens, pieceSize } from "./inputs.ts"
import { defaultDimensions, makeVectorizer, type Vectorizer } from "./vector.ts"

/** A request for embeddings. `dimensions` is `undefined` for the provider's default. */
export interface EmbeddingsRequest extends Asked {
  readonly inputs: ReadonlyArray<Input>
  readonly dimensions: number | undefined
  /** The vendor's own fields of each input. */
  readonly own: VendorInputs | undefined
  /** Fields of the caller's body for the server. */
  readonly fields: ServerFields | undefined
  readonly config: GatewayConfig
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
  /** The error of a configuration without a provider; `undefined` with one. */
  readonly unavailable: (config: GatewayConfig) => GatewayError | undefined
  /** Admits the request for the lifetime of the scope and starts to make its vectors. */
  readonly embed: (asked: EmbeddingsRequest) => Effect.Effect<Embedded, GatewayError, Scope.Scope>
}

/** Values of `embeddings.provider` for the gateway's own embeddings; all have the same meaning. */
const ownProviders: ReadonlySet<string> = new Set(["mock", "deterministic", "builtin"])

const noProvider = gatewayError(
  "embeddings_unavailable",
  "Embeddings are not enabled on this gateway. Ask the gateway's operator.",
  { cause: { setting: "embeddings.provider" } }
)

interface EmbeddedInput {
  readonly tokens: number
  readonly vector: Float64Array
}

/** The vector of an input, and its tokens. */
function* embedOne(vectorizer: Vectorizer, input: Input): Cooperative<EmbeddedInput> {
  const slice = new Slice()
  let tokens = 0
  for (let from = 0; from < input.length; from += pieceSize) {
    const piece = input.slice(from, from + pieceSize)
    if (typeof piece === "string") {
      vectorizer.addText(piece)
      tokens += estimateTokens(piece)
    } else {
      vectorizer.addTokens(piece)
      tokens += piece.length
    }
    // A character costs about four times as much here as in parsing, for which slices are sized.
    if (slice.add(1, piece.length * 4)) yield slice.end()
  }
  return { tokens, vector: yield* vectorizer.take() }
}

/** Rounds to seven digits, the precision of the 32-bit floats that some callers request. */
const rounded = (vector: Float64Array): Float64Array => vector.map((value) => Math.round(value * 1e7) / 1e7)

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

type EmbeddingServices = KeyLimits | Accounts | Deadlines | WorkLimit

/** Makes the embeddings of all styles. Build it once, not per request. */
export const makeEmbeddings: Effect.Effect<Embeddings, never, EmbeddingServices> = Effect.gen(
  function*() {
    const keyLimits = yield* KeyLimits
    const accounts = yield* Accounts
    const deadlines = yield* Deadlines
    const { inTurn } = yield* WorkLimit

    const fromUpstream = Effect.fnUntraced(
      function*(
        { caller, config, dimensions, fields, inputs, model, own, request }: EmbeddingsRequest,
        estimate: Effect.Effect<number>
      ) {
        const { promptTokens, vectors } = yield* embedUpstream(accounts, deadlines, {
          caller,
          config,
          model,
          inputs,
          dimensions,
          own,
          fields,
          request,
          estimate
        })
        const end = () => {
          request.stats.progress = "done"
          return promptTokens
        }
        return { vectors: Stream.rechunk(Stream.fromIterable(vectors), 1), end }
      }
    )

    const fromGateway = ({ dimensions, fields, inputs, own, request }: EmbeddingsRequest): Embedded => {
      const { stats } = request
      noteVendorInputs(own, stats)
      if (fields !== undefined) noteUnpassed(fields, noDriver, request)
      const vectorizer = makeVectorizer(dimensions ?? defaultDimensions)
      let tokens = 0
      stats.soFar = {
        usage: () => promptUsage(tokens),
        estimated: () => true,
        promptReported: () => false,
        isBilled: false
      }
      const vectors = Stream.fromIterable(inputs).pipe(
        Stream.rechunk(1),
        Stream.mapEffect((input) =>
          Effect.map(inTurn(runCooperatively(embedOne(vectorizer, input))), (one) => {
            tokens += one.tokens
            return rounded(one.vector)
          })
        )
      )
      const end = () => {
        stats.usage = promptUsage(tokens)
        stats.progress = "done"
        return tokens
      }
      return { vectors, end }
    }

    return {
      unavailable: ({ embeddings: { provider } }) =>
        provider === "upstream" || ownProviders.has(provider) ? undefined : noProvider,
      embed: Effect.fnUntraced(function*(asked) {
        const { caller, config, inputs, request } = asked
        request.stats.progress = "begun"
        const estimating = inTurn(Effect.suspend(() => runCooperatively(inputTokens(inputs))))
        const estimate = keyLimits.countsTokens(keyOf(caller)) ? yield* estimating : undefined
        return yield* admitRequest(
          keyLimits,
          asked,
          () => estimate ?? 0,
          () =>
            config.embeddings.provider === "upstream"
              ? fromUpstream(asked, estimate === undefined ? estimating : Effect.succeed(estimate))
              : Effect.succeed(fromGateway(asked))
        )
      })
    }
  }
)
