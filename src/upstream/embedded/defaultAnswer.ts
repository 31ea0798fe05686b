/**
 * The default answer, which is the same for the same conversation. It calls the tools that the question asks for, repeats their
 * results, and keeps to the output form that the prompt asks for. It reads the gateway's instructions in the prompt as a model does.
 */
import type { Fragment } from "../../contracts/session/writeReply.ts"
import type { PromptTurn } from "../../contracts/session/writeRequest.ts"
import { parseJson } from "../../contracts/shared/json.ts"
import type { JsonSchema } from "../../domain/Conversation.ts"
import { isRecord, type Json } from "../../domain/json.ts"
import { exampleFor } from "./example.ts"

const say = (content: string): Fragment => ({ type: "RESPONSE", content })
const think = (content: string): Fragment => ({ type: "THINK", content })

/** A part of reasoning or reply text by words of at most 12 characters, with the blanks before them; another part as it is. */
export const cutWords = (part: Fragment): ReadonlyArray<Fragment> =>
  part.type === "RESPONSE" || part.type === "THINK"
    ? (String(part["content"]).match(/\s*\S{1,12}|\s+$/gu) ?? []).map((content) => ({ ...part, content }))
    : [part]

/** A search with `count` made-up results about `topic`, and the page that was opened. The addresses are reserved for examples. */
export const searchParts = (query: string, topic: string, count: number): ReadonlyArray<Fragment> => {
  const results = Array.from({ length: count }, (_, i): { readonly [key: string]: Json } => ({
    url: `https://example.com/${i + 1}`,
    title: `Result ${i + 1}`,
    snippet: `What page ${i + 1} says about ${topic}.`,
    cite_index: i + 1
  }))
  const opened = results.slice(0, 1).map((result) => ({ type: "TOOL_OPEN", result }))
  return [{ type: "TOOL_SEARCH", queries: [{ query }], results }, ...opened]
}

interface DeclaredTool {
  readonly name: string
  readonly parameters: JsonSchema
}

interface Instructions {
  readonly tools: ReadonlyArray<DeclaredTool>
  /** The tool that must be called; `true` for any of them. */
  readonly mustCall: string | boolean
  /** Several calls in one reply are allowed. */
  readonly parallel: boolean
  /** The answer is to be JSON that fits this schema. */
  readonly output: JsonSchema | undefined
}

const readTool = (line: string): ReadonlyArray<DeclaredTool> => {
  const value = line.startsWith("{") ? parseJson(line) : undefined
  if (!isRecord(value)) return []
  const { name, parameters } = value
  return typeof name === "string" && isRecord(parameters) ? [{ name, parameters: parameters as JsonSchema }] : []
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
  const name = parseJson(forced.exec(text)?.[1] ?? "null")
  return typeof name === "string" ? name : text.includes("You must call at least one tool in this reply")
}

const readOutput = (text: string): JsonSchema | undefined => {
  const output = part(text, "# Output\n", "<never>")
  const values = output.split("\n").map((line) => line.startsWith("{") ? parseJson(line) : undefined)
  const schema = values.findLast((value) => isRecord(value)) as JsonSchema | undefined
  return schema ?? (output.includes("one JSON object") ? { type: "object" } : undefined)
}

/** Reads the system turns of a prompt. */
const readInstructions = (turns: ReadonlyArray<PromptTurn>): Instructions => {
  const text = turns.filter(({ role }) => role === "system").map((turn) => turn.text).join("\n\n")
  return {
    tools: part(text, "# Tools\n", "To call a tool").split("\n").flatMap(readTool),
    mustCall: readMust(text),
    parallel: !text.includes("Call one tool at most"),
    output: readOutput(text)
  }
}

const shorten = (text: string): string => {
  const characters = Array.from(text.replace(/\s+/g, " ").trim())
  return characters.length <= 200 ? characters.join("") : `${characters.slice(0, 200).join("")}…`
}

const quote = (text: string): string => `“${shorten(text)}”`

/** A tool to call, and the words after its name in the question. */
interface ToolRequest {
  readonly tool: DeclaredTool
  readonly words: string
}

const isWord = (character: string | undefined): boolean => character !== undefined && /[\w-]/.test(character)

/** Characters of a question that may ask for a tool. Longer ones are agents' instructions, which mention many tools. */
const longestRequest = 1000

/** The words before a tool's name in a question that asks for it: `use`, `call the tool`, or `and` after another one. */
const asking = /\b(?:use|using|call|run|invoke|try|and|then)\b(?:\s+(?:the|a|tool|function))*[\s,:`"']*$/i

/** The index of `name` as a word that is asked for; -1 if it is not. */
const findRequest = (text: string, name: string): number => {
  if (text.length > longestRequest) return -1
  let at = text.indexOf(name)
  while (
    at !== -1 &&
    (isWord(text[at - 1]) || isWord(text[at + name.length]) || !asking.test(text.slice(Math.max(0, at - 40), at)))
  ) at = text.indexOf(name, at + 1)
  return at
}

const withoutJoints = (text: string): string =>
  shorten(text).replace(/^(?:(?:for|with|on|in|at|about|to|of|and|then|tool|the)\b|[\s,:`"'])+/i, "")
    .replace(/(?:[\s,:;`"'.?!]|\b(?:and|then|use|call))+$/i, "")

/** The tools that a question names, in its order, or the one that must be called. */
const toolRequests = (question: string, { mustCall, parallel, tools }: Instructions): ReadonlyArray<ToolRequest> => {
  const places = tools.map((tool) => ({ tool, at: findRequest(question, tool.name) }))
  const named = places.filter(({ at }) => at !== -1).sort((a, b) => a.at - b.at)
  const wanted = named.map(({ at, tool }, i) => ({
    tool,
    words: withoutJoints(question.slice(at + tool.name.length, named[i + 1]?.at)) || "example"
  }))
  const must = typeof mustCall === "string" ? tools.find(({ name }) => name === mustCall) : mustCall && tools[0]
  const due = typeof mustCall === "string" ? wanted.filter(({ tool }) => tool === must) : wanted
  if (due.length > 0) return parallel ? due : due.slice(0, 1)
  return must === undefined || must === false ? [] : [{ tool: must, words: shorten(question) || "example" }]
}

/** A tool call as the gateway's prompts ask for it. */
const callOf = ({ tool, words }: ToolRequest): string => {
  const json = JSON.stringify(exampleFor({ type: "object", ...tool.parameters }, words))
  return `<tool_call>{"name":${JSON.stringify(tool.name)},"arguments":${json}}</tool_call>`
}

const call = (wanted: ReadonlyArray<ToolRequest>): ReadonlyArray<Fragment> => {
  const names = wanted.map(({ tool }) => tool.name).join(" and ")
  return [think(`This takes ${names}.`), say(`I call ${names}.\n\n`), say(wanted.map(callOf).join("\n"))]
}

const result = /<tool_result\b([^>]*)>\n?([^]*?)\n?<\/tool_result>/g

/** Repeats the results of the tools, each by its name. */
const repeatResults = (text: string): ReadonlyArray<Fragment> => {
  const results = [...text.matchAll(result)].map(([, attributes = "", content = ""]) => {
    const name = / name="([^"]*)"/.exec(attributes)?.[1]
    return `${name ?? "The tool"} answered: ${quote(content)}`
  })
  const answered = results.length === 0 ? `The tool answered: ${quote(text)}` : results.join("; ")
  return [think("There is an answer to pass on."), say(`${answered}.`)]
}

const answerInForm = (question: string, output: NonNullable<Instructions["output"]>): ReadonlyArray<Fragment> => {
  const value = exampleFor(output, shorten(question) || "example")
  const empty = typeof value === "object" && value !== null && Object.keys(value).length === 0
  const answer = empty && output["properties"] === undefined ? { answer: shorten(question) } : value
  return [think("The answer is to be JSON."), say(JSON.stringify(answer))]
}

const introduce = (question: string, turns: ReadonlyArray<PromptTurn>, search: boolean): ReadonlyArray<Fragment> => {
  const words = question.split(/\s+/).filter((word) => word !== "").length
  const asked = turns.filter((turn) => turn.role === "user")
  const before = asked.at(-2)
  return [
    think(
      `The user wrote ${words === 1 ? "1 word" : `${words} words`}: ${
        quote(question)
      }. There is no model here to ask, ` +
        `so I repeat the question and say what I am.`
    ),
    ...search ? searchParts(shorten(question), quote(question), 3) : [],
    say(
      search
        ? `I looked for ${quote(question)} and found three pages[citation:1][citation:2][citation:3]. ` +
          `The first one[reference:1] repeats the question, as I do. `
        : `You said: ${quote(question)}. `
    ),
    ...before === undefined
      ? []
      : [say(`This is turn ${asked.length} of our conversation; before it you said: ${quote(before.text)}. `)],
    say(
      "I am the built-in upstream: I give every prompt the same answer each time, without a model behind it. " +
        "Configure `upstream` to reach a real one."
    )
  ]
}

/** The parts of the default answer to `question`, by default the last user turn. */
export const answerByDefault = (
  turns: ReadonlyArray<PromptTurn>,
  search: boolean,
  question = turns.findLast(({ role }) => role === "user")?.text ?? ""
): ReadonlyArray<Fragment> => {
  const instructions = readInstructions(turns)
  const lastTool = turns.findLastIndex(({ role }) => role === "tool")
  const answered = lastTool > turns.findLastIndex(({ role }) => role === "user")
  const wanted = answered && instructions.mustCall === false ? [] : toolRequests(question, instructions)
  if (wanted.length > 0) return call(wanted)
  if (instructions.output !== undefined) return answerInForm(question, instructions.output)
  return answered ? repeatResults(turns[lastTool]?.text ?? "") : introduce(question, turns, search)
}
