/**
 * Entries of the content-generation style's model list.
 */
import type { Model } from "../../domain/models.ts"
import type { GenerateModel } from "./Api.ts"

/** Nominal limits, which clients use as a budget. The upstream publishes no limits and refuses too long prompts itself. */
const inputTokenLimit = 131_072
const outputTokenLimit = 8_192

/** A model's name without the vendor's prefix `models/`. */
export const modelName = (name: string): string => name.replace(/^models\//, "")

const displayName = (id: string): string =>
  id.split("-").map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(" ")

/** An entry of the list. `embeds` is true when the gateway serves embeddings. */
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
  thinking: model.reasoning !== false
})
