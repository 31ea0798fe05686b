/**
 * Embeddings in the content-generation style: decodes the texts of contents and renders the replies.
 */
import * as Result from "effect/Result"
import { modelName } from "../../contracts/generate/models.ts"
import type { EmbedContentRequest } from "../../contracts/generate/schema.ts"
import type { VendorInputs } from "../../domain/Embeddings.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import type { JsonFields } from "../../domain/json.ts"
import type { Limits } from "../../domain/limits.ts"
import { type Cooperative, Slice } from "../../domain/stream/cooperative.ts"
import { type Embedded, streamVectors } from "../shared/embeddings/Embeddings.ts"
import { inputsFault } from "../shared/embeddings/inputs.ts"
import { defaultDimensions } from "../shared/embeddings/vector.ts"

type Request = typeof EmbedContentRequest.Type

/** The requests of one body. `field` returns the path of the request at an index, with a dot at its end. */
export interface EmbedRequests {
  /** The model in the URL's path. */
  readonly requested: string
  readonly requests: ReadonlyArray<Request>
  readonly field: (index: number) => string
  readonly limits: Limits
}

/** The text of each request, and the dimensions of all. */
export interface ContentTexts {
  readonly inputs: ReadonlyArray<string>
  readonly dimensions: number | undefined
}

const at = (field: string, message: string) => Result.fail(invalidRequest(`${field}: ${message}`, field))

/** The text of a content: its parts, joined by line breaks. Parts of other types are refused. */
function* textOf({ content }: Request, field: string, slice: Slice): Cooperative<Result.Result<string, GatewayError>> {
  const texts: Array<string> = []
  for (const [i, { text }] of (content.parts ?? []).entries()) {
    if (slice.add(1)) yield slice.end()
    if (typeof text !== "string") return at(`${field}content.parts[${i}]`, "Only text can be embedded")
    texts.push(text)
  }
  const text = texts.join("\n")
  return text === "" ? at(`${field}content.parts`, "must not be empty") : Result.succeed(text)
}

/** Decodes the texts in order. Fails with the first fault or exceeded limit. */
export function* contentTexts(
  { field, limits, requested, requests }: EmbedRequests
): Cooperative<Result.Result<ContentTexts, GatewayError>> {
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

/** What servers call the vendor's tasks. */
const inputTypes: ReadonlyMap<string, string> = new Map([
  ["RETRIEVAL_DOCUMENT", "document"],
  ["RETRIEVAL_QUERY", "query"],
  ["CODE_RETRIEVAL_QUERY", "query"],
  ["QUESTION_ANSWERING", "query"],
  ["FACT_VERIFICATION", "query"]
])

const isTask = (taskType: string | null | undefined): taskType is string =>
  taskType !== undefined && taskType !== null && taskType !== "" && taskType !== "TASK_TYPE_UNSPECIFIED"

/** Tasks and titles, for servers of this contract. The task that all requests have is also an `input_type`. */
export const vendorInputs = (
  { field, requests }: Pick<EmbedRequests, "requests" | "field">
): VendorInputs | undefined => {
  const task = requests[0]?.taskType ?? undefined
  const isOfAll = requests.every(({ taskType }) => (taskType ?? undefined) === task)
  const paths = { task: new Array<string>(), title: new Array<string>() }
  const fields = requests.map(({ taskType, title }, i): JsonFields => {
    if (isTask(taskType)) paths.task.push(`${field(i)}taskType`)
    if (title) paths.title.push(`${field(i)}title`)
    return { ...(isTask(taskType) ? { taskType } : {}), ...(title ? { title } : {}) }
  })
  if (paths.task.length === 0 && paths.title.length === 0) return undefined
  const inputType = isOfAll ? inputTypes.get(task ?? "") : undefined
  return { family: "generate", fields, paths: paths.title, task: { inputType, paths: paths.task } }
}

const values = (vector: ArrayLike<number>): string => `{"values":[${Array.prototype.join.call(vector, ",")}]}`

const usage = (tokens: number): string => `,"usageMetadata":{"promptTokenCount":${tokens}}}`

/** Renders a reply with one embedding. */
export const embeddingReply = (embedded: Embedded) => streamVectors(embedded, `{"embedding":`, values, usage)

/** Renders a reply with a list of embeddings. */
export const embeddingsReply = (embedded: Embedded) =>
  streamVectors(embedded, `{"embeddings":[`, values, (tokens) => `]${usage(tokens)}`)
