/**
 * The messages style.
 */
import { functions } from "../shared/ask.ts"
import type { Ask, Asked, Style } from "../Style.ts"
import { MessagesGroup } from "./Api.ts"

export const messages = {
  group: MessagesGroup,
  basePaths: ["/v1"],
  operation: "chat",
  ask: (ask: Ask): Asked => ["/v1/messages", {
    model: ask.model,
    stream: ask.stream,
    max_tokens: 8192,
    messages: [{ role: "user", content: ask.text }],
    tools: functions(ask).map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters }))
  }]
} satisfies Style
