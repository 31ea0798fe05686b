/**
 * One HTTP exchange with an upstream: a buffer between a transport and one reader.
 *
 * A transport (undici's dispatcher, or any `HttpClient`) reports what arrives; a driver reads it. Available bytes are read
 * without suspending, and a wait costs one suspension, however many chunks arrive meanwhile. Unread bytes are bounded: beyond
 * the bound the transport is paused. Time limits are one deadline of the common list, and run only while the driver waits.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { Deadline, Deadlines } from "../config/clock/Deadlines.ts"
import type { Shutdown } from "../config/clock/Shutdown.ts"
import { codeOf, excerptOf, type FailureCause } from "../domain/FailureCause.ts"
import { fromPullOnce } from "../domain/stream/transduce.ts"
import { type FailurePhase, UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { AnswerHeaders, RequestBudget } from "./budget.ts"
import type { ExchangeRequest } from "./ExchangeRequest.ts"

/** Time limits in milliseconds. */
export interface ExchangeLimits {
  /** From the last bytes of the request to the head of the response, and from there to its first byte. */
  readonly firstByte: number
  /** Between two reads of the body. */
  readonly silence: number
}

/** The rules of an exchange. */
export interface ExchangeOptions {
  /** The phase of a failure before the head of the response. */
  readonly phase: FailurePhase
  readonly limits: ExchangeLimits
  /** The reply was asked for as a whole. */
  readonly isWhole: boolean
  /** The budget of the reply that the exchange is part of. */
  readonly budget: RequestBudget | undefined
}

/** Controls of what carries an exchange. They have no effect once the exchange is over. */
export interface Transport {
  readonly pause: () => void
  readonly resume: () => void
  /** Ends the exchange; later reports are ignored. */
  readonly abort: () => void
}

/** Unread bytes at which the transport is paused. */
const mostWaiting = 256 * 1024

/** The error code of the transport's connection timeout. */
const connectTimeout = "UND_ERR_CONNECT_TIMEOUT"

/** The `Retry-After` of a shutdown in seconds, by when another node or the next start may serve. */
const retryAfterShutdown = 5

/** Bytes of a body, or how it ended. */
type BytesExit = Exit.Exit<readonly [Uint8Array], UpstreamFailure | Cause.Done>

type State = "head" | "body" | "complete" | "failed" | "left"

const join = (chunks: ReadonlyArray<Uint8Array>): Uint8Array => chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)

/** A running exchange. Transports call the methods in the past tense; drivers read. */
export class Exchange {
  status = 0
  headers: AnswerHeaders = {}
  /** The known cause of the failure, or of an unexpected answer. */
  cause: FailureCause | undefined
  readonly isWhole: boolean
  private state: State = "head"
  private failure: UpstreamFailure | undefined
  private chunks: Array<Uint8Array> = []
  private waitingBytes = 0
  private paused = false
  /** Resumes the waiting reader. */
  private waiter: ((now: number) => void) | undefined
  private waking = false
  private transport: Transport | undefined
  private headObserver: ((status: number | undefined) => void) | undefined
  private limit: number
  private endExpected = false
  private readonly deadline: Deadline
  private readonly phase: FailurePhase
  private readonly limits: ExchangeLimits
  private readonly deadlines: Deadlines["Service"]
  private readonly budget: RequestBudget | undefined
  private waitingSince: number
  private mostWaiting = mostWaiting
  private readonly address: string | undefined
  private readonly unwatch: (() => void) | undefined

  /** `address` is the scheme, host and port of the server; `shutdown` ends the exchange. */
  constructor(options: ExchangeOptions, deadlines: Deadlines["Service"], address?: string, shutdown?: Shutdown) {
    this.address = address
    this.phase = options.phase
    this.limits = options.limits
    this.isWhole = options.isWhole === true
    this.budget = options.budget
    this.deadlines = deadlines
    this.limit = this.limits.firstByte
    this.waitingSince = deadlines.now()
    this.deadline = deadlines.add(this.waitingSince + this.timeLeft(this.waitingSince), (now) => this.expire(now))
    // A stop request goes out during a shutdown, so the shutdown must not end it.
    if (shutdown !== undefined && options.phase !== "stream") {
      this.unwatch = shutdown.watch(this.shutDown)
      if (shutdown.isOver) this.shutDown()
    }
  }

  /** The transport has started: the request begins to leave, as far as the transport knows. */
  attach(transport: Transport): void {
    if (this.isOver()) return transport.abort()
    this.transport = transport
    if (this.budget === undefined) return
    this.budget.isSent = true
    this.budget.heard = undefined
  }

  /** More of the request's body leaves: the wait for the head begins anew. */
  sending(): void {
    if (this.state !== "head") return
    this.budget?.progressed()
    this.waitingSince = this.deadlines.now()
    this.deadline.at = this.waitingSince + this.timeLeft(this.waitingSince)
  }

  /** The head of the response arrived. */
  began(status: number, headers: Exchange["headers"]): void {
    if (this.state !== "head") return
    this.status = status
    this.headers = headers
    if (this.budget !== undefined) this.budget.heard = headers
    this.state = "body"
    this.deadline.at = Infinity
    this.headKnown(status)
    this.wake()
  }

  /** Bytes of the body arrived; they are not copied. */
  received(chunk: Uint8Array): void {
    if (this.state !== "body") return
    this.chunks.push(chunk)
    this.waitingBytes += chunk.length
    if (this.waitingBytes > this.mostWaiting && !this.paused) {
      this.paused = true
      this.transport?.pause()
    }
    this.wake()
  }

  /** The body is complete. */
  ended(): void {
    if (this.state === "body") this.close("complete")
  }

  /** The transport failed; `facts` come from the proxy, where it is at fault. */
  broke(error: unknown, facts: Pick<FailureCause, "proxy" | "status"> = {}): void {
    if (this.isOver()) return
    const phase = this.state === "head" ? this.phase : "stream"
    const code = codeOf(error)
    const cause = this.because({ ...(code === undefined ? {} : { code }), ...facts })
    this.fail(new UpstreamFailure({ phase, kind: code === connectTimeout ? "timeout" : "transport", cause }))
  }

  /** Succeeds when the head of the response is there, fails if none will arrive. An `Exit` if that is known already. */
  get head(): Effect.Effect<void, UpstreamFailure> {
    return this.state === "head" ? this.headToCome : this.headExit()
  }

  /**
   * The bytes of the body, from the first unread one on. A chunk has all that arrived since the last one. For one reader at a time.
   *
   * The stages after it take its pull as it is: over `Stream.fromPull` a request costs 9 more primitives (`test/hotPath`).
   */
  get bytes(): Stream.Stream<Uint8Array, UpstreamFailure> {
    return fromPullOnce(this.pull)
  }

  /** The whole body has arrived and was read. */
  get isRead(): boolean {
    return this.state === "complete" && this.chunks.length === 0
  }

  /** A header of the reply, by its name in lower case. */
  header(name: string): string | undefined {
    const value = this.headers[name]
    return Array.isArray(value) ? value.join(", ") : value
  }

  /**
   * The body as text: at most `most` bytes, and only what arrives within `millis`. Never fails; a failure ends the text. For
   * answers that are not streams.
   */
  text(most: number, millis: number): Effect.Effect<string> {
    return Effect.callback((resume) => this.readText(most, millis, (text) => resume(Effect.succeed(text))))
  }

  /** As `text`, after the head. Interruption leaves the exchange. */
  answer(most: number, millis: number): Effect.Effect<string, UpstreamFailure> {
    return Effect.callback((resume) => {
      const go = () => {
        const head = this.headExit()
        if (head._tag === "Failure") resume(Effect.failCause(head.cause))
        else this.readText(most, millis, (text) => resume(Effect.succeed(text)))
      }
      if (this.state === "head") this.waitFor(go)
      else go()
      return Effect.sync(this.leave)
    })
  }

  private readText(most: number, millis: number, done: (text: string) => void): void {
    const until = this.deadlines.now() + millis
    this.mostWaiting = most
    const check = () => {
      const now = this.deadlines.now()
      if (this.isOver() || this.waitingBytes >= most || now >= until) {
        done(new TextDecoder().decode(join(this.chunks).subarray(0, most)))
        return
      }
      if (this.paused) {
        this.paused = false
        this.transport?.resume()
      }
      this.endExpected = true
      this.limit = until - now
      this.waitFor(check)
    }
    check()
  }

  /** Records that something other than a model server answered. `secrets` were sent and are removed from the excerpt. */
  unexpectedAnswer(text: string, secrets: ReadonlyArray<string>): FailureCause {
    return this.because({ status: this.status, body: excerptOf(text, secrets) })
  }

  /**
   * From now on silence of this many milliseconds, or a failure, ends the body as if it were complete, because nothing important may
   * follow. `undefined` takes that back.
   */
  expectEnd(millis: number | undefined): void {
    this.endExpected = millis !== undefined
    this.limit = millis ?? this.limits.silence
    if (this.waiter === undefined) return
    const now = this.deadlines.now()
    this.deadline.at = now + this.timeLeft(now)
  }

  /** Ends the exchange early. A complete one keeps its connection, which serves the next exchange. */
  readonly leave = (): void => {
    if (this.isOver()) return
    const transport = this.transport
    this.close("left")
    transport?.abort()
  }

  /** Calls `observer` once with the status, or with `undefined` if no head will arrive. */
  onHead(observer: (status: number | undefined) => void): void {
    this.headObserver = observer
    if (this.state !== "head") this.headKnown(this.status === 0 ? undefined : this.status)
  }

  private headKnown(status: number | undefined): void {
    const observer = this.headObserver
    this.headObserver = undefined
    observer?.(status)
  }

  private isOver(): boolean {
    return this.state !== "head" && this.state !== "body"
  }

  /** The bytes since the last read as one chunk, or the end; waits for either. Bytes that arrived before a failure come before it. */
  private readonly pull: Effect.Effect<readonly [Uint8Array], UpstreamFailure | Cause.Done> = Effect.callback(
    (resume) => {
      const go = (now?: number): void => {
        const bytes = this.bytesExit(now)
        if (bytes === undefined) this.waitFor(go)
        else resume(bytes)
      }
      go()
    }
  )

  private readonly headToCome: Effect.Effect<void, UpstreamFailure> = Effect.callback((resume) => {
    if (this.state === "head") this.waitFor(() => resume(this.headExit()))
    else resume(this.headExit())
  })

  private headExit(): Exit.Exit<void, UpstreamFailure> {
    return this.failure !== undefined && this.status === 0 ? Exit.fail(this.failure) : Exit.void
  }

  /** The available bytes or end. `now` saves reading the clock again. */
  private bytesExit(now?: number): BytesExit | undefined {
    if (this.chunks.length > 0) {
      // A body whose bytes are always available never reaches its deadline, so the budget is checked here.
      const left = this.budget?.timeLeft(0, now ?? this.deadlines.now())
      if (left !== undefined && left.millis <= 0) {
        const transport = this.transport
        this.fail(this.budget!.overdue("stream", left.of))
        transport?.abort()
        return this.endExit(this.failure!)
      }
      const bytes = join(this.chunks)
      this.chunks = []
      this.waitingBytes = 0
      if (!this.endExpected) this.limit = this.limits.silence
      if (this.paused) {
        this.paused = false
        this.transport?.resume()
      }
      return Exit.succeed([bytes])
    }
    if (this.state === "complete") return doneExit
    if (this.state === "left") return this.endExit(leftFailure)
    return this.failure === undefined ? undefined : this.endExit(this.failure)
  }

  /** Where nothing important may follow, a failure does no harm. */
  private endExit(failure: UpstreamFailure): BytesExit {
    return this.endExpected ? doneExit : Exit.fail(failure)
  }

  private waitFor(waiter: (now: number) => void): void {
    this.waiter = waiter
    this.waitingSince = this.deadlines.now()
    this.deadline.at = this.waitingSince + this.timeLeft(this.waitingSince)
  }

  /** The milliseconds that a wait from now on may last. */
  private timeLeft(now: number): number {
    return this.budget === undefined ? this.limit : Math.min(this.limit, this.budget.timeLeft(0, now).millis)
  }

  /**
   * Resumes the waiter after all chunks of one socket read have arrived; otherwise each chunk would be a resumption.
   */
  private wake(): void {
    if (this.waiter === undefined || this.waking) return
    this.waking = true
    queueMicrotask(this.continueWaiter)
  }

  private readonly continueWaiter = (): void => {
    this.waking = false
    const waiter = this.waiter
    if (waiter === undefined) return
    this.waiter = undefined
    this.deadline.at = Infinity
    const now = this.deadlines.now()
    this.budget?.addWaiting(now - this.waitingSince)
    waiter(now)
  }

  private expire(now: number): void {
    if (this.isOver()) return
    const transport = this.transport
    const phase = this.state === "head" ? this.phase : "stream"
    const left = this.budget?.timeLeft(now - this.waitingSince, now)
    if (left !== undefined && left.millis <= 0) this.fail(this.budget!.overdue(phase, left.of))
    else if (this.endExpected && this.state === "body") this.close("complete")
    else {
      const isWhole = this.isWhole && this.state === "head"
      this.fail(
        new UpstreamFailure({ phase, kind: "timeout", cause: this.because({}), ...(isWhole ? { isWhole } : {}) })
      )
    }
    transport?.abort()
  }

  private readonly shutDown = (): void => {
    if (this.isOver()) return
    const transport = this.transport
    const phase = this.state === "head" ? this.phase : "stream"
    this.fail(new UpstreamFailure({ phase, kind: "shutting_down", retryAfter: retryAfterShutdown }))
    transport?.abort()
  }

  private because(seen: FailureCause): FailureCause {
    this.cause = this.address === undefined ? seen : { ...seen, address: this.address }
    return this.cause
  }

  private fail(failure: UpstreamFailure): void {
    this.failure = failure
    this.close("failed")
  }

  private close(state: State): void {
    this.state = state
    this.transport = undefined
    this.unwatch?.()
    this.headKnown(undefined)
    this.deadline.cancel()
    this.wake()
  }
}

const doneExit: Exit.Exit<never, Cause.Done<void>> = Exit.fail(Cause.Done())

/** The body for a transport; bytes that leave are reported to the exchange. */
export const leavingBody = <E>(body: Stream.Stream<Uint8Array, E>, exchange: Exchange): Stream.Stream<Uint8Array, E> =>
  Stream.tap(body, () => Effect.sync(() => exchange.sending()))

/** Returned to a reader that reads after `leave()`. */
const leftFailure = new UpstreamFailure({ phase: "stream", kind: "transport" })

/** Starts exchanges. */
export class Exchanges extends Context.Service<Exchanges, {
  /** Sends a request immediately. The caller has to call `leave` in every case. */
  readonly start: (request: ExchangeRequest, options: ExchangeOptions) => Effect.Effect<Exchange>
  /** Sent beside the account's credential: headers of the upstream and passwords of proxies. Recordings leave them out. */
  readonly secrets: ReadonlyArray<Redacted.Redacted<string>>
}>()("model-gateway/upstream/Exchanges") {}

/** What was sent with a token, for where the answer is quoted. */
export const secretsWith = (
  { secrets }: Exchanges["Service"],
  tokens: ReadonlyArray<string>
): ReadonlyArray<string> => [
  ...tokens,
  ...secrets.map(Redacted.value)
]
