/** Opening connections, and their end: refusals, signs of life, age, and a drain. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context } from "effect"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import type { Socket } from "node:net"
import { Deadlines } from "../../../../src/config/clock/Deadlines.ts"
import type { RawConfig } from "../../../../src/config/json.ts"
import { Lifecycle } from "../../../../src/server/Lifecycle.ts"
import { businessKey, type GatewayOptions } from "../../../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../../../support/movedClock.ts"
import { chunk, frames } from "../../../support/openaiServer.ts"
import { untilHolds, untilValue } from "../../../support/until.ts"
import { Client } from "./client.ts"
import { bearer, HeldReplies, refusal, type Stand, startStand } from "./stand.ts"

let stand: Stand | undefined
afterEach(async () => {
  await stand?.stop()
  stand = undefined
})

const start = async (config: RawConfig = {}, options: GatewayOptions = {}) => {
  stand = await startStand(config, options)
  return stand
}

/** Starts with a clock that stands still. */
const startStill = async (config: RawConfig = {}) => {
  const clock = makeMovedClock({ still: true })
  return { ...(await start(config, { clock })), clock }
}

/** Moves time in steps in which deadlines are looked at. */
const pass = async (clock: MovedClock, seconds: number) => {
  for (let passed = 0; passed < seconds; passed++) {
    clock.move(1000)
    for (let turns = 0; turns < 3; turns++) await new Promise(setImmediate)
  }
}

describe("a request that opens no WebSocket", () => {
  it.each([
    ["without a key", { headers: {} }, 401, "authentication_failed"],
    ["with a wrong key", { headers: bearer("wrong") }, 401, "authentication_failed"],
    [
      "with a key in its address",
      { headers: {}, path: `/v1/responses?key=${businessKey}` },
      401,
      "authentication_failed"
    ],
    ["with another version", { headers: { ...bearer(), "sec-websocket-version": "12" } }, 426, "upgrade_required"],
    ["with a wrong handshake", { headers: { ...bearer(), "sec-websocket-key": "short" } }, 400, "invalid_request"],
    ["for another protocol", { headers: { ...bearer(), upgrade: "h2c" } }, 426, "upgrade_required"]
  ])("%s gets an error as any other request", async (_, asked, status, code) => {
    const { gateway } = await start({ auth: { direct_tokens: false } })
    const refused = await refusal(gateway.url, asked)
    assert.strictEqual(refused.status, status)
    assert.strictEqual(refused.error["code"], code)
    assert.isString(refused.headers["x-request-id"])
    if (status === 426) {
      assert.deepInclude(refused.headers, { upgrade: "websocket", "sec-websocket-version": "13" })
    }
  })

  it("gets 426 when the setting is off, and an open connection goes on", async () => {
    const { change, gateway, open } = await start()
    const client = await open()
    await change({ server: { websockets: false } })
    const { error, status } = await refusal(gateway.url)
    assert.deepInclude(error, { code: "upgrade_required", type: "invalid_request_error" })
    assert.strictEqual(status, 426)
    client.create({ input: "warm", generate: false })
    await client.response()
  })

  it.each(["/v1/chat/completions", "/v1/responses/resp_1", "/v1/models"])(
    "gets the reply of HTTP at %s",
    async (path) => {
      const { gateway } = await start()
      const response = await fetch(`${gateway.url}${path}`, { headers: bearer() })
      const text = await response.text()
      if (response.ok) return assert.isTrue(response.ok)
      const { error, status } = await refusal(gateway.url, { path })
      assert.strictEqual(status, response.status)
      assert.strictEqual(error["code"], (JSON.parse(text) as { error: { code: string } }).error.code)
    }
  )

  it("counts towards throttling with a wrong key", async () => {
    const { clock, gateway } = await startStill({ auth: { direct_tokens: false } })
    const statuses: Array<number> = []
    const asked = Array.from({ length: 200 }, async () => {
      const { status } = await refusal(gateway.url, { headers: bearer("wrong") })
      statuses.push(status)
    })
    await untilHolds(() => statuses.includes(429))
    await untilHolds(async () => {
      await pass(clock, 60)
      return statuses.length === asked.length
    })
    assert.sameMembers([...new Set(statuses)], [401, 429])
  })
})

describe("a connection", () => {
  it("chooses no extension and no subprotocol", async () => {
    const { gateway } = await start()
    const { WebSocket } = await import("@effect/platform-node/NodeWS")
    const socket = new WebSocket(`${gateway.url.replace("http", "ws")}/v1/responses`, ["realtime"], {
      headers: bearer(),
      perMessageDeflate: true
    })
    const failure = await new Promise<Error>((resolve) => socket.on("error", resolve))
    assert.match(failure.message, /no subprotocol/)
    const client = await stand!.open()
    assert.strictEqual(client.socket.extensions, "")
  })

  it("is pinged after twenty seconds of silence, and stays open as long as it answers", async () => {
    const { clock, open } = await startStill()
    const client = await open()
    await pass(clock, 19)
    assert.strictEqual(client.pings, 0)
    for (const pings of [1, 2, 3, 4, 5]) {
      await pass(clock, 22)
      await untilHolds(() => client.pings >= pings)
    }
    assert.isUndefined(client.closed)
    client.create({ input: "warm", generate: false })
    await client.response()
  })

  it("is dropped after sixty seconds in which nothing came", async () => {
    const { clock, counted, gateway } = await startStill()
    const client = new Client(gateway.url, bearer(), { autoPong: false })
    await untilHolds(() => client.socket.readyState === 1)
    await pass(clock, 58)
    assert.isUndefined(client.closed)
    assert.strictEqual(client.pings, 2)
    await pass(clock, 4)
    assert.strictEqual((await client.end()).code, 1006)
    await untilHolds(() => Context.get(gateway.services, Lifecycle).active() === 0)
    await counted(0, { silent: 1 })
  })

  it("is closed when a message comes more slowly than a body may, though the client answers pings", async () => {
    const { clock, held, open } = await startStill()
    const client = await open()
    client.socket.send("x".repeat(100 * 1024), { fin: false })
    await untilHolds(() => held() > 0)
    await pass(clock, 100)
    assert.isUndefined(client.closed)
    await pass(clock, 60)
    assert.strictEqual((await client.error()).error.code, "request_timeout")
    assert.strictEqual((await client.end()).code, 1008)
    await untilHolds(() => held() === 0)
  })

  it("that is idle is closed at the age of limits.websocket_seconds", async () => {
    const { clock, counted, open } = await startStill({ limits: { websocket_seconds: 60 } })
    const client = await open()
    await pass(clock, 30)
    client.create({ input: "warm", generate: false })
    await client.response()
    await pass(clock, 32)
    assert.strictEqual((await client.error()).error.code, "websocket_connection_limit_reached")
    assert.deepStrictEqual(await client.end(), { code: 1000, reason: "websocket_connection_limit_reached" })
    await counted(0, { expired: 1 })
  })

  it("that is too old ends after its turns, and begins no other", async () => {
    const { clock, open, server } = await startStill({ limits: { websocket_seconds: 60 } })
    const held = new HeldReplies(server)
    const client = await open()
    client.create({ input: "long", stream_id: "a" })
    await untilHolds(() => held.open.length === 1)
    await pass(clock, 59)
    assert.isUndefined(client.closed)
    await pass(clock, 5)
    client.create({ input: "late", stream_id: "b" })
    assert.strictEqual((await client.error("b")).error.code, "websocket_connection_limit_reached")
    await held.end("long")
    assert.strictEqual((await client.response("a")).output_text, "long begins. It ends.")
    assert.strictEqual((await client.end()).code, 1000)
  })

  it("costs no slot and one deadline while it is idle", async () => {
    const { admin, counted, gateway, open } = await start({ limits: { key_websockets: 500 } })
    const { size } = Context.get(gateway.services, Deadlines)
    const before = size()
    const clients = await Promise.all(Array.from({ length: 500 }, () => open()))
    assert.strictEqual(size(), before + 500)
    assert.strictEqual((await admin("GET", "/admin/queue/status"))["in_use"], 0)
    await counted(500)
    for (const client of clients) client.socket.terminate()
    await untilHolds(() => size() === before)
    await counted(0, { left: 500 })
  })
})

describe("a client that reads nothing", () => {
  /** The gateway's ends of the sockets. */
  const sockets: Array<Socket> = []
  const accepted = (message: unknown) => void sockets.push((message as { readonly socket: Socket }).socket)
  beforeAll(() => subscribe("net.server.socket", accepted))
  afterAll(() => unsubscribe("net.server.socket", accepted))
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
  })

  it("holds what client_queue_bytes allows for all its turns, pauses the server, and is disconnected", async () => {
    const queue = 128 * 1024
    const piece = frames(chunk({ content: "x".repeat(8 * 1024) }))
    const { clock, gateway, held, open, server } = await startStill({
      limits: { client_queue_bytes: queue }
    })
    server.answer(() => ({ pieces: Array.from({ length: 4000 }, () => piece), after: "hang" }))
    const port = Number(new URL(gateway.url).port)
    const client = await open()
    const own = sockets.findLast(({ localPort }) => localPort === port)!
    // The buffers of the system are full: what is written stays.
    own._write = () => {}
    Reflect.set(own, "_writev", undefined)
    for (const lane of ["a", "b", "c"]) client.create({ input: "hi", stream_id: lane })
    await untilHolds(() => server.requests.length === 3)
    let before = -1
    await untilValue("the held bytes stay", held, (now) => {
      const same = now === before && now > queue
      before = now
      return same
    })
    // The text of the replies counts too, as far as it was read from the server, which would send 96 MB.
    assert.isBelow(held(), 4 * 1024 * 1024)
    await pass(clock, 130)
    await untilHolds(() => server.requests.every(({ outcome }) => outcome === "aborted"))
    await untilHolds(() => held() === 0)
    assert.isTrue(own.destroyed)
  })
})

describe("a drain", () => {
  it("closes idle connections, lets turns end, and refuses new ones", async () => {
    const { gateway, open, server } = await start()
    const held = new HeldReplies(server)
    const [idle, busy] = [await open(), await open()]
    busy.create({ input: "long", stream_id: "a" })
    await untilHolds(() => held.open.length === 1)
    const stopped = gateway.stop()
    assert.strictEqual((await idle.end()).code, 1001)
    assert.isUndefined(busy.closed)
    const lifecycle = Context.get(gateway.services, Lifecycle)
    await untilHolds(() => lifecycle.isDraining())
    busy.create({ input: "late", stream_id: "b" })
    const { error, status } = await busy.error("b")
    assert.deepStrictEqual([status, error.code], [503, "shutting_down"])
    const refused = await refusal(gateway.url)
    assert.deepStrictEqual([refused.status, refused.error["code"]], [503, "shutting_down"])
    await held.end("long")
    assert.strictEqual((await busy.response("a")).output_text, "long begins. It ends.")
    assert.strictEqual((await busy.end()).code, 1001)
    await stopped
  })
})
