/**
 * A minimal OpenAI-compatible server: it streams the words that the benchmark requests, one event each.
 *
 * Understands `!count N`, `!pace Nms` and `!say TEXT`. Run as `node bench/openaiServer.ts`; prints its port.
 */
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

const created = Math.floor(Date.now() / 1000)

const event = (delta: object, reason: string | null) =>
  `data: ${
    JSON.stringify({
      id: "chatcmpl-bench",
      object: "chat.completion.chunk",
      created,
      model: "bench",
      choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }]
    })
  }\n\n`

const usage = (tokens: number) =>
  `data: ${
    JSON.stringify({
      id: "chatcmpl-bench",
      object: "chat.completion.chunk",
      created,
      model: "bench",
      choices: [],
      usage: { prompt_tokens: 10, completion_tokens: tokens, total_tokens: 10 + tokens }
    })
  }\n\ndata: [DONE]\n\n`

const numberAfter = (prompt: string, command: string): number =>
  Number(new RegExp(`!${command} (\\d+)`).exec(prompt)?.[1] ?? 0)

const reply = (prompt: string, response: ServerResponse) => {
  const count = numberAfter(prompt, "count")
  const pace = numberAfter(prompt, "pace")
  const words = count > 0
    ? Array.from({ length: count }, (_, i) => i === 0 ? "1" : ` ${i + 1}`)
    : [/!say (.*)/.exec(prompt)?.[1] ?? "Hello"]
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.write(event({ role: "assistant", content: "" }, null))
  let next = 0
  const write = () => {
    if (response.destroyed) return
    do {
      response.write(event({ content: words[next++] }, null))
    } while (pace === 0 && next < words.length)
    if (next < words.length) {
      setTimeout(write, pace)
      return
    }
    response.end(event({}, "stop") + usage(words.length))
  }
  write()
}

const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
  if (request.method !== "POST") {
    response.writeHead(404).end()
    return
  }
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as { messages: Array<{ content: string }> }
    reply(messages[0]!.content, response)
  })
})
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`)
})
