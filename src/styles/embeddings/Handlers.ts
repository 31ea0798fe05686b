/**
 * The embeddings endpoint at work. The vectors are made here, without an account, or by the upstream.
 *
 * The reply is written an input at a time, as the caller reads it, and long inputs are worked on in pieces, so that a large
 * request neither holds up other requests nor is in memory as a whole.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import { Accounts } from "../../accounts/Accounts.ts"
import { admitRequest, keyOf } from "../../completion/admission.ts"
import { embedUpstream } from "../../completion/embedUpstream.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { inSlices } from "../../config/inSlices.ts"
import { estimateTokens } from "../../domain/estimateTokens.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { resolveModel } from "../../domain/models.ts"
import { counting } from "../../http/counting.ts"
import { own } from "../../http/decodePieces.ts"
import type { BodyOutline } from "../../http/itemLimits.ts"
import { jsonBody } from "../../http/jsonBody.ts"
import { apiId, modelNotFound } from "../../http/reply.ts"
import { CurrentCaller, CurrentRequest } from "../../http/Request.ts"
import { Slice, type Sliced } from "../../stream/slices.ts"
import { KeyLimits } from "../../usage/KeyLimits.ts"
import { EmbeddingsBody, EmbeddingsGroup } from "./Api.ts"
import type { Input } from "./decode.ts"
import { decodeInputs } from "./decode.ts"
import type { Vectorizer } from "./vector.ts"
import { defaultDimensions, makeVectorizer } from "./vector.ts"

/** The inputs are counted by `decodeInputs`. */
const embeddingsOutline: BodyOutline = { turns: [], stops: "" }

const readBody = jsonBody(EmbeddingsBody, { outline: embeddingsOutline, pieces: { input: own } })

/** Values of `embeddings.provider` with which there are embeddings; they all mean the same. */
const providers: ReadonlySet<string> = new Set(["mock", "deterministic", "builtin"])

const unavailable = gatewayError(
  "embeddings_unavailable",
  "embeddings.provider is not set, or not to one of upstream, mock, deterministic and builtin"
)

/** Characters or tokens that are worked on in one go. */
const pieceSize = 64 * 1024

interface Embedded {
  readonly tokens: number
  readonly vector: Float64Array
}

/** The tokens of all inputs. */
function* inputTokens(inputs: ReadonlyArray<Input>): Sliced<number> {
  const slice = new Slice()
  let tokens = 0
  for (const input of inputs) {
    for (let from = 0; from < input.length; from += pieceSize) {
      const piece = input.slice(from, from + pieceSize)
      tokens += typeof piece === "string" ? estimateTokens(piece) : piece.length
      if (slice.add(1, piece.length)) yield slice.end()
    }
  }
  return tokens
}

/** The vector of an input, and its tokens. */
function* embed(vectorizer: Vectorizer, input: Input): Sliced<Embedded> {
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

/** Seven digits are as exact as the 32-bit floats of the other encoding. */
const rounded = (vector: Float64Array): Float64Array => vector.map((value) => Math.round(value * 1e7) / 1e7)

const floats = (vector: Float64Array): string => `[${rounded(vector).join(",")}]`

/** Numbers as the Base64 of their little-endian 32-bit floats. */
const encoded = (vector: ArrayLike<number>): string => {
  const bytes = new DataView(new ArrayBuffer(4 * vector.length))
  for (let i = 0; i < vector.length; i++) bytes.setFloat32(4 * i, vector[i]!, true)
  return `"${Buffer.from(bytes.buffer).toString("base64")}"`
}

const asNumbers = (vector: ReadonlyArray<number>): string => `[${vector.join(",")}]`

const base64 = (vector: Float64Array): string => encoded(rounded(vector))

/** Serves the group; errors are rendered by its edge. */
export const EmbeddingsHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(EmbeddingsGroup),
  "embeddings",
  Effect.fnUntraced(function*(handlers) {
    const config = yield* ConfigStore
    const keyLimits = yield* KeyLimits
    const accounts = yield* Accounts

    return handlers.handleRaw(
      "create",
      Effect.fnUntraced(function*({ request }) {
        const stats = yield* CurrentRequest
        const current = config.unsafeCurrent()
        const byUpstream = current.embeddings.provider === "upstream"
        if (!byUpstream && !providers.has(current.embeddings.provider)) return yield* unavailable
        const body = yield* readBody(request)
        stats.requestedModel = body.model
        const model = resolveModel(current.model_table, body.model)
        if (model === undefined) return yield* modelNotFound(body.model, current.model_table)
        stats.model = model.id
        const dimensions = body.dimensions ?? defaultDimensions
        const inputs = yield* Effect.fromResult(
          yield* inSlices(decodeInputs(body.input, dimensions, current.limits))
        )
        const caller = yield* CurrentCaller
        const estimate = keyLimits.countsTokens(keyOf(caller)) ? yield* counting(inSlices(inputTokens(inputs))) : 0
        const refusal = admitRequest(keyLimits, { caller, model, stats }, () => estimate)
        if (refusal !== undefined) return yield* refusal
        if (byUpstream) {
          const { tokens, vectors } = yield* embedUpstream(accounts, current, {
            caller,
            model,
            inputs,
            dimensions: body.dimensions ?? undefined,
            stats
          })
          const counted = tokens ?? (yield* counting(inSlices(inputTokens(inputs))))
          stats.usage = { promptTokens: counted, completionTokens: 0, reasoningTokens: 0, cachedTokens: 0 }
          const asked = body.encoding_format === "base64" ? encoded : asNumbers
          const items = vectors.map((vector, index) =>
            `{"object":"embedding","index":${index},"embedding":${asked(vector)}}`
          )
          const usage = `{"prompt_tokens":${counted},"total_tokens":${counted}}`
          return HttpServerResponse.text(
            `{"object":"list","data":[${items.join(",")}],"model":${JSON.stringify(body.model)},"usage":${usage}}`,
            { contentType: "application/json" }
          )
        }
        const vectorizer = makeVectorizer(dimensions)
        const written = body.encoding_format === "base64" ? base64 : floats
        let tokens = 0
        stats.soFar = {
          usage: () => ({ promptTokens: tokens, completionTokens: 0, reasoningTokens: 0, cachedTokens: 0 }),
          estimated: () => true
        }

        const items = Stream.fromIterable(inputs).pipe(
          Stream.rechunk(1),
          Stream.zipWithIndex,
          Stream.mapEffect(([input, index]) =>
            Effect.map(counting(inSlices(embed(vectorizer, input))), (embedded) => {
              tokens += embedded.tokens
              const comma = index === 0 ? "" : ","
              return `${comma}{"object":"embedding","index":${index},"embedding":${written(embedded.vector)}}`
            })
          )
        )
        const tail = Stream.fromEffect(Effect.sync(() => {
          stats.usage = stats.soFar?.usage()
          return `],"model":${JSON.stringify(body.model)},"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}}`
        }))
        const text = Stream.succeed(`{"object":"list","data":[`).pipe(Stream.concat(items), Stream.concat(tail))
        return HttpServerResponse.stream(Stream.encodeText(text), { contentType: "application/json" })
      })
    )
  })
)
