/**
 * An upstream for counting: speaks three protocols on a real socket, answers at once, and sends the pieces of a streamed reply
 * one by one, the next when its reader has had the one before, so that each is a network chunk of its own.
 */
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface CountingUpstream {
  readonly url: string
  /** Pieces of each reply from now on. */
  pieces: number
  /** The next piece may go. */
  readonly release: () => void
  /** The next completion is refused, as an overloaded service does it. */
  refuseNext: boolean
  readonly stop: () => Promise<void>
}

const envelope = (data: object): string =>
  JSON.stringify({ code: 0, msg: "", data: { biz_code: 0, biz_msg: "", biz_data: data } })

const event = (data: object | string): string => `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`

/** The frames of a reply of `count` pieces in the session protocol: all that comes first, the pieces, all that comes last. */
const sessionFrames = (count: number): ReadonlyArray<string> => [
  `event: ready\n${event({ request_message_id: 1, response_message_id: 2 })}${
    event({
      v: {
        response: {
          message_id: 2,
          parent_id: 1,
          role: "ASSISTANT",
          status: "WIP",
          fragments: [{ id: 1, type: "RESPONSE", content: "w0 ", references: [] }]
        }
      }
    })
  }`,
  ...Array.from(
    { length: count - 1 },
    (_, i) => event(i === 0 ? { p: "response/fragments/-1/content", o: "APPEND", v: "w1 " } : { v: `w${i + 1} ` })
  ),
  event({
    p: "response",
    o: "BATCH",
    v: [{ p: "accumulated_token_usage", v: count }, { p: "status", v: "FINISHED" }]
  }) +
  `event: close\n${event({ click_behavior: "none" })}`
]

const chunkOf = (delta: object, reason: string | null = null): string =>
  event({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: reason }]
  })

const openaiFrames = (count: number): ReadonlyArray<string> => [
  chunkOf({ role: "assistant", content: "w0 " }),
  ...Array.from({ length: count - 1 }, (_, i) => chunkOf({ content: `w${i + 1} ` })),
  chunkOf({}, "stop") +
  event({
    id: "chatcmpl-1",
    choices: [],
    usage: { prompt_tokens: 3, completion_tokens: count, total_tokens: count + 3 }
  }) +
  event("[DONE]")
]

const responsesFrames = (count: number): ReadonlyArray<string> => {
  let sequence_number = 0
  const named = (type: string, fields: object): string =>
    `event: ${type}\n${event({ type, ...fields, sequence_number: sequence_number++ })}`
  const text = Array.from({ length: count }, (_, i) => `w${i} `).join("")
  const place = { item_id: "msg_1", output_index: 0, content_index: 0 }
  const part = { type: "output_text", text, annotations: [], logprobs: [] }
  const item = { id: "msg_1", type: "message", status: "completed", role: "assistant", content: [part] }
  const response = { id: "resp_1", object: "response", status: "in_progress", model: "m", output: [], usage: null }
  const delta = (i: number) => named("response.output_text.delta", { ...place, delta: `w${i} `, logprobs: [] })
  return [
    named("response.created", { response }) + named("response.in_progress", { response }) +
    named("response.output_item.added", { output_index: 0, item: { ...item, status: "in_progress", content: [] } }) +
    named("response.content_part.added", { ...place, part: { ...part, text: "" } }) + delta(0),
    ...Array.from({ length: count - 1 }, (_, i) => delta(i + 1)),
    named("response.output_text.done", { ...place, text, logprobs: [] }) +
    named("response.content_part.done", { ...place, part }) +
    named("response.output_item.done", { output_index: 0, item }) +
    named("response.completed", {
      response: {
        ...response,
        status: "completed",
        output: [item],
        usage: { input_tokens: 3, output_tokens: count, total_tokens: count + 3 }
      }
    })
  ]
}

/** Starts one on a free port. */
export const startCountingUpstream = async (): Promise<CountingUpstream> => {
  let released: (() => void) | undefined
  let credit = 0
  const permission = (): Promise<void> => {
    if (credit > 0) {
      credit--
      return Promise.resolve()
    }
    return new Promise((resolve) => {
      released = resolve
    })
  }
  const stream = async (response: ServerResponse, frames: ReadonlyArray<string>) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    for (const [i, frame] of frames.entries()) {
      // The last piece and the end come together, and so do the head and the first.
      if (i > 0 && i < frames.length - 1) await permission()
      response.write(frame)
    }
    response.end()
  }
  const upstream: { -readonly [K in keyof CountingUpstream]: CountingUpstream[K] } = {
    url: "",
    pieces: 1,
    refuseNext: false,
    release: () => {
      const go = released
      released = undefined
      if (go === undefined) credit++
      else go()
    },
    stop: () => new Promise((resolve) => server.close(() => resolve()).closeAllConnections())
  }
  const server = createServer((request, response) => {
    request.resume()
    request.on("end", () => {
      const whole = (body: string, status = 200) => {
        response.writeHead(status, { "content-type": "application/json" })
        response.end(body)
      }
      const completes = request.url === "/api/v0/chat/completion" || request.url === "/v1/chat/completions" ||
        request.url === "/v1/responses"
      if (completes && upstream.refuseNext) {
        upstream.refuseNext = false
        return whole("{\"code\":50000,\"msg\":\"overloaded\",\"data\":null}", 503)
      }
      switch (request.url) {
        case "/api/v0/chat_session/create":
          return whole(envelope({ id: "session-1" }))
        case "/api/v0/chat/completion":
          credit = 0
          return void stream(response, sessionFrames(upstream.pieces))
        case "/v1/chat/completions":
          credit = 0
          return void stream(response, openaiFrames(upstream.pieces))
        case "/v1/responses":
          credit = 0
          return void stream(response, responsesFrames(upstream.pieces))
        default:
          return whole(envelope({}))
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return upstream
}
