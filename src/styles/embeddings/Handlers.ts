/**
 * Handler of the embeddings endpoint.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { runCooperatively } from "../../config/clock/cooperative.ts"
import { familyOf } from "../../contracts/shared/requestSchema.ts"
import { businessMiddleware } from "../../http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { jsonRequest } from "../../http/jsonBody.ts"
import { CurrentEmbeddings, streamVectors } from "../shared/embeddings/Embeddings.ts"
import { defaultDimensions } from "../shared/embeddings/vector.ts"
import { OpenAiMiddleware } from "../shared/middleware.ts"
import { makeResponder } from "../shared/responder.ts"
import { EmbeddingsBody, EmbeddingsGroup } from "./Api.ts"
import { decodeInputs } from "./decode.ts"

export const embeddingsFamily = familyOf(EmbeddingsBody, { name: "openai embeddings", open: true })

/** No field of the body counts: `decodeInputs` counts the inputs. */
const readEmbeddings = jsonRequest(EmbeddingsBody, { family: embeddingsFamily })

const floats = (vector: ArrayLike<number>): string => `[${Array.prototype.join.call(vector, ",")}]`

/** Numbers as the Base64 of their little-endian 32-bit floats. */
const base64 = (vector: ArrayLike<number>): string => {
  const bytes = new DataView(new ArrayBuffer(4 * vector.length))
  for (let i = 0; i < vector.length; i++) bytes.setFloat32(4 * i, vector[i]!, true)
  return `"${Buffer.from(bytes.buffer).toString("base64")}"`
}

export const EmbeddingsHandlers = groupRoutes(
  EmbeddingsGroup,
  Effect.gen(function*() {
    const responder = yield* makeResponder
    const embeddings = yield* CurrentEmbeddings

    return {
      create: Effect.fnUntraced(function*({ request }) {
        const current = yield* responder.currentRequest
        const { caller, request: running } = current
        const unavailable = embeddings.unavailable()
        if (unavailable !== undefined) return yield* unavailable
        const { body, serverFields } = yield* readEmbeddings(request)
        const model = yield* responder.findModel(current, body.model, "embeddings")
        const dimensions = body.dimensions ?? undefined
        const inputs = yield* Effect.fromResult(
          yield* runCooperatively(decodeInputs(body.input, dimensions ?? defaultDimensions, current.limits))
        )
        const embedded = yield* embeddings.embed({
          caller,
          model,
          request: running,
          inputs,
          dimensions,
          fields: serverFields,
          own: undefined
        })

        const numbers = body.encoding_format === "base64" ? base64 : floats
        return streamVectors(
          embedded,
          `{"object":"list","data":[`,
          (vector, index) => `{"object":"embedding","index":${index},"embedding":${numbers(vector)}}`,
          (tokens) =>
            `],"model":${JSON.stringify(body.model)},"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}}`
        )
      })
    } satisfies HandlersOf<typeof EmbeddingsGroup>
  })
).pipe(Layer.provide(Layer.effect(OpenAiMiddleware, businessMiddleware(OpenAiMiddleware.facts))))
