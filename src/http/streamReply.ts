/**
 * A reply as a stream, from its events to the client's socket. The events begin with the upstream's bytes (`completion/startReply.ts`).
 */
import * as Effect from "effect/Effect"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Deadlines } from "../config/clock/Deadlines.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { once, transduce } from "../domain/stream/transduce.ts"
import { type Frame, Rendering, type ReplyRenderer } from "./FrameRenderer.ts"
import { bufferedFor, ReplyResponse } from "./ReplyResponse.ts"
import type { CurrentRequestStats } from "./RequestContext.ts"

/** A reply that has started: what it consists of, for one reader. */
interface Started<I> {
  readonly events: Stream.Stream<I, GatewayError>
}

/**
 * Opens a reply and responds with its stream.
 *
 * `render` makes the renderer when the reply starts; `failureBefore` renders a failure between the headers and the start of the reply, and
 * without it the headers wait for the reply. A client that reads nothing for `patience` milliseconds is disconnected. Fails with the error to
 * send before the headers.
 */
export const streamReply = <I extends ReplyEvent | Uint8Array, F extends Frame, Output extends Started<I>, R>(
  open: Effect.Effect<Output, GatewayError, R>,
  render: (output: Output) => ReplyRenderer<I, F>,
  failureBefore: ((error: GatewayError) => string) | undefined,
  deadlines: Deadlines["Service"],
  patience: number
): Effect.Effect<HttpServerResponse.HttpServerResponse, GatewayError, R | CurrentRequestStats | Scope.Scope> =>
  Effect.withFiber((fiber) => {
    const client = new ReplyResponse(fiber, { failureBefore, deadlines, patience })
    return client.run(Effect.flatMap(open, (output) => {
      const renderer = render(output)
      client.begin(renderer)
      const frames = output.events.pipe(transduce(once(new Rendering(renderer.frames, client.last))))
      return frames.pipe(bufferedFor(client))
    }))
  })
