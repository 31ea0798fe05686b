/**
 * The embedded upstream without a transport: takes a request of the session protocol and returns a call with the steps of its
 * reply. Synchronous; sockets and the in-process client play the steps.
 *
 * The scripted provider for tests is a subclass: the protected methods are its hooks.
 */
import * as Option from "effect/Option"
import { Call, type Outcome, type Steps } from "./Call.ts"
import { accepted, type CallName, callOf, type CompletionBody, decodeBody, refused, turnedAway } from "./calls.ts"
import { answerWith, deliverWith, replyWith } from "./faults.ts"
import { AnyLogin, dropOldest, type Identified, type Logins } from "./logins.ts"
import type { FaultSpec, Reply, ReplySettings, ScriptedFault } from "./Reply.ts"
import { type MessageIds, replyStream } from "./round.ts"
import { replyTo } from "./script.ts"
import { type Session, type SessionOptions, Sessions, type SessionTurn, turnsUpTo } from "./Sessions.ts"
import { rawStream } from "./wire.ts"

export interface AnswererOptions extends SessionOptions {
  /** Default of `!pace`, in milliseconds; by default streams leave without delay. */
  readonly pace?: number | undefined
  /** Default of `!burst` (1). */
  readonly burst?: number | undefined
}

/** A request without its transport. */
export interface AnswererRequest {
  readonly method: string
  /** Path without the query. */
  readonly path: string
  readonly query: string
  /** The `Authorization` header. */
  readonly authorization: string | undefined
  readonly body: string
}

/** A request as it arrived, and its result. */
export interface CallRecord {
  readonly name: CallName
  /** Email, mobile or bare token; empty without any. */
  readonly account: string
  readonly body: string
  session: string | undefined
  prompt: string | undefined
  /** The faults that apply to it, ordered or scripted. */
  readonly faults: Array<FaultSpec>
  outcome: Outcome | "open"
}

/** A reply that replaces the answer to a request: a script, or a recorded stream byte for byte. */
export type GivenReply =
  | { readonly script: string }
  | {
    readonly raw: string | Uint8Array
    /** Bytes in one write (all). */
    readonly chunk?: number | undefined
  }

/** A request that is being answered. */
interface Exchange {
  readonly call: Call
  readonly record: CallRecord
}

const badRequest = turnedAway(40000, "the request does not have the form of this call", 400)
const noSession = refused(3, "no such session")
const noMessage = refused(4, "no such message")
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
const firstIds: MessageIds = { request: 1, response: 2 }

/** Scripts whose `times` are counted; the oldest are dropped. */
const maxCounted = 1000

const bearer = /^Bearer\s+(.*)$/i

export class Answerer {
  private readonly now: () => number
  private readonly logins: Logins
  protected readonly sessions: Sessions
  private readonly settings: ReplySettings
  private readonly rendered = new Map<string, Rendered>()
  /** How often each fault with `times` has happened, by script. */
  protected readonly counted = new Map<string, number>()

  /** `now` returns the time in milliseconds. */
  constructor(options: AnswererOptions, now: () => number, logins: Logins = new AnyLogin()) {
    this.now = now
    this.logins = logins
    this.sessions = new Sessions(options)
    this.settings = { pace: options.pace, burst: options.burst ?? 1 }
  }

  /** A request arrived. A fault that is added to the record happens to it. */
  protected opened(_record: CallRecord, _call: Call): void {}

  /** A request broke the protocol: its call, body, message or credential does not exist. */
  protected violated(_what: string): void {}

  /** A login succeeded, or was refused if there is no account. */
  protected loggedIn(_account: string | undefined): void {}

  /** The refusal of a completion, if it is refused. */
  protected refuse(_record: CallRecord): Steps | undefined {
    return undefined
  }

  /** The reply that replaces the answer to a completion or a continued stream. */
  protected givenReply(_record: CallRecord): GivenReply | undefined {
    return undefined
  }

  /** The call has become a stream of a reply to `prompt`. */
  protected streamOpened(_call: Call, _record: CallRecord, _prompt: string): void {}

  protected streamClosed(_call: Call, _record: CallRecord): void {}

  /** Answers a request. Nothing has left yet; the player of the steps reports the outcome to the call. */
  handle(request: AnswererRequest): Call {
    const call = new Call()
    const name = callOf(request.method, request.path)
    if (name === undefined) {
      this.violated(`${request.method} ${request.path}`)
      call.steps = turnedAway(40400, "no such call", 404)
      return call
    }
    const token = request.authorization === undefined ? undefined : bearer.exec(request.authorization)?.[1]?.trim()
    const login = name === "login" ? Option.getOrUndefined(decodeBody.login(request.body)) : undefined
    const account = login?.email ?? login?.mobile ?? (token === undefined ? "" : this.logins.accountOf(token))
    const record: CallRecord = {
      name,
      account,
      body: request.body,
      session: undefined,
      prompt: undefined,
      faults: [],
      outcome: "open"
    }
    this.opened(record, call)
    const answer = this.faultAnswer(record) ?? this.admit({ call, record }, token, request)
    if (answer === badRequest || answer === noMessage) {
      this.violated(`${name} ${answer === badRequest ? "of another form" : "of an unknown message"}: ${request.body}`)
    }
    call.steps = record.faults.reduce((steps, fault) => deliverWith(fault, steps), answer)
    return call
  }

  /** The answer of the first fault that replaces the call. */
  private faultAnswer({ faults }: CallRecord): Steps | undefined {
    for (const fault of faults) {
      const answer = answerWith(fault)
      if (answer !== undefined) return answer
    }
    return undefined
  }

  private admit(exchange: Exchange, token: string | undefined, request: AnswererRequest): Steps {
    const { account, name } = exchange.record
    if (name === "login") return this.logIn(request.body)
    const identified: Identified = this.logins.identify(token, this.now())
    if (identified !== "known") {
      if (identified.code === 40001) this.violated(`${name} without a token`)
      return turnedAway(identified.code, tokenMessages[identified.code], identified.status)
    }
    switch (name) {
      case "current":
        return accepted({ id: account, email: account, mobile_number: "" })
      case "create": {
        if (Option.isNone(decodeBody.create(request.body))) return badRequest
        const session = this.sessions.create(account, this.now())
        exchange.record.session = session.id
        return accepted({ id: session.id })
      }
      case "fetch_page":
        return this.fetchPage(account, request.query)
      case "delete_all":
        this.sessions.deleteAll(account)
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

  private logIn(body: string): Steps {
    const login = Option.getOrUndefined(decodeBody.login(body))
    if (login === undefined || (login.email === undefined) === (login.mobile === undefined)) return badRequest
    const result = this.logins.logIn(login, this.now())
    if ("bizCode" in result) {
      this.loggedIn(undefined)
      return refused(result.bizCode, loginMessages[result.bizCode])
    }
    this.loggedIn(result.account)
    return accepted({
      user: {
        id: result.account,
        token: result.token,
        email: login.email ?? "",
        mobile_number: login.mobile ?? ""
      }
    })
  }

  private fetchPage(account: string, query: string): Steps {
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
    { record }: Exchange,
    body: Option.Option<A>,
    f: (session: Session, body: A) => Steps
  ): Steps {
    if (Option.isNone(body)) return badRequest
    record.session = body.value.chat_session_id
    const session = this.sessions.find(record.account, record.session)
    return session === undefined ? noSession : f(session, body.value)
  }

  private complete(exchange: Exchange, session: Session, body: CompletionBody): Steps {
    const { record } = exchange
    record.prompt = body.prompt
    if (body.parent_message_id !== null && !session.turns.has(body.parent_message_id)) return noMessage
    const refusal = this.refuse(record)
    if (refusal !== undefined) return refusal
    const given = this.givenReply(record)
    const ids = { request: session.lastMessage + 1, response: session.lastMessage + 2 }
    const key = `${body.thinking_enabled}${body.search_enabled}${body.prompt}`
    const plain = given === undefined && ids.response === firstIds.response && record.faults.length === 0
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
        given === undefined ? undefined : "script" in given ? given.script : "!say \"\""
      )
    this.addScripted(record, planned, "completion")
    const answer = this.faultAnswer(record)
    if (answer !== undefined) return answer
    const reply = record.faults.reduce((each, fault) => replyWith(fault, each), planned)
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
    if (given !== undefined && "raw" in given) return rawStream(given.raw, given.chunk)
    if (known !== undefined) return known.steps
    const steps = replyStream(reply, ids, { start: "first", from: 0 }, record.faults)
    if (plain && reply.faults.length === 0) this.keep(key, { reply, steps })
    return steps
  }

  private resume(exchange: Exchange, turn: SessionTurn): Steps {
    turn.running?.stop()
    const { record } = exchange
    const given = this.givenReply(record)
    this.addScripted(record, turn.reply, "continue")
    const answer = this.faultAnswer(record)
    if (answer !== undefined) return answer
    this.run(exchange, turn)
    if (given !== undefined && "raw" in given) return rawStream(given.raw, given.chunk)
    return replyStream(turn.reply, turn.ids, { start: turn.reply.cuts.restart, from: turn.sent }, record.faults)
  }

  /** Adds the faults of the reply's script that are due for this call. */
  private addScripted(record: CallRecord, reply: Reply, call: CallName): void {
    record.faults.push(...reply.faults.filter((fault) => fault.call === call && this.isDue(fault, record)))
  }

  /** Counts a fault with `times`; false once it has happened as often. */
  private isDue(fault: ScriptedFault, record: CallRecord): boolean {
    if (fault.times === undefined) return true
    const key = `${JSON.stringify(fault)} ${record.prompt ?? record.session ?? ""}`
    const count = this.counted.get(key) ?? 0
    if (count >= fault.times) return false
    this.counted.delete(key)
    this.counted.set(key, count + 1)
    dropOldest(this.counted, maxCounted)
    return true
  }

  /** From here on the call is a stream of the turn's reply. */
  private run({ call, record }: Exchange, turn: SessionTurn): void {
    this.streamOpened(call, record, turn.prompt)
    turn.running = call
    call.onProgress = (sent) => {
      turn.sent = sent
    }
    call.onClose = () => {
      if (turn.running === call) turn.running = undefined
      this.streamClosed(call, record)
    }
  }

  private keep(key: string, rendered: Rendered): void {
    if (key.length > maxRenderedPrompt || rendered.steps.length > maxRenderedSteps) return
    this.rendered.set(key, rendered)
    dropOldest(this.rendered, maxRendered)
  }
}
