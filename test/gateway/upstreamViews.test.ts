/** What operators see of a request that several upstreams may serve: log line, spans, metrics, record and usage. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { Logger } from "effect"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"

let first: OpenAiServer
let second: OpenAiServer
let gateway: RunningGateway
const lines: Array<{ readonly message: string; readonly fields: Record<string, unknown> }> = []

// Each test has its own gateway: an upstream that failed three times in a row is left out.
beforeEach(async () => {
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
afterEach(async () => {
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
    assert.deepEqual(record.tries.map(({ began_ms: _, queued_ms: ___, took_ms: __, ...rest }) => rest), [
      { upstream: "gpu", model: "shared", account: "gpu", cause: "upstream_trouble", status: 500, cost: "0" },
      {
        upstream: "hosted",
        model: "shared",
        account: String(record.tries[1]?.["account"]),
        cause: null,
        status: null,
        cost: null
      }
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

  it("counts once in the usage of the answerer", async () => {
    const rows = async (by: string) =>
      ((await (await admin(`/admin/usage?by=${by}`)).json()) as {
        readonly rows: ReadonlyArray<Record<string, unknown>>
      }).rows
    const requests = async (by: string, name: string) =>
      Number((await rows(by)).find((row) => row[by] === name)?.["requests"] ?? 0)
    const before = await Promise.all([
      requests("upstream", "hosted"),
      requests("target", "hosted/shared"),
      requests("upstream", "none")
    ])
    await failOver("counted")
    assert.strictEqual((await ask("unknown", "nonsense")).status, 400)
    const after = await Promise.all([
      requests("upstream", "hosted"),
      requests("target", "hosted/shared"),
      requests("upstream", "none")
    ])
    assert.deepEqual(after.map((count, i) => count - before[i]!), [1, 1, 1])
    assert.isUndefined((await rows("upstream")).find(({ upstream }) => upstream === "gpu"))
    assert.isUndefined((await rows("upstream")).find(({ upstream }) => upstream === "default"))
  })

  it("counts each try in the list of upstreams", async () => {
    const list = async () =>
      ((await (await admin("/admin/upstreams")).json()) as {
        readonly upstreams: ReadonlyArray<{
          readonly name: string
          readonly in_use: number
          readonly state: string
          readonly cooled_until: string | null
          readonly reason: string | null
          readonly last_5m: Record<"requests" | "errors" | "p50_ms" | "p95_ms", number | null>
        }>
      }).upstreams
    const [gpu, hosted] = await list()
    await failOver("listed")
    const [gpuLater, hostedLater] = await list()
    const added = (before: typeof gpu, after: typeof gpu) =>
      (["requests", "errors"] as const).map((name) => after!.last_5m[name]! - before!.last_5m[name]!)
    assert.deepEqual(added(gpu, gpuLater), [1, 1])
    assert.deepEqual(added(hosted, hostedLater), [1, 0])
    assert.isNull(gpuLater!.last_5m.p95_ms)
    assert.isAtLeast(hostedLater!.last_5m.p50_ms!, 1)
    assert.isAtLeast(hostedLater!.last_5m.p95_ms!, hostedLater!.last_5m.p50_ms!)
    assert.include(hostedLater, { name: "hosted", in_use: 0, state: "ready", cooled_until: null, reason: null })
  })

  it("shows the pools of the upstreams beside the sum of the queue", async () => {
    const queue = (await (await admin("/admin/queue/status")).json()) as {
      readonly in_use: number
      readonly upstreams: ReadonlyArray<Record<string, unknown>>
    }
    assert.strictEqual(queue.in_use, 0)
    assert.deepEqual(queue.upstreams.map(({ cooled_ms: _, reason: __, state: ___, ...rest }) => rest), [
      { name: "gpu", accounts: { ready: 1, cooling: 0, out: 0, disabled: 0 }, in_use: 0, max_inflight: 8, waiting: 0 },
      {
        name: "hosted",
        accounts: { ready: 1, cooling: 0, out: 0, disabled: 0 },
        in_use: 0,
        max_inflight: 2,
        waiting: 0
      }
    ])
  })
})

describe("an upstream that refuses connections", () => {
  it("is shown as cooled, with the time until which it is left out and why", async () => {
    await first.stop()
    second.answer(() => streamed({ content: "Hello" }))
    assert.strictEqual((await ask("refused")).status, 200)
    const { upstreams } = (await (await admin("/admin/upstreams")).json()) as {
      readonly upstreams: ReadonlyArray<Record<string, unknown>>
    }
    const gpu = upstreams.find(({ name }) => name === "gpu")
    assert.strictEqual(gpu?.["state"], "cooled")
    assert.match(String(gpu?.["cooled_until"]), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    assert.strictEqual(gpu?.["reason"], "no connection to it could be made")
    const { tries } = (await (await admin("/admin/requests/refused")).json()) as {
      readonly tries: ReadonlyArray<Record<string, unknown>>
    }
    assert.deepEqual(tries.map(({ cause, status, upstream }) => [upstream, cause, status]), [
      ["gpu", "unreachable", null],
      ["hosted", null, null]
    ])
  })
})
