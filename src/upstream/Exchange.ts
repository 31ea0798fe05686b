/**
 * One HTTP exchange with an upstream: what the network has told so far, and one who waits for more.
 *
 * A transport (undici's dispatcher, or any `HttpClient`) tells the exchange what comes; a driver reads it. What is there is
 * read without suspending, and what has to be waited for costs one suspension, whatever came meanwhile. Bytes that nobody
 * takes are bounded: beyond that the transport is paused. Time limits are one deadline of the common list, and time in which
 * nobody reads does not count.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Pull from "effect/Pull"
import type { Deadline, Deadlines } from "../config/clock/Deadlines.ts"
import type { Shutdown } from "../config/clock/Shutdown.ts"
import { codeOf, excerptOf, type FailureCause } from "../domain/FailureCause.ts"
import { type FailurePhase, UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Budget } from "./budget.ts"

/** A request, in the terms of HTTP. */
export interface ExchangeRequest {
  readonly method: "GET" | "POST"
  /** Scheme, host and port. */
  readonly origin: string
  /** Path and query. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

/** Time limits in milliseconds. */
export interface ExchangeLimits {
  /** From the request to the reply's head, and from there to its first byte. */
  readonly firstByte: number
  /** Between two reads of the body. */
  readonly silence: number
}

/** What an exchange goes by. */
export interface ExchangeOptions {
  /** What a failure before the reply's head is a failure of. */
  readonly phase: FailurePhase
  readonly limits: ExchangeLimits
  /** The time that the request has left in all, where it is part of a reply. */
  readonly budget?: Budget | undefined
}

/** What carries an exchange, as far as the exchange commands it. Both do nothing once the exchange is over. */
export interface Transport {
  readonly pause: () => void
  readonly resume: () => void
  /** Ends the exchange; nothing need be told any more. */
  readonly abort: () => void
}

/** Bytes that may wait for the reader before the transport is paused. */
const mostWaiting = 256 * 1024

/** The transport's own limit for connecting. */
const connectTimeout = "UND_ERR_CONNECT_TIMEOUT"

/** Seconds after which another node, or the next start, may serve. */
const retryAfterShutdown = 5

/** The three forms of a date in HTTP (RFC 9110 5.6.7). */
const httpDate = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? [A-Za-z0-9 :-]{14,24}(?: GMT)?$/

/** Bytes of a body, or how it ended. */
export type BytesExit = Exit.Exit<Uint8Array, UpstreamFailure | Cause.Done<void>>

type State = "head" | "body" | "complete" | "failed" | "left"

const join = (chunks: ReadonlyArray<Uint8Array>): Uint8Array => chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)

/** A running exchange. Transports call the methods whose names say what came; drivers read. */
export class Exchange {
  status = 0
  headers: Readonly<Record<string, string | Array<string> | undefined>> = {}
  /** Why it failed, or why its answer was none, as far as is known. */
  cause: FailureCause | undefined
  private state: State = "head"
  private failure: UpstreamFailure | undefined
  private chunks: Array<Uint8Array> = []
  private waitingBytes = 0
  private paused = false
  /** Continues whoever waits. */
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
  private readonly budget: Budget | undefined
  private waitingSince: number
  private mostWaiting = mostWaiting
  private readonly address: string | undefined
  private readonly unwatch: (() => void) | undefined

  /** `address` is the scheme, host and port that are called; `shutdown` ends it. */
  constructor(options: ExchangeOptions, deadlines: Deadlines["Service"], address?: string, shutdown?: Shutdown) {
    this.address = address
    this.phase = options.phase
    this.limits = options.limits
    this.budget = options.budget
    this.deadlines = deadlines
    this.limit = this.limits.firstByte
    this.waitingSince = deadlines.now()
    this.deadline = deadlines.add(this.waitingSince + this.timeLeft(this.waitingSince), (now) => this.expire(now))
    // What tells an upstream to stop is for that very moment.
    if (shutdown !== undefined && options.phase !== "stream") {
      this.unwatch = shutdown.watch(this.shutDown)
      if (shutdown.isOver) this.shutDown()
    }
  }

  /** The transport is there. */
  attach(transport: Transport): void {
    if (this.isOver()) transport.abort()
    else this.transport = transport
  }

  /** The reply's head came. */
  began(status: number, headers: Exchange["headers"]): void {
    if (this.state !== "head") return
    this.status = status
    this.headers = headers
    this.state = "body"
    this.deadline.at = Infinity
    this.headKnown(status)
    this.wake()
  }

  /** Bytes of the body came; they are kept as they are. */
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

  /** The transport failed. */
  broke(error: unknown): void {
    if (this.isOver()) return
    const phase = this.state === "head" ? this.phase : "stream"
    const code = codeOf(error)
    const cause = this.because(code === undefined ? {} : { code })
    this.fail(new UpstreamFailure({ phase, kind: code === connectTimeout ? "timeout" : "transport", cause }))
  }

  /** Fails once the reply's head is known to be missing; succeeds when it is there. An `Exit` where that is known already. */
  get head(): Effect.Effect<void, UpstreamFailure> {
    return this.state === "head" ? this.headToCome : this.headExit()
  }

  /**
   * Gives `take` the bytes that have come since the last read, as one piece, or the end of the body; waits where there is
   * neither. What ends the body by `transport` or `timeout` comes after what came before. `take` runs as soon as something
   * comes, which saves the steps of a pull and a match for each chunk.
   */
  read<A, E>(take: (bytes: BytesExit) => Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.callback((resume) => {
      const go = (now?: number): void => {
        const bytes = this.bytesExit(now)
        if (bytes === undefined) return this.waitFor(go)
        let taken: Effect.Effect<A, E>
        try {
          taken = take(bytes)
        } catch (defect) {
          taken = Effect.die(defect)
        }
        resume(taken)
      }
      go()
    })
  }

  /** The bytes that have come since the last read, as a pull. */
  get bytes(): Pull.Pull<Uint8Array, UpstreamFailure> {
    return this.read((bytes) => bytes)
  }

  /** The body is complete, and all of it was read. */
  get isRead(): boolean {
    return this.state === "complete" && this.chunks.length === 0
  }

  /** A header of the reply, by its name in lower case. */
  header(name: string): string | undefined {
    const value = this.headers[name]
    return Array.isArray(value) ? value.join(", ") : value
  }

  /**
   * Seconds that the `Retry-After` header asks for (RFC 9110 10.2.3), as a number of up to 10 digits or a date, clamped to 1 to 600;
   * `undefined` for anything else. `now` is the wall clock in milliseconds.
   */
  retryAfter(now: number): number | undefined {
    const text = this.header("retry-after")?.trim() ?? ""
    if (text.length > 100) return undefined
    const clamp = (seconds: number) => Math.min(600, Math.max(1, Math.ceil(seconds)))
    if (/^\d{1,10}$/.test(text)) return clamp(Number(text))
    const date = httpDate.test(text) ? Date.parse(text.endsWith("GMT") ? text : `${text} GMT`) : Number.NaN
    return Number.isNaN(date) ? undefined : clamp((date - now) / 1000)
  }

  /**
   * The whole body as text, at most `most` bytes of it and what comes within `millis`. Never fails: what cannot be read is
   * not there. For answers that are no stream.
   */
  text(most: number, millis: number): Effect.Effect<string> {
    return Effect.callback((resume) => this.readText(most, millis, (text) => resume(Effect.succeed(text))))
  }

  /** The whole body as text, once the head is there. An interrupted reader leaves the exchange. */
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

  /** Notes that the answer was none of a model server; `secrets` were sent, and are no part of what is kept of it. */
  unexpectedAnswer(text: string, secrets: ReadonlyArray<string>): FailureCause {
    return this.because({ status: this.status, body: excerptOf(text, secrets) })
  }

  /**
   * From now on silence of this many milliseconds ends the body as if it were complete: nothing of worth may follow.
   * `undefined` takes that back: something did follow.
   */
  expectEnd(millis: number | undefined): void {
    this.endExpected = millis !== undefined
    this.limit = millis ?? this.limits.silence
    if (this.waiter === undefined) return
    const now = this.deadlines.now()
    this.deadline.at = now + this.timeLeft(now)
  }

  /** Nothing more is wanted. What is complete is left alone, so that its connection serves the next exchange. */
  readonly leave = (): void => {
    if (this.isOver()) return
    const transport = this.transport
    this.close("left")
    transport?.abort()
  }

  /** Tells the status once, or `undefined` where no head will come. */
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

  private readonly headToCome: Effect.Effect<void, UpstreamFailure> = Effect.callback((resume) => {
    if (this.state === "head") this.waitFor(() => resume(this.headExit()))
    else resume(this.headExit())
  })

  private headExit(): Exit.Exit<void, UpstreamFailure> {
    return this.failure !== undefined && this.status === 0 ? Exit.fail(this.failure) : Exit.void
  }

  /** What there is; `now` where a look at the clock was taken just before. */
  private bytesExit(now?: number): BytesExit | undefined {
    if (this.chunks.length > 0) {
      // Bytes that are always there at once leave the deadline no turn.
      const left = this.budget?.timeLeft(0, now ?? this.deadlines.now())
      if (left !== undefined && left.millis <= 0) {
        const transport = this.transport
        this.fail(this.budget!.overdue("stream", left.of))
        transport?.abort()
        return Exit.fail(this.failure!)
      }
      const bytes = join(this.chunks)
      this.chunks = []
      this.waitingBytes = 0
      if (!this.endExpected) this.limit = this.limits.silence
      if (this.paused) {
        this.paused = false
        this.transport?.resume()
      }
      return Exit.succeed(bytes)
    }
    if (this.state === "complete") return doneExit
    if (this.state === "left") return Exit.fail(leftFailure)
    return this.failure === undefined ? undefined : Exit.fail(this.failure)
  }

  private waitFor(waiter: (now: number) => void): void {
    this.waiter = waiter
    this.waitingSince = this.deadlines.now()
    this.deadline.at = this.waitingSince + this.timeLeft(this.waitingSince)
  }

  /** Milliseconds that one who waits from now on has. */
  private timeLeft(now: number): number {
    return this.budget === undefined ? this.limit : Math.min(this.limit, this.budget.timeLeft(0, now).millis)
  }

  /**
   * Continues the waiter once all that the network has delivered at once is in: a read of the socket holds many chunks,
   * and each would be a resumption.
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
    else this.fail(new UpstreamFailure({ phase, kind: "timeout", cause: this.because({}) }))
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

/** Nobody reads what has been left; this is for whoever does all the same. */
const leftFailure = new UpstreamFailure({ phase: "stream", kind: "transport" })

/** Starts exchanges. */
export class Exchanges extends Context.Service<Exchanges, {
  /** Sends a request at once. Whoever starts an exchange leaves it, whatever happens. */
  readonly start: (request: ExchangeRequest, options: ExchangeOptions) => Effect.Effect<Exchange>
}>()("model-gateway/upstream/Exchanges") {}
