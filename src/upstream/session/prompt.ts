/**
 * The one-string prompt of the session protocol (upstream-protocol, "The prompt").
 *
 * Reasoning of earlier turns is left out: the models are trained without it. A last turn of the assistant stays open, so that
 * the model goes on from it.
 */
import type { Conversation, Part, Role, StructuredOutput, Turn } from "../../domain/Conversation.ts"
import { toolsEnabled } from "../../domain/Conversation.ts"
import { declareTools } from "../../tools/declaration.ts"
import { disarm } from "../../tools/disarm.ts"
import { renderCall, renderResult } from "../../tools/history.ts"

const omitted = (what: string, name: string | undefined): string =>
  name === undefined || name === "" ? `[${what} omitted]` : `[${what} omitted: ${disarm(name)}]`

const partText = (part: Part): string => {
  switch (part._tag) {
    case "Text":
      return disarm(part.text)
    case "Image":
      return omitted("image", undefined)
    case "File":
      return omitted(part.kind, part.name)
    case "Reasoning":
      return ""
    case "Call":
      return renderCall(part)
    case "Result":
      return renderResult(part)
  }
}

const turnText = (turn: Turn): string => turn.parts.map(partText).filter((text) => text !== "").join("\n\n")

/** The instruction that stands for a structured output, which the upstream has no field for. */
const outputInstruction = (output: StructuredOutput): string =>
  output._tag === "JsonObject"
    ? "Answer with one JSON object and nothing else: no prose, no code fence."
    : [
      "Answer with one JSON value that conforms to this JSON Schema, and nothing else: no prose, no code fence.",
      ...(output.description === undefined ? [] : [disarm(output.description)]),
      disarm(JSON.stringify(output.schema))
    ].join("\n")

interface Said {
  readonly role: Role
  readonly text: string
}

/** Turns with text, neighbours of one role merged with a blank line between them. */
const merged = (turns: ReadonlyArray<Said>): ReadonlyArray<Said> => {
  const result: Array<Said> = []
  for (const turn of turns) {
    if (turn.text === "") continue
    const last = result.at(-1)
    if (last?.role === turn.role) result[result.length - 1] = { role: turn.role, text: `${last.text}\n\n${turn.text}` }
    else result.push(turn)
  }
  return result
}

/** Renders a conversation. */
export const renderPrompt = (conversation: Conversation): string => {
  const said: Array<Said> = conversation.turns.map((turn) => ({ role: turn.role, text: turnText(turn) }))
  const instructions: Array<Said> = []
  if (toolsEnabled(conversation)) {
    const { parallelToolCalls, toolChoice, tools } = conversation
    instructions.push({ role: "system", text: declareTools(tools, toolChoice, parallelToolCalls) })
  }
  if (conversation.output !== undefined) {
    instructions.push({ role: "system", text: outputInstruction(conversation.output) })
  }
  const afterSystem = said.findIndex((turn) => turn.role !== "system")
  said.splice(afterSystem === -1 ? said.length : afterSystem, 0, ...instructions)
  const turns = merged(said)
  const last = turns.at(-1)
  const lines = turns.map((turn) =>
    turn.role !== "assistant"
      ? `<|${turn.role}|>\n${turn.text}\n`
      : turn === last
      ? `<|assistant|>\n${turn.text}`
      : `<|assistant|>\n${turn.text}<|end|>\n`
  )
  return last?.role === "assistant" ? lines.join("") : `${lines.join("")}<|assistant|>\n`
}
