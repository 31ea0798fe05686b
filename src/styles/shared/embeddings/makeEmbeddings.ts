/**
 * The gateway's embeddings for all styles: made by itself without an account, or by the upstream, as `embeddings.provider` says.
 *
 * The gateway makes each vector when the client reads it and processes long inputs in pieces, so that a large request
 * neither delays other requests nor is in memory as a whole.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Accounts } from "../../../accounts/Accounts.ts"
import { admitRequest, keyOf } from "../../../completion/admission.ts"
import { embedUpstream } from "../../../completion/embedUpstream.ts"
import { promptUsage } from "../../../completion/SentPrompt.ts"
import { noDriver, noteUnpassed, noteVendorInputs } from "../../../completion/unsentFields.ts"
import { runCooperatively } from "../../../config/clock/cooperative.ts"
import { Deadlines } from "../../../config/clock/Deadlines.ts"
import { ConfigStore } from "../../../config/ConfigStore.ts"
import { estimateTokens } from "../../../domain/estimateTokens.ts"
import { type Cooperative, Slice } from "../../../domain/stream/cooperative.ts"
import { WorkLimit } from "../../../http/WorkLimit.ts"
import { KeyLimits } from "../../../usage/KeyLimits.ts"
import { CurrentEmbeddings, type Embedded, type Embeddings, type EmbeddingsRequest, noProvider } from "./Embeddings.ts"
import { type Input, inputTokens, pieceSize } from "./inputs.ts"
import { defaultDimensions, makeVectorizer, type Vectorizer } from "./vector.ts"

/** Values of `embeddings.provider` for the gateway's own embeddings; all have the same meaning. */
const ownProviders: ReadonlySet<string> = new Set(["mock", "deterministic", "builtin"])

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

type EmbeddingServices = Accounts | ConfigStore | Deadlines | KeyLimits | WorkLimit

const makeEmbeddings: Effect.Effect<Embeddings, never, EmbeddingServices> = Effect.gen(
  function*() {
    const store = yield* ConfigStore
    const keyLimits = yield* KeyLimits
    const accounts = yield* Accounts
    const deadlines = yield* Deadlines
    const { inTurn } = yield* WorkLimit

    const fromUpstream = Effect.fnUntraced(
      function*(
        { caller, dimensions, fields, inputs, model, own, request }: EmbeddingsRequest,
        estimate: Effect.Effect<number>
      ) {
        const { promptTokens, vectors } = yield* embedUpstream(accounts, deadlines, {
          caller,
          config: store.now(),
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
      unavailable: () => {
        const { provider } = store.now().embeddings
        return provider === "upstream" || ownProviders.has(provider) ? undefined : noProvider
      },
      embed: Effect.fnUntraced(function*(asked) {
        const { caller, inputs, request } = asked
        request.stats.progress = "begun"
        const estimating = inTurn(Effect.suspend(() => runCooperatively(inputTokens(inputs))))
        const estimate = keyLimits.countsTokens(keyOf(caller)) ? yield* estimating : undefined
        return yield* admitRequest(
          keyLimits,
          asked,
          () => estimate ?? 0,
          () =>
            store.now().embeddings.provider === "upstream"
              ? fromUpstream(asked, estimate === undefined ? estimating : Effect.succeed(estimate))
              : Effect.succeed(fromGateway(asked))
        )
      })
    }
  }
)

export const layerEmbeddings: Layer.Layer<never, never, EmbeddingServices> = Layer.effect(
  CurrentEmbeddings,
  makeEmbeddings
)
