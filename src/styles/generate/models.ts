/**
 * The models as the content-generation style lists them.
 */
import type { Model } from "../../domain/models.ts"
import type { GenerateModel } from "./Api.ts"

/** Nominal: the upstream publishes no limits and says itself when a prompt is too long. Clients budget by these. */
const inputTokenLimit = 131_072
const outputTokenLimit = 8_192

/** A model's name without the collection that the vendor puts before it. */
export const modelName = (name: string): string => name.replace(/^models\//, "")

const displayName = (id: string): string =>
  id.split("-").map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(" ")

/** An entry of the list; `embeds`: whether there are embeddings. */
export const generateModel = (model: Model, embeds: boolean): typeof GenerateModel.Type => ({
  name: `models/${model.id}`,
  version: "1",
  displayName: displayName(model.id),
  description: model.search ? "Searches before it answers." : "",
  inputTokenLimit,
  outputTokenLimit,
  supportedGenerationMethods: [
    "generateContent",
    "streamGenerateContent",
    "countTokens",
    ...(embeds ? ["embedContent", "batchEmbedContents"] : [])
  ],
  thinking: model.reasoning
})
