/**
 * A reply as a server-sent event stream: waits for the first reply event so that a failure keeps its status, keeps the
 * connection alive through silence, and tells a later failure in the stream.
 *
 * One fiber pumps the reply into a queue that is bounded in bytes, one watches the clock; the response takes what the queue
 * holds and writes it as one piece, so a slow client makes larger pieces and, at the queue's bound, a slower upstream. Times
 * are monotonic.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { CompletionOutput } from "../completion/Completion.ts"
import { CurrentLimits, holdBytes } from "../config/CurrentLimits.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { monotonicMillis } from "../domain/monotonicMillis.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import type { Machine } from "../stream/transducer.ts"
import { toGatewayError } from "./edge.ts"
import { FrameQueue } from "./frameQueue.ts"
import { CurrentRequest } from "./Request.ts"

/** How a style writes one reply's frames. */
export interface FrameRenderer {
  /** Frames as text, ready to send. */
  readonly frames: Machine<ReplyEvent, string>
  /** What keeps the connection alive once the first frame is out. */
  readonly keepAlive: string
  /** The frames with which a reply ends that fails after its first frame. */
  readonly failure: (error: GatewayError) => string
}

/** Time limits of a streamed reply, in milliseconds. */
export interface StreamLimits {
  /** A client that does not read at all for this long is left. */
  readonly client: number
}

/** Silence after which something is sent (behaviour: "Keep-alive every 5 s of silence"). */
const keepAliveEvery = 5_000
/** Upstream silence after which the headers are sent without an event (behaviour §4). */
const headersAfter = 10_000

const comment = ": keep-alive\n\n"

const streamHeaders = {
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no"
}

/**
 * Opens a completion and answers with its stream.
 *
 * `render` starts the style's renderer once the reply has begun; `failureBefore` renders the frames of a failure that comes
 * after the headers but before there is a reply. Fails with the caller's error while no header has been sent.
 */
export const streamReply = Effect.fnUntraced(function*<R>(
  open: Effect.Effect<CompletionOutput, GatewayError, R>,
  render: (output: CompletionOutput) => FrameRenderer,
  failureBefore: (error: GatewayError) => string,
  limits: StreamLimits
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, GatewayError, R | CurrentRequest | Scope.Scope> {
  const stats = yield* CurrentRequest
  const clock = yield* Clock.Clock
  const bounds = yield* CurrentLimits
  const queue = new FrameQueue(() => bounds().client_queue_bytes, yield* holdBytes)
  /** The reply's beginning; `undefined` when the headers have to go out before there is one. */
  const opened = yield* Deferred.make<CompletionOutput | undefined, GatewayError>()
  const response = Fiber.getCurrent()
  let renderer: FrameRenderer | undefined
  let headersSent = false
  const startedAt = monotonicMillis(clock)
  let sentAt = startedAt
  let readAt = startedAt

  const send = (frames: string) => {
    if (frames === "") return Effect.void
    sentAt = monotonicMillis(clock)
    queue.push(frames)
    return queue.room()
  }

  const pump = Effect.gen(function*() {
    const output = yield* open
    const started = render(output)
    renderer = started
    yield* Deferred.succeed(opened, output)
    const frames: Array<string> = []
    const written = () => {
      const text = frames.length === 1 ? frames[0]! : frames.join("")
      frames.length = 0
      return text
    }
    yield* Stream.runForEachArray(output.events, (events) => {
      for (let i = 0; i < events.length; i++) started.frames.push(events[i]!, frames)
      return send(written())
    })
    started.frames.end(frames)
    yield* send(written())
  }).pipe(
    Effect.catchCause((cause) =>
      Effect.flatMap(toGatewayError(cause), (error) => {
        if (error === undefined) return Effect.void
        if (!headersSent && renderer === undefined) return Deferred.fail(opened, error)
        stats.error = error.code
        return send(renderer === undefined ? failureBefore(error) : renderer.failure(error))
      })
    ),
    Effect.ensuring(Effect.sync(() => queue.end()))
  )
  const pumping = yield* Effect.forkScoped(pump, { startImmediately: true })

  const watch = Effect.gen(function*() {
    for (;;) {
      const now = monotonicMillis(clock)
      if (queue.bytes > 0 && now - readAt >= limits.client) {
        yield* Fiber.interrupt(pumping)
        response?.interruptUnsafe()
        return
      }
      const quietFor = now - sentAt
      if (quietFor < keepAliveEvery) {
        yield* Effect.sleep(Math.min(keepAliveEvery - quietFor, limits.client))
        continue
      }
      // What waits already keeps the connection alive once it is read.
      if (queue.bytes > 0) {
        sentAt = now
      } else if (headersSent) {
        queue.push(renderer === undefined ? comment : renderer.keepAlive)
      } else if (now - startedAt >= headersAfter) {
        // From here on a failure is told in the stream.
        headersSent = true
        Deferred.doneUnsafe(opened, Effect.undefined)
      }
      sentAt = now
    }
  })
  yield* Effect.forkScoped(watch)

  const output = yield* Deferred.await(opened)
  headersSent = true
  const body = Stream.fromPull(Effect.succeed(Effect.suspend(() => {
    readAt = monotonicMillis(clock)
    return Effect.flatMap(queue.take(), (bytes) => {
      readAt = monotonicMillis(clock)
      if (bytes === undefined) return Cause.done()
      stats.record?.sent(bytes)
      return Effect.succeed([bytes] as const)
    })
  })))
  if (output === undefined) yield* send(comment)
  return HttpServerResponse.stream(body, {
    contentType: "text/event-stream",
    headers: streamHeaders
  })
})
