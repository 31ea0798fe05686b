/**
 * The response of a streamed reply, which a fiber of its own runs, so that a slow client delays it only when the buffer is full.
 *
 * The response starts with the reply; that of an event stream after ten seconds at the latest. A failure before that has its own status. A
 * later failure is sent as the last frame.
 */
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import type { Request } from "../completion/Request.ts"
import type { Deadline, Deadlines } from "../config/clock/Deadlines.ts"
import { CurrentBufferedBytes, CurrentLimits } from "../config/limits.ts"
import { type GatewayError, operatorMessage } from "../domain/GatewayError.ts"
import type { FailingMachine } from "../domain/stream/transducer.ts"
import { toGatewayError } from "./endpointMiddleware.ts"
import { MessageSource, sendAsMessages } from "./MessageSource.ts"
import { CurrentRequest } from "./RequestContext.ts"
import { comment, type Frame, ResponseBuffer, sendNow, type StreamHead } from "./ResponseBuffer.ts"

/** Milliseconds of upstream silence before the headers are sent without an event (behaviour §4). */
const headersAfter = 10_000

type Response = HttpServerResponse.HttpServerResponse

/** Renders what a reply consists of. */
export interface ReplyRenderer<I, F extends Frame> {
  readonly frames: FailingMachine<I, F, GatewayError>
  /** Text that keeps the connection alive after the first frame; `undefined` for replies without it. */
  readonly keepAlive: (() => string) | undefined
  /** The head of the response; by default that of an event stream. */
  readonly head?: StreamHead
  /** False if recordings keep nothing of the frames. */
  readonly isRecorded?: boolean
  /** An effect that must finish before the rendered frames are sent; `undefined` if nothing is pending. */
  readonly pending?: () => Effect.Effect<void> | undefined
  /** The last frames of a reply that fails after its first frame; `undefined` breaks the response off. */
  readonly failure: (error: GatewayError) => string | undefined
}

/** What the response needs of a renderer. */
type Renderer = Omit<ReplyRenderer<never, never>, "frames">

/** The client's side of one streamed reply. */
export class ReplyResponse {
  readonly buffer: ResponseBuffer
  private readonly fiber: Fiber.Fiber<unknown, unknown>
  private readonly failureBefore: ((error: GatewayError) => string) | undefined
  private readonly deadlines: Deadlines["Service"]
  private readonly request: Request
  /** Holds the attempts of the reply. */
  readonly attempts = Scope.makeUnsafe()
  private renderer: Renderer | undefined
  /** The response, or the failure in its place. */
  private answer: Effect.Effect<Response, GatewayError> | undefined
  /** Resumes the request that waits for the answer. */
  private resume: ((answer: NonNullable<typeof this.answer>) => void) | undefined
  /** Sends the headers of a reply that does not begin in time. */
  private late: Deadline | undefined
  private running: Fiber.Fiber<void> | undefined
  private isOver = false

  /** As for `streamReply`; `fiber` is the request's. */
  constructor(
    fiber: Fiber.Fiber<unknown, unknown>,
    failureBefore: ((error: GatewayError) => string) | undefined,
    deadlines: Deadlines["Service"],
    patience: number
  ) {
    this.fiber = fiber
    this.failureBefore = failureBefore
    this.deadlines = deadlines
    this.request = Context.getUnsafe(fiber.context, CurrentRequest)
    const request = Context.getOrUndefined(fiber.context, HttpServerRequest.HttpServerRequest)
    const message = request?.source instanceof MessageSource ? request.source : undefined
    this.buffer = new ResponseBuffer({
      deadlines,
      patience,
      leave: () => {
        fiber.interruptUnsafe()
        Effect.runForkWith(fiber.context)(this.end(Exit.interrupt(fiber.id)))
      },
      limits: fiber.getRef(CurrentLimits),
      queue: message?.queue ?? { bytes: 0 },
      sum: fiber.getRef(CurrentBufferedBytes),
      sent: (frames) => {
        if (this.renderer?.isRecorded !== false) this.request.followers.recording?.sent(frames)
      },
      sendNow: message === undefined ? sendNow(request) : sendAsMessages(message)
    })
  }

  /** The reply has started: the response starts too. */
  begin(renderer: Renderer): void {
    this.renderer = renderer
    const { buffer } = this
    buffer.keepAliveText = renderer.keepAlive
    buffer.pending = renderer.pending
    if (renderer.head !== undefined) buffer.head = renderer.head
    if (this.answer === undefined) this.respond()
  }

  /** Runs the reply, and responds as soon as it has begun. Fails with the error to send before the headers. */
  run<R>(reply: Pull.Pull<never, GatewayError, void, R>): Effect.Effect<Response, GatewayError, R | Scope.Scope> {
    const context = this.fiber.context as Context.Context<R | Scope.Scope>
    const finalizer = (exit: Exit.Exit<unknown, unknown>) => this.end(exit)
    return Effect.flatMap(Scope.addFinalizerExit(Context.get(context, Scope.Scope), finalizer), () => {
      const run = Effect.catchCause(reply, (cause) => this.ended(cause))
      this.running = Effect.runForkWith(Context.add(context, Scope.Scope, this.attempts))(run)
      return this.answer ?? this.wait
    })
  }

  private respond(answer: Effect.Effect<Response, GatewayError> = Effect.succeed(this.buffer.response())): void {
    this.answer = answer
    this.late?.cancel()
    this.resume?.(answer)
  }

  private readonly wait: Effect.Effect<Response, GatewayError> = Effect.callback((resume) => {
    const { deadlines, failureBefore } = this
    const latest = failureBefore === undefined ? Infinity : deadlines.now() + headersAfter
    this.resume = resume
    this.late = deadlines.add(latest, () => {
      this.buffer.write(comment())
      this.respond()
    })
    return Effect.sync(() => this.late?.cancel())
  })

  /** The reply has ended, or failed. */
  private ended(cause: Cause.Cause<GatewayError | Cause.Done>): Effect.Effect<void> {
    if (Pull.isDoneCause(cause)) return this.close(false)
    if (this.answer === undefined) {
      this.isOver = true
      this.respond(Effect.failCause(cause as Cause.Cause<GatewayError>))
      return this.close(false)
    }
    const { failureBefore, renderer, request: { stats } } = this
    return Effect.flatMap(toGatewayError(cause), (error) => {
      if (error === undefined) return this.close(true)
      stats.error = error.code
      stats.errorMessage = operatorMessage(error)
      stats.cause = error.cause
      const frames = renderer === undefined ? failureBefore?.(error) : renderer.failure(error)
      if (frames === undefined) return this.close(true)
      return Effect.flatMap(this.buffer.pending?.() ?? Effect.void, () => {
        this.buffer.write(frames)
        return this.close(false)
      })
    })
  }

  /** Ends the response and closes the reply's attempts. */
  private close(isInterrupted: boolean): Effect.Effect<void> {
    this.isOver = true
    this.buffer.close(isInterrupted)
    return this.attempts.state._tag === "Empty" ? Effect.void : Scope.close(this.attempts, Exit.void)
  }

  /** Stops the reply's fiber, which could start another attempt, and then closes the attempts. */
  private end(exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> {
    const stopped = this.isOver || this.running === undefined ? Effect.void : Fiber.interrupt(this.running)
    return Effect.flatMapEager(stopped, () => {
      this.buffer.release()
      return Scope.closeUnsafe(this.attempts, exit) ?? Effect.void
    })
  }
}
