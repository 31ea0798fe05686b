/**
 * First impressions: the banner, one log line for each request, redirects, and hints for near misses.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { bannerLines, type StartFacts } from "../../src/server/banner.ts"
import { requestLine } from "../../src/server/loggers.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"

const facts: StartFacts = {
  address: "http://127.0.0.1:5001",
  config: { path: "/etc/gateway/config.json", exists: true },
  upstreams: [{ name: "default", driver: "openai", address: "http://127.0.0.1:8000/v1", accounts: 0 }],
  model: "upstream-chat",
  proxies: [],
  findings: [],
  directTokens: false,
  generatedKey: undefined,
  configuredKey: "my-key",
  generatedAdminKey: undefined,
  console: true,
  terminal: true
}

describe("the start", () => {
  it("says what it runs on", () => {
    assert.deepEqual(bannerLines(facts), [
      "Model Gateway listens on http://127.0.0.1:5001",
      "config        /etc/gateway/config.json",
      "upstream      openai at http://127.0.0.1:8000/v1, no accounts: nothing is sent as a key",
      "console       http://127.0.0.1:5001/console/  (sign in with the admin key)",
      "",
      "curl -N http://127.0.0.1:5001/v1/chat/completions -H 'Authorization: Bearer my-key' " +
      "-H \"Content-Type: application/json\" \\",
      "  -d '{\"model\":\"upstream-chat\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'",
      ""
    ])
  })

  it("shows a configured key to a terminal alone, as a shell takes it", () => {
    assert.notInclude(bannerLines({ ...facts, terminal: false }).join("\n"), "my-key")
    assert.include(bannerLines({ ...facts, configuredKey: "a$b`c\"d" }).join("\n"), "'Authorization: Bearer a$b`c\"d'")
  })

  it("says which keys are generated", () => {
    const says = (more: Partial<StartFacts>) =>
      bannerLines({ ...facts, ...more }).filter((line) => line.includes("generated at every start")).map((line) =>
        line.slice(0, 15)
      )
    assert.deepStrictEqual(says({}), [])
    assert.deepStrictEqual(says({ generatedKey: "gw-x" }), ["The gateway key"])
    assert.deepStrictEqual(says({ generatedAdminKey: "admin-x" }), ["The admin key i"])
    assert.lengthOf(says({ generatedKey: "gw-x", generatedAdminKey: "admin-x" }), 2)
  })

  it("says that other bearers go upstream, where a server receives them", () => {
    const says = (more: Partial<StartFacts>) =>
      bannerLines({ ...facts, directTokens: true, ...more }).join("\n").includes("auth.direct_tokens")
    assert.isTrue(says({}))
    assert.isFalse(says({ directTokens: false }))
    assert.isFalse(says({ upstreams: [{ name: "default", driver: "embedded", address: "", accounts: 0 }] }))
  })

  it("names several upstreams, and a model that one of them serves", () => {
    const gpu = { name: "gpu", driver: "openai", address: "http://user:secret@127.0.0.1:8000/v1", accounts: 0 }
    const vendor = { name: "vendor", driver: "messages", address: "https://messages.example", accounts: 2 }
    const lines = bannerLines({ ...facts, upstreams: [gpu, vendor], model: "a'b" })
    assert.deepStrictEqual(lines.slice(2, 4), [
      "upstream      gpu: openai at http://127.0.0.1:8000/v1, no accounts: nothing is sent as a key",
      "upstream      vendor: messages at https://messages.example, 2 accounts"
    ])
    assert.include(lines.join("\n"), `"model":"a\\u0027b"`)
  })

  it("names the proxy of an upstream", () => {
    const proxies = [{ upstream: "default", address: "http://proxy.corp:3128" }]
    assert.include(bannerLines({ ...facts, proxies }), "proxy         default uses http://proxy.corp:3128")
  })

  it("warns of servers that do not answer, and of models that they lack", () => {
    const findings = Array.from({ length: 30 }, (_, i) => `upstream u${i} does not answer: the connection was refused`)
    const lines = bannerLines({ ...facts, findings }).filter((line) => line.startsWith("warning"))
    assert.strictEqual(lines[0], "warning       upstream u0 does not answer: the connection was refused")
    assert.isBelow(lines.length, findings.length)
  })

  it("says that changes stay in memory where the environment is the source", () => {
    assert.include(
      bannerLines({ ...facts, config: undefined }),
      "config        GATEWAY_CONFIG_JSON; changes stay in memory"
    )
  })
})

describe("the start of a node", () => {
  const configLine = (shared: NonNullable<StartFacts["shared"]>) => bannerLines({ ...facts, shared })[1]

  it("says which revision is in effect and what keeps it", () => {
    assert.strictEqual(
      configLine({ revision: 7, keptIn: "/data/shared-config.sealed", lasting: true }),
      "config        from the store, revision 7; saved in /data/shared-config.sealed"
    )
    assert.strictEqual(
      configLine({ revision: 7, keptIn: undefined, lasting: true }),
      "config        from the store, revision 7; saved by the store alone"
    )
    assert.match(
      configLine({ revision: 1, keptIn: undefined, lasting: false }) ?? "",
      /not saved to disk: changes are lost if the store and all nodes stop/
    )
  })
})

describe("a request on a terminal", () => {
  const date = new Date(2026, 0, 31, 20, 34, 7)
  const fields = {
    request_id: "req_1",
    style: "chat",
    model: "upstream-chat",
    status: 200,
    outcome: "stop",
    input_tokens: 4,
    output_tokens: 39,
    duration_ms: 61
  }

  it("is one line", () => {
    assert.strictEqual(requestLine(date, fields), "20:34:07 chat upstream-chat 200 stop 4→39 tokens 61 ms")
  })

  it("has its cause and its id where it failed", () => {
    const { input_tokens: _in, output_tokens: _out, ...rest } = fields
    const cause = { code: "ECONNREFUSED", address: "http://127.0.0.1:9" }
    assert.strictEqual(
      requestLine(date, { ...rest, status: 503, outcome: "upstream_error", cause }),
      "20:34:07 chat upstream-chat 503 upstream_error 61 ms ECONNREFUSED http://127.0.0.1:9 req_1"
    )
  })

  it("is one line and nothing that a terminal obeys, whatever callers wrote", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
      const { model: _model, ...rest } = fields
      assert.notMatch(requestLine(date, { ...rest, requested_model: text }), /\p{Cc}/u)
    }))
  })
})

describe("what is nearly right", () => {
  let gateway: RunningGateway
  beforeAll(async () => {
    gateway = await startGateway({
      model_aliases: { "house-model": "upstream-chat" },
      upstream: { models: { qwen3: "Qwen/Qwen3-8B" } }
    })
  })
  afterAll(() => gateway.stop())

  const message = async (method: string, path: string, body?: object) => {
    const reply = await fetch(`${gateway.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${businessKey}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const { error } = await reply.json() as { readonly error: { readonly message: string } }
    return error.message
  }

  it("in an address gets a hint what to drop or add", async () => {
    assert.match(
      await message("POST", "/v1/v1/chat/completions"),
      /There is no endpoint POST \/v1\/v1\/chat\/completions: the client adds \/v1 to its base URL itself; drop it there/
    )
    assert.match(await message("POST", "/v1/v1/messages"), /drop it there/)
    assert.match(await message("POST", "/chat/completions"), /add \/v1 to the client's base URL/)
    assert.match(await message("POST", "/models/upstream-chat:generateContent"), /add \/v1(?:beta)? to/)
    assert.match(await message("GET", "/nothing/like/it"), /There is no endpoint GET \/nothing\/like\/it$/)
  })

  it("in a model's name gets the nearest names, in each style", async () => {
    const messages = [{ role: "user", content: "Hello" }]
    assert.strictEqual(
      await message("POST", "/v1/chat/completions", { model: "hose-model", messages }),
      "The model \"hose-model\" does not exist; did you mean \"house-model\"?"
    )
    assert.include(
      await message("POST", "/v1/responses", { model: "upstream-chta", input: "Hello" }),
      "did you mean \"upstream-chat\""
    )
    assert.include(
      await message("POST", "/v1/messages", { model: "upstream-reasonr", max_tokens: 9, messages }),
      "did you mean \"upstream-reasoner\""
    )
    assert.include(
      await message("POST", "/v1beta/models/house-modle:generateContent", { contents: [{ parts: [{ text: "Hi" }] }] }),
      "did you mean \"house-model\""
    )
    assert.strictEqual(
      await message("POST", "/v1/chat/completions", { model: "zzzzzzzz", messages }),
      "The model \"zzzzzzzz\" does not exist; GET /v1/models lists the models"
    )
  })

  it("leads from the address to the console, and to the documents where that is off", async () => {
    const front = () => fetch(`${gateway.url}/`, { redirect: "manual" })
    assert.deepEqual([(await front()).status, (await front()).headers.get("location")], [302, "console/"])
    await gateway.stop()
    gateway = await startGateway({ console: { enabled: false } })
    assert.strictEqual((await front()).headers.get("location"), "docs")
    const documents = await fetch(`${gateway.url}/`)
    assert.match(documents.headers.get("content-type") ?? "", /html/)
  })
})
