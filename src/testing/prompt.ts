/**
 * The prompt as the reference upstream reads it: one string back into its turns (protocol page, "The prompt").
 */

export interface PromptTurn {
  readonly role: "system" | "user" | "assistant" | "tool"
  readonly text: string
}

const marker = /^<\|(system|user|assistant|tool)\|>$/gm
const end = "<|end|>"

const isRole = (word: string): word is PromptTurn["role"] =>
  word === "system" || word === "user" || word === "assistant" || word === "tool"

const withoutLastNewlines = (text: string): string => {
  let length = text.length
  while (length > 0 && text.charCodeAt(length - 1) === 10) length--
  return text.slice(0, length)
}

const turn = (role: PromptTurn["role"], text: string): PromptTurn => {
  const body = withoutLastNewlines(text.startsWith("\n") ? text.slice(1) : text)
  return { role, text: body.endsWith(end) ? withoutLastNewlines(body.slice(0, -end.length)) : body }
}

/** Splits a prompt into turns; the open assistant turn at its end is none. Text without markers is one user turn. */
export const readPrompt = (prompt: string): ReadonlyArray<PromptTurn> => {
  const turns: Array<PromptTurn> = []
  let role: PromptTurn["role"] = "user"
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
