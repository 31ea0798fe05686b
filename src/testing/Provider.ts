/**
 * The reference upstream itself, without a transport: a request in, a call with the steps to play out.
 *
 * It is synchronous and keeps its state to itself; sockets and the in-process client play what it answers.
 */
import * as Option from "effect/Option"
import { Call } from "./Call.ts"
import { dropOldest } from "./dropOldest.ts"
import { accepted, type CallName, callOf, refused, turnedAway } from "./envelope.ts"
import type { Fault } from "./Fault.ts"
import { answerWith, carryWith, replyWith } from "./faults.ts"
import { Identities } from "./Identities.ts"
import { type Entry, Ledger, type Report } from "./Ledger.ts"
import type { ReferenceOptions } from "./Options.ts"
import { type FaultOrder, Orders, type ReplyOrder } from "./Orders.ts"
import type { Reply, ScriptedFault } from "./Reply.ts"
import type { ReplySettings } from "./ReplyBuilder.ts"
import { replyTo } from "./replyTo.ts"
import { type CompletionBody, decodeBody } from "./requestBodies.ts"
import type { MessageIds } from "./round.ts"
import { type Session, Sessions, type SessionTurn, turnsUpTo } from "./Sessions.ts"
import type { Step } from "./Step.ts"
import { rawStream, replyStream } from "./streams.ts"

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

const badRequest = turnedAway(40000, "the request does not have the form of this call", 400)
const noSession = refused(3, "no such session")
const noMessage = refused(4, "no such message")
const tokenMessages = { 40001: "no token", 40002: "token invalid", 40003: "token expired" }

/** Replies that depend on nothing but the prompt and the flags are rendered once. */
interface Rendered {
  readonly reply: Reply
  readonly steps: ReadonlyArray<Step>
}
const maxRendered = 64
const maxRenderedPrompt = 64 * 1024
const maxRenderedSteps = 2000
const firstIds: MessageIds = { request: 1, response: 2 }

/** Scripts whose `times` are counted; the oldest are forgotten. */
const maxCounted = 1000

const bearer = /^Bearer\s+(.*)$/i

/** A request on its way through the provider. */
interface Exchange {
  readonly call: Call
  readonly entry: Entry
  readonly account: string
  /** Faults of carriers, replies and streams that were ordered for it. */
  readonly faults: Array<Fault>
}

export class Provider {
  private readonly options: ReferenceOptions
  private readonly now: () => number
  private readonly identities: Identities
  private readonly sessions: Sessions
  private readonly ledger: Ledger
  private readonly settings: ReplySettings
  private readonly faultOrders = new Orders<FaultOrder>()
  private readonly replyOrders = new Orders<ReplyOrder>()
  private readonly rendered = new Map<string, Rendered>()
  private readonly counted = new Map<string, number>()
  private readonly listeners = new Set<() => void>()
  /** The streams that run, with what was asked. */
  private readonly running = new Map<Call, string>()

  /** `now` gives the time in milliseconds. */
  constructor(options: ReferenceOptions, now: () => number) {
    this.options = options
    this.now = now
    this.identities = new Identities(options)
    this.sessions = new Sessions(options)
    this.ledger = new Ledger(options.remember ?? 256)
    this.settings = { pace: options.pace, burst: options.burst ?? 1 }
  }

  /** Answers a request. Nothing has left yet: whoever plays the steps reports what became of them. */
  handle(request: ProviderRequest): Call {
    const name = callOf(request.method, request.path)
    if (name === undefined) {
      this.ledger.violation()
      const call = new Call(() => {})
      call.steps = turnedAway(40400, "no such call", 404)
      return call
    }
    const token = request.authorization === undefined ? undefined : bearer.exec(request.authorization)?.[1]?.trim()
    const login = name === "login" ? Option.getOrUndefined(decodeBody.login(request.body)) : undefined
    const account = login?.email ?? login?.mobile ?? (token === undefined ? "" : this.identities.accountOf(token))
    const entry = this.ledger.opened(name, account, request.body)
    const call = new Call((outcome) => {
      this.ledger.closed(entry, outcome)
      this.changed()
    })
    call.onSilence = () => {
      this.ledger.silent()
      this.changed()
    }
    const fault = this.faultOrders.take({ call: name, account, body: request.body })
    if (fault !== undefined) entry.faults.push(fault.name)
    const exchange: Exchange = { call, entry, account, faults: fault === undefined ? [] : [fault] }
    const answer = (fault === undefined ? undefined : answerWith(fault)) ?? this.admit(name, token, request, exchange)
    if (answer === badRequest || answer === noMessage) this.ledger.violation()
    call.steps = exchange.faults.reduce((steps, each) => carryWith(each, steps), answer)
    this.changed()
    return call
  }

  private admit(
    name: CallName,
    token: string | undefined,
    request: ProviderRequest,
    exchange: Exchange
  ): ReadonlyArray<Step> {
    if (name === "login") return this.logIn(request.body)
    const identified = this.identities.identify(token, this.now())
    if ("code" in identified) {
      if (identified.code === 40001) this.ledger.violation()
      return turnedAway(identified.code, tokenMessages[identified.code], this.options.refusedTokenStatus ?? 200)
    }
    switch (name) {
      case "current":
        return accepted({ id: exchange.account, email: exchange.account, mobile_number: "" })
      case "create": {
        if (Option.isNone(decodeBody.create(request.body))) return badRequest
        const session = this.sessions.create(exchange.account, this.now())
        exchange.entry.session = session.id
        return accepted({ id: session.id })
      }
      case "fetch_page":
        return this.fetchPage(exchange.account, request.query)
      case "delete_all":
        this.sessions.deleteAll(exchange.account)
        return accepted({})
      case "delete":
        return this.withSession(exchange, decodeBody.session(request.body), (session) => {
          this.sessions.delete(session)
          return accepted({})
        })
      case "stop_stream":
        return this.withSession(exchange, decodeBody.stop_stream(request.body), (session, body) => {
          session.turns.get(body.message_id)?.running?.stop()
          return accepted({})
        })
      case "completion":
        return this.withSession(
          exchange,
          decodeBody.completion(request.body),
          (session, body) => this.complete(exchange, session, body)
        )
      case "continue":
        return this.withSession(exchange, decodeBody.continue(request.body), (session, body) => {
          const turn = session.turns.get(body.message_id)
          return turn === undefined ? noMessage : this.resume(exchange, turn)
        })
    }
  }

  private logIn(body: string): ReadonlyArray<Step> {
    const login = Option.getOrUndefined(decodeBody.login(body))
    if (login === undefined || (login.email === undefined) === (login.mobile === undefined)) return badRequest
    const result = this.identities.logIn(login, this.now())
    if ("bizCode" in result) {
      this.ledger.refusedLogin()
      return refused(
        result.bizCode,
        result.bizCode === 2 ? "wrong email, mobile or password" : "account suspended"
      )
    }
    this.ledger.login(result.account)
    return accepted({
      user: {
        id: result.account,
        token: result.token,
        email: login.email ?? "",
        mobile_number: login.mobile ?? ""
      }
    })
  }

  private fetchPage(account: string, query: string): ReadonlyArray<Step> {
    const count = Number(new URLSearchParams(query).get("count") ?? "100")
    if (!Number.isInteger(count) || count < 1) return badRequest
    const sessions = this.sessions.list(account)
    return accepted({
      chat_sessions: sessions.slice(0, count).map(({ id, title, updatedAt }) => ({
        id,
        title,
        updated_at: updatedAt / 1000
      })),
      has_more: sessions.length > count
    })
  }

  private withSession<A extends { readonly chat_session_id: string }>(
    { account, entry }: Exchange,
    body: Option.Option<A>,
    f: (session: Session, body: A) => ReadonlyArray<Step>
  ): ReadonlyArray<Step> {
    if (Option.isNone(body)) return badRequest
    entry.session = body.value.chat_session_id
    const session = this.sessions.find(account, body.value.chat_session_id)
    return session === undefined ? noSession : f(session, body.value)
  }

  private complete(exchange: Exchange, session: Session, body: CompletionBody): ReadonlyArray<Step> {
    exchange.entry.prompt = body.prompt
    if (body.parent_message_id !== null && !session.turns.has(body.parent_message_id)) return noMessage
    if (body.prompt.length > (this.options.maxPrompt ?? Infinity)) return refused(9, "the prompt is too long")
    if (this.ledger.runningOf(exchange.account) >= (this.options.maxRunning ?? Infinity)) {
      return refused(6, "too many completions are running")
    }
    const order = this.replyOrders.take({ call: "completion", account: exchange.account, body: exchange.entry.body })
    const ids = { request: session.lastMessage + 1, response: session.lastMessage + 2 }
    const key = `${body.thinking_enabled}${body.search_enabled}${body.prompt}`
    const plain = order === undefined && ids.response === firstIds.response && exchange.faults.length === 0
    const known = plain ? this.rendered.get(key) : undefined
    const planned = known?.reply ??
      replyTo(
        {
          prompt: body.prompt,
          thinking: body.thinking_enabled,
          search: body.search_enabled,
          earlier: turnsUpTo(session, body.parent_message_id)
        },
        this.settings,
        order === undefined ? undefined : "script" in order ? order.script : "!say \"\""
      )
    const faults = this.faultsFor(exchange, planned, "completion")
    for (const fault of faults) {
      const answer = answerWith(fault)
      if (answer !== undefined) return answer
    }
    const reply = faults.reduce((each, fault) => replyWith(fault, each), planned)
    const turn: SessionTurn = {
      ids,
      parent: body.parent_message_id,
      prompt: body.prompt,
      reply,
      sent: 0,
      running: undefined
    }
    this.run(exchange, turn)
    this.sessions.add(session, turn, this.now())
    if (order !== undefined && "raw" in order) return rawStream(order.raw, order.chunk)
    if (known !== undefined) return known.steps
    const steps = replyStream(reply, ids, { start: "first", from: 0 }, faults)
    if (plain && reply.faults.length === 0) this.keep(key, { reply, steps })
    return steps
  }

  private resume(exchange: Exchange, turn: SessionTurn): ReadonlyArray<Step> {
    turn.running?.stop()
    const order = this.replyOrders.take({ call: "continue", account: exchange.account, body: exchange.entry.body })
    const faults = this.faultsFor(exchange, turn.reply, "continue")
    for (const fault of faults) {
      const answer = answerWith(fault)
      if (answer !== undefined) return answer
    }
    this.run(exchange, turn)
    if (order !== undefined && "raw" in order) return rawStream(order.raw, order.chunk)
    return replyStream(turn.reply, turn.ids, { start: turn.reply.cuts.restart, from: turn.sent }, faults)
  }

  /** The faults that were ordered for a request, and those that its script asks for. */
  private faultsFor(exchange: Exchange, reply: Reply, call: CallName): ReadonlyArray<Fault> {
    const scripted = reply.faults.filter((fault) => fault.call === call && this.due(fault, exchange))
    exchange.faults.push(...scripted)
    exchange.entry.faults.push(...scripted.map(({ name }) => name))
    return exchange.faults
  }

  /** Counts a fault that happens to the first requests of a script only. */
  private due(fault: ScriptedFault, exchange: Exchange): boolean {
    if (fault.times === undefined) return true
    const key = `${JSON.stringify(fault)} ${exchange.entry.prompt ?? exchange.entry.session ?? ""}`
    const count = this.counted.get(key) ?? 0
    if (count >= fault.times) return false
    this.counted.delete(key)
    this.counted.set(key, count + 1)
    dropOldest(this.counted, maxCounted)
    return true
  }

  /** From here on the call is a stream of the turn's reply. */
  private run({ account, call }: Exchange, turn: SessionTurn): void {
    this.ledger.streamOpened(account)
    turn.running = call
    this.running.set(call, turn.prompt)
    call.onProgress = (sent) => {
      turn.sent = sent
    }
    call.onClose = () => {
      if (turn.running === call) turn.running = undefined
      this.running.delete(call)
      this.ledger.streamClosed(account)
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

  /** Ends the tokens of an account (or one token); all of them without an argument. */
  revoke(accountOrToken: string | undefined): void {
    this.identities.revoke(accountOrToken)
  }

  /** Suspends an account, or lifts its suspension. */
  suspend(account: string, suspended: boolean): void {
    this.identities.suspend(account, suspended)
  }

  /** Ends the streams that run where they are, without a status: those whose prompts hold a text. */
  cut(containing: string): void {
    for (const [call, prompt] of this.running) if (prompt.includes(containing)) call.stop()
  }

  /** Drops all orders and forgets what was counted; sessions and tokens stay. */
  forget(): void {
    this.faultOrders.clear()
    this.replyOrders.clear()
    this.counted.clear()
    this.ledger.forget()
    this.changed()
  }

  report(): Report {
    const { created, deleted, open } = this.sessions
    return this.ledger.report({ created, deleted, open })
  }

  /** Calls `listener` after every change of what the report says; gives the way to stop that. */
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
