/** What operators see of a request that several upstreams may serve: log line, spans, metrics, record and usage. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Logger } from "effect"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"

let first: OpenAiServer
let second: OpenAiServer
let gateway: RunningGateway
const lines: Array<{ readonly message: string; readonly fields: Record<string, unknown> }> = []

beforeAll(async () => {
  first = await startOpenAiServer()
  second = await startOpenAiServer()
  const upstream = (server: OpenAiServer, model: string) => ({
    driver: "openai",
    base_url: server.baseUrl,
    models: { shared: model }
  })
  gateway = await startGateway({
    upstreams: { gpu: upstream(first, "own"), hosted: upstream(second, "vendor/own") },
    accounts: [{ upstream: "hosted", token: "token-of-hosted" }]
  }, {
    logger: Logger.map(Logger.formatStructured, ({ annotations, message }) => {
      lines.push({ message: String(message), fields: annotations })
    })
  })
})
afterAll(async () => {
  await gateway.stop()
  await first.stop()
  await second.stop()
})

const ask = async (id: string, model = "shared") => {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "x-request-id": id },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] })
  })
  await response.text()
  return response
}

const admin = async (path: string) => {
  const response = await fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${adminKey}` } })
  assert.strictEqual(response.status, 200, path)
  return response
}

const failOver = async (id: string) => {
  first.answer(() => json(500, { error: { message: "broken", type: "server_error" } }))
  second.answer(() => streamed({ content: "Hello" }))
  assert.strictEqual((await ask(id)).status, 200)
}

describe("a request that fails over between upstreams", () => {
  it("names the answerer in its log line", async () => {
    await failOver("logged")
    const line = lines.find(({ fields, message }) => message === "request" && fields["request_id"] === "logged")
    assert.include(line?.fields, { model: "shared", upstream: "hosted", target: "hosted/shared", attempts: 2 })
  })

  it("keeps its tries in its record", async () => {
    await failOver("recorded")
    const record = (await (await admin("/admin/requests/recorded")).json()) as {
      readonly target: string
      readonly tries: ReadonlyArray<Record<string, unknown>>
    }
    assert.strictEqual(record.target, "hosted/shared")
    assert.deepEqual(record.tries.map(({ began_ms: _, took_ms: __, ...rest }) => rest), [
      { upstream: "gpu", model: "shared", account: "gpu", cause: "upstream_trouble", status: 500 },
      { upstream: "hosted", model: "shared", account: String(record.tries[1]?.["account"]), cause: null, status: null }
    ])
    for (const { began_ms, took_ms } of record.tries) {
      assert.isAtLeast(Number(began_ms), 0)
      assert.isAtLeast(Number(took_ms ?? Number.NaN), 0)
    }
    const list = (await (await admin("/admin/requests")).json()) as {
      readonly items: ReadonlyArray<Record<string, unknown>>
    }
    const item = list.items.find(({ request_id }) => request_id === "recorded")
    assert.strictEqual(item?.["target"], "hosted/shared")
  })

  it("labels its metrics with the answerer, and each attempt with its upstream", async () => {
    const value = async (series: RegExp) => {
      const text = await (await admin("/metrics")).text()
      return Number(series.exec(text)?.[1] ?? 0)
    }
    const served = /^gateway_requests_total\{style="chat",model="shared",status="200",upstream="hosted"\} (\d+)$/m
    const tried = (upstream: string) => new RegExp(`^gateway_attempts_total\\{upstream="${upstream}"\\} (\\d+)$`, "m")
    const series = [served, tried("gpu"), tried("hosted")]
    const before = await Promise.all(series.map(value))
    await failOver("measured")
    const after = await Promise.all(series.map(value))
    assert.deepEqual(after.map((count, i) => count - before[i]!), [1, 1, 1])
    assert.strictEqual(await value(/^gateway_upstream_ready\{upstream="hosted"\} (\d)$/m), 1)
    assert.strictEqual(await value(/^gateway_upstream_accounts\{upstream="gpu",health="ready"\} (\d)$/m), 1)
  })
})
