/** The reply of an OpenAI-compatible server to a request for embeddings. */
import type { EmbeddingsReply } from "../../domain/Embeddings.ts"
import { isRecord } from "../../domain/json.ts"
import { usageOf } from "../shared/usage.ts"
import { isVector } from "../shared/vectors.ts"

/** Reads the reply to an embeddings request; `undefined` unless it has one vector per input. */
export const readEmbeddings = (body: unknown, inputs: number): EmbeddingsReply | undefined => {
  if (!isRecord(body) || !Array.isArray(body["data"]) || body["data"].length !== inputs) return undefined
  const vectors: Array<ReadonlyArray<number>> = []
  for (const [place, item] of body["data"].entries()) {
    if (!isRecord(item) || !isVector(item["embedding"])) return undefined
    // Servers that omit the index answer in order.
    const index = typeof item["index"] === "number" ? item["index"] : place
    if (!Number.isInteger(index) || index < 0 || index >= inputs || vectors[index] !== undefined) return undefined
    vectors[index] = item["embedding"]
  }
  const usage = body["usage"]
  const tokens = isRecord(usage) ? usage["prompt_tokens"] : undefined
  return {
    vectors,
    tokens: typeof tokens === "number" && Number.isFinite(tokens) ? tokens : undefined,
    ...(isRecord(usage) ? { details: usageOf(usage).details } : {})
  }
}
