/**
 * Renders a conversation as the one string that a session upstream takes (upstream-protocol, "The prompt").
 *
 * No marker in it is the caller's: every piece of theirs is disarmed, in earlier assistant turns too, since those come from
 * the caller as well. Reasoning of earlier turns is left out, as models are not shown their own again.
 */
import {
  type Conversation,
  type FilePart,
  type ImagePart,
  type Part,
  type ResultPart,
  type Role,
  type StructuredOutput,
  Text,
  type TextPart,
  toolsEnabled,
  type Turn
} from "../../domain/Conversation.ts"
import { linkCalls } from "../../domain/linkCalls.ts"
import { declareTools } from "../../tools/declaration.ts"
import { disarm } from "../../tools/disarm.ts"
import { guardJson, renderCall, renderResult } from "../../tools/history.ts"

/** A turn as it stands in the prompt. */
interface Section {
  readonly role: Role
  readonly text: string
}

const paragraphs = (texts: ReadonlyArray<string>): string => texts.filter((text) => text !== "").join("\n\n")

/** What stands for a part that the upstream cannot take, so that the model knows that something was there. */
const omitted = (part: ImagePart | FilePart): string => {
  if (part._tag === "Image") return "[image omitted]"
  return part.name === undefined
    ? `[${part.kind} omitted]`
    : `[${part.kind} omitted: ${part.name.replace(/\s+/g, " ")}]`
}

const asText = (part: TextPart | ImagePart | FilePart): TextPart => part._tag === "Text" ? part : Text(omitted(part))

const result = (part: ResultPart): string => renderResult({ ...part, content: part.content.map(asText) })

const renderPart = (part: Part): string => {
  switch (part._tag) {
    case "Text":
      return disarm(part.text)
    case "Image":
    case "File":
      return disarm(omitted(part))
    case "Reasoning":
      return ""
    case "Call":
      return renderCall(part)
    case "Result":
      return result(part)
  }
}

const section = (turn: Turn): Section => ({ role: turn.role, text: paragraphs(turn.parts.map(renderPart)) })

const describeOutput = (output: StructuredOutput | undefined, tools: boolean): string => {
  if (output === undefined) return ""
  const unless = tools ? "Unless you call a tool, reply" : "Reply"
  const bare = "Write the JSON alone: no code fence and no words around it."
  if (output._tag === "JsonObject") return `# Output\n\n${unless} with one JSON object. ${bare}`
  const description = output.description === undefined ? "" : `\n\n${disarm(output.description)}`
  return `# Output\n\n${unless} with one JSON value that fits this JSON Schema exactly. ${bare}${description}\n\n${
    guardJson(JSON.stringify(output.schema))
  }`
}

/** What the gateway itself tells the model: its tools and the form of its answer. */
const instructions = (conversation: Conversation): string => {
  const enabled = toolsEnabled(conversation)
  return paragraphs([
    enabled ? declareTools(conversation.tools, conversation.toolChoice, conversation.parallelToolCalls) : "",
    describeOutput(conversation.output, enabled)
  ])
}

/** Puts the gateway's instructions behind the system text that leads the conversation. */
const instruct = (sections: ReadonlyArray<Section>, text: string): ReadonlyArray<Section> => {
  if (text === "") return sections
  const first = sections.findIndex(({ role }) => role !== "system")
  const at = first === -1 ? sections.length : first
  return [...sections.slice(0, at), { role: "system", text }, ...sections.slice(at)]
}

/** Empty turns are left out; adjacent turns of one role become one. */
const merge = (sections: ReadonlyArray<Section>): ReadonlyArray<Section> => {
  const merged: Array<Section> = []
  for (const { role, text } of sections) {
    if (text === "") continue
    const last = merged.at(-1)
    if (last?.role === role) merged[merged.length - 1] = { role, text: `${last.text}\n\n${text}` }
    else merged.push({ role, text })
  }
  return merged
}

/** The prompt must end with an open assistant turn, so that a started one is closed and its continuation asked for. */
const continueStarted: Section = {
  role: "system",
  text: "Continue your last message exactly where it stops. Do not repeat any of it and do not comment on it."
}

/** The prompt of a conversation. It always ends with an open assistant turn. */
export const renderPrompt = (conversation: Conversation): string => {
  const linked = linkCalls(conversation)
  const sections = merge(instruct(linked.turns.map(section), instructions(linked)))
  const closed = sections.at(-1)?.role === "assistant" ? [...sections, continueStarted] : sections
  let prompt = ""
  for (const { role, text } of closed) prompt += `<|${role}|>\n${text}${role === "assistant" ? "<|end|>" : ""}\n`
  return `${prompt}<|assistant|>`
}
