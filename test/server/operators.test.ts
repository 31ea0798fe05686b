/**
 * Consistency for operators: hashes in log, list and metrics, counters, logged changes, and documents behind a prefix.
 */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Logger, References } from "effect"
import parsePrometheusTextFormat from "parse-prometheus-text-format"
import type { AccountFacts } from "../../src/accounts/Accounts.ts"
import { noWork } from "../../src/accounts/AccountWork.ts"
import { accountMetrics } from "../../src/server/observability/metrics.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilHolds } from "../support/until.ts"

const open: Array<RunningGateway> = []
afterEach(async () => {
  for (const gateway of open.splice(0)) await gateway.stop()
})

const start = async (config = {}) => {
  const lines: Array<{ readonly message: string; readonly fields: Record<string, unknown> }> = []
  const logger = Logger.make(({ fiber, message }) => {
    lines.push({ message: String(message), fields: { ...fiber.getRef(References.CurrentLogAnnotations) } })
  })
  const gateway = await startGateway({ accounts: [{ token: "one" }, { token: "two" }], ...config }, { logger })
  open.push(gateway)
  const admin = (method: string, path: string, body?: object) =>
    fetch(`${gateway.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${adminKey}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
  const call = (path: string, body: object, headers = {}) =>
    fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, ...headers },
      body: JSON.stringify(body)
    })
  return { gateway, lines, admin, call }
}

describe("a client behind a trusted proxy", () => {
  it("is named in the log line and in the record, and slows only itself by wrong logins", async () => {
    const { admin, call, gateway, lines } = await start({ server: { trusted_proxies: ["127.0.0.0/8"] } })
    const behind = (client: string, more = {}) => ({ "x-forwarded-for": `192.0.2.1, ${client}`, ...more })
    const reply = await call("/v1/embeddings", { input: "x", model: "m" }, behind("203.0.113.77"))
    await reply.text()
    const logged = () => lines.find(({ message }) => message === "request")
    await untilHolds(() => logged() !== undefined)
    assert.strictEqual(logged()?.fields["client"], "203.0.113.0/24")
    const { items } = await (await admin("GET", "/admin/requests")).json() as {
      readonly items: ReadonlyArray<{ readonly client: string; readonly id: string }>
    }
    assert.strictEqual(items[0]?.client, "203.0.113.0/24")
    const record = await (await admin("GET", `/admin/requests/${items[0]?.id}`)).text()
    assert.notInclude(record, "203.0.113.77")
    const login = async (client: string) => {
      const response = await fetch(`${gateway.url}/admin/login`, {
        method: "POST",
        headers: behind(client),
        body: JSON.stringify({ admin_key: "wrong" })
      })
      await response.text()
      return response.status
    }
    for (let i = 0; i < 5; i++) assert.strictEqual(await login("203.0.113.77"), 401)
    assert.strictEqual(await login("203.0.113.77"), 429)
    assert.strictEqual(await login("203.0.113.78"), 401)
  })

  it("has a secure session cookie if the proxy forwards HTTPS", async () => {
    const { gateway } = await start({ server: { trusted_proxies: ["127.0.0.1"] } })
    const cookie = async (scheme: string) => {
      const response = await fetch(`${gateway.url}/admin/session`, {
        method: "POST",
        headers: { "sec-fetch-site": "same-origin", "x-forwarded-proto": scheme },
        body: JSON.stringify({ admin_key: adminKey })
      })
      await response.text()
      return response.headers.get("set-cookie") ?? ""
    }
    assert.match(await cookie("https"), /; Secure$/)
    assert.notMatch(await cookie("http"), /Secure/)
  })
})

describe("an account's hash", () => {
  it("is the same in the log, the list and the metrics", async () => {
    const { admin, call, lines } = await start()
    const reply = await call("/v1/chat/completions", {
      model: "upstream-chat",
      messages: [{ role: "user", content: "Hello" }]
    })
    await reply.text()
    const logged = lines.find(({ message }) => message === "request")?.fields["account"]
    assert.match(String(logged), /^[0-9a-f]{12}$/)
    const { items } = await (await admin("GET", "/admin/accounts")).json() as {
      readonly items: ReadonlyArray<{ readonly hash: string }>
    }
    const hashes = items.map(({ hash }) => hash)
    assert.include(hashes, logged)
    const families = parsePrometheusTextFormat(await (await admin("GET", "/metrics")).text())
    for (const name of ["gateway_account_ready", "gateway_account_slots_in_use"]) {
      const family = families.find((each) => each.name === name)
      assert.strictEqual(family?.type, "GAUGE")
      assert.sameMembers(family?.metrics.map(({ labels }) => labels?.["account"]) ?? [], hashes)
    }
  })

  it("has series for a thousand accounts at most", () => {
    const facts: AccountFacts = {
      upstream: "default",
      identifier: "a",
      hash: "0123456789ab",
      inUse: 1,
      health: "ready",
      disabled: false,
      reason: undefined,
      recovery: undefined,
      testStatus: "",
      hasToken: true,
      tokenPreview: "",
      credential: undefined,
      work: noWork,
      quota: [],
      budgets: []
    }
    const text = accountMetrics(Array.from({ length: 1_500 }, () => facts))
    assert.lengthOf(text.match(/^gateway_account_ready\{/gm) ?? [], 1_000)
    assert.strictEqual(accountMetrics([]), "")
  })
})

describe("metrics", () => {
  it("are counters where they count, and name the operation as the endpoint does", async () => {
    const { admin, call } = await start({ embeddings: { provider: "builtin" } })
    await (await call("/v1beta/models/upstream-chat:generateContent", { contents: [{ parts: [{ text: "Hi" }] }] }))
      .text()
    await (await call("/v1/embeddings", { model: "upstream-chat", input: "Hi" })).text()
    await (await call("/v1/messages", {
      model: "upstream-chat",
      max_tokens: 9,
      messages: [{ role: "user", content: "Hi" }]
    })).text()
    const text = await (await admin("GET", "/metrics")).text()
    const families = parsePrometheusTextFormat(text)
    for (const { name, type } of families) {
      if (name.endsWith("_total")) assert.strictEqual(type, "COUNTER", name)
      else assert.notStrictEqual(type, "COUNTER", name)
    }
    for (const name of ["gateway_logins_total", "gateway_login_failures_total", "process_cpu_seconds_total"]) {
      assert.isDefined(families.find((family) => family.name === name), name)
    }
    assert.isDefined(families.find(({ name }) => name === "gateway_build_info"))
    for (
      const [style, operation] of [["generate", "generate_content"], ["embeddings", "embeddings"], ["messages", "chat"]]
    ) {
      // Embeddings are also available in another style in this process.
      const lines = text.split("\n").filter((each) =>
        each.startsWith("gen_ai_server_request_duration_seconds_count") && each.includes(`style="${style}"`)
      )
      assert.isTrue(lines.some((line) => line.includes(`gen_ai_operation_name="${operation}"`)), lines.join("\n"))
    }
  })
})

describe("a change of the settings", () => {
  it("is logged with the names of what was changed in its message, without their values", async () => {
    const { admin, lines } = await start()
    const saved = await admin("PUT", "/admin/settings", {
      runtime: { account_max_inflight: 7 },
      model_aliases: { "a-name": "upstream-chat" }
    })
    assert.strictEqual(saved.status, 200)
    const change = lines.find(({ message }) => message.startsWith("Admin change"))?.message
    assert.strictEqual(change, "Admin change: the settings were changed (runtime.account_max_inflight, model_aliases)")
  })
})

describe("the document of the API", () => {
  it("has a server relative to itself, so that it is right behind any path", async () => {
    const { gateway } = await start()
    const { servers } = await (await fetch(`${gateway.url}/openapi.json`)).json() as {
      readonly servers: ReadonlyArray<{ readonly url: string }>
    }
    assert.deepEqual(servers.map(({ url }) => new URL(url, "https://proxy.example/sub/path/openapi.json").href), [
      "https://proxy.example/sub/path/"
    ])
  })
})
