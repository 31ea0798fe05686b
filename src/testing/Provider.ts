/**
 * The scripted provider without a transport: it takes a request of the session protocol and returns a call with the steps of its reply.
 *
 * The rules of the protocol's calls are the embedded upstream's. It has accounts, limits, scripts, faults, orders for requests to come, and a
 * log of what it received. Synchronous; sockets and the in-process client play the steps.
 */
import {
  type CallName,
  callOf,
  type CompletionBody,
  readBody,
  readLogin,
  readToken
} from "../contracts/session/readRequest.ts"
import { type Answer, loggedIn, refused, turnedAway } from "../contracts/session/writeReply.ts"
import { answerCall, badRequest, noMessage, type Replies, unknownCall } from "../upstream/embedded/answerer.ts"
import type { Session } from "../upstream/embedded/Sessions.ts"
import { CallLog, type CallRecord, type Report } from "./CallLog.ts"
import { dropOldest, Identities, type IdentityOptions } from "./Identities.ts"
import { Call, type Steps, stepsOf } from "./provider/Call.ts"
import { answerWith, deliverWith, type Fault, replyWith } from "./provider/faults.ts"
import type { Reply, ReplySettings, ScriptedFault } from "./provider/Reply.ts"
import { replyStream } from "./provider/round.ts"
import { replyTo } from "./provider/script.ts"
import { type SessionOptions, type SessionTurn, Turns } from "./provider/Turns.ts"
import { rawStream } from "./provider/wire.ts"

/** How a provider is set up. */
export interface ReferenceOptions extends SessionOptions, IdentityOptions {
  /** Default of `!pace`, in milliseconds; by default streams leave without delay. */
  readonly pace?: number | undefined
  /** Default of `!burst` (1). */
  readonly burst?: number | undefined
  /** Completions of an account that may run concurrently (no limit). */
  readonly maxRunning?: number | undefined
  /** Characters of a prompt (no limit). */
  readonly maxPrompt?: number | undefined
  /** The number of latest requests in the report (256). */
  readonly remember?: number | undefined
  /** Milliseconds that an idle connection stays open (65,000). */
  readonly keepAlive?: number | undefined
}

/** A request without its transport. */
export interface ProviderRequest {
  readonly method: string
  /** Path without the query. */
  readonly path: string
  readonly query: string
  /** The `Authorization` header. */
  readonly authorization: string | undefined
  readonly body: string
}

/** A reply that replaces the answer to a request: a script, or a recorded stream byte for byte. */
type GivenReply =
  | { readonly script: string }
  | {
    readonly raw: string | Uint8Array
    /** Bytes in one write (all). */
    readonly chunk?: number | undefined
  }

interface Order {
  /** `completion` by default. */
  readonly call?: CallName | undefined
  /** Only requests of this account: email, mobile or bare token. */
  readonly account?: string | undefined
  /** Only requests whose body contains this text. */
  readonly containing?: string | undefined
  /** The number of requests that it applies to (1). */
  readonly times?: number | undefined
}

/** A fault for the next requests that match. */
export interface FaultOrder extends Order, Fault {}

/** A reply for the next completions, or continued streams, that match. */
export type ReplyOrder = Order & GivenReply

/** A queue of orders: each request takes the first one that matches it. */
class Orders<A extends Order> {
  private readonly queue: Array<{ readonly order: A; left: number }> = []

  add(order: A): void {
    this.queue.push({ order, left: order.times ?? 1 })
  }

  take({ account, body, name }: CallRecord): A | undefined {
    if (this.queue.length === 0) return undefined
    const index = this.queue.findIndex(({ order }) =>
      (order.call ?? "completion") === name &&
      (order.account === undefined || order.account === account) &&
      (order.containing === undefined || body.includes(order.containing))
    )
    const found = this.queue[index]
    if (found === undefined) return undefined
    if (--found.left <= 0) this.queue.splice(index, 1)
    return found.order
  }

  clear(): void {
    this.queue.length = 0
  }
}

/** A request that is being answered. */
interface Exchange {
  readonly call: Call
  readonly record: CallRecord
}

const tokenMessages = { 40001: "no token", 40002: "token invalid", 40003: "token expired" }
const loginMessages = { 2: "wrong email, mobile or password", 5: "account suspended" }

/** A reply that depends only on the prompt and the flags is rendered once. */
interface Rendered {
  readonly reply: Reply
  readonly steps: Steps
}
const maxRendered = 64
const maxRenderedPrompt = 64 * 1024
const maxRenderedSteps = 2000
const firstResponse = 2

/** Scripts whose `times` are counted; the oldest are dropped. */
const maxCounted = 1000

export class Provider {
  private readonly options: ReferenceOptions
  private readonly now: () => number
  private readonly settings: ReplySettings
  private readonly identities: Identities
  private readonly sessions: Turns
  private readonly log: CallLog
  private readonly rendered = new Map<string, Rendered>()
  /** How often each fault with `times` has happened, by script. */
  private readonly counted = new Map<string, number>()
  private readonly faultOrders = new Orders<FaultOrder>()
  private readonly replyOrders = new Orders<ReplyOrder>()
  private readonly listeners = new Set<() => void>()
  /** The running streams with their prompts. */
  private readonly running = new Map<Call, string>()

  /** `now` returns the time in milliseconds. */
  constructor(options: ReferenceOptions, now: () => number) {
    this.options = options
    this.now = now
    this.settings = { pace: options.pace, burst: options.burst ?? 1 }
    this.identities = new Identities(options)
    this.sessions = new Turns(options)
    this.log = new CallLog(options.remember ?? 256)
  }

  /** Answers a request. Nothing has left yet; the player of the steps reports the outcome to the call. */
  handle(request: ProviderRequest): Call {
    const call = new Call()
    const name = callOf(request.method, request.path)
    if (name === undefined) {
      this.log.violation(`${request.method} ${request.path}`)
      call.steps = stepsOf(unknownCall)
    } else {
      this.answer(call, name, request)
    }
    this.changed()
    return call
  }

  private answer(call: Call, name: CallName, request: ProviderRequest): void {
    const { body } = request
    const token = readToken(request.authorization)
    const login = name === "login" ? readBody.login(body) : undefined
    const record: CallRecord = {
      name,
      account: login?.email ?? login?.mobile ?? this.identities.accountOf(token),
      body,
      prompt: undefined,
      faults: [],
      outcome: "open"
    }
    this.opened(record, call)
    const answer = this.faultAnswer(record) ?? this.admit({ call, record }, token, request)
    call.steps = record.faults.reduce((steps, fault) => deliverWith(fault, steps), answer)
  }

  private opened(record: CallRecord, call: Call): void {
    this.log.opened(record)
    call.onEnd = (outcome) => {
      this.log.closed(record, outcome)
      this.changed()
    }
    call.onSilence = () => {
      this.log.silent()
      this.changed()
    }
    const fault = this.faultOrders.take(record)
    if (fault !== undefined) record.faults.push(fault)
  }

  /** The answer of the first fault that replaces the call. */
  private faultAnswer({ faults }: CallRecord): Steps | undefined {
    for (const fault of faults) {
      const answer = answerWith(fault)
      if (answer !== undefined) return answer
    }
    return undefined
  }

  /** The steps of an answer that is not a stream. Counts what no caller sends who keeps to the protocol. */
  private plain({ body, name }: CallRecord, answer: Answer): Steps {
    if (answer === badRequest || answer === noMessage) {
      this.log.violation(`${name} ${answer === badRequest ? "of another form" : "of an unknown message"}: ${body}`)
    }
    return stepsOf(answer)
  }

  private admit(exchange: Exchange, token: string, { body, query }: ProviderRequest): Steps {
    const { record } = exchange
    const { account, name } = record
    if (name === "login") return this.logIn(record)
    const identified = this.identities.identify(token, this.now())
    if (identified !== "known") {
      if (identified.code === 40001) this.log.violation(`${name} without a token`)
      return stepsOf(turnedAway(identified.code, tokenMessages[identified.code], identified.status))
    }
    const replies: Replies<Steps> = {
      answer: (answer) => this.plain(record, answer),
      complete: (session, completion) => this.complete(exchange, session, completion),
      resume: (session, message) => {
        const turn = this.sessions.turn(session, message)
        return turn === undefined ? this.plain(record, noMessage) : this.resume(exchange, session, turn)
      },
      stop: (session, message) => this.sessions.turn(session, message)?.running?.stop()
    }
    return answerCall({ name, account, query, body, now: this.now() }, this.sessions, replies)
  }

  private logIn(record: CallRecord): Steps {
    const login = readLogin(record.body)
    if (login === undefined) return this.plain(record, badRequest)
    const result = this.identities.logIn(login, this.now())
    if ("bizCode" in result) {
      this.log.login(undefined)
      return stepsOf(refused(result.bizCode, loginMessages[result.bizCode]))
    }
    this.log.login(login.account)
    return stepsOf(loggedIn(login, result.token))
  }

  /** The refusal of a completion, if it is refused. */
  private refuse({ account, prompt = "" }: CallRecord): Answer | undefined {
    const { maxPrompt = Infinity, maxRunning = Infinity } = this.options
    if (prompt.length > maxPrompt) return refused(9, "the prompt is too long")
    return this.log.runningOf(account) >= maxRunning ? refused(6, "too many completions are running") : undefined
  }

  private complete(exchange: Exchange, session: Session, body: CompletionBody): Steps {
    const { record } = exchange
    const { parent_message_id: parent, prompt, search_enabled: search, thinking_enabled: thinking } = body
    record.prompt = prompt
    if (parent !== null && this.sessions.turn(session, parent) === undefined) return this.plain(record, noMessage)
    const refusal = this.refuse(record)
    if (refusal !== undefined) return stepsOf(refusal)
    const given = this.replyOrders.take(record)
    const ids = this.sessions.next(session)
    const key = `${thinking}${search}${prompt}`
    const plain = given === undefined && ids.response === firstResponse && record.faults.length === 0
    const known = plain ? this.rendered.get(key) : undefined
    const planned = known?.reply ??
      replyTo(
        { prompt, thinking, search, earlier: this.sessions.upTo(session, parent) },
        this.settings,
        given === undefined ? undefined : "script" in given ? given.script : "!say \"\""
      )
    this.addScripted(record, planned, "completion", prompt)
    const answer = this.faultAnswer(record)
    if (answer !== undefined) return answer
    const reply = record.faults.reduce((each, fault) => replyWith(fault, each), planned)
    const turn: SessionTurn = { ids, parent, prompt, reply, sent: 0, running: undefined }
    this.run(exchange, turn)
    this.sessions.asked(session, prompt, this.now())
    this.sessions.add(session, turn)
    if (given !== undefined && "raw" in given) return rawStream(given.raw, given.chunk)
    if (known !== undefined) return known.steps
    const steps = replyStream(reply, ids, { start: "first", from: 0 }, record.faults)
    if (plain && reply.faults.length === 0) this.keep(key, { reply, steps })
    return steps
  }

  private resume(exchange: Exchange, { id }: Session, turn: SessionTurn): Steps {
    turn.running?.stop()
    const { record } = exchange
    const given = this.replyOrders.take(record)
    this.addScripted(record, turn.reply, "continue", id)
    const answer = this.faultAnswer(record)
    if (answer !== undefined) return answer
    this.run(exchange, turn)
    if (given !== undefined && "raw" in given) return rawStream(given.raw, given.chunk)
    return replyStream(turn.reply, turn.ids, { start: turn.reply.cuts.restart, from: turn.sent }, record.faults)
  }

  /** Adds the faults of the reply's script that are due for this call. `of` is the prompt or session that they are counted by. */
  private addScripted(record: CallRecord, reply: Reply, call: CallName, of: string): void {
    record.faults.push(...reply.faults.filter((fault) => fault.call === call && this.isDue(fault, of)))
  }

  /** Counts a fault with `times`; false once it has happened as often. */
  private isDue(fault: ScriptedFault, of: string): boolean {
    if (fault.times === undefined) return true
    const key = `${JSON.stringify(fault)} ${of}`
    const count = this.counted.get(key) ?? 0
    if (count >= fault.times) return false
    this.counted.delete(key)
    this.counted.set(key, count + 1)
    dropOldest(this.counted, maxCounted)
    return true
  }

  /** From here on the call is a stream of the turn's reply. */
  private run({ call, record }: Exchange, turn: SessionTurn): void {
    this.log.streamOpened(record.account)
    this.running.set(call, turn.prompt)
    turn.running = call
    call.onProgress = (sent) => {
      turn.sent = sent
    }
    call.onClose = () => {
      if (turn.running === call) turn.running = undefined
      this.running.delete(call)
      this.log.streamClosed(record.account)
    }
  }

  private keep(key: string, rendered: Rendered): void {
    if (key.length > maxRenderedPrompt || rendered.steps.length > maxRenderedSteps) return
    this.rendered.set(key, rendered)
    dropOldest(this.rendered, maxRendered)
  }

  /** Orders a fault for requests to come. */
  fail(order: FaultOrder): void {
    this.faultOrders.add(order)
  }

  /** Orders a reply for requests to come. */
  reply(order: ReplyOrder): void {
    this.replyOrders.add(order)
  }

  /** Ends the tokens of an account, or one token; all of them without an argument. */
  revoke(accountOrToken: string | undefined): void {
    this.identities.revoke(accountOrToken)
  }

  /** Suspends an account, or lifts its suspension. */
  suspend(account: string, suspended: boolean): void {
    this.identities.suspend(account, suspended)
  }

  /** Ends the running streams whose prompts contain a text where they are, without a status. */
  cut(containing: string): void {
    for (const [call, prompt] of this.running) if (prompt.includes(containing)) call.stop()
  }

  /** Drops all orders and resets the counts; sessions and tokens stay. */
  forget(): void {
    this.faultOrders.clear()
    this.replyOrders.clear()
    this.counted.clear()
    this.log.forget()
    this.changed()
  }

  report(): Report {
    const { created, open } = this.sessions
    return this.log.report({ created, deleted: created - open, open })
  }

  /** Calls `listener` after every change of the report; returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => {
      this.listeners.delete(listener)
    }
  }

  private changed(): void {
    for (const listener of this.listeners) listener()
  }
}
