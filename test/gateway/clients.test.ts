/** Clients that do not read: the gateway disconnects them, whatever they wait for, and no other client waits for them. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Context } from "effect"
import { connect, type Socket } from "node:net"
import { Lifecycle } from "../../src/server/Lifecycle.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"

let gateway: RunningGateway
const sockets: Array<Socket> = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await gateway.stop()
})

const open = () => {
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname)
  sockets.push(socket)
  // A client that does not read sees the disconnection as a reset.
  socket.on("error", () => {})
  return socket
}

const closed = (socket: Socket) =>
  new Promise<void>((resolve) => {
    socket.once("close", () => resolve())
  })

/** Sends a request and reads nothing of the reply. */
const ask = (method: string, path: string, key: string, body = "") => {
  const socket = open()
  socket.pause()
  socket.write(
    `${method} ${path} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${key}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
  return socket
}

const active = () => Context.get(gateway.services, Lifecycle).active()

const until = async (condition: () => boolean) => {
  while (!condition()) await new Promise(setImmediate)
}

/** The test moves this clock, so that a client timeout never depends on the speed of the machine. */
const clock = makeMovedClock({ still: true })
const patience = 1
const impatient = { driver: "embedded", timeouts: { client: patience } }

/** Moves the clock in tenths of the client timeout until no request is active. */
const untilLeft = async () => {
  while (active() > 0) {
    clock.move(patience * 1000 / 10)
    await new Promise(setImmediate)
  }
}

/** More than the socket buffers hold for a client that does not read. */
const manyLetters = "\u{1F600}".repeat(1000)
const prompt = Array.from({ length: 4 }, () => `!repeat 900 ${manyLetters}`).join("\n")

describe("a client that does not read", () => {
  for (const stream of [true, false]) {
    it(`is disconnected from a ${stream ? "stream" : "whole reply"}, and the account is free`, async () => {
      gateway = await startGateway({ upstream: impatient }, { clock })
      const body = JSON.stringify({
        model: "upstream-chat",
        stream,
        messages: [{ role: "user", content: prompt }]
      })
      const left = ask("POST", "/v1/chat/completions", businessKey, body)
      await until(() => active() === 1)
      await untilLeft()
      // The socket buffer can still be read; then the connection ends.
      const end = closed(left)
      left.resume()
      await end
    })
  }

  it("is disconnected from an admin reply", async () => {
    gateway = await startGateway({ upstream: impatient, extra: "x".repeat(12 * 1024 * 1024) }, { clock })
    const left = ask("GET", "/admin/config/export", adminKey)
    await until(() => active() === 1)
    await untilLeft()
    const end = closed(left)
    let bytes = 0
    left.on("data", (chunk: Buffer) => bytes += chunk.length)
    left.resume()
    await end
    assert.isBelow(bytes, 24 * 1024 * 1024)
  })
})

describe("connections of clients", () => {
  it("above limits.connections, a new one is closed immediately and counted; the others are served", async () => {
    gateway = await startGateway({ limits: { connections: 16 } })
    const metrics = async () => {
      const response = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
      return (await response.text()).split("\n").find((line) => line.startsWith("gateway_connections_refused_total "))
    }
    await metrics()
    const idle = Array.from({ length: 15 }, open)
    await Promise.all(idle.map((socket) => new Promise((resolve) => socket.once("connect", resolve))))
    await closed(open().resume())
    assert.match(String(await metrics()), / 1$/)
  })

  it("a request head of 16 KiB gets 431, and the connection is closed", async () => {
    gateway = await startGateway()
    const socket = open()
    const said: Array<string> = []
    socket.on("data", (chunk: Buffer) => said.push(chunk.toString()))
    const end = closed(socket)
    socket.write(`GET /healthz HTTP/1.1\r\nHost: gateway\r\nX-Long: ${"x".repeat(16 * 1024)}\r\n\r\n`)
    await end
    assert.match(said.join(""), /^HTTP\/1\.1 431 /)
  })
})
