/**
 * The model list of the chat-completions family.
 */
import type { Style } from "../Style.ts"
import { ModelsGroup } from "./Api.ts"

export const models = {
  group: ModelsGroup,
  basePaths: ["/v1"],
  operation: "chat"
} satisfies Style
