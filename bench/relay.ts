/**
 * The baseline of the benchmarks: a minimal `node:http` server. `relay` makes the gateway's upstream calls, parses every event, and renders
 * it in the chat style. `openai` does the same in front of an OpenAI-compatible server, including in the messages style; if the caller asks for
 * a whole reply, so does the relay, and parses it once. `responses` parses and renders the events of the Responses API, and `pipe` forwards
 * the bytes.
 *
 * Run as `node bench/relay.ts relay|openai|responses|pipe UPSTREAM`; prints its port.
 */
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

const [mode, upstream] = process.argv.slice(2) as [string, string]
const agent = new Agent({ keepAlive: true, maxSockets: Infinity })

const call = (path: string, body: string, onResponse: (response: IncomingMessage) => void) => {
  const outgoing = request(`${upstream}${path}`, {
    method: "POST",
    agent,
    headers: {
      authorization: "Bearer bench",
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body)
    }
  }, onResponse)
  outgoing.end(body)
  return outgoing
}

const collect = (message: IncomingMessage, done: (text: string) => void) => {
  const chunks: Array<Buffer> = []
  message.on("data", (chunk: Buffer) => chunks.push(chunk))
  message.on("end", () => done(Buffer.concat(chunks).toString()))
}

interface Patch {
  readonly v?: unknown
}

/** The text that a patch adds, for the replies of this benchmark. */
const textOf = (patch: Patch): string => {
  if (typeof patch.v === "string" && patch.v !== "FINISHED") return patch.v
  if (typeof patch.v === "object" && patch.v !== null && "response" in patch.v) {
    const { response } = patch.v as { response: { fragments?: Array<{ content: string }> } }
    return response.fragments?.map((fragment) => fragment.content).join("") ?? ""
  }
  if (Array.isArray(patch.v)) {
    return patch.v.map((fragment: { content?: unknown }) =>
      typeof fragment.content === "string" ? fragment.content : ""
    ).join("")
  }
  return ""
}

const events = (onData: (data: string) => void) => {
  let rest = ""
  const decoder = new TextDecoder()
  return (chunk: Buffer) => {
    rest += decoder.decode(chunk, { stream: true })
    let from = 0
    for (let end = rest.indexOf("\n\n", from); end !== -1; end = rest.indexOf("\n\n", from)) {
      const block = rest.slice(from, end)
      from = end + 2
      for (const line of block.split("\n")) if (line.startsWith("data: ")) onData(line.slice(6))
    }
    rest = rest.slice(from)
  }
}

const created = Math.floor(Date.now() / 1000)
const chunkOf = (id: string, model: string, delta: object, reason: string | null) =>
  `data: ${
    JSON.stringify({
      id,
      object: "chat.completion.chunk",
      created,
      model,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }]
    })
  }\n\n`

interface Asked {
  readonly model: string
  readonly stream?: boolean
  readonly messages: ReadonlyArray<{ readonly content: string }>
}

/** What an event adds to the reply: text, or in the chat style also calls. */
interface Delta {
  readonly content?: string
  readonly tool_calls?: ReadonlyArray<object>
}

/** A minimal renderer of a style. */
interface Style {
  readonly begin: (id: string, model: string) => string
  readonly delta: (id: string, model: string, delta: Delta) => string
  readonly end: (id: string, model: string) => string
  readonly whole: (id: string, model: string, content: string) => string
}

const chat: Style = {
  begin: (id, model) => chunkOf(id, model, { role: "assistant" }, null),
  delta: (id, model, delta) => chunkOf(id, model, delta, null),
  end: (id, model) => `${chunkOf(id, model, {}, "stop")}data: [DONE]\n\n`,
  whole: (id, model, content) =>
    JSON.stringify({
      id,
      object: "chat.completion",
      created,
      model,
      choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }]
    })
}

const eventOf = (type: string, rest: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`

const messages: Style = {
  begin: (id, model) =>
    eventOf("message_start", { message: { id, type: "message", role: "assistant", model, content: [] } }) +
    eventOf("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  delta: (_, __, { content }) =>
    eventOf("content_block_delta", { index: 0, delta: { type: "text_delta", text: content } }),
  end: () =>
    eventOf("content_block_stop", { index: 0 }) +
    eventOf("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 1 } }) +
    eventOf("message_stop", {}),
  whole: (id, model, text) =>
    JSON.stringify({
      id,
      type: "message",
      role: "assistant",
      model,
      content: [{ type: "text", text }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 }
    })
}

/** Renders an upstream's reply as it arrives. */
const renew = (
  { model, stream: streamed }: Asked,
  id: string,
  deltaOf: (data: string) => Delta | undefined,
  stream: IncomingMessage,
  response: ServerResponse,
  style: Style
) => {
  let content = ""
  if (streamed === true) {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" })
    response.write(style.begin(id, model))
  }
  const feed = events((data) => {
    if (data === "[DONE]") return
    const delta = deltaOf(data)
    if (delta?.content === "" || (delta?.content ?? delta?.tool_calls) === undefined) return
    if (streamed === true) response.write(style.delta(id, model, delta!))
    else content += delta!.content
  })
  stream.on("data", (chunk: Buffer) => {
    response.cork()
    feed(chunk)
    response.uncork()
  })
  // Stop the upstream call when the client leaves, because the upstream counts its sessions.
  response.on("close", () => {
    if (!stream.complete) stream.destroy()
  })
  stream.on("end", () => {
    if (streamed === true) {
      response.end(style.end(id, model))
      return
    }
    response.writeHead(200, { "content-type": "application/json" })
    response.end(style.whole(id, model, content))
  })
}

const relay = (body: string, response: ServerResponse) => {
  const asked = JSON.parse(body) as Asked
  call("/api/v0/chat_session/create", "{\"agent\":\"chat\"}", (made) =>
    collect(made, (text) => {
      const session = (JSON.parse(text) as { data: { biz_data: { id: string } } }).data.biz_data.id
      const prompt = `<|user|>\n${asked.messages.map((message) => message.content).join("\n\n")}\n<|assistant|>\n`
      const completion = JSON.stringify({
        chat_session_id: session,
        parent_message_id: null,
        prompt,
        ref_file_ids: [],
        thinking_enabled: false,
        search_enabled: false
      })
      call(
        "/api/v0/chat/completion",
        completion,
        (stream) =>
          renew(asked, session, (data) => ({ content: textOf(JSON.parse(data) as Patch) }), stream, response, chat)
      )
    }))
}

interface Chunk {
  readonly choices: ReadonlyArray<{ readonly delta: Delta }>
}

interface Whole {
  readonly choices: readonly [{ readonly message: { readonly content: string } }]
}

const openai = (body: string, response: ServerResponse, path = "") => {
  const asked = JSON.parse(body) as Asked
  const id = "chatcmpl-bench"
  const style = path.startsWith("/v1/messages") ? messages : chat
  const options = asked.stream === true ? { stream_options: { include_usage: true } } : {}
  call("/v1/chat/completions", JSON.stringify({ ...asked, ...options }), (reply) => {
    if (asked.stream === true) {
      renew(asked, id, (data) => (JSON.parse(data) as Chunk).choices[0]?.delta, reply, response, style)
      return
    }
    collect(reply, (text) => {
      const { choices: [{ message }] } = JSON.parse(text) as Whole
      response.writeHead(200, { "content-type": "application/json" })
      response.end(style.whole(id, asked.model, message.content))
    })
  })
}

interface ResponseEvent {
  readonly type: string
  readonly response?: object
}

const responses = (body: string, response: ServerResponse) => {
  const asked = JSON.parse(body) as Asked
  const named = (reply: object) => ({ ...reply, model: asked.model })
  call("/v1/responses", JSON.stringify(asked), (reply) => {
    if (asked.stream !== true) {
      collect(reply, (text) => {
        response.writeHead(200, { "content-type": "application/json" })
        response.end(JSON.stringify(named(JSON.parse(text) as object)))
      })
      return
    }
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" })
    const feed = events((data) => {
      const { type, response: of, ...rest } = JSON.parse(data) as ResponseEvent
      response.write(eventOf(type, of === undefined ? rest : { ...rest, response: named(of) }))
    })
    reply.on("data", (chunk: Buffer) => {
      response.cork()
      feed(chunk)
      response.uncork()
    })
    reply.on("end", () => response.end("data: [DONE]\n\n"))
  })
}

const pipe = (body: string, response: ServerResponse) => {
  const prompt = (JSON.parse(body) as { messages: Array<{ content: string }> }).messages[0]!.content
  call(
    "/api/v0/chat/completion",
    JSON.stringify({
      chat_session_id: "bench",
      parent_message_id: null,
      prompt: `<|user|>\n${prompt}\n<|assistant|>\n`,
      ref_file_ids: [],
      thinking_enabled: false,
      search_enabled: false
    }),
    (stream) => {
      response.writeHead(200, { "content-type": stream.headers["content-type"] ?? "text/event-stream" })
      stream.pipe(response)
    }
  )
}

const modes: Readonly<Record<string, (body: string, response: ServerResponse, path?: string) => void>> = {
  relay,
  openai,
  responses,
  pipe
}

const server = createServer({ keepAliveTimeout: 65_000 }, (message, response) => {
  collect(message, (body) => modes[mode]!(body, response, message.url))
})
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`)
})
