/**
 * A client API over completions of an app, at a real socket: without a pool, a configuration, records and an admin API.
 */
import { NodeHttpServer } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Logger, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { HttpApi, OpenApi } from "effect/http-api"
import { createServer } from "node:http"
import OpenAI from "openai"
import {
  chat,
  type Completion,
  completionOf,
  CurrentLimits,
  CurrentServing,
  defaultLimits,
  embeddings,
  Entrance,
  Finish,
  gatewayError,
  generate,
  messages,
  repliesOf,
  responses,
  ResponsesStore,
  servingModels,
  type StoredResponse,
  TextDelta,
  UpstreamFailure,
  UpstreamFinish,
  UpstreamText,
  UsageReported
} from "../../src/styles.ts"

const usage = UsageReported({ promptTokens: 3, completionTokens: 2, reasoningTokens: 0, cachedTokens: 0 })
const busy = gatewayError("upstream_rate_limited", "The app is busy", { retryAfter: 7 })

/** The app. What it replies follows from the model that is asked for. A reply without an end says when it begins, and when its client has left. */
const appWith = (begun: Deferred.Deferred<void>, left: Deferred.Deferred<void>) =>
  completionOf(({ conversation, model }) => {
    switch (model.id) {
      case "busy":
        return Stream.fail(busy)
      case "breaks":
        return Stream.concat(Stream.make(TextDelta("One, ")), Stream.fail(busy))
      case "endless":
        return Stream.fromEffect(Effect.as(Deferred.succeed(begun, undefined), TextDelta("One, "))).pipe(
          Stream.concat(Stream.never),
          Stream.ensuring(Deferred.succeed(left, undefined))
        )
      case "empty":
        return Stream.empty
      case "unfinished":
        return Stream.make(TextDelta("One, "))
      case "faulty":
        return Stream.die(new Error("A fault of the app"))
      default:
        return Stream.make(
          TextDelta(`${conversation.turns.length} turn`),
          TextDelta(", two words"),
          usage,
          Finish("stop")
        )
    }
  })

/** Serves a style until the scope closes. Returns its address, and when a reply without an end begins and is left. */
const serve = Effect.fnUntraced(function*<A, E, R>(
  handlers: Layer.Layer<A, E, R>,
  entrance: Layer.Layer<Entrance> = Entrance.layerOpen,
  completion?: Layer.Layer<Completion>
) {
  const begun = yield* Deferred.make<void>()
  const left = yield* Deferred.make<void>()
  const served = HttpRouter.serve(handlers, { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provide([completion ?? appWith(begun, left), entrance]),
    Layer.provide(Logger.layer([])),
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" }))
  )
  const { address } = yield* Effect.provide(HttpServer.HttpServer, yield* Layer.build(served))
  return { url: HttpServer.formatAddress(address), begun: Deferred.await(begun), left: Deferred.await(left) }
})

const clientOf = (url: string, apiKey = "any") => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })

const ask = (model: string) => ({ model, messages: [{ role: "user" as const, content: "Hello" }] })

/** The error of a request of the SDK. */
const errorOf = (request: Promise<unknown>) =>
  Effect.promise(() =>
    request.then(
      () => assert.fail("The request succeeded"),
      (error: unknown) => error instanceof OpenAI.APIError ? error : assert.fail(String(error))
    )
  )

const post = (url: string, body: unknown) =>
  Effect.promise(() =>
    fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })
  )

describe("a style alone", () => {
  it.live("replies whole and as a stream", () =>
    Effect.gen(function*() {
      const { url } = yield* serve(chat.handlers)
      const client = clientOf(url)
      const whole = yield* Effect.promise(() => client.chat.completions.create(ask("small")))
      assert.strictEqual(whole.choices[0]?.message.content, "1 turn, two words")
      assert.strictEqual(whole.model, "small")
      assert.include(whole.usage, { prompt_tokens: 3, completion_tokens: 2 })
      const stream = yield* Effect.promise(() =>
        client.chat.completions.create({ ...ask("small"), stream: true, stream_options: { include_usage: true } })
      )
      const chunks = yield* Stream.runCollect(Stream.fromAsyncIterable(stream, (cause) => cause))
      assert.strictEqual(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""), "1 turn, two words")
      assert.strictEqual(chunks.at(-1)?.usage?.total_tokens, 5)
    }).pipe(Effect.scoped))

  it.live("sends an error of the app with its status, and within a stream as its last event", () =>
    Effect.gen(function*() {
      const { url } = yield* serve(chat.handlers)
      const { chat: { completions } } = clientOf(url)
      for (const stream of [false, true]) {
        const error = yield* errorOf(completions.create({ ...ask("busy"), stream }))
        assert.strictEqual(error.status, 429)
        assert.strictEqual(error.code, "upstream_rate_limited")
        assert.include(error.message, "The app is busy")
        assert.strictEqual(error.headers?.get("retry-after"), "7")
      }
      const broken = yield* Effect.promise(() => completions.create({ ...ask("breaks"), stream: true }))
      const texts: Array<string> = []
      const error = yield* errorOf((async () => {
        for await (const { choices } of broken) texts.push(choices[0]?.delta.content ?? "")
      })())
      assert.strictEqual(texts.join(""), "One, ")
      assert.include(error.message, "The app is busy")
    }).pipe(Effect.scoped))

  it.live("fails for a reply without an end, and for a defect of the app", () =>
    Effect.gen(function*() {
      const { url } = yield* serve(chat.handlers)
      for (const model of ["empty", "unfinished", "faulty"]) {
        const error = yield* errorOf(clientOf(url).chat.completions.create(ask(model)))
        assert.strictEqual(error.status, 500, model)
        assert.strictEqual(error.code, "internal_error", model)
      }
    }).pipe(Effect.scoped))

  it.live("leaves the app when the client of a whole reply leaves", () =>
    Effect.gen(function*() {
      const { begun, left, url } = yield* serve(chat.handlers)
      const leaving = new AbortController()
      const asking = clientOf(url).chat.completions.create(ask("endless"), { signal: leaving.signal })
      yield* begun
      leaving.abort()
      yield* errorOf(asking)
      yield* left
    }).pipe(Effect.scoped))

  it.live("leaves the app when the client of a stream leaves", () =>
    Effect.gen(function*() {
      const { left, url } = yield* serve(chat.handlers)
      const client = clientOf(url)
      const stream = yield* Effect.promise(() => client.chat.completions.create({ ...ask("endless"), stream: true }))
      yield* Effect.promise(async () => {
        for await (const { choices } of stream) if (choices[0]?.delta.content === "One, ") stream.controller.abort()
      })
      yield* left
    }).pipe(Effect.scoped))

  it.live("knows callers by the app's rule", () =>
    Effect.gen(function*() {
      const unknown = gatewayError("authentication_failed", "Who are you?")
      const entrance = Entrance.layerOf((credential) =>
        credential === "secret" ? Effect.succeed("team a") : Effect.fail(unknown)
      )
      const { url } = yield* serve(chat.handlers, entrance)
      const error = yield* errorOf(clientOf(url, "wrong").chat.completions.create(ask("small")))
      assert.strictEqual(error.status, 401)
      assert.include(error.message, "Who are you?")
      const reply = yield* Effect.promise(() => clientOf(url, "secret").chat.completions.create(ask("small")))
      assert.strictEqual(reply.choices[0]?.finish_reason, "stop")
      const without = yield* post(`${url}/v1/chat/completions`, ask("small"))
      assert.strictEqual(without.status, 401)
    }).pipe(Effect.scoped))

  it.live("keeps bodies within the app's limits", () =>
    Effect.gen(function*() {
      const limits = Layer.succeed(CurrentLimits, () => ({ ...defaultLimits, body_bytes: 64 * 1024, model_chars: 64 }))
      const { url } = yield* serve(Layer.provide(chat.handlers, limits))
      const address = `${url}/v1/chat/completions`
      assert.strictEqual((yield* post(address, { ...ask("small"), user: "a".repeat(65 * 1024) })).status, 413)
      assert.strictEqual((yield* post(address, ask("a".repeat(65)))).status, 400)
      assert.strictEqual((yield* post(address, ask("a".repeat(64)))).status, 200)
    }).pipe(Effect.scoped))

  it.live("serves the app's models alone where it names them", () =>
    Effect.gen(function*() {
      const models = Layer.succeed(CurrentServing, servingModels(["small", "large"]))
      const { url } = yield* serve(Layer.provide(Layer.merge(messages.handlers, generate.handlers), models))
      const listed = yield* Effect.promise(() => fetch(`${url}/msgcompat/v1/models`))
      const { data } = (yield* Effect.promise(() => listed.json())) as { data: ReadonlyArray<{ id: string }> }
      assert.deepStrictEqual(data.map(({ id }) => id), ["small", "large"])
      const message = { max_tokens: 10, messages: ask("").messages }
      const known = yield* post(`${url}/v1/messages`, { ...message, model: "Large" })
      assert.strictEqual(known.status, 200)
      const unknown = yield* post(`${url}/v1/messages`, { ...message, model: "larg" })
      assert.strictEqual(unknown.status, 404)
      assert.include(yield* Effect.promise(() => unknown.text()), "did you mean \\\"large\\\"?")
      const counted = yield* post(`${url}/v1/messages/count_tokens`, { ...message, model: "small" })
      assert.isAbove(((yield* Effect.promise(() => counted.json())) as { input_tokens: number }).input_tokens, 0)
      const contents = { contents: [{ role: "user", parts: [{ text: "Hello" }] }] }
      const generated = yield* post(`${url}/v1beta/models/small:generateContent`, contents)
      assert.include(yield* Effect.promise(() => generated.text()), "1 turn, two words")
    }).pipe(Effect.scoped))

  it.live("replies by a driver, whose texts of calls are calls", () =>
    Effect.gen(function*() {
      const driver = completionOf(repliesOf({
        complete: ({ conversation, credential, model }) =>
          Effect.flatMap(credential.token, (token) =>
            model.id === "away"
              ? Effect.fail(new UpstreamFailure({ phase: "completion", kind: "refused", status: 503 }))
              : Effect.succeed({
                id: "driver",
                events: Stream.make(
                  UpstreamText(`${token} `),
                  UpstreamText("<tool_call>{\"name\": \"weather\", "),
                  UpstreamText(`"arguments": {"turns": ${conversation.turns.length}}}</tool_call>`),
                  UpstreamFinish("stop")
                )
              }))
      }, "token"))
      const { url } = yield* serve(chat.handlers, Entrance.layerOpen, driver)
      const { chat: { completions } } = clientOf(url)
      const weather = { type: "function" as const, function: { name: "weather", parameters: { type: "object" } } }
      const reply = yield* Effect.promise(() => completions.create({ ...ask("small"), tools: [weather] }))
      const [choice] = reply.choices
      const [call] = choice?.message.tool_calls ?? []
      assert.strictEqual(choice?.finish_reason, "tool_calls")
      assert.deepStrictEqual(call?.type === "function" ? call.function : undefined, {
        name: "weather",
        arguments: `{"turns": 1}`
      })
      const plain = yield* Effect.promise(() => completions.create(ask("small")))
      assert.include(plain.choices[0]?.message.content, "token <tool_call>")
      const error = yield* errorOf(completions.create(ask("away")))
      assert.strictEqual(error.status, 503)
      assert.strictEqual(error.code, "upstream_error")
    }).pipe(Effect.scoped))

  it.live("serves Responses, and keeps them where the app stores them", () =>
    Effect.gen(function*() {
      const { url } = yield* serve(responses.handlers)
      const client = clientOf(url)
      const asked = { model: "small", input: "Hello" }
      const whole = yield* Effect.promise(() => client.responses.create(asked))
      assert.strictEqual(whole.output_text, "1 turn, two words")
      const stream = yield* Effect.promise(() => client.responses.create({ ...asked, stream: true }))
      const events = yield* Stream.runCollect(Stream.fromAsyncIterable(stream, (cause) => cause))
      assert.strictEqual(events.at(-1)?.type, "response.completed")
      const unknown = yield* errorOf(client.responses.create({ ...asked, previous_response_id: whole.id }))
      assert.strictEqual(unknown.code, "previous_response_not_found")
      const compacting = yield* errorOf(client.responses.compact(asked))
      assert.strictEqual(compacting.status, 400)
      const opening = yield* Effect.promise(() => fetch(`${url}/v1/responses`))
      assert.strictEqual(opening.status, 426)

      const stored = new Map<string, StoredResponse>()
      const put = (response: StoredResponse) => stored.set(response.id, response)
      const store = Layer.succeed(ResponsesStore, {
        get: (_, id) => Effect.sync(() => stored.get(id)),
        put: (_, response) => Effect.sync(() => put(response)),
        openUnsafe: (_, response) => ({
          finalizeUnsafe: (body) => put({ ...response, body }),
          written: () => undefined
        }),
        remove: (_, id) => Effect.sync(() => stored.delete(id)),
        held: Effect.sync(() => ({ count: stored.size, bytes: 0 }))
      })
      const keeping = clientOf((yield* serve(Layer.provide(Layer.fresh(responses.handlers), store))).url)
      const first = yield* Effect.promise(() => keeping.responses.create(asked))
      const next = yield* Effect.promise(() => keeping.responses.create({ ...asked, previous_response_id: first.id }))
      assert.strictEqual(next.output_text, "3 turn, two words")
    }).pipe(Effect.scoped))

  it("has its contract as a group of an HttpApi", () => {
    const api = HttpApi.make("app").add(chat.group).add(responses.group).add(messages.group).add(generate.group).add(
      embeddings.group
    )
    const { paths } = OpenApi.fromApi(api)
    assert.includeMembers(Object.keys(paths), [
      "/v1/chat/completions",
      "/v1/responses",
      "/v1/messages",
      "/v1/embeddings"
    ])
  })

  it.live("has no embeddings unless the app makes them", () =>
    Effect.gen(function*() {
      const { url } = yield* serve(embeddings.handlers)
      const error = yield* errorOf(clientOf(url).embeddings.create({ model: "small", input: "Hello" }))
      assert.strictEqual(error.code, "embeddings_unavailable")
    }).pipe(Effect.scoped))
})
