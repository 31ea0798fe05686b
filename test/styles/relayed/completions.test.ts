/** Text completions, with the vendor's client: the request and the reply as they are, failover, refusals, streams. */
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { APIError } from "openai"
import { adminKey, businessKey, type RunningGateway } from "../../support/gateway.ts"
import { frames, json, type OpenAiServer, startOpenAiServer } from "../../support/openaiServer.ts"
import { clientOf, errorOf, lastRecord, post, startOver } from "./support.ts"

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())
beforeEach(async () => {
  gateway = await startOver(server)
})
afterEach(() => gateway.stop())

const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 }
const completion = (text: string, rest: object = {}) => ({
  id: "cmpl-1",
  object: "text_completion",
  created: 1,
  model: "their-text",
  choices: [{ index: 0, text, finish_reason: "stop", logprobs: null }],
  ...rest
})

const addKey = (record: object) =>
  fetch(`${gateway.url}/admin/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminKey}` },
    body: JSON.stringify(record)
  })

describe("a text completion", () => {
  it("goes through as it is, but for the model's name in both directions", async () => {
    server.answer(() => json(200, completion(" there was", { usage })))
    const reply = await clientOf(gateway).completions.create({ model: "text", prompt: "Once", max_tokens: 7 })
    assert.deepStrictEqual<object>({ ...reply }, { ...completion(" there was", { usage }), model: "text" })
    const [seen] = server.requests
    const captures = await fetch(`${gateway.url}/admin/dev/captures`, {
      headers: { authorization: `Bearer ${adminKey}` }
    })
    assert.deepInclude((await captures.json() as { items: ReadonlyArray<object> }).items[0], { label: "carried" })
    assert.strictEqual(seen?.path, "/v1/completions")
    assert.deepStrictEqual(seen?.body, { model: "their-text", prompt: "Once", max_tokens: 7 })
    assert.deepInclude(await lastRecord(gateway), {
      style: "carried",
      model: "text",
      outcome: "ok",
      status: 200,
      usage: { prompt_tokens: 5, completion_tokens: 3, reasoning_tokens: 0 }
    })
  })

  it("keeps every character of the request and the reply except the name of the model", async () => {
    const rest =
      `"seed": 12345678901234567890, "temperature":1.0, "odd" : {"model": "inner", "s": "\\u00e9\\"model\\""}`
    server.answer(() => json(200, `{ ${rest}, "model" : "their-text" }`))
    const response = await post(gateway, "/v1/completions", `{${rest} ,"mod\\u0065l":\n"text"}`)
    assert.strictEqual(server.requests[0]?.bytes.toString(), `{${rest} ,"mod\\u0065l":\n"their-text"}`)
    assert.strictEqual(await response.text(), `{ ${rest}, "model" : "text" }`)
  })

  it("streams, event by event", async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const [one, two] = ["Hello", " world"].map((text) => completion(text))
    server.answer(() => ({
      pieces: [frames(one), promise, frames(two, { ...completion(""), choices: [], usage }, "[DONE]")]
    }))
    const stream = await clientOf(gateway).completions.create({ model: "text", prompt: "Hi", stream: true })
    const texts: Array<unknown> = []
    for await (const { choices, model } of stream) {
      texts.push([model, choices[0]?.text])
      resolve()
    }
    assert.deepStrictEqual(texts, [["text", "Hello"], ["text", " world"], ["text", undefined]])
    assert.deepInclude(await lastRecord(gateway), {
      stream: true,
      outcome: "ok",
      usage: { prompt_tokens: 5, completion_tokens: 3, reasoning_tokens: 0 }
    })
  })

  it("fails over to another account until the first byte, including for an error within a good reply", async () => {
    const answers = [
      json(429, { error: { message: "slow down" } }),
      json(200, { error: { message: "the engine is down" } }),
      json(200, completion("fine"))
    ]
    server.answer((_, index) => answers[index]!)
    const reply = await clientOf(gateway).completions.create({ model: "text", prompt: "Hi" })
    assert.strictEqual(reply.choices[0]?.text, "fine")
    server.answer((_, index) =>
      index === 0 ? { pieces: [frames({ error: { message: "busy" } })] } : { pieces: [frames(completion("good"))] }
    )
    const stream = await clientOf(gateway).completions.create({ model: "text", prompt: "Hi", stream: true })
    for await (const { choices } of stream) assert.strictEqual(choices[0]?.text, "good")
    assert.lengthOf(server.requests, 2)
  })

  it("is asked once where the caller is at fault, with the server's words", async () => {
    const expected = {
      400: [400, "invalid_request"],
      413: [413, "request_too_large"],
      415: [415, "unsupported_media_type"],
      422: [422, "invalid_request"]
    } as const
    for (const [status, [shown, code]] of Object.entries(expected)) {
      server.answer(() => json(Number(status), { error: { message: "prompt is odd", param: "prompt" } }))
      const error = await errorOf(clientOf(gateway).completions.create({ model: "text", prompt: "Hi" }))
      assert.deepStrictEqual([error.status, error.code, error.param], [shown, code, "prompt"])
      assert.match(error.message, /prompt is odd/)
      assert.lengthOf(server.requests, 1)
    }
  })

  it("ends with the error as an event when the server breaks off", async () => {
    server.answer(() => ({ pieces: [frames(completion("Hel")), `data: {"id":"cut`], after: "reset" }))
    const stream = await clientOf(gateway).completions.create({ model: "text", prompt: "Hi", stream: true })
    const texts: Array<unknown> = []
    let failure: unknown
    try {
      for await (const { choices } of stream) texts.push(choices[0]?.text)
    } catch (error) {
      failure = error
    }
    assert.deepStrictEqual(texts, ["Hel"])
    assert(failure instanceof APIError)
    assert.strictEqual(failure.code, "upstream_error")
    assert.deepInclude(await lastRecord(gateway), { outcome: "failed", error: "upstream_error" })
  })

  it("passes an error of the server within a stream on, and is recorded as failed", async () => {
    const events = frames(completion("Hel"), { error: { message: "out of memory", type: "server_error" } })
    server.answer(() => ({ pieces: [events] }))
    const response = await post(gateway, "/v1/completions", `{"model":"text","prompt":"Hi","stream":true}`)
    assert.strictEqual(await response.text(), events.replaceAll("their-text", "text"))
    assert.deepInclude(await lastRecord(gateway), { outcome: "failed", error: "upstream_error" })
  })

  it("stops the server when the caller leaves", async () => {
    server.answer(() => ({ pieces: [frames(completion("Hel"))], after: "hang" }))
    const controller = new AbortController()
    const stream = await clientOf(gateway).completions.create(
      { model: "text", prompt: "Hi", stream: true },
      { signal: controller.signal }
    )
    await stream[Symbol.asyncIterator]().next()
    controller.abort()
    await server.until((requests) => requests[0]?.outcome === "aborted")
  })

  it("counts against the key's tokens by an estimate where the server counts none", async () => {
    server.answer(() => ({ pieces: [frames(completion("one two three four"), "[DONE]")] }))
    await (await post(gateway, "/v1/completions", `{"model":"text","prompt":"Hi","stream":true}`)).text()
    const { usage } = await lastRecord(gateway) as { usage: { prompt_tokens: number; completion_tokens: number } }
    assert.isAbove(usage.prompt_tokens, 0)
    assert.isAbove(usage.completion_tokens, 2)
  })

  it("is for keys that may use the model, and for known models", async () => {
    await addKey({ key: "for-ranks", models: ["ranker"] })
    const response = await post(gateway, "/v1/completions", `{"model":"text","prompt":"Hi"}`, {
      authorization: "Bearer for-ranks"
    })
    assert.strictEqual(response.status, 403)
    const unknown = await errorOf(clientOf(gateway).completions.create({ model: "nobody's", prompt: "Hi" }))
    assert.deepStrictEqual([unknown.status, unknown.code], [400, "model_not_found"])
    const missing = await post(gateway, "/v1/completions", `{"prompt":"Hi"}`)
    assert.deepInclude((await missing.json() as { error: object }).error, { param: "model" })
  })
})

describe("the limits of a key", () => {
  const ask = (rest: object = {}) =>
    post(gateway, "/v1/completions", JSON.stringify({ model: "text", prompt: "Hi", ...rest }), {
      authorization: "Bearer limited"
    })

  it("count the tokens of the server", async () => {
    await addKey({ key: "limited", limits: [{ window: "hour", tokens: 20 }] })
    server.answer(() => json(200, completion("Hello", { usage: { prompt_tokens: 5, completion_tokens: 15 } })))
    const first = await ask()
    await first.text()
    assert.deepStrictEqual([first.status, first.headers.get("x-ratelimit-limit-tokens")], [200, "20"])
    const second = await ask()
    assert.deepInclude((await second.json() as { error: object }).error, { code: "rate_limit_exceeded" })
    assert.lengthOf(server.requests, 1)
  })

  it("count its concurrent requests", async () => {
    await addKey({ key: "limited", max_inflight: 1 })
    server.answer(() => ({ pieces: [frames(completion("Hel"))], after: "hang" }))
    const running = await ask({ stream: true })
    assert.strictEqual((await ask()).status, 429)
    await running.body?.cancel()
  })
})

describe("a driver that carries nothing", () => {
  it("answers 404 that names its driver, after it asked for a key", async () => {
    const other = await startOver(server, {}, { driver: "embedded", base_url: "", models: {} })
    const response = await fetch(`${other.url}/v1/rerank`, { method: "POST", body: "{}" })
    assert.strictEqual(response.status, 401)
    const told = await fetch(`${other.url}/v1/rerank`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: "{}"
    })
    const { error } = await told.json() as { error: { code: string; message: string } }
    assert.deepStrictEqual([told.status, error.code], [404, "not_found"])
    assert.match(error.message, /\/v1\/rerank.*"embedded".*operator/)
    await other.stop()
  })
})
