/**
 * Where a Responses body has what is counted, and how a large one is taken apart.
 */
import * as Schema from "effect/Schema"
import { each, own, type Pieces, within } from "../../http/decodePieces.ts"
import type { BodyOutline } from "../../http/itemLimits.ts"
import { ContentPart } from "../shared/contentParts.ts"
import { choiceTypes, ResponseTool } from "./Api.ts"
import { InputItem, InputMessage, InputToolCall, knownTypes, ReasoningText } from "./items.ts"

export const responsesOutline: BodyOutline = {
  turns: ["input", "messages"],
  stops: "stop",
  toolNames: "tool_choice.tools",
  maps: ["metadata"]
}

export const itemPieces: Pieces = (item) => {
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

/** What a choice of another type says is ignored. */
const choicePieces: Pieces = ({ type }) => typeof type === "string" && !choiceTypes.has(type) ? "own" : {}

const pieces = {
  messages: each(InputMessage, {
    content: each(ContentPart),
    tool_calls: each(InputToolCall, { function: within({ arguments: own }) })
  }),
  tools: each(ResponseTool, toolPieces),
  tool_choice: within(choicePieces),
  text: within({ format: within({ schema: own }) })
}
const withList = { ...pieces, input: each(Schema.Union([Schema.String, InputItem]), itemPieces) }
const withItem = { ...pieces, input: within(itemPieces) }

export const responsesPieces: Pieces = ({ input }) => Array.isArray(input) ? withList : withItem
