import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Queue, Stream } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import { TestClock } from "effect/testing"
import { Callers } from "../../../src/accounts/Callers.ts"
import { CredentialThrottles } from "../../../src/accounts/CredentialThrottles.ts"
import { Completion, type CompletionInput, type CompletionOutput } from "../../../src/completion/Completion.ts"
import { completionBy } from "../../../src/completion/completionOf.ts"
import { Deadlines } from "../../../src/config/clock/Deadlines.ts"
import { ConfigStore } from "../../../src/config/ConfigStore.ts"
import { CurrentBufferedBytes } from "../../../src/config/limits.ts"
import { type GatewayError, gatewayError } from "../../../src/domain/GatewayError.ts"
import { Finish, ReasoningDelta, type ReplyEvent, TextDelta } from "../../../src/domain/ReplyEvent.ts"
import { layerEntrance } from "../../../src/http/gatewayEntrance.ts"
import { layerServing } from "../../../src/http/gatewayServing.ts"
import { WorkLimit } from "../../../src/http/WorkLimit.ts"
import { ResponsesHandlers } from "../../../src/styles/responses/Handlers.ts"
import { layerResponses } from "../../../src/styles/responses/store/memoryResponses.ts"
import { ServerFindings } from "../../../src/upstream/ServerFindings.ts"
import { parseFrames } from "../../support/sse.ts"
import { usageInMemory } from "../../support/usage.ts"

type Open = (input: CompletionInput) => Effect.Effect<CompletionOutput, GatewayError>

const output = (events: Stream.Stream<ReplyEvent, GatewayError>): CompletionOutput => ({
  id: "session-1",
  driver: "session",
  events,
  maker: undefined
})

/** The style over a completion service that the test scripts, within the test's own clock and scope. */
const serve = Effect.fnUntraced(function*(open: Open) {
  const app = yield* HttpRouter.toHttpEffect(
    ResponsesHandlers.pipe(
      Layer.provide([layerEntrance, layerServing]),
      Layer.provide([
        Layer.provide(Callers.layer, CredentialThrottles.layerNone),
        Deadlines.layer,
        WorkLimit.layer,
        usageInMemory,
        Layer.mock(ServerFindings)({ now: () => [], away: () => new Map(), readAgain: Effect.void }),
        layerResponses,
        Layer.succeed(Completion, completionBy(open))
      ]),
      Layer.provide(ConfigStore.layerJson({ keys: ["key"] })),
      Layer.provide(HttpServer.layerServices),
      Layer.orDie
    )
  )
  return (method: string, path: string, body?: object) =>
    Effect.provideService(
      Effect.orDie(app),
      HttpServerRequest.HttpServerRequest,
      HttpServerRequest.fromWeb(
        new Request(`http://gateway${path}`, {
          method,
          headers: { authorization: "Bearer key" },
          body: body === undefined ? null : JSON.stringify(body)
        })
      )
    )
})

type App = Effect.Success<ReturnType<typeof serve>>

const streamed = { model: "gpt-5", input: "Hi", stream: true }

/** Reads a stream as it comes. */
const read = Effect.fnUntraced(function*(response: HttpServerResponse.HttpServerResponse) {
  assert(response.body._tag === "Stream")
  let text = ""
  const reading = yield* Effect.forkScoped(Stream.runForEach(response.body.stream, (bytes) =>
    Effect.sync(() => {
      text += new TextDecoder().decode(bytes)
    })))
  const events = () =>
    parseFrames(text).flatMap(({ data }) =>
      data === "[DONE]" ? [] : [JSON.parse(data) as { type: string; id?: string; response?: { id: string } }]
    )
  return { events, id: () => events()[0]?.response?.id ?? "", done: Fiber.join(reading) }
})

const retrieve = Effect.fnUntraced(function*(app: App, id: string) {
  const { body, status } = yield* app("GET", `/v1/responses/${id}`)
  assert(body._tag === "Uint8Array")
  const object = JSON.parse(new TextDecoder().decode(body.body)) as {
    readonly status?: string
    readonly output_text?: string
    readonly error?: { readonly code: string } | null
  }
  return { http: status, ...object }
})

describe("stored responses", () => {
  it.effect("count in what is held while a request goes on from them", () =>
    Effect.gen(function*() {
      const held: Array<number> = []
      const app = yield* serve(() =>
        Effect.map(CurrentBufferedBytes, ({ used }) => {
          held.push(used)
          return output(Stream.make(TextDelta("Hello"), Finish("stop")))
        })
      )
      const text = "x".repeat(100_000)
      const first = yield* read(yield* app("POST", "/v1/responses", { ...streamed, input: text }))
      yield* first.done
      const on = { ...streamed, previous_response_id: first.id() }
      yield* (yield* read(yield* app("POST", "/v1/responses", on))).done
      assert.isAtLeast(held[1]! - held[0]!, 2 * text.length)
    }))

  it.effect("are there from the first frame on, and gone a time-to-live after the last", () =>
    Effect.gen(function*() {
      const events = yield* Queue.unbounded<ReplyEvent, GatewayError>()
      const reply = Stream.takeUntil(Stream.fromQueue(events), (event) => event._tag === "Finish")
      const app = yield* serve(() => Effect.succeed(output(reply)))
      yield* Queue.offer(events, TextDelta("Hel"))
      const { done, id } = yield* read(yield* app("POST", "/v1/responses", streamed))
      yield* TestClock.adjust("20 minutes")
      assert.strictEqual((yield* retrieve(app, id())).status, "in_progress")
      yield* Queue.offerAll(events, [TextDelta("lo"), Finish("stop")])
      yield* done
      assert.strictEqual((yield* retrieve(app, id())).output_text, "Hello")
      yield* TestClock.adjust("899 seconds")
      assert.strictEqual((yield* retrieve(app, id())).status, "completed")
      yield* TestClock.adjust("1 seconds")
      const gone = yield* retrieve(app, id())
      assert.strictEqual(gone.http, 404)
      assert.strictEqual(gone.error?.code, "not_found")
    }))

  it.effect("are final before the frame that says so has left", () =>
    Effect.gen(function*() {
      const app = yield* serve(() => Effect.succeed(output(Stream.make(TextDelta("Hello"), Finish("stop")))))
      const { done, events, id } = yield* read(yield* app("POST", "/v1/responses", streamed))
      while (events().at(-1)?.type !== "response.completed") yield* Effect.yieldNow
      assert.strictEqual((yield* retrieve(app, id())).status, "completed")
      yield* done
    }))

  it.effect("keep a failure that comes after the headers and before the reply", () =>
    Effect.gen(function*() {
      const opened = yield* Deferred.make<CompletionOutput, GatewayError>()
      const asked = yield* Deferred.make<void>()
      const app = yield* serve(() => Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(opened)))
      const answering = yield* Effect.forkScoped(app("POST", "/v1/responses", streamed))
      yield* Deferred.await(asked)
      yield* TestClock.adjust("10 seconds")
      const { done, events, id } = yield* read(yield* Fiber.join(answering))
      yield* Deferred.fail(opened, gatewayError("upstream_timeout", "late"))
      yield* done
      assert.deepStrictEqual(events().map((event) => event.type), [
        "response.created",
        "response.in_progress",
        "response.failed"
      ])
      const stored = yield* retrieve(app, id())
      assert.strictEqual(stored.status, "failed")
      assert.strictEqual(stored.error?.code, "upstream_timeout")
    }))

  it.effect("keep the failure of a compaction that takes longer than the headers wait", () =>
    Effect.gen(function*() {
      const opened = yield* Deferred.make<CompletionOutput, GatewayError>()
      const asked = yield* Deferred.make<void>()
      const app = yield* serve(() => Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(opened)))
      const body = { ...streamed, input: ["Hi", { type: "compaction_trigger" }] }
      const answering = yield* Effect.forkScoped(app("POST", "/v1/responses", body))
      yield* Deferred.await(asked)
      yield* TestClock.adjust("10 seconds")
      const { done, events, id } = yield* read(yield* Fiber.join(answering))
      yield* Deferred.succeed(opened, output(Stream.make(ReasoningDelta("Hm."), Finish("stop"))))
      yield* done
      assert.deepStrictEqual(events().map((event) => event.type), [
        "response.created",
        "response.in_progress",
        "response.failed"
      ])
      assert.strictEqual((yield* retrieve(app, id())).error?.code, "upstream_empty_output")
    }))

  it.effect("are cancelled when the client leaves, with what it was shown", () =>
    Effect.gen(function*() {
      const app = yield* serve(() => Effect.succeed(output(Stream.concat(Stream.make(TextDelta("So ")), Stream.never))))
      const id = yield* Effect.scoped(Effect.gen(function*() {
        const { id } = yield* read(yield* app("POST", "/v1/responses", streamed))
        while (id() === "") yield* Effect.yieldNow
        return id()
      }))
      const left = yield* retrieve(app, id)
      assert.strictEqual(left.status, "cancelled")
      assert.strictEqual(left.output_text, "So ")
    }))

  it.effect("do not come back once they were removed in progress", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const app = yield* serve(() =>
        Effect.succeed(output(
          Stream.make<Array<ReplyEvent>>(ReasoningDelta("Hm.")).pipe(
            Stream.concat(Stream.drain(Stream.fromEffect(Deferred.await(gate)))),
            Stream.concat(Stream.make<Array<ReplyEvent>>(TextDelta("Yes."), Finish("stop")))
          )
        ))
      )
      const { done, events, id } = yield* read(yield* app("POST", "/v1/responses", streamed))
      while (id() === "") yield* Effect.yieldNow
      assert.strictEqual((yield* app("DELETE", `/v1/responses/${id()}`)).status, 200)
      yield* Deferred.succeed(gate, undefined)
      yield* done
      assert.strictEqual(events().at(-1)?.type, "response.completed")
      assert.strictEqual((yield* retrieve(app, id())).http, 404)
    }))
})
