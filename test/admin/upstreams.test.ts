/** Upstreams and routes in the admin API: views, changes, secrets, and tests of what is not saved. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { makeAuthority } from "../support/certificates.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { json, modelList, type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"
import { startProxy, startTlsFront } from "../support/proxyServers.ts"
import { untilHolds } from "../support/until.ts"
import { caller, storeOf } from "./support.ts"

let gateway: RunningGateway
let server: OpenAiServer
const call = caller(() => gateway)

beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())
afterEach(() => gateway.stop())

const listing = (...names: ReadonlyArray<string>) =>
  server.list(({ key }) =>
    key === undefined || key === "sk-1"
      ? modelList(...names)
      : json(401, { error: { message: "bad key", code: "invalid_api_key" } })
  )

const hosted = () => ({
  driver: "openai",
  base_url: server.baseUrl,
  models: { qwen3: "vendor/qwen3", large: "vendor/large" },
  headers: { "X-Title": "title-secret", "X-Team": "team-secret" },
  proxy: "http://user:proxy-secret@127.0.0.1:3128"
})
const gpu = { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { qwen3: "q" }, max_inflight: 64 }

const several = (): RawConfig => ({
  upstream: { driver: "embedded" },
  upstreams: { gpu, hosted: hosted() },
  accounts: [{ email: "a@x.org", password: "pw" }, { upstream: "hosted", token: "sk-1" }],
  routes: {
    qwen3: ["gpu", "hosted"],
    smart: { targets: ["hosted/large", "default/upstream-reasoner"], wait: 2, also_on: ["context_length"] },
    big: ["hosted/large"]
  }
})

const start = async (raw: RawConfig = several()) => {
  gateway = await startGateway(raw)
}

const ok = async (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) => {
  const answer = await call(method, path, { headers, ...(body === undefined ? {} : { body }) })
  assert.strictEqual(answer.status, 200, answer.text)
  return answer.json
}

type Item = Record<string, unknown>
const upstreams = async () => (await ok("GET", "/admin/upstreams"))["upstreams"] as ReadonlyArray<Item>
const upstream = async (name: string) => (await upstreams()).find((item) => item["name"] === name)
const rawOf = async () => Effect.runPromise(storeOf(gateway).currentRaw)
const entryOf = async (name: string) => ((await rawOf())["upstreams"] as Record<string, RawConfig>)[name]

describe("the list of upstreams", () => {
  it("has the default one first, with states, limits and models, and no secret", async () => {
    await start()
    const items = await upstreams()
    assert.deepStrictEqual(items.map(({ name }) => name), ["default", "gpu", "hosted"])
    const [own, second, third] = items
    assert.deepInclude(own, { driver: "embedded", base_url: "", enabled: true, max_inflight: 2, proxy: null })
    assert.deepStrictEqual(second, {
      name: "gpu",
      driver: "openai",
      base_url: gpu.base_url,
      enabled: true,
      models: ["qwen3"],
      needs_accounts: false,
      accounts: { ready: 1, cooling: 0, out: 0, disabled: 0 },
      in_use: 0,
      max_inflight: 64,
      waiting: 0,
      state: "ready",
      cooled_until: null,
      reason: null,
      findings: ["upstream gpu does not answer: the connection was refused"],
      refusals: [],
      proxy: null,
      last_5m: { requests: 0, errors: 0, p50_ms: null, p95_ms: null },
      last_hour: Array.from({ length: 12 }, () => ({ requests: 0, errors: 0 })),
      away: { reason: "the connection was refused", since: (second?.["away"] as { since: number } | undefined)?.since },
      budgets: [],
      config: gpu
    })
    assert.deepInclude(third, { proxy: "http://***@127.0.0.1:3128", models: ["qwen3", "large"] })
    assert.deepStrictEqual(third?.["config"], {
      ...hosted(),
      headers: { "X-Title": "***", "X-Team": "***" },
      proxy: "http://***@127.0.0.1:3128"
    })
    assert.notInclude(JSON.stringify(items), "secret")
  })

  it("has the one upstream of a configuration without others", async () => {
    await start({})
    const [own, ...others] = await upstreams()
    assert.deepInclude(own, { name: "default", driver: "embedded", needs_accounts: false, state: "ready", config: {} })
    assert.lengthOf(others, 0)
  })
})

describe("changes of upstreams", () => {
  it("add one, once", async () => {
    await start()
    const { upstream: added } = await ok("POST", "/admin/upstreams", { name: "vendor", ...gpu, driver: "messages" })
    assert.deepInclude(added, { name: "vendor", driver: "messages" })
    assert.deepStrictEqual((await upstreams()).map(({ name }) => name), ["default", "gpu", "hosted", "vendor"])
    for (const name of ["vendor", "default"]) {
      const again = await call("POST", "/admin/upstreams", { body: { name, ...gpu } })
      assert.strictEqual(again.status, 409, again.text)
      assert.strictEqual(again.detail, `the upstream ${name} already exists`)
    }
  })

  it("keep a default one that has accounts", async () => {
    await start({ accounts: [{ email: "a@x.org", password: "pw" }] })
    await ok("POST", "/admin/upstreams", { name: "gpu", ...gpu })
    assert.deepStrictEqual((await upstreams()).map(({ name }) => name), ["default", "gpu"])
  })

  it("name every fault, and then change nothing", async () => {
    await start()
    const before = await rawOf()
    const faults: ReadonlyArray<readonly [body: unknown, detail: RegExp]> = [
      [{ ...gpu }, /^name is required/],
      [{ ...gpu, name: "Vendor" }, /^upstreams\.Vendor must have a name of a-z/],
      [{ name: "vendor", driver: "openai" }, /^upstreams\.vendor\.base_url is required with the openai driver/],
      [{ ...gpu, name: "vendor", drvier: "openai" }, /^drvier is an unknown field.* did you mean driver\?/],
      [{ ...gpu, name: "vendor", headers: { Host: "x" } }, /^upstreams\.vendor\.headers\.Host is a header that/],
      [
        { ...gpu, name: "vendor", base_url: "https://x.example", tls: { ca: "/dev/zero" } },
        /^upstreams\.vendor\.tls\.ca must be a certificate in PEM, or a file with one/
      ],
      [{ ...gpu, name: "vendor", headers: { a: "***" } }, /^upstreams\.vendor\.headers\.a must be written with its/],
      [[], /must be a JSON object/]
    ]
    for (const [body, detail] of faults) {
      const answer = await call("POST", "/admin/upstreams", { body })
      assert.strictEqual(answer.status, 400, answer.text)
      assert.match(answer.detail, detail)
    }
    assert.strictEqual(await rawOf(), before)
  })

  it("keep what they do not name, and secrets that are sent back as they are shown", async () => {
    await start()
    const shown = (await upstream("hosted"))?.["config"] as RawConfig
    await ok("PATCH", "/admin/upstreams/hosted", shown)
    assert.deepStrictEqual(await entryOf("hosted"), hosted())
    await ok("PATCH", "/admin/upstreams/hosted", { proxy: "***", max_inflight: 5, timeouts: { connect: 1 } })
    await ok("PATCH", "/admin/upstreams/hosted", { timeouts: { silence: 2 } })
    assert.deepStrictEqual(await entryOf("hosted"), {
      ...hosted(),
      max_inflight: 5,
      timeouts: { connect: 1, silence: 2 }
    })
    await ok("PATCH", "/admin/upstreams/hosted", {
      headers: { "X-Title": "***", "X-Team": null, "X-New": "n" },
      proxy: null,
      max_inflight: null,
      timeouts: { connect: null, silence: null }
    })
    const { proxy: _proxy, ...rest } = hosted()
    assert.deepStrictEqual(await entryOf("hosted"), { ...rest, headers: { "X-Title": "title-secret", "X-New": "n" } })
    assert.deepInclude(await upstream("hosted"), { max_inflight: 2, proxy: null })
  })

  it("reach the default one too, and disable one", async () => {
    await start()
    await ok("PATCH", "/admin/upstreams/default", { max_inflight: 7 })
    assert.deepStrictEqual((await rawOf())["upstream"], { driver: "embedded", max_inflight: 7 })
    const { upstream: changed } = await ok("PATCH", "/admin/upstreams/gpu", { enabled: false })
    assert.deepInclude(changed, { enabled: false, state: "disabled" })
  })

  it("refuse another name, an unknown upstream, and a configuration that has changed", async () => {
    await start()
    const renamed = await call("PATCH", "/admin/upstreams/gpu", { body: { name: "other" } })
    assert.match(renamed.detail, /^name cannot be changed/)
    assert.strictEqual((await call("PATCH", "/admin/upstreams/other", { body: { enabled: true } })).status, 404)
    const { revision } = await ok("GET", "/admin/upstreams")
    await ok("PATCH", "/admin/upstreams/gpu", { enabled: false }, { "if-match": `"${String(revision)}"` })
    for (const method of ["PATCH", "DELETE"]) {
      const late = await call(method, "/admin/upstreams/gpu", {
        headers: { "if-match": String(revision) },
        ...(method === "PATCH" ? { body: { enabled: true } } : {})
      })
      assert.strictEqual(late.status, 409, late.text)
    }
  })

  it("remove one that nothing names; with force, what names it goes along", async () => {
    await start()
    const refused = await call("DELETE", "/admin/upstreams/hosted")
    assert.strictEqual(refused.status, 409)
    assert.strictEqual(
      refused.detail,
      "the upstream hosted has 1 account and 3 targets: remove them first, or all together with force=true"
    )
    const { removed } = await ok("DELETE", "/admin/upstreams/hosted?force=true")
    const { accounts, ...rest } = removed as Record<string, ReadonlyArray<string>>
    assert.lengthOf(accounts!, 1)
    assert.match(accounts![0]!, /^hosted\/token:/)
    assert.deepStrictEqual(rest, {
      targets: ["qwen3: hosted", "smart: hosted/large", "big: hosted/large"],
      routes: ["big"]
    })
    assert.deepStrictEqual(await rawOf(), {
      ...(await rawOf()),
      upstreams: { gpu },
      accounts: [{ email: "a@x.org", password: "pw" }],
      routes: {
        qwen3: ["gpu"],
        smart: { targets: ["default/upstream-reasoner"], wait: 2, also_on: ["context_length"] }
      }
    })
    assert.strictEqual((await call("DELETE", "/admin/upstreams/hosted")).status, 404)
    const own = await call("DELETE", "/admin/upstreams/default?force=true")
    assert.strictEqual(own.status, 400)
    await ok("PUT", "/admin/routes", { routes: {} })
    await ok("DELETE", "/admin/upstreams/gpu")
    assert.notProperty(await rawOf(), "upstreams")
    assert.notProperty(await rawOf(), "routes")
  })
})

describe("tests of upstreams", () => {
  it("need nothing that is saved, and list the server's models", async () => {
    await start({ accounts: [{ email: "a@x.org", password: "pw" }] })
    listing("vendor/qwen3")
    const before = await rawOf()
    const entry = { driver: "openai", base_url: server.baseUrl, headers: { "X-Title": "t" } }
    const works = await ok("POST", "/admin/upstreams/test", { upstream: entry, key: "sk-1" })
    assert.deepInclude(works, { success: true, models: ["vendor/qwen3"] })
    assert.strictEqual(server.lists.at(-1)?.key, "sk-1")
    const wrong = await ok("POST", "/admin/upstreams/test", { upstream: entry, key: "sk-wrong-0123456789" })
    assert.deepInclude(wrong, { success: false, models: null })
    assert.notInclude(JSON.stringify(wrong), "sk-wrong")
    const closed = await ok("POST", "/admin/upstreams/test", { upstream: gpu })
    assert.strictEqual(closed["success"], false)
    assert.strictEqual(await rawOf(), before)
  })

  it("name the faults of a request by its own fields", async () => {
    await start()
    const faults: ReadonlyArray<readonly [body: unknown, detail: RegExp]> = [
      [{}, /^upstream: is required/],
      [{ upstream: { driver: "openai" } }, /^upstream\.base_url is required with the openai driver/],
      [{ upstream: { ...gpu, headers: { Host: "x" } } }, /^upstream\.headers\.Host is a header/],
      [{ upstream: gpu, email: "a" }, /^password is required/],
      [{ upstream: gpu, ky: "a" }, /^ky is an unknown field/]
    ]
    for (const [body, detail] of faults) {
      const answer = await call("POST", "/admin/upstreams/test", { body })
      assert.strictEqual(answer.status, 400, answer.text)
      assert.match(answer.detail, detail)
    }
  })

  it("of a configured one use its account and lay changes over", async () => {
    const { proxy: _proxy, ...entry } = hosted()
    await start({ ...several(), upstreams: { gpu, hosted: entry } })
    listing("vendor/qwen3", "vendor/other")
    assert.deepInclude(await ok("POST", "/admin/upstreams/hosted/test"), { success: true })
    assert.strictEqual(server.lists.at(-1)?.key, "sk-1")
    const before = await rawOf()
    const moved = await ok("POST", "/admin/upstreams/hosted/test", { upstream: { base_url: gpu.base_url } })
    assert.strictEqual(moved["success"], false)
    assert.deepInclude(
      await ok("POST", "/admin/upstreams/gpu/test", { upstream: { base_url: server.baseUrl } }),
      { success: true }
    )
    assert.deepInclude(await ok("POST", "/admin/upstreams/hosted/test", { key: "sk-2" }), { success: false })
    assert.deepInclude(await ok("POST", "/admin/upstreams/default/test"), { success: true, models: null })
    assert.strictEqual((await call("POST", "/admin/upstreams/other/test")).status, 404)
    assert.strictEqual(await rawOf(), before)
    assert.deepStrictEqual(await ok("GET", "/admin/upstreams/hosted/models"), {
      models: [
        { model: "vendor/qwen3", listed: true, ids: ["qwen3"] },
        { model: "vendor/other", listed: true, ids: [] },
        { model: "vendor/large", listed: false, ids: ["large"] }
      ],
      message: null
    })
    const silent = await ok("GET", "/admin/upstreams/gpu/models")
    assert.deepStrictEqual(silent["models"], [{ model: "q", listed: false, ids: ["qwen3"] }])
    assert.isString(silent["message"])
  })

  it("send what is saved for one server to no other one", async () => {
    const { proxy: _proxy, ...entry } = hosted()
    await start({ ...several(), upstreams: { gpu, hosted: entry } })
    const other = await startOpenAiServer()
    const proxy = await startProxy({ kind: "http" })
    other.list(() => modelList("m"))
    listing("m")
    const test = (upstream: object, rest: object = {}) =>
      ok("POST", "/admin/upstreams/hosted/test", { upstream, ...rest })
    const secretsAt = (lists: OpenAiServer["lists"]) =>
      lists.map(({ headers, key }) => [key, headers["x-title"], headers["x-team"]])
    const none = [undefined, undefined, undefined]
    assert.deepInclude(await test({ base_url: other.baseUrl }), { success: true })
    assert.deepStrictEqual(secretsAt(other.lists), [none, none])
    assert.deepInclude(await test({ base_url: other.baseUrl, headers: { "X-Team": "new" } }, { key: "sk-typed" }), {
      success: true
    })
    assert.deepStrictEqual(secretsAt(other.lists.slice(2)), [["sk-typed", undefined, "new"], [
      "sk-typed",
      undefined,
      "new"
    ]])
    // An unknown proxy reads what an http server gets.
    await test({ proxy: proxy.url })
    assert.isNotEmpty(proxy.headers)
    for (const headers of proxy.headers) assert.notProperty(headers, "x-title")
    for (const headers of proxy.headers) assert.notProperty(headers, "authorization")
    listing("m")
    await test({ base_url: `${server.baseUrl}/deeper` })
    assert.deepStrictEqual(secretsAt(server.lists)[0], ["sk-1", "title-secret", "team-secret"])
    const shown = await call("POST", "/admin/upstreams/hosted/test", {
      body: { upstream: { base_url: other.baseUrl, headers: { "X-Title": "***" } } }
    })
    assert.strictEqual(shown.detail, "upstream.headers.X-Title must be written with its value")
    await other.stop()
    await proxy.stop()
  })

  it("send no address with a secret elsewhere, and no client certificate", async () => {
    const authority = makeAuthority()
    const { cert, key } = authority.sign("DNS:client")
    const secret = { driver: "openai", base_url: "https://127.0.0.1:9/v1?key=secret", tls: { cert, key } }
    await start({ upstreams: { hosted: secret } })
    const { upstream: saved } = (await ok("PATCH", "/admin/upstreams/hosted", { enabled: true })) as { upstream: Item }
    assert.deepInclude(saved, { base_url: "https://127.0.0.1:9/v1?key=***" })
    const moved = await call("POST", "/admin/upstreams/hosted/test", {
      body: { upstream: { tls: { ca: authority.cert } } }
    })
    assert.strictEqual(moved.detail, "upstream.base_url must be written with its user information and its query")
    const server = await startTlsFront({
      ...authority.sign("IP:127.0.0.1"),
      requestCert: true,
      rejectUnauthorized: false
    }, 9)
    const base_url = `https://127.0.0.1:${server.port}/v1`
    await ok("POST", "/admin/upstreams/hosted/test", { upstream: { base_url, tls: { ca: authority.cert } } })
    assert.isNotEmpty(server.clients)
    assert.deepStrictEqual([...new Set(server.clients)], [undefined])
    await server.stop()
  })

  it("refuse references to the gateway's own variables and to those of the host", async () => {
    await start()
    const wanted = {
      GATEWAY_ADMIN_KEY: "the-admin-key",
      HOST_TOKEN: "the-host-token",
      OTEL_EXPORTER_OTLP_HEADERS: "a=b"
    }
    vi.stubEnv("A_KEY_OF_THE_OPERATOR", "a-key")
    for (const [name, value] of Object.entries(wanted)) vi.stubEnv(name, value)
    listing("m")
    const entry = (text: string) => ({ driver: "openai", base_url: server.baseUrl, headers: { "X-Title": text } })
    for (const name of Object.keys(wanted)) {
      const answer = await call("POST", "/admin/upstreams/test", { body: { upstream: entry(`a \${${name}}`) } })
      assert.strictEqual(answer.status, 400)
      assert.strictEqual(
        answer.detail,
        `upstream.headers.X-Title refers to the environment variable ${name}, which is the gateway's own`
      )
    }
    assert.lengthOf(server.lists, 0)
    const test = () => call("POST", "/admin/upstreams/test", { body: { upstream: entry("${A_KEY_OF_THE_OPERATOR}") } })
    assert.deepInclude((await test()).json, { success: true })
    assert.strictEqual(server.lists[0]?.headers["x-title"], "a-key")
    for (const list of ["A_KEY", "B_*, ANOTHER", "*_OPERATOR"]) {
      vi.stubEnv("GATEWAY_REFERENCES", list)
      assert.strictEqual(
        (await test()).detail,
        "upstream.headers.X-Title refers to the environment variable A_KEY_OF_THE_OPERATOR, which GATEWAY_REFERENCES does not allow"
      )
    }
    for (const list of ["A_KEY_OF_THE_OPERATOR", "B, A_KEY_*", "*"]) {
      vi.stubEnv("GATEWAY_REFERENCES", list)
      assert.deepInclude((await test()).json, { success: true }, list)
    }
    vi.unstubAllEnvs()
  })

  it("are in the history with their address", async () => {
    await start()
    listing("m")
    const base_url = `${server.baseUrl.replace("//", "//user:secret@")}?key=secret`
    await ok("POST", "/admin/upstreams/test", { upstream: { driver: "openai", base_url } })
    await ok("POST", "/admin/upstreams/hosted/test")
    await ok("POST", "/admin/upstreams/gpu/test", { upstream: { base_url: server.baseUrl } })
    await call("POST", "/admin/upstreams/test", { body: { upstream: { driver: "openai" } } })
    const { changes } = await ok("GET", "/admin/changes")
    const shown = `${server.baseUrl.replace("//", "//***@")}?key=***`
    assert.deepStrictEqual(
      (changes as ReadonlyArray<Item>).map(({ action, fields }) => [action, fields]),
      [
        ["upstreams.gpu.base_url", gpu.base_url, server.baseUrl],
        ["upstreams.hosted.base_url", server.baseUrl, server.baseUrl],
        ["base_url", null, shown]
      ].map(([path, before, after]) => ["an upstream was tested", [{ path, before, after }]])
    )
  })

  it("show the last list of a server that no longer answers", async () => {
    const { proxy: _proxy, ...entry } = hosted()
    listing("vendor/qwen3", "vendor/other")
    await start({ ...several(), upstreams: { gpu, hosted: entry } })
    await untilHolds(() => storeOf(gateway).now().route_table.config.listed?.get("hosted")?.size === 2)
    server.list(() => json(503, { error: { message: "busy" } }))
    const { message, models } = await ok("GET", "/admin/upstreams/hosted/models")
    assert.deepStrictEqual(models, [
      { model: "vendor/qwen3", listed: true, ids: ["qwen3"] },
      { model: "vendor/other", listed: true, ids: [] },
      { model: "vendor/large", listed: false, ids: ["large"] }
    ])
    assert.isString(message)
  })
})

describe("the routes in the admin API", () => {
  it("are shown with every field", async () => {
    await start()
    const { routes } = await ok("GET", "/admin/routes")
    const rest = { wait: 0, also_on: [], spread: "order", schemas: "preferred", sticky: "auto" }
    assert.deepStrictEqual(routes, {
      qwen3: { ...rest, targets: ["gpu", "hosted"] },
      smart: {
        ...rest,
        targets: ["hosted/large", "default/upstream-reasoner"],
        wait: 2,
        also_on: ["context_length"]
      },
      big: { ...rest, targets: ["hosted/large"] }
    })
  })

  it("are replaced as a whole, in their order, unless they have changed", async () => {
    await start()
    const { revision } = await ok("GET", "/admin/routes")
    const routes = {
      big: { targets: [{ target: "hosted/large", weight: 3 }, "gpu/qwen3"], spread: "weighted" },
      qwen3: ["hosted"]
    }
    const match = { "if-match": String(revision) }
    const saved = await ok("PUT", "/admin/routes", { routes }, match)
    assert.deepStrictEqual(Object.keys(saved["routes"] as object), ["big", "qwen3"])
    assert.deepStrictEqual((await rawOf())["routes"], routes)
    assert.strictEqual((await call("PUT", "/admin/routes", { body: { routes: {} }, headers: match })).status, 409)
    const { routes: shown } = await ok("GET", "/admin/routes")
    assert.deepInclude((shown as typeof routes).big, routes.big)
    await ok("PUT", "/admin/routes", { routes: shown })
    assert.deepStrictEqual((await ok("GET", "/admin/routes"))["routes"], shown)
    // A target with a weight leaves with its upstream too.
    const { removed } = await ok("DELETE", "/admin/upstreams/hosted?force=true")
    assert.deepInclude(removed, { targets: ["big: hosted/large", "qwen3: hosted"], routes: ["qwen3"] })
  })

  it("name every fault", async () => {
    await start()
    const faults: ReadonlyArray<readonly [body: unknown, detail: RegExp]> = [
      [{}, /^routes is required/],
      [{ routes: [] }, /^routes must be an object/],
      [{ routes: { a: ["other/m"] } }, /^routes\.a\[0\] must be upstream\/model or an upstream/],
      [
        { routes: { a: { targets: ["gpu/qwen3"], wiat: 2 } } },
        /^routes\.a\.wiat is an unknown field.* mean routes\.a\.wait/
      ],
      [{ routes: { a: { targets: [] } } }, /^routes\.a\.targets must have 1 to 16 targets/]
    ]
    for (const [body, detail] of faults) {
      const answer = await call("PUT", "/admin/routes", { body })
      assert.strictEqual(answer.status, 400, answer.text)
      assert.match(answer.detail, detail)
    }
  })

  it("and upstreams are no settings, which say where they are changed", async () => {
    await start()
    for (const group of ["upstreams", "routes"]) {
      const answer = await call("PUT", "/admin/settings", { body: { [group]: {} } })
      assert.strictEqual(answer.status, 400)
      assert.strictEqual(
        answer.detail,
        `${group} is not a setting that can be changed here: it is changed by /admin/${group}`
      )
    }
    const { fields } = (await call("GET", "/admin/settings/fields")).json as {
      readonly fields: ReadonlyArray<{ path: string }>
    }
    assert.deepEqual(fields.filter(({ path }) => /^(?:upstreams|routes)\b/.test(path)), [])
  })
})
