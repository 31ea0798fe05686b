/**
 * A reply as a server-sent event stream:
 *
 *     reply.events |> frames of the style, failures among them |> ResponseBuffer |> HttpServerResponse.stream
 *
 * The reply is opened and run by a fiber of its own, which the client's speed holds up only when too much waits. The response
 * begins with the reply, so that a failure before it keeps its status, or after ten seconds; a later failure is told in the
 * stream, which ends with it.
 */
import type * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Deadlines } from "../clock/Deadlines.ts"
import type { CompletionOutput } from "../completion/Completion.ts"
import { CurrentBufferedBytes, CurrentLimits } from "../config/CurrentLimits.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { once, transduce } from "../stream/transduce.ts"
import type { Machine } from "../stream/transducer.ts"
import { toGatewayError } from "./edge.ts"
import { CurrentRequest } from "./Request.ts"
import { ResponseBuffer } from "./ResponseBuffer.ts"
import { sendNow } from "./sendNow.ts"

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

/** Milliseconds of upstream silence after which the headers are sent without an event (behaviour §4). */
const headersAfter = 10_000

const comment = ": keep-alive\n\n"
const keepAliveBefore = () => comment

const responseOptions = {
  contentType: "text/event-stream",
  headers: { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" }
}

/** The style's frames, with a note in the buffer once they are the last ones. */
class Rendering implements Machine<ReplyEvent, string> {
  private readonly frames: FrameRenderer["frames"]
  private readonly buffer: ResponseBuffer

  constructor(frames: FrameRenderer["frames"], buffer: ResponseBuffer) {
    this.frames = frames
    this.buffer = buffer
  }

  push(event: ReplyEvent, out: Array<string>): void {
    this.frames.push(event, out)
    if (event._tag === "Finish") this.buffer.isLast = true
  }

  end(out: Array<string>): void {
    this.frames.end(out)
  }
}

/** The style's frames of a reply, as texts. */
const framesOf = (
  { events }: CompletionOutput,
  { frames }: FrameRenderer,
  buffer: ResponseBuffer
): Stream.Stream<string, GatewayError> => transduce<ReplyEvent, string>(once(new Rendering(frames, buffer)))(events)

/** Sends frames to the end of the stream, which is a failure of the pull too. The scope holds the stream. */
const send = (
  frames: Stream.Stream<string, GatewayError>,
  { pending }: FrameRenderer,
  buffer: ResponseBuffer,
  scope: Scope.Scope
): Pull.Pull<never, GatewayError> =>
  Effect.flatMap(Channel.toPullScoped(Stream.toChannel(frames), scope), (pull) =>
    Effect.forever(
      Effect.flatMap(pull, (texts) => {
        const text = texts.length === 1 ? texts[0] : texts.join("")
        const before = pending?.()
        return before === undefined
          ? buffer.offer(text)
          : Effect.andThen(before, Effect.suspend(() => buffer.offer(text)))
      }),
      { disableYield: true }
    ))

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
): Effect.Effect<HttpServerResponse.HttpServerResponse, GatewayError, R | CurrentRequest | Scope.Scope> =>
  Effect.withFiber((fiber: Fiber.Fiber<unknown, unknown>) => {
    const { context } = fiber
    const stats = Context.getUnsafe(context, CurrentRequest)
    const attempts = Scope.makeUnsafe()
    let renderer: FrameRenderer | undefined
    /** The response, or the failure in its place, once it is known. */
    let answer: Effect.Effect<HttpServerResponse.HttpServerResponse, GatewayError> | undefined
    let answered: (() => void) | undefined
    let running: Fiber.Fiber<void> | undefined
    let isOver = false
    const buffer = new ResponseBuffer({
      deadlines,
      patience: client,
      leave: () => {
        fiber.interruptUnsafe()
        Effect.runForkWith(context)(end(Exit.interrupt(fiber.id)))
      },
      limits: fiber.getRef(CurrentLimits),
      sum: fiber.getRef(CurrentBufferedBytes),
      sent: (frames) => stats.record?.sent(typeof frames === "string" ? Buffer.from(frames) : frames),
      sendNow: sendNow(Context.getOrUndefined(context, HttpServerRequest.HttpServerRequest))
    }, keepAliveBefore)
    const settle = (known: NonNullable<typeof answer>) => {
      answer = known
      answered?.()
    }
    const begin = () => settle(Effect.succeed(HttpServerResponse.stream(buffer.stream, responseOptions)))

    const run = Effect.flatMap(open, (output) => {
      renderer = render(output)
      buffer.keepAliveText = renderer.keepAlive
      if (answer === undefined) begin()
      return send(framesOf(output, renderer, buffer), renderer, buffer, attempts)
    })
    /** The reply is over: the response ends, and what the reply needs is closed. */
    const over = (isInterrupted: boolean): Effect.Effect<void> => {
      isOver = true
      buffer.close(isInterrupted)
      return Scope.close(attempts, Exit.void)
    }
    const ended = (cause: Cause.Cause<GatewayError | Cause.Done>): Effect.Effect<void> => {
      if (Pull.isDoneCause(cause)) return over(false)
      if (answer === undefined) {
        isOver = true
        settle(Effect.failCause(cause as Cause.Cause<GatewayError>))
        return over(false)
      }
      return Effect.flatMap(toGatewayError(cause), (error) => {
        if (error === undefined) return over(true)
        stats.error = error.code
        stats.cause = error.cause
        const frames = renderer === undefined ? failureBefore(error) : renderer.failure(error)
        return Effect.flatMap(renderer?.pending?.() ?? Effect.void, () => {
          buffer.write(frames)
          return over(false)
        })
      })
    }
    const reply = Effect.catchCause(run, ended)

    const close = (exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> => {
      buffer.release()
      return Scope.closeUnsafe(attempts, exit) ?? Effect.void
    }
    /** The attempts are closed once nothing runs any more that might begin another one. */
    const end = (exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> =>
      isOver || running === undefined
        ? close(exit)
        : Effect.flatMap(Fiber.interrupt(running), () => close(exit))
    const wait = Effect.callback<HttpServerResponse.HttpServerResponse, GatewayError>((resume) => {
      const late = deadlines.add(deadlines.now() + headersAfter, () => {
        buffer.write(comment)
        begin()
      })
      answered = () => {
        late.cancel()
        resume(answer!)
      }
      return Effect.sync(() => late.cancel())
    })
    return Effect.flatMap(Scope.addFinalizerExit(Context.getUnsafe(context, Scope.Scope), end), () => {
      running = Effect.runForkWith(Context.add(context as Context.Context<R>, Scope.Scope, attempts))(reply)
      return answer ?? wait
    })
  })
