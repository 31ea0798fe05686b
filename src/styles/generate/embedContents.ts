/**
 * Embeddings in the content-generation style: the texts of contents, and the replies.
 */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import type { Limits } from "../../domain/limits.ts"
import { Slice, type Sliced } from "../../domain/stream/slices.ts"
import { inputsFault } from "../shared/embeddings/inputs.ts"
import type { Embedded } from "../shared/embeddings/makeEmbeddings.ts"
import { defaultDimensions } from "../shared/embeddings/vector.ts"
import type { EmbedContentRequest } from "./Api.ts"
import { modelName } from "./models.ts"

type Request = typeof EmbedContentRequest.Type

/** What is to be embedded; `field` is what stands before the fields of the request at a place. */
export interface ContentsAsked {
  /** The model of the path. */
  readonly requested: string
  readonly requests: ReadonlyArray<Request>
  readonly field: (place: number) => string
  readonly limits: Limits
}

/** Texts, a request each, and the dimensions that all of them ask for. */
export interface ContentTexts {
  readonly inputs: ReadonlyArray<string>
  readonly dimensions: number | undefined
}

const at = (field: string, message: string) => Result.fail(invalidRequest(`${field}: ${message}`, field))

/** The text of a content: its parts, a line break between them. Other parts than text are refused, not passed over. */
function* textOf({ content }: Request, field: string, slice: Slice): Sliced<Result.Result<string, GatewayError>> {
  const texts: Array<string> = []
  for (const [i, { text }] of (content.parts ?? []).entries()) {
    if (slice.add(1)) yield slice.end()
    if (typeof text !== "string") return at(`${field}content.parts[${i}]`, "Only text can be embedded")
    texts.push(text)
  }
  const text = texts.join("\n")
  return text === "" ? at(`${field}content.parts`, "must not be empty") : Result.succeed(text)
}

/** The texts in order. Fails at the first request that cannot be answered, and at the first limit that is exceeded. */
export function* contentTexts(
  { field, limits, requested, requests }: ContentsAsked
): Sliced<Result.Result<ContentTexts, GatewayError>> {
  const slice = new Slice()
  const dimensions = requests[0]?.outputDimensionality ?? undefined
  const size = {
    count: requests.length,
    chars: 0,
    dimensions: dimensions ?? defaultDimensions,
    fields: { inputs: "requests", dimensions: `${field(0)}outputDimensionality` }
  }
  const tooMany = inputsFault(size, limits)
  if (tooMany !== undefined) return Result.fail(tooMany)
  const inputs: Array<string> = []
  let chars = 0
  for (const [i, request] of requests.entries()) {
    const before = field(i)
    if (slice.add(1)) yield slice.end()
    if (typeof request.model === "string" && modelName(request.model) !== requested) {
      return at(`${before}model`, "must be the model of the path")
    }
    if ((request.outputDimensionality ?? undefined) !== dimensions) {
      return at(`${before}outputDimensionality`, "must be the same in all requests")
    }
    const text = yield* textOf(request, before, slice)
    if (Result.isFailure(text)) return Result.fail(text.failure)
    chars += text.success.length
    inputs.push(text.success)
  }
  const fields = { inputs: requests.length === 1 ? `${field(0)}content` : "requests", dimensions: "" }
  const tooLong = inputsFault({ ...size, chars, fields }, limits)
  return tooLong === undefined ? Result.succeed({ inputs, dimensions }) : Result.fail(tooLong)
}

const values = (vector: ArrayLike<number>): string => `{"values":[${Array.prototype.join.call(vector, ",")}]}`

/** JSON that is written as the vectors come. */
const reply = (begin: string, items: Stream.Stream<string>, close: string, { end }: Embedded) => {
  const tail = Effect.sync(() => `${close},"usageMetadata":{"promptTokenCount":${end()}}}`)
  const text = Stream.succeed(begin).pipe(Stream.concat(items), Stream.concat(Stream.fromEffect(tail)))
  return HttpServerResponse.stream(Stream.encodeText(text), { contentType: "application/json" })
}

/** The reply with one embedding. */
export const embeddingReply = (embedded: Embedded): HttpServerResponse.HttpServerResponse =>
  reply(`{"embedding":`, Stream.map(embedded.vectors, values), "", embedded)

/** The reply with a list of embeddings. */
export const embeddingsReply = (embedded: Embedded): HttpServerResponse.HttpServerResponse => {
  const items = embedded.vectors.pipe(
    Stream.zipWithIndex,
    Stream.map(([vector, index]) => `${index === 0 ? "" : ","}${values(vector)}`)
  )
  return reply(`{"embeddings":[`, items, "]", embedded)
}
