/** Writes a streamed reply to node's own response, behind the headers that the server has sent. */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import { ServerResponse } from "node:http"
import type { ClientWriter } from "../http/ClientWriter.ts"

class NodeClientWriter implements ClientWriter {
  readonly drained: Effect.Effect<void>
  private readonly response: ServerResponse
  /** The head went out with the first frames. */
  private begun = false

  constructor(response: ServerResponse) {
    this.response = response
    // Called back when everything before it has been passed on.
    this.drained = Effect.callback((resume) => {
      response.write("", () => resume(Effect.void))
    })
  }

  write(frames: string): void {
    const { response } = this
    if (frames === "" || response.writableEnded || response.destroyed) return
    const { socket } = response
    if (this.begun && socket !== null && response.chunkedEncoding && response.writableCorked === 0) {
      // Node makes four writes of a chunk, and collects them until the next tick: as much work as all else for an event.
      socket.write(`${Buffer.byteLength(frames).toString(16)}\r\n${frames}\r\n`)
    } else {
      this.begun = true
      response.write(frames)
    }
  }

  backlog(): number {
    return this.response.writableLength
  }
}

/** The writer of a request that came over a socket of node's server. A client that has gone takes everything. */
export const nodeClientWriter = (request: HttpServerRequest.HttpServerRequest): ClientWriter | undefined => {
  const response: unknown = NodeHttpServerRequest.toServerResponse(request)
  return response instanceof ServerResponse ? new NodeClientWriter(response) : undefined
}
