/** Bills of the gateway: each vendor's usage in every style, tries that nobody saw, replies that break off, and what has no price. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { formatDecimal, parseDecimal } from "../../src/domain/decimal.ts"
import bills from "../fixtures/bills.json" with { type: "json" }
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { events, messageEvents, streamedMessage, textBlock, wholeMessage } from "../support/messagesServer.ts"
import {
  type Answer,
  chunk,
  frames,
  json,
  type OpenAiServer,
  type SeenRequest,
  startOpenAiServer
} from "../support/openaiServer.ts"
import { plainRequests } from "../support/plainRequests.ts"
import { styleNames } from "../support/styleClients.ts"
import { untilHolds } from "../support/until.ts"
import { admin } from "./support.ts"

let server: OpenAiServer
let gateway: RunningGateway
let origin: string
beforeAll(async () => {
  server = await startOpenAiServer()
  origin = server.baseUrl.replace(/\/v1$/, "")
})
afterAll(() => server.stop())
afterEach(() => gateway.stop())

const start = async (config: RawConfig) => {
  gateway = await startGateway({ keys: [businessKey], ...config })
}

const post = (path: string, body: object, signal: AbortSignal | null = null) =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify(body),
    signal
  })

const chat = (model: string, stream = false) =>
  post("/v1/chat/completions", { model, stream, messages: [{ role: "user", content: "Hi" }] })

type Row = Readonly<Record<string, unknown>>

/** The rows of usage by one dimension, once so many requests are over; by the values of the dimension. */
const usageBy = async (dimension: string, requests: number) => {
  let found: { readonly rows: ReadonlyArray<Row>; readonly totals: Row } | undefined
  await untilHolds(async () => {
    found = await admin(gateway.url, "GET", `/admin/usage?by=${dimension}`) as unknown as typeof found
    return found?.totals["requests"] === requests
  })
  return { totals: found!.totals, rows: new Map(found!.rows.map((row) => [row[dimension] as string, row])) }
}

/** The newest record. */
const record = async () => {
  const { items } = await admin(gateway.url, "GET", "/admin/requests") as unknown as {
    readonly items: ReadonlyArray<{ readonly id: string }>
  }
  return await admin(gateway.url, "GET", `/admin/requests/${items[0]!.id}`) as unknown as {
    readonly tries: ReadonlyArray<{ readonly cost: string | null }>
    readonly bill: Row & { readonly lines: ReadonlyArray<Row> }
  }
}

const upstream = (driver: string, base_url: string, models: ReadonlyArray<string>) => ({
  driver,
  base_url,
  models: Object.fromEntries(models.map((name) => [name, name]))
})

const isStream = ({ body, path }: SeenRequest) => body["stream"] === true || path.includes("streamGenerateContent")

/** How each family's server writes a reply with these fields beside its content. */
const written = {
  openai: (stream: boolean, fields: Row): Answer =>
    stream
      ? {
        pieces: [
          frames(chunk({ content: "Yes" }), chunk({}, "stop"), { ...chunk({}), choices: [], ...fields }, "[DONE]")
        ]
      }
      : json(200, {
        ...chunk({}),
        object: "chat.completion",
        choices: [{ index: 0, message: { role: "assistant", content: "Yes" }, finish_reason: "stop" }],
        ...fields
      }),
  messages: (stream: boolean, { usage }: Row): Answer =>
    (stream ? streamedMessage : wholeMessage)([textBlock("Yes")], { usage: usage as Row }),
  generate: (stream: boolean, fields: Row): Answer => {
    const candidates = (
      finish: object
    ) => [{ content: { role: "model", parts: [{ text: "Yes" }] }, index: 0, ...finish }]
    const last = { candidates: candidates({ finishReason: "STOP" }), ...fields }
    return stream ? { pieces: [frames({ candidates: candidates({}) }, last)] } : json(200, last)
  }
}

describe("the bill of a reply", () => {
  it("is the same in every style, streamed and whole, for each usage of the vendors", async () => {
    const names = bills.map((_, i) => `row-${i}`)
    const of = (family: string) => names.filter((_, i) => bills[i]!.family === family)
    await start({
      accounts: ["openai", "messages", "generate"].map((name) => ({ upstream: name, token: `sk-${name}` })),
      upstream: { driver: "embedded" },
      upstreams: {
        openai: upstream("openai", server.baseUrl, of("openai")),
        messages: upstream("messages", origin, of("messages")),
        generate: upstream("generate", origin, of("generate"))
      },
      prices: Object.fromEntries(bills.map(({ prices }, i) => [names[i], prices])) as RawConfig
    })
    server.answer((request) => {
      const name = request.body["model"] ?? /models\/([^:]+):/.exec(request.path)?.[1]
      const { family, reply } = bills[names.indexOf(String(name))]!
      return written[family as keyof typeof written](isStream(request), reply as Row)
    })
    let requests = 0
    for (const [i, { source = "prices" }] of bills.entries()) {
      for (const style of styleNames) {
        for (const stream of [false, true]) {
          const { body, path } = plainRequests[style]
          const sent = style === "generate" ? body(stream) : { ...body(stream), model: names[i] }
          const answer = await post(path(stream).replace("upstream-chat", names[i]!), sent)
          assert.strictEqual(answer.status, 200, await answer.text())
          requests++
        }
      }
      const { bill, tries } = await record()
      assert.strictEqual(bill["source"], source)
      assert.strictEqual(tries[0]?.cost, bills[i]!.cost)
    }
    const { rows } = await usageBy("model", requests)
    for (const [i, { cost, name }] of bills.entries()) {
      assert.strictEqual(rows.get(names[i]!)?.["cost"], formatDecimal(parseDecimal(cost)! * 8n), name)
    }
  })

  it("is by the list price of a well-known model without a price, in US dollars, and says of which day", async () => {
    const billed = async (config: RawConfig) => {
      await start({
        accounts: [{ token: "sk-a" }],
        upstream: upstream("openai", server.baseUrl, ["gpt-4o", "own"]),
        ...config
      })
      server.answer(({ body }) => written.openai(body["stream"] === true, { usage }))
      const usage = { prompt_tokens: 1_000_000, completion_tokens: 0, total_tokens: 1_000_000 }
      await (await chat("own")).text()
      await (await chat("gpt-4o")).text()
      await usageBy("model", 2)
      const { bill } = await record()
      await gateway.stop()
      return bill
    }
    const bill = await billed({})
    assert.deepInclude(bill, { cost: "2.5", source: "prices", by_prices: "2.5", unpriced: [] })
    assert.match(String(bill["listed"]), /^20\d\d-\d\d-\d\d$/)
    assert.deepInclude(await billed({ prices: { "gpt-4o": { input: 7 } } }), { cost: "7", listed: null })
    assert.deepInclude(await billed({ prices: { list: false, own: { input: 7 } } }), { cost: null, listed: null })
    assert.deepInclude(await billed({ currency: "EUR" }), { cost: null, listed: null })
    await start({})
  })

  it("is shown line by line with what has no price, beside the server's own figure", async () => {
    const models = { m: "m" }
    await start({
      accounts: [{ token: "sk-a" }, { upstream: "own", token: "sk-b" }],
      upstream: { driver: "openai", base_url: server.baseUrl, models },
      upstreams: { own: { driver: "openai", base_url: server.baseUrl, models: { o: "o" }, bill: "prices" } },
      prices: { m: { input: 2, tiers: { flex: { input: 1 } } }, o: { input: 3, output: 0 } }
    })
    const usage = {
      prompt_tokens: 1000,
      completion_tokens: 4,
      total_tokens: 1004,
      prompt_tokens_details: { cached_tokens: 400 }
    }
    server.answer(({ body }) =>
      written.openai(
        false,
        body["model"] === "o" ? { usage: { ...usage, cost: "0.5" } } : { usage, service_tier: "Turbo" }
      )
    )
    assert.strictEqual((await chat("m")).status, 200)
    assert.deepStrictEqual((await record()).bill, {
      cost: "0.002",
      source: "prices",
      listed: null,
      by_prices: "0.002",
      by_server: null,
      lines: [
        { unit: "input", amount: 600, price: "input", cost: "0.0012" },
        { unit: "cached_input", amount: 400, price: "input", cost: "0.0008" },
        { unit: "output", amount: 4, price: null, cost: "0" }
      ],
      unpriced: [{ unit: "output", amount: 4 }, { unit: "tiers.turbo", amount: 1 }]
    })
    assert.strictEqual((await chat("o")).status, 200)
    const { bill } = await record()
    assert.deepInclude(bill, { cost: "0.003", source: "prices", by_prices: "0.003", by_server: "0.5", unpriced: [] })
    const metrics = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
    const page = metrics.status === 200 ? await metrics.text() : ""
    assert.match(page, /^gateway_unpriced_total\{unit="output"\} 4$/m)
    assert.match(page, /^gateway_unpriced_total\{unit="tiers"\} 1$/m)
  })
})

const empty = written.openai(true, { usage: { prompt_tokens: 100, completion_tokens: 1, total_tokens: 101 } })
/** Only its end says that it has no content. */
const withoutContent: Answer = { pieces: [String(empty.pieces?.[0]).replace("\"Yes\"", "\"\"")] }

const two = (): RawConfig => ({
  accounts: [{ upstream: "first", token: "sk-first" }, { upstream: "second", token: "sk-second" }],
  upstream: { driver: "embedded" },
  upstreams: {
    first: upstream("openai", server.baseUrl, ["m"]),
    second: upstream("openai", server.baseUrl, ["m"])
  },
  routes: { fast: ["first/m", "second/m"] },
  prices: { "first/m": { input: 1_000_000, per_request: 7 }, "second/m": { input: 3_000_000 } }
})

describe("a try that the caller saw nothing of", () => {
  it("is wasted cost of its own account and target, if its server worked for it", async () => {
    await start(two())
    server.answer(({ key }) =>
      key === "sk-first"
        ? withoutContent
        : written.openai(true, { usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 } })
    )
    const answer = await chat("fast", true)
    assert.include(await answer.text(), "Yes")
    const { rows, totals } = await usageBy("target", 1)
    const shown = (
      row: Row | undefined
    ) => [row?.["requests"], row?.["prompt_tokens"], row?.["cost"], row?.["wasted_cost"]]
    assert.deepStrictEqual(shown(rows.get("first/m")), [0, 0, "107", "107"])
    assert.deepStrictEqual(shown(rows.get("second/m")), [1, 10, "30", "0"])
    assert.deepStrictEqual(shown(totals), [1, 10, "137", "107"])
    const byAccount = await usageBy("account", 1)
    assert.deepStrictEqual([...byAccount.rows.values()].map((row) => row["cost"]).sort(), ["107", "30"])
    const { bill, tries } = await record()
    assert.deepStrictEqual(tries.map(({ cost }) => cost), ["107", "30"])
    assert.strictEqual(bill["cost"], "30")
  })

  it("costs nothing if its server refused it", async () => {
    await start(two())
    server.answer(({ key }) =>
      key === "sk-first"
        ? json(500, { error: { message: "no" } })
        : written.openai(true, { usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 } })
    )
    assert.include(await (await chat("fast", true)).text(), "Yes")
    const { totals } = await usageBy("target", 1)
    assert.deepStrictEqual([totals["cost"], totals["wasted_cost"]], ["30", "0"])
  })

  it("is wasted cost of a request that fails, with the estimate of its prompt", async () => {
    const { prices, upstreams, ...rest } = two()
    const { first } = upstreams as Record<string, RawConfig[string]>
    await start({
      ...rest,
      upstreams: { first: first! },
      accounts: [{ upstream: "first", token: "sk-first" }],
      routes: {},
      prices: prices!
    })
    server.answer(() => ({ pieces: [frames(chunk({ role: "assistant", content: "" }))], after: "reset" }))
    const answer = await chat("first/m", true)
    assert.isAtLeast(answer.status, 500, await answer.text())
    const { totals } = await usageBy("target", 1)
    assert.strictEqual(totals["cost"], totals["wasted_cost"])
    assert.isAbove(Number(totals["cost"]), 7)
    assert.strictEqual(
      Number(totals["cost"]) % (Number(totals["prompt_tokens"]) + 7),
      0,
      "each try costs its prompt and its request"
    )
  })
})

describe("a reply that breaks off", () => {
  it("costs what its start said, and an estimate of what came", async () => {
    await start({
      accounts: [{ token: "sk-a" }],
      upstream: { driver: "messages", base_url: origin, models: { m: "m" } },
      prices: {
        m: { input: 1_000_000, cached_input: 100_000, cache_write: 2_000_000, cache_write_1h: 3_000_000, output: 0 }
      }
    })
    const usage = {
      input_tokens: 10,
      cache_read_input_tokens: 20,
      cache_creation_input_tokens: 7,
      cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 4 }
    }
    const all = messageEvents([textBlock("Once upon a time")], { usage })
    server.answer(() => ({ pieces: [events(...all.slice(0, 4))], after: "reset" }))
    await (await chat("m", true)).text()
    const { totals } = await usageBy("target", 1)
    assert.deepInclude(totals, {
      prompt_tokens: 37,
      cached_tokens: 20,
      cache_write_tokens: 7,
      wasted_cost: "0",
      cost: "30"
    })
    assert.strictEqual(totals["prompt_cache_hit_rate"], 20 / 37)
    assert.isAbove(Number(totals["completion_tokens"]), 0)
  })
})

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
const dataUrl = `data:image/png;base64,${pixel}`

/** A question about two pictures in each style, and one about the picture that a tool has returned. */
const aboutPictures: ReadonlyArray<readonly [path: string, body: object]> = [
  ["/v1/chat/completions", {
    model: "m",
    messages: [{
      role: "user",
      content: [
        { type: "text", text: "Which?" },
        ...[1, 2].map(() => ({ type: "image_url", image_url: { url: dataUrl } }))
      ]
    }]
  }],
  ["/v1/responses", {
    model: "m",
    input: [{ role: "user", content: [1, 2].map(() => ({ type: "input_image", image_url: dataUrl })) }]
  }],
  ["/v1/messages", {
    model: "m",
    max_tokens: 10,
    messages: [
      { role: "user", content: "Look" },
      { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "look", input: {} }] },
      {
        role: "user",
        content: [{
          type: "tool_result",
          tool_use_id: "t1",
          content: [1, 2].map(() => ({
            type: "image",
            source: { type: "base64", media_type: "image/png", data: pixel }
          }))
        }]
      }
    ]
  }],
  ["/v1beta/models/m:generateContent", {
    contents: [{ role: "user", parts: [1, 2].map(() => ({ inlineData: { mimeType: "image/png", data: pixel } })) }]
  }]
]

describe("the pictures of a prompt", () => {
  it("have their price in every style and in every try, in bills and strict budgets", async () => {
    await start({
      accounts: [{ upstream: "first", token: "sk-first" }, { upstream: "second", token: "sk-second" }],
      upstream: { driver: "embedded" },
      upstreams: {
        first: {
          ...upstream("openai", server.baseUrl, []),
          models: { m: { model: "m", max_tokens: 5 } },
          budgets: [{ window: "month", cost: 32, strict: true }]
        },
        second: upstream("openai", server.baseUrl, ["m"])
      },
      prices: { "first/m": { input: 0, output: 0, per_input_image: 3 }, "second/m": { per_request: 1 } }
    })
    const whole = written.openai(false, { usage: { prompt_tokens: 9, completion_tokens: 1 } })
    const costs = async (path: string, body: object) => {
      const reply = await post(path, body)
      assert.strictEqual(reply.status, 200, await reply.text())
      return (await record()).tries.map(({ cost }) => cost)
    }
    const pieces = async () =>
      (await record()).bill.lines.filter(({ unit }) => String(unit).startsWith("per_")).map((line) =>
        Object.values(line)
      )
    server.answer(({ key }) => key === "sk-first" ? withoutContent : whole)
    for (const [path, body] of aboutPictures) {
      assert.deepStrictEqual(await costs(path, body), ["6", "1"], path)
      assert.deepStrictEqual(await pieces(), [["per_request", 1, "per_request", "1"]])
    }
    server.answer(() => whole)
    const [[path, body]] = aboutPictures as [readonly [string, object]]
    assert.deepStrictEqual(await costs(path, body), ["6"])
    assert.deepStrictEqual(await pieces(), [["per_input_image", 2, "per_input_image", "6"]])
    // Five times two pictures leave 2 of the budget, which is too little for two more.
    assert.deepStrictEqual(await costs(path, body), ["1"])
    assert.strictEqual((await chat("first/m")).status, 200)
    assert.deepStrictEqual(await pieces(), [])
  })
})

describe("the pieces of relayed requests", () => {
  it("have their prices: pictures, characters, search units and seconds", async () => {
    const pieces = {
      "pic": { per_image: 2, image_output: 1_000_000 },
      "tts": { per_character: "0.5" },
      "rank": { per_query: 3 },
      "stt": { per_second: "0.01" }
    }
    await start({
      accounts: [{ token: "sk-a" }],
      upstream: upstream("openai", server.baseUrl, Object.keys(pieces)),
      prices: pieces
    })
    const requests: ReadonlyArray<readonly [path: string, body: object | FormData, answer: Answer, cost: string]> = [
      [
        "/v1/images/generations",
        { model: "pic", prompt: "a cat" },
        json(200, {
          created: 1,
          data: [{ b64_json: "{[" }, { url: "x" }],
          usage: {
            input_tokens: 5,
            output_tokens: 40,
            total_tokens: 45,
            input_tokens_details: { text_tokens: 5, image_tokens: 0 }
          }
        }),
        "44"
      ],
      ["/v1/audio/speech", { model: "tts", input: "Grüße 🎉", voice: "a" }, {
        headers: { "content-type": "audio/mpeg" },
        pieces: ["RIFF"]
      }, "3.5"],
      [
        "/v1/rerank",
        { model: "rank", query: "q", documents: ["a"] },
        json(200, {
          results: [{ index: 0, relevance_score: 1 }],
          meta: { billed_units: { search_units: 2 } }
        }),
        "6"
      ]
    ]
    for (const [path, body, answer] of requests) {
      server.answer(() => answer)
      assert.strictEqual((await post(path, body).then(async (reply) => (await reply.arrayBuffer(), reply))).status, 200)
    }
    const form = new FormData()
    form.append("model", "stt")
    form.append("file", new Blob(["RIFF"]), "a.wav")
    server.answer(() => json(200, { text: "Hi", usage: { type: "duration", seconds: 12.5 } }))
    const heard = await fetch(`${gateway.url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: form
    })
    assert.strictEqual(heard.status, 200, await heard.text())
    const { rows } = await usageBy("model", 4)
    assert.deepStrictEqual(
      Object.keys(pieces).map((model) => rows.get(model)?.["cost"]),
      [...requests.map(([, , , cost]) => cost), "0.125"]
    )
  })
})
