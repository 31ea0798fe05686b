/**
 * Entries of the list of models of the content-generation contract.
 */
import type { ModelFacts } from "../../domain/modelFacts.ts"
import type { Model } from "../../domain/models.ts"
import type { GenerateModel } from "./schema.ts"

/** Nominal limits where no fact is known, which clients use as a budget. The upstream refuses too long prompts itself. */
const inputTokenLimit = 131_072
const outputTokenLimit = 8_192

/** A model's name without the vendor's prefix `models/`. */
export const modelName = (name: string): string => name.replace(/^models\//, "")

const displayName = (id: string): string =>
  id.split("-").map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(" ")

/** An entry of the list: what is known of the model, else nominal. `embeds` is true when the gateway serves embeddings. */
export const generateModel = (model: Model, facts: ModelFacts, embeds: boolean): typeof GenerateModel.Type => ({
  name: `models/${model.id}`,
  version: "1",
  displayName: facts.display_name ?? displayName(model.id),
  description: facts.description ?? (model.search ? "Searches before it answers." : ""),
  inputTokenLimit: facts.context_window ?? inputTokenLimit,
  outputTokenLimit: facts.max_output_tokens ?? outputTokenLimit,
  supportedGenerationMethods: [
    "generateContent",
    "streamGenerateContent",
    "countTokens",
    ...(embeds ? ["embedContent", "batchEmbedContents"] : [])
  ],
  thinking: facts.efforts === undefined ? model.reasoning !== false : facts.efforts.length > 0
})
