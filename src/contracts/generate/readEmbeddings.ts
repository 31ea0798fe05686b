/** Embeddings of a content-generation server: the body of a batch, and its reply. */
import type { EmbeddingsInput, EmbeddingsReply } from "../../domain/Embeddings.ts"
import { isRecord, type Json, type JsonFields } from "../../domain/json.ts"
import { isVector } from "../shared/vectors.ts"

/** The body of a request for the vectors of texts; `undefined` for token ids, which the protocol does not have. */
export const embedBody = (
  model: string,
  { dimensions, inputs, own }: EmbeddingsInput
): JsonFields | undefined => {
  const requests: Array<Json> = []
  const fields = own?.family === "generate" ? own.fields : []
  for (const [i, input] of inputs.entries()) {
    if (typeof input !== "string") return undefined
    requests.push({
      model,
      content: { parts: [{ text: input }] },
      ...fields[i],
      ...(dimensions === undefined ? {} : { outputDimensionality: dimensions })
    })
  }
  return { requests }
}

/** Reads the reply to a batch; `undefined` unless it has one vector per input. */
export const readEmbeddings = (body: unknown, inputs: number): EmbeddingsReply | undefined => {
  const list: unknown = isRecord(body) ? body["embeddings"] : undefined
  if (!isRecord(body) || !Array.isArray(list) || list.length !== inputs) return undefined
  const vectors: Array<ReadonlyArray<number>> = []
  for (const item of list) {
    const values: unknown = isRecord(item) ? item["values"] : undefined
    if (!isVector(values)) return undefined
    vectors.push(values)
  }
  const usage = body["usageMetadata"]
  const tokens = isRecord(usage) ? usage["promptTokenCount"] : undefined
  return { vectors, tokens: typeof tokens === "number" && Number.isFinite(tokens) ? tokens : undefined }
}
