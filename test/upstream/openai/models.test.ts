/** Which of a server's models a name means, over sockets, in every style. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { Context, Effect, Logger } from "effect"
import { ConfigStore } from "../../../src/config/ConfigStore.ts"
import { sha256Hex } from "../../../src/config/json.ts"
import { keyId } from "../../../src/domain/identity.ts"
import { adminKey, businessKey, type GatewayOptions, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { makeMovedClock } from "../../support/movedClock.ts"
import { json, modelList, type OpenAiServer, startOpenAiServer, streamed } from "../../support/openaiServer.ts"
import { untilHolds } from "../../support/until.ts"
import { ask, styleNames } from "./callStyles.ts"

let server: OpenAiServer
let gateway: RunningGateway
beforeEach(async () => {
  server = await startOpenAiServer()
  server.answer(({ body }) => streamed({ content: `I am ${String(body["model"])}.` }))
})
afterEach(async () => {
  await gateway.stop()
  await server.stop()
})

const models = { "upstream-chat": "small:7b", big: { model: "big:70b", reasoning: false } }
const start = async (config: object = {}, options: GatewayOptions = {}) => {
  const upstream = { driver: "openai", base_url: server.baseUrl, models }
  gateway = await startGateway({ upstream, ...config }, options)
}
const say = async (model: string) => (await ask(gateway.url, "chat", false, model)).text
const shown = (model: string) =>
  fetch(`${gateway.url}/v1/models/${encodeURIComponent(model)}`, {
    headers: { authorization: `Bearer ${businessKey}` }
  })
/** The names in a list of models. */
const listed = async (path: string, bearer?: string): Promise<ReadonlyArray<string>> => {
  const headers = bearer === undefined ? undefined : { authorization: `Bearer ${bearer}` }
  const response = await fetch(gateway.url + path, headers && { headers })
  const { data = [], models = [] } = await response.json() as {
    data?: ReadonlyArray<{ id: string }>
    models?: ReadonlyArray<{ name: string }>
  }
  return [...data.map(({ id }) => id), ...models.map(({ name }) => name)]
}
const put = (settings: object) =>
  fetch(`${gateway.url}/admin/settings`, {
    method: "PUT",
    headers: { authorization: `Bearer ${adminKey}` },
    body: JSON.stringify(settings)
  })
/** Resolves once the gateway knows a model of the server's list. */
const knows = (model: string) => untilHolds(async () => (await shown(model)).status === 200)

describe("a name in the server's list", () => {
  it.each(styleNames)("is that model in the %s style", async (style) => {
    server.list(() => modelList("small:7b", "Other/Model-8B", "gpt-4o"))
    await start()
    await knows("Other/Model-8B")
    for (const stream of [false, true]) {
      const { text } = await ask(gateway.url, style, stream, "gpt-4o")
      assert.strictEqual(text, "I am gpt-4o.")
    }
    assert.strictEqual((await ask(gateway.url, style, false, "other/model-8b")).text, "I am Other/Model-8B.")
  })

  it("is known to the first request", async () => {
    server.list(() => modelList("qwen3:8b"))
    await start()
    assert.strictEqual(await say("qwen3:8b"), "I am qwen3:8b.")
  })

  it("stays known after a change of other settings of the upstream", async () => {
    server.list(() => server.lists.length === 1 ? modelList("qwen3:8b") : { after: "hang", headless: true })
    await start()
    const config = Context.get(gateway.services, ConfigStore)
    const upstream = { driver: "openai", base_url: server.baseUrl, models, timeouts: { silence: 60 } }
    await Effect.runPromise(config.update((raw) => Effect.succeed({ ...raw, upstream })))
    await server.until(() => server.lists.length === 2)
    assert.strictEqual(await say("qwen3:8b"), "I am qwen3:8b.")
    await Effect.runPromise(
      config.update((raw) => Effect.succeed({ ...raw, upstream: { ...upstream, base_url: `${server.baseUrl}/other` } }))
    )
    assert.strictEqual((await shown("qwen3:8b")).status, 404)
  })

  it("is listed by the gateway, and can be read", async () => {
    server.list(() => modelList("Qwen/Qwen3-8B"))
    await start()
    await knows("Qwen/Qwen3-8B")
    assert.deepInclude(await (await shown("qwen/qwen3-8b")).json(), { id: "Qwen/Qwen3-8B" })
    assert.deepStrictEqual(await listed("/v1/models"), ["upstream-chat", "big", "Qwen/Qwen3-8B"])
  })

  it("is read again every ten minutes; a failed read keeps the last list", async () => {
    const clock = makeMovedClock()
    server.list(() => modelList("one:1b"))
    await start({}, { clock })
    await knows("one:1b")
    server.list(() => modelList("two:2b"))
    clock.move(600_000)
    await knows("two:2b")
    assert.strictEqual((await shown("one:1b")).status, 404)
    server.list(() => json(500, {}))
    clock.move(600_000)
    await server.until(() => server.lists.length === 1)
    assert.strictEqual(await say("two:2b"), "I am two:2b.")
  })

  it.each(styleNames)("that is new is found by asking the server again, in the %s style", async (style) => {
    const clock = makeMovedClock()
    server.list(() => modelList("one:1b"))
    await start({}, { clock })
    await knows("one:1b")
    server.list(() => modelList("one:1b", "new:2b"))
    clock.move(5_000)
    assert.deepInclude(await ask(gateway.url, style, false, "new:2b"), { status: 200, text: "I am new:2b." })
    assert.isDefined((await ask(gateway.url, style, false, "newer:3b")).error)
    assert.strictEqual(server.lists.length, 1)
  })

  it("that is unknown asks the server once in five seconds, however many ask for it", async () => {
    const clock = makeMovedClock()
    const listing = Promise.withResolvers<void>()
    server.list(() => modelList("one:1b"))
    await start({}, { clock })
    await knows("one:1b")
    server.list(() => ({ pieces: [listing.promise, JSON.stringify({ data: [{ id: "new:2b" }] })] }))
    const nothing = await Promise.all([1, 2, 3].map(() => ask(gateway.url, "chat", false, "new:2b")))
    assert.deepStrictEqual(nothing.map(({ error }) => error?.code), Array(3).fill("model_not_found"))
    assert.strictEqual(server.lists.length, 0)
    clock.move(5_000)
    const asked = Array.from({ length: 20 }, () => ask(gateway.url, "chat", false, "new:2b"))
    await server.until(() => server.lists.length === 1)
    assert.strictEqual(await say("one:1b"), "I am one:1b.")
    listing.resolve()
    assert.deepStrictEqual((await Promise.all(asked)).map(({ text }) => text), Array(20).fill("I am new:2b."))
    assert.strictEqual(server.lists.length, 1)
  })

  it("that is unknown waits for a silent server for two seconds, and is refused", async () => {
    const clock = makeMovedClock()
    server.list(() => modelList("one:1b"))
    await start({}, { clock })
    await knows("one:1b")
    server.list(() => ({ headless: true, after: "hang" }))
    clock.move(5_000)
    const asked = ask(gateway.url, "chat", false, "new:2b")
    await server.until(() => server.lists.length === 1)
    clock.move(2_000)
    assert.strictEqual((await asked).error?.code, "model_not_found")
  })

  it("is refused to a key that may use other models only", async () => {
    server.list(() => modelList("big:70b", "huge:700b"))
    const key_records = { [keyId(businessKey, sha256Hex)]: { models: ["big", "one:1b"] } }
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
    await start({ key_records }, { logger })
    await knows("big:70b")
    await untilHolds(async () => (await ask(gateway.url, "chat", false, "huge:700b")).status === 403)
    assert.strictEqual(await say("big:70b"), "I am big:70b.")
    assert.include(lines.join(), "models[1] names no configured model and allows nothing unless the server lists it")
  })

  it("is read with an account's key, the next one's if the first is refused", async () => {
    server.list(({ key }) => key === "sk-2" ? modelList("one:1b") : json(401, { error: { message: "no" } }))
    await start({ accounts: [{ token: "sk-1" }, { token: "sk-2" }] })
    await knows("one:1b")
    assert.deepStrictEqual(server.lists.map(({ key }) => key), ["sk-1", "sk-2"])
  })
})

describe("a list that is no list", () => {
  const lists = {
    "a page": { headers: { "content-type": "text/html" }, pieces: ["<html></html>"] },
    "wrong names": json(200, { data: [null, 1, { id: 7 }, { id: "" }, { id: "x".repeat(300) }, "llama-9:9b"] }),
    "something else": json(200, { models: "llama-9:9b" }),
    "too much": json(200, { data: [{ id: "llama-9:9b", note: "x".repeat(5 * 1024 * 1024) }] })
  }
  it.each(Object.entries(lists))("adds no model: %s", async (_, answer) => {
    server.list(() => answer)
    await start()
    await server.until(() => server.lists.length > 0)
    assert.strictEqual((await shown("llama-9:9b")).status, 404)
    assert.strictEqual(await say("upstream-chat"), "I am small:7b.")
  })
})

describe("the lists of models", () => {
  const bodyVendorFields = ["upstream-chat", "upstream-reasoner", "upstream-chat-search", "upstream-reasoner-search"]

  it("have the entries of the configuration and the server's names where the server's list is known", async () => {
    server.list(() => modelList("big:70b", "qwen3:8b", "upstream-reasoner"))
    await start()
    await knows("qwen3:8b")
    const names = ["upstream-chat", "upstream-reasoner", "big", "big:70b", "qwen3:8b"]
    assert.deepStrictEqual(await listed("/v1/models"), names)
    assert.deepStrictEqual(await listed("/v1beta/models"), names.map((name) => `models/${name}`))
    const ofMessages = await listed("/msgcompat/v1/models")
    assert.deepStrictEqual(ofMessages.slice(22), ["big:70b", "qwen3:8b", "big"])
    assert.include(ofMessages, "msgcompat-sonnet-4-5")
    for (const name of [...names, ...ofMessages]) {
      assert.notStrictEqual((await ask(gateway.url, "messages", false, name)).status, 400, name)
    }
  })

  it("have no name that stands for a model which the server lacks", async () => {
    server.list(() => modelList("qwen3:8b"))
    await start({
      upstream: { driver: "openai", base_url: server.baseUrl, models: { "upstream-reasoner": "qwen3:8b" } }
    })
    await knows("qwen3:8b")
    assert.deepStrictEqual(await listed("/v1/models"), ["upstream-reasoner", "qwen3:8b"])
    const ofMessages = await listed("/msgcompat/v1/models")
    assert.isTrue(ofMessages.slice(0, -1).every((name) => name.includes("opus")), ofMessages.join())
    assert.strictEqual(ofMessages.at(-1), "qwen3:8b")
    const { error } = await ask(gateway.url, "chat", false, "upstream-chatt")
    assert.notInclude(error?.message, "\"upstream-chat\"")
  })

  it.each(
    [["is not known", () => json(404, {})], ["names nothing", () => modelList()]] as const
  )("have the native models where the server's list %s", async (_, answer) => {
    server.list(answer)
    await start()
    await server.until(() => server.lists.length > 0)
    assert.deepStrictEqual(await listed("/v1/models"), [...bodyVendorFields, "big"])
    assert.deepStrictEqual((await listed("/msgcompat/v1/models")).slice(22), ["big"])
  })

  it("have the server's names that the caller's key allows", async () => {
    server.list(() => modelList("big:70b", "qwen3:8b", "other:1b"))
    await start({ key_records: { [keyId(businessKey, sha256Hex)]: { models: ["big", "qwen3:8b"] } } })
    await knows("qwen3:8b")
    assert.deepStrictEqual(await listed("/v1/models", businessKey), ["big", "big:70b", "qwen3:8b"])
    assert.deepStrictEqual(await listed("/msgcompat/v1/models", businessKey), ["big:70b", "qwen3:8b", "big"])
  })
})

describe("an unknown name", () => {
  it.each(styleNames)(
    "of an open model's family is refused in the %s style, with the name that is meant",
    async (style) => {
      server.list(() => modelList("small:7b", "qwen3-coder:30b"))
      await start()
      await knows("qwen3-coder:30b")
      for (const stream of [false, true]) {
        const { error, status } = await ask(gateway.url, style, stream, "qwen3-codr")
        assert.strictEqual(status, style === "messages" ? 404 : 400)
        assert.match(error?.message ?? "", /"qwen3-codr" does not exist; did you mean "qwen3-coder:30b"\?/)
      }
      assert.lengthOf(server.requests, 0)
    }
  )

  it("of an open model's family is refused without a list of the server", async () => {
    server.list(() => json(404, {}))
    await start()
    const { error, status } = await ask(gateway.url, "chat", false, "qwen3-codr")
    assert.deepInclude(error, { code: "model_not_found" })
    assert.strictEqual(status, 400)
    assert.lengthOf(server.requests, 0)
  })

  it.each(styleNames)(
    "is refused in the %s style without a call to the server",
    async (style) => {
      await start()
      for (const stream of [false, true]) {
        const { error, status } = await ask(gateway.url, style, stream, "qwen3:32b")
        assert.strictEqual(status, style === "messages" ? 404 : 400)
        assert.match(error?.message ?? "", /"qwen3:32b" does not exist/)
      }
      assert.lengthOf(server.requests, 0)
    }
  )

  it.each(styleNames)(
    "to the server is refused in the %s style after one call",
    async (style) => {
      server.answer(() => json(404, { error: { message: "model \"small:7b\" not found, try pulling it first" } }))
      await start({ accounts: [{ token: "sk-1" }, { token: "sk-2" }] })
      for (const stream of [false, true]) {
        server.answer(() => json(404, { error: { message: "model \"small:7b\" not found, try pulling it first" } }))
        const { error, shouldRetry, status } = await ask(gateway.url, style, stream, "upstream-chat")
        assert.deepStrictEqual([status, shouldRetry], [style === "generate" ? 400 : 404, "false"])
        // A caller of the server's protocol has its words.
        const isOwn = style === "chat" || style === "responses"
        assert.strictEqual(error?.message?.endsWith("Ask the gateway's operator."), !isOwn)
        assert.notInclude(error?.message, "upstream.models")
        assert.lengthOf(server.requests, 1)
      }
    }
  )

  it("is one of a vendor's families where compat.family_models is off", async () => {
    await start()
    assert.strictEqual(await say("gpt-4.1"), "I am small:7b.")
    assert.strictEqual((await put({ compat: { family_models: false } })).status, 200)
    const { error, status } = await ask(gateway.url, "chat", false, "gpt-4.1")
    assert.deepInclude(error, { code: "model_not_found" })
    assert.strictEqual(status, 400)
    assert.strictEqual((await ask(gateway.url, "messages", false, "claude-sonnet-4-5")).text, "I am small:7b.")
  })
})

describe("the server's name of a configured model", () => {
  it("is the entry that maps it", async () => {
    await start()
    assert.strictEqual(await say("big:70b"), "I am big:70b.")
    assert.deepInclude(await (await shown("BIG:70b")).json(), { id: "big" })
    assert.deepInclude(await (await shown("small:7b")).json(), { id: "upstream-chat" })
  })
})
