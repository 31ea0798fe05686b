/**
 * Reads the body of a Responses request: which fields count against the limits, and how a large body is decoded
 * incrementally.
 */
import * as Schema from "effect/Schema"
import { responsesFamily } from "../../domain/families/responses.ts"
import type { JsonRecord } from "../../domain/json.ts"
import { each, own, type Pieces, within } from "../../http/decodePieces.ts"
import type { CountedFields } from "../../http/itemLimits.ts"
import { payloadReader } from "../../http/jsonBody.ts"
import { ContentPart } from "../shared/chatFamily.ts"
import { choiceTypes, NamespaceMember, ResponsesGroup, ResponseTool } from "./Api.ts"
import { InputItem, InputMessage, InputToolCall, knownTypes, ReasoningText } from "./items.ts"

const responsesCountedFields: CountedFields = {
  turns: ["input", "messages"],
  functions: "tools",
  stops: "stop",
  toolNames: "tool_choice.tools",
  maps: ["metadata"]
}

export const itemPlan: Pieces = ({ type }) => {
  if (typeof type === "string" && !knownTypes.has(type)) return "own"
  return type === "reasoning"
    ? { summary: each(ReasoningText), content: each(ReasoningText) }
    : { content: each(ContentPart), output: each(ContentPart), arguments: own }
}

const memberPieces = ({ type }: JsonRecord) => {
  if (type === "function") return { parameters: own, function: within({ parameters: own }) }
  return type === "custom" ? {} : "own"
}

const toolPieces: Pieces = (tool) =>
  tool["type"] === "namespace" ? { tools: each(NamespaceMember, memberPieces) } : memberPieces(tool)

/** The fields of a choice of another type are not read. */
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
const withList = { ...pieces, input: each(Schema.Union([Schema.String, InputItem]), itemPlan) }
const withItem = { ...pieces, input: within(itemPlan) }

export const responsesPlan: Pieces = ({ input }) => Array.isArray(input) ? withList : withItem

export const readResponseRequest = payloadReader(ResponsesGroup.endpoints.create, {
  family: responsesFamily,
  outline: responsesCountedFields,
  pieces: responsesPlan
})
