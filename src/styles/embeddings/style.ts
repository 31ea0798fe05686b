/**
 * Embeddings.
 */
import type { Style } from "../Style.ts"
import { EmbeddingsGroup } from "./Api.ts"

export const embeddings = {
  group: EmbeddingsGroup,
  basePaths: ["/v1"],
  operation: "embeddings"
} satisfies Style
