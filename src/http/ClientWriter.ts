/**
 * The way of a streamed reply to its client: bytes go in, what the client has not taken is known.
 *
 * A server that has the client's socket at hand lets the reply be written to it as it comes, in the fiber that answers the
 * request. For any other there is a queue, out of which the response's stream is read.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"

/** A client that frames are written to. */
export interface ClientWriter {
  /** Sends frames at once, or lets them wait. */
  readonly write: (frames: string) => void
  /** Bytes that wait for the client. */
  readonly backlog: () => number
  /** Waits until the client has caught up. */
  readonly drained: Effect.Effect<void>
}

/** The writer of a request's client, usable once the headers are out; `undefined` where the server has none. */
export const CurrentClientWriter = Context.Reference<
  (request: HttpServerRequest.HttpServerRequest) => ClientWriter | undefined
>("model-gateway/http/ClientWriter", { defaultValue: () => () => undefined })
