/** The models of a key over several upstreams: a route's name is not the names of its targets. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { type Farm, json, post, question, said, send, startFarm, wayName, ways } from "./support.ts"

const key = "sk-limited"

let farm: Farm
let gateway: RunningGateway
beforeAll(async () => {
  farm = await startFarm()
})
afterAll(() => farm.stop())
afterEach(() => gateway.stop())

/** A gateway with the route `smart` to two targets, and a key with these models. */
const start = async (...models: ReadonlyArray<string>) => {
  const hosted: RawConfig = { models: ["large", "small"] }
  gateway = await startGateway({
    keys: [key, "free"],
    key_records: { [keyId(key, sha256Hex)]: { models } },
    upstream: { driver: "embedded" },
    upstreams: { hosted: farm.upstream("hosted", hosted), gpu: farm.upstream("gpu", { models: ["large"] }) },
    accounts: [{ upstream: "hosted", token: "one" }, { upstream: "gpu", token: "two" }],
    routes: { smart: ["hosted/large", "gpu/large"] },
    model_aliases: { best: "smart" },
    embeddings: { provider: "upstream" }
  })
  farm.answer(
    "hosted",
    (request) => request.path.endsWith("/rerank") ? json(200, { results: [] }) : said("hosted", request)
  )
}

const seen = () => farm.seen("hosted").length + farm.seen("gpu").length

describe("a key whose models name a route", () => {
  it.each(ways.map((way) => [wayName(way), way] as const))("asks for its name only (%s)", async (_, way) => {
    await start("smart")
    for (const model of ["smart", "SMART", "best"]) {
      assert.strictEqual((await send(gateway, way, model, { key })).status, 200, model)
    }
    const before = seen()
    for (const model of ["hosted/large", "Hosted/Large", "gpu/large", "large", "hosted/small"]) {
      const refused = await send(gateway, way, model, { key })
      assert.strictEqual(refused.status, 403, model)
      assert.include(refused.body, "may not use the model")
    }
    assert.strictEqual(seen(), before)
    assert.strictEqual((await send(gateway, way, "hosted/large", { key: "free" })).status, 200)
  })

  it("asks for its name only where there is no completion", async () => {
    await start("smart")
    const contents = [{ role: "user", parts: [{ text: "Hi" }] }]
    const requests: ReadonlyArray<readonly [path: (model: string) => string, body: (model: string) => object]> = [
      [() => "/v1/embeddings", (model) => ({ model, input: "Hi" })],
      [() => "/v1/rerank", (model) => ({ model, query: "Hi", documents: ["one"] })],
      [() => "/v1/messages/count_tokens", (model) => ({ model, messages: question })],
      [() => "/v1/responses/input_tokens", (model) => ({ model, input: "Hi" })],
      [(model) => `/v1beta/models/${model}:countTokens`, () => ({ contents })]
    ]
    for (const [path, body] of requests) {
      assert.strictEqual((await post(gateway, path("smart"), body("smart"), { key })).status, 200, path("smart"))
      const target = "hosted/large"
      assert.strictEqual((await post(gateway, path(target), body(target), { key })).status, 403, path(target))
    }
  })

  it("reaches its other targets when the first one fails", async () => {
    await start("smart")
    farm.answer("hosted", () => json(500, { error: { message: "trouble" } }))
    const reply = await send(gateway, ways[0]!, "smart", { key })
    assert.deepStrictEqual([reply.status, reply.upstream], [200, "gpu"])
  })

  it("reads of no other model in the errors of unknown names, in every API", async () => {
    await start("smart")
    for (const model of ["smal", "larg", "hosted/larg", "gpu/x", "upstream-cha", "smrt"]) {
      for (const way of ways) {
        const { body, status } = await send(gateway, way, model, { key })
        assert.include([400, 404], status, body)
        assert.include(body, "does not exist")
        assert.notMatch(body, /"(?:small|large|upstream-chat|hosted|gpu)\\?"/, body)
        if (model === "smrt") assert.match(body, /did you mean \\?"smart\\?"/)
      }
      for (const path of ["/v1/models", "/v1beta/models", "/msgcompat/v1/models"]) {
        for (const name of [model, "large", "small"]) {
          const response = await fetch(`${gateway.url}${path}/${name}`, { headers: { authorization: `Bearer ${key}` } })
          assert.strictEqual(response.status, 404, path)
          assert.notMatch(await response.text(), /mean [^?]*(?:small|large|upstream-chat)|has "/)
        }
      }
    }
    assert.include((await send(gateway, ways[0]!, "smal", { key: "free" })).body, "small")
  })

  it("sees the route in the lists, and no target", async () => {
    await start("smart")
    const get = async (path: string) => {
      const response = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${key}` } })
      return { status: response.status, body: await response.text() }
    }
    assert.include((await get("/v1/models")).body, "\"smart\"")
    assert.notInclude((await get("/v1/models")).body, "large")
    assert.strictEqual((await get("/v1/models/smart")).status, 200)
    for (const path of ["/v1/models/hosted/large", "/v1beta/models/hosted/large"]) {
      assert.notStrictEqual((await get(path)).status, 200, path)
    }
  })
})

describe("a key whose models name a target, or all of an upstream", () => {
  it.each([["hosted/large"], ["hosted/*"]])("asks for that target (%s)", async (name) => {
    await start("smart", name)
    assert.strictEqual((await send(gateway, ways[0]!, "hosted/large", { key })).status, 200)
    assert.strictEqual((await send(gateway, ways[0]!, "gpu/large", { key })).status, 403)
  })
})
