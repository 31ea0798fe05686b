/**
 * A reply as a stream, from socket to socket:
 *
 *     events = bytes |> decoder                                            upstream/decodeBody.ts
 *     reply  = events |> calls in order, text, end, tool policy            completion/assembleReply.ts
 *                |> first events, notes, failures, release of the account  completion/openReply.ts
 *     frames = reply |> renderer of the style                              contracts/chat/writeReply.ts
 *     body   = frames |> buffer for the client, or its socket directly     http/ResponseBuffer.ts
 *
 * `open` is the way to `reply`; the rest is here.
 */
import * as Effect from "effect/Effect"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Deadlines } from "../config/clock/Deadlines.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { once, transduce } from "../domain/stream/transduce.ts"
import type { FailingMachine } from "../domain/stream/transducer.ts"
import { type ReplyRenderer, ReplyResponse } from "./ReplyResponse.ts"
import type { CurrentRequest } from "./RequestContext.ts"
import { bufferedFor, type Frame, type ResponseBuffer } from "./ResponseBuffer.ts"

/**
 * Opens a reply and responds with its stream.
 *
 * `render` makes the renderer when the reply starts; `failureBefore` renders a failure between the headers and the start of the reply, and
 * without it the headers wait for the reply. A client that reads nothing for `patience` milliseconds is disconnected. Fails with the error to
 * send before the headers.
 */
export const streamReply = <I extends ReplyEvent | Uint8Array, F extends Frame, Output, R>(
  open: Effect.Effect<Output & { readonly events: Stream.Stream<I, GatewayError> }, GatewayError, R>,
  render: (output: Output) => ReplyRenderer<I, F>,
  failureBefore: ((error: GatewayError) => string) | undefined,
  deadlines: Deadlines["Service"],
  patience: number
): Effect.Effect<HttpServerResponse.HttpServerResponse, GatewayError, R | CurrentRequest | Scope.Scope> =>
  Effect.withFiber((fiber) => {
    const client = new ReplyResponse(fiber, failureBefore, deadlines, patience)
    return client.run(Effect.flatMap(open, (output) => {
      const renderer = render(output)
      client.begin(renderer)
      const frames = output.events.pipe(transduce(once(new Rendering(renderer.frames, client.buffer))))
      return frames.pipe(bufferedFor(client))
    }))
  })

/** Renders frames; announces the last ones to the buffer after rendering `Finish`. */
class Rendering<I extends ReplyEvent | Uint8Array, F extends Frame> implements FailingMachine<I, F, GatewayError> {
  readonly failure: (() => GatewayError | undefined) | undefined
  private readonly frames: ReplyRenderer<I, F>["frames"]
  private readonly buffer: ResponseBuffer

  constructor(frames: ReplyRenderer<I, F>["frames"], buffer: ResponseBuffer) {
    this.frames = frames
    this.failure = frames.failure?.bind(frames)
    this.buffer = buffer
  }

  push(event: I, out: Array<F>): void {
    this.frames.push(event, out)
    if ("_tag" in event && event._tag === "Finish") this.buffer.last()
  }

  end(out: Array<F>): void {
    this.frames.end(out)
  }
}
