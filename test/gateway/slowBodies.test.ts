/** Request bodies that arrive slowly: their pace at every kind of endpoint, and their share of their key's requests at once. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { connect, type Socket } from "node:net"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { untilHolds } from "../support/until.ts"
import { admin, chat } from "./support.ts"

let gateway: RunningGateway
let server: OpenAiServer
const sockets: Array<Socket> = []

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await gateway.stop()
  await server.stop()
})

const start = async (...given: Parameters<typeof startGateway>) => {
  server = await startOpenAiServer()
  const [config, options] = given
  gateway = await startGateway({
    upstream: { driver: "openai", base_url: server.baseUrl },
    embeddings: { provider: "builtin" },
    ...config
  }, options)
}

/** A client that begins a request. */
const begin = (path: string, ...fields: ReadonlyArray<string>) => {
  const socket = connect({ port: Number(new URL(gateway.url).port), host: "127.0.0.1" })
  sockets.push(socket)
  socket.on("error", () => {}).setNoDelay(true)
  socket.write([`POST ${path} HTTP/1.1`, "host: gateway", ...fields, "", ""].join("\r\n"))
  let reply = ""
  socket.on("data", (bytes) => reply += String(bytes))
  return { socket, reply: () => reply, send: (text: string) => socket.write(text) }
}

const form = "content-type: multipart/form-data; boundary=cut"
const json = "content-type: application/json"
const business = `authorization: Bearer ${businessKey}`

const endpoints: ReadonlyArray<readonly [name: string, path: string, fields: ReadonlyArray<string>, begin: string]> = [
  ["a chat", "/v1/chat/completions", [business, json], "{"],
  ["a message", "/v1/messages", [business, json], "{"],
  ["a count of tokens", "/v1/messages/count_tokens", [business, json], "{"],
  ["a generation", "/v1beta/models/upstream-chat:generateContent", [business, json], "{"],
  ["embeddings", "/v1/embeddings", [business, json], "{"],
  ["a relayed request", "/v1/images/generations", [business, json], "{"],
  ["a form", "/v1/audio/transcriptions", [business, form], "--cut\r\n"],
  [
    "a form that is sent on while it arrives",
    "/v1/audio/transcriptions",
    [business, form],
    `--cut\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--cut\r\n` +
    `Content-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n${"x".repeat(70_000)}`
  ],
  ["a change of an admin", "/admin/keys", [`authorization: Bearer ${adminKey}`, json], "{"],
  ["a login", "/admin/login", [json], "{"]
]

const limits = { body_seconds: 5, body_bytes_per_second: 1 << 24 }

describe("a body of which a byte arrives every two seconds", () => {
  for (const isChunked of [false, true]) {
    const framing = isChunked ? "in chunks" : "of a known length"
    it.each(endpoints)(
      `ends with 408 and closes its connection: %s, ${framing}`,
      async (_, path, fields, beginning) => {
        const clock = makeMovedClock({ still: true })
        await start({ limits }, { clock })
        const length = isChunked ? "transfer-encoding: chunked" : `content-length: ${beginning.length + 60_000}`
        const chunk = (text: string) => isChunked ? `${text.length.toString(16)}\r\n${text}\r\n` : text
        const { reply, send, socket } = begin(path, ...fields, length)
        const closed = new Promise((resolve) => socket.once("close", resolve))
        send(chunk(beginning))
        let seconds = 0
        while (reply() === "" && seconds < 20) {
          // The gateway has read what the other client sent before this.
          await admin(gateway.url, "GET", "/admin/queue/status")
          clock.move(2000)
          seconds += 2
          send(chunk("-"))
          await admin(gateway.url, "GET", "/admin/queue/status")
        }
        assert.match(reply(), /^HTTP\/1\.1 408 /)
        assert.include(reply(), "bytes a second")
        assert.match(reply(), /\r\nconnection: close\r\n/i)
        assert.isAtLeast(seconds, limits.body_seconds)
        await closed
      }
    )
  }
})

describe("a request of a key with max_inflight, while its body arrives", () => {
  const id = keyId(businessKey, sha256Hex)
  const inFlight = async () => {
    const { items } = await admin(gateway.url, "GET", `/admin/keys?q=${id}`)
    return (items as ReadonlyArray<{ readonly usage: { readonly in_flight: number } }>)[0]!.usage.in_flight
  }
  const startLimited = () =>
    start({ key_records: { [id]: { max_inflight: 1, limits: [{ window: "day", requests: 9 }] } } })

  it.each(endpoints.filter(([, , [credential]]) => credential === business))(
    "counts from its head on, until its client leaves: %s",
    async (_, path, fields, beginning) => {
      await startLimited()
      server.answer(() => streamed({ content: "Hello" }))
      const { reply, send, socket } = begin(path, ...fields, "content-length: 200000")
      send(beginning)
      await untilHolds(async () => await inFlight() === 1)
      assert.deepInclude(await chat(gateway.url, "Hi"), { status: 429, retryAfter: "1" })
      assert.strictEqual(reply(), "")
      socket.destroy()
      await untilHolds(async () => await inFlight() === 0)
      assert.deepInclude(await chat(gateway.url, "Hi"), { status: 200, text: "Hello" })
    }
  )

  it("is refused before its body arrives, while another one runs", async () => {
    await startLimited()
    const asked = Promise.withResolvers<void>()
    const answers = Promise.withResolvers<void>()
    server.answer(() => {
      asked.resolve()
      return { pieces: [answers.promise, "data: [DONE]\n\n"] }
    })
    const running = chat(gateway.url, "Hi", { stream: true })
    await asked.promise
    const { reply, socket } = begin("/v1/chat/completions", business, json, "content-length: 200000")
    await new Promise((resolve) => socket.once("close", resolve))
    assert.match(reply(), /^HTTP\/1\.1 429 /)
    assert.include(reply(), "This API key already has 1 request in progress, its limit.")
    answers.resolve()
    await running
  })

  it("counts once: it is admitted when its body has arrived", async () => {
    await startLimited()
    server.answer(() => streamed({ content: "Hello" }))
    const body = JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hi" }] })
    const { reply, send } = begin("/v1/chat/completions", business, json, `content-length: ${body.length}`)
    send(body.slice(0, 9))
    await untilHolds(async () => await inFlight() === 1)
    send(body.slice(9))
    await untilHolds(() => reply().includes("Hello"))
    await untilHolds(async () => await inFlight() === 0)
    const headers = { authorization: business.slice("authorization: ".length) }
    const usage = await (await fetch(`${gateway.url}/v1/usage`, { headers })).json()
    assert.deepNestedInclude(usage, { "today.requests": 1 })
  })
})
