/**
 * The answer without a script, which is the same for the same conversation. It calls the tools that the question asks for,
 * repeats their results, and keeps to the output form that the prompt asks for.
 */
import type { PromptTurn } from "../../contracts/session/writeRequest.ts"
import { writeCall } from "./callForms.ts"
import { exampleFor } from "./example.ts"
import { type DeclaredTool, type Instructions, readInstructions } from "./instructions.ts"
import type { ReplyBuilder } from "./Reply.ts"

const shorten = (text: string): string => {
  const characters = Array.from(text.replace(/\s+/g, " ").trim())
  return characters.length <= 200 ? characters.join("") : `${characters.slice(0, 200).join("")}…`
}

const quote = (text: string): string => `“${shorten(text)}”`

const plural = (count: number, noun: string): string => count === 1 ? `1 ${noun}` : `${count} ${noun}s`

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

const call = (wanted: ReadonlyArray<ToolRequest>, reply: ReplyBuilder): void => {
  const names = wanted.map(({ tool }) => tool.name).join(" and ")
  reply.think(`This takes ${names}.`)
  reply.say(`I call ${names}.\n\n`)
  const calls = wanted.map(({ tool, words }) =>
    writeCall("tool_call", tool.name, JSON.stringify(exampleFor({ type: "object", ...tool.parameters }, words)))
  )
  reply.say(calls.join("\n"))
}

const result = /<tool_result\b([^>]*)>\n?([^]*?)\n?<\/tool_result>/g

/** Repeats the results of the tools, each by its name. */
const repeatResults = (text: string, reply: ReplyBuilder): void => {
  const results = [...text.matchAll(result)].map(([, attributes = "", content = ""]) => {
    const name = / name="([^"]*)"/.exec(attributes)?.[1]
    return `${name ?? "The tool"} answered: ${quote(content)}`
  })
  const answered = results.length === 0 ? `The tool answered: ${quote(text)}` : results.join("; ")
  reply.think("There is an answer to pass on.")
  reply.say(`${answered}.`)
}

const answerInForm = (question: string, { output }: Instructions, reply: ReplyBuilder): void => {
  if (output === undefined) return
  reply.think("The answer is to be JSON.")
  const value = exampleFor(output, shorten(question) || "example")
  const empty = typeof value === "object" && value !== null && Object.keys(value).length === 0
  reply.say(JSON.stringify(empty && output["properties"] === undefined ? { answer: shorten(question) } : value))
}

const introduce = (question: string, turns: ReadonlyArray<PromptTurn>, reply: ReplyBuilder): void => {
  const words = question.split(/\s+/).filter((word) => word !== "").length
  reply.think(
    `The user wrote ${plural(words, "word")}: ${quote(question)}. There is no model here to ask, ` +
      `so I repeat the question and say what I am.`
  )
  if (reply.flags.search) {
    reply.search(shorten(question), quote(question), 3)
    reply.say(
      `I looked for ${quote(question)} and found three pages[citation:1][citation:2][citation:3]. ` +
        `The first one[reference:1] repeats the question, as I do. `
    )
  } else {
    reply.say(`You said: ${quote(question)}. `)
  }
  const asked = turns.filter((turn) => turn.role === "user")
  const before = asked.at(-2)
  if (before !== undefined) {
    reply.say(`This is turn ${asked.length} of our conversation; before it you said: ${quote(before.text)}. `)
  }
  reply.say(
    "I am the built-in upstream: I give every prompt the same answer each time, without a model behind it. " +
      "Configure `upstream` to reach a real one."
  )
}

/** Writes the default answer to `question`, the last user turn of `turns` without its directives. */
export const answerByDefault = (question: string, turns: ReadonlyArray<PromptTurn>, reply: ReplyBuilder): void => {
  const instructions = readInstructions(turns)
  const lastTool = turns.findLastIndex(({ role }) => role === "tool")
  const answered = lastTool > turns.findLastIndex(({ role }) => role === "user")
  const wanted = answered && instructions.mustCall === false ? [] : toolRequests(question, instructions)
  if (wanted.length > 0) call(wanted, reply)
  else if (instructions.output !== undefined) answerInForm(question, instructions, reply)
  else if (answered) repeatResults(turns[lastTool]?.text ?? "", reply)
  else introduce(question, turns, reply)
}
