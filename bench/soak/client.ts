/**
 * Sends one HTTP request with the behaviour of a soak client, and returns the response.
 */
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http"
import type { Behaviour } from "./plan.ts"
import type { HttpRequest } from "./requests.ts"

/** The response, and how it ended: complete, aborted by the client, a broken connection, or a timeout. */
export interface Received {
  readonly how: "whole" | "left" | "broken" | "hung"
  /** 0 if no response head arrived. */
  readonly status: number
  readonly contentType: string
  readonly requestId: string
  readonly body: string
  /** The number of the gateway, and the client's port of the connection. */
  readonly node: number
  readonly port: number
  /** The times of the start, of the response head or else the end, and of the end. Milliseconds. */
  readonly began: number
  readonly answered: number
  readonly ended: number
}

/** Upper bound of every request of the soak, with room for a slow machine. */
export const patience = 90_000

const reads: Behaviour = { _tag: "Reads" }

/** Milliseconds for which a stalling client reads nothing: more than `timeouts.client` of the gateway. */
const stalled = 14_000

/** The connections of the clients, which use the gateways in turn. `close` ends idle ones. */
export class Client {
  private agent = new Agent({ keepAlive: true, maxFreeSockets: 64 })
  private readonly bases: ReadonlyArray<URL>
  private next = 0

  constructor(urls: ReadonlyArray<string>) {
    this.bases = urls.map((url) => new URL(url))
  }

  close(): void {
    this.agent.destroy()
    this.agent = new Agent({ keepAlive: true, maxFreeSockets: 64 })
  }

  /** Sends a request. It never rejects. */
  send(sent: HttpRequest, behaviour: Behaviour = reads, left?: AbortSignal): Promise<Received> {
    return new Promise((resolve) => {
      const began = performance.now()
      const node = this.next++ % this.bases.length
      const base = this.bases[node]!
      let answered: number | undefined
      let port = 0
      const chunks: Array<Buffer> = []
      let response: IncomingMessage | undefined
      let timer: NodeJS.Timeout | undefined
      let outgoing: ClientRequest | undefined = undefined
      const end = (how: Received["how"]): void => {
        clearTimeout(timer)
        clearTimeout(hung)
        if (how !== "whole") outgoing?.destroy()
        const ended = performance.now()
        resolve({
          how,
          node,
          port,
          began,
          answered: answered ?? ended,
          ended,
          status: response?.statusCode ?? 0,
          contentType: String(response?.headers["content-type"] ?? ""),
          requestId: String(response?.headers["x-request-id"] ?? ""),
          body: Buffer.concat(chunks).toString()
        })
      }
      const hung = setTimeout(() => end("hung"), patience)
      const leaveAfter = (millis: number): void => {
        timer = setTimeout(() => end("left"), millis)
      }
      const leaves = behaviour._tag === "Leaves" ? behaviour.when : undefined
      const after = behaviour._tag === "Leaves" ? behaviour.after : 0
      outgoing = request({
        host: base.hostname,
        port: base.port,
        method: sent.method,
        path: sent.path,
        agent: this.agent,
        headers: { ...sent.headers, "content-length": Buffer.byteLength(sent.body) }
      }, (incoming) => {
        response = incoming
        answered = performance.now()
        incoming.on("data", (chunk: Buffer) => {
          const first = chunks.length === 0
          chunks.push(chunk)
          if (leaves === "stream" && first) leaveAfter(after)
          if (behaviour._tag === "Slow") {
            incoming.pause()
            setTimeout(() => incoming.resume(), behaviour.pause)
          }
        })
        if (behaviour._tag === "Stalls") {
          incoming.pause()
          // A client that does not read cannot see the end of the connection, so it checks after the gateway's time limit.
          setTimeout(() => incoming.resume(), stalled)
        }
        incoming.on("end", () => end("whole"))
        incoming.on("error", () => end("broken"))
        incoming.on("close", () => end("broken"))
      })
      outgoing.on("socket", (socket) => {
        port = socket.localPort ?? 0
        if (!socket.connecting) return
        socket.once("connect", () => {
          port = socket.localPort ?? 0
        })
      })
      outgoing.on("error", () => end("broken"))
      left?.addEventListener("abort", () => end("left"), { once: true })
      if (leaves === "half-body") {
        outgoing.write(sent.body.slice(0, sent.body.length >> 1))
        leaveAfter(after)
        return
      }
      outgoing.end(sent.body)
      if (leaves === "queue" || leaves === "before") leaveAfter(after)
    })
  }
}
