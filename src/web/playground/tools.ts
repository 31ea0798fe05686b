/**
 * Local tools, which run in the page, for trying out tool calls.
 */
import { parsed, record, string } from "../state/json.ts"
import type { Call, ToolDeclaration } from "./conversation.ts"

interface Tool {
  readonly name: string
  readonly description: string
  /** JSON Schema. */
  readonly parameters: {
    readonly type: "object"
    readonly properties: Readonly<Record<string, { readonly type: string; readonly description: string }>>
    readonly required: ReadonlyArray<string>
  }
  readonly run: (given: Readonly<Record<string, unknown>>) => string
}

const tool = (
  name: string,
  description: string,
  properties: Tool["parameters"]["properties"],
  run: Tool["run"]
): Tool => ({ name, description, parameters: { type: "object", properties, required: Object.keys(properties) }, run })

export const localTools: ReadonlyArray<Tool> = [
  tool("get_time", "The time now, in UTC.", {}, () => new Date().toISOString()),
  tool(
    "get_weather",
    "The weather in a city.",
    { city: { type: "string", description: "Name of the city." } },
    ({ city }) => JSON.stringify({ city: string(city), temperature_c: 21, sky: "clear" })
  ),
  tool(
    "add",
    "Adds two numbers.",
    { a: { type: "number", description: "The first." }, b: { type: "number", description: "The second." } },
    ({ a, b }) => String(Number(a) + Number(b))
  ),
  tool("echo", "Gives a text back.", { text: { type: "string", description: "The text." } }, ({ text }) => string(text))
]

/** Runs a call. An unknown tool gives an error as its result. */
export const runTool = ({ arguments: given, name }: Call): string => {
  const known = localTools.find((each) => each.name === name)
  return known === undefined
    ? JSON.stringify({ error: `There is no tool "${name}"` })
    : known.run(record(parsed(given)))
}

/** The tools of a JSON text: declarations of functions, including in the chat style's wrapper. `undefined` for another text. */
export const declaredTools = (text: string): ReadonlyArray<ToolDeclaration> | undefined => {
  if (text.trim() === "") return []
  const value = parsed(text)
  if (!Array.isArray(value)) return undefined
  const tools = value.map((each) => record(record(each)["function"] ?? each))
  return tools.every(({ name }) => typeof name === "string" && name !== "")
    ? tools.map(({ description, name, parameters }) => ({
      name: string(name),
      description: string(description),
      parameters: record(parameters ?? { type: "object", properties: {} }) as NonNullable<ToolDeclaration["parameters"]>
    }))
    : undefined
}
