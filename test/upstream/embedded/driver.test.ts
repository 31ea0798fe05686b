import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Deadlines } from "../../../src/config/clock/Deadlines.ts"
import { makeEmbeddedDriver } from "../../../src/upstream/embedded/driver.ts"
import { complete, fixedToken, request, timeLimits } from "../session/support.ts"

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
        const outcome = yield* complete(embedded, request("Hello", { credential: fixedToken(credential) }))
        assert.deepInclude(outcome, { finish: "stop", failed: undefined })
        assert.include(outcome.text, "You said: “Hello”")
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

  it.effect("takes no script from a prompt", () =>
    Effect.gen(function*() {
      const { text } = yield* complete(yield* driver, request("!say hello\n!fault trouble"))
      assert.include(text, "You said: “!say hello !fault trouble”")
    }))

  it.effect("searches for the models that do", () =>
    Effect.gen(function*() {
      const model = { id: "upstream-search", reasoning: false, search: true }
      const { text } = yield* complete(yield* driver, request("cats", { model }))
      assert.include(text, "I looked for “cats” and found three pages")
    }))
})
