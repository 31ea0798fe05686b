/**
 * The part of the prompt that declares the tools and the form in which to call them: the form in which the history is rendered too.
 */
import type { JsonSchema, ToolChoice, ToolDeclaration } from "../domain/Conversation.ts"
import type { Json } from "../domain/json.ts"
import { type Cooperative, runSync, Slice } from "../domain/stream/cooperative.ts"
import { guardJson, guardJsonCooperatively, renderCall } from "./history.ts"
import { itemsOf, propertyOf, resolve, type SchemaAt, typesOf } from "./schema.ts"

/** The deepest nesting of an example. */
const maximalDepth = 4

/** The most characters of an example. */
const longestExample = 2000

const own = (schema: JsonSchema, key: string): Json | undefined => Object.hasOwn(schema, key) ? schema[key] : undefined

/** Builds an example of limited depth, until it becomes too long. */
class Example {
  #left = longestExample
  readonly #depth: number

  constructor(depth: number) {
    this.#depth = depth
  }

  get isTooLong(): boolean {
    return this.#left < 0
  }

  /** Counts the length of a value and returns the value. */
  #count(value: Json): Json {
    this.#left -= 1 + JSON.stringify(value).length
    return value
  }

  /** A short value that the schema allows. */
  value(of: SchemaAt | undefined, depth: number): Json {
    if (of === undefined || this.isTooLong) return this.#count("...")
    const at = resolve(of)
    for (const key of ["const", "default"]) {
      const value = own(at.schema, key)
      if (value !== undefined) return this.#count(value)
    }
    for (const key of ["enum", "examples"]) {
      const values = own(at.schema, key)
      if (Array.isArray(values) && values[0] !== undefined) return this.#count(values[0])
    }
    const types = typesOf(at)
    if (types.has("object")) return this.object(at, depth)
    if (types.has("array")) {
      const least = own(at.schema, "minItems")
      const count = typeof least === "number" && depth < this.#depth ? Math.min(Math.max(least, 0), 3) : 0
      return Array.from({ length: count }, () => this.value(itemsOf(at), depth + 1))
    }
    if (types.has("integer") || types.has("number")) {
      const least = own(at.schema, "minimum")
      return this.#count(typeof least === "number" ? least : 1)
    }
    if (types.has("boolean")) return this.#count(true)
    return this.#count(types.size === 0 || types.has("string") ? "..." : null)
  }

  /** An object with the members that the schema requires. */
  object(at: SchemaAt, depth: number): Json {
    const required = own(at.schema, "required")
    if (!Array.isArray(required) || depth >= this.#depth) return this.#count({})
    const members: Array<readonly [string, Json]> = []
    for (const name of required) {
      if (this.isTooLong) break
      if (typeof name !== "string") continue
      this.#count(name)
      members.push([name, this.value(propertyOf(at, name), depth + 1)])
    }
    return Object.fromEntries(members)
  }
}

/** A call of the tool with the smallest arguments that its schema allows. If it is too long, the deepest members are omitted first. */
const exampleCall = (tool: ToolDeclaration): string => {
  const schema = tool.parameters ?? {}
  for (let depth = maximalDepth; depth > 0; depth--) {
    const example = new Example(depth)
    const args = example.object({ schema, root: schema }, 0)
    if (example.isTooLong) continue
    const call = renderCall({ name: tool.name, arguments: JSON.stringify(args) })
    if (call.length <= longestExample) return call
  }
  const bare = renderCall({ name: tool.name, arguments: "{}" })
  return bare.length <= longestExample ? bare : renderCall({ name: "...", arguments: "{}" })
}

const toolJson = (tool: ToolDeclaration): string =>
  JSON.stringify({
    name: tool.name,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    parameters: tool.parameters ?? { type: "object" }
  })

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
    ? "To call several tools together, write several blocks, one call in each."
    : "Call one tool at most: write one block and nothing after it."

/** The part of the prompt that declares the tools and the form of a call. Empty when no tool may be called. */
export function* declareToolsCooperatively(
  tools: ReadonlyArray<ToolDeclaration>,
  choice: ToolChoice,
  parallel: boolean,
  slice: Slice
): Cooperative<string> {
  const [first] = tools
  if (first === undefined || choice._tag === "None") return ""
  const shown = choice._tag === "Function" ? tools.find((tool) => tool.name === choice.name) ?? first : first
  const lines: Array<string> = []
  for (const tool of tools) lines.push(yield* guardJsonCooperatively(toolJson(tool), slice))
  return [
    "# Tools",
    "",
    "You can call these tools. Each line is one tool: its name, what it does, and the JSON Schema of its arguments.",
    "",
    lines.join("\n"),
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

/** The part of the prompt that declares the tools and the form of a call, in one go. Empty when no tool may be called. */
export const declareTools = (
  tools: ReadonlyArray<ToolDeclaration>,
  choice: ToolChoice,
  parallel: boolean
): string => runSync(declareToolsCooperatively(tools, choice, parallel, new Slice()))

/** The sentence that is added to the second try after a required or forced call was missing; empty for other choices. */
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
