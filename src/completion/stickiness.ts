/**
 * By what a conversation is known over its turns, and which conversations prefer the account that answered them last: those whose server keeps
 * their prompt warm, for as long as it does; and which prefer the account that stores or sealed a part of them.
 */
import { createHmac, hash } from "node:crypto"
import type { Preference, Stickiness, TurnMemory } from "../accounts/Lease.ts"
import type { GatewayConfig, UpstreamConfig } from "../config/GatewayConfig.ts"
import { cachingOf } from "../contracts/contractOf.ts"
import { isServer } from "../contracts/drivers.ts"
import type { Conversation, Part } from "../domain/Conversation.ts"
import type { ServedInput } from "./CompletionInput.ts"
import type { SealedCalls } from "./SealedCalls.ts"

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

/** A hash of a text under the caller's name, of which the length is fixed. In one call, which takes a fifth of the time of an HMAC's four. */
const under = (owner: string, text: string): string => hash("sha256", `${owner}\n${text}`, "base64url")

/**
 * A hash of the system text, the tools and the first user turn, under the caller's name: the same for every turn of the conversation.
 * Costs one pass over the beginnings of these.
 */
export const conversationKey = (owner: string, { tools, turns }: Conversation): string => {
  const first = turns.find(({ role }) => role === "user")
  let text = ""
  for (const { description, name, parameters } of tools) {
    text += `tool\n${name}\n${description ?? ""}\n${parameters === undefined ? "" : JSON.stringify(parameters)}\n`
  }
  for (const turn of turns) {
    if (turn.role !== "system" && turn !== first) continue
    text += `${turn.role}\n`
    for (const part of turn.parts) text += `${beginningOf(textOf(part))}\n`
  }
  return under(owner, text)
}

/** A hash of an agent's session, under the caller's name. */
export const sessionKey = (owner: string, session: string, agent = ""): string =>
  under(owner, `session\n${session}\n${agent}`)

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

/** Milliseconds that a server keeps a prompt after its last use; `hasHour` if the server has written it for an hour. */
export const lifetimeIn = ({ driver, prompt_cache: { mark_ttl, ttl } }: UpstreamConfig, hasHour = false): number => {
  const { lifetime, markedLifetime } = cachingOf(driver)
  return 1000 * (ttl ?? (mark_ttl === "5m" && !hasHour ? markedLifetime : lifetime))
}

/** The names of the upstreams that have a choice of accounts, for each configuration. */
const pooled = new WeakMap<GatewayConfig["accounts"], ReadonlySet<string>>()

const pooledIn = ({ accounts }: GatewayConfig): ReadonlySet<string> => {
  const known = pooled.get(accounts)
  if (known !== undefined) return known
  const [once, several] = [new Set<string>(), new Set<string>()]
  for (const { disabled, upstream } of accounts) {
    if (disabled) continue
    if (once.has(upstream)) several.add(upstream)
    else once.add(upstream)
  }
  pooled.set(accounts, several)
  return several
}

/**
 * By what a conversation is known: the session and the agent that its client names, the session, the agent's parent, or else its beginning.
 * `undefined` where nothing is preferred, or there is nothing to choose from.
 */
export const stickinessOf = (
  { caller: { owner }, config, conversation, model: { options, targets }, request: { identity } }: ServedInput
): Stickiness | undefined => {
  const sticky = options.sticky ?? config.runtime.sticky
  const lifetimeOf = (name: string): number => {
    const upstream = config.upstreams.get(name)
    return upstream === undefined || sticky === false || (sticky === "auto" && !isServer(upstream.driver))
      ? 0
      : lifetimeIn(upstream)
  }
  const hasChoice = targets.length > 1 || targets.some(({ upstream }) => pooledIn(config).has(upstream))
  if (!hasChoice || !targets.some(({ upstream }) => lifetimeOf(upstream) > 0)) return undefined
  const how = { lifetimeOf, prefersTarget: sticky === "target" }
  const session = identity?.session
  const key = turnsKey(owner, identity, conversation)
  if (identity === undefined || session === undefined) {
    return { ...how, keys: [key], isContinued: isContinued(conversation) }
  }
  const { agent, parent } = identity
  const further = agent === undefined ? [] : [
    sessionKey(owner, session),
    ...(parent === undefined ? [] : [sessionKey(owner, session, parent)])
  ]
  return { ...how, keys: [key, ...further], isContinued: true }
}

/** The account that stores the response which the conversation continues, then those that open the newest seal. */
export const preferencesOf = (
  { caller: { owner }, conversation, model }: ServedInput,
  sealed: SealedCalls
): ReadonlyArray<Preference> | undefined => {
  const prefersTarget = model.options.sticky !== false
  const holder = conversation.vendorFields?.continued?.heldBy
  const maker = sealed.newestMaker(owner, conversation)
  return holder === undefined && maker === undefined ? undefined : [
    ...(holder === undefined ? [] : [{ maker: holder, isAccount: true, prefersTarget }]),
    ...(maker === undefined ? [] : [{ maker, isAccount: false, prefersTarget }])
  ]
}

/** What the turns of a conversation leave to each other, before the first attempt. */
export const turnMemoryOf = (
  { caller: { owner }, conversation, request: { identity } }: ServedInput,
  sticky: Stickiness | undefined
): TurnMemory => ({
  key: () => sticky?.keys[0] ?? turnsKey(owner, identity, conversation),
  isContinued: identity?.session !== undefined || isContinued(conversation),
  last: undefined,
  next: undefined
})
