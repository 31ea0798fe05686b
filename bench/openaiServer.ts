/**
 * A minimal OpenAI-compatible server: it answers the words that the benchmark requests, as a stream with one event each, or whole.
 *
 * On the Responses API it answers the last message of a user, or calls its tool again after each result.
 *
 * Understands `!count N`, `!pace Nms`, `!say TEXT` and `!call NAME {JSON}`. Run as `node bench/openaiServer.ts`; prints its port.
 */
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { callItem, events, eventsOf, messageItem, responseOf } from "../src/testing/responsesSocket.ts"

const common = { id: "chatcmpl-bench", created: Math.floor(Date.now() / 1000), model: "bench" }

const usageOf = (tokens: number) => ({ prompt_tokens: 10, completion_tokens: tokens, total_tokens: 10 + tokens })

const event = (choices: ReadonlyArray<object>, rest: object = {}) =>
  `data: ${JSON.stringify({ ...common, object: "chat.completion.chunk", choices, ...rest })}\n\n`

const deltaEvent = (delta: object, reason: string | null = null) =>
  event([{ index: 0, delta, logprobs: null, finish_reason: reason }])

const numberAfter = (prompt: string, command: string): number =>
  Number(new RegExp(`!${command} (\\d+)`).exec(prompt)?.[1] ?? 0)

/** The characters of a call's arguments in one event. */
const piece = /.{1,16}/gs

const stream = async (prompt: string, words: ReadonlyArray<string>, response: ServerResponse): Promise<void> => {
  const pace = numberAfter(prompt, "pace")
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.write(deltaEvent({ role: "assistant", content: "" }))
  const call = /!call (\S+) (.*)/.exec(prompt)
  const deltas = call === null
    ? words.map((content) => ({ content }))
    : [
      { tool_calls: [{ index: 0, id: "call_bench", type: "function", function: { name: call[1]!, arguments: "" } }] },
      ...call[2]!.match(piece)!.map((text) => ({ tool_calls: [{ index: 0, function: { arguments: text } }] }))
    ]
  for (const [i, delta] of deltas.entries()) {
    if (pace > 0 && i > 0) await new Promise((resolve) => setTimeout(resolve, pace))
    if (response.destroyed) return
    response.write(deltaEvent(delta))
  }
  const end = deltaEvent({}, call === null ? "stop" : "tool_calls")
  response.end(`${end}${event([], { usage: usageOf(deltas.length) })}data: [DONE]\n\n`)
}

const whole = (words: ReadonlyArray<string>, response: ServerResponse): void => {
  const message = { role: "assistant", content: words.join("") }
  response.writeHead(200, { "content-type": "application/json" })
  response.end(JSON.stringify({
    ...common,
    object: "chat.completion",
    choices: [{ index: 0, message, logprobs: null, finish_reason: "stop" }],
    usage: usageOf(words.length)
  }))
}

interface Asked {
  readonly stream?: boolean
  readonly messages: ReadonlyArray<{ readonly content: string | ReadonlyArray<{ readonly text: string }> }>
}

const promptOf = ({ content }: Asked["messages"][number]): string =>
  typeof content === "string" ? content : content.map(({ text }) => text).join("")

const wordsFor = (prompt: string): ReadonlyArray<string> => {
  const count = numberAfter(prompt, "count")
  return count > 0
    ? Array.from({ length: count }, (_, i) => i === 0 ? "1" : ` ${i + 1}`)
    : [/!say (.*)/.exec(prompt)?.[1] ?? "Hello"]
}

interface AskedResponse {
  readonly stream?: boolean
  readonly input: ReadonlyArray<Asked["messages"][number] & { readonly role?: string }>
}

let responses = 0

const respond = ({ input, stream }: AskedResponse, response: ServerResponse): void => {
  const prompt = promptOf(input.findLast(({ role }) => role === "user")!)
  const words = wordsFor(prompt)
  const id = ++responses
  const [, name, args] = /!call (\S+) (.*)/.exec(prompt) ?? []
  const item = name === undefined
    ? messageItem(words.join(""), { id: `msg_${id}` })
    : callItem(name, args, { id: `fc_${id}`, call_id: `call_${id}` })
  const usage = { input_tokens: 10, output_tokens: words.length, total_tokens: 10 + words.length }
  const made = responseOf([item], { id: `resp_${id}`, usage })
  if (stream === true) {
    response.writeHead(200, { "content-type": "text/event-stream" })
    for (const event of eventsOf(made, () => words)) response.write(events(event))
    response.end()
    return
  }
  response.writeHead(200, { "content-type": "application/json" })
  response.end(JSON.stringify(made))
}

const reply = (asked: Asked, response: ServerResponse): void => {
  const prompt = promptOf(asked.messages.at(-1)!)
  const words = wordsFor(prompt)
  if (asked.stream === true) void stream(prompt, words, response)
  else whole(words, response)
}

const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
  if (request.method !== "POST") {
    response.writeHead(404).end()
    return
  }
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const asked: unknown = JSON.parse(Buffer.concat(chunks).toString())
    if (request.url === "/v1/responses") respond(asked as AskedResponse, response)
    else reply(asked as Asked, response)
  })
})
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`)
})
