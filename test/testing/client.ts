/** A small client of the session protocol that shares no code with the driver: it notes bytes, chunks and how replies end. */
import { Effect } from "effect"
import { request as httpRequest } from "node:http"

export interface Exchange {
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly body: Buffer
  readonly chunks: ReadonlyArray<Buffer>
  /** `left`: this side went away, as it had been told to. */
  readonly ended: "whole" | "broken" | "left"
}

export interface Send {
  readonly method?: string
  readonly token?: string
  readonly body?: unknown
  /** Leaves as soon as this holds for what has come; asked once the head is there, too. */
  readonly leaveWhen?: (body: string) => boolean
  /** Leaves when this is aborted. */
  readonly signal?: AbortSignal
}

/** Sends one request and gives what came of it; never fails. */
export const send = (url: string, path: string, options: Send = {}): Effect.Effect<Exchange> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = []
    let head: { readonly status: number | undefined; readonly headers: Exchange["headers"] } = {
      status: undefined,
      headers: {}
    }
    const finish = (ended: Exchange["ended"]) =>
      resume(Effect.succeed({ ...head, body: Buffer.concat(chunks), chunks, ended }))
    const request = httpRequest(`${url}${path}`, {
      method: options.method ?? "POST",
      agent: false,
      headers: {
        ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
        "content-type": "application/json"
      }
    }, (response) => {
      head = { status: response.statusCode, headers: response.headers }
      const look = () => {
        if (options.leaveWhen?.(Buffer.concat(chunks).toString()) !== true) return
        request.destroy()
        finish("left")
      }
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk)
        look()
      })
      response.on("end", () => finish(response.complete ? "whole" : "broken"))
      response.on("error", () => finish("broken"))
      look()
    })
    request.on("error", () => finish(options.signal?.aborted === true ? "left" : "broken"))
    options.signal?.addEventListener("abort", () => request.destroy(new Error("left")))
    request.end(options.body === undefined ? undefined : JSON.stringify(options.body))
    return Effect.sync(() => request.destroy())
  })

export interface Envelope {
  readonly code: number
  readonly msg: string
  readonly data: {
    readonly biz_code: number
    readonly biz_msg: string
    readonly biz_data: { readonly id: string; readonly user: { readonly token: string } }
  }
}

/** The envelope of a reply that is no stream. */
export const envelopeOf = (exchange: Exchange): Envelope => JSON.parse(exchange.body.toString())

/** The plain prompt of one user turn. */
export const promptOf = (text: string): string => `<|user|>\n${text}\n<|assistant|>`

/** A session of `token`. */
export const createSession = (url: string, token = "t"): Effect.Effect<string> =>
  Effect.map(
    send(url, "/api/v0/chat_session/create", { token, body: { agent: "chat" } }),
    (exchange) => envelopeOf(exchange).data.biz_data.id
  )

export interface Ask extends Send {
  readonly parent?: number
  readonly thinking?: boolean
  readonly search?: boolean
  /** The prompt as it is to be sent. */
  readonly prompt?: string
}

/** A completion in a session. */
export const completeIn = (url: string, session: string, text: string, options: Ask = {}): Effect.Effect<Exchange> =>
  send(url, "/api/v0/chat/completion", {
    token: "t",
    body: {
      chat_session_id: session,
      parent_message_id: options.parent ?? null,
      prompt: options.prompt ?? promptOf(text),
      ref_file_ids: [],
      thinking_enabled: options.thinking ?? false,
      search_enabled: options.search ?? false
    },
    ...options
  })

/** A completion in a session of its own. */
export const ask = (url: string, text: string, options: Ask = {}): Effect.Effect<Exchange> =>
  Effect.flatMap(createSession(url, options.token), (session) => completeIn(url, session, text, options))

/** Goes on with a reply. */
export const goOn = (url: string, session: string, message = 2, options: Send = {}): Effect.Effect<Exchange> =>
  send(url, "/api/v0/chat/continue", {
    token: "t",
    body: { chat_session_id: session, message_id: message, fallback_to_resume: true },
    ...options
  })

export interface Seen {
  readonly event: string | undefined
  readonly data: string
}

/** The events of a stream whose lines end in LF. */
export const eventsOf = (exchange: Exchange): ReadonlyArray<Seen> =>
  exchange.body.toString().split("\n\n").filter((block) => block !== "").map((block) => {
    const lines = block.split("\n")
    const line = (name: string) => lines.find((each) => each.startsWith(`${name}: `))?.slice(name.length + 2)
    return { event: line("event"), data: line("data") ?? "" }
  })
