/** What LM Studio, llama.cpp and Ollama say beside their lists, over sockets: by bodies of real servers, and of LM Studio by its documents. */
import { assert, describe } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import path from "node:path"
import { text } from "node:stream/consumers"
import { makeOpenAiDriver } from "../../../src/upstream/compatible/driver.ts"
import { Exchanges } from "../../../src/upstream/Exchange.ts"
import { itOnClient, timeLimits } from "../session/support.ts"

type Answers = { readonly [request: string]: unknown }

const fixture = (name: string): unknown =>
  JSON.parse(readFileSync(path.join(import.meta.dirname, "../../fixtures/modelLists", name), "utf8"))

/** Written by `npm run test:servers -- --record`. */
const recorded = fixture("recorded.json") as { readonly [server: string]: { readonly answers: Answers } }

const props = recorded["llama.cpp"]!.answers["GET /props"] as object

const bodies: { readonly [server: string]: Answers } = {
  ...fixture("further.json") as object,
  "llama.cpp": recorded["llama.cpp"]!.answers,
  "llama.cpp with a model that sees": {
    ...recorded["llama.cpp"]!.answers,
    "GET /props": { ...props, modalities: { vision: true, audio: false } }
  },
  Ollama: recorded["Ollama"]!.answers,
  "Ollama with models that see": {
    ...recorded["Ollama"]!.answers,
    "POST /api/show wide:latest": { parameters: "num_ctx  32768", capabilities: ["completion", "vision"] },
    "POST /api/show writer:latest": {}
  }
}

/** A server that answers with these bodies, and 404 for others. */
const serverOf = (answers: Answers) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const requests: Array<string> = []
      const server = createServer((request, response) => {
        void text(request).then((body) => {
          const model = body === "" ? "" : ` ${(JSON.parse(body) as { readonly model: string }).model}`
          const asked = `${request.method} ${request.url}${model}`
          requests.push(asked)
          const answer = answers[asked]
          response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" })
          response.end(JSON.stringify(answer ?? { error: { message: "no such page" } }))
        })
      })
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
      const { port } = server.address() as AddressInfo
      return { requests, server, baseUrl: `http://127.0.0.1:${port}/v1` }
    }),
    ({ server }) =>
      Effect.promise(() =>
        new Promise<void>((closed) => {
          server.close(() => closed())
          server.closeAllConnections()
        })
      )
  )

const driverOf = (baseUrl: string) =>
  Effect.map(
    Exchanges,
    (exchanges) => makeOpenAiDriver(exchanges, { baseUrl, models: [], furtherModels: [], limits: timeLimits })
  )

const plain = { input: ["text"], efforts: [], tools: true }
/** What is known of llama.cpp and Ollama without a question. */
const tested = { schemas: "binding" }

/** The recorded models of Ollama, in the order of its list; one of them is loaded. */
const ollamaModels = (wide: object, writer: object | undefined): ReadonlyArray<unknown> => {
  const facts: { readonly [name: string]: object | undefined } = {
    thinker: { context_window: 1024, input: ["text"], tools: true },
    reasoner: { input: ["text"], tools: true },
    wide,
    writer
  }
  const { data } = recorded["Ollama"]!.answers["GET /v1/models"] as { data: ReadonlyArray<{ id: string }> }
  return data.map(({ id }) => {
    const [name = ""] = id.split(":")
    const own = name in facts ? facts[name] : plain
    return { id, setsWindow: true, facts: { ...own, ...tested } }
  })
}

const expected: { readonly [server: string]: ReadonlyArray<unknown> } = {
  "LM Studio": [
    {
      id: "qwen/qwen3-8b",
      setsWindow: true,
      facts: { context_window: 16_384, input: ["text"], tools: true, display_name: "Qwen3 8B" }
    },
    {
      id: "google/gemma-3-4b",
      setsWindow: true,
      facts: { context_window: 131_072, input: ["text", "image"], tools: false, display_name: "Gemma 3 4B" }
    },
    { id: "unknown-there", setsWindow: true }
  ],
  "llama.cpp": [{ id: "thinker", setsWindow: true, facts: { context_window: 8192, input: ["text"], ...tested } }],
  "llama.cpp with a model that sees": [
    { id: "thinker", setsWindow: true, facts: { context_window: 8192, input: ["text", "image"], ...tested } }
  ],
  Ollama: ollamaModels({ context_window: 2048, input: ["text"], efforts: [], tools: false }, plain),
  "Ollama with models that see": ollamaModels(
    { context_window: 32_768, input: ["text", "image"], efforts: [], tools: false },
    undefined
  )
}

describe("what a server says beside its list", () => {
  for (const [server, models] of Object.entries(expected)) {
    itOnClient(`is asked of ${server}, each thing once, and never the trained maximum`, () =>
      Effect.gen(function*() {
        const answers = bodies[server]!
        const { baseUrl, requests } = yield* serverOf(answers)
        const driver = yield* driverOf(baseUrl)
        assert.deepStrictEqual(yield* driver.capabilities.listModels!("key"), models)
        assert.deepStrictEqual(requests.toSorted(), Object.keys(answers).toSorted())
      }))

    itOnClient(`costs nothing where ${server} does not answer, and that is noted once`, () =>
      Effect.gen(function*() {
        const answers = bodies[server]!
        const { baseUrl } = yield* serverOf({ "GET /v1/models": answers["GET /v1/models"] })
        const driver = yield* driverOf(baseUrl)
        const lines: Array<string> = []
        const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
        for (const _ of [1, 2]) {
          const found = yield* Effect.provide(driver.capabilities.listModels!("key"), Logger.layer([logger]))
          const facts = server === "LM Studio" ? undefined : tested
          for (const model of found) {
            assert.deepStrictEqual(typeof model === "string" ? model : model.facts as unknown, facts)
          }
        }
        assert.lengthOf(lines, 1)
        assert.match(lines[0]!, /^upstream default says nothing about its models beside their names: /)
      }))
  }

  itOnClient("is not asked of a server of another kind", () =>
    Effect.gen(function*() {
      const list = { data: [{ id: "m", owned_by: "openai" }] }
      const { baseUrl, requests } = yield* serverOf({ "GET /v1/models": list })
      assert.deepStrictEqual(yield* (yield* driverOf(baseUrl)).capabilities.listModels!("key"), ["m"])
      assert.deepStrictEqual(requests, ["GET /v1/models"])
    }))
})
