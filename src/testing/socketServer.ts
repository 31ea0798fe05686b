/**
 * The reference upstream on a socket. Plain `node:http` gives control over every byte, reset and pause, and is fast.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { handleControl } from "./control.ts"
import type { Provider } from "./Provider.ts"
import type { Call, Head } from "./provider/Call.ts"

/** Plays the steps of a call onto a reply. */
class Player {
  private readonly call: Call
  private readonly response: ServerResponse
  private next = 0
  private timer: NodeJS.Timeout | undefined = undefined

  constructor(call: Call, response: ServerResponse) {
    this.call = call
    this.response = response
    call.onStop = () => {
      clearTimeout(this.timer)
      this.next = call.steps.length
      if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" })
      response.end()
    }
    response.on("close", () => {
      clearTimeout(this.timer)
      this.next = call.steps.length
      call.end(response.writableFinished ? "finished" : "aborted")
    })
  }

  readonly play = (): void => {
    const { call, response } = this
    while (this.next < call.steps.length) {
      const step = call.steps[this.next++]!
      switch (step._tag) {
        case "Head":
          this.head(step)
          break
        case "Chunk": {
          const flows = response.write(step.bytes)
          call.onProgress(step.sent)
          if (!flows) {
            response.once("drain", this.play)
            return
          }
          break
        }
        case "Wait":
          if (step.millis === 0) setImmediate(this.play)
          else this.timer = setTimeout(this.play, step.millis)
          return
        case "Hang":
          call.onSilence()
          return
        case "Reset":
          this.reset()
          return
      }
    }
    if (!response.writableEnded) response.end()
  }

  private head({ status, headers }: Head): void {
    this.response.writeHead(status, headers)
    // Node holds the head until data follows, and silence may follow here.
    if (this.call.steps[this.next]?._tag !== "Chunk") this.response.flushHeaders()
  }

  /** Breaks the connection once the kernel has everything that was written, so that it reaches the caller first. */
  private reset(): void {
    const { call, response } = this
    const socket = response.socket
    call.end("broken")
    if (socket === null) return
    if (response.headersSent) socket.write("", () => socket.resetAndDestroy())
    else socket.resetAndDestroy()
  }
}

const answer = (provider: Provider, request: IncomingMessage, body: string, response: ServerResponse): void => {
  const url = request.url ?? "/"
  const mark = url.indexOf("?")
  const path = mark === -1 ? url : url.slice(0, mark)
  const query = mark === -1 ? "" : url.slice(mark + 1)
  const method = request.method ?? "GET"
  if (path.startsWith("/control/")) {
    handleControl(provider, { method, path, query, body }, response)
    return
  }
  const call = provider.handle({ method, path, query, authorization: request.headers.authorization, body })
  new Player(call, response).play()
}

/** A server that does not listen yet; `keepAlive` is in milliseconds. */
export const makeServer = (provider: Provider, keepAlive = 65_000): Server => {
  const server = createServer({ keepAliveTimeout: keepAlive, requestTimeout: 0 }, (request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => answer(provider, request, Buffer.concat(chunks).toString(), response))
    // A request that breaks off is no request.
    request.on("error", () => response.destroy())
  })
  server.on("clientError", (_, socket) => socket.destroy())
  return server
}
