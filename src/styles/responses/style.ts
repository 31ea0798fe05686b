/**
 * The Responses style.
 */
import { functions } from "../shared/ask.ts"
import type { Ask, Asked, Style } from "../Style.ts"
import { ResponsesGroup } from "./Api.ts"

export const responses = {
  group: ResponsesGroup,
  basePaths: ["/v1"],
  operation: "chat",
  ask: (ask: Ask): Asked => ["/v1/responses", {
    model: ask.model,
    stream: ask.stream,
    input: ask.text,
    tools: functions(ask).map((tool) => ({ type: "function", ...tool }))
  }]
} satisfies Style
