/** Bodies that name another model than the gateway reads, or that let the server choose one. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { request as httpRequest } from "node:http"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { json, type OpenAiServer, type SeenRequest, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { plainRequests } from "../support/plainRequests.ts"
import { styleNames } from "../support/styleClients.ts"

const limitedTo: Readonly<Record<string, RawConfig>> = {
  "sk-models": { models: ["m"] },
  "sk-cost": { limits: [{ window: "day", cost: 100 }] },
  "sk-requests": { limits: [{ window: "day", requests: 1_000 }] },
  "sk-free": {}
}
const restricted = ["sk-models", "sk-cost"]
const others = ["sk-requests", "sk-free"]

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())
afterEach(() => gateway.stop())

const answer = ({ path }: SeenRequest) =>
  path.endsWith("/chat/completions")
    ? streamed({ content: "Yes" })
    : path.endsWith("/embeddings")
    ? json(200, { object: "list", data: [{ object: "embedding", index: 0, embedding: [1] }] })
    : json(200, { id: "one" })

const start = async (upstream: RawConfig = {}, config: RawConfig = {}) => {
  server.answer(answer)
  gateway = await startGateway({
    keys: Object.keys(limitedTo),
    key_records: Object.fromEntries(
      Object.entries(limitedTo).map(([key, record]) => [keyId(key, sha256Hex), record])
    ),
    accounts: [{ token: "sk-server" }],
    upstream: { driver: "openai", base_url: server.baseUrl, models: { m: "m" }, ...upstream },
    embeddings: { provider: "upstream" },
    prices: { m: { input: 1 } },
    ...config
  })
}

interface Refusal {
  readonly status: number
  readonly message: string
}

const send = async (path: string, body: string | FormData, key = "sk-free"): Promise<Refusal> => {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      ...(typeof body === "string" ? { "content-type": "application/json" } : {})
    },
    body
  })
  const text = await response.text()
  const said: unknown = response.status === 200 ? {} : JSON.parse(text)
  const { error } = said as { error?: { message: string } }
  return { status: response.status, message: error?.message ?? "" }
}

const contents = [{ role: "user", parts: [{ text: "Hi" }] }]
const question = [{ role: "user", content: "Hi" }]

/** The endpoints that read JSON, with a body that is served. Some name the model in their path. */
const bodies: Readonly<Record<string, object>> = {
  ...Object.fromEntries(styleNames.map((style) => {
    const { body, path } = plainRequests[style]
    const said = style === "generate" ? body(false) : { ...body(false), model: "m" }
    return [path(false).replace("upstream-chat", "m"), said]
  })),
  "/v1beta/models/m:countTokens": { contents },
  "/v1/messages/count_tokens": { model: "m", messages: question },
  "/v1/responses/input_tokens": { model: "m", input: "Hi" },
  "/v1/embeddings": { model: "m", input: "Hi" },
  "/v1beta/models/m:embedContent": { content: contents[0] },
  "/v1beta/models/m:batchEmbedContents": { requests: [{ model: "models/m", content: contents[0] }] },
  "/v1/completions": { model: "m", prompt: "Hi" },
  "/v1/rerank": { model: "m", query: "Hi", documents: ["one"] },
  "/v1/score": { model: "m", text_1: "one", text_2: "two" },
  "/v1/moderations": { model: "m", input: "Hi" },
  "/v1/images/generations": { model: "m", prompt: "a gate" },
  "/v1/images/edits": { model: "m", prompt: "a gate" },
  "/v1/audio/speech": { model: "m", input: "Hi", voice: "alloy" }
}
const paths = Object.keys(bodies)
const relayed = paths.filter((path) => /^\/v1\/(?:completions|rerank|score|moderations|images|audio)/.test(path))
const forms = ["/v1/images/edits", "/v1/audio/transcriptions", "/v1/audio/translations"]

/** The body with a member more, as it is written. */
const withMember = (path: string, member: string) => `{${member},${JSON.stringify(bodies[path]).slice(1)}`

const formOf = (...fields: ReadonlyArray<readonly [name: string, value: string]>) => {
  const form = new FormData()
  form.append("model", "m")
  for (const [name, value] of fields) form.append(name, value)
  form.append("file", new Blob(["RIFF"]), "a.wav")
  return form
}

const names = (message: string, field: string) => assert.strictEqual(message.slice(0, field.length + 2), `${field}: `)

describe("a name that equals model but for its case", () => {
  it.each(paths)("is refused at %s, for every key", async (path) => {
    await start()
    assert.strictEqual((await send(path, JSON.stringify(bodies[path]))).status, 200)
    const seen = server.requests.length
    for (const [written, name] of [["Model", "Model"], ["MODEL", "MODEL"], ["mod\\u0045l", "modEl"]] as const) {
      for (const key of [...restricted, ...others]) {
        const { message, status } = await send(path, withMember(path, `"${written}":"other"`), key)
        assert.strictEqual(status, 400, `${name} ${key}`)
        names(message, name)
      }
    }
    assert.lengthOf(server.requests, seen)
  })

  it.each(forms)("is refused in a form at %s, and so is a list of that name", async (path) => {
    await start()
    assert.strictEqual((await send(path, formOf())).status, 200)
    for (const name of ["Model", "MODEL", "model[]", "Model[0]"]) {
      const { message, status } = await send(path, formOf([name, "other"]))
      assert.strictEqual(status, 400, name)
      names(message, name)
    }
    assert.lengthOf(server.requests, 1)
  })

  it("is refused in the request within a count of tokens", async () => {
    await start()
    const body = { generateContentRequest: { model: "models/m", Model: "models/other", contents } }
    const { message, status } = await send("/v1beta/models/m:countTokens", JSON.stringify(body))
    assert.strictEqual(status, 400)
    names(message, "Model")
  })

  it("has the error format of each style", async () => {
    await start()
    const refusal = async (path: string) => {
      const response = await fetch(gateway.url + path, {
        method: "POST",
        headers: { authorization: "Bearer sk-free" },
        body: withMember(path, "\"Model\":\"other\"")
      })
      return await response.json() as { type?: string; error: Readonly<Record<string, unknown>> }
    }
    assert.deepInclude((await refusal("/v1/chat/completions")).error, {
      type: "invalid_request_error",
      param: "Model",
      code: "invalid_request"
    })
    const messages = await refusal("/v1/messages")
    assert.deepStrictEqual([messages.type, messages.error["type"]], ["error", "invalid_request_error"])
    assert.deepInclude((await refusal("/v1beta/models/m:generateContent")).error, {
      code: 400,
      status: "INVALID_ARGUMENT"
    })
  })
})

describe("a relayed body that names the model twice", () => {
  it.each(relayed)("is refused at %s", async (path) => {
    await start()
    for (const first of ["\"other\"", "[\"other\"]", "{\"id\":\"other\"}"]) {
      const { message, status } = await send(path, withMember(path, `"model":${first}`))
      assert.strictEqual(status, 400, first)
      names(message, "model")
    }
    assert.lengthOf(server.requests, 0)
  })
})

/** Fields by which servers choose another model or a tier, as some servers read them. */
const choosing: ReadonlyArray<readonly [name: string, value: unknown]> = [
  ["models", ["other"]],
  ["route", "fallback"],
  ["provider", { order: ["other"] }],
  ["service_tier", "priority"],
  ["fallbacks", ["other"]],
  ["Models", ["other"]],
  ["model\u017f", ["other"]],
  ["serviceTier", "priority"]
]

describe("a field by which servers choose another model or a tier", () => {
  it.each(paths)("is refused at %s for a key with models or a cost limit, and for no other", async (path) => {
    await start()
    for (const [name, value] of choosing) {
      const body = withMember(path, `${JSON.stringify(name)}:${JSON.stringify(value)}`)
      for (const key of restricted) {
        const { message, status } = await send(path, body, key)
        assert.strictEqual(status, 400, `${name} ${key}`)
        names(message, name)
      }
    }
    assert.lengthOf(server.requests, 0)
    for (const key of others) {
      for (const name of ["models", "provider"]) {
        assert.strictEqual((await send(path, withMember(path, `"${name}":{"a":1}`), key)).status, 200, `${name} ${key}`)
      }
    }
    for (const key of restricted) {
      assert.strictEqual((await send(path, withMember(path, "\"service_tier\":null"), key)).status, 200, key)
    }
  })

  it("still reaches the server for keys without these limits", async () => {
    await start()
    await send("/v1/chat/completions", withMember("/v1/chat/completions", "\"provider\":{\"order\":[\"x\"]}"))
    await send("/v1/rerank", withMember("/v1/rerank", "\"models\":[\"x\"]"))
    assert.deepStrictEqual(server.requests.map(({ body }) => body["provider"] ?? body["models"]), [
      { order: ["x"] },
      ["x"]
    ])
  })

  it("reaches the server for every key if upstream.fields names it", async () => {
    await start({ fields: ["provider"] })
    for (const path of ["/v1/chat/completions", "/v1/rerank"]) {
      for (const key of restricted) {
        assert.strictEqual((await send(path, withMember(path, "\"provider\":{\"a\":1}"), key)).status, 200)
        const { message, status } = await send(path, withMember(path, "\"provider\":{\"a\":1},\"models\":[\"x\"]"), key)
        assert.strictEqual(status, 400)
        names(message, "models")
        assert.strictEqual((await send(path, withMember(path, "\"Provider\":{\"a\":1}"), key)).status, 400)
      }
    }
    assert.deepStrictEqual(
      server.requests.map(({ body }) => body["provider"]),
      Array.from({ length: 4 }, () => ({ a: 1 }))
    )
  })

  it("is allowed by all upstreams that may serve the request", async () => {
    const target = (fields: string | ReadonlyArray<string>): RawConfig => ({
      driver: "openai",
      base_url: server.baseUrl,
      models: { m: "m" },
      fields
    })
    await start({}, {
      upstream: { driver: "embedded" },
      upstreams: { one: target(["provider"]), two: target("pass") },
      accounts: [{ upstream: "one", token: "one" }, { upstream: "two", token: "two" }],
      routes: { m: ["one", "two"] }
    })
    const body = withMember("/v1/chat/completions", "\"provider\":{\"a\":1}")
    assert.strictEqual((await send("/v1/chat/completions", body, "sk-models")).status, 400)
  })

  it("is refused in the settings of a content generation", async () => {
    await start()
    const path = "/v1beta/models/m:generateContent"
    for (
      const [settings, inner] of [
        ["generationConfig", "routingConfig"],
        ["generation_config", "model_selection_config"]
      ] as const
    ) {
      const body = withMember(path, `"${settings}":{"${inner}":{"autoMode":{}}}`)
      const { message, status } = await send(path, body, "sk-models")
      assert.strictEqual(status, 400)
      names(message, `${settings}.${inner}`)
      assert.strictEqual((await send(path, body)).status, 200)
    }
  })
})

describe("a form with a field by which servers choose another model or a tier", () => {
  it.each(forms)("is refused at %s for a key with models or a cost limit, and for no other", async (path) => {
    await start()
    for (const name of ["models", "models[]", "provider[order][]", "service_tier", "Route"]) {
      for (const key of restricted) {
        const { message, status } = await send(path, formOf([name, "other"]), key)
        assert.strictEqual(status, 400, `${name} ${key}`)
        names(message, name)
      }
    }
    assert.lengthOf(server.requests, 0)
    for (const key of others) assert.strictEqual((await send(path, formOf(["models", "other"]), key)).status, 200)
  })

  it("is refused behind the file too, while that is sent on: the server gets no whole form", async () => {
    await start()
    const boundary = "----cut"
    const part = (name: string, value: string) =>
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
    const file = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n`
    for (const [late, status] of [["models", 400], ["Model", 400], ["language", 200]] as const) {
      const before = server.requests.length
      const answered = Promise.withResolvers<number>()
      const { hostname, port } = new URL(gateway.url)
      const upload = httpRequest({
        hostname,
        port,
        method: "POST",
        path: "/v1/audio/transcriptions",
        headers: {
          authorization: "Bearer sk-models",
          "content-type": `multipart/form-data; boundary=${boundary}`
        }
      }, (response) => {
        answered.resolve(response.statusCode ?? 0)
        response.resume()
      })
      upload.on("error", answered.reject)
      upload.write(part("model", "m") + file)
      const chunk = Buffer.alloc(64 * 1024, 65)
      for (let sent = 0; sent < 8; sent++) upload.write(chunk)
      upload.end(`\r\n${part(late, "other")}--${boundary}--\r\n`)
      assert.strictEqual(await answered.promise, status, late)
      assert.lengthOf(server.requests, before + (status === 200 ? 1 : 0))
    }
  })
})
