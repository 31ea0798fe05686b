/**
 * A reply as a server-sent event stream: waits for the first reply event so that a failure keeps its status, keeps the
 * connection alive through silence, and tells a later failure in the stream.
 *
 * One loop from the wire to the client: it asks the upstream, renders what came at once as one text, and writes it. A client
 * that is behind by more than its bound makes it wait, and so the upstream. Silence and clients that do not read are
 * deadlines of the common list; times are monotonic.
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Deadline, Deadlines } from "../clock/Deadlines.ts"
import type { CompletionOutput } from "../completion/Completion.ts"
import { CurrentBufferedBytes, CurrentLimits } from "../config/CurrentLimits.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { clear, type Machine } from "../stream/transducer.ts"
import { pullOf } from "../upstream/pullOf.ts"
import { type ClientWriter, CurrentClientWriter } from "./ClientWriter.ts"
import { toGatewayError } from "./edge.ts"
import { FrameQueue } from "./FrameQueue.ts"
import { CurrentRequest } from "./Request.ts"

/** How a style writes one reply's frames. */
export interface FrameRenderer {
  /** Frames as text, ready to send. */
  readonly frames: Machine<ReplyEvent, string>
  /** What keeps the connection alive once the first frame is out. */
  readonly keepAlive: () => string
  /** What has to be done before what was rendered may leave, once; `undefined` where that is nothing. */
  readonly pending?: () => Effect.Effect<void> | undefined
  /** The frames with which a reply ends that fails after its first frame. */
  readonly failure: (error: GatewayError) => string
}

/** What the times of a streamed reply are kept by. */
export interface StreamTimes {
  readonly deadlines: Deadlines["Service"]
  /** A client that does not read at all for so many milliseconds is left. */
  readonly client: number
}

/** Silence after which something is sent (behaviour: "Keep-alive every 5 s of silence"). */
const keepAliveEvery = 5_000
/** Upstream silence after which the headers are sent without an event (behaviour §4). */
const headersAfter = 10_000

const comment = ": keep-alive\n\n"

const responseOptions = {
  contentType: "text/event-stream",
  headers: { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" }
}

/** What a reply is written with. */
interface WriteOptions {
  readonly render: (output: CompletionOutput) => FrameRenderer
  /** The frames of a failure that comes after the headers but before there is a reply. */
  readonly failureBefore: (error: GatewayError) => string
  readonly writer: ClientWriter
  readonly deadlines: Deadlines["Service"]
  /** Told what was written, for the request's record. */
  readonly sent: (frames: string) => void
  /** Told the error that is told in the stream. */
  readonly failed: (error: GatewayError) => void
  /** Holds what the reply's events need. */
  readonly scope: Scope.Scope
  /** Whoever stops the writing ends the request, and with it that scope. */
  readonly endsWithRequest: boolean
  /** Whether the bytes that wait for the client may be more. */
  readonly hasRoom: (backlog: number) => boolean
}

/** Writes one reply. */
class ReplyWriter {
  private readonly options: WriteOptions
  private renderer: FrameRenderer | undefined
  private events: Pull.Pull<NonEmptyReadonlyArray<ReplyEvent>, GatewayError> | undefined
  private readonly frames: Array<string> = []
  private readonly quiet: Deadline

  constructor(options: WriteOptions) {
    this.options = options
    this.quiet = options.deadlines.add(Infinity, () => this.keepAlive())
  }

  /** Nothing of it remains in the common list. */
  readonly close = (): void => this.quiet.cancel()

  /** The reply has begun: its events to the end. */
  reply(output: CompletionOutput): Effect.Effect<void> {
    const begin = (events: ReplyWriter["events"]) => {
      this.renderer = this.options.render(output)
      this.events = events
      return this.next
    }
    if (this.options.endsWithRequest && output.pull !== undefined) return begin(output.pull)
    // The events are over with their stream, not with the response: what they hold is free while the client still reads.
    const scope = Scope.forkUnsafe(this.options.scope)
    return Effect.onExit(Effect.flatMap(pullOf(output.events, scope), begin), (exit) => Scope.close(scope, exit))
  }

  /** The headers are out and there is no reply yet. */
  late(opening: Fiber.Fiber<CompletionOutput, GatewayError>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.write(comment)
      return Effect.matchCauseEffect(Fiber.join(opening), {
        onSuccess: (output) => this.reply(output),
        onFailure: (cause) => this.fail(cause)
      })
    })
  }

  private readonly next: Effect.Effect<void> = Effect.suspend(() => {
    // Each write sets it anew.
    if (this.quiet.at === Infinity) this.quiet.at = this.options.deadlines.now() + keepAliveEvery
    return Effect.matchCauseEffect(this.events!, {
      onSuccess: (events) => {
        const { frames } = this.renderer!
        for (let i = 0; i < events.length; i++) frames.push(events[i]!, this.frames)
        const pending = this.renderer!.pending?.()
        if (pending !== undefined) {
          return Effect.flatMap(pending, () => this.wrote(events))
        }
        return this.wrote(events)
      },
      onFailure: (cause) => {
        if (!Pull.isDoneCause(cause)) return this.fail(cause)
        this.renderer!.frames.end(this.frames)
        const pending = this.renderer!.pending?.()
        return pending === undefined ? this.ended() : Effect.flatMap(pending, () => this.ended())
      }
    })
  })

  /** Lets go what was made of events. */
  private wrote(events: NonEmptyReadonlyArray<ReplyEvent>): Effect.Effect<void> {
    this.write(this.rendered())
    // What follows the last event is the end, with which the account is free: a client that is behind has no say in that.
    return events[events.length - 1]!._tag === "Finish" ? this.next : this.goOn()
  }

  /** Goes on at once where the client keeps up. */
  private goOn(): Effect.Effect<void> {
    const { hasRoom, writer } = this.options
    if (hasRoom(writer.backlog())) return this.next
    // Time in which the client is behind is no silence.
    this.quiet.at = Infinity
    return Effect.flatMap(writer.drained, () => this.goOn())
  }

  /** Lets go the last, and stays as long as the client is behind by too much: until then that counts. */
  private ended(): Effect.Effect<void> {
    this.write(this.rendered())
    this.quiet.at = Infinity
    return this.caughtUp()
  }

  private caughtUp(): Effect.Effect<void> {
    const { hasRoom, writer } = this.options
    return hasRoom(writer.backlog()) ? Effect.void : Effect.flatMap(writer.drained, () => this.caughtUp())
  }

  private rendered(): string {
    const { frames } = this
    const text = frames.length === 1 ? frames[0]! : frames.join("")
    clear(frames)
    return text
  }

  private write(text: string): void {
    if (text === "") return
    this.options.writer.write(text)
    this.options.sent(text)
    this.quiet.at = this.options.deadlines.now() + keepAliveEvery
  }

  /** Tells a failure in the stream, which ends with it. */
  private fail(cause: Cause.Cause<GatewayError | Cause.Done<unknown>>): Effect.Effect<void> {
    return Effect.flatMap(toGatewayError(cause), (error) => {
      if (error === undefined) return Effect.interrupt
      this.options.failed(error)
      this.write(this.rendered())
      const failure = this.renderer === undefined ? this.options.failureBefore(error) : this.renderer.failure(error)
      return Effect.map(this.renderer?.pending?.() ?? Effect.void, () => {
        this.write(failure)
        this.quiet.at = Infinity
      })
    })
  }

  /** The client has heard nothing for a while. What waits for it already keeps the connection alive once it is read. */
  private keepAlive(): void {
    if (this.options.writer.backlog() === 0) {
      this.write(this.renderer === undefined ? comment : this.renderer.keepAlive())
    } else this.quiet.at = this.options.deadlines.now() + keepAliveEvery
  }
}

/** Waits until a fiber has ended or the time has come, whichever is first. */
const within = (fiber: Fiber.Fiber<unknown, unknown>, deadlines: Deadlines["Service"], millis: number) =>
  Effect.callback<void>((resume) => {
    const deadline = deadlines.add(deadlines.now() + millis, () => resume(Effect.void))
    fiber.addObserver(() => {
      deadline.cancel()
      resume(Effect.void)
    })
    return Effect.sync(() => deadline.cancel())
  })

/**
 * The body of a response that is written beside it: empty, and over with the writing. What it writes with is let go at the
 * start: the library's stream itself stays until the next full collection (see `PulledReply`).
 */
const writingStream = (write: Effect.Effect<void>): Stream.Stream<never> => {
  let left: Effect.Effect<void> | undefined = write
  return Stream.fromPull(Effect.sync((): Pull.Pull<never> => {
    const writing = left ?? Effect.void
    left = undefined
    return Effect.flatMap(writing, () => Cause.done())
  }))
}

/**
 * Opens a completion and answers with its stream.
 *
 * `render` starts the style's renderer once the reply has begun; `failureBefore` renders the frames of a failure that comes
 * after the headers but before there is a reply. Fails with the caller's error while no header has been sent.
 */
export const streamReply = <R>(
  open: Effect.Effect<CompletionOutput, GatewayError, R>,
  render: (output: CompletionOutput) => FrameRenderer,
  failureBefore: (error: GatewayError) => string,
  { client, deadlines }: StreamTimes
): Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  GatewayError,
  R | CurrentRequest | Scope.Scope
> =>
  Effect.withFiber((fiber: Fiber.Fiber<unknown, unknown>) => {
    const { context } = fiber
    const stats = Context.getUnsafe(context, CurrentRequest)
    const scope = Context.getUnsafe(context, Scope.Scope)
    const request = Context.getOrUndefined(context, HttpServerRequest.HttpServerRequest)
    const bounds = fiber.getRef(CurrentLimits)
    const sum = fiber.getRef(CurrentBufferedBytes)
    const socket = request === undefined ? undefined : fiber.getRef(CurrentClientWriter)(request)
    /** Holds the attempts. */
    const attempts = Scope.makeUnsafe()
    let writing: Fiber.Fiber<void> | undefined
    const queue = socket === undefined
      ? new FrameQueue(deadlines, client, () => {
        writing?.interruptUnsafe()
        fiber.interruptUnsafe()
      })
      : undefined
    const writer = socket ?? queue!
    let held = 0
    const hold = (backlog: number): boolean => {
      sum.used += backlog - held
      held = backlog
      return backlog === 0 || sum.used <= bounds().buffered_bytes
    }
    const reply = new ReplyWriter({
      render,
      failureBefore,
      writer,
      deadlines,
      scope,
      endsWithRequest: queue === undefined,
      sent: (frames) => stats.record?.sent(Buffer.from(frames)),
      failed: (error) => {
        stats.error = error.code
        stats.cause = error.cause
      },
      hasRoom: (backlog) => hold(backlog) && backlog < bounds().client_queue_bytes
    })
    const respond = (write: Effect.Effect<void>): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
      if (queue === undefined) {
        return Effect.succeed(HttpServerResponse.stream(writingStream(write), responseOptions))
      }
      return Effect.map(
        Effect.forkIn(Effect.ensuring(write, Effect.sync(queue.end)), scope, { startImmediately: true }),
        (forked) => {
          writing = forked
          return HttpServerResponse.stream(queue.stream, responseOptions)
        }
      )
    }
    const close = Effect.sync(() => {
      reply.close()
      queue?.close()
      hold(0)
    })
    const opened = (
      opening: Fiber.Fiber<CompletionOutput, GatewayError>
    ): Effect.Effect<HttpServerResponse.HttpServerResponse, GatewayError> =>
      Effect.flatMapEager(
        opening.pollUnsafe() === undefined ? within(opening, deadlines, headersAfter) : Effect.void,
        () => {
          const exit = opening.pollUnsafe()
          if (exit === undefined) return respond(reply.late(opening))
          return exit._tag === "Success" ? respond(reply.reply(exit.value)) : Effect.failCause(exit.cause)
        }
      )
    let opening: Fiber.Fiber<CompletionOutput, GatewayError> | undefined
    const closeAttempts = (exit: Exit.Exit<unknown, unknown>) => {
      const left = Scope.closeUnsafe(attempts, exit)
      return left === undefined ? close : Effect.andThen(left, close)
    }
    /** What attempts hold is closed once nobody is at work on them any more, who might begin another one. */
    const end = (exit: Exit.Exit<unknown, unknown>) =>
      opening === undefined || opening.pollUnsafe() !== undefined
        ? closeAttempts(exit)
        : Effect.flatMap(Fiber.interrupt(opening), () => closeAttempts(exit))
    const inAttempts = Context.add(context as Context.Context<R>, Scope.Scope, attempts)
    return Effect.flatMap(Scope.addFinalizerExit(scope, end), () => {
      opening = Effect.runForkWith(inAttempts)(open)
      return opened(opening)
    })
  })
