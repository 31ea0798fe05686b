/**
 * The scripted provider without a transport: the embedded upstream's answerer with accounts, limits, orders for requests to come,
 * and a log of what it received.
 */
import {
  Answerer,
  type AnswererOptions,
  type AnswererRequest,
  type CallRecord,
  type GivenReply
} from "../upstream/embedded/Answerer.ts"
import type { Call, Steps } from "../upstream/embedded/Call.ts"
import { type CallName, refused } from "../upstream/embedded/calls.ts"
import type { Fault } from "../upstream/embedded/faults.ts"
import { CallLog, type Report } from "./CallLog.ts"
import { Identities, type IdentityOptions } from "./Identities.ts"

/** How a provider is set up. */
export interface ReferenceOptions extends AnswererOptions, IdentityOptions {
  /** Completions of an account that may run concurrently (no limit). */
  readonly maxRunning?: number | undefined
  /** Characters of a prompt (no limit). */
  readonly maxPrompt?: number | undefined
  /** The number of latest requests in the report (256). */
  readonly remember?: number | undefined
  /** Milliseconds that an idle connection stays open (65,000). */
  readonly keepAlive?: number | undefined
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

export class Provider extends Answerer {
  private readonly options: ReferenceOptions
  private readonly identities: Identities
  private readonly log: CallLog
  private readonly faultOrders = new Orders<FaultOrder>()
  private readonly replyOrders = new Orders<ReplyOrder>()
  private readonly listeners = new Set<() => void>()
  /** The running streams with their prompts. */
  private readonly running = new Map<Call, string>()

  /** `now` returns the time in milliseconds. */
  constructor(options: ReferenceOptions, now: () => number) {
    const identities = new Identities(options)
    super(options, now, identities)
    this.options = options
    this.identities = identities
    this.log = new CallLog(options.remember ?? 256)
  }

  override handle(request: AnswererRequest): Call {
    const call = super.handle(request)
    this.changed()
    return call
  }

  protected override opened(record: CallRecord, call: Call): void {
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

  protected override violated(what: string): void {
    this.log.violation(what)
  }

  protected override loggedIn(account: string | undefined): void {
    this.log.login(account)
  }

  protected override refuse({ account, prompt = "" }: CallRecord): Steps | undefined {
    const { maxPrompt = Infinity, maxRunning = Infinity } = this.options
    if (prompt.length > maxPrompt) return refused(9, "the prompt is too long")
    return this.log.runningOf(account) >= maxRunning ? refused(6, "too many completions are running") : undefined
  }

  protected override givenReply(record: CallRecord): GivenReply | undefined {
    return this.replyOrders.take(record)
  }

  protected override streamOpened(call: Call, { account }: CallRecord, prompt: string): void {
    this.log.streamOpened(account)
    this.running.set(call, prompt)
  }

  protected override streamClosed(call: Call, { account }: CallRecord): void {
    this.running.delete(call)
    this.log.streamClosed(account)
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
    const { created, deleted, open } = this.sessions
    return this.log.report({ created, deleted, open })
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
