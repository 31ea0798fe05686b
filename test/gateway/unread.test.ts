/** Output that waits for clients that do not read is counted on every route, and bounded. */
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { Context } from "effect"
import { HttpApi } from "effect/http-api"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { connect, type Socket } from "node:net"
import { CurrentBufferedBytes } from "../../src/config/limits.ts"
import { GatewayApi } from "../../src/server/Api.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { untilHolds } from "../support/until.ts"

/** The gateway's ends of its clients' sockets. The socket buffers are full, so that everything written stays queued. */
const deaf: Array<Socket> = []
let makesDeaf = false
const accepted = (message: unknown) => {
  const { socket } = message as { readonly socket: Socket }
  if (!makesDeaf) return
  deaf.push(socket)
  socket._write = () => {}
  Reflect.set(socket, "_writev", undefined)
}
beforeAll(() => subscribe("net.server.socket", accepted))
afterAll(() => unsubscribe("net.server.socket", accepted))

const clients: Array<Socket> = []
let gateway: RunningGateway
const clock = makeMovedClock({ still: true })

beforeEach(() => {
  makesDeaf = false
})
afterEach(() => {
  for (const socket of [...clients.splice(0), ...deaf.splice(0)]) socket.destroy()
})

const sum = () => Context.get(gateway.services, CurrentBufferedBytes).used
const waiting = () => deaf.reduce((bytes, socket) => bytes + socket.writableLength, 0)

/** Sends a request and does not read the reply; returns the gateway's end of the socket. */
const ask = async (method: string, path: string, key: string, body: unknown) => {
  const { hostname, port } = new URL(gateway.url)
  const before = deaf.length
  makesDeaf = true
  const client = connect(Number(port), hostname).on("error", () => {})
  clients.push(client)
  const text = body === undefined ? "" : JSON.stringify(body)
  client.write(
    `${method} ${path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  )
  await untilHolds(() => deaf.length > before)
  makesDeaf = false
  return deaf.at(-1)!
}

const endpoints: Array<{ readonly method: string; readonly path: string }> = []
HttpApi.reflect(GatewayApi, {
  onGroup: () => undefined,
  onEndpoint: ({ endpoint }) => {
    endpoints.push({
      method: endpoint.method,
      path: endpoint.path.replace(":model", "upstream-chat").replaceAll(/\/:\w+/g, "/none")
    })
  }
})
for (const path of ["/docs", "/openapi.json", "/console/", "/none", "/"]) endpoints.push({ method: "GET", path })

/** Files that are the same for all clients are held once. */
const isShared = (path: string) => ["/docs", "/openapi.json", "/console/"].includes(path)

describe("a reply that its client does not read", () => {
  beforeAll(async () => {
    gateway = await startGateway({ embeddings: { provider: "builtin" } })
  })
  afterAll(() => gateway.stop())

  it.each(endpoints)(
    "$method $path: its queued bytes count in limits.buffered_bytes until the client disconnects",
    async ({ method, path }) => {
      const key = path.startsWith("/admin/") || path === "/metrics" ? adminKey : businessKey
      for (const body of method === "GET" || method === "DELETE" ? [undefined] : [{}]) {
        const socket = await ask(method, path, key, body)
        await untilHolds(() => socket.writableLength > 0)
        const held = sum()
        if (isShared(path)) assert.isBelow(held, 4096)
        else assert.strictEqual(held, waiting(), path)
        socket.destroy()
        await untilHolds(() => sum() === 0)
      }
    }
  )
})

describe("replies that their clients do not read", () => {
  const most = 64 * 1024 * 1024
  const size = 8 * 1024 * 1024

  afterAll(() => gateway.stop())

  it("are rejected above limits.buffered_bytes, and the oldest stuck one is closed to make room", async () => {
    gateway = await startGateway({ limits: { buffered_bytes: most } }, { clock })
    const stored = await fetch(`${gateway.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({ model: "upstream-chat", input: `hello\n${"x".repeat(size)}` })
    })
    const { id } = await stored.json() as { readonly id: string }
    const path = `/v1/responses/${id}/input_items`
    await untilHolds(() => sum() === 0)
    const sockets: Array<Socket> = []
    for (let i = 0; i < 12; i++) {
      const socket = await ask("GET", path, businessKey, undefined)
      await untilHolds(() => socket.writableLength > 0)
      sockets.push(socket)
      assert.isAtMost(sum(), most + 5 * 4096)
      assert.strictEqual(sum(), waiting())
    }
    assert.lengthOf(sockets.filter(({ writableLength }) => writableLength > size), 7)

    const read = async () => {
      const response = await fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${businessKey}` } })
      return { status: response.status, retry: response.headers.get("retry-after"), text: await response.text() }
    }
    const pass = async (millis: number) => {
      for (let passed = 0; passed < millis; passed += 100) {
        clock.move(100)
        await new Promise(setImmediate)
      }
    }
    await pass(3000)
    assert.isEmpty(sockets.filter(({ destroyed }) => destroyed))
    const refused = await read()
    assert.deepInclude(refused, { status: 429, retry: "5" })
    assert.deepInclude(JSON.parse(refused.text).error, { code: "rate_limit_exceeded", type: "rate_limit_error" })
    // Small replies are served meanwhile.
    assert.strictEqual((await fetch(`${gateway.url}/v1/models`)).status, 200)

    // The clients that have waited longest are disconnected, as few as necessary.
    await pass(2000)
    const large = sockets.filter(({ writableLength }) => writableLength > size)
    assert.deepStrictEqual(large.map(({ destroyed }) => destroyed), [true, ...Array<boolean>(6).fill(false)])
    assert.strictEqual((await read()).status, 200)
  })
})
