/**
 * A reply as a server-sent event stream:
 *
 *     reply.events |> frames of the style |> what waits for the client |> HttpServerResponse.stream
 *
 * The reply is opened and run by a fiber of its own, which the client's speed holds up only when too much waits. The response
 * begins with the reply, so that a failure before it keeps its status, or after ten seconds; a later failure is sent in
 * the stream, which ends with it.
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
import { toGatewayError } from "./edge.ts"
import { type FrameRenderer, Rendering } from "./FrameRenderer.ts"
import { CurrentRequest } from "./Request.ts"
import { ResponseBuffer } from "./ResponseBuffer.ts"
import { sendNow } from "./sendNow.ts"

/** Milliseconds of upstream silence after which the headers are sent without an event (behaviour §4). */
const headersAfter = 10_000

/** Sends the style's frames of a reply, to the end or the failure of their stream, which the scope holds. */
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

/**
 * Opens a completion and answers with its stream.
 *
 * `render` starts the style's renderer once the reply has begun; `failureBefore` renders the frames of a failure that comes
 * after the headers but before there is a reply. A client that takes nothing for `client` milliseconds is left. Fails with the
 * caller's error while no header has been sent.
 */
export const streamReply = <R>(
  open: Effect.Effect<CompletionOutput, GatewayError, R>,
  render: (output: CompletionOutput) => FrameRenderer,
  failureBefore: (error: GatewayError) => string,
  deadlines: Deadlines["Service"],
  client: number
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
      sent: (frames) => stats.record?.sent(frames),
      sendNow: sendNow(Context.getOrUndefined(context, HttpServerRequest.HttpServerRequest))
    })
    const settle = (known: NonNullable<typeof answer>) => {
      answer = known
      answered?.()
    }
    const begin = () => settle(Effect.succeed(buffer.response()))

    const run = Effect.flatMap(open, (output) => {
      renderer = render(output)
      buffer.keepAliveText = renderer.keepAlive
      if (answer === undefined) begin()
      return send(output, renderer, buffer, attempts)
    })
    /** The reply is over: the response ends, and what the reply needs is closed. */
    const over = (isInterrupted: boolean): Effect.Effect<void> => {
      isOver = true
      buffer.close(isInterrupted)
      return attempts.state._tag === "Empty" ? Effect.void : Scope.close(attempts, Exit.void)
    }
    const reply = Effect.catchCause(run, (cause): Effect.Effect<void> => {
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
    })
    /** The attempts are closed once nothing runs any more that might begin another one. */
    const end = (exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> => {
      const stopped = isOver || running === undefined ? Effect.void : Fiber.interrupt(running)
      return Effect.flatMapEager(stopped, () => {
        buffer.release()
        return Scope.closeUnsafe(attempts, exit) ?? Effect.void
      })
    }
    const wait = Effect.callback<HttpServerResponse.HttpServerResponse, GatewayError>((resume) => {
      const late = deadlines.add(deadlines.now() + headersAfter, () => {
        buffer.write(buffer.keepAliveText())
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
