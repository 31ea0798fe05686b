/** The calls of the generate driver: addresses, keys, limits, stopping, recordings, accounts, counts and embeddings. */
import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { Exchanges } from "../../../src/upstream/Exchange.ts"
import { makeGenerateDriver } from "../../../src/upstream/generate/driver.ts"
import type { ServerOptions } from "../../../src/upstream/server/ServerOptions.ts"
import { chunk, frames, json, refused, said, startGenerateServer } from "../../support/generateServer.ts"
import { complete, facts, fixedToken, itOnClient, makeWatch, request, start, timeLimits } from "../session/support.ts"

const stand = Effect.acquireRelease(Effect.promise(startGenerateServer), (server) => Effect.promise(server.stop))

const driverFor = (baseUrl: string, options: Partial<ServerOptions> = {}) =>
  Effect.map(
    Exchanges,
    (exchanges) =>
      makeGenerateDriver(exchanges, { baseUrl, models: [], furtherModels: [], limits: timeLimits, ...options })
  )

const setUp = (options: Partial<ServerOptions> = {}) =>
  Effect.gen(function*() {
    const server = yield* stand
    return { server, driver: yield* driverFor(server.baseUrl, options) }
  })

const named = (model: string) => [{ id: "upstream-reasoner", model, reasoning: true, search: false }]
const model = { id: "mine", reasoning: "auto", search: false } as const

describe("the generate driver", () => {
  describe.concurrent("sends completions", () => {
    for (
      const [prefix, name, path] of [
        ["", "gemini-x", "/v1beta/models/gemini-x"],
        ["/v1beta", "gemini-x", "/v1beta/models/gemini-x"],
        ["/v1", "gemini-x", "/v1/models/gemini-x"],
        ["/proxy", "tunedModels/mine", "/proxy/v1beta/tunedModels/mine"],
        ["", "a b?c", "/v1beta/models/a%20b%3Fc"],
        ["/v1/projects/p/publishers/google", "g", "/v1/projects/p/publishers/google/models/g"]
      ] as const
    ) {
      itOnClient(`to ${path} for a base address that ends with "${prefix}"`, () =>
        Effect.gen(function*() {
          const server = yield* stand
          const driver = yield* driverFor(server.baseUrl + prefix, { models: named(name) })
          yield* complete(driver, request("Hi", { credential: fixedToken("key-1") }))
          assert.deepInclude(server.requests[0], {
            method: "POST",
            path: `${path}:streamGenerateContent?alt=sse`,
            key: "key-1"
          })
          assert.notProperty(server.requests[0]?.headers, "authorization")
        }))
    }

    itOnClient("without a key where none is configured", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp()
        for (const token of ["none", undefined]) {
          yield* complete(driver, request("Hi", { credential: fixedToken(token) }))
        }
        for (const { headers } of server.requests) assert.notProperty(headers, "x-goog-api-key")
      }))

    itOnClient("and records the bytes of their replies", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp()
        server.answer(() => said("Hello"))
        const seen: Array<string> = []
        const watch = makeWatch()
        yield* complete(
          driver,
          request("Hi", {
            recorder: {
              round: (info) => {
                seen.push(`${info.protocol} ${new URL(info.url).pathname}`)
                return watch.recorder.round(info)
              }
            }
          })
        )
        assert.deepStrictEqual(seen, ["generate /v1beta/models/upstream-reasoner:streamGenerateContent"])
        yield* watch.bytes("candidates")
      }))

    itOnClient("and closes the connection of a reply that nobody reads on", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp()
        server.answer(() => ({ pieces: [frames(chunk([{ text: "Hello" }]))], after: "hang" }))
        const first = yield* Deferred.make<void>()
        const reading = yield* Effect.scoped(Effect.gen(function*() {
          const { events } = yield* start(driver, request("Hi"))
          yield* Stream.runForEach(events, () => Deferred.succeed(first, undefined))
        })).pipe(Effect.forkChild)
        yield* Deferred.await(first)
        yield* Fiber.interrupt(reading)
        yield* Effect.promise(() => server.until((requests) => requests[0]?.outcome === "aborted"))
      }))
  })

  describe.concurrent("checks an account by the list of models:", () => {
    itOnClient("a list is a working key", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp()
        server.list(() => json(200, { models: [] }))
        yield* driver.verify("key-1")
        assert.deepInclude(server.lists[0], { method: "GET", path: "/v1beta/models", key: "key-1" })
      }))

    itOnClient("a refusal is the key's", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp()
        server.list(() =>
          refused(400, "INVALID_ARGUMENT", "API key not valid.", [{ reason: "API_KEY_INVALID", domain: "x" }])
        )
        assert.strictEqual(facts(yield* Effect.flip(driver.verify("key-1"))).class, "token_refused")
      }))
  })

  itOnClient("reads the server's own names of its models", () =>
    Effect.gen(function*() {
      const { driver, server } = yield* setUp()
      server.list(() => json(200, { models: [{ name: "models/gemini-flash" }, { name: "tunedModels/mine" }, {}] }))
      assert.deepStrictEqual(yield* driver.capabilities.listModels!("key-1"), ["gemini-flash", "tunedModels/mine"])
      assert.strictEqual(server.lists[0]?.path, "/v1beta/models?pageSize=1000")
    }))

  describe.concurrent("counts tokens", () => {
    const conversation = request("Hi").conversation

    itOnClient("by the server, of the whole request", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp()
        server.answer(() => json(200, { totalTokens: 42 }))
        assert.strictEqual(
          yield* driver.capabilities.countTokens!({ model, conversation, token: "key-1", callerHeaders: undefined }),
          42
        )
        assert.deepInclude(server.requests[0], { path: "/v1beta/models/mine:countTokens", key: "key-1" })
        assert.deepStrictEqual(server.requests[0]?.body, {
          generateContentRequest: { model: "models/mine", contents: [{ role: "user", parts: [{ text: "Hi" }] }] }
        })
      }))

    itOnClient("or fails as the server does", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp()
        server.answer(() => refused(429, "RESOURCE_EXHAUSTED", "Slow down."))
        const failure = yield* Effect.flip(
          driver.capabilities.countTokens!({ model, conversation, token: "key-1", callerHeaders: undefined })
        )
        assert.strictEqual(facts(failure).class, "rate_limited")
      }))
  })

  describe.concurrent("makes embeddings", () => {
    const alone = { fields: undefined, budget: undefined, callerHeaders: undefined }

    itOnClient(
      "of all inputs in one batch, with the caller's dimensions, tasks and titles",
      () =>
        Effect.gen(function*() {
          const { driver, server } = yield* setUp()
          server.answer(() => json(200, { embeddings: [{ values: [1, 2] }, { values: [3, 4] }] }))
          const reply = yield* driver.capabilities.embed!({
            model,
            inputs: ["a", "b"],
            dimensions: 2,
            own: { family: "generate", fields: [{ taskType: "RETRIEVAL_QUERY" }, { title: "B" }], paths: [] },
            token: "key-1",
            ...alone
          })
          assert.deepStrictEqual(reply, { vectors: [[1, 2], [3, 4]], tokens: undefined })
          const common = { model: "models/mine", outputDimensionality: 2 }
          assert.strictEqual(server.requests[0]?.path, "/v1beta/models/mine:batchEmbedContents")
          assert.deepStrictEqual(server.requests[0]?.body, {
            requests: [
              { ...common, content: { parts: [{ text: "a" }] }, taskType: "RETRIEVAL_QUERY" },
              { ...common, content: { parts: [{ text: "b" }] }, title: "B" }
            ]
          })
        })
    )

    itOnClient("of texts only, and fails at a reply without a vector for each", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp()
        const ask = (inputs: ReadonlyArray<string | ReadonlyArray<number>>) =>
          Effect.flip(
            driver.capabilities.embed!({
              model,
              inputs,
              dimensions: undefined,
              token: undefined,
              own: undefined,
              ...alone
            })
          )
        assert.strictEqual(facts(yield* ask([[1, 2]])).class, "caller_mistake")
        assert.lengthOf(server.requests, 0)
        server.answer(() => json(200, { embeddings: [{ values: [1] }] }))
        assert.strictEqual(facts(yield* ask(["a", "b"])).class, "upstream_trouble")
      }))
  })
})
