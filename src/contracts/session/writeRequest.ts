/**
 * Renders a conversation as the one string that a session upstream takes (upstream-protocol, "The prompt").
 *
 * The caller cannot write a marker: all of their text is disarmed, in earlier assistant turns too, because those come from the
 * caller as well. Reasoning of earlier turns is omitted, because models do not see their own again.
 */
import {
  type Conversation,
  type FilePart,
  type ImagePart,
  type Part,
  type Role,
  type StructuredOutput,
  Text,
  type TextPart,
  toolsEnabled
} from "../../domain/Conversation.ts"
import { linkCallsCooperatively } from "../../domain/linkCalls.ts"
import { type Cooperative, mapCooperatively, Slice } from "../../domain/stream/cooperative.ts"
import { declareToolsCooperatively } from "../../sieve/declaration.ts"
import { disarmCooperatively } from "../../sieve/disarm.ts"
import { guardJsonCooperatively, renderCallCooperatively, renderResultCooperatively } from "../../sieve/history.ts"

/** Joins the texts that are not empty with blank lines. */
const paragraphs = (texts: ReadonlyArray<string>): string => texts.filter((text) => text !== "").join("\n\n")

/** The placeholder of a part that the upstream does not support, so that the model knows about it. */
const omitted = (part: ImagePart | FilePart): string => {
  if (part._tag === "Image") return "[image omitted]"
  return part.name === undefined
    ? `[${part.kind} omitted]`
    : `[${part.kind} omitted: ${part.name.replace(/\s+/g, " ")}]`
}

const asText = (part: TextPart | ImagePart | FilePart): TextPart => part._tag === "Text" ? part : Text(omitted(part))

function* renderPart(part: Part, slice: Slice): Cooperative<string> {
  switch (part._tag) {
    case "Text":
      return yield* disarmCooperatively(part.text, slice)
    case "Image":
    case "File":
      return yield* disarmCooperatively(omitted(part), slice)
    case "Reasoning":
      return ""
    case "Call":
      return yield* renderCallCooperatively(part, slice)
    case "Result":
      return yield* renderResultCooperatively({
        ...part,
        content: yield* mapCooperatively(slice, part.content, asText)
      }, slice)
  }
}

function* describeOutput(output: StructuredOutput | undefined, tools: boolean, slice: Slice): Cooperative<string> {
  if (output === undefined) return ""
  const unless = tools ? "Unless you call a tool, reply" : "Reply"
  const bare = "Write the JSON alone: no code fence and no words around it."
  if (output._tag === "JsonObject") return `# Output\n\n${unless} with one JSON object. ${bare}`
  const description = output.description === undefined
    ? ""
    : `\n\n${yield* disarmCooperatively(output.description, slice)}`
  return `# Output\n\n${unless} with one JSON value that fits this JSON Schema exactly. ${bare}${description}\n\n${yield* guardJsonCooperatively(
    JSON.stringify(output.schema),
    slice
  )}`
}

/** The gateway's own instructions: the tools and the form of the answer. */
function* instructions(conversation: Conversation, slice: Slice): Cooperative<string> {
  const { output, parallelToolCalls, toolChoice, tools } = conversation
  const enabled = toolsEnabled(conversation)
  return paragraphs([
    enabled ? yield* declareToolsCooperatively(tools, toolChoice, parallelToolCalls, slice) : "",
    yield* describeOutput(output, enabled, slice)
  ])
}

/** Builds the prompt: skips empty texts, and joins adjacent texts of one role to one section. */
class Sections {
  readonly #pieces: Array<string> = []
  #role: Role | undefined = undefined

  add(role: Role, text: string): void {
    if (text === "") return
    if (this.#role === role) {
      this.#pieces.push("\n\n", text)
      return
    }
    this.#end()
    this.#role = role
    this.#pieces.push(`<|${role}|>\n`, text)
  }

  /** The prompt with an open assistant turn at its end. A started assistant turn is closed, and its continuation requested. */
  close(): string {
    if (this.#role === "assistant") this.add("system", continueStarted)
    this.#end()
    this.#pieces.push("<|assistant|>")
    return this.#pieces.join("")
  }

  #end(): void {
    if (this.#role !== undefined) this.#pieces.push(this.#role === "assistant" ? "<|end|>\n" : "\n")
  }
}

const continueStarted =
  "Continue your last message exactly where it stops. Do not repeat any of it and do not comment on it."

/**
 * The prompt of a conversation. It always ends with an open assistant turn. At most six times the request's characters, and
 * 6,000 more.
 */
export function* renderPrompt(conversation: Conversation): Cooperative<string> {
  const slice = new Slice()
  const linked = yield* linkCallsCooperatively(conversation, slice)
  const sections = new Sections()
  /** The gateway's instructions follow the leading system text. */
  let isInstructed = false
  for (const { name, parts, role } of linked.turns) {
    if (!isInstructed && role !== "system") {
      sections.add("system", yield* instructions(linked, slice))
      isInstructed = true
    }
    if (name !== undefined) sections.add(role, yield* disarmCooperatively(`${name}:`, slice))
    for (const part of parts) {
      if (slice.add(1)) yield slice.end()
      sections.add(role, yield* renderPart(part, slice))
    }
  }
  if (!isInstructed) sections.add("system", yield* instructions(linked, slice))
  return sections.close()
}

/** A turn of a prompt, as `readPrompt` finds it. */
export interface PromptTurn {
  readonly role: Role
  readonly text: string
}

const marker = /^<\|(system|user|assistant|tool)\|>$/gm
const end = "<|end|>"

const isRole = (word: string): word is Role =>
  word === "system" || word === "user" || word === "assistant" || word === "tool"

const withoutLastNewlines = (text: string): string => {
  let length = text.length
  while (length > 0 && text.charCodeAt(length - 1) === 10) length--
  return text.slice(0, length)
}

const turn = (role: Role, text: string): PromptTurn => {
  const body = withoutLastNewlines(text.startsWith("\n") ? text.slice(1) : text)
  return { role, text: body.endsWith(end) ? withoutLastNewlines(body.slice(0, -end.length)) : body }
}

/** Splits a prompt into its turns, without the open assistant turn at its end. Text without markers is one user turn. */
export const readPrompt = (prompt: string): ReadonlyArray<PromptTurn> => {
  const turns: Array<PromptTurn> = []
  let role: Role = "user"
  let start = 0
  for (const match of prompt.matchAll(marker)) {
    if (match.index > start) turns.push(turn(role, prompt.slice(start, match.index)))
    if (match[1] !== undefined && isRole(match[1])) role = match[1]
    start = match.index + match[0].length
  }
  if (start < prompt.length) turns.push(turn(role, prompt.slice(start)))
  const last = turns.at(-1)
  if (last !== undefined && last.role === "assistant" && last.text === "") turns.pop()
  return turns
}
