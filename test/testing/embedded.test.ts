import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Deadlines } from "../../src/config/clock/Deadlines.ts"
import { makeScriptedDriver } from "../../src/testing/embedded.ts"
import { ask, complete, request, start, timeLimits } from "../upstream/session/support.ts"

const driver = Effect.provide(makeScriptedDriver({ furtherModels: [], limits: timeLimits }), Deadlines.layer)

const chat = { id: "upstream-chat", reasoning: false, search: false }

describe("the scripted driver", () => {
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
