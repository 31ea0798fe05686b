/**
 * The tools of a request: what they declare, which of them the model must call, and how a custom tool takes part.
 */
import type { ToolChoice, ToolDeclaration } from "../../domain/Conversation.ts"
import type { Faults } from "../../http/Faults.ts"
import type { ResponseRequest } from "./Api.ts"

/** What a custom tool takes: one text. */
const customParameters = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false
} as const

/** The arguments of a custom tool's call: it takes part like a function with one text argument. */
export const customArguments = (input: string): string => JSON.stringify({ input })

/** The text that a custom tool was called with. What is no object with that one text stays as the model wrote it. */
export const customInput = (args: string): string => {
  const value: unknown = JSON.parse(args)
  return typeof value === "object" && value !== null && "input" in value && typeof value.input === "string"
    ? value.input
    : args
}

export type Tool = Exclude<ResponseRequest["tools"], null | undefined>[number]

/** Functions in either form: flat, or as chat completions writes them. */
export const isFunctionTool = (tool: Tool): tool is Extract<Tool, { readonly type: "function" }> =>
  tool.type === "function"
export const isCustomTool = (tool: Tool): tool is Extract<Tool, { readonly type: "custom" }> => tool.type === "custom"

/** The fields of a declared function, however it is written. */
export const functionFields = (tool: Extract<Tool, { readonly type: "function" }>) =>
  "function" in tool ? tool.function : tool

const declaration = (tool: Tool): ReadonlyArray<ToolDeclaration> => {
  if (isFunctionTool(tool)) {
    const { description, name, parameters, strict } = functionFields(tool)
    return [{
      name,
      description: description ?? undefined,
      parameters: parameters ?? undefined,
      strict: strict ?? undefined
    }]
  }
  if (!isCustomTool(tool)) return []
  const { definition, syntax } = tool.format ?? {}
  const grammar = definition ? `The input follows this ${syntax ?? ""} grammar:\n${definition}` : undefined
  const description = [tool.description, grammar].filter((text) => text).join("\n\n")
  return [{
    name: tool.name,
    description: description === "" ? undefined : description,
    parameters: customParameters,
    strict: undefined
  }]
}

type Choice = Extract<ResponseRequest["tool_choice"], object>

/** The function or custom tool that a choice forces. */
const forcedName = (choice: Choice): string | undefined => {
  if ("function" in choice && typeof choice.function === "object" && choice.function !== null) {
    return "name" in choice.function && typeof choice.function.name === "string" ? choice.function.name : undefined
  }
  const named = choice.type === "function" || choice.type === "custom"
  return named && "name" in choice && typeof choice.name === "string" ? choice.name : undefined
}

const isAllowedTools = (choice: Choice): choice is Extract<Choice, { readonly type: "allowed_tools" }> =>
  choice.type === "allowed_tools"

/** The declared tools and the choice among them. */
export const decodeTools = (
  request: ResponseRequest,
  faults: Faults
): { readonly tools: ReadonlyArray<ToolDeclaration>; readonly toolChoice: ToolChoice } => {
  const tools = (request.tools ?? []).flatMap(declaration)
  const choice = request.tool_choice ?? "auto"
  if (choice === "auto") return { tools, toolChoice: { _tag: "Auto" } }
  if (choice === "none") return { tools, toolChoice: { _tag: "None" } }
  if (choice === "required") return { tools, toolChoice: { _tag: "Required" } }
  if (isAllowedTools(choice)) {
    const names = new Set(choice.tools.map((tool) => tool.name))
    const allowed = tools.filter((tool) => names.has(tool.name))
    if (allowed.length === 0) faults.at("tool_choice.tools", "names no declared function")
    return { tools: allowed, toolChoice: { _tag: choice.mode === "required" ? "Required" : "Auto" } }
  }
  const name = forcedName(choice)
  if (name === undefined) faults.at("tool_choice", `a tool of the type "${choice.type}" cannot be forced`.slice(0, 200))
  return { tools, toolChoice: { _tag: "Function", name: name ?? "" } }
}

/** Names of the custom tools: calls of them are written as text, not as JSON. */
export const customToolNames = (request: ResponseRequest): ReadonlySet<string> =>
  new Set((request.tools ?? []).filter(isCustomTool).map((tool) => tool.name))
