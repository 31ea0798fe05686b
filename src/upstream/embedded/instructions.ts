/**
 * The gateway's instructions in a prompt: the tools that may be called, whether one must be, and the form of the answer. Read
 * from the gateway's texts, as a model reads them.
 */
import type { PromptTurn } from "../../contracts/session/writeRequest.ts"
import type { JsonSchema } from "../../domain/Conversation.ts"
import { isRecord } from "../../domain/json.ts"
import { readJson } from "./scriptValues.ts"

export interface DeclaredTool {
  readonly name: string
  readonly parameters: JsonSchema
}

export interface Instructions {
  readonly tools: ReadonlyArray<DeclaredTool>
  /** The tool that must be called; `true` for any of them. */
  readonly mustCall: string | boolean
  /** Several calls in one reply are allowed. */
  readonly parallel: boolean
  /** The answer is to be JSON that fits this schema. */
  readonly output: JsonSchema | undefined
}

const readTool = (line: string): ReadonlyArray<DeclaredTool> => {
  const value = line.startsWith("{") ? readJson(line) : undefined
  if (!isRecord(value)) return []
  const { name, parameters } = value
  return typeof name === "string" && isRecord(parameters) ? [{ name, parameters }] : []
}

/** The text between two of the gateway's headings. */
const part = (text: string, heading: string, end: string): string => {
  const start = text.lastIndexOf(heading)
  if (start === -1) return ""
  const stop = text.indexOf(end, start)
  return text.slice(start, stop === -1 ? undefined : stop)
}

const forced = /You must call the tool ("(?:[^"\\]|\\.)*") in this reply/

const readMust = (text: string): string | boolean => {
  const name = readJson(forced.exec(text)?.[1] ?? "null")
  return typeof name === "string" ? name : text.includes("You must call at least one tool in this reply")
}

const readOutput = (text: string): JsonSchema | undefined => {
  const output = part(text, "# Output\n", "<never>")
  if (output === "") return undefined
  const schema = output.split("\n").map((line) => line.startsWith("{") ? readJson(line) : undefined).findLast((value) =>
    isRecord(value)
  )
  return schema ?? (output.includes("one JSON object") ? { type: "object" } : undefined)
}

/** Reads the system turns of a prompt. */
export const readInstructions = (turns: ReadonlyArray<PromptTurn>): Instructions => {
  const text = turns.filter(({ role }) => role === "system").map((turn) => turn.text).join("\n\n")
  return {
    tools: part(text, "# Tools\n", "To call a tool").split("\n").flatMap(readTool),
    mustCall: readMust(text),
    parallel: !text.includes("Call one tool at most"),
    output: readOutput(text)
  }
}
