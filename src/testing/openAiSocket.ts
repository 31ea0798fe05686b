/**
 * The socket of the scripted OpenAI-compatible server: each test sets the responses, byte for byte, and sees the requests. `OpenAiServer.ts`
 * is the service for apps.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"

/** A received request; `body` is its JSON, and empty for other bodies. */
export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: { readonly [key: string]: unknown }
  readonly bytes: Buffer
  /** The API key, if the request has one. */
  readonly key: string | undefined
  /** State of the response: `open` while it runs, `aborted` if the client left before its end. */
  outcome: "open" | "finished" | "aborted"
}

/** The pieces of a response in order. A promise delays the rest until it resolves. */
export type Piece = string | Uint8Array | Promise<void>

/** A response of the server. */
export interface Answer {
  readonly status?: number | undefined
  readonly headers?: Record<string, string> | undefined
  readonly pieces?: ReadonlyArray<Piece> | undefined
  /** After the last piece: the end of the response (the default), silence, or a broken connection. */
  readonly after?: "end" | "hang" | "reset" | undefined
  /** The response head is not sent either. */
  readonly headless?: boolean | undefined
}

export interface OpenAiServer {
  /** The address with the version prefix. */
  readonly baseUrl: string
  readonly requests: ReadonlyArray<SeenRequest>
  /** Number of sockets opened to it so far. */
  readonly accepted: () => number
  /** Sets the responses from now on, and forgets the requests received so far. */
  readonly answer: (reply: (request: SeenRequest, index: number) => Answer) => void
  /** Sets the response to `GET /models` from now on, and forgets such requests. Without it there is no list. */
  readonly list: (reply: (request: SeenRequest) => Answer) => void
  /** The requests for the list of models; they are not among `requests`. */
  readonly lists: ReadonlyArray<SeenRequest>
  /** Resolves once the condition holds. It is evaluated after each change of the requests. */
  readonly until: (condition: (requests: ReadonlyArray<SeenRequest>) => boolean) => Promise<void>
  /** Calls a listener after each change of the requests, until the returned function is called. */
  readonly onChange: (listener: () => void) => () => void
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

/** A regular streamed reply. */
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

/** A response of one JSON object, such as an error. */
export const json = (status: number, body: unknown, headers: Record<string, string> = {}): Answer => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  pieces: [typeof body === "string" ? body : JSON.stringify(body)]
})

const readBody = async (request: IncomingMessage): Promise<Buffer> => {
  const pieces: Array<Buffer> = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

/** The JSON of a body; `undefined` for other text. */
const parsed = (bytes: Buffer): Record<string, unknown> | undefined => {
  try {
    return JSON.parse(bytes.toString()) as Record<string, unknown>
  } catch {
    return undefined
  }
}

/** The latest requests that are kept. */
const mostKept = 10_000

const isForm = (request: IncomingMessage) => request.headers["content-type"]?.startsWith("multipart/") === true

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
  // Let the written bytes leave first.
  await new Promise((resolve) => setImmediate(resolve))
  response.socket?.resetAndDestroy()
}

/** A list of models. */
export const modelList = (...ids: ReadonlyArray<string>): Answer =>
  json(200, { object: "list", data: ids.map((id) => ({ id, object: "model" })) })

/** Starts a server on a port; 0 takes any free one. */
export const startOpenAiServer = async (port = 0): Promise<OpenAiServer> => {
  let listReply: (request: SeenRequest) => Answer = () => json(404, { detail: "Not Found" })
  let lists: Array<SeenRequest> = []
  let reply: (request: SeenRequest, index: number) => Answer = () => streamed({ content: "Hello" })
  let requests: Array<SeenRequest> = []
  let count = 0
  let accepted = 0
  const listeners = new Set<() => void>()
  const changed = () => listeners.forEach((listener) => listener())
  const onChange = (listener: () => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  const server = createServer((request, response) => {
    const receive = (bytes: Buffer) => {
      const body = bytes.length === 0 || isForm(request) ? {} : parsed(bytes)
      if (body === undefined) return play(json(400, { error: { message: "The body is no JSON" } }), response)
      const seen: SeenRequest = {
        method: request.method ?? "",
        path: request.url ?? "",
        headers: request.headers,
        body,
        bytes,
        key: request.headers.authorization?.replace(/^Bearer /, "") ??
          (request.headers["x-goog-api-key"] ?? request.headers["x-api-key"])?.toString(),
        outcome: "open"
      }
      if (seen.method === "GET" && /\/models(?:\?|$)/.test(seen.path)) {
        lists.push(seen)
        changed()
        return play(listReply(seen), response)
      }
      const index = count++
      requests.push(seen)
      if (requests.length > mostKept) requests.shift()
      response.on("close", () => {
        seen.outcome = response.writableFinished ? "finished" : "aborted"
        changed()
      })
      changed()
      return play(reply(seen, index), response)
    }
    // A request whose body breaks off gets no answer.
    void readBody(request).then(receive, () => {})
  })
  server.on("connection", (socket: Socket) => {
    accepted++
    socket.on("error", () => {})
  })
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))

  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    get requests() {
      return requests
    },
    get lists() {
      return lists
    },
    list: (reply) => {
      listReply = reply
      lists = []
    },
    accepted: () => accepted,
    answer: (next) => {
      reply = next
      requests = []
      count = 0
    },
    onChange,
    until: (condition) =>
      new Promise((resolve) => {
        const check = () => {
          if (!condition(requests)) return
          stop()
          resolve()
        }
        const stop = onChange(check)
        check()
      }),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
