/**
 * What the refusals of one server have said of its models, and the bodies of requests changed by it. A fact ends after an hour, after a
 * success that contradicts it, and with the driver, which a change of the upstream replaces.
 *
 * A client that speaks the server's contract gets its refusals, and its own fields stay: only what the gateway itself has added is left out.
 */
import { commonWords } from "../../contracts/names.ts"
import { EditedBody, withoutRefused } from "../../contracts/shared/editedBody.ts"
import { refusingWords } from "../../contracts/shared/refusals.ts"
import { keyOfPart, type RefusedPart } from "../../domain/refusedParts.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { type FamilyName, isWholeFor } from "../../domain/VendorFields.ts"
import type { CompletionRequest } from "../Upstream.ts"
import { type AcceptedConversation, acceptedConversation } from "./acceptedConversation.ts"
import { knownFor } from "./LearnedModels.ts"

/** Models that are remembered, and facts of each; one more takes the place of the oldest. */
const mostModels = 1_000
const mostOfModel = 64

export interface Known {
  readonly part: RefusedPart
  /** Monotonic milliseconds. */
  readonly until: number
  /** Tokens of the prompt for each character of the body, where the prompt was counted. */
  readonly perCharacter: number
  /** A caller can not have written the words. */
  readonly isServers: boolean
}

/** True if the request has none of the refusing words of a message, which may repeat what its caller wrote. */
const hasOwnWords = (message: string, body: string): boolean =>
  new EditedBody(body).isPlain &&
  refusingWords(message).every((words) => !body.includes(JSON.stringify(words.slice(0, -1)).slice(1, -1)))

/** Fields that the gateway adds by itself. */
const added: ReadonlySet<string> = new Set(["prompt_cache_key", "stream_options", "include"])

const keepsMeaning: ReadonlySet<RefusedPart["_tag"]> = new Set(["ForcedCall", "ToolsOrSchema", "TooLong"])

/** Whether a field may be left out of a request: not what its client has written in the server's own contract. */
const mayDrop =
  (contract: FamilyName, { client, conversation }: CompletionRequest) => (path: string, part: RefusedPart): boolean => {
    if (isWholeFor(conversation, contract)) return false
    if (client !== contract) return true
    const isWritten = Object.hasOwn(conversation.serverFields ?? {}, path)
    // Servers of the common contract differ in the efforts that they read, and Ollama's models read none.
    return (!isWritten && added.has(path)) ||
      (part._tag === "UnsupportedValue" && part.allowed.length === 0 && path === "reasoning_effort")
  }

/** Adds to a map of bounded size. */
const put = <Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void => {
  map.delete(key)
  for (const oldest of map.keys()) {
    if (map.size < most) break
    map.delete(oldest)
  }
  map.set(key, value)
}

/** A body as it is sent, and the paths of what was changed. */
interface FittedBody {
  readonly body: string
  readonly changed: ReadonlyArray<string>
}

export class Refusals {
  readonly #contract: FamilyName
  readonly #models = new Map<string, Map<string, Known>>()

  constructor(contract: FamilyName) {
    this.#contract = contract
  }

  /** What is known of each model. `now`: monotonic milliseconds. */
  known(now: number): ReadonlyArray<{ readonly model: string; readonly part: RefusedPart }> {
    return Array.from(this.#models, ([model]) => this.#of(model, now).map(({ part }) => ({ model, part }))).flat()
  }

  /** True if something of a model's refusals is remembered. */
  knows(model: string): boolean {
    return this.#models.has(model)
  }

  /** The conversation of a request for a model, by what is known of it, and `more` that its own refusals have said. */
  accepted(model: string, request: CompletionRequest, now: number, more: ReadonlyArray<Known>): AcceptedConversation {
    const { client, conversation } = request
    const parts = [...this.#of(model, now), ...more].map(({ part }) => part)
    if (isWholeFor(conversation, this.#contract)) return acceptedConversation(conversation, [])
    if (client !== this.#contract) return acceptedConversation(conversation, parts)
    // Servers of the common contract have parts of it. What the gateway changes for them keeps its meaning.
    const kept = this.#contract === commonWords ? parts.filter(({ _tag }) => keepsMeaning.has(_tag)) : []
    return acceptedConversation(conversation, kept)
  }

  /** The body of a request for a model, by what is known of it, and `more` that its own refusals have said. */
  fitted(
    model: string,
    body: string,
    request: CompletionRequest,
    now: number,
    more: ReadonlyArray<Known> = []
  ): FittedBody {
    const facts = [...this.#of(model, now), ...more]
    if (facts.length === 0) return { body, changed: [] }
    const unread = facts.flatMap(({ part }) => part._tag === "UnsupportedField" ? [part.path] : [])
    const edited = new EditedBody(body, new Set(unread))
    const before = String(edited)
    for (const { part, perCharacter } of facts) {
      const counted = part._tag === "OverWindow" ? { ...part, prompt: Math.ceil(body.length * perCharacter) } : part
      withoutRefused(edited, counted, mayDrop(this.#contract, request))
    }
    const after = String(edited)
    // What the gateway adds by itself is no loss of the client's.
    const isNamed = (path: string) => !added.has(path) || Object.hasOwn(request.conversation.serverFields ?? {}, path)
    return after === before ? { body, changed: [] } : { body: after, changed: edited.changed.filter(isNamed) }
  }

  /** What the refusal of a body says. */
  static read({ message = "", refused = [] }: UpstreamFailure, body: string, now: number): ReadonlyArray<Known> {
    const isServers = hasOwnWords(message, body)
    return refused.map((part) => ({
      part,
      isServers,
      until: now + knownFor,
      perCharacter: part._tag === "OverWindow" ? part.prompt / body.length : 0
    }))
  }

  /** Remembers what refusals have said in the server's words, once a request without it was answered. */
  learn(model: string, known: ReadonlyArray<Known>): void {
    const facts = this.#models.get(model) ?? new Map<string, Known>()
    for (const each of known) {
      // Whether a model thinks differs from request to request.
      if (each.isServers && each.part._tag !== "ForcedCall") put(facts, keyOfPart(each.part), each, mostOfModel)
    }
    put(this.#models, model, facts, mostModels)
  }

  /** A request with this body was answered: forgets what it contradicts. */
  answered(model: string, body: string, now: number): void {
    if (this.#of(model, now).length === 0) return
    const sent = new EditedBody(body)
    for (const [key, { part }] of this.#models.get(model) ?? []) {
      const limit = part._tag === "TooLarge" ? sent.limit()?.[1] ?? 0 : 0
      const text = part._tag === "TooLong" ? sent.get(part.path) : undefined
      const isSent = part._tag === "UnsupportedField"
        ? sent.placesOf(part.path).length > 0
        : part._tag === "TooLong"
        ? typeof text === "string" && text.length > part.most
        : part._tag === "TooLarge" && limit > part.most
      if (isSent) this.#models.get(model)?.delete(key)
    }
  }

  #of(model: string, now: number): ReadonlyArray<Known> {
    const facts = this.#models.get(model)
    if (facts === undefined) return []
    for (const [key, { until }] of facts) if (until <= now) facts.delete(key)
    return [...facts.values()]
  }
}
