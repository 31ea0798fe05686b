/**
 * The chat-completions style.
 */
import { functions } from "../shared/ask.ts"
import type { Ask, Asked, Style } from "../Style.ts"
import { ChatGroup } from "./Api.ts"

export const chat = {
  group: ChatGroup,
  basePaths: ["/v1"],
  operation: "chat",
  ask: (ask: Ask): Asked => ["/v1/chat/completions", {
    model: ask.model,
    stream: ask.stream,
    messages: [{ role: "user", content: ask.text }],
    tools: functions(ask).map((tool) => ({ type: "function", function: tool }))
  }]
} satisfies Style
