/**
 * The record of one request: its facts, and the bytes of both sides, written while the request runs.
 *
 * Recording is synchronous and cheap. The bytes are interpreted only when an operator opens the record.
 */
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Redacted from "effect/Redacted"
import type { Account } from "../config/Account.ts"
import type { UpstreamProtocol } from "../contracts/drivers.ts"
import type { Conversation } from "../domain/Conversation.ts"
import { directKey } from "../domain/usageNames.ts"
import type { RoundsKeeper } from "./Captures.ts"
import { conversationSize } from "./conversation.ts"
import type { Evictable, MemoryBudget } from "./MemoryBudget.ts"
import { type Chunk, type Hold, RecordedBody, type RecordedBytes, type Spares } from "./RecordedBytes.ts"
import { plainUrl, recordedHeaders, type RequestHead } from "./redactRound.ts"
import { hasLeft, type RequestFacts } from "./RequestFacts.ts"
import { Reservation } from "./Reservation.ts"
import { type KeptRound, releaseRound, type Round } from "./Round.ts"

/** A round with the upstream. */
export interface RecordedRound {
  readonly captureId: string
  readonly label: string
  readonly protocol: UpstreamProtocol
  readonly attempt: number
  readonly url: string
  readonly account: string
  readonly status: number
  readonly requestBody: string
  readonly reply: RecordedBytes
}

interface RoundOfRecord extends KeptRound {
  readonly captureId: string
  readonly attempt: number
  readonly url: string
}

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: RecordedBody
  readonly hold: Hold
}

/** Everything that the memory budget may evict while the record stays. */
interface Bodies {
  body: Hold | undefined
  conversation: Conversation | undefined
  conversationLeftOut: boolean
  readonly rounds: Array<RoundOfRecord>
  reply: Reply | undefined
  /** The accounts of the rounds; their secrets are redacted. */
  readonly accounts: Set<Account>
  /** The caller's credential, redacted too. */
  readonly secret: string
}

/** The part of the ring that its records use. */
interface RecordHome {
  readonly budget: MemoryBudget
  readonly spares: Spares
  /** Largest kept beginning of a body, in bytes; 0 while bodies are off. */
  readonly mostBytes: () => number
  /** The configured account with this name. */
  readonly accountOf: (name: string) => Account | undefined
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Reports a change that lists show. */
  readonly touched: (record: RequestRecord) => void
}

/** How a request ended. */
export type Outcome = "open" | "ok" | "failed" | "cancelled"

const sizeOfHeaders = (headers: Readonly<Record<string, string>>): number => {
  let size = 0
  for (const name of Object.keys(headers)) size += 2 * (name.length + headers[name]!.length) + 64
  return size
}

/** The reply as it was recorded. */
type RecordedReply = Pick<Reply, "status" | "headers"> & { readonly body: RecordedBytes }

export class RequestRecord implements Evictable, RoundsKeeper {
  /** Position in the order of all records. */
  readonly number: number
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly facts: RequestFacts
  /** The key's id, or `direct`. */
  readonly key: string
  /** The account of the last attempt; empty without one. */
  account = ""
  /** The ring's change counter at the last change. */
  changed = 0
  /** Monotonic milliseconds. */
  endedAt: number | undefined = undefined
  readonly #home: RecordHome
  #head: RequestHead
  #bodies: Bodies | undefined
  #held = 0
  #leased = false
  #isAside = false

  constructor(
    home: RecordHome,
    { facts, head, key, number, secret, startedAt }: {
      readonly number: number
      readonly startedAt: number
      readonly facts: RequestFacts
      readonly key: string
      readonly head: RequestHead
      readonly secret: string
    }
  ) {
    this.#home = home
    this.number = number
    this.startedAt = startedAt
    this.facts = facts
    this.key = key
    this.#head = head
    this.#bodies = home.mostBytes() === 0 || !this.#reserve(sizeOfHeaders(head.headers)) ? undefined : {
      body: undefined,
      conversation: undefined,
      conversationLeftOut: false,
      rounds: [],
      reply: undefined,
      accounts: new Set(),
      secret
    }
    if (this.#bodies === undefined) this.#head = { ...head, headers: {} }
  }

  // Written while the request runs.

  /** Records the request body. */
  received(text: string): void {
    const bodies = this.#bodies
    if (bodies === undefined) return
    const bytes = new RecordedBody(this.#home.spares)
    bodies.body = this.#keep(bytes)
    bytes.push(text, this.#home.now())
    bytes.close()
  }

  /** Records the decoded conversation. */
  decoded(asked: Conversation): void {
    const bodies = this.#bodies
    if (bodies === undefined) return
    // The body shows these fields; a second copy would cost memory that the record does not pay for.
    const conversation = asked.serverFields === undefined ? asked : { ...asked, serverFields: undefined }
    const size = conversationSize(conversation)
    if (size <= 2 * this.#home.mostBytes() && this.#reserve(size)) bodies.conversation = conversation
    else bodies.conversationLeftOut = true
  }

  /** Records the leased account; `undefined` for a caller's own token. */
  leased(account: string | undefined): void {
    this.account = account ?? ""
    this.#leased = true
    this.#home.touched(this)
  }

  /** Keeps the record among those of refused requests, because the request asked no server. */
  setAside(): void {
    this.#isAside = true
  }

  /** Reports a change of the facts. */
  progressed(): void {
    this.#home.touched(this)
  }

  /** Records the response head, and the body unless it is a stream. */
  responded(response: HttpServerResponse.HttpServerResponse, requestId: string): void {
    const { body, status } = response
    // The chunks of a stream are recorded as they are sent.
    this.answered(status, recordedHeaders(response, requestId), body._tag === "Uint8Array" ? body.body : undefined)
  }

  /** Records a response head, and a body. */
  answered(status: number, headers: Readonly<Record<string, string>>, body: Uint8Array | undefined): void {
    const bodies = this.#bodies
    if (bodies !== undefined && bodies.reply === undefined && this.#reserve(sizeOfHeaders(headers))) {
      const bytes = new RecordedBody(this.#home.spares)
      bodies.reply = { status, headers, bytes, hold: this.#keep(bytes) }
      if (body !== undefined) this.sent(body)
    }
    this.#home.touched(this)
  }

  /** Records a chunk of the response. */
  sent(chunk: Chunk): void {
    this.#bodies?.reply?.bytes.push(chunk, this.#home.now())
  }

  /** Ends the record, on every outcome. */
  ended(): void {
    if (this.endedAt !== undefined) return
    this.endedAt = this.#home.now()
    this.#bodies?.reply?.bytes.close()
    if (this.#bodies !== undefined) this.#home.budget.finished(this, this.isRefused)
    this.#home.touched(this)
  }

  keepRound(round: Round, captureId: string): void {
    const bodies = this.#bodies
    if (bodies === undefined) return
    const configured = round.account === "" ? undefined : this.#home.accountOf(round.account)
    if (configured !== undefined) bodies.accounts.add(configured)
    const url = this.#reserve(2 * round.url.length) ? round.url : ""
    const kept = round.keep(this.#rule(), this.#rule())
    bodies.rounds.push({ ...kept, captureId, attempt: this.facts.attempts, url })
  }

  // Read by operators.

  get outcome(): Outcome {
    if (this.endedAt === undefined) return "open"
    if (this.facts.error !== undefined) return "failed"
    return hasLeft(this.facts) ? "cancelled" : "ok"
  }

  /**
   * True for a finished request with a 4xx status. An unsuccessful request with a caller's own token counts as refused too,
   * because such a token is not verified. Its record does not push out those of requests that were served.
   */
  get isRefused(): boolean {
    if (this.endedAt === undefined) return false
    if (this.#isAside) return true
    const { status = 0 } = this.facts
    return (status >= 400 && status < 500) || (this.key === directKey && this.outcome !== "ok")
  }

  /** Milliseconds of the request, so far if it still runs. */
  get duration(): number {
    return Math.max(0, (this.endedAt ?? this.#home.now()) - this.facts.startedAt)
  }

  get state(): "queued" | "upstream" | "streaming" | "done" {
    if (this.endedAt !== undefined) return "done"
    if (this.facts.firstEventAt !== undefined) return "streaming"
    return this.#leased ? "upstream" : "queued"
  }

  get bodiesKept(): boolean {
    return this.#bodies !== undefined
  }

  get head(): RequestHead {
    return this.#head
  }

  /** Bytes of memory that the record takes. */
  get heldBytes(): number {
    return this.#held
  }

  /** The kept beginning of the request body. */
  get body(): { readonly text: string; readonly truncated: boolean } {
    return this.#body(whole)
  }

  get conversation(): Conversation | undefined {
    return this.#bodies?.conversation
  }

  get secrets(): ReadonlySet<string> {
    const bodies = this.#bodies
    if (bodies === undefined) return new Set()
    const ofAccounts = [...bodies.accounts].flatMap(({ password, token }) => [password, token])
    return new Set([
      bodies.secret,
      ...bodies.rounds.flatMap(({ round }) => round.secrets),
      ...ofAccounts.filter((secret) => secret !== undefined).map(Redacted.value)
    ])
  }

  get rounds(): ReadonlyArray<RecordedRound> {
    return this.#rounds(whole)
  }

  get reply(): RecordedReply | undefined {
    return this.#reply(whole)
  }

  /** The record for an operator who may not read bodies. They are empty, and not made from what is kept. */
  get withoutBodies(): Pick<RequestRecord, "body" | "conversation" | "reply" | "rounds"> {
    return {
      body: this.#body(without),
      conversation: undefined,
      reply: this.#reply(without),
      rounds: this.#rounds(without)
    }
  }

  #body({ text }: HoldReader): { readonly text: string; readonly truncated: boolean } {
    const bodies = this.#bodies
    return {
      text: bodies?.body === undefined ? "" : text(bodies.body),
      truncated: bodies === undefined || bodies.conversationLeftOut || bodies.body?.truncated === true
    }
  }

  #rounds({ recorded, text }: HoldReader): ReadonlyArray<RecordedRound> {
    return (this.#bodies?.rounds ?? []).map(({ attempt, captureId, reply, request, round, url }) => ({
      captureId,
      label: round.label,
      protocol: round.protocol,
      attempt,
      url: plainUrl(url),
      account: round.account,
      status: round.status,
      requestBody: text(request),
      reply: {
        ...recorded(reply),
        truncated: request.truncated || reply.truncated,
        contentType: round.contentType
      }
    }))
  }

  #reply({ recorded }: HoldReader): RecordedReply | undefined {
    const reply = this.#bodies?.reply
    return reply === undefined ? undefined : {
      status: reply.status,
      headers: reply.headers,
      body: {
        ...recorded(reply.hold),
        truncated: reply.hold.truncated,
        contentType: reply.headers["content-type"]
      }
    }
  }

  forgetBodies(): void {
    const bodies = this.#bodies
    this.#bodies = undefined
    this.#head = { ...this.#head, headers: {} }
    bodies?.rounds.forEach(releaseRound)
    bodies?.body?.release()
    bodies?.reply?.hold.release()
    this.#home.budget.release(this.#held)
    this.#held = 0
    this.#home.budget.removed(this)
  }

  // Memory.

  /** Keeps the beginning of a body that the limit per body and the memory budget allow. */
  #keep(bytes: RecordedBody): Hold {
    return bytes.hold(this.#rule())
  }

  #rule(): Reservation {
    return new Reservation(this, this.#home.mostBytes())
  }

  /** Reserves `bytes` more, or releases a negative number. Returns false at the limit. */
  resize(bytes: number): boolean {
    if (this.#bodies === undefined) return false
    if (bytes > 0) return this.#reserve(bytes)
    this.#release(-bytes)
    return true
  }

  #release(bytes: number): void {
    this.#home.budget.release(bytes)
    this.#held -= bytes
  }

  #reserve(bytes: number): boolean {
    if (!this.#home.budget.reserve(bytes)) return false
    this.#held += bytes
    return true
  }
}

/** How kept bodies are read. */
interface HoldReader {
  readonly text: (hold: Hold) => string
  readonly recorded: (hold: Hold) => Pick<RecordedBytes, "bytes" | "marks">
}

const whole: HoldReader = {
  text: (hold) => hold.text(),
  recorded: (hold) => ({ bytes: hold.bytes(), marks: hold.marks() })
}

const nothing: Pick<RecordedBytes, "bytes" | "marks"> = { bytes: new Uint8Array(0), marks: [] }

const without: HoldReader = { text: () => "", recorded: () => nothing }
