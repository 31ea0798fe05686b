/**
 * A stand-in for an OpenAI-compatible server, on a real socket: each test says what it answers, and sees what it was asked.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"

/** A request as it came; `body` is its JSON. */
export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: { readonly [key: string]: unknown }
  /** The API key, where one was sent. */
  readonly key: string | undefined
  /** How its reply ended: `open` while it runs, `aborted` when the client left before the reply was over. */
  outcome: "open" | "finished" | "aborted"
}

/** What is sent of a reply, in order; a promise holds the rest back until it resolves. */
export type Piece = string | Uint8Array | Promise<void>

/** An answer of the server. */
export interface Answer {
  readonly status?: number | undefined
  readonly headers?: Record<string, string> | undefined
  readonly pieces?: ReadonlyArray<Piece> | undefined
  /** What follows the last piece: the reply's end (the default), nothing at all, or a broken connection. */
  readonly after?: "end" | "hang" | "reset" | undefined
  /** The head is never sent either. */
  readonly headless?: boolean | undefined
}

export interface OpenAiServer {
  /** With the version prefix. */
  readonly baseUrl: string
  readonly requests: ReadonlyArray<SeenRequest>
  /** Sockets that were ever opened to it. */
  readonly accepted: () => number
  /** Says what is answered from now on; nothing that was seen before counts any more. */
  readonly answer: (reply: (request: SeenRequest, index: number) => Answer) => void
  /** Resolves once the condition holds; it is asked after each change of what was seen. */
  readonly until: (condition: (requests: ReadonlyArray<SeenRequest>) => boolean) => Promise<void>
  readonly stop: () => Promise<void>
}

/** Events of a stream; text is sent as it is. */
export const frames = (...values: ReadonlyArray<unknown>): string =>
  values.map((value) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`).join("")

/** A chunk of a reply. */
export const chunk = (delta: object, finish_reason: string | null = null, rest: object = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason }],
  ...rest
})

export const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }

/** A streamed reply by the book. */
export const streamed = (...deltas: ReadonlyArray<object>): Answer => ({
  pieces: [
    frames(
      chunk({ role: "assistant", content: "" }),
      ...deltas.map((delta) => chunk(delta)),
      chunk({}, "stop"),
      { ...chunk({}), choices: [], usage },
      "[DONE]"
    )
  ]
})

/** A reply of one JSON object, as errors mostly are. */
export const json = (status: number, body: unknown, headers: Record<string, string> = {}): Answer => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  pieces: [typeof body === "string" ? body : JSON.stringify(body)]
})

const readBody = async (request: IncomingMessage): Promise<{ readonly [key: string]: unknown }> => {
  const pieces: Array<Buffer> = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return pieces.length === 0 ? {} : JSON.parse(Buffer.concat(pieces).toString())
}

const play = async (answer: Answer, response: ServerResponse): Promise<void> => {
  if (answer.headless !== true) {
    response.writeHead(answer.status ?? 200, { "content-type": "text/event-stream", ...answer.headers })
    response.flushHeaders()
    for (const piece of answer.pieces ?? []) {
      if (piece instanceof Promise) await piece
      else response.write(piece)
    }
  }
  if (answer.after === "hang") return
  if (answer.after !== "reset") {
    response.end()
    return
  }
  // What was written has to leave first.
  await new Promise((resolve) => setImmediate(resolve))
  response.socket?.resetAndDestroy()
}

/** Starts a server on a free port. */
export const startOpenAiServer = async (): Promise<OpenAiServer> => {
  let reply: (request: SeenRequest, index: number) => Answer = () => streamed({ content: "Hello" })
  let requests: Array<SeenRequest> = []
  let accepted = 0
  const listeners = new Set<() => void>()
  const changed = () => listeners.forEach((listener) => listener())

  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      const seen: SeenRequest = {
        method: request.method ?? "",
        path: request.url ?? "",
        headers: request.headers,
        body,
        key: request.headers.authorization?.replace(/^Bearer /, ""),
        outcome: "open"
      }
      const index = requests.push(seen) - 1
      response.on("close", () => {
        seen.outcome = response.writableFinished ? "finished" : "aborted"
        changed()
      })
      changed()
      return play(reply(seen, index), response)
    })
  })
  server.on("connection", (socket: Socket) => {
    accepted++
    socket.on("error", () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))

  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    get requests() {
      return requests
    },
    accepted: () => accepted,
    answer: (next) => {
      reply = next
      requests = []
    },
    until: (condition) =>
      new Promise((resolve) => {
        const check = () => {
          if (!condition(requests)) return
          listeners.delete(check)
          resolve()
        }
        listeners.add(check)
        check()
      }),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
