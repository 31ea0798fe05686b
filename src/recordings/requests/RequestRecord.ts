/**
 * The record of one request: what is known of it, and references to the bytes of both sides, written while it runs.
 *
 * All of it is synchronous and cheap. Nothing is read out of the bytes until somebody looks.
 */
import * as Redacted from "effect/Redacted"
import type { Account } from "../../config/Account.ts"
import type { Conversation } from "../../domain/Conversation.ts"
import { directKey } from "../../usage/UsageEntry.ts"
import { plainUrl } from "../captures/blot.ts"
import { type Chunk, type Mark, markSize, openSize, type Spares } from "../captures/byteLog.ts"
import type { RoundsWatch } from "../captures/Captures.ts"
import { type Hold, type HoldLimit, RoundBytes } from "../captures/RoundBytes.ts"
import { conversationSize } from "./conversation.ts"
import type { Holder, Ledger } from "./Ledger.ts"
import { hasLeft, type RequestFacts } from "./RequestFacts.ts"

/** What the caller sent, but for the body. */
export interface RequestHead {
  readonly method: string
  readonly path: string
  /** Without credentials and cookies. */
  readonly headers: Readonly<Record<string, string>>
}

/** Bytes of one side with when their chunks came. */
export interface RecordedBytes {
  readonly bytes: Uint8Array
  /** Times are monotonic milliseconds. */
  readonly marks: ReadonlyArray<Mark>
  readonly truncated: boolean
  readonly contentType: string | undefined
}

/** A round with the upstream. */
export interface RecordedRound {
  readonly captureId: string
  readonly label: string
  readonly attempt: number
  readonly url: string
  readonly account: string
  readonly status: number
  readonly requestBody: string
  readonly reply: RecordedBytes
}

/** What a record pays for the bytes of one side, at most until the record has forgotten them. */
class Payment implements HoldLimit {
  readonly #record: RequestRecord
  readonly #most: number
  #paid = 0
  #have = 0
  #marks = 0

  constructor(record: RequestRecord, most: number) {
    this.#record = record
    this.#most = most
  }

  allow(next: number, chunks: number): number {
    const wanted = Math.min(next, this.#most)
    if (this.#pay(openSize(wanted) + markSize * chunks)) {
      this.#have = wanted
      this.#marks = chunks
    }
    return this.#have
  }

  /** No more comes: pays for what is there, and no longer for memory that might be needed. */
  settle(): void {
    this.#pay(this.#have + markSize * this.#marks)
  }

  #pay(bytes: number): boolean {
    if (!this.#record.pay(bytes - this.#paid)) return false
    this.#paid = bytes
    return true
  }
}

/** The part of a body that a record keeps, and what it pays for it. */
interface Kept {
  readonly hold: Hold
  readonly payment: Payment
}

interface Round extends Omit<RecordedRound, "status" | "requestBody" | "reply"> {
  status: number
  contentType: string | undefined
  readonly request: Kept
  readonly reply: Kept
}

interface Reply extends Kept {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: RoundBytes
}

/** Everything that may be forgotten while the record stays. */
interface Bodies {
  body: Kept | undefined
  conversation: Conversation | undefined
  conversationLeftOut: boolean
  readonly rounds: Array<Round>
  reply: Reply | undefined
  /** The accounts and the tokens of the rounds, none of which anybody may be shown. */
  readonly accounts: Set<Account>
  readonly tokens: Set<Redacted.Redacted<string>>
  /** The caller's credential. */
  readonly secret: string
}

/** What a record needs of the ring that it is in. */
export interface RecordHome {
  readonly ledger: Ledger
  readonly spares: Spares
  /** Bytes that are kept of each body; 0 where none is. */
  readonly mostBytes: () => number
  /** The configured account of a name. */
  readonly accountOf: (name: string) => Account | undefined
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Says that something that lists show has changed. */
  readonly touched: (record: RequestRecord) => void
}

/** How a request ended. */
export type Outcome = "open" | "ok" | "failed" | "cancelled"

const sizeOfHeaders = (headers: Readonly<Record<string, string>>): number => {
  let size = 0
  for (const name of Object.keys(headers)) size += 2 * (name.length + headers[name]!.length) + 64
  return size
}

const unwatched: ReturnType<RoundsWatch["round"]> = { opened: () => undefined, closed: () => undefined }

export class RequestRecord implements Holder, RoundsWatch {
  /** Rises with every record of the ring. */
  readonly number: number
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly facts: RequestFacts
  /** The key's id, or `direct`. */
  readonly key: string
  /** The account of the last attempt; empty without one. */
  account = ""
  /** When it changed last, by the ring's count of changes. */
  changed = 0
  /** Monotonic milliseconds. */
  endedAt: number | undefined = undefined
  readonly #home: RecordHome
  #head: RequestHead
  #bodies: Bodies | undefined
  #held = 0
  #leased = false

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
    this.#bodies = home.mostBytes() === 0 || !this.#take(sizeOfHeaders(head.headers)) ? undefined : {
      body: undefined,
      conversation: undefined,
      conversationLeftOut: false,
      rounds: [],
      reply: undefined,
      accounts: new Set(),
      tokens: new Set(),
      secret
    }
    if (this.#bodies === undefined) this.#head = { ...head, headers: {} }
  }

  // What those who handle the request say of it.

  /** The body as it came. */
  received(text: string): void {
    const bodies = this.#bodies
    if (bodies === undefined) return
    const bytes = new RoundBytes(this.#home.spares)
    bodies.body = this.#keep(bytes)
    bytes.push(text, this.#home.now())
    bytes.close()
    bodies.body.payment.settle()
  }

  /** What the body means. */
  decoded(conversation: Conversation): void {
    const bodies = this.#bodies
    if (bodies === undefined) return
    const size = conversationSize(conversation)
    if (size <= 2 * this.#home.mostBytes() && this.#take(size)) bodies.conversation = conversation
    else bodies.conversationLeftOut = true
  }

  /** An account, or a caller's own token, was given; `undefined` for the latter. */
  leased(account: string | undefined): void {
    this.account = account ?? ""
    this.#leased = true
    this.#home.touched(this)
  }

  /** Something of the facts has changed that lists show. */
  progressed(): void {
    this.#home.touched(this)
  }

  /** The reply's head; `body` where it is a whole one. */
  answered(status: number, headers: Readonly<Record<string, string>>, body: Uint8Array | undefined): void {
    const bodies = this.#bodies
    if (bodies !== undefined && bodies.reply === undefined && this.#take(sizeOfHeaders(headers))) {
      const bytes = new RoundBytes(this.#home.spares)
      bodies.reply = { status, headers, bytes, ...this.#keep(bytes) }
      if (body !== undefined) this.sent(body)
    }
    this.#home.touched(this)
  }

  /** A piece of the reply goes to the caller. A text is referred to until the reply is over, or much has gathered. */
  sent(chunk: Chunk): void {
    this.#bodies?.reply?.bytes.push(chunk, this.#home.now())
  }

  /** The request is over, whatever ended it. */
  ended(): void {
    if (this.endedAt !== undefined) return
    this.endedAt = this.#home.now()
    const reply = this.#bodies?.reply
    reply?.bytes.close()
    reply?.payment.settle()
    if (this.#bodies !== undefined) this.#home.ledger.finished(this, this.isRefused)
    this.#home.touched(this)
  }

  round({ account, captureId, info, reply, request }: Parameters<RoundsWatch["round"]>[0]): ReturnType<
    RoundsWatch["round"]
  > {
    const bodies = this.#bodies
    if (bodies === undefined) return unwatched
    const configured = account === "" ? undefined : this.#home.accountOf(account)
    if (info.secret !== undefined) bodies.tokens.add(info.secret)
    if (configured !== undefined) bodies.accounts.add(configured)
    const round: Round = {
      captureId,
      label: info.label,
      attempt: this.facts.attempts,
      url: this.#take(2 * info.url.length) ? info.url : "",
      account,
      status: 0,
      contentType: undefined,
      request: this.#keep(request),
      reply: this.#keep(reply)
    }
    bodies.rounds.push(round)
    return {
      opened(status, contentType) {
        // The request's body is as long as it will be.
        round.request.payment.settle()
        round.status = status
        round.contentType = contentType
      },
      closed() {
        round.request.payment.settle()
        round.reply.payment.settle()
      }
    }
  }

  // What those who look are shown.

  get outcome(): Outcome {
    if (this.endedAt === undefined) return "open"
    if (this.facts.error !== undefined) return "failed"
    return hasLeft(this.facts) ? "cancelled" : "ok"
  }

  /** Over, and answered with a 4xx; a caller's own token counts as refused without success, since anybody may make one up. */
  get isRefused(): boolean {
    if (this.endedAt === undefined) return false
    const { status = 0 } = this.facts
    return (status >= 400 && status < 500) || (this.key === directKey && this.outcome !== "ok")
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

  /** The body as far as it is kept. */
  get body(): { readonly text: string; readonly truncated: boolean } {
    const bodies = this.#bodies
    return {
      text: bodies?.body?.hold.text() ?? "",
      truncated: bodies === undefined || bodies.conversationLeftOut || bodies.body?.hold.truncated === true
    }
  }

  get conversation(): Conversation | undefined {
    return this.#bodies?.conversation
  }

  get secrets(): ReadonlySet<string> {
    const bodies = this.#bodies
    if (bodies === undefined) return new Set()
    const redacted = [...bodies.tokens, ...[...bodies.accounts].flatMap(({ password, token }) => [password, token])]
    return new Set([bodies.secret, ...redacted.filter((secret) => secret !== undefined).map(Redacted.value)])
  }

  get rounds(): ReadonlyArray<RecordedRound> {
    return (this.#bodies?.rounds ?? []).map(({ contentType, reply, request, url, ...round }) => ({
      ...round,
      url: plainUrl(url),
      requestBody: request.hold.text(),
      reply: recorded(reply.hold, contentType, request.hold.truncated)
    }))
  }

  get reply(): (Pick<Reply, "status" | "headers"> & { readonly body: RecordedBytes }) | undefined {
    const reply = this.#bodies?.reply
    return reply === undefined ? undefined : {
      status: reply.status,
      headers: reply.headers,
      body: recorded(reply.hold, reply.headers["content-type"], false)
    }
  }

  forgetBodies(): void {
    const bodies = this.#bodies
    this.#bodies = undefined
    this.#head = { ...this.#head, headers: {} }
    for (const { reply, request } of bodies?.rounds ?? []) {
      request.hold.release()
      reply.hold.release()
    }
    bodies?.body?.hold.release()
    bodies?.reply?.hold.release()
    this.#home.ledger.give(this.#held)
    this.#held = 0
    this.#home.ledger.left(this)
  }

  // Memory.

  /** Keeps what the record's limit and the ring's room allow of a body. */
  #keep(bytes: RoundBytes): Kept {
    const payment = new Payment(this, this.#home.mostBytes())
    return { hold: bytes.hold(payment), payment }
  }

  /** Pays for so many bytes more, or gets back what is negative. Returns false where that is not possible. */
  pay(bytes: number): boolean {
    if (this.#bodies === undefined) return false
    if (bytes > 0) return this.#take(bytes)
    this.#give(-bytes)
    return true
  }

  #give(bytes: number): void {
    this.#home.ledger.give(bytes)
    this.#held -= bytes
  }

  #take(bytes: number): boolean {
    if (!this.#home.ledger.take(bytes)) return false
    this.#held += bytes
    return true
  }
}

const recorded = (hold: Hold, contentType: string | undefined, requestTruncated: boolean): RecordedBytes => ({
  bytes: hold.bytes(),
  marks: hold.marks(),
  truncated: requestTruncated || hold.truncated,
  contentType
})
