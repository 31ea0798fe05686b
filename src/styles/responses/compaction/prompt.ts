/**
 * The texts of a compaction, and the conversation that asks a model for a summary.
 */
import { type Asked, type CompletedReply, mostSummaryTokens } from "../../../completion/CompletionInput.ts"
import { type Conversation, type Part, Text } from "../../../domain/Conversation.ts"
import { type GatewayError, gatewayError } from "../../../domain/GatewayError.ts"
import { replyOf, replyText } from "../../../domain/Reply.ts"
import { longestSummary } from "./seal.ts"

const handover =
  "You are handing this work over. Another model continues it. It sees your summary and the user's messages, and nothing else of this " +
  "conversation. Write the summary now, as plain text, without calling tools. Say what the user wants, with all constraints and " +
  "preferences; what was done and decided, and why; the exact names that matter: files, functions, commands, addresses, ids, numbers, " +
  "error messages; what works, what fails and what is unknown now; and the next steps in order. Leave out what no longer matters."

/** Characters of a tool's result, where the whole conversation is too long. */
const longestResult = 2_000

const cutNote = "\n[The rest was cut.]"

/** The beginning of a text that was cut, with a note: at most `most` characters, unless the note alone is longer. */
const beginningOf = (text: string, most: number): string =>
  text.slice(0, Math.max(0, most - cutNote.length)).toWellFormed() + cutNote

/** The text, or its beginning with a note if it is longer than `most` characters. */
export const cutTo = (text: string, most: number): string => text.length <= most ? text : beginningOf(text, most)

/** The text of the message that a compaction becomes. */
export const summaryMessage = (summary: string): string =>
  `Summary of the earlier conversation, written by a model:\n\n${summary}`

const isLongResult = (part: Part): boolean =>
  part._tag === "Result" && part.content.some((each) => each._tag === "Text" && each.text.length > longestResult)

const withShortResult = (part: Part): Part =>
  part._tag !== "Result" || !isLongResult(part) ? part : {
    ...part,
    content: part.content.map((each) =>
      each._tag === "Text" ? { ...each, text: cutTo(each.text, longestResult) } : each
    )
  }

/** The conversation with the beginnings of long results; `undefined` if no result is long. */
const withShortResults = (conversation: Conversation): Conversation | undefined =>
  conversation.turns.some(({ parts }) => parts.some(isLongResult))
    ? {
      ...conversation,
      turns: conversation.turns.map((turn) => ({ ...turn, parts: turn.parts.map(withShortResult) }))
    }
    : undefined

/**
 * What asks the model of a conversation for its summary. The caller's limit, stop sequences and output schema belong to a reply. If the prompt is too
 * long, the model is asked once more with the beginnings of long results.
 */
export const summaryRequest = (conversation: Conversation): Asked => {
  const asking: Conversation = {
    ...conversation,
    turns: [...conversation.turns, { role: "user", parts: [Text(handover)] }],
    toolChoice: { _tag: "None" },
    stop: [],
    sampling: { ...conversation.sampling, maxTokens: mostSummaryTokens },
    output: undefined,
    vendorFields: undefined,
    vendorTools: undefined
  }
  return { conversation: asking, shorter: () => withShortResults(asking) }
}

/** The summary that a model wrote, or the error of a reply without one. */
export const summaryIn = ({ events }: Pick<CompletedReply, "events">): string | GatewayError => {
  const reply = replyOf(events)
  const text = replyText(reply).trim()
  if (reply.finish === "content_filter") {
    return gatewayError("content_filter", "The upstream withdrew the summary of the conversation")
  }
  if (text === "") return gatewayError("upstream_empty_output", "The model wrote no summary of the conversation")
  return reply.finish === "length" ? beginningOf(text, longestSummary) : cutTo(text, longestSummary)
}
