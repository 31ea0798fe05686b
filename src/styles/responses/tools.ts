/**
 * Decodes the tools of a request and the choice among them. A custom tool is declared as a function with one text argument.
 */
import type { ToolChoice, ToolDeclaration } from "../../domain/Conversation.ts"
import type { Faults } from "../../http/Faults.ts"
import { declaration, toolChoices } from "../shared/conversation.ts"
import type { ResponseRequest } from "./Api.ts"

/** The parameters of a custom tool. */
const customParameters = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false
} as const

/** The arguments of a custom tool's call, as JSON text. */
export const customArguments = (input: string): string => JSON.stringify({ input })

/** The input of a custom tool's call. Arguments of another shape are returned as the model wrote them. */
export const customInput = (args: string): string => {
  const value: unknown = JSON.parse(args)
  return typeof value === "object" && value !== null && "input" in value && typeof value.input === "string"
    ? value.input
    : args
}

export type Tool = NonNullable<ResponseRequest["tools"]>[number]
type FunctionTool = Extract<Tool, { readonly type: "function" }>
type CustomTool = Extract<Tool, { readonly type: "custom" }>

export const isFunctionTool = (tool: Tool): tool is FunctionTool => tool.type === "function"

const isCustomTool = (tool: Tool): tool is CustomTool => tool.type === "custom"

/** The fields of a function, sent flat or nested as in chat completions. */
export const functionFields = (tool: FunctionTool) => "function" in tool ? tool.function : tool

const customDeclaration = ({ description, format, name }: CustomTool): ToolDeclaration => {
  const { definition, syntax } = format ?? {}
  const grammar = definition ? `The input follows this ${syntax ?? ""} grammar:\n${definition}` : undefined
  const text = [description, grammar].filter(Boolean).join("\n\n")
  return declaration({ name, description: text === "" ? undefined : text, parameters: customParameters })
}

const declarations = (tool: Tool): ReadonlyArray<ToolDeclaration> =>
  isFunctionTool(tool) ? [declaration(functionFields(tool))] : isCustomTool(tool) ? [customDeclaration(tool)] : []

type Choice = Extract<ResponseRequest["tool_choice"], object>

/** The function or custom tool that a choice forces. */
const forcedName = (choice: Choice): string | undefined => {
  if ("function" in choice && typeof choice.function === "object" && choice.function !== null) {
    return "name" in choice.function && typeof choice.function.name === "string" ? choice.function.name : undefined
  }
  const isTool = choice.type === "function" || choice.type === "custom"
  return isTool && "name" in choice && typeof choice.name === "string" ? choice.name : undefined
}

const isAllowedTools = (choice: Choice): choice is Extract<Choice, { readonly type: "allowed_tools" }> =>
  choice.type === "allowed_tools"

/** The tools that may be called and the choice among them. */
export const decodeTools = (
  request: ResponseRequest,
  faults: Faults
): { readonly tools: ReadonlyArray<ToolDeclaration>; readonly toolChoice: ToolChoice } => {
  const tools = (request.tools ?? []).flatMap(declarations)
  const choice = request.tool_choice ?? "auto"
  if (typeof choice === "string") return { tools, toolChoice: toolChoices[choice] }
  if (isAllowedTools(choice)) {
    const names = new Set(choice.tools.map((tool) => tool.name))
    const allowed = tools.filter((tool) => names.has(tool.name))
    if (allowed.length === 0) faults.at("tool_choice.tools", "names no declared function")
    return { tools: allowed, toolChoice: toolChoices[choice.mode] }
  }
  const name = forcedName(choice)
  if (name === undefined) faults.at("tool_choice", `a tool of the type "${choice.type}" cannot be forced`.slice(0, 200))
  return { tools, toolChoice: { _tag: "Function", name: name ?? "" } }
}

/** Names of the custom tools; their calls are rendered as text instead of JSON. */
export const customToolNames = (request: ResponseRequest): ReadonlySet<string> =>
  new Set((request.tools ?? []).filter(isCustomTool).map((tool) => tool.name))
