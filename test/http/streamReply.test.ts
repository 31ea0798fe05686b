import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Exit, Fiber, Layer, Queue, Stream } from "effect"
import type { HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import type { CompletionOutput } from "../../src/completion/Completion.ts"
import { beginRequest } from "../../src/completion/Request.ts"
import { Deadlines } from "../../src/config/clock/Deadlines.ts"
import { CurrentBufferedBytes, CurrentLimits } from "../../src/config/limits.ts"
import type { FrameRenderer } from "../../src/contracts/shared/FrameRenderer.ts"
import { type GatewayError, gatewayError } from "../../src/domain/GatewayError.ts"
import { defaultLimits } from "../../src/domain/limits.ts"
import { Finish, type ReplyEvent, TextDelta } from "../../src/domain/ReplyEvent.ts"
import { CurrentRequest } from "../../src/http/RequestContext.ts"
import { streamReply } from "../../src/http/streamReply.ts"
import { makeWallClock } from "../support/wallClock.ts"

const renderer = (): FrameRenderer => ({
  keepAlive: () => "[ping]",
  failure: (error) => `[failed ${error.code}]`,
  frames: {
    push: (event, out) => {
      out.push(event._tag === "TextDelta" ? event.text : "[end]")
    },
    end: () => undefined
  }
})

const output = (events: Stream.Stream<ReplyEvent, GatewayError>): CompletionOutput => ({
  id: "r",
  driver: "session",
  events,
  maker: undefined
})

/** Reads a streamed response; the text sent so far is available at any time. */
const answer = Effect.fnUntraced(function*<R>(open: Effect.Effect<CompletionOutput, GatewayError, R>) {
  const deadlines = Context.get(yield* Layer.build(Deadlines.layer), Deadlines)
  const failureBefore = (error: GatewayError) => `[failed before ${error.code}]`
  const response = yield* streamReply(open, renderer, failureBefore, deadlines, 120_000).pipe(
    Effect.provideServiceEffect(CurrentRequest, beginRequest({ id: "id", key: "none", style: undefined }))
  )
  return response
})

const read = Effect.fnUntraced(function*(response: HttpServerResponse.HttpServerResponse) {
  assert(response.body._tag === "Stream")
  const sent: Array<string> = []
  const reading = yield* Stream.runForEach(
    response.body.stream,
    (bytes) => Effect.sync(() => sent.push(new TextDecoder().decode(bytes)))
  ).pipe(Effect.forkScoped)
  return { sent: () => sent.join(""), done: Fiber.join(reading) }
})

describe("a streamed reply", () => {
  it.effect("waits for the first event; a failure before it is a plain response", () =>
    Effect.gen(function*() {
      const failure = gatewayError("upstream_error", "no")
      const opened = yield* Deferred.make<CompletionOutput, GatewayError>()
      const answering = yield* Effect.forkScoped(Effect.exit(answer(Deferred.await(opened))))
      yield* TestClock.adjust("9 seconds")
      assert.isUndefined(answering.pollUnsafe())
      yield* Deferred.fail(opened, failure)
      const exit = yield* Fiber.join(answering)
      assert.deepStrictEqual(exit, Exit.fail(failure))
    }))

  it.effect("closes everything that it opened when it responds with a failure", () =>
    Effect.gen(function*() {
      const failure = gatewayError("upstream_error", "no")
      let open = 0
      const held = Effect.acquireRelease(
        Effect.sync(() => open++),
        () => Effect.andThen(Effect.yieldNow, Effect.sync(() => open--))
      )
      // The failure comes at once, or while the request waits.
      for (const wait of [Effect.void, Effect.sleep("1 seconds")]) {
        const opening = Effect.andThen(Effect.andThen(held, wait), Effect.fail(failure))
        const answering = yield* Effect.forkScoped(Effect.exit(Effect.scoped(answer(opening))))
        yield* TestClock.adjust("1 seconds")
        assert.deepStrictEqual(yield* Fiber.join(answering), Exit.fail(failure))
        assert.strictEqual(open, 0)
      }
    }))

  it.effect("sends the headers after 10 s of silence, and comments until the first frame", () =>
    Effect.gen(function*() {
      const opened = yield* Deferred.make<CompletionOutput, GatewayError>()
      const answering = yield* Effect.forkScoped(answer(Deferred.await(opened)))
      yield* TestClock.adjust("10 seconds")
      const { done, sent } = yield* read(yield* Fiber.join(answering))
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(sent(), ": keep-alive\n\n")
      yield* TestClock.adjust("6 seconds")
      assert.strictEqual(sent(), ": keep-alive\n\n: keep-alive\n\n")
      yield* Deferred.succeed(opened, output(Stream.make(TextDelta("hi"), Finish("stop"))))
      yield* done
      assert.isTrue(sent().endsWith("\n\nhi[end]"))
    }))

  it.effect("sends a failure as the last frame after the headers", () =>
    Effect.gen(function*() {
      const opened = yield* Deferred.make<CompletionOutput, GatewayError>()
      const answering = yield* Effect.forkScoped(answer(Deferred.await(opened)))
      yield* TestClock.adjust("10 seconds")
      const { done, sent } = yield* read(yield* Fiber.join(answering))
      yield* Deferred.fail(opened, gatewayError("upstream_timeout", "late"))
      yield* done
      assert.isTrue(sent().endsWith("[failed before upstream_timeout]"))
    }))

  it.effect("sends a keep-alive of its style after every 5 s of silence", () =>
    Effect.gen(function*() {
      const events = yield* Queue.unbounded<ReplyEvent, GatewayError>()
      const response = yield* Effect.forkScoped(answer(Effect.succeed(output(Stream.fromQueue(events)))))
      yield* Queue.offer(events, TextDelta("a"))
      const { done, sent } = yield* read(yield* Fiber.join(response))
      yield* TestClock.adjust("4 seconds")
      assert.strictEqual(sent(), "a")
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(sent(), "a[ping]")
      yield* TestClock.adjust("5 seconds")
      yield* Queue.offer(events, TextDelta("b"))
      yield* TestClock.adjust("4 seconds")
      assert.strictEqual(sent(), "a[ping][ping]b")
      yield* Queue.fail(events, gatewayError("upstream_error", "gone"))
      yield* done
      assert.strictEqual(sent(), "a[ping][ping]b[failed upstream_error]")
    }))

  it.effect("ends with internal_error on a defect of the gateway", () =>
    Effect.gen(function*() {
      const events = Stream.concat(Stream.make(TextDelta("a")), Stream.die(new Error("secret internals")))
      const { done, sent } = yield* read(yield* answer(Effect.succeed(output(events))))
      yield* done
      assert.strictEqual(sent(), "a[failed internal_error]")
    }))

  /** Letters without end; how many were pulled, and whether the reply was left. */
  const letters = () => {
    const seen = { pulled: 0, closed: false }
    const events = Stream.forever(Stream.make(TextDelta("x"))).pipe(
      Stream.rechunk(1),
      Stream.tap(() => Effect.sync(() => seen.pulled++)),
      Stream.ensuring(Effect.sync(() => {
        seen.closed = true
      }))
    )
    return { seen, events }
  }

  const queueOf = (client_queue_bytes: number) =>
    Effect.provideService(CurrentLimits, () => ({ ...defaultLimits, client_queue_bytes }))

  it.effect("slows down the upstream for a slow client, and disconnects a client that reads nothing", () =>
    Effect.gen(function*() {
      const { events, seen } = letters()
      const sum = { used: 0 }
      const answering = yield* Effect.forkChild(
        Effect.scoped(Effect.andThen(answer(Effect.succeed(output(events))), Effect.never)).pipe(
          queueOf(50),
          Effect.provideService(CurrentBufferedBytes, sum)
        )
      )
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(seen.pulled, 50)
      assert.strictEqual(sum.used, 50)
      assert.isFalse(seen.closed)
      yield* TestClock.adjust("130 seconds")
      assert.isTrue(seen.closed)
      yield* Fiber.await(answering)
      assert.strictEqual(sum.used, 0)
    }))

  it.effect("closes the upstream with its last event, however far behind the client is", () =>
    Effect.gen(function*() {
      let closed = false
      const events = Stream.ensuring(
        Stream.rechunk(Stream.make(TextDelta("x".repeat(100)), Finish("stop")), 1),
        Effect.sync(() => {
          closed = true
        })
      )
      const sum = { used: 0 }
      const response = yield* answer(Effect.succeed(output(events))).pipe(
        queueOf(101),
        Effect.provideService(CurrentBufferedBytes, sum)
      )
      yield* TestClock.adjust("1 seconds")
      assert.isTrue(closed)
      // Buffered bytes count until the client reads them.
      assert.strictEqual(sum.used, 105)
      const { done, sent } = yield* read(response)
      yield* done
      assert.strictEqual(sent(), `${"x".repeat(100)}[end]`)
    }))

  it.effect("disconnects a client that does not read a complete reply", () =>
    Effect.gen(function*() {
      let closed = false
      const events = Stream.ensuring(
        Stream.make(TextDelta("x"), Finish("stop")),
        Effect.sync(() => {
          closed = true
        })
      )
      const answering = yield* Effect.forkChild(
        Effect.scoped(Effect.andThen(answer(Effect.succeed(output(events))), Effect.never))
      )
      yield* TestClock.adjust("1 seconds")
      // The upstream has finished and the account is released; only the client is behind.
      assert.isTrue(closed)
      yield* TestClock.adjust("118 seconds")
      assert.isUndefined(answering.pollUnsafe())
      yield* TestClock.adjust("6 seconds")
      assert.isDefined(answering.pollUnsafe())
    }))

  it.effect("waits for a client that reads slowly", () =>
    Effect.gen(function*() {
      const { events, seen } = letters()
      const response = yield* answer(Effect.succeed(output(events))).pipe(queueOf(50))
      assert(response.body._tag === "Stream")
      const pull = yield* Stream.toPull(response.body.stream)
      for (let i = 0; i < 20; i++) {
        yield* pull
        yield* TestClock.adjust("110 seconds")
        assert.isFalse(seen.closed)
      }
    }))

  it.effect("waits while all clients together exceed buffered_bytes, and continues when they read", () =>
    Effect.gen(function*() {
      const { events, seen } = letters()
      const sum = { used: 100 }
      const response = yield* answer(Effect.succeed(output(events))).pipe(
        Effect.provideService(CurrentBufferedBytes, sum),
        Effect.provideService(CurrentLimits, () => ({ ...defaultLimits, buffered_bytes: 150 }))
      )
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(seen.pulled, 51)
      assert(response.body._tag === "Stream")
      const pull = yield* Stream.toPull(response.body.stream)
      yield* pull
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(seen.pulled, 102)
    }))

  for (const hours of [-1, 1]) {
    it.effect(`neither ends nor waits longer when the wall clock jumps by ${hours} h`, () =>
      Effect.gen(function*() {
        const clock = makeWallClock(yield* Clock.Clock)
        const { events, seen } = letters()
        yield* Effect.gen(function*() {
          yield* Effect.forkScoped(Effect.andThen(answer(Effect.succeed(output(events))), Effect.never))
          yield* TestClock.adjust("100 seconds")
          clock.offset = hours * 3_600_000
          yield* TestClock.adjust("15 seconds")
          assert.isFalse(seen.closed)
          yield* TestClock.adjust("15 seconds")
          assert.isTrue(seen.closed)
        }).pipe(queueOf(50), Effect.provideService(Clock.Clock, clock))
      }))
  }
})
