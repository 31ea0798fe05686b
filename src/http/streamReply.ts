/**
 * A reply as a stream:
 *
 *     reply.events |> frames of the style |> ResponseBuffer |> HttpServerResponse.stream
 *
 * A fiber of its own runs the reply, so that a slow client delays it only when the buffer is full. The response starts with the
 * reply; that of an event stream after ten seconds at the latest. A failure before that has its own status. A later failure is sent as
 * the last frame.
 */
import type * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { CompletionOutput } from "../completion/Completion.ts"
import type { Deadlines } from "../config/clock/Deadlines.ts"
import { CurrentBufferedBytes, CurrentLimits } from "../config/limits.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { once, transduce } from "../domain/stream/transduce.ts"
import { toGatewayError } from "./endpointMiddleware.ts"
import { type FrameRenderer, Rendering } from "./FrameRenderer.ts"
import { CurrentRequestStats } from "./RequestContext.ts"
import { comment, ResponseBuffer, sendNow } from "./ResponseBuffer.ts"

/** Milliseconds of upstream silence before the headers are sent without an event (behaviour §4). */
const headersAfter = 10_000

/** Sends the frames of a reply up to its end or failure; `scope` holds the stream. */
const send = (
  { events }: CompletionOutput,
  { frames, pending }: FrameRenderer,
  buffer: ResponseBuffer,
  scope: Scope.Scope
): Pull.Pull<never, GatewayError> => {
  const rendered = transduce<ReplyEvent, string>(once(new Rendering(frames, buffer.last)))(events)
  const offer = (texts: ReadonlyArray<string>) => {
    const text = texts.length === 1 ? texts[0]! : texts.join("")
    const before = pending?.()
    return before === undefined ? buffer.offer(text) : Effect.andThen(before, Effect.suspend(() => buffer.offer(text)))
  }
  return Effect.flatMap(
    Channel.toPullScoped(Stream.toChannel(rendered), scope),
    (pull) => Effect.forever(Effect.flatMap(pull, offer), { disableYield: true })
  )
}

/** What a stream needs of the renderer of its reply. */
interface ReplyRenderer {
  /** An effect that must finish before rendered frames are sent. */
  readonly pending?: () => Effect.Effect<void> | undefined
  /** The last frames of a reply that fails after its first frame; `undefined` breaks the response off. */
  readonly failure: (error: GatewayError) => string | undefined
}

/** How a kind of reply is streamed. The functions are those of a module, since V8 keeps what others reference. */
export interface StreamKind<Output, Renderer extends ReplyRenderer> {
  /** Prepares the buffer for the reply. */
  readonly prepare: (renderer: Renderer, buffer: ResponseBuffer) => void
  /** Sends the reply up to its end or failure; `scope` holds the stream. */
  readonly send: (
    output: Output,
    renderer: Renderer,
    buffer: ResponseBuffer,
    scope: Scope.Scope
  ) => Pull.Pull<never, GatewayError>
  /** Whether the recording keeps what is sent. */
  readonly isRecorded: (renderer: Renderer | undefined) => boolean
}

const eventFrames: StreamKind<CompletionOutput, FrameRenderer> = {
  prepare: (renderer, buffer) => {
    buffer.keepAliveText = renderer.keepAlive
  },
  send,
  isRecorded: () => true
}

/**
 * Opens a completion and responds with its stream.
 *
 * `render` makes the style's renderer when the reply starts; `failureBefore` renders a failure between the headers and the start of
 * the reply. A client that reads nothing for `client` milliseconds is disconnected. Fails with the error to send before the
 * headers.
 */
export const streamReply = <R>(
  open: Effect.Effect<CompletionOutput, GatewayError, R>,
  render: (output: CompletionOutput) => FrameRenderer,
  failureBefore: (error: GatewayError) => string,
  deadlines: Deadlines["Service"],
  client: number
) => streamOutput(eventFrames, open, render, failureBefore, deadlines, client)

/** As `streamReply`, for any kind of reply. Without `failureBefore` the headers wait for the reply. */
export const streamOutput = <Output, Renderer extends ReplyRenderer, R>(
  { isRecorded, prepare, send }: StreamKind<Output, Renderer>,
  open: Effect.Effect<Output, GatewayError, R>,
  render: (output: Output) => Renderer,
  failureBefore: ((error: GatewayError) => string) | undefined,
  deadlines: Deadlines["Service"],
  client: number
): Effect.Effect<HttpServerResponse.HttpServerResponse, GatewayError, R | CurrentRequestStats | Scope.Scope> =>
  Effect.withFiber((fiber: Fiber.Fiber<unknown, unknown>) => {
    const { context } = fiber
    const stats = Context.getUnsafe(context, CurrentRequestStats)
    const attempts = Scope.makeUnsafe()
    let renderer: Renderer | undefined
    /** The response, or the failure in its place. */
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
      sent: (frames) => {
        if (isRecorded(renderer)) stats.recording?.sent(frames)
      },
      sendNow: sendNow(Context.getOrUndefined(context, HttpServerRequest.HttpServerRequest))
    })
    const respond = (known: NonNullable<typeof answer>) => {
      answer = known
      answered?.()
    }
    const begin = () => respond(Effect.succeed(buffer.response()))

    const run = Effect.flatMap(open, (output) => {
      renderer = render(output)
      prepare(renderer, buffer)
      if (answer === undefined) begin()
      return send(output, renderer, buffer, attempts)
    })
    /** Ends the response and closes the reply's attempts. */
    const over = (isInterrupted: boolean): Effect.Effect<void> => {
      isOver = true
      buffer.close(isInterrupted)
      return attempts.state._tag === "Empty" ? Effect.void : Scope.close(attempts, Exit.void)
    }
    const reply = Effect.catchCause(run, (cause): Effect.Effect<void> => {
      if (Pull.isDoneCause(cause)) return over(false)
      if (answer === undefined) {
        isOver = true
        respond(Effect.failCause(cause as Cause.Cause<GatewayError>))
        return over(false)
      }
      return Effect.flatMap(toGatewayError(cause), (error) => {
        if (error === undefined) return over(true)
        stats.error = error.code
        stats.errorMessage = error.message
        stats.cause = error.cause
        const frames = renderer === undefined ? failureBefore?.(error) : renderer.failure(error)
        if (frames === undefined) return over(true)
        return Effect.flatMap(renderer?.pending?.() ?? Effect.void, () => {
          buffer.write(frames)
          return over(false)
        })
      })
    })
    /** Stops the reply's fiber, which could start another attempt, and then closes the attempts. */
    const end = (exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> => {
      const stopped = isOver || running === undefined ? Effect.void : Fiber.interrupt(running)
      return Effect.flatMapEager(stopped, () => {
        buffer.release()
        return Scope.closeUnsafe(attempts, exit) ?? Effect.void
      })
    }
    const wait = Effect.callback<HttpServerResponse.HttpServerResponse, GatewayError>((resume) => {
      const latest = failureBefore === undefined ? Infinity : deadlines.now() + headersAfter
      const late = deadlines.add(latest, () => {
        buffer.write(comment())
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
