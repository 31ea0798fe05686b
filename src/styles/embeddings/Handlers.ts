/**
 * The embeddings endpoint at work.
 */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { inSlices } from "../../config/inSlices.ts"
import { GatewayError } from "../../domain/GatewayError.ts"
import { own } from "../../http/decodePieces.ts"
import { businessEdge } from "../../http/edge.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import type { BodyOutline } from "../../http/itemLimits.ts"
import { jsonBody } from "../../http/jsonBody.ts"
import { embeddingModel, findModel, makeAnswers } from "../shared/answers.ts"
import { makeEmbeddings } from "../shared/embeddings/makeEmbeddings.ts"
import { defaultDimensions } from "../shared/embeddings/vector.ts"
import { OpenAiEdge } from "../shared/openaiEdges.ts"
import { EmbeddingsBody, EmbeddingsGroup } from "./Api.ts"
import { decodeInputs } from "./decode.ts"

/** The inputs are counted by `decodeInputs`. */
const embeddingsOutline: BodyOutline = { turns: [], stops: "" }

const readBody = jsonBody(EmbeddingsBody, { outline: embeddingsOutline, pieces: { input: own } })

const floats = (vector: ArrayLike<number>): string => `[${Array.prototype.join.call(vector, ",")}]`

/** Numbers as the Base64 of their little-endian 32-bit floats. */
const base64 = (vector: ArrayLike<number>): string => {
  const bytes = new DataView(new ArrayBuffer(4 * vector.length))
  for (let i = 0; i < vector.length; i++) bytes.setFloat32(4 * i, vector[i]!, true)
  return `"${Buffer.from(bytes.buffer).toString("base64")}"`
}

/** Serves the group; errors are rendered by its edge. */
export const EmbeddingsHandlers = groupRoutes(
  EmbeddingsGroup,
  Effect.gen(function*() {
    const { begun } = yield* makeAnswers
    const embeddings = yield* makeEmbeddings

    return {
      create: Effect.fnUntraced(function*({ request }) {
        const asked = yield* begun
        const { caller, config, stats } = asked
        const unavailable = embeddings.unavailable(config)
        if (unavailable !== undefined) return yield* unavailable
        const body = yield* readBody(request)
        const model = findModel(asked, body.model, embeddingModel)
        if (model instanceof GatewayError) return yield* model
        const dimensions = body.dimensions ?? undefined
        const inputs = yield* Effect.fromResult(
          yield* inSlices(decodeInputs(body.input, dimensions ?? defaultDimensions, config.limits))
        )
        const embedded = yield* embeddings.embed({ caller, config, model, stats, inputs, dimensions })

        const written = body.encoding_format === "base64" ? base64 : floats
        const items = embedded.vectors.pipe(
          Stream.zipWithIndex,
          Stream.map(([vector, index]) =>
            `${index === 0 ? "" : ","}{"object":"embedding","index":${index},"embedding":${written(vector)}}`
          )
        )
        const tail = Stream.fromEffect(Effect.sync(() => {
          const tokens = embedded.end()
          return `],"model":${JSON.stringify(body.model)},"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}}`
        }))
        const text = Stream.succeed(`{"object":"list","data":[`).pipe(Stream.concat(items), Stream.concat(tail))
        return HttpServerResponse.stream(Stream.encodeText(text), { contentType: "application/json" })
      })
    } satisfies HandlersOf<typeof EmbeddingsGroup>
  })
).pipe(Layer.provide(Layer.effect(OpenAiEdge, businessEdge(OpenAiEdge.facts))))
