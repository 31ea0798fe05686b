/**
 * Makes a history's calls and results refer to each other: every call has an id, every result the id and name of its call.
 */
import type { CallPart, Conversation, Part, ResultPart } from "./Conversation.ts"

/**
 * Fills in missing ids and names. A result without an id answers the first call that is still open (of its name, where it
 * has one); a result whose id is unknown keeps it.
 */
export const linkCalls = (conversation: Conversation): Conversation => {
  if (!conversation.turns.some((turn) => turn.parts.some(isLinked))) return conversation
  let made = 0
  const names = new Map<string, string>()
  const open = new Map<string, string>()
  const call = (part: CallPart): CallPart => {
    const id = part.id === "" ? `call_history_${made++}` : part.id
    names.set(id, part.name)
    open.set(id, part.name)
    return part.id === id ? part : { ...part, id }
  }
  const firstOpen = (name: string | undefined): string | undefined => {
    for (const [id, called] of open) if (name === undefined || name === called) return id
    return undefined
  }
  const result = (part: ResultPart): ResultPart => {
    const callId = part.callId === "" ? firstOpen(part.name) ?? `call_history_${made++}` : part.callId
    open.delete(callId)
    const name = part.name ?? names.get(callId)
    return part.callId === callId && part.name === name ? part : { ...part, callId, name }
  }
  const link = (part: Part): Part => part._tag === "Call" ? call(part) : part._tag === "Result" ? result(part) : part
  return {
    ...conversation,
    turns: conversation.turns.map((turn) => turn.parts.some(isLinked) ? { ...turn, parts: turn.parts.map(link) } : turn)
  }
}

const isLinked = (part: Part): boolean => part._tag === "Call" || part._tag === "Result"
