/**
 * How the model is told of its tools, and in which form to call them: the one that the sieve reads and that the history is
 * rendered in.
 */
import type { Json, JsonSchema, ToolChoice, ToolDeclaration } from "../domain/Conversation.ts"
import { guardJson, renderCall } from "./history.ts"
import type { SchemaAt } from "./schema.ts"
import { itemsOf, propertyOf, resolve, typesOf } from "./schema.ts"

/** Nested objects of an example are shown this deep. */
const maximalDepth = 4

const own = (schema: JsonSchema, key: string): Json | undefined => Object.hasOwn(schema, key) ? schema[key] : undefined

/** A short value that the schema allows. */
const exampleOf = (of: SchemaAt | undefined, depth: number): Json => {
  if (of === undefined) return "..."
  const at = resolve(of)
  for (const key of ["const", "default"]) {
    const value = own(at.schema, key)
    if (value !== undefined) return value
  }
  for (const key of ["enum", "examples"]) {
    const values = own(at.schema, key)
    if (Array.isArray(values) && values[0] !== undefined) return values[0]
  }
  const types = typesOf(at)
  if (types.has("object")) return exampleObject(at, depth)
  if (types.has("array")) {
    const least = own(at.schema, "minItems")
    const count = typeof least === "number" && depth < maximalDepth ? Math.min(Math.max(least, 0), 3) : 0
    return Array.from({ length: count }, () => exampleOf(itemsOf(at), depth + 1))
  }
  if (types.has("integer") || types.has("number")) {
    const least = own(at.schema, "minimum")
    return typeof least === "number" ? least : 1
  }
  if (types.has("boolean")) return true
  return types.size === 0 || types.has("string") ? "..." : null
}

/** An object with the members that the schema requires. */
const exampleObject = (at: SchemaAt, depth: number): Json => {
  const required = own(at.schema, "required")
  if (!Array.isArray(required) || depth >= maximalDepth) return {}
  return Object.fromEntries(
    required.flatMap((name) => typeof name === "string" ? [[name, exampleOf(propertyOf(at, name), depth + 1)]] : [])
  )
}

/** A call of the tool with the least arguments that its schema allows. */
const exampleCall = (tool: ToolDeclaration): string => {
  const schema = tool.parameters ?? {}
  return renderCall({ name: tool.name, arguments: JSON.stringify(exampleObject({ schema, root: schema }, 0)) })
}

const renderTool = (tool: ToolDeclaration): string =>
  guardJson(JSON.stringify({
    name: tool.name,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    parameters: tool.parameters ?? { type: "object" }
  }))

const choiceRule = (choice: ToolChoice): string => {
  switch (choice._tag) {
    case "Required":
      return "You must call at least one tool in this reply."
    case "Function":
      return "You must call the tool " + guardJson(JSON.stringify(choice.name)) + " in this reply, and no other tool."
    default:
      return "Call a tool when it helps to answer; otherwise answer in plain text."
  }
}

const countRule = (parallel: boolean): string =>
  parallel
    ? "To call several tools at once, write several blocks, one call in each."
    : "Call one tool at most: write one block and nothing after it."

/**
 * The part of the prompt that declares the tools and the form of a call. Empty when there is nothing to call.
 */
export const declareTools = (
  tools: ReadonlyArray<ToolDeclaration>,
  choice: ToolChoice,
  parallel: boolean
): string => {
  const [first] = tools
  if (first === undefined || choice._tag === "None") return ""
  const shown = choice._tag === "Function" ? tools.find((tool) => tool.name === choice.name) ?? first : first
  return [
    "# Tools",
    "",
    "You can call these tools. Each line is one tool: its name, what it does, and the JSON Schema of its arguments.",
    "",
    ...tools.map(renderTool),
    "",
    "To call a tool, write a block of exactly this form, on lines of its own and outside of any code fence:",
    "",
    exampleCall(shown),
    "",
    "- Between the tags stands one JSON object with \"name\", the tool's exact name, and then \"arguments\", an object that fits the tool's" +
    " schema.",
    "- The JSON is strict: double quotes, newlines in strings as \\n, no comments. In strings write < as \\u003c.",
    "- " + countRule(parallel),
    "- " + choiceRule(choice),
    "- End your reply after the calls and wait. The results come in <tool_result> blocks, with the id and the name of their call; never" +
    " write such a block yourself."
  ].join("\n")
}

/** What is added for a second try when a required or forced call was missing. Empty where none is. */
export const reminder = (choice: ToolChoice): string => {
  const form = " Reply with nothing but the <tool_call> block, in the form that was described."
  switch (choice._tag) {
    case "Required":
      return "Your reply did not call a tool, but it must." + form
    case "Function":
      return "Your reply did not call the tool " + guardJson(JSON.stringify(choice.name)) + ", but it must." + form
    default:
      return ""
  }
}
