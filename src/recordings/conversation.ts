/**
 * A conversation as records show it: the text and calls of each turn.
 */
import type { Conversation, Part, ResultPart, Turn } from "../domain/Conversation.ts"

/** A turn, or a tool result. */
interface ShownTurn {
  readonly role: string
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string; readonly arguments: string }>
  /** Id of the call that a tool result belongs to. */
  readonly call_id: string | null
}

const wordsOf = (part: Part): string => {
  switch (part._tag) {
    case "Text":
    case "Reasoning":
      return part.text
    case "Image":
      return "[image]"
    case "File":
      return `[${part.kind}]`
    case "Call":
      return ""
    case "Result":
      return part.content.map(wordsOf).join("")
  }
}

const shownResult = (part: ResultPart): ShownTurn => ({
  role: "tool",
  text: wordsOf(part),
  calls: [],
  call_id: part.callId
})

const shownTurn = ({ parts, role }: Turn): ReadonlyArray<ShownTurn> => {
  const results = parts.filter((part) => part._tag === "Result")
  const others = parts.filter((part) => part._tag !== "Result")
  if (others.length === 0 && results.length > 0) return results.map(shownResult)
  const calls = others.filter((part) => part._tag === "Call")
  return [{
    role,
    text: others.map(wordsOf).join(""),
    calls: calls.map((call) => ({ id: call.id, name: call.name, arguments: call.arguments })),
    call_id: null
  }, ...results.map(shownResult)]
}

/** The turns in order; every tool result becomes an entry of its own. */
export const showConversation = ({ turns }: Conversation): ReadonlyArray<ShownTurn> => turns.flatMap(shownTurn)

const lengthOf = (part: Part): number => {
  switch (part._tag) {
    case "Text":
    case "Reasoning":
      return part.text.length
    case "Image":
    case "File":
      return (part.url?.length ?? 0) + (part.data?.length ?? 0)
    case "Call":
      return part.id.length + part.name.length + part.arguments.length
    case "Result":
      return part.callId.length + part.content.reduce((sum, each) => sum + lengthOf(each), 0)
  }
}

/** Estimated memory of a turn or part beside its text, in bytes. */
const overhead = 96

/** Upper bound of a conversation's memory, in bytes, at two bytes per character. */
export const conversationSize = ({ tools, turns }: Conversation): number =>
  turns.reduce(
    (sum, { parts }) => sum + overhead + parts.reduce((of, part) => of + overhead + 2 * lengthOf(part), 0),
    tools.length * overhead
  )
