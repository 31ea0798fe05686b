import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { makeOpenAiDriver } from "../../../src/upstream/compatible/driver.ts"
import { Exchanges } from "../../../src/upstream/Exchange.ts"
import type { ServerOptions } from "../../../src/upstream/server/ServerOptions.ts"
import type { CompletionRequest, Recorder } from "../../../src/upstream/Upstream.ts"
import {
  type Answer,
  chunk,
  frames,
  json,
  type OpenAiServer,
  type Piece,
  startOpenAiServer,
  streamed
} from "../../support/openaiServer.ts"
import {
  complete,
  facts,
  fixedToken,
  itOnClient,
  makeWatch,
  type Outcome,
  request,
  start,
  timeLimits,
  type Watch,
  whileTimePasses
} from "../session/support.ts"

const stand = Effect.acquireRelease(
  Effect.promise(() => startOpenAiServer()),
  (server) => Effect.promise(server.stop)
)

const driverFor = (baseUrl: string, options: Partial<ServerOptions> = {}) =>
  Effect.map(Exchanges, (exchanges) =>
    makeOpenAiDriver(exchanges, {
      baseUrl,
      models: [],
      furtherModels: [],
      tools: "native",
      limits: timeLimits,
      ...options
    }))

const setUp = (options: Partial<ServerOptions> = {}) =>
  Effect.gen(function*() {
    const server = yield* stand
    return { server, driver: yield* driverFor(server.baseUrl, options) }
  })

/** What one request to a server that gives this answer comes to. */
const ask = (answer: Answer, options: Partial<ServerOptions> = {}, input: Partial<CompletionRequest> = {}) =>
  Effect.gen(function*() {
    const { driver, server } = yield* setUp(options)
    server.answer(() => answer)
    return yield* complete(driver, request("Hi", input))
  })

const text = chunk({ content: "Hello" })
const finish = chunk({}, "stop")
const never = new Promise<void>(() => {})

describe("the openai driver", () => {
  describe.concurrent("requests", () => {
    itOnClient(
      "go to chat/completions with the account's key and the server's own name of the model",
      () =>
        Effect.gen(function*() {
          const { driver, server } = yield* setUp({
            models: [{ id: "upstream-reasoner", model: "Qwen/QwQ", reasoning: true, search: false }]
          })
          yield* complete(driver, request("Hi", { credential: fixedToken("sk-1") }))
          const [seen] = server.requests
          assert.deepInclude(seen, { method: "POST", path: "/v1/chat/completions", key: "sk-1", outcome: "finished" })
          assert.strictEqual(seen?.headers["content-type"], "application/json")
          assert.deepStrictEqual(seen?.body, {
            model: "Qwen/QwQ",
            messages: [{ role: "user", content: "Hi" }],
            stream: true,
            stream_options: { include_usage: true }
          })
        })
    )

    itOnClient("name a model that is not configured as the caller does", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp()
        yield* complete(driver, request("Hi"))
        assert.strictEqual(server.requests[0]?.body["model"], "upstream-reasoner")
      }))

    itOnClient("carry no Authorization without a key", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp()
        for (const token of ["none", undefined]) {
          yield* complete(driver, request("Hi", { credential: fixedToken(token) }))
          yield* driver.verify(token)
        }
        const requests = [...server.requests, ...server.lists]
        assert.lengthOf(requests, 4)
        for (const { headers } of requests) assert.notProperty(headers, "authorization")
      }))

    itOnClient(
      "use one connection after another again, whether or not the sentinel comes",
      () =>
        Effect.gen(function*() {
          const { driver, server } = yield* setUp()
          const answers = [
            streamed({ content: "Hello" }),
            { pieces: [frames(text, finish)] },
            json(200, { choices: [{ message: { content: "Hello" }, finish_reason: "stop" }] })
          ]
          server.answer((_, i) => answers[i % answers.length]!)
          for (let i = 0; i < 6; i++) assert.strictEqual((yield* complete(driver, request("Hi"))).text, "Hello")
          server.answer(() => json(429, { error: "slow down" }))
          for (let i = 0; i < 3; i++) {
            assert.strictEqual((yield* complete(driver, request("Hi"))).failed, "rate_limited")
          }
          server.answer(() => json(200, { object: "list", data: [] }))
          for (let i = 0; i < 3; i++) yield* driver.verify("sk-1")
          assert.isAtMost(server.accepted(), 2)
        })
    )

    itOnClient("are recorded with the bytes of their replies, refusals too", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp()
        const seen: Array<string> = []
        const recorder: Recorder = {
          round: ({ label, requestBody, url }) => {
            seen.push(label, url, requestBody)
            return {
              opened: (status) => seen.push(String(status)),
              bytes: (bytes) => seen.push(new TextDecoder().decode(bytes)),
              closed: () => seen.push("closed")
            }
          }
        }
        server.answer(() => json(400, { error: { message: "no" } }))
        yield* complete(driver, request("Hi", { recorder }))
        assert.deepStrictEqual(seen, [
          "completion",
          `${server.baseUrl}/chat/completions`,
          JSON.stringify(server.requests[0]?.body),
          "400",
          "{\"error\":{\"message\":\"no\"}}",
          "closed"
        ])
      }))
  })

  describe.concurrent("replies", () => {
    const cases: ReadonlyArray<readonly [about: string, answer: Answer, expected: Partial<Outcome>]> = [
      ["by the book", streamed({ reasoning_content: "Hm." }, { content: "Hello" }), {
        reasoning: "Hm.",
        text: "Hello",
        completionTokens: 7,
        finish: "stop"
      }],
      ["without the sentinel", { pieces: [frames(text, finish)] }, { text: "Hello", finish: "stop" }],
      ["that break after their finish", { pieces: [frames(text, finish)], after: "reset" }, { finish: "stop" }],
      ["that break within the usage", { pieces: [frames(text, finish) + "data: {\"usa"], after: "reset" }, {
        finish: "stop"
      }],
      ["cut off by length", { pieces: [frames(text, chunk({}, "length"))] }, { text: "Hello", finish: "length" }],
      ["of another type", {
        headers: { "content-type": "text/plain; charset=utf-8" },
        pieces: [frames(text, finish)]
      }, { text: "Hello" }],
      ["of one object that is called a stream", {
        pieces: ["\n {\"choices\":[{\"message\":", "{\"content\":\"Hello\"}}]}"]
      }, { text: "Hello" }],
      ["of a stream that is called an object", {
        headers: { "content-type": "application/json" },
        pieces: ["\n", frames(text, finish)]
      }, { text: "Hello" }],
      ["that are no stream", json(200, { choices: [{ message: { content: "Hello" } }] }), { text: "Hello" }],
      ["with comments and blank data", { pieces: [": ping\n\ndata:\n\n", frames(text, finish)] }, { text: "Hello" }]
    ]
    for (const [about, answer, expected] of cases) {
      itOnClient(about, () =>
        Effect.gen(function*() {
          assert.deepInclude(yield* ask(answer), { failed: undefined, ...expected })
        }))
    }

    const more: Array<Piece> = Array.from({ length: 200 }, () => ": more\n\n")
    for (
      const [about, after] of [["that stay open and silent", []], ["that stay open with comments", more]] as const
    ) {
      itOnClient(`${about} end a moment after the sentinel`, () =>
        Effect.gen(function*() {
          const { driver, server } = yield* setUp()
          server.answer(() => ({ pieces: [frames(text, finish, "[DONE]"), ...after], after: "hang" }))
          const { bytes, recorder } = makeWatch()
          const { millis, result } = yield* whileTimePasses(
            complete(driver, request("Hi", { recorder })),
            bytes("[DONE]"),
            100
          )
          assert.deepInclude(result, { failed: undefined, text: "Hello", finish: "stop" })
          assert.isBelow(millis, timeLimits.silence)
        }))
    }
  })

  itOnClient(
    "a word for the end on a piece in between ends nothing, where the server then falls silent or breaks off",
    () =>
      Effect.gen(function*() {
        const begun = frames(chunk({ content: "Hel" }, "partial"), chunk({ content: "lo" }))
        const { driver, server } = yield* setUp()
        server.answer(() => ({ pieces: [begun], after: "hang" }))
        const { bytes, recorder } = makeWatch()
        const { millis, result } = yield* whileTimePasses(
          complete(driver, request("Hi", { recorder })),
          bytes("\"lo\"")
        )
        assert.deepInclude(result, { text: "Hello", finish: undefined })
        assert.strictEqual(result.failure?.kind, "timeout")
        assert.isAtLeast(millis, timeLimits.silence)
        assert.strictEqual((yield* ask({ pieces: [begun], after: "reset" })).failure?.kind, "transport")
      })
  )

  describe.concurrent("refusals", () => {
    const cases: ReadonlyArray<readonly [about: string, Answer, failed: string, message?: RegExp | undefined]> = [
      [
        "OpenAI's wrong key",
        json(401, {
          error: {
            message: "Incorrect API key provided: sk-abc***.",
            type: "invalid_request_error",
            code: "invalid_api_key",
            param: null
          }
        }),
        "token_refused",
        /Incorrect API key/
      ],
      [
        "OpenAI's quota",
        json(429, {
          error: { message: "You exceeded your quota", type: "insufficient_quota", code: "insufficient_quota" }
        }),
        "quota_exhausted"
      ],
      [
        "OpenAI's rate limit",
        json(429, { error: { message: "Rate limit reached", code: "rate_limit_exceeded" } }),
        "rate_limited"
      ],
      [
        "OpenAI's long prompt",
        json(400, { error: { message: "too long", type: "invalid_request_error", code: "context_length_exceeded" } }),
        "prompt_too_long"
      ],
      ["OpenAI's unknown model", json(404, { error: { message: "no", code: "model_not_found" } }), "model_unavailable"],
      [
        "OpenAI's mistake",
        json(400, { error: { message: "bad temperature", type: "invalid_request_error" } }),
        "caller_mistake",
        /bad temp/
      ],
      [
        "Azure's filter",
        json(400, { error: { message: "filtered", code: "content_filter", status: 400 } }),
        "withdrawn"
      ],
      [
        "vLLM's unknown model",
        json(404, {
          object: "error",
          message: "The model `x` does not exist.",
          type: "NotFoundError",
          param: null,
          code: 404
        }),
        "model_unavailable",
        /does not exist/
      ],
      [
        "vLLM's long prompt",
        json(400, {
          error: { message: "This model's maximum context length is 8 tokens.", type: "BadRequestError", code: 400 }
        }),
        "prompt_too_long"
      ],
      ["vLLM's refused key", json(401, { error: "Unauthorized" }), "token_refused", /Unauthorized/],
      [
        "FastAPI's faults",
        json(422, { detail: [{ type: "missing", loc: ["body", "messages"], msg: "Field required" }] }),
        "caller_mistake",
        /Field required/
      ],
      [
        "llama.cpp's long prompt",
        json(400, {
          error: {
            code: 400,
            message: "the request exceeds the available context size",
            type: "exceed_context_size_error"
          }
        }),
        "prompt_too_long"
      ],
      [
        "llama.cpp's loading model",
        json(503, { error: { code: 503, message: "Loading model", type: "unavailable_error" } }),
        "upstream_trouble",
        /Loading model/
      ],
      [
        "Ollama's unknown model",
        json(404, { error: { message: "model \"x\" not found, try pulling it first", type: "api_error", code: null } }),
        "model_unavailable",
        /pulling/
      ],
      [
        "Ollama's string",
        json(500, { error: "llama runner process has terminated" }),
        "upstream_trouble",
        /runner process/
      ],
      [
        "LM Studio's answer to what it does not know",
        json(200, { error: "Unexpected endpoint or method. (POST /chat/completions)" }),
        "upstream_trouble",
        /Unexpected endpoint/
      ],
      [
        "Google's list",
        json(400, [{
          error: {
            code: 400,
            message: "API key not valid. Please pass a valid API key.",
            status: "INVALID_ARGUMENT",
            details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }]
          }
        }]),
        "token_refused"
      ],
      [
        "xAI's pair, in which only the message speaks of a key",
        json(400, { code: "Client specified an invalid argument", error: "Incorrect API key provided: xa***" }),
        "caller_mistake"
      ],
      [
        "no credit",
        json(402, { error: { message: "Insufficient Balance", code: "invalid_request_error" } }),
        "quota_exhausted"
      ],
      [
        "a page",
        { status: 502, headers: { "content-type": "text/html" }, pieces: ["<html>Bad gateway</html>"] },
        "upstream_trouble",
        /^$/
      ],
      [
        "a page that says 200",
        { headers: { "content-type": "text/html" }, pieces: ["<html>Open WebUI</html>"] },
        "upstream_trouble",
        /^$/
      ],
      ["nothing at all", { status: 500 }, "upstream_trouble", /^$/],
      ["an empty stream", {}, "empty_reply"],
      ["a stream without a word", { pieces: [": hi\n\n"] }, "empty_reply"],
      ["an early end", { pieces: [frames(text)] }, "cut_off"],
      ["a broken connection", { pieces: [frames(text)], after: "reset" }, "unreachable"],
      ["a connection that breaks before the head", { headless: true, after: "reset" }, "unreachable"],
      ["broken JSON", { pieces: [frames(text, "{oops")] }, "upstream_trouble"],
      ["a broken whole answer", json(200, "{\"choices\":[{"), "upstream_trouble"],
      [
        "an error in the stream",
        { pieces: [frames(text, { error: { message: "CUDA", type: "server_error" } })] },
        "upstream_trouble",
        /CUDA/
      ],
      ["a limit in the stream", { pieces: [frames({ error: { message: "slow", code: 429 } })] }, "rate_limited"],
      ["an aborted reply", { pieces: [frames(text, chunk({}, "abort"), "[DONE]")] }, "upstream_trouble"]
    ]
    for (const [about, answer, failed, message] of cases) {
      itOnClient(`${about}: ${failed}`, () =>
        Effect.gen(function*() {
          const outcome = yield* ask(answer)
          assert.strictEqual(outcome.failed, failed)
          assert.strictEqual(outcome.finish, undefined)
          if (message !== undefined) assert.match(outcome.failure?.message ?? "", message)
        }))
    }

    itOnClient("say when to come back, in seconds or by a date", () =>
      Effect.gen(function*() {
        const after = (value: string) =>
          Effect.map(ask(json(429, {}, { "retry-after": value })), ({ failure }) => failure?.retryAfter)
        assert.strictEqual(yield* after("7"), 7)
        const now = Date.UTC(2026, 0, 2)
        yield* TestClock.setTime(now)
        assert.strictEqual(yield* after(new Date(now + 60_000).toUTCString()), 60)
        assert.strictEqual(yield* after("287441"), 287_441)
        assert.strictEqual(yield* after("0"), 1)
        assert.strictEqual(yield* after("9".repeat(10)), 30 * 24 * 3_600)
        for (const nothing of ["9".repeat(11), "9".repeat(400), "-5", "1e3", "0x10", "2026-11-21", ""]) {
          assert.strictEqual(yield* after(nothing), undefined, nothing)
        }
        assert.strictEqual(yield* after(String(now / 1_000 + 60)), 60)
        assert.strictEqual(yield* after(String(now + 60_000)), 60)
        assert.strictEqual(yield* after("3600000"), 3_600)
        const both = json(429, {}, { "retry-after": "60000", "retry-after-ms": "60000" })
        assert.strictEqual((yield* ask(both)).failure?.retryAfter, 60)
        assert.strictEqual(yield* after("Sun Nov  6 08:49:37 1994"), 1)
        assert.strictEqual(yield* after("whenever"), undefined)
      }))

    itOnClient("are time limits where the server is silent", () =>
      Effect.gen(function*() {
        const silent: ReadonlyArray<
          readonly [Answer, reached: (server: OpenAiServer, watch: Watch) => Effect.Effect<void>]
        > = [
          [{ headless: true, after: "hang" }, ({ until }) => Effect.promise(() => until(({ length }) => length === 1))],
          [{ after: "hang" }, (_, { head }) => head],
          [{ pieces: [frames(text)], after: "hang" }, (_, { bytes }) => bytes("Hello")],
          [{ ...json(200, "{\"choices\":["), after: "hang" }, (_, { head }) => head]
        ]
        for (const [answer, reached] of silent) {
          const { driver, server } = yield* setUp()
          server.answer(() => answer)
          const watch = makeWatch()
          const { millis, result } = yield* whileTimePasses(
            complete(driver, request("Hi", { recorder: watch.recorder })),
            reached(server, watch)
          )
          assert.strictEqual(result.failed, "timed_out")
          assert.isAtLeast(millis, timeLimits.silence)
          assert.isBelow(millis, 2 * timeLimits.silence)
        }
      }))

    itOnClient("are transport failures at a port without a server", () =>
      Effect.gen(function*() {
        const server = yield* Effect.promise(() => startOpenAiServer())
        yield* Effect.promise(server.stop)
        const driver = yield* driverFor(server.baseUrl)
        assert.strictEqual((yield* complete(driver, request("Hi"))).failed, "unreachable")
        assert.strictEqual(facts(yield* Effect.flip(driver.verify("sk-1"))).class, "unreachable")
      }))
  })

  describe.concurrent("advice", () => {
    const notFound: ReadonlyArray<Answer> = [
      json(404, { detail: "Not Found" }),
      { status: 404, headers: { "content-type": "text/plain" }, pieces: ["404 page not found"] },
      { status: 405 },
      { headers: { "content-type": "text/html" }, pieces: ["<html></html>"] }
    ]
    itOnClient(
      "is given where the address may lack its version prefix, and nowhere else",
      () =>
        Effect.gen(function*() {
          const { server } = yield* setUp()
          const bare = yield* driverFor(server.baseUrl.replace("/v1", ""))
          const versioned = yield* driverFor(server.baseUrl)
          for (const answer of notFound) {
            server.answer(() => answer)
            for (const failing of [complete(bare, request("Hi")), Effect.flip(bare.verify("sk-1"))]) {
              const failure = yield* failing
              const told = "failure" in failure ? failure.failure : failure
              assert.match(told?.advice ?? "", /version prefix, such as \/v1/)
            }
            const right = yield* complete(versioned, request("Hi"))
            assert.notMatch(right.failure?.advice ?? "", /version prefix/)
          }
          server.answer(() => json(404, { error: { message: "The model `x` does not exist." } }))
          assert.match((yield* complete(bare, request("Hi"))).failure?.message ?? "", /model `x`/)
        })
    )

    itOnClient("is given where a key is missing, and where the address redirects", () =>
      Effect.gen(function*() {
        const keyless = yield* ask(json(401, { error: { message: "You didn't provide an API key." } }), {}, {
          credential: fixedToken(undefined)
        })
        assert.match(keyless.failure?.advice ?? "", /^add an account with the key as its token$/)
        assert.isTrue(keyless.failure?.anonymous)
        const moved = yield* ask({ status: 301, headers: { location: "https://elsewhere/" } })
        assert.match(moved.failure?.message ?? "", /redirects/)
      }))
  })

  describe.concurrent("the test of a key", () => {
    const cases: ReadonlyArray<readonly [about: string, Answer, failed: string | undefined]> = [
      ["a list of models", json(200, { object: "list", data: [] }), undefined],
      ["no list of models", json(404, { detail: "Not Found" }), undefined],
      ["a refusal", json(401, { error: { message: "no" } }), "token_refused"],
      ["a limit", json(429, {}), "rate_limited"],
      ["trouble", { status: 500 }, "upstream_trouble"],
      ["a page", { headers: { "content-type": "text/html" }, pieces: ["<html></html>"] }, "upstream_trouble"],
      ["an error that says 200", json(200, { error: "Unexpected endpoint" }), "upstream_trouble"]
    ]
    for (const [about, answer, failed] of cases) {
      itOnClient(`is answered by ${about}: ${failed ?? "it works"}`, () =>
        Effect.gen(function*() {
          const { driver, server } = yield* setUp()
          server.list(() => answer)
          const outcome = yield* Effect.result(driver.verify("sk-1"))
          assert.strictEqual(outcome._tag === "Failure" ? facts(outcome.failure).class : undefined, failed)
          assert.deepInclude(server.lists[0], { method: "GET", path: "/v1/models", key: "sk-1" })
        }))
    }

    itOnClient("is all there is of sessions and logins", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp()
        assert.isUndefined(driver.capabilities.sessions)
        assert.isUndefined(driver.capabilities.login)
        assert.lengthOf([...server.requests, ...server.lists], 0)
      }))
  })

  describe.concurrent("a completion that is left", () => {
    const windows: ReadonlyArray<readonly [about: string, Answer, events: number]> = [
      ["before the head", { headless: true, after: "hang" }, 0],
      ["before the first byte", { after: "hang" }, 0],
      ["in the stream", { pieces: [frames(text), never] }, 1],
      ["in a refusal", { ...json(500, "{"), after: "hang" }, 0]
    ]
    for (const [about, answer, events] of windows) {
      itOnClient(`${about} leaves nothing open upstream`, () =>
        Effect.gen(function*() {
          const { driver, server } = yield* setUp()
          server.answer(() => answer)
          const began = yield* Deferred.make<void>()
          let seen = 0
          const fiber = yield* start(driver, request("Hi")).pipe(
            Effect.flatMap((reply) =>
              Stream.runForEach(reply.events, () =>
                Effect.suspend(() => ++seen === events ? Deferred.succeed(began, undefined) : Effect.void))
            ),
            Effect.scoped,
            Effect.forkChild
          )
          yield* events === 0
            ? Effect.promise(() =>
              server.until((requests) => requests.length > 0)
            )
            : Deferred.await(began)
          yield* Fiber.interrupt(fiber)
          yield* Effect.promise(() => server.until(([first]) => first?.outcome === "aborted"))
        }))
    }
  })
})
