/** What a conversation is known by over its turns. */
import { createHmac } from "node:crypto"
import type { Conversation, Part } from "../domain/Conversation.ts"

/** The characters of a text by which it is known, with its length. */
const knownBy = 16 * 1024

/** The beginning of a long text stands for it, with its length: a conversation keeps its first turn, and a wrong preference costs little. */
const beginningOf = (text: string): string =>
  text.length <= knownBy ? text : `${text.slice(0, knownBy)}\n${text.length}`

/** Stands for a part that is no text. Its size is as good as its bytes: a wrong preference costs little. */
const textOf = (part: Part): string => {
  switch (part._tag) {
    case "Text":
    case "Reasoning":
      return part.text
    case "Call":
      return `${part.name} ${part.arguments}`
    default:
      return part._tag
  }
}

/**
 * A hash of the system text, the tools and the first user turn, under the caller's name: the same for every turn of the conversation.
 * Costs one pass over the beginnings of these.
 */
export const conversationKey = (owner: string, { tools, turns }: Conversation): string => {
  const hash = createHmac("sha256", owner)
  const first = turns.find(({ role }) => role === "user")
  for (const { description, name, parameters } of tools) {
    hash.update(`tool\n${name}\n${description ?? ""}\n${parameters === undefined ? "" : JSON.stringify(parameters)}\n`)
  }
  for (const turn of turns) {
    if (turn.role !== "system" && turn !== first) continue
    hash.update(`${turn.role}\n`)
    for (const part of turn.parts) hash.update(`${beginningOf(textOf(part))}\n`)
  }
  return hash.digest("base64url")
}

/** A hash of an agent's session, under the caller's name. */
export const sessionKey = (owner: string, session: string, agent = ""): string =>
  createHmac("sha256", owner).update(`session\n${session}\n${agent}`).digest("base64url")

/** A hash that stands for a conversation: of its session and agent, or else of its beginning. */
export const turnsKey = (
  owner: string,
  identity: { readonly session: string | undefined; readonly agent: string | undefined } | undefined,
  conversation: Conversation
): string =>
  identity?.session === undefined
    ? conversationKey(owner, conversation)
    : sessionKey(owner, identity.session, identity.agent)

/** What stands for a conversation at the cache of a server, by its session or its beginning: 32 hex digits. */
export const cacheName = (
  owner: string,
  identity: { readonly session: string | undefined; readonly agent: string | undefined } | undefined,
  conversation: Conversation
): string => {
  const key = turnsKey(owner, identity, conversation)
  return createHmac("sha256", owner).update(`cache\n${key}`).digest("hex").slice(0, 32)
}

/** Whether a conversation has been answered before. */
export const isContinued = ({ turns }: Conversation): boolean => turns.some(({ role }) => role === "assistant")
