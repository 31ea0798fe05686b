/**
 * Facts about a request in replies and log lines: its id, its path, the upstream, and the time of each part.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Logger } from "effect"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { untilHolds } from "../support/until.ts"

const clock = makeMovedClock({ still: true })
const lines: Array<Record<string, unknown>> = []

let server: OpenAiServer
let gateway: RunningGateway
let embedded: RunningGateway

beforeAll(async () => {
  server = await startOpenAiServer()
  const logger = Logger.map(Logger.formatStructured, ({ annotations, message }) => {
    if (String(message) === "request") lines.push(annotations)
  })
  gateway = await startGateway(
    { accounts: [{ token: "sk-a" }], upstream: { driver: "openai", base_url: server.baseUrl } },
    { clock, logger, logLevel: "Debug" }
  )
  embedded = await startGateway({}, { clock })
})
afterAll(async () => {
  await gateway.stop()
  await embedded.stop()
  await server.stop()
})

const ask = (url: string, content: string, stream: boolean) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify({ model: "upstream-chat", stream, messages: [{ role: "user", content }] })
  })

describe("the log line", () => {
  it.each([
    ["GET", "/nope/at/all", 404],
    ["GET", "/v1/chat/completions", 405],
    ["PUT", "/healthz", 405],
    ["POST", "/v1beta/models/x:foo", 404],
    ["GET", "/v1/models/x:generateContent", 405]
  ])("of %s %s has the reply's id and the path", async (method, path, status) => {
    for (const own of [undefined, "an-id-of-my-own"]) {
      lines.length = 0
      const response = await fetch(gateway.url + path, {
        method,
        headers: own === undefined ? {} : { "x-request-id": own }
      })
      await response.text()
      assert.strictEqual(response.status, status)
      const id = response.headers.get("x-request-id")
      if (own !== undefined) assert.strictEqual(id, own)
      assert.deepInclude(lines.find(({ request_id }) => request_id === id), { path, status })
    }
  })

  it.each(["/healthz", "/readyz", "/v1/models"])("of %s has the reply's id", async (path) => {
    lines.length = 0
    const response = await fetch(gateway.url + path)
    await response.text()
    await untilHolds(() => lines.length > 0)
    assert.deepStrictEqual(lines.map(({ request_id }) => request_id), [response.headers.get("x-request-id")])
  })
})

describe("Server-Timing", () => {
  const times = (response: Response) => {
    const [, ...parts] = /^queue;dur=(\d+), upstream;dur=(\d+), gateway;dur=(\d+)$/
      .exec(response.headers.get("server-timing") ?? "") ?? assert.fail("no times")
    const [queue, upstream, own] = parts.map(Number)
    return { queue: queue!, upstream: upstream!, own: own! }
  }

  it("of a whole reply reports the upstream's time", async () => {
    server.answer(() => {
      clock.move(20_000)
      return streamed({ content: "Hello" })
    })
    const response = await ask(gateway.url, "Hi", false)
    await response.text()
    const { own, queue, upstream } = times(response)
    assert.deepStrictEqual({ own, queue, upstream }, { own: 0, queue: 0, upstream: 20_000 })
  })

  it("of early headers reports the upstream's time too", async () => {
    const begin = Promise.withResolvers<void>()
    server.answer(() => {
      clock.move(15_000)
      return {
        ...streamed({ content: "Hello" }),
        pieces: [begin.promise, ...streamed({ content: "Hello" }).pieces ?? []]
      }
    })
    const response = await ask(gateway.url, "Hi", true)
    begin.resolve()
    const { own, queue, upstream } = times(response)
    assert.deepStrictEqual({ own, queue, upstream }, { own: 0, queue: 0, upstream: 15_000 })
    assert.include(await response.text(), "Hello")
  })
})

describe("x-gateway-upstream", () => {
  const of = (response: Response) => response.headers.get("x-gateway-upstream")

  it("names the embedded upstream on its replies and its errors", async () => {
    for (const stream of [false, true]) {
      const said = await ask(embedded.url, "!say Hello", stream)
      assert.include(await said.text(), "Hello")
      assert.strictEqual(of(said), "embedded")
      const refused = await ask(embedded.url, "!fault too-long", stream)
      assert.strictEqual(refused.status, 400, await refused.text())
      assert.strictEqual(of(refused), "embedded")
    }
  })

  it("is in early headers", async () => {
    const asked = ask(embedded.url, "!wait 20s\n!say Hello", true)
    await untilHolds(() => clock.sleeping().includes(20_000))
    clock.move(19_000)
    const response = await asked
    assert.strictEqual(of(response), "embedded")
    clock.move(1_000)
    assert.include(await response.text(), "Hello")
  })

  it("is absent for other upstreams", async () => {
    server.answer(() => streamed({ content: "Hello" }))
    assert.isNull(of(await ask(gateway.url, "Hi", false)))
  })
})

describe("x-gateway-model", () => {
  const of = (response: Response) => response.headers.get("x-gateway-model")

  it("names the model that answers or fails in front of one upstream", async () => {
    for (const stream of [false, true]) {
      server.answer(() => streamed({ content: "Hello" }))
      assert.strictEqual(of(await ask(gateway.url, "Hi", stream)), "upstream-chat")
      server.answer(() => json(400, { error: { message: "no" } }))
      const refused = await ask(gateway.url, "Hi", stream)
      assert.deepStrictEqual([refused.status, of(refused)], [400, "upstream-chat"])
      assert.strictEqual(of(await ask(embedded.url, "!say Hello", stream)), "upstream-chat")
    }
  })

  it("is absent where no model was asked", async () => {
    const response = await fetch(`${gateway.url}/v1/models`)
    assert.isNull(of(response))
  })
})
