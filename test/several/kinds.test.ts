/** Requests that are no completions over several upstreams: embeddings, counts of tokens, and requests that are carried as they are. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { admin } from "../gateway/support.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { type Farm, json, post, question, said, startFarm } from "./support.ts"

let farm: Farm
let gateway: RunningGateway
beforeAll(async () => {
  farm = await startFarm()
})
afterAll(() => farm.stop())
afterEach(() => gateway.stop())

const counts = (...names: ReadonlyArray<string>) => names.map((name) => farm.seen(name).length)

const start = async (upstreams: RawConfig, targets: ReadonlyArray<string>, config: RawConfig = {}) => {
  gateway = await startGateway({ upstreams, routes: { r: targets }, ...config })
}

const works = (...names: ReadonlyArray<string>) => {
  for (const name of names) farm.answer(name, (request) => said(name, request))
}
const broken = (...names: ReadonlyArray<string>) => {
  for (const name of names) farm.answer(name, () => json(500, { error: { message: name } }))
}

const kinds = [
  {
    path: "/v1/embeddings",
    body: { model: "r", input: "Hi" },
    config: { embeddings: { provider: "upstream" } },
    refused: 501
  },
  { path: "/v1/completions", body: { model: "r", prompt: "Hi" }, config: {}, refused: 404 },
  { path: "/v1/rerank", body: { model: "r", query: "Hi", documents: ["a"] }, config: {}, refused: 404 }
]

describe.each(kinds)("$path", ({ body, config, path, refused }) => {
  it("goes to the next target, without those whose driver cannot carry it", async () => {
    broken("one")
    works("vendor", "two")
    await start(
      {
        vendor: farm.upstream("vendor", { driver: "messages" }),
        one: farm.upstream("one"),
        two: farm.upstream("two")
      },
      ["vendor/m", "one/m", "two/m"],
      config
    )
    const told = await post(gateway, path, body)
    assert.deepInclude(told, { status: 200, upstream: "two", target: "m" }, told.body)
    assert.deepStrictEqual(counts("vendor", "one", "two"), [0, 1, 1])
  })

  it("has three tries of a target", async () => {
    broken("one", "two")
    await start({ one: farm.upstream("one"), two: farm.upstream("two") }, ["one/m", "two/m"], config)
    const told = await post(gateway, path, body)
    assert.deepInclude(told, { status: 503, upstream: "two" })
    assert.include(told.body, "two")
    assert.deepStrictEqual(counts("one", "two"), [3, 3])
  })

  it("is refused where no target can carry it", async () => {
    works("vendor", "other")
    await start(
      {
        vendor: farm.upstream("vendor", { driver: "messages" }),
        other: farm.upstream("other", { driver: "messages" })
      },
      ["vendor/m", "other/m"],
      config
    )
    assert.strictEqual((await post(gateway, path, body)).status, refused)
    assert.deepStrictEqual(counts("vendor", "other"), [0, 0])
  })
})

describe("embeddings", () => {
  const [{ body, config, path }] = kinds as [typeof kinds[number]]

  it("come from targets of one model id alone: the first that a driver can embed with", async () => {
    broken("one", "two")
    works("vendor", "three")
    await start(
      {
        vendor: farm.upstream("vendor", { driver: "messages", models: ["x"] }),
        one: farm.upstream("one", { models: ["e"] }),
        three: farm.upstream("three", { models: ["x"] }),
        two: farm.upstream("two", { models: ["e"] })
      },
      ["vendor/x", "one/e", "three/x", "two/e"],
      config
    )
    const told = await post(gateway, path, body)
    assert.strictEqual(told.status, 503)
    assert.deepStrictEqual(counts("vendor", "one", "three", "two"), [0, 3, 0, 3])
  })

  it("come from no other model while the upstream of the first is disabled", async () => {
    works("one", "two")
    await start(
      { one: farm.upstream("one", { models: ["e"], enabled: false }), two: farm.upstream("two", { models: ["x"] }) },
      ["one/e", "two/x"],
      config
    )
    const told = await post(gateway, path, body)
    assert.strictEqual(told.status, 503, told.body)
    assert.deepStrictEqual(counts("one", "two"), [0, 0])
  })

  it("have their task as an input_type where the upstream that serves lists that field", async () => {
    broken("one")
    works("two")
    const path = "/v1beta/models/r:embedContent"
    const asked = { content: { parts: [{ text: "Hi" }] }, taskType: "RETRIEVAL_QUERY" }
    const types = () => [...farm.seen("one"), ...farm.seen("two")].map(({ body }) => body["input_type"])
    const [one, two] = ["one", "two"].map((name) => farm.upstream(name))
    await start({ one: one!, two: { ...two, fields: ["input_type"] } }, ["one/m", "two/m"], config)
    const listed = await post(gateway, path, asked)
    assert.deepStrictEqual([listed.upstream, listed.headers.get("x-gateway-ignored")], ["two", null])
    assert.deepStrictEqual(types(), [undefined, "query"])
    await gateway.stop()
    broken("one")
    works("two")
    await start({ one: { ...one, fields: ["input_type"] }, two: two! }, ["one/m", "two/m"], config)
    const unlisted = await post(gateway, path, asked)
    assert.deepStrictEqual([unlisted.upstream, unlisted.headers.get("x-gateway-ignored")], ["two", "taskType"])
    assert.deepStrictEqual(types(), ["query", undefined])
  })

  it("have the name of the route", async () => {
    works("one")
    await start({ one: farm.upstream("one") }, ["one/m"], config)
    assert.deepInclude(await post(gateway, path, body), { status: 200, model: "r", upstream: "one" })
  })
})

describe("a count of tokens", () => {
  const count = () => post(gateway, "/v1/messages/count_tokens", { model: "r", messages: question })
  const vendors = () => ({
    plain: farm.upstream("plain"),
    one: farm.upstream("one", { driver: "messages" }),
    two: farm.upstream("two", { driver: "messages" })
  })

  it("is made by the first upstream that counts and works", async () => {
    broken("one")
    works("plain", "two")
    await start(vendors(), ["plain/m", "one/m", "two/m"])
    const told = await count()
    assert.strictEqual(told.status, 200, told.body)
    assert.include(told.body, `"input_tokens":${"two".length}`)
    assert.deepStrictEqual(counts("plain", "one", "two"), [0, 1, 1])
  })

  it("is the gateway's estimate where no upstream counts", async () => {
    works("plain")
    await start(vendors(), ["plain/m"])
    assert.strictEqual((await count()).status, 200)
    assert.deepStrictEqual(counts("plain"), [0])
  })
})

describe("advice about an upstream", () => {
  const cases = [
    [404, { error: { message: "no", code: "model_not_found" } }, "upstreams.one.models.m says which model"],
    [404, {}, "upstreams.one.base_url may lack its version prefix"],
    [307, {}, "upstreams.one.base_url must be the address itself"],
    [401, { error: { message: "no" } }, "add an account of the upstream one with the key as its token"]
  ] as const

  const recorded = async (told: { readonly headers: Headers }) =>
    (await admin(gateway.url, "GET", `/admin/requests/${told.headers.get("x-request-id")}`))["error_message"]

  it.each(cases)(
    "names its place in the configuration, in the request's record: %s %j",
    async (status, body, advice) => {
      farm.answer("one", () => json(status, body))
      const { base_url, ...one } = farm.upstream("one")
      await start({ one: { ...one, base_url: String(base_url).replace("/v1", "") } }, ["one/m"])
      const told = await post(gateway, "/v1/messages", { model: "r", max_tokens: 9, messages: question })
      assert.include(await recorded(told), advice)
      assert.notInclude(told.body, "upstreams.one")
    }
  )

  it("goes with its name in the text for the caller", async () => {
    farm.answer("one", () => json(500, {}))
    await start({ one: farm.upstream("one") }, ["one/m"])
    const told = await post(gateway, "/v1/messages", { model: "r", max_tokens: 9, messages: question })
    assert.include(told.body, String.raw`The upstream \"one\" failed with HTTP 500.`)
  })

  it("names it for an endpoint that its driver does not carry", async () => {
    await start({ one: farm.upstream("one", { driver: "messages" }) }, ["one/m"])
    const told = await post(gateway, "/v1/rerank", { model: "r", query: "Hi", documents: ["a"] })
    assert.include(told.body, "does not carry it. Ask the gateway's operator.")
    assert.include(await recorded(told), "upstreams.one.driver openai does")
  })
})
