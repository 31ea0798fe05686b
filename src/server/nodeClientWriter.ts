/** Writes a streamed reply to node's own response, behind the headers that the server has sent. */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import { ServerResponse } from "node:http"
import type { ClientWriter } from "../http/ClientWriter.ts"

/** The writer of a request that came over a socket of node's server. A client that has gone takes everything. */
export const nodeClientWriter = (request: HttpServerRequest.HttpServerRequest): ClientWriter | undefined => {
  const response: unknown = NodeHttpServerRequest.toServerResponse(request)
  if (!(response instanceof ServerResponse)) return undefined
  return {
    write: (bytes) => {
      if (!response.writableEnded && !response.destroyed) response.write(bytes)
    },
    backlog: () => response.writableLength,
    // Called back when everything before it has been passed on.
    drained: Effect.callback((resume) => {
      response.write("", () => resume(Effect.void))
    })
  }
}
