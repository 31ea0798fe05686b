/**
 * One record for each request: log lines, metrics, the history and replies agree, for every style, streamed and whole,
 * whatever the outcome.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { complete } from "../../src/inProcess/complete.ts"
import { adminKey } from "../support/gateway.ts"
import { ways } from "../support/sameReply.ts"
import { styleClients, styleNames } from "../support/styleClients.ts"
import { accounts, admin, type Site, startSite } from "./support.ts"

/** The fields of a request's log line that usage has too. */
interface Line {
  readonly request_id: string
  readonly style: string
  readonly key?: string
  readonly model?: string
  readonly account?: string
  readonly outcome: string
  readonly status?: number
  readonly attempts?: number
  readonly tool_calls?: number
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly queue_ms?: number
  readonly duration_ms: number
}

const key = "sk-limited"
const id = keyId(key, sha256Hex)
const tight = "sk-tight"
const tightId = keyId(tight, sha256Hex)

let site: Site
const lines: Array<Line> = []
beforeAll(async () => {
  site = await startSite({
    keys: [key, tight],
    key_records: {
      [id]: { limits: [{ window: "month", requests: 1_000_000, tokens: 1_000_000_000 }] },
      [tightId]: { models: ["upstream-reasoner"], limits: [{ window: "month", requests: 1 }] }
    },
    accounts: accounts("a", "b", "c"),
    embeddings: { provider: "builtin" }
  }, {
    logger: Logger.make((options) => {
      const { annotations, message } = Logger.formatStructured.log(options)
      if (message === "request") lines.push(annotations as unknown as Line)
    }),
    logLevel: "Debug"
  })
})
afterAll(() => site.stop())

const post = (path: string, body: unknown, bearer: string | undefined, signal?: AbortSignal) =>
  fetch(`${site.url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` })
    },
    body: JSON.stringify(body),
    signal: signal ?? null
  })

const chatBody = (content: string, stream: boolean, model = "upstream-chat") => ({
  model,
  stream,
  messages: [{ role: "user", content }]
})

const metricsText = async () =>
  (await fetch(`${site.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })).text()

/** Sums of samples by one label, for samples whose labels contain `having`. */
const samples = (text: string, name: string, label: string, having = ""): Map<string, number> => {
  const found = new Map<string, number>()
  for (const line of text.split("\n")) {
    const match = /^(\w+)\{(.*)\} (\S+)$/.exec(line)
    if (match?.[1] !== name || !match[2]!.includes(having)) continue
    const value = new RegExp(`(?:^|,)${label}="([^"]*)"`).exec(match[2]!)?.[1] ?? ""
    found.set(value, (found.get(value) ?? 0) + Number(match[3]))
  }
  return found
}

const five = ["chat", "responses", "embeddings", "messages", "generate"]

interface Row {
  readonly key: string
  readonly model: string
  readonly account: string
  readonly style: string
  readonly requests: number
  readonly succeeded: number
  readonly failed: number
  readonly left: number
  readonly counted_requests: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
  readonly attempts: number
  readonly tool_calls: number
  readonly queue_ms: number
  readonly duration_ms: number
  readonly errors: Readonly<Record<string, number>>
}

const rowsBy = async (by: string): Promise<ReadonlyArray<Row>> =>
  (await admin(site.url, "GET", `/admin/usage?by=${by}&limit=10000`))["rows"] as ReadonlyArray<Row>

const sum = (numbers: Iterable<number | undefined>) =>
  [...numbers].reduce((total: number, one) => total + (one ?? 0), 0)

/** Waits until this many requests have ended. */
const over = async (count: number) => {
  while (lines.filter(({ style }) => five.includes(style)).length < count) await new Promise(setImmediate)
}

describe("usage of requests", () => {
  it("agrees with log lines, metrics and replies for all styles, faults and disconnections", async () => {
    const before = await metricsText()
    const earlier = lines.length
    let asked = 0
    let told = { prompt: 0, completion: 0 }
    const clients = styleClients(site.url, { apiKey: key })
    const strangers = styleClients(site.url, { apiKey: "a-token-of-its-own" })
    for (const style of styleNames) {
      for (const way of ways) {
        for (
          const content of [
            "!say hello there",
            "!usage {\"prompt_tokens\":90,\"completion_tokens\":50}\n!say counted upstream",
            "!think hm\n!say [\"one\",\" two\"]"
          ]
        ) {
          const got = await clients[style][way]({ content })
          assert.strictEqual(got._tag, "Got")
          if (got._tag === "Got") {
            told = { prompt: told.prompt + got.usage.prompt, completion: told.completion + got.usage.completion }
          }
          asked++
        }
        for (
          const content of [
            "!fault too-long",
            "!say one\n!fault content-filter",
            "!say [\"one\",\" two\"]\n!fault hint after=1"
          ]
        ) {
          await clients[style][way]({ content })
          asked++
        }
        await strangers[style][way]({ content: "!say mine" })
        asked++
      }
    }
    for (const [style, way] of [["chat", "whole"], ["messages", "streamed"]] as const) {
      // The first attempt fails, and another account answers.
      await Effect.runPromise(site.reference.fail({ name: "trouble" }))
      const got = await clients[style][way]({ content: "!say over" })
      assert.strictEqual(got._tag, "Got")
      if (got._tag === "Got") {
        told = { prompt: told.prompt + got.usage.prompt, completion: told.completion + got.usage.completion }
      }
      asked++
    }
    for (const stream of [true, false]) {
      const abort = new AbortController()
      const left = post(
        "/v1/chat/completions",
        chatBody("!say [\"one\",\" two\"]\n!fault hang-mid-stream after=1", stream),
        key,
        abort.signal
      )
      await site.until(({ streams }) => streams === 1)
      if (stream) await left
      abort.abort()
      await left.then((response) => response.text()).catch(() => "left")
      await site.until(({ streams }) => streams === 0)
      asked++
    }
    for (
      const [body, bearer] of [
        [chatBody("hi", false), undefined],
        [chatBody("hi", false, "nobody"), key],
        [{}, key],
        [chatBody("hi", false), tight],
        [chatBody("!say yes", false, "upstream-reasoner"), tight],
        [chatBody("!say no", true, "upstream-reasoner"), tight]
      ] as const
    ) {
      await (await post("/v1/chat/completions", body, bearer)).text()
      asked++
    }
    const embedded = await post("/v1/embeddings", { model: "upstream-chat", input: ["some words", "others"] }, key)
    told.prompt += (await embedded.json() as { usage: { prompt_tokens: number } }).usage.prompt_tokens
    await (await post("/v1/messages/count_tokens", chatBody("count me", false), key)).text()
    asked += 2
    for (const path of ["/v1/models", "/v1beta/models", "/msgcompat/v1/models", "/healthz", "/admin/queue/status"]) {
      await (await fetch(`${site.url}${path}`, { headers: { authorization: `Bearer ${adminKey}` } })).text()
    }
    await over(asked)

    const own = lines.slice(earlier).filter(({ style }) => five.includes(style))
    assert.lengthOf(own, asked)
    const rows = await rowsBy("key,model,account,style")
    const after = await metricsText()

    // Every row is the sum of its log lines.
    const place = (one: { key?: string; model?: string; account?: string; style: string }) =>
      [one.key ?? "none", one.model ?? "none", one.account ?? "none", one.style].join(" ")
    assert.deepStrictEqual(rows.map(place).sort(), [...new Set(own.map(place))].sort())
    for (const row of rows) {
      const its = own.filter((line) => place(line) === place(row))
      assert.strictEqual(row.requests, its.length, place(row))
      assert.strictEqual(row.requests, row.succeeded + row.failed + row.left)
      assert.strictEqual(row.left, its.filter(({ outcome }) => outcome === "client_left").length)
      assert.strictEqual(row.failed, sum(Object.values(row.errors)))
      assert.strictEqual(row.prompt_tokens, sum(its.map((line) => line.input_tokens)))
      assert.strictEqual(row.completion_tokens, sum(its.map((line) => line.output_tokens)))
      assert.strictEqual(row.total_tokens, row.prompt_tokens + row.completion_tokens)
      assert.strictEqual(row.attempts, sum(its.map(({ attempts }) => attempts)))
      assert.strictEqual(row.tool_calls, sum(its.map(({ tool_calls }) => tool_calls)))
      assert.strictEqual(row.queue_ms, sum(its.map(({ queue_ms }) => queue_ms)))
    }
    assert.strictEqual(sum(rows.map(({ left }) => left)), 2)
    assert.isAtLeast(own.filter(({ attempts }) => attempts === 2).length, 2)

    // The metrics agree as well.
    const requests = [before, after].map((text) => samples(text, "gateway_requests_total", "style"))
    const inMetrics = (style: string) => (requests[1]!.get(style) ?? 0) - (requests[0]!.get(style) ?? 0)
    for (const style of five) {
      assert.strictEqual(
        inMetrics(style),
        sum(rows.filter((row) => row.style === style).map((row) => row.requests)),
        style
      )
    }
    for (const [type, measure] of [["input", "prompt_tokens"], ["output", "completion_tokens"]] as const) {
      const [first, last] = [before, after].map((text) =>
        sum(samples(text, "gen_ai_client_token_usage_sum", "gen_ai_token_type", `gen_ai_token_type="${type}"`).values())
      )
      assert.strictEqual(last! - first!, sum(rows.map((row) => row[measure])), type)
    }

    // So do the minutes of the last hour, as far as they go, which have every request since the start.
    const { errors, minutes } = await admin(site.url, "GET", "/admin/minutes") as unknown as {
      readonly errors: ReadonlyArray<
        {
          readonly code: string
          readonly count: number
          readonly last_request_id: string
          readonly key: { readonly value: string; readonly count: number } | null
        }
      >
      readonly minutes: ReadonlyArray<Record<string, number | null>>
    }
    assert.lengthOf(minutes, 60)
    const inMinutes = (name: string) => sum(minutes.map((each) => each[name] ?? 0))
    for (
      const [name, measure] of [
        ["requests", "requests"],
        ["ok", "succeeded"],
        ["failed", "failed"],
        ["left", "left"],
        ["tokens", "total_tokens"]
      ] as const
    ) {
      assert.strictEqual(inMinutes(name), sum(rows.map((row) => row[measure])), name)
    }
    assert.isTrue(minutes.some((each) => each["first_event_p95_ms"] !== null))
    for (const [code, its] of Map.groupBy(errors, (each) => each.code)) {
      assert.strictEqual(sum(its.map(({ count }) => count)), sum(rows.map((row) => row.errors[code])), code)
    }
    for (const { code, key, last_request_id } of errors) {
      assert.match(last_request_id, /^req_/)
      if (key === null) continue
      assert.isAtMost(key.count, sum(rows.filter((row) => row.key === key.value).map((row) => row.errors[code])))
    }
    assert.strictEqual(sum(errors.map(({ count }) => count)), inMinutes("failed"))

    // What the accounts did is listed with them.
    const { items: listed } = await admin(site.url, "GET", "/admin/accounts?page_size=100")
    const work = listed as ReadonlyArray<{ requests_hour: number; failed_hour: number; hash: string; slots: number }>
    for (const { failed_hour, hash, requests_hour, slots } of work) {
      assert.isAtLeast(requests_hour, sum(rows.filter((row) => row.account === hash).map((row) => row.requests)))
      assert.isAtMost(failed_hour, requests_hour)
      assert.isAbove(slots, 0)
    }
    assert.isAbove(sum(work.map(({ failed_hour }) => failed_hour)), 0)

    // Replies report the same; requests that were cut off or cancelled count in addition.
    const succeeded = own.filter(({ key: of, outcome }) => of === id && ["stop", "ok"].includes(outcome))
    assert.strictEqual(sum(succeeded.map(({ input_tokens }) => input_tokens)), told.prompt)
    assert.strictEqual(sum(succeeded.map(({ output_tokens }) => output_tokens)), told.completion)
    for (const line of own.filter(({ outcome }) => outcome === "client_left")) {
      assert.isAbove(line.input_tokens ?? 0, 0)
    }

    // The key's usage of the month is the sum of the history.
    const { items } = await admin(site.url, "GET", `/admin/keys?q=${id}`)
    const [item] = items as ReadonlyArray<
      { usage: { in_flight: number; windows: ReadonlyArray<{ requests: { used: number }; tokens: { used: number } }> } }
    >
    const ofKey = rows.filter((row) => row.key === id)
    assert.strictEqual(item?.usage.in_flight, 0)
    assert.strictEqual(item?.usage.windows[0]?.requests.used, sum(ofKey.map((row) => row.counted_requests)))
    assert.strictEqual(item?.usage.windows[0]?.tokens.used, sum(ofKey.map((row) => row.total_tokens)))
    const tightly = rows.filter((row) => row.key === tightId)
    assert.strictEqual(sum(tightly.map((row) => row.counted_requests)), 1)
    assert.deepStrictEqual(Object.fromEntries(tightly.flatMap(({ errors }) => Object.entries(errors))), {
      model_not_allowed: 1,
      rate_limit_exceeded: 1
    })
    assert.deepStrictEqual(rows.filter((row) => row.key === "none").map((row) => row.errors), [{
      authentication_failed: 1
    }])
    assert.strictEqual(sum(rows.filter((row) => row.key === "direct").map((row) => row.succeeded)), 8)
  })

  it("includes in-process completions, under their own name", async () => {
    const reply = await Effect.runPromise(
      Effect.provideContext(complete({ model: "upstream-chat", prompt: "!say within" }), site.gateway.services)
    )
    const row = (await rowsBy("key,style")).find((row) => row.key === "embedded")
    assert.deepInclude(row, { style: "in-process", requests: 1, succeeded: 1, counted_requests: 1 })
    assert.strictEqual(row?.total_tokens, reply.usage.promptTokens + reply.usage.completionTokens)
  })
})
