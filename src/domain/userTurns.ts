/**
 * Splits what one user message holds into turns, for styles in which tool results stand among a user's parts.
 */
import type { Part, Turn } from "./Conversation.ts"

/** Neighbours of one kind share a turn: results in `tool` turns, all else in `user` turns. Order is kept. */
export const userTurns = (parts: ReadonlyArray<Part>): ReadonlyArray<Turn> => {
  if (parts.length === 0) return [{ role: "user", parts }]
  const turns: Array<Turn> = []
  let from = 0
  for (let i = 1; i <= parts.length; i++) {
    const isResult = parts[from]!._tag === "Result"
    if (i < parts.length && (parts[i]!._tag === "Result") === isResult) continue
    turns.push({ role: isResult ? "tool" : "user", parts: parts.slice(from, i) })
    from = i
  }
  return turns
}
