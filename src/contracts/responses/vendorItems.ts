/**
 * Decodes the items of the vendor's own types: calls of its tools, their results, and what its servers did. Words and pictures stay, in
 * the role that they belong to.
 */
import { type CallPart, type ResultPart, Text } from "../../domain/Conversation.ts"
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { call, type Content, image, imageAt, result } from "../shared/conversation.ts"
import type { Faults } from "../shared/Faults.ts"
import { calledTool, clientTools } from "./clientTools.ts"
import type { ToolNames } from "./toolNames.ts"

/** The text of the message that an unreadable compaction becomes. */
export const unreadable = "An earlier part of this conversation was compacted. Its summary cannot be read here."

/** What an item says. An item of the vendor's servers is a call and its result. */
export type Said = CallPart | ResultPart | { readonly role: "user" | "assistant" | "developer"; readonly text: string }

interface Context {
  readonly field: string
  readonly names: ToolNames
  readonly faults: Faults
  /** The ids of calls by the ids of their items: some results have the latter. */
  readonly callIds: ReadonlyMap<string, string>
}

const textOf = (value: unknown): string => typeof value === "string" ? value : ""

const records = (value: unknown): ReadonlyArray<JsonRecord> => Array.isArray(value) ? value.filter(isRecord) : []

/** Text as it is, other values as JSON. */
const written = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value)

/** The id by which the result of an item is linked to its call. */
const idOf = (item: JsonRecord, { field }: Context): string =>
  textOf(item["call_id"]) || textOf(item["id"]) || field.replace(/\W+/g, "_")

/** A call that the vendor's servers made, and its result. */
const served = (
  item: JsonRecord,
  context: Context,
  name: string,
  args: string | object,
  content: ReadonlyArray<Content>,
  isError = false
): ReadonlyArray<Said> => {
  const callId = idOf(item, context)
  return [call(callId, name, args), result({ callId, name, content, isError })]
}

const lines = (texts: ReadonlyArray<string>): string => texts.filter((text) => text !== "").join("\n")

/** The output of one command of a shell. */
const commandOutput = ({ outcome, stderr, stdout }: JsonRecord): string => {
  const end = isRecord(outcome) && outcome["type"] === "timeout"
    ? "[timed out]"
    : isRecord(outcome) && typeof outcome["exit_code"] === "number"
    ? `[exit code ${outcome["exit_code"]}]`
    : ""
  return lines([textOf(stdout).trimEnd(), textOf(stderr).trimEnd(), end])
}

/** A picture of a `data:` URL, an address, or bare Base64 in the format. */
const picture = (value: string, format: string): Content =>
  /^[a-z]+:/.test(value) ? imageAt(value) : image({ data: value, mediaType: `image/${format || "png"}` })

const screenshot = (output: unknown, { faults, field }: Context): ReadonlyArray<Content> => {
  const url = isRecord(output) ? textOf(output["image_url"]) : ""
  if (url !== "") return [imageAt(url)]
  faults.noteIgnored(`${field}.output`)
  return [Text("[screenshot omitted]")]
}

const searchArguments = ({ action }: JsonRecord): JsonRecord => {
  if (!isRecord(action)) return {}
  const { sources: _, type, ...rest } = action
  return type === "search" ? rest : { type, ...rest }
}

const sources = ({ action, status }: JsonRecord): string =>
  lines(records(isRecord(action) ? action["sources"] : undefined).map(({ url }) => textOf(url))) ||
  textOf(status) || "completed"

const mcpError = (error: unknown): string =>
  isRecord(error) && typeof error["message"] === "string" ? error["message"] : written(error)

const clientCall = (
  item: JsonRecord & { readonly type: string },
  context: Context
): ReadonlyArray<Said> | undefined => {
  const type = calledTool(item.type)
  if (type === undefined) return undefined
  const args = clientTools[type].arguments(item)
  if (args === undefined) {
    const name = type === "apply_patch" ? "operation" : type === "tool_search" ? "arguments" : "action"
    context.faults.at(`${context.field}.${name}`, "must be an object")
  }
  return [call(idOf(item, context), context.names.of({ type }), args)]
}

const output = (
  item: JsonRecord,
  context: Context,
  content: ReadonlyArray<Content>,
  isError = false
): ReadonlyArray<Said> => {
  const id = idOf(item, context)
  return [result({ callId: context.callIds.get(id) ?? id, content, isError })]
}

/** The names of the tools that a search found. */
const foundTools = (tools: unknown): string => {
  const names = records(tools).map((tool) => textOf(tool["name"]) || textOf(tool["type"]))
  return names.length === 0 ? "No tools found." : `Tools found: ${names.join(", ")}`
}

/** What the item says; `undefined` if nothing of it can be carried. */
export const vendorItem = (
  item: JsonRecord & { readonly type: string },
  context: Context
): ReadonlyArray<Said> | undefined => {
  switch (item.type) {
    case "local_shell_call_output":
      return output(item, context, [Text(written(item["output"]))])
    case "shell_call_output":
      return output(item, context, [
        Text(
          Array.isArray(item["output"])
            ? records(item["output"]).map(commandOutput).join("\n\n")
            : written(item["output"])
        )
      ])
    case "apply_patch_call_output": {
      const isFailed = item["status"] === "failed"
      return output(item, context, [Text(textOf(item["output"]) || (isFailed ? "failed" : "completed"))], isFailed)
    }
    case "computer_call_output":
      return output(item, context, screenshot(item["output"], context))
    case "tool_search_output":
      return output(item, context, [Text(foundTools(item["tools"]))])
    case "program":
      return [call(idOf(item, context), "program", { code: item["code"] })]
    case "program_output":
      return output(item, context, [Text(written(item["result"]))])
    case "mcp_call": {
      const error = mcpError(item["error"])
      const content = [Text(error || written(item["output"]))]
      return served(item, context, textOf(item["name"]) || "mcp", written(item["arguments"]), content, error !== "")
    }
    case "mcp_list_tools": {
      const error = mcpError(item["error"])
      const content = [Text(error || written(item["tools"]))]
      return served(item, context, "mcp_list_tools", { server_label: item["server_label"] }, content, error !== "")
    }
    case "mcp_approval_request":
      return [{
        role: "assistant",
        text: `[approval asked for ${textOf(item["name"])} with ${written(item["arguments"])}]`
      }]
    case "mcp_approval_response": {
      const reason = textOf(item["reason"])
      return [{ role: "user", text: `[${item["approve"] === true ? "approved" : "denied"}${reason && `: ${reason}`}]` }]
    }
    case "code_interpreter_call": {
      const content = records(item["outputs"]).map((each): Content =>
        each["type"] === "image" ? imageAt(textOf(each["url"])) : Text(textOf(each["logs"]))
      )
      return served(item, context, "code_interpreter", { code: item["code"] }, content)
    }
    case "file_search_call": {
      const found = records(item["results"]).map((each) => lines([textOf(each["filename"]), textOf(each["text"])]))
      return served(item, context, "file_search", { queries: item["queries"] }, [Text(found.join("\n\n"))])
    }
    case "web_search_call":
      return served(item, context, "web_search", searchArguments(item), [Text(sources(item))])
    case "image_generation_call": {
      const made = textOf(item["result"])
      const content = made === "" ? Text(textOf(item["status"])) : picture(made, textOf(item["output_format"]))
      return served(item, context, "image_generation", { prompt: item["revised_prompt"] }, [content])
    }
    case "compaction":
    case "compaction_summary": {
      const text = textOf(item["summary"]) || textOf(item["content"]) || textOf(item["text"])
      if (text !== "") return [{ role: "assistant", text }]
      context.faults.noteIgnored(context.field)
      return [{ role: "developer", text: unreadable }]
    }
    // The tools are declared.
    case "additional_tools":
    case "compaction_trigger":
      return []
    case "configuration_update":
      context.faults.noteIgnored(context.field)
      return []
    default:
      if (calledTool(item.type) !== undefined) return clientCall(item, context)
      return item.type.endsWith("_output") && typeof item["call_id"] === "string"
        ? output(item, context, [Text(written(item["output"]))])
        : undefined
  }
}
