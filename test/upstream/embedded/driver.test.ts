import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Deadlines } from "../../../src/config/clock/Deadlines.ts"
import { makeEmbeddedDriver } from "../../../src/upstream/embedded/driver.ts"
import { ask, complete, fixedToken, request, start, timeLimits } from "../session/support.ts"

const driver = Effect.provide(makeEmbeddedDriver({ furtherModels: [], limits: timeLimits }), Deadlines.layer)

const chat = { id: "upstream-chat", reasoning: false, search: false }

describe("the embedded driver", () => {
  it.effect("answers without a credential, with any token and after any login", () =>
    Effect.gen(function*() {
      const embedded = yield* driver
      const token = yield* embedded.capabilities.login({
        email: "who@example.org",
        mobile: undefined,
        password: "ever"
      })
      for (const credential of [undefined, "sk-anything", token]) {
        yield* embedded.verify(credential)
        const outcome = yield* complete(embedded, request("!say hello", { credential: fixedToken(credential) }))
        assert.deepInclude(outcome, { text: "hello", finish: "stop", failed: undefined })
      }
    }))

  it.effect("reasons for the models that do, and repeats the question", () =>
    Effect.gen(function*() {
      const embedded = yield* driver
      const reasoned = yield* complete(embedded, request("Is anybody there?"))
      assert.include(reasoned.reasoning, "“Is anybody there?”")
      assert.include(reasoned.text, "You said: “Is anybody there?”")
      const plain = yield* complete(embedded, request("Is anybody there?", { model: chat }))
      assert.strictEqual(plain.reasoning, "")
      assert.strictEqual(plain.text, reasoned.text)
      assert.isAbove(plain.completionTokens ?? 0, 0)
      assert.isAbove(reasoned.completionTokens ?? 0, plain.completionTokens ?? 0)
    }))

  it.effect("keeps sessions apart by account until they are deleted", () =>
    Effect.gen(function*() {
      const embedded = yield* driver
      const own = yield* embedded.capabilities.sessions.create(undefined)
      const other = yield* embedded.capabilities.sessions.create("other")
      assert.notStrictEqual(own, other)
      assert.deepStrictEqual((yield* embedded.capabilities.sessions.list(undefined, 10)).map(({ id }) => id), [own])
      yield* embedded.capabilities.sessions.deleteAll(undefined)
      assert.deepStrictEqual(yield* embedded.capabilities.sessions.list(undefined, 10), [])
      assert.lengthOf(yield* embedded.capabilities.sessions.list("other", 10), 1)
    }))

  it.effect("resumes a connection that breaks, and continues at the output limit", () =>
    Effect.gen(function*() {
      const embedded = yield* driver
      const broken = yield* complete(embedded, request("!say one two three\n!fault reset-mid-stream after=2"))
      assert.deepInclude(broken, { text: "one two three", finish: "stop" })
      const cut = yield* complete(embedded, request("!say one two three four five\n!cut 2 none"))
      assert.deepInclude(cut, { text: "one two three four five", finish: "stop" })
      const reset = yield* complete(embedded, request("!fault reset-before-headers"))
      assert.strictEqual(reset.failure?.kind, "transport")
    }))

  it.effect("paces its events by the clock", () =>
    Effect.gen(function*() {
      const embedded = yield* driver
      const seen: Array<string> = []
      const running = yield* start(embedded, { ...request(""), model: chat, conversation: ask("!pace 1s\n!count 3") })
        .pipe(
          Effect.flatMap(({ events }) =>
            Stream.runForEach(events, (event) =>
              Effect.sync(() => {
                if (event._tag === "UpstreamText") seen.push(event.text)
              }))
          ),
          Effect.scoped,
          Effect.forkChild
        )
      for (const expected of [[], ["1"], ["1", " 2"], ["1", " 2", " 3"]]) {
        assert.deepStrictEqual(seen, expected)
        yield* TestClock.adjust("1 second")
      }
      yield* Fiber.join(running)
    }))
})
