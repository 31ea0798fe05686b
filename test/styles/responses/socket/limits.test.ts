/** What bounds turns and connections: lanes, limits of keys, memory, and clients that leave. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Context } from "effect"
import type { RawConfig } from "../../../../src/config/json.ts"
import { sha256Hex } from "../../../../src/config/json.ts"
import { keyId } from "../../../../src/domain/identity.ts"
import { Lifecycle } from "../../../../src/server/Lifecycle.ts"
import { businessKey, type GatewayOptions } from "../../../support/gateway.ts"
import { json } from "../../../support/openaiServer.ts"
import { untilHolds, untilValue } from "../../../support/until.ts"
import { model } from "./client.ts"
import { bearer, HeldReplies, lastText, messagesOf, refusal, type Stand, startStand } from "./stand.ts"

let stand: Stand
afterEach(() => stand.stop())

const start = async (config: RawConfig = {}, options: GatewayOptions = {}) => {
  stand = await startStand(config, options)
  return { held: new HeldReplies(stand.server), open: stand.open }
}

const range = (count: number) => Array.from({ length: count }, (_, i) => i)
const inUse = async () => (await stand.admin("GET", "/admin/queue/status"))["in_use"]
const id = keyId(businessKey, sha256Hex)

describe("turns of one connection", () => {
  it("run in order within a lane, and at the same time in others", async () => {
    const { held, open } = await start()
    const client = await open()
    client.create({ input: "a1", stream_id: "a" })
    client.create({ input: "a2", stream_id: "a" })
    client.create({ input: "b1", stream_id: "b" })
    client.create({ input: "c1" })
    await untilHolds(() => held.open.length === 3)
    assert.sameMembers([...held.open], ["a1", "b1", "c1"])
    await held.end("b1")
    assert.strictEqual((await client.response("b")).output_text, "b1 begins. It ends.")
    await held.end("a1")
    assert.strictEqual((await client.response("a")).output_text, "a1 begins. It ends.")
    await held.end("a2")
    await held.end("c1")
    assert.strictEqual((await client.response("a")).output_text, "a2 begins. It ends.")
    assert.strictEqual((await client.response()).output_text, "c1 begins. It ends.")
  })

  it("run sixteen at a time; the seventeenth waits, and a sixty-fifth that waits is refused in its lane", async () => {
    const { held, open } = await start()
    const client = await open()
    for (const i of range(16)) client.create({ input: `t${i}`, stream_id: `lane-${i}` })
    await untilHolds(() => held.open.length === 16)
    for (const i of range(64)) client.create({ input: `w${i}`, stream_id: `lane-${16 + i % 16}` })
    client.create({ input: "one too many" })
    const { error, headers, status } = await client.error()
    assert.strictEqual(status, 429)
    assert.strictEqual(error.code, "rate_limit_exceeded")
    assert.isDefined(headers!["retry-after"])
    client.create({ input: "a thirty-third lane", stream_id: "lane-32" })
    assert.strictEqual((await client.error("lane-32")).error.code, "websocket_stream_limit_reached")
    assert.lengthOf(held.open, 16)
    await held.end("t3")
    assert.strictEqual((await client.response("lane-3")).output_text, "t3 begins. It ends.")
    await untilHolds(() => held.open.includes("w0"))
    assert.lengthOf(held.open, 16)
  })

  it("continue after one of them fails within its reply", async () => {
    const { open } = await start()
    const client = await open()
    stand.server.answer(({ body }) =>
      lastText(body) === "break"
        ? { pieces: [`data: {"choices":[{"index":0,"delta":{"content":"It "}}]}\n\n`], after: "reset" }
        : json(400, { error: { message: "no" } })
    )
    client.create({ input: "break", stream_id: "a" })
    assert.strictEqual((await client.reply("a")).at(-1)!.type, "response.failed")
    client.create({ input: "other", stream_id: "a" })
    assert.strictEqual((await client.error("a")).status, 400)
    client.create({ input: "warm", generate: false })
    assert.strictEqual((await client.response()).status, "completed")
  })

  it("send each item of a tool loop once, and the server gets all of them", async () => {
    const { open } = await start()
    const client = await open()
    stand.server.answer(({ body }) =>
      json(200, { choices: [{ message: { role: "assistant", content: `said ${messagesOf(body).length}` } }] })
    )
    client.create({ input: "q0", store: false })
    let { id } = await client.response()
    for (const i of range(19)) {
      client.create({ input: `q${i + 1}`, store: false, previous_response_id: id })
      id = (await client.response()).id
    }
    const texts = messagesOf(stand.server.requests.at(-1)!.body).map((message) => lastText({ messages: [message] }))
    assert.deepStrictEqual(texts, range(39).map((i) => i % 2 === 0 ? `q${i / 2}` : `said ${i}`))
  })
})

describe("a message that waits for its turn", () => {
  it("is parsed when its turn begins", async () => {
    const { held, open } = await start()
    const client = await open()
    client.create({ input: "a1", stream_id: "a" })
    await untilHolds(() => held.open.length === 1)
    client.send(`{"type":"response.create","stream_id":"a","model":"m","input":nothing}`)
    client.create({ input: "b1", stream_id: "b" })
    await untilHolds(() => held.open.length === 2)
    assert.isFalse(client.events.some(({ type }) => type === "error"))
    await held.end("a1")
    await client.response("a")
    const { error, status } = await client.error("a")
    assert.strictEqual(status, 400)
    assert.include(error.message, "is not valid JSON")
    await held.end("b1")
    await untilHolds(() => stand.held() === 0)
  })

  it("is refused immediately when it has more values than limits.values", async () => {
    const { open } = await start({ limits: { values: 10_000 } })
    const client = await open()
    client.create({ input: "a", metadata: { a: Array.from({ length: 5000 }, () => ({})) } })
    const { error, status } = await client.error()
    assert.strictEqual(status, 400)
    assert.strictEqual(error.message, "metadata: has more than the 10000 JSON values that are allowed")
    await untilHolds(() => stand.held() === 0)
    client.create({ input: "warm", generate: false })
    await client.response()
  })
})

describe("warm-ups", () => {
  it("of a key whose limits are used up are refused, and leave the limits as they are", async () => {
    const { open } = await start({ key_records: { [id]: { limits: [{ window: "day", requests: 1 }] } } })
    stand.server.answer(() => json(200, { choices: [{ message: { role: "assistant", content: "ok" } }] }))
    const client = await open()
    client.create({ input: "hi" })
    await client.response()
    client.create({ input: "warm", generate: false })
    const { error, headers, status } = await client.error()
    assert.strictEqual(status, 429)
    assert.strictEqual(error.code, "rate_limit_exceeded")
    assert.strictEqual(headers!["x-ratelimit-remaining-requests"], "0")
  })

  it("do not push out the records of requests", async () => {
    const { open } = await start({ requests: { limit: 8 } })
    stand.server.answer(() => json(200, { choices: [{ message: { role: "assistant", content: "ok" } }] }))
    const client = await open()
    client.create({ input: "hi" })
    await client.response()
    for (const i of range(20)) {
      client.create({ input: `warm ${i}`, generate: false })
      await client.response()
    }
    await untilValue(
      "the record of the request is kept",
      () => stand.admin("GET", "/admin/requests"),
      ({ items }) => (items as ReadonlyArray<{ readonly attempts: number }>).some(({ attempts }) => attempts === 1)
    )
  })

  it("reach no server, take no slot and count for no limit and no history", async () => {
    const { open } = await start({ key_records: { [id]: { limits: [{ window: "day", requests: 1 }] } } })
    const client = await open()
    for (const i of range(5)) {
      client.create({ input: `warm ${i}`, generate: false })
      await client.response()
    }
    assert.isEmpty(stand.server.requests)
    stand.server.answer(() => json(200, { choices: [{ message: { role: "assistant", content: "ok" } }] }))
    client.create({ input: "hi" })
    assert.strictEqual((await client.response()).output_text, "ok")
    client.create({ input: "hi" })
    assert.strictEqual((await client.error()).error.code, "rate_limit_exceeded")
    await untilValue(
      "two requests are in the history",
      () => stand.admin("GET", "/admin/usage"),
      ({ totals }) => (totals as { readonly requests: number }).requests === 2
    )
  })
})

describe("the limits of a key", () => {
  it("of concurrent requests hold over all turns, and its rate limits are in the headers", async () => {
    const { held, open } = await start({
      key_records: { [id]: { max_inflight: 2, limits: [{ window: "day", requests: 10 }] } }
    })
    const client = await open()
    for (const i of range(2)) client.create({ input: `t${i}`, stream_id: `lane-${i}` })
    await untilHolds(() => held.open.length === 2)
    client.create({ input: "t2", stream_id: "lane-2" })
    const { error, headers, status } = await client.error("lane-2")
    assert.strictEqual(status, 429)
    assert.strictEqual(error.code, "rate_limit_exceeded")
    assert.isDefined(headers!["retry-after"])
    await held.end("t0")
    const [created] = await client.reply("lane-0")
    assert.strictEqual(created!.headers!["x-ratelimit-limit-requests"], "10")
  })

  it("end the connection at the next turn when the key is removed", async () => {
    const { open } = await start()
    const client = await open()
    client.create({ input: "warm", generate: false })
    await client.response()
    await stand.change({ keys: ["another"] })
    client.create({ input: "hi", stream_id: "a" })
    const { error, status } = await client.error("a")
    assert.strictEqual(status, 401)
    assert.strictEqual(error.code, "authentication_failed")
    assert.strictEqual((await client.end()).code, 1008)
    await stand.counted(0, { refused: 1 })
  })

  it("bound its connections, and a closed one makes room", async () => {
    const { open } = await start({ keys: [businessKey, "other"], limits: { key_websockets: 2 } })
    const clients = [await open(), await open()]
    const { error, headers, status } = await refusal(stand.gateway.url)
    assert.deepInclude(error, { code: "rate_limit_exceeded", type: "rate_limit_error" })
    assert.strictEqual(status, 429)
    assert.isDefined(headers["retry-after"])
    await open(bearer("other"))
    clients[0]!.close()
    await clients[0]!.end()
    await untilValue("there is room", () => open().then(() => true, () => false), (opened) => opened)
  })
})

describe("the limits of an address", () => {
  it("bound its connections with direct tokens, whatever the tokens are", async () => {
    const { open } = await start({ auth: { direct_tokens: true }, limits: { key_websockets: 2 } })
    await open(bearer("sk-made-up-1"))
    await open(bearer("sk-made-up-2"))
    const { error, status } = await refusal(stand.gateway.url, { headers: bearer("sk-made-up-3") })
    assert.strictEqual(error.code, "rate_limit_exceeded")
    assert.strictEqual(status, 429)
    await open()
  })
})

describe("the queue and the slots of accounts", () => {
  it("hold for turns as for requests", async () => {
    const { held, open } = await start({ runtime: { account_max_inflight: 1, account_max_queue: 1 } })
    const client = await open()
    client.create({ input: "t0", stream_id: "a" })
    await untilHolds(() => held.open.length === 1)
    client.create({ input: "t1", stream_id: "b" })
    await untilValue("a turn waits", () => stand.admin("GET", "/admin/queue/status"), ({ waiting }) => waiting === 1)
    client.create({ input: "t2", stream_id: "c" })
    assert.strictEqual((await client.error("c")).status, 429)
    await held.end("t0")
    await held.end("t1")
    await client.response("b")
  })
})

describe("a client that leaves", () => {
  it.each([["closes", "close"], ["is lost", "terminate"]] as const)(
    "and %s cancels its turns, also those that wait, and leaves nothing behind",
    async (_, how) => {
      const { open } = await start()
      stand.server.answer(() => ({
        pieces: [`data: {"choices":[{"index":0,"delta":{"content":"It "}}]}\n\n`],
        after: "hang"
      }))
      const client = await open()
      for (const i of range(20)) client.create({ input: "x".repeat(100_000), stream_id: `lane-${i % 4}` })
      await untilHolds(() => client.events.filter(({ type }) => type === "response.output_text.delta").length === 4)
      assert.isAbove(stand.held(), 20 * 100_000)
      assert.strictEqual(await inUse(), 4)
      client.socket[how]()
      await untilHolds(() => stand.server.requests.every(({ outcome }) => outcome === "aborted"))
      await untilHolds(() => stand.held() === 0)
      await untilValue("the slots are free", inUse, (used) => used === 0)
      await untilHolds(() => Context.get(stand.gateway.services, Lifecycle).active() === 0)
      assert.lengthOf(stand.server.requests, 4)
    }
  )
})

describe("a message above limits.body_bytes", () => {
  it.each([65_000, 200_000, 2_000_000])(
    "of %d bytes more closes the connection with 1009, and holds nothing",
    async (more) => {
      const { open } = await start({ limits: { body_bytes: 65_536 } })
      const client = await open()
      client.create({ input: "x".repeat(65_536 + more) })
      assert.strictEqual((await client.end()).code, 1009)
      await untilHolds(() => stand.held() === 0)
      assert.isEmpty(stand.server.requests)
    }
  )

  it("is one whose last byte is above it", async () => {
    const { open } = await start({ limits: { body_bytes: 65_536 } })
    const message = (length: number) =>
      JSON.stringify({ type: "response.create", model, generate: false, input: "x".repeat(length) })
    const rest = message(0).length
    const client = await open()
    client.send(message(65_536 - rest))
    assert.strictEqual((await client.response()).status, "completed")
    client.send(message(65_537 - rest))
    assert.strictEqual((await client.end()).code, 1009)
  })
})

describe("a message that arrives", () => {
  it("counts in limits.buffered_bytes, and one that does not fit closes the connection with 1013", async () => {
    const { open } = await start({ limits: { buffered_bytes: 64 * 1024 * 1024, body_bytes: 256 * 1024 * 1024 } })
    const client = await open()
    client.socket.send("x".repeat(1024 * 1024), { fin: false })
    await untilHolds(() => stand.held() > 1024 * 1024)
    client.socket.send("x".repeat(70 * 1024 * 1024), { fin: false })
    assert.strictEqual((await client.error()).error.code, "rate_limit_exceeded")
    assert.strictEqual((await client.end()).code, 1013)
    await untilHolds(() => stand.held() === 0)
  })
})

describe("limits.websocket_bytes", () => {
  it("closes the largest idle connection of the caller who uses most, and its client can start anew", async () => {
    const { open } = await start({ keys: [businessKey, "other"], limits: { websocket_bytes: 1024 * 1024 } })
    const warm = async (client: Awaited<ReturnType<typeof open>>, size: number) => {
      client.create({ input: "x".repeat(size), store: false, generate: false })
      return (await client.response()).id
    }
    const [small, large, other] = [await open(), await open(), await open(bearer("other"))]
    await warm(small!, 50_000)
    await warm(large!, 150_000)
    const kept = await warm(other!, 160_000)
    await warm(small!, 75_000)
    await warm(small!, 100_000)
    assert.isUndefined(large!.closed)
    await warm(await open(), 125_000)
    assert.strictEqual((await large!.error()).error.code, "websocket_connection_limit_reached")
    assert.strictEqual((await large!.end()).code, 1000)
    await stand.counted(3, { full: 1 })
    assert.isUndefined(small!.closed)
    other!.create({ input: "more", store: false, generate: false, previous_response_id: kept })
    assert.strictEqual((await other!.response()).status, "completed")
  })

  it("ends a connection that is never idle: it begins no other turn, and is closed after those that run", async () => {
    const { held, open } = await start({ limits: { websocket_bytes: 1024 * 1024 } })
    const client = await open()
    client.create({ input: "long", stream_id: "a" })
    await untilHolds(() => held.open.length === 1)
    client.create({ input: "x".repeat(600_000), store: false, generate: false })
    await client.response()
    client.create({ input: "more", store: false, generate: false })
    assert.strictEqual((await client.error()).error.code, "websocket_connection_limit_reached")
    await held.end("long")
    assert.strictEqual((await client.response("a")).status, "completed")
    assert.strictEqual((await client.end()).code, 1000)
  })
})
