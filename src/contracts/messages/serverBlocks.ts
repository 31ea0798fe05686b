/**
 * Decodes the blocks of tools that the vendor runs (`server_tool_use`, `mcp_tool_use` and their results) to calls and results, and the
 * other blocks that have words.
 */
import { type Part, Text } from "../../domain/Conversation.ts"
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { call, result } from "../shared/conversation.ts"

const textOf = (value: unknown): string => typeof value === "string" ? value : ""

/** The fields with words, in the order in which they are read. */
const wordFields = [
  "title",
  "url",
  "tool_name",
  "text",
  "stdout",
  "stderr",
  "error_code",
  "content",
  "lines",
  "tool_references",
  "source"
]

/** The words of a result. Sealed and Base64 data has none. Its depth is bounded by the body's. */
const wordsOf = (value: unknown): string => {
  if (typeof value === "string") return value.trimEnd()
  if (Array.isArray(value)) return value.map(wordsOf).filter((words) => words !== "").join("\n")
  if (!isRecord(value)) return ""
  if (value["type"] === "text" && typeof value["data"] === "string") return value["data"]
  const words = wordFields.map((name) => wordsOf(value[name])).filter((words) => words !== "")
  const code = value["return_code"]
  return [...words, ...(typeof code === "number" ? [`[exit code ${code}]`] : [])].join("\n")
}

const isFailed = (block: JsonRecord): boolean => {
  const { content, is_error: isError } = block
  return isError === true || (isRecord(content) && textOf(content["type"]).endsWith("_error"))
}

const isServerCall = (type: unknown): boolean => type === "server_tool_use" || type === "mcp_tool_use"

/** The ids of the calls whose results are in the message too. */
export const answeredCalls = (blocks: ReadonlyArray<{ readonly type: string }>): ReadonlySet<string> => {
  const ids = new Set<string>()
  for (const block of blocks) {
    if (block.type.endsWith("_tool_result") && "tool_use_id" in block) ids.add(textOf(block.tool_use_id))
  }
  return ids
}

/** The parts of the block; `undefined` if it has no words. A call without a result is text, because servers refuse it. */
export const serverBlock = (
  block: JsonRecord & { readonly type: string },
  answered: ReadonlySet<string>
): ReadonlyArray<Part> | undefined => {
  if (isServerCall(block.type)) {
    const id = textOf(block["id"])
    const name = textOf(block["name"]) || block.type
    const input = isRecord(block["input"]) ? block["input"] : {}
    return answered.has(id) ? [call(id, name, input)] : [Text(`[${name} called with ${JSON.stringify(input)}]`)]
  }
  if (block.type.endsWith("_tool_result")) {
    const words = wordsOf(block["content"])
    return [result({ callId: textOf(block["tool_use_id"]), content: [Text(words)], isError: isFailed(block) })]
  }
  if (block.type === "tool_reference") return [Text(`Tool loaded: ${textOf(block["tool_name"])}`)]
  const words = wordsOf(block)
  return words === "" ? undefined : [Text(words)]
}
