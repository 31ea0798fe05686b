/** The query of an upstream's address and the header of its keys, at scripted servers, with the recipes of the documents. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { Logger } from "effect"
import type { RawConfig } from "../../src/config/json.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import {
  json,
  modelList,
  type OpenAiServer,
  type SeenRequest,
  startOpenAiServer,
  streamed
} from "../support/openaiServer.ts"
import { pageText, snippetsOf } from "../support/snippets.ts"
import { ask, styleNames } from "./openai/callStyles.ts"

let server: OpenAiServer
let gateway: RunningGateway
let root: string
const lines: Array<string> = []
beforeEach(async () => {
  server = await startOpenAiServer()
  root = server.baseUrl.replace(/\/v1$/, "")
})
afterEach(async () => {
  await gateway.stop()
  await server.stop()
})

const logger = Logger.map(Logger.formatJson, (line) => void lines.push(line))
const start = async (config: RawConfig) => {
  lines.length = 0
  gateway = await startGateway(config, { logger, logLevel: "Debug" })
}

/** The recipes with a key, with the scripted server in the place of the vendor. */
const recipes = () =>
  snippetsOf(pageText("docs/servers/azure.md"), "json").map(({ text }) => text)
    .filter((text) => text.includes("azure-key"))
    .map((text) =>
      text.replace("https://my-resource.openai.azure.com", root)
        .replace(`"resource": "my-resource"`, `"resource": "my-resource", "base_url": "${root}"`)
    )
    .map((text) => JSON.parse(text) as RawConfig)

const isKeyAlone = (request: SeenRequest | undefined, header: string, key: string) => {
  const headers = request?.headers ?? {}
  assert.strictEqual(headers[header], key)
  for (const name of ["authorization", "api-key", "x-api-key", "x-goog-api-key"]) {
    if (name !== header) assert.isUndefined(headers[name], name)
  }
}

const admin = (path: string, method = "GET", body?: object) =>
  fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${adminKey}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })

const key = "azure-key"

describe("the recipes for Azure", () => {
  const calls = [
    ["v1", "/openai/v1", ""],
    ["deployment", "/openai/deployments/my-gpt", "?api-version=2024-10-21"]
  ] as const

  it.each(calls)(
    "send every call to the %s address with its query, and the key in its header",
    async (_, base, query) => {
      const all = recipes()
      assert.lengthOf(all, calls.length)
      const recipe = all[calls.findIndex(([, each]) => each === base)]
      server.list(() => modelList("gpt-of-the-region"))
      server.answer(({ path }) =>
        path.includes("/embeddings")
          ? json(200, { data: [{ index: 0, embedding: [0.5] }], usage: {} })
          : path.includes("/moderations")
          ? json(200, { results: [] })
          : streamed({ content: "Hello" })
      )
      await start({ ...recipe, embeddings: { provider: "upstream" } })
      for (const style of styleNames) {
        for (const stream of [false, true]) {
          assert.strictEqual((await ask(gateway.url, style, stream, "upstream-chat")).text, "Hello")
        }
      }
      for (const path of ["embeddings", "moderations"]) {
        const response = await fetch(`${gateway.url}/v1/${path}`, {
          method: "POST",
          headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
          body: JSON.stringify({ input: "a", model: "upstream-chat" })
        })
        assert.strictEqual(response.status, 200, await response.text())
      }
      const paths = new Set(server.requests.map(({ path }) => path))
      const expected = ["chat/completions", "embeddings", "moderations"].map((name) => `${base}/${name}${query}`)
      assert.deepStrictEqual([...paths], expected)
      assert.strictEqual(server.lists[0]?.path, `${base}/models${query}`)
      for (const request of [...server.requests, ...server.lists]) isKeyAlone(request, "api-key", key)
    }
  )

  it("pass the test of an account at a deployment, which has no list", async () => {
    await start(recipes()[1]!)
    const response = await admin("/admin/accounts/test-all", "POST", {})
    assert.deepInclude(await response.json(), { success: 1, failed: 0 })
  })

  it("keep the key and the values of the query out of views, captures and logs", async () => {
    server.answer(() => json(400, { error: { message: `The key ${key}-${key} of a-secret-value is wrong` } }))
    const [, recipe] = recipes()
    const upstream = recipe!["upstream"] as RawConfig
    const base_url = `${String(upstream["base_url"])}&code=a-secret-value`
    await start({ ...recipe, accounts: [{ token: `${key}-${key}` }], upstream: { ...upstream, base_url } })
    await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "api-key": "a-secret-value" },
      body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hi" }] })
    })
    assert.include(server.requests[0]?.path, "api-version=2024-10-21&code=a-secret-value")
    const shown = [lines.join("\n")]
    for (
      const path of [
        "/admin/captures",
        "/admin/requests",
        "/admin/upstreams",
        "/admin/settings/fields",
        "/admin/history"
      ]
    ) {
      shown.push(await (await admin(path)).text())
    }
    const { items } = JSON.parse(shown[2]!) as { items: ReadonlyArray<{ id: string }> }
    for (const { id } of items) shown.push(await (await admin(`/admin/requests/${id}`)).text())
    assert.isNotEmpty(items)
    for (const text of shown) {
      assert.notInclude(text, "a-secret-value")
      assert.notInclude(text, `${key}-${key}`)
    }
    assert.include(shown[3], "?api-version=***&code=***")
    assert.include(shown[3], "\"credential_header\":\"api-key\"")
  })
})

describe("an address with a query", () => {
  it("of a messages server gets it beside the parameters of the driver", async () => {
    server.list(() => modelList("claude-x"))
    await start({
      accounts: [{ token: "sk-ant-oat-key" }],
      upstream: { driver: "messages", base_url: `${root}/v1?limit=1&tenant=a`, credential_header: "X-Key", models: {} }
    })
    await server.until(() => server.lists.length > 0)
    assert.strictEqual(server.lists[0]?.path.replace(/limit=\d{2,}/, "limit=N"), "/v1/models?limit=N&tenant=a")
    isKeyAlone(server.lists[0], "x-key", "sk-ant-oat-key")
    await ask(gateway.url, "messages", false, "upstream-chat")
    assert.strictEqual(server.requests[0]?.path, "/v1/messages?limit=1&tenant=a")
    isKeyAlone(server.requests[0], "x-key", "sk-ant-oat-key")
  })

  it("of a content-generation server gets it beside the parameters of the driver", async () => {
    await start({
      accounts: [{ token: "key-1" }],
      upstream: {
        driver: "generate",
        base_url: `${root}/models/x:generateContent?alt=json&tenant=a`,
        credential_header: "authorization"
      }
    })
    await ask(gateway.url, "generate", false, "upstream-chat")
    assert.strictEqual(server.requests[0]?.path, "/v1beta/models/upstream-chat:generateContent?alt=json&tenant=a")
    isKeyAlone(server.requests[0], "authorization", "key-1")
  })

  it("of a session upstream gets it on every call", async () => {
    server.answer(() => json(500, {}))
    await start({
      accounts: [{ email: "a@x.org", password: "p" }],
      upstream: { driver: "session", base_url: `${root}/base?tenant=a` }
    })
    await ask(gateway.url, "chat", false, "upstream-chat")
    assert.isNotEmpty(server.requests)
    for (const { path } of server.requests) assert.match(path, /^\/base\/api\/v0\/[^?]+\?tenant=a$/)
  })
})
