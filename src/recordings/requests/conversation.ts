/**
 * A conversation as records show it: what each turn says, in words.
 */
import type { Conversation, Part, ResultPart, Turn } from "../../domain/Conversation.ts"

/** One turn, or one result of a tool. */
export interface ShownTurn {
  readonly role: string
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string; readonly arguments: string }>
  /** The call that a tool's result answers. */
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

/** The turns in their order; a turn with several results is one for each of them. */
export const showConversation = ({ turns }: Conversation): ReadonlyArray<ShownTurn> => turns.flatMap(shownTurn)

const lengthOf = (part: Part): number => {
  switch (part._tag) {
    case "Text":
    case "Reasoning":
      return part.text.length
    case "Image":
      return (part.url?.length ?? 0) + (part.data?.length ?? 0)
    case "File":
      return (part.url?.length ?? 0) + (part.data?.length ?? 0)
    case "Call":
      return part.id.length + part.name.length + part.arguments.length
    case "Result":
      return part.callId.length + part.content.reduce((sum, each) => sum + lengthOf(each), 0)
  }
}

/** Memory that the objects of a turn or a part take beside their text, roughly. */
const overhead = 96

/** Bytes of memory that a conversation takes, at most: a character of a text takes one or two. */
export const conversationSize = ({ tools, turns }: Conversation): number =>
  turns.reduce(
    (sum, { parts }) => sum + overhead + parts.reduce((of, part) => of + overhead + 2 * lengthOf(part), 0),
    tools.length * overhead
  )
