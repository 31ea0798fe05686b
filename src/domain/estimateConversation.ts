/**
 * Estimates the prompt tokens of a conversation, for `count_tokens` in every style and for usage that the upstream does not report.
 */
import type { Conversation, Part } from "./Conversation.ts"
import { estimateTokens } from "./estimateTokens.ts"
import { type Cooperative, pieceChars, runSync, Slice } from "./stream/cooperative.ts"

/** Tokens of a turn beyond its text: the markers around it. */
const perTurn = 3
/** Tokens of an image: about a medium one in the vendors' tables. */
const perImage = 765

/** Counts a long text in pieces; each cut adds at most one token. */
function* textTokens(text: string, slice: Slice): Cooperative<number> {
  let tokens = 0
  for (let from = 0; from < text.length; from += pieceChars) {
    const end = Math.min(text.length, from + pieceChars)
    if (slice.add(1, end - from)) yield slice.end()
    tokens += estimateTokens(text, from, end)
  }
  return tokens
}

function* partTokens(part: Part, slice: Slice): Cooperative<number> {
  switch (part._tag) {
    case "Text":
    case "Reasoning":
      return yield* textTokens(part.text, slice)
    case "Image":
      return perImage
    case "File":
      return part.data === undefined ? perTurn : Math.ceil(part.data.length / 4)
    case "Call":
      return perTurn + (yield* textTokens(part.name, slice)) + (yield* textTokens(part.arguments, slice))
    case "Result": {
      let tokens = perTurn
      for (const content of part.content) {
        if (slice.add(1)) yield slice.end()
        tokens += yield* partTokens(content, slice)
      }
      return tokens
    }
  }
}

const estimated = new WeakMap<Conversation, number>()

/** Estimates the tokens of turns, tools and output schema, once per conversation. `estimateTokens` states the accuracy. */
export function* estimateCooperatively(conversation: Conversation): Cooperative<number> {
  const known = estimated.get(conversation)
  if (known !== undefined) return known
  const slice = new Slice()
  let tokens = 0
  for (const { parts } of conversation.turns) {
    tokens += perTurn
    for (const part of parts) {
      if (part._tag === "Text" && part.text.length <= pieceChars) {
        if (slice.add(2, part.text.length)) yield slice.end()
        tokens += estimateTokens(part.text)
      } else {
        if (slice.add(1)) yield slice.end()
        tokens += yield* partTokens(part, slice)
      }
    }
  }
  for (const { description, name, parameters } of conversation.tools) {
    const texts = [name, description ?? "", parameters === undefined ? "" : JSON.stringify(parameters)]
    tokens += perTurn
    for (const text of texts) tokens += yield* textTokens(text, slice)
  }
  if (conversation.output?._tag === "JsonSchema") {
    tokens += yield* textTokens(JSON.stringify(conversation.output.schema), slice)
  }
  estimated.set(conversation, tokens)
  return tokens
}

/** `estimateCooperatively` without pauses. */
export const estimateConversation = (conversation: Conversation): number => runSync(estimateCooperatively(conversation))

/** Longest prompt, in characters, whose tokens are always estimated: one slice of work. */
const shortPrompt = pieceChars

/** True if the prompt is so long that estimating its tokens is worth avoiding. */
export const isLong = ({ turns }: Conversation): boolean => {
  let characters = 0
  for (const { parts } of turns) {
    for (const part of parts) {
      if (part._tag === "Result") return true
      if (part._tag === "Text" || part._tag === "Reasoning") characters += part.text.length
      else if (part._tag === "Call") characters += part.arguments.length
      if (characters > shortPrompt) return true
    }
  }
  return false
}
