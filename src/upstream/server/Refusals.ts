/**
 * What the refusals of one server say of a request: the conversations and bodies changed by it.
 *
 * A client that speaks the server's contract gets its refusals, and its own fields stay: only what the gateway itself has added is left out.
 */
import { commonWords } from "../../contracts/names.ts"
import { EditedBody, thoughtsOfTurns, withoutRefused } from "../../contracts/shared/editedBody.ts"
import { refusingWords } from "../../contracts/shared/refusals.ts"
import type { RefusedPart } from "../../domain/refusedParts.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { type FamilyName, isWholeFor } from "../../domain/VendorFields.ts"
import type { CompletionRequest } from "../Upstream.ts"
import { type AcceptedConversation, acceptedConversation } from "./acceptedConversation.ts"
import { knownFor } from "./LearnedModels.ts"
import type { Fact, LearnedRefusals } from "./LearnedRefusals.ts"

/** What a refusal has said of a part of a request. */
export interface Known extends Omit<Fact, "contract" | "model"> {
  /** A caller can not have written the words. */
  readonly isServers: boolean
}

/** Characters of the words that are kept. */
const longestWords = 300

/** True if the request has none of the refusing words of a message, which may repeat what its caller wrote. */
const hasOwnWords = (message: string, body: string): boolean =>
  new EditedBody(body).isPlain &&
  refusingWords(message).every((words) => !body.includes(JSON.stringify(words.slice(0, -1)).slice(1, -1)))

/** Fields that the gateway adds by itself. */
const added: ReadonlySet<string> = new Set(["prompt_cache_key", "stream_options", "include"])

const keepsMeaning: ReadonlySet<RefusedPart["_tag"]> = new Set([
  "ForcedCall",
  "ToolsOrSchema",
  "NoSchema",
  "AlternateTurns",
  "NoSystem",
  "TooLong"
])

/** Whether a field may be left out of a request: not what its client has written in the server's own contract. */
const mayDrop =
  (contract: FamilyName, { client, conversation }: CompletionRequest) => (path: string, part: RefusedPart): boolean => {
    const { serverFields, vendorFields } = conversation
    const isWhole = isWholeFor(conversation, contract)
    if (!Object.hasOwn((isWhole ? vendorFields?.fields : serverFields) ?? {}, path) && added.has(path)) return true
    if (isWhole) return false
    // The gateway writes the thinking of earlier turns by names of its own, whatever the client has for it.
    if (client !== contract || thoughtsOfTurns.has(path)) return true
    // Servers of the common contract differ in the efforts that they read, and Ollama's models read none.
    return part._tag === "UnsupportedValue" && part.allowed.length === 0 && path === "reasoning_effort"
  }

/** A body as it is sent, and the paths of what was changed. */
interface FittedBody {
  readonly body: string
  readonly changed: ReadonlyArray<string>
}

/** What is known of the models of one server in a contract, and what follows from it. */
export class Refusals {
  readonly #contract: FamilyName
  readonly #learned: LearnedRefusals

  constructor(contract: FamilyName, learned: LearnedRefusals) {
    this.#contract = contract
    this.#learned = learned
  }

  /** True if something of a model's refusals is remembered. */
  knows(model: string): boolean {
    return this.#learned.has(this.#contract, model)
  }

  /** The conversation of a request for a model, by what is known of it, and `more` that its own refusals have said. */
  accepted(model: string, request: CompletionRequest, now: number, more: ReadonlyArray<Known>): AcceptedConversation {
    const { client, conversation } = request
    const parts = [...this.#learned.of(this.#contract, model, now), ...more].map(({ part }) => part)
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
    more: ReadonlyArray<Known>
  ): FittedBody {
    const facts = [...this.#learned.of(this.#contract, model, now), ...more]
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
    const all = refusingWords(message)
    const words = all.filter((one, i) =>
      !all.some((other, k) => k !== i && other.includes(one) && (other !== one || k < i))
    )
      .join("; ").slice(0, longestWords)
    return refused.map((part) => ({
      part,
      isServers,
      words,
      until: now + knownFor,
      perCharacter: part._tag === "OverWindow" ? part.prompt / body.length : 0
    }))
  }

  /** Remembers what refusals have said in the server's words, once a request without it was answered. */
  learn(model: string, known: ReadonlyArray<Known>): void {
    for (const { isServers, ...fact } of known) {
      // Whether a model thinks differs from request to request.
      if (isServers && fact.part._tag !== "ForcedCall") {
        this.#learned.learn({ ...fact, contract: this.#contract, model })
      }
    }
  }

  /** A request with this body was answered: forgets what it contradicts. */
  answered(model: string, body: string, now: number): void {
    const facts = this.#learned.of(this.#contract, model, now)
    if (facts.length === 0) return
    const sent = new EditedBody(body)
    for (const fact of facts) if (isSent(sent, fact.part)) this.#learned.end(fact)
  }
}

/** True for a body with what a part says that the server refuses. */
const isSent = (body: EditedBody, part: RefusedPart): boolean => {
  switch (part._tag) {
    case "UnsupportedField":
      return body.placesOf(part.path).length > 0
    case "RefusedValue":
      return body.placesWith(part.path, part.value).length > 0
    case "OutOfRange":
      return body.placesOutside(part).length > 0
    case "TooLarge":
      return (body.limit()?.[1] ?? 0) > part.most
    case "TooLong": {
      const text = body.get(part.path)
      return typeof text === "string" && text.length > part.most
    }
    default:
      return false
  }
}
