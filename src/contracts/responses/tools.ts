/**
 * Decodes the tools of a request and the choice among them. Upstreams know functions only: a custom tool is declared as a function with
 * one text argument, and each tool of a namespace as a function of its own.
 */
import type { ToolChoice, ToolDeclaration } from "../../domain/Conversation.ts"
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { Limits } from "../../domain/limits.ts"
import { declaration, toolChoices } from "../shared/conversation.ts"
import type { Faults } from "../shared/Faults.ts"
import { choiceTypesOf, clientDeclaration, clientToolOf } from "./clientTools.ts"
import type { NamespaceMember, ResponseRequest } from "./schema.ts"
import { type CallTarget, isClientTarget, ToolNames } from "./toolNames.ts"

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
type Member = typeof NamespaceMember.Type
type FunctionTool = Extract<Tool, { readonly type: "function" }>
type CustomTool = Extract<Tool, { readonly type: "custom" }>
type NamespaceTool = Extract<Tool, { readonly type: "namespace" }>

export const isFunctionTool = (tool: Tool | Member): tool is FunctionTool => tool.type === "function"

const isCustomTool = (tool: Tool | Member): tool is CustomTool => tool.type === "custom"

const isNamespace = (tool: Tool): tool is NamespaceTool => tool.type === "namespace"

const isCallable = (tool: Tool | Member): tool is FunctionTool | CustomTool =>
  isFunctionTool(tool) || isCustomTool(tool)

/** True if all these tools are functions and custom tools, whose calls are read from any server. */
export const readsCalls = (lists: ReadonlyArray<ToolList>): boolean =>
  lists.every(({ tools }) => tools.every(isCallable))

/** The fields of a function, sent flat or nested as in chat completions. */
export const functionFields = (tool: FunctionTool) => "function" in tool ? tool.function : tool

const customFields = ({ description, format, name }: CustomTool): ToolDeclaration => {
  const { definition, syntax } = format ?? {}
  const grammar = definition ? `The input follows this ${syntax ?? ""} grammar:\n${definition}` : undefined
  const text = [description, grammar].filter(Boolean).join("\n\n")
  return declaration({ name, description: text === "" ? undefined : text, parameters: customParameters })
}

const declarationOf = (tool: FunctionTool | CustomTool): ToolDeclaration =>
  isFunctionTool(tool) ? declaration(functionFields(tool)) : customFields(tool)

/** A declared function, and what it is to the caller. */
interface DeclaredTool {
  readonly declaration: ToolDeclaration
  readonly target: CallTarget
}

/** The names of a request's tools. */
export const toolNames = (tools: ReadonlyArray<Tool>): ToolNames => {
  const names = new ToolNames(tools.filter(isCallable).map((tool) => declarationOf(tool).name))
  for (const tool of tools) if (isCustomTool(tool)) names.addCustom(tool.name)
  return names
}

const described = (tool: ToolDeclaration, heading: string): ToolDeclaration => ({
  ...tool,
  description: tool.description === undefined ? heading : `${heading}\n\n${tool.description}`
})

/** The tools of a namespace. The first one carries the description of the namespace, which all share. */
const namespaceTools = (
  { description, name: namespace, tools }: NamespaceTool,
  field: string,
  names: ToolNames,
  faults: Faults
): ReadonlyArray<DeclaredTool> => {
  const declared: Array<DeclaredTool> = []
  const seen = new Set<string>()
  for (const [i, tool] of tools.entries()) {
    if (!isCallable(tool)) {
      faults.noteIgnored(`${field}.tools[${i}]`)
      continue
    }
    const own = declarationOf(tool)
    if (seen.has(own.name)) faults.at(`${field}.tools[${i}].name`, `the namespace has two tools of this name`)
    seen.add(own.name)
    const target = { type: tool.type, namespace, name: own.name }
    const named = { ...own, name: names.of(target) }
    const isFirst = declared.length === 0
    declared.push({
      declaration: isFirst && description ? described(named, `Tools of ${namespace}: ${description}`) : named,
      target
    })
  }
  return declared
}

const declaredTools = (tool: Tool, field: string, names: ToolNames, faults: Faults): ReadonlyArray<DeclaredTool> => {
  if (isNamespace(tool)) return namespaceTools(tool, field, names, faults)
  if (isCallable(tool)) {
    const own = declarationOf(tool)
    return [{ declaration: own, target: { type: tool.type, namespace: undefined, name: own.name } }]
  }
  const type = clientToolOf(tool)
  if (type !== undefined) {
    const target = { type }
    return [{ declaration: declaration({ name: names.of(target), ...clientDeclaration(type, tool) }), target }]
  }
  faults.noteIgnored(field)
  return []
}

type Choice = Extract<ResponseRequest["tool_choice"], object>

const isAllowedTools = (choice: Choice): choice is Extract<Choice, { readonly type: "allowed_tools" }> =>
  choice.type === "allowed_tools"

/** Which tools an entry of a choice names. */
interface Named {
  readonly type: string
  readonly name: string | undefined
  readonly namespace: string | undefined
}

const text = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

/** The tool or namespace that a choice forces. */
const namedBy = (choice: Choice): Named => {
  const inner: unknown = "function" in choice ? choice.function : choice
  const fields: JsonRecord = isRecord(inner) ? inner : {}
  return { type: choice.type, name: text(fields["name"]), namespace: text(fields["namespace"]) }
}

/** The keys by which a tool can be named: all of its namespace, with its namespace, or by its own name alone. */
const keysOf = (target: CallTarget): ReadonlyArray<string> =>
  isClientTarget(target)
    ? choiceTypesOf(target.type).map((type) => `type ${type}`)
    : [
      `namespace ${target.namespace}`,
      `tool ${target.namespace} ${target.name}`,
      `name ${target.name}`
    ]

const keyOf = ({ name, namespace, type }: Named): string | undefined => {
  if (type === "function" || type === "custom") {
    return name === undefined ? undefined : namespace === undefined ? `name ${name}` : `tool ${namespace} ${name}`
  }
  return type === "namespace" ? name && `namespace ${name}` : `type ${type}`
}

/** The declared tools that one of the entries names. */
const toolsNamed = (
  declared: ReadonlyArray<DeclaredTool>,
  named: ReadonlyArray<Named>
): ReadonlyArray<DeclaredTool> => {
  const keys = new Set(named.map(keyOf))
  return declared.filter(({ target }) => keysOf(target).some((key) => keys.has(key)))
}

interface DecodedTools {
  /** The tools that may be called. */
  readonly tools: ReadonlyArray<ToolDeclaration>
  readonly toolChoice: ToolChoice
}

const forcedChoice = (choice: Choice, declared: ReadonlyArray<DeclaredTool>, faults: Faults): DecodedTools => {
  const tools = declared.map((tool) => tool.declaration)
  const named = namedBy(choice)
  const [first, second] = toolsNamed(declared, [named])
  if (named.type === "namespace" && first !== undefined) {
    return { tools: toolsNamed(declared, [named]).map((tool) => tool.declaration), toolChoice: toolChoices.required }
  }
  // A tool outside of namespaces comes before tools of its name in namespaces.
  const outside = declared.find(({ target }) =>
    !isClientTarget(target) && target.namespace === undefined && target.name === named.name
  )
  if (outside === undefined && second !== undefined) faults.at("tool_choice.name", "several namespaces have this tool")
  const isCallable = named.type === "function" || named.type === "custom"
  const name = (named.namespace === undefined ? outside ?? first : first)?.declaration.name ??
    (isCallable ? named.name : undefined)
  if (name === undefined) {
    faults.atElsewhere("tool_choice", `a tool of the type "${choice.type}" cannot be forced`.slice(0, 200))
  }
  return { tools, toolChoice: { _tag: "Function", name: name ?? "" } }
}

/** A list of tools, and the field that has it. */
export interface ToolList {
  readonly tools: ReadonlyArray<Tool>
  readonly field: string
}

/** The tools of all lists. A tool that several lists have is declared once. */
const allTools = (lists: ReadonlyArray<ToolList>, names: ToolNames, faults: Faults): ReadonlyArray<DeclaredTool> => {
  const [own, ...others] = lists.map(({ field, tools }) =>
    tools.flatMap((tool, i) => {
      if (field === "tools" && isCallable(tool)) faults.noteTool(`tools[${i}].name`, declarationOf(tool).name)
      return declaredTools(tool, `${field}[${i}]`, names, faults)
    })
  )
  const all = own ?? []
  if (others.length === 0) return all
  const seen = new Set(all.map((tool) => tool.declaration.name))
  const further: Array<DeclaredTool> = []
  for (const tool of others.flat()) {
    if (seen.has(tool.declaration.name)) continue
    seen.add(tool.declaration.name)
    further.push(tool)
  }
  return all.concat(further)
}

/** The tools that may be called and the choice among them. The first list is the one of the request. */
export const decodeTools = (
  request: ResponseRequest,
  lists: ReadonlyArray<ToolList>,
  names: ToolNames,
  { tools: most }: Limits,
  faults: Faults
): DecodedTools => {
  const declared = allTools(lists, names, faults)
  if (lists.length > 1 && declared.length > most) {
    faults.at("input", `the request declares more functions than the ${most} that are allowed`)
  }
  const choice = request.tool_choice ?? "auto"
  if (typeof choice === "string") {
    return { tools: declared.map((tool) => tool.declaration), toolChoice: toolChoices[choice] }
  }
  if (!isAllowedTools(choice)) return forcedChoice(choice, declared, faults)
  const allowed = toolsNamed(
    declared,
    choice.tools.map(({ name, namespace, type }) => ({
      type,
      name: name ?? undefined,
      namespace: namespace ?? undefined
    }))
  )
  if (allowed.length === 0) faults.atElsewhere("tool_choice.tools", "names no declared function")
  return { tools: allowed.map((tool) => tool.declaration), toolChoice: toolChoices[choice.mode] }
}
