/**
 * Reads the body of a Responses request: which fields count against the limits, and how a large body is decoded
 * incrementally.
 */
import * as Schema from "effect/Schema"
import { responsesFamily } from "../../domain/families/responses.ts"
import type { JsonRecord } from "../../domain/json.ts"
import type { CountedFields } from "../../http/bodyLimits.ts"
import { payloadReader } from "../../http/jsonBody.ts"
import { type DecodePlan, fields, items, opaque } from "../../http/planDecoder.ts"
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

export const itemPlan: DecodePlan = ({ type }) => {
  if (typeof type === "string" && !knownTypes.has(type)) return "opaque"
  return type === "reasoning"
    ? { summary: items(ReasoningText), content: items(ReasoningText) }
    : { content: items(ContentPart), output: items(ContentPart), arguments: opaque }
}

const memberPieces = ({ type }: JsonRecord) => {
  if (type === "function") return { parameters: opaque, function: fields({ parameters: opaque }) }
  return type === "custom" ? {} : "opaque"
}

const toolPieces: DecodePlan = (tool) =>
  tool["type"] === "namespace" ? { tools: items(NamespaceMember, memberPieces) } : memberPieces(tool)

/** The fields of a choice of another type are not read. */
const choicePieces: DecodePlan = ({ type }) => typeof type === "string" && !choiceTypes.has(type) ? "opaque" : {}

const pieces = {
  messages: items(InputMessage, {
    content: items(ContentPart),
    tool_calls: items(InputToolCall, { function: fields({ arguments: opaque }) })
  }),
  tools: items(ResponseTool, toolPieces),
  tool_choice: fields(choicePieces),
  text: fields({ format: fields({ schema: opaque }) })
}
const withList = { ...pieces, input: items(Schema.Union([Schema.String, InputItem]), itemPlan) }
const withItem = { ...pieces, input: fields(itemPlan) }

export const responsesPlan: DecodePlan = ({ input }) => Array.isArray(input) ? withList : withItem

const options = { family: responsesFamily, outline: responsesCountedFields, pieces: responsesPlan }

export const readResponseRequest = payloadReader(ResponsesGroup.endpoints.create, options)

export const readCountRequest = payloadReader(ResponsesGroup.endpoints.countTokens, options)
