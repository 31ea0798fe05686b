/** Limits that hold whatever requests produce, and what serves beyond a limit. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { textBlock, wholeMessage } from "../support/messagesServer.ts"
import { type Answer, chunk, frames, json, type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"
import { plainRequests } from "../support/plainRequests.ts"
import { styleNames } from "../support/styleClients.ts"
import { untilHolds } from "../support/until.ts"
import { admin } from "./support.ts"

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())
afterEach(() => gateway.stop())

const id = keyId(businessKey, sha256Hex)

const configOf = (limits: ReadonlyArray<RawConfig>): RawConfig => ({
  keys: [businessKey],
  key_records: { [id]: { limits, models: ["big", "bounded", "claude/sonnet"] } },
  accounts: [{ token: "sk-a" }, { upstream: "claude", token: "sk-c" }, { upstream: "blind", token: "sk-b" }],
  upstream: {
    driver: "openai",
    base_url: server.baseUrl,
    models: {
      big: "big",
      bounded: { model: "bounded", max_tokens: 7 },
      cheap: { model: "cheap", context_window: 400, input: ["text"] }
    }
  },
  upstreams: {
    claude: { driver: "messages", base_url: server.baseUrl.replace(/\/v1$/, ""), models: { sonnet: "sonnet" } },
    blind: { driver: "openai", base_url: server.baseUrl, models: { blind: "blind" }, fields: "drop" }
  },
  routes: { kept: { targets: ["blind/blind"], schemas: "required" } },
  prices: {
    "*": { output: 1_000_000 },
    "cheap": { output: 1_000 },
    "blind/*": { output: 1 },
    "claude/*": { per_tool_call: { web_search: 30 } }
  }
})

const start = async (limits: ReadonlyArray<RawConfig>) => {
  gateway = await startGateway(configOf(limits))
}

const post = (body: object, path = "/v1/chat/completions") =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify(body)
  })

const messages = [{ role: "user", content: "Hi" }]

const chat = (fields: object = {}, model = "big") => post({ model, messages, ...fields })

/** A reply with so many tokens. */
const reply = (completion_tokens: number, stream = false): Answer => {
  const usage = { prompt_tokens: 2, completion_tokens, total_tokens: 2 + completion_tokens }
  return stream
    ? { pieces: [frames(chunk({ content: "Yes" }), chunk({}, "stop"), { ...chunk({}), choices: [], usage }, "[DONE]")] }
    : json(200, {
      ...chunk({}),
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: "Yes" }, finish_reason: "stop" }],
      usage
    })
}

const sent = () => server.requests.at(-1)!.body

interface Faulty {
  readonly error: { readonly message: string; readonly param: string | null; readonly code: string }
}

/** The used cost of the key's first limit, once nothing runs. */
const usedCost = async () => {
  let used: string | undefined
  await untilHolds(async () => {
    const { items } = await admin(gateway.url, "GET", "/admin/keys") as unknown as {
      readonly items: ReadonlyArray<{
        readonly usage: {
          readonly in_flight: number
          readonly windows: ReadonlyArray<{ readonly cost: { readonly used: string } }>
        }
      }>
    }
    used = items[0]?.usage.windows[0]?.cost.used
    return items[0]?.usage.in_flight === 0
  })
  return used
}

const faultOf = async (answer: Response) => {
  const { error } = await answer.json() as Faulty
  return [answer.status, error.param, error.code]
}

const metric = async (name: string) => {
  const page = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
  return new RegExp(`^${name} (.*)$`, "m").exec(await page.text())?.[1]
}

const isStream = (body: Readonly<Record<string, unknown>>) => body["stream"] === true

describe("a strict limit", () => {
  it("lets exactly those of thirty concurrent requests pass that fit with all that they may produce, and gives back the rest", async () => {
    await start([{ window: "month", cost: 100, strict: true }])
    let release = () => {}
    const refused = new Promise<void>((resolve) => release = resolve)
    server.answer(() => ({ ...reply(3), pieces: [refused, ...reply(3).pieces!] }))
    let refusals = 0
    const statuses = await Promise.all(Array.from({ length: 30 }, async () => {
      const { status } = await chat({ max_tokens: 30 })
      if (status === 429 && ++refusals === 27) release()
      return status
    }))
    assert.deepStrictEqual(statuses.filter((status) => status === 200).length, 3)
    assert.strictEqual(await usedCost(), "9")
    server.answer(() => reply(91))
    assert.strictEqual((await chat({ max_tokens: 92 })).status, 429)
    assert.strictEqual((await chat({ max_tokens: 91 })).status, 200)
    assert.strictEqual(await usedCost(), "100")
    assert.strictEqual(await metric("gateway_budget_overrun_total"), undefined)
  })

  it("is billed in full and counted where a server produces more than it was asked for", async () => {
    await start([{ window: "month", cost: 100, strict: true }])
    server.answer(() => reply(40))
    assert.strictEqual((await chat({ max_tokens: 30 })).status, 200)
    assert.strictEqual(await usedCost(), "40")
    assert.strictEqual(await metric("gateway_budget_overrun_total"), "1")
  })

  it("refuses a request without a bound with the field to set, in every style", async () => {
    await start([{ window: "month", tokens: 1_000, strict: true }])
    const fields = {
      chat: "max_completion_tokens",
      responses: "max_output_tokens",
      messages: "max_tokens",
      generate: "generationConfig.maxOutputTokens"
    }
    for (const style of styleNames) {
      const { body, path } = plainRequests[style]
      const asked = { ...body(false), ...style === "generate" ? {} : { model: "big" }, max_tokens: undefined }
      const answer = await post(asked, path(false).replace("upstream-chat", "big"))
      assert.strictEqual(answer.status, 400, style)
      assert.include(await answer.text(), fields[style])
    }
    assert.deepStrictEqual(await faultOf(await post({ model: "big", prompt: "Hi" }, "/v1/completions")), [
      400,
      "max_tokens",
      "invalid_request"
    ])
    assert.deepStrictEqual(await faultOf(await post({ model: "big", prompt: "a cat" }, "/v1/images/generations")), [
      400,
      "model",
      "invalid_request"
    ])
    server.answer(({ path }) => path.endsWith("/rerank") ? json(200, { results: [] }) : reply(3))
    assert.strictEqual((await post({ model: "big", query: "q", documents: ["a"] }, "/v1/rerank")).status, 200)
    assert.strictEqual((await chat({ max_tokens: 9 })).status, 200)
  })

  it("takes the limit of the model's entry and sends it, and leaves the caller's as it is", async () => {
    await start([{ window: "month", cost: 100, strict: true }])
    server.answer(() => reply(3))
    for (const style of ["chat", "responses"] as const) {
      const { body, path } = plainRequests[style]
      assert.strictEqual((await post({ ...body(false), model: "bounded" }, path())).status, 200)
      assert.strictEqual(sent()["max_tokens"], 7, style)
    }
    assert.strictEqual((await chat({ max_tokens: 9 }, "bounded")).status, 200)
    assert.strictEqual(sent()["max_tokens"], 9)
    assert.strictEqual((await chat({ max_tokens: 92 }, "bounded")).status, 429)
  })

  it("counts the vendor's tools by their bounds, and refuses one without", async () => {
    await start([{ window: "month", cost: 100, strict: true }])
    server.answer(() => wholeMessage([textBlock("Yes")], { usage: { input_tokens: 2, output_tokens: 3 } }))
    const ask = (tool: object) =>
      post({
        model: "claude/sonnet",
        max_tokens: 10,
        messages,
        tools: [{ type: "web_search_20250305", name: "web_search", ...tool }]
      }, "/v1/messages")
    const unbounded = await ask({})
    assert.strictEqual(unbounded.status, 400)
    assert.include(await unbounded.text(), "tools[0].max_uses")
    assert.strictEqual((await ask({ max_uses: 4 })).status, 429)
    assert.strictEqual((await ask({ max_uses: 3 })).status, 200)
  })

  it("sends nothing again after a try that is charged, and goes on after one that is refused", async () => {
    await start([{ window: "month", cost: 100, strict: true }])
    let calls = 0
    server.answer(() => ({ ...json(503, { error: { message: "later" } }), ...++calls === 1 ? {} : reply(3) }))
    assert.strictEqual((await chat({ max_tokens: 30 })).status, 200)
    assert.strictEqual(calls, 2)
    calls = 0
    server.answer(() => {
      calls++
      return { pieces: [frames(chunk({ role: "assistant", content: "" }))], after: "reset" }
    })
    assert.isAtLeast((await chat({ max_tokens: 30, stream: true })).status, 500)
    assert.strictEqual(calls, 1)
  })
})

const fallbacks = { window: "day", cost: 1, fallback: "cheap" }

/** Uses up a limit of 1. */
const useUp = async () => {
  server.answer(() => reply(2))
  assert.strictEqual((await chat()).status, 200)
  await usedCost()
}

describe("the fallback of a limit", () => {
  it("serves what exceeds the limit and says so, in every style, until a larger window ends it", async () => {
    await start([fallbacks, { window: "month", requests: 9 }])
    await useUp()
    server.answer(({ body }) => reply(2, isStream(body)))
    for (const style of styleNames) {
      for (const stream of [false, true]) {
        const { body, path } = plainRequests[style]
        const asked = style === "generate" ? body(stream) : { ...body(stream), model: "big" }
        const answer = await post(asked, path(stream).replace("upstream-chat", "big"))
        const text = await answer.text()
        assert.strictEqual(answer.status, 200, text)
        assert.strictEqual(answer.headers.get("x-gateway-fallback"), "day cost")
        assert.include(answer.headers.get("access-control-expose-headers"), "X-Gateway-Fallback")
        assert.strictEqual(answer.headers.get("x-gateway-model"), "cheap")
        assert.strictEqual(sent()["model"], "cheap")
        assert.match(text, /"model(?:Version)?":\s*"big"/)
      }
    }
    const { items } = await admin(gateway.url, "GET", "/admin/requests") as unknown as {
      readonly items: ReadonlyArray<{ readonly id: string }>
    }
    const record = await admin(gateway.url, "GET", `/admin/requests/${items[0]!.id}`)
    assert.deepStrictEqual(record["fallback"], { model: "cheap", limit: "day cost" })
    assert.strictEqual(await usedCost(), "2.016")
    const last = await chat()
    assert.deepStrictEqual(await faultOf(last), [429, null, "rate_limit_exceeded"])
    assert.isNull(last.headers.get("x-gateway-fallback"))
  })

  it("leaves the refusal to a shorter limit that is used up beside it, which says when it ends", async () => {
    await start([{ ...fallbacks, tokens: 1 }, { window: "minute", requests: 1 }])
    server.answer(() => reply(2))
    // The prompt is larger than the limit that has the fallback.
    assert.strictEqual((await chat()).headers.get("x-gateway-fallback"), "day tokens")
    await usedCost()
    const answer = await chat()
    assert.strictEqual(answer.status, 429)
    const { error } = await answer.json() as Faulty
    assert.match(error.message, /^This API key's limit of 1 request a minute is used up until [^;]*$/)
    assert.isAtMost(Number(answer.headers.get("retry-after")), 60)
    assert.isAtLeast(Number(answer.headers.get("retry-after")), 1)
    assert.isNull(answer.headers.get("x-should-retry"))
  })

  it("leaves a picture to a model with pictures, and a prompt beyond its window to the limit's refusal", async () => {
    await start([fallbacks])
    await useUp()
    const picture = {
      messages: [{
        role: "user",
        content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }]
      }]
    }
    const before = server.requests.length
    for (const fields of [picture, { messages: [{ role: "user", content: "a word ".repeat(500) }] }]) {
      const answer = await chat(fields)
      assert.deepStrictEqual(await faultOf(answer), [429, null, "rate_limit_exceeded"])
      assert.isNull(answer.headers.get("x-gateway-fallback"))
    }
    assert.lengthOf(server.requests, before)
    assert.strictEqual((await chat()).headers.get("x-gateway-fallback"), "day cost")
  })

  it("leaves a request that it cannot carry to the limit's refusal", async () => {
    await start([{ ...fallbacks, fallback: "blind/blind" }])
    await useUp()
    const answer = await chat({ modalities: ["text", "audio"], audio: { voice: "alloy", format: "wav" } })
    assert.deepStrictEqual(await faultOf(answer), [429, null, "rate_limit_exceeded"])
    assert.isNull(answer.headers.get("x-gateway-fallback"))
    server.answer(() => reply(1))
    assert.strictEqual((await chat()).headers.get("x-gateway-fallback"), "day cost")
  })

  it("leaves a strict schema that its route does not bind to the limit's refusal", async () => {
    await start([{ ...fallbacks, fallback: "kept" }])
    await useUp()
    const json_schema = { name: "any", schema: { type: "object" }, strict: true }
    const answer = await chat({ response_format: { type: "json_schema", json_schema } })
    assert.deepStrictEqual(await faultOf(answer), [429, null, "rate_limit_exceeded"])
    server.answer(() => reply(1))
    assert.strictEqual((await chat()).headers.get("x-gateway-fallback"), "day cost")
  })

  it("is a fault at its place if it names no model, and is shown with what is strict", async () => {
    await start([{ ...fallbacks, strict: true }])
    const changed = await fetch(`${gateway.url}/admin/keys/${id}`, {
      method: "PATCH",
      headers: { authorization: `Bearer ${adminKey}` },
      body: JSON.stringify({ limits: [{ window: "day", requests: 1, fallback: "nobody" }] })
    })
    assert.strictEqual(changed.status, 400)
    assert.include(await changed.text(), `key_records.${id}.limits[0].fallback`)
    const { items } = await admin(gateway.url, "GET", "/admin/keys") as unknown as {
      readonly items: ReadonlyArray<{ readonly limits: ReadonlyArray<object> }>
    }
    assert.deepInclude(items[0]!.limits[0], { strict: true, fallback: "cheap" })
    const own = await fetch(`${gateway.url}/v1/usage`, { headers: { authorization: `Bearer ${businessKey}` } })
    const { limits } = await own.json() as { readonly limits: ReadonlyArray<object> }
    assert.deepInclude(limits[0], { window: "day", strict: true, fallback: "cheap" })
  })
})
