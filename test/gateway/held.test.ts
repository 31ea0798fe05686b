/** The buffered bytes of a whole reply and of a large body are released however the request ends. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context } from "effect"
import { CurrentBufferedBytes } from "../../src/config/limits.ts"
import { defaultLimits } from "../../src/domain/limits.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import {
  type Answer,
  chunk,
  frames,
  json,
  type OpenAiServer,
  startOpenAiServer,
  streamed
} from "../support/openaiServer.ts"
import { admin } from "./support.ts"

let server: OpenAiServer
let gateway: RunningGateway

beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({
    accounts: [{ token: "sk-a" }],
    upstream: { driver: "openai", base_url: server.baseUrl }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const held = () => Context.get(gateway.services, CurrentBufferedBytes).used

const send = (stream: boolean, signal?: AbortSignal) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify({
      model: "upstream-chat",
      stream,
      messages: [{ role: "user", content: "x".repeat(200_000) }]
    }),
    signal: signal ?? null
  })

/** The body's own bytes, and two for each character of its prompt. */
const heldMeanwhile = 600_000

const long = frames(chunk({ content: "y".repeat(100_000) }))

/** Waits until the account is free, then asserts that no bytes are buffered. */
const assertNothingHeld = async () => {
  let status = await admin(gateway.url, "GET", "/admin/queue/status")
  while (status["in_use"] !== 0) status = await admin(gateway.url, "GET", "/admin/queue/status")
  assert.strictEqual(held(), 0)
}

describe.each([false, true])("buffered bytes of a request (streamed: %s)", (stream) => {
  const ends: ReadonlyArray<readonly [string, Answer, number]> = [
    ["that succeeds", streamed({ content: "y".repeat(100_000) }), 200],
    ["that the upstream rejects", json(400, { error: { message: "no", type: "invalid_request_error" } }), 400],
    ["with an empty reply", streamed(), 503],
    ["with an HTML page as the reply", { headers: { "content-type": "text/html" }, pieces: ["<html>"] }, 503],
    ["whose connection is reset", { pieces: [long], after: "reset" }, stream ? 200 : 503]
  ]
  it.each(ends)("a request %s releases its buffered bytes", async (_, answer, status) => {
    server.answer(() => {
      assert.isAtLeast(held(), heldMeanwhile)
      return answer
    })
    const response = await send(stream)
    await response.text()
    assert.strictEqual(response.status, status)
    await assertNothingHeld()
  })

  it("a request whose caller disconnects releases its buffered bytes", async () => {
    server.answer(() => ({ pieces: [long], after: "hang" }))
    const leaving = new AbortController()
    const left = send(stream, leaving.signal).then((response) => response.text()).catch(() => "left")
    await server.until((requests) => requests.length === 1)
    assert.isAtLeast(held(), heldMeanwhile)
    leaving.abort()
    assert.strictEqual(await left, "left")
    await server.until(([request]) => request?.outcome === "aborted")
    await assertNothingHeld()
  })
})

describe("buffered bytes of a streamed reply", () => {
  const sum = () => Context.get(gateway.services, CurrentBufferedBytes)
  const most = defaultLimits.buffered_bytes
  const text = "y".repeat(1000)
  const call = (args: string) =>
    chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: args } }] })
  const ofText = () => streamed(...Array.from({ length: 300 }, () => ({ content: text })))
  const ofOneCall = (): Answer => ({
    pieces: [frames(
      call("{\"text\":\""),
      ...Array.from({ length: 300 }, () => chunk({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
      chunk({ tool_calls: [{ index: 0, function: { arguments: "\"}" } }] }),
      chunk({}, "tool_calls"),
      "[DONE]"
    )]
  })
  const chatTools = [{ type: "function", function: { name: "f" } }]

  /** Returns the frames of a reply, with `room` bytes left under the limit. */
  const ask = async (path: string, body: object, room: number, reply: Answer) => {
    server.answer(() => reply)
    sum().used = most - room
    const response = await fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({ model: "upstream-chat", stream: true, ...body })
    })
    const all = await response.text()
    sum().used -= most - room
    await assertNothingHeld()
    return all
  }
  const chat = (reply: Answer, room: number) =>
    ask("/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }], tools: chatTools }, room, reply)
  const responses = (reply: Answer, room: number) => ask("/v1/responses", { input: "Hi", store: false }, room, reply)

  it("sent text is released immediately, so that the reply is complete with little room", async () => {
    const all = await chat(ofText(), 50_000)
    assert.strictEqual(all.split(text).length - 1, 300)
    assert.include(all, "\"finish_reason\":\"stop\"")
  })

  it("arguments of a tool call are buffered until they are complete, and cut at the limit", async () => {
    assert.include(await chat(ofOneCall(), 700_000), "\"finish_reason\":\"tool_calls\"")
    const cut = await chat(ofOneCall(), 500_000)
    assert.include(cut, "\"finish_reason\":\"length\"")
    assert.notInclude(cut, "tool_calls\"}]")
  })

  it("the responses style buffers the text for its last event, and cuts it at the limit", async () => {
    assert.include(await responses(ofText(), 700_000), "event: response.completed")
    const cut = await responses(ofText(), 500_000)
    assert.include(cut, "event: response.incomplete")
    assert.include(cut, "max_output_tokens")
  })
})

describe("a prompt above limits.buffered_bytes", () => {
  it("is rejected before the upstream is called", async () => {
    const sum = Context.get(gateway.services, CurrentBufferedBytes)
    server.answer(() => streamed({ content: "Hello" }))
    const most = defaultLimits.buffered_bytes
    const ask = async (others: number) => {
      sum.used = others
      const response = await send(false)
      const text = await response.text()
      assert.strictEqual(sum.used, others)
      sum.used = 0
      return { status: response.status, retryAfter: response.headers.get("retry-after"), text }
    }
    const refused = await ask(most - 500_000)
    assert.deepInclude(refused, { status: 429, retryAfter: "5" })
    assert.include(refused.text, "too many large requests")
    assert.isEmpty(server.requests)
    assert.strictEqual((await ask(most - 700_000)).status, 200)
  })
})
