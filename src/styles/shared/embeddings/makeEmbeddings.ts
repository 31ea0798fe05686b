/**
 * Embeddings for whatever style asks: made here, without an account, or by the upstream, as `embeddings.provider` says.
 *
 * Vectors made here come one at a time, as the caller reads them, and long inputs are worked on in pieces, so that a large
 * request neither holds up other requests nor is in memory as a whole.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Accounts } from "../../../accounts/Accounts.ts"
import { admitRequest, type Asked, keyOf } from "../../../completion/admission.ts"
import { embedUpstream } from "../../../completion/embedUpstream.ts"
import type { GatewayConfig } from "../../../config/GatewayConfig.ts"
import { inSlices } from "../../../config/inSlices.ts"
import { estimateTokens } from "../../../domain/estimateTokens.ts"
import { type GatewayError, gatewayError } from "../../../domain/GatewayError.ts"
import { Slice, type Sliced } from "../../../domain/stream/slices.ts"
import { OwnWork } from "../../../http/OwnWork.ts"
import { KeyLimits } from "../../../usage/KeyLimits.ts"
import { type Input, inputTokens, pieceSize } from "./inputs.ts"
import { defaultDimensions, makeVectorizer, type Vectorizer } from "./vector.ts"

/** What embeddings are asked of. `dimensions`: as many as there are by default where it is `undefined`. */
export interface EmbeddingsAsked extends Asked {
  readonly inputs: ReadonlyArray<Input>
  readonly dimensions: number | undefined
  readonly config: GatewayConfig
}

/** Embeddings of a request. */
export interface Embedded {
  /** A vector for each input, in their order. */
  readonly vectors: Stream.Stream<ArrayLike<number>>
  /** Tokens of all inputs, to be asked when the last vector was read. Notes them in the request's record. */
  readonly end: () => number
}

/** Who makes embeddings. */
export interface Embeddings {
  /** Why there are none; `undefined` where there are. */
  readonly unavailable: (config: GatewayConfig) => GatewayError | undefined
  /** Admits the request for the length of a scope and begins to make its vectors. */
  readonly embed: (asked: EmbeddingsAsked) => Effect.Effect<Embedded, GatewayError, Scope.Scope>
}

/** Values of `embeddings.provider` with which the gateway makes them; they all mean the same. */
const ownProviders: ReadonlySet<string> = new Set(["mock", "deterministic", "builtin"])

const noProvider = gatewayError(
  "embeddings_unavailable",
  "embeddings.provider does not say who makes embeddings: set it to builtin (vectors made here, for tests and rough " +
    "likeness) or to upstream (the models of an OpenAI-compatible server)"
)

interface One {
  readonly tokens: number
  readonly vector: Float64Array
}

/** The vector of an input, and its tokens. */
function* embedOne(vectorizer: Vectorizer, input: Input): Sliced<One> {
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
    // A character costs here about four times what one costs to be read.
    if (slice.add(1, piece.length * 4)) yield slice.end()
  }
  return { tokens, vector: yield* vectorizer.take() }
}

/** Seven digits are as exact as 32-bit floats, in which some callers want them. */
const rounded = (vector: Float64Array): Float64Array => vector.map((value) => Math.round(value * 1e7) / 1e7)

const usageOf = (tokens: number) => ({
  promptTokens: tokens,
  completionTokens: 0,
  reasoningTokens: 0,
  cachedTokens: 0
})

/** Embeddings over the gateway's accounts and key limits. */
export const makeEmbeddings: Effect.Effect<Embeddings, never, KeyLimits | Accounts | OwnWork> = Effect.gen(
  function*() {
    const keyLimits = yield* KeyLimits
    const accounts = yield* Accounts
    const { inTurn } = yield* OwnWork

    const fromUpstream = Effect.fnUntraced(
      function*({ caller, config, dimensions, inputs, model, stats }: EmbeddingsAsked) {
        const { tokens, vectors } = yield* embedUpstream(accounts, config, {
          caller,
          model,
          inputs,
          dimensions,
          stats
        })
        const counted = tokens ?? (yield* inTurn(inSlices(inputTokens(inputs))))
        stats.usage = usageOf(counted)
        const end = () => {
          stats.embedding = "done"
          return counted
        }
        return { vectors: Stream.rechunk(Stream.fromIterable(vectors), 1), end }
      }
    )

    const fromHere = ({ dimensions, inputs, stats }: EmbeddingsAsked): Embedded => {
      const vectorizer = makeVectorizer(dimensions ?? defaultDimensions)
      let tokens = 0
      stats.soFar = { usage: () => usageOf(tokens), estimated: () => true }
      const vectors = Stream.fromIterable(inputs).pipe(
        Stream.rechunk(1),
        Stream.mapEffect((input) =>
          Effect.map(inTurn(inSlices(embedOne(vectorizer, input))), (one) => {
            tokens += one.tokens
            return rounded(one.vector)
          })
        )
      )
      const end = () => {
        stats.usage = usageOf(tokens)
        stats.embedding = "done"
        return tokens
      }
      return { vectors, end }
    }

    return {
      unavailable: ({ embeddings: { provider } }) =>
        provider === "upstream" || ownProviders.has(provider) ? undefined : noProvider,
      embed: Effect.fnUntraced(function*(asked) {
        const { caller, config, inputs, stats } = asked
        stats.embedding = "begun"
        const estimate = keyLimits.countsTokens(keyOf(caller)) ? yield* inTurn(inSlices(inputTokens(inputs))) : 0
        return yield* admitRequest(
          keyLimits,
          asked,
          () => estimate,
          () => config.embeddings.provider === "upstream" ? fromUpstream(asked) : Effect.succeed(fromHere(asked))
        )
      })
    }
  }
)
