/**
 * `/metrics`, read by a Prometheus parser and compared with the requests.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import parsePrometheusTextFormat from "parse-prometheus-text-format"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { chunk, frames, json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"

let upstream: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  upstream = await startOpenAiServer()
  gateway = await startGateway({
    accounts: [{ token: "token-of-the-first" }, { token: "token-of-the-second" }],
    upstream: { driver: "openai", base_url: upstream.baseUrl, models: { "own-model": "m" } }
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

type Labels = Readonly<Record<string, string>>

const labelsOf = (line: string): ReadonlyArray<readonly [string, string]> =>
  [...line.matchAll(/(\w+)="((?:[^"\\\\]|\\\\.)*)"/g)].map(([, name = "", value = ""]) => [name, value])

const has = (given: ReadonlyArray<readonly [string, string]>, labels: Labels): boolean =>
  Object.entries(labels).every(([name, value]) => given.some(([own, its]) => own === name && its === value))

/** The parser keeps one series per histogram, so it gets one series without labels. */
const histogramSeries = (text: string, name: string, labels: Labels) => {
  const lines = text.split("\n").filter((line) => /^\w+/.exec(line)?.[0].replace(/_(?:bucket|sum|count)$/, "") === name)
  const series = lines.filter((line) => has(labelsOf(line), labels)).map((line) => {
    const bound = labelsOf(line).find(([label]) => label === "le")
    return line.replace(/\{.*\}/, bound === undefined ? "" : `{le="${bound[1]}"}`)
  })
  return parsePrometheusTextFormat(`# HELP ${name} h\n# TYPE ${name} histogram\n${series.join("\n")}\n`)[0]?.metrics[0]
}

const scrape = async () => {
  const response = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
  assert.match(response.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/)
  const text = await response.text()
  const families = parsePrometheusTextFormat(text)
  return {
    text,
    families,
    value: (name: string, labels: Labels = {}) =>
      Number(
        families.find((family) => family.name === name)?.metrics.find((metric) =>
          has(Object.entries(metric.labels ?? {}), labels)
        )?.value ?? 0
      ),
    histogram: (name: string, labels: Labels = {}) => histogramSeries(text, name, labels)
  }
}

type Scrape = Awaited<ReturnType<typeof scrape>>

/** Counters accumulate over all tests of the process, so only differences matter. */
const added = (before: Scrape, after: Scrape) => ({
  count: (name: string, labels?: Labels) => after.value(name, labels) - before.value(name, labels),
  observed: (name: string, labels?: Labels) =>
    Number(after.histogram(name, labels)?.count ?? 0) - Number(before.histogram(name, labels)?.count ?? 0),
  sum: (name: string, labels?: Labels) =>
    Number(after.histogram(name, labels)?.sum ?? 0) - Number(before.histogram(name, labels)?.sum ?? 0)
})

const chat = async (body: object, key = businessKey) => {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "own-model", messages: [{ role: "user", content: "Hello" }], ...body })
  })
  await response.text()
  return response
}

const call = {
  index: 0,
  id: "call_a",
  type: "function",
  function: { name: "weather", arguments: "{\"city\":\"Paris\"}" }
}

describe("/metrics", () => {
  it("counts the requests that were made", async () => {
    const before = await scrape()

    upstream.answer((request) =>
      JSON.stringify(request.body).includes("fail over") && request.key === "token-of-the-first"
        ? json(500, { error: { message: "broken", type: "server_error" } })
        : JSON.stringify(request.body).includes("call")
        ? { pieces: [frames(chunk({ tool_calls: [call] }), chunk({}, "tool_calls"), "[DONE]")] }
        : streamed({ content: "Hello" }, { content: " there" })
    )
    for (let i = 0; i < 3; i++) assert.strictEqual((await chat({ stream: i > 0 })).status, 200)
    const tools = [{ type: "function", function: { name: "weather" } }]
    await chat({ messages: [{ role: "user", content: "call" }], tools })
    // Accounts rotate, so the first one serves at least one request.
    for (let i = 0; i < 2; i++) await chat({ messages: [{ role: "user", content: "fail over" }] })
    assert.strictEqual((await chat({ model: "nonsense" })).status, 400)
    assert.strictEqual((await fetch(`${gateway.url}/v1/chat/completions`, { method: "POST" })).status, 401)
    await fetch(`${gateway.url}/v1/models`)
    await fetch(`${gateway.url}/healthz`)

    const after = await scrape()
    const refused =
      upstream.requests.filter(({ body, key }) =>
        JSON.stringify(body).includes("fail over") && key === "token-of-the-first"
      ).length
    assert.isAbove(refused, 0)
    const { count, observed, sum } = added(before, after)
    const own = { gen_ai_request_model: "own-model" }
    assert.strictEqual(count("gateway_requests_total", { style: "chat", model: "own-model", status: "200" }), 6)
    assert.strictEqual(count("gateway_requests_total", { style: "chat", model: "none", status: "400" }), 1)
    assert.strictEqual(count("gateway_requests_total", { style: "chat", model: "none", status: "401" }), 1)
    assert.strictEqual(count("gateway_requests_total", { style: "models", status: "200" }), 1)
    assert.strictEqual(count("gateway_errors_total", { style: "chat", code: "model_not_found" }), 1)
    assert.strictEqual(count("gateway_attempts_total"), 6 + refused)
    assert.strictEqual(count("gateway_failovers_total"), refused)
    assert.strictEqual(count("gateway_tool_calls_total"), 1)
    assert.strictEqual(observed("gateway_queue_wait_seconds"), 6)
    assert.strictEqual(observed("gen_ai_server_time_to_first_token_seconds", own), 6)
    assert.strictEqual(observed("gen_ai_server_request_duration_seconds", { ...own, style: "chat" }), 6)
    // A health check and a list use no model.
    assert.strictEqual(
      observed("gen_ai_server_request_duration_seconds", { gen_ai_request_model: "none", style: "chat" }),
      1
    )
    assert.notMatch(after.text, /gen_ai_server_request_duration_seconds_count\{[^}]*style="(?:health|models)"/)
    const usage = { ...own, gen_ai_token_type: "output" }
    assert.strictEqual(observed("gen_ai_client_token_usage", usage), 6)
    assert.isAtLeast(sum("gen_ai_client_token_usage", usage), 5 * 7)

    const gauge = after.value
    assert.strictEqual(gauge("gateway_slots_in_use"), 0)
    assert.strictEqual(gauge("gateway_queue_length"), 0)
    const accounts = (health: string) => gauge("gateway_accounts", { health })
    assert.strictEqual(accounts("ready") + accounts("cooling") + accounts("out"), 2)
    assert.isAbove(gauge("process_memory_bytes", { kind: "resident" }), 1e7)
    assert.isAtLeast(gauge("nodejs_eventloop_delay_seconds", { stat: "p99" }), 0)
  })

  it("names the running build", async () => {
    const { text } = await scrape()
    assert.match(text, /^gateway_build_info\{version="\d[^"]*",commit="unknown",form="source"\} 1$/m)
  })

  it("has consistent buckets, a help text for every family, and nothing about callers", async () => {
    await chat({ model: "a-name-that-somebody-made-up" })
    const { families, histogram, text } = await scrape()
    for (const { help, name, type } of families) {
      assert.notStrictEqual(help, "", name)
      if (type !== "HISTOGRAM") continue
      const series = new Set(
        text.split("\n").filter((line) => line.startsWith(`${name}_count`)).map((line) =>
          JSON.stringify(labelsOf(line))
        )
      )
      assert.isNotEmpty(series)
      for (const labels of series) {
        const { buckets = {}, count } = histogram(name, Object.fromEntries(JSON.parse(labels))) ?? {}
        const counts = Object.values(buckets).map(Number)
        assert.deepEqual(counts, counts.toSorted((a, b) => a - b), name)
        assert.strictEqual(buckets["+Inf"], count, name)
      }
    }
    for (const secret of [businessKey, adminKey, "token-of-the", "a-name-that-somebody-made-up"]) {
      assert.notInclude(text, secret)
    }
  })

  it("requires the admin key unless metrics.public is set", async () => {
    assert.strictEqual((await fetch(`${gateway.url}/metrics`)).status, 401)
    const open = await startGateway({ metrics: { public: true } })
    assert.strictEqual((await fetch(`${open.url}/metrics`)).status, 200)
    await open.stop()
  })
})
