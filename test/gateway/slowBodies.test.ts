/** Request bodies that arrive byte by byte, at every kind of endpoint. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { connect, type Socket } from "node:net"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"
import { admin } from "./support.ts"

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
  ["a carried request", "/v1/images/generations", [business, json], "{"],
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
        assert.include(reply(), "limits.body_bytes_per_second")
        assert.match(reply(), /\r\nconnection: close\r\n/i)
        assert.isAtLeast(seconds, limits.body_seconds)
        await closed
      }
    )
  }
})
