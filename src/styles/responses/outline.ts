/**
 * Where a Responses body has what is counted, and how a large one is taken apart.
 */
import * as Schema from "effect/Schema"
import { each, own, type Pieces, within } from "../../http/decodePieces.ts"
import type { BodyOutline } from "../../http/itemLimits.ts"
import { ResponseTool } from "./Api.ts"
import { ContentPart, InputItem, InputMessage, InputToolCall, knownTypes, ReasoningText } from "./items.ts"

export const responsesOutline: BodyOutline = {
  turns: ["input", "messages"],
  stops: "stop",
  toolNames: "tool_choice.tools",
  maps: ["metadata"]
}

const itemPieces: Pieces = (item) => {
  const { type } = item
  if (typeof type === "string" && !knownTypes.has(type)) return "own"
  return type === "reasoning"
    ? { summary: each(ReasoningText), content: each(ReasoningText) }
    : { content: each(ContentPart), output: each(ContentPart), arguments: own }
}

const toolPieces: Pieces = (tool) => {
  const { type } = tool
  if (type === "function") return { parameters: own, function: within({ parameters: own }) }
  return type === "custom" ? {} : "own"
}

export const responsesPieces: Pieces = {
  input: each(Schema.Union([Schema.String, InputItem]), itemPieces),
  messages: each(InputMessage, {
    content: each(ContentPart),
    tool_calls: each(InputToolCall, { function: within({ arguments: own }) })
  }),
  tools: each(ResponseTool, toolPieces),
  text: within({ format: within({ schema: own }) })
}
