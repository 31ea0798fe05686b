import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SealedCalls } from "../../src/completion/SealedCalls.ts"
import type { Conversation } from "../../src/domain/Conversation.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"

const conversation = (...ids: ReadonlyArray<string>): Conversation => ({
  turns: [{ role: "assistant", parts: ids.map((id) => ({ _tag: "Call", id, name: "f", arguments: "{}" })) }],
  tools: [],
  toolChoice: { _tag: "Auto" },
  parallelToolCalls: true,
  stop: [],
  sampling: {},
  output: undefined
})

const minute = 60_000

const ofDefault = (fields: { readonly x: number | string }) => ({ upstream: "default", fields })

describe("what is kept of calls", () => {
  const start = () => {
    let now = 0
    const calls = new SealedCalls(() => now)
    const restored = (owner: string, ...ids: ReadonlyArray<string>) =>
      runSync(calls.restored(owner, conversation(...ids), minute, "default")).turns[0]!.parts
        .map((part) => part._tag === "Call" ? part.sealed : undefined)
    return { calls, restored, pass: (millis: number) => void (now += millis) }
  }

  it("belongs to its caller and call", () => {
    const { calls, restored } = start()
    calls.keep("a", "1", ofDefault({ x: 1 }))
    assert.deepStrictEqual(restored("a", "1", "2"), [{ x: 1 }, undefined])
    assert.deepStrictEqual(restored("b", "1"), [undefined])
    assert.isTrue(calls.isEmpty("b"))
  })

  it("goes back to the upstream that sealed it alone", () => {
    const { calls, restored } = start()
    calls.keep("a", "1", { upstream: "gpu", fields: { x: 1 } })
    calls.keep("a", "2", ofDefault({ x: 2 }))
    assert.deepStrictEqual(restored("a", "1", "2"), [undefined, { x: 2 }])
    const { parts } = runSync(calls.restored("a", conversation("1", "2"), minute, "gpu")).turns[0]!
    assert.deepStrictEqual(parts.map((part) => part._tag === "Call" && part.sealed), [{ x: 1 }, undefined])
  })

  it("is forgotten after its time", () => {
    const { calls, pass, restored } = start()
    calls.keep("a", "1", ofDefault({ x: 1 }))
    pass(minute)
    assert.deepStrictEqual(restored("a", "1"), [undefined])
    assert.isTrue(calls.isEmpty("a"))
  })

  it("makes room at the cost of the caller that has the most, oldest first", () => {
    const { calls, restored } = start()
    calls.keep("b", "1", ofDefault({ x: 1 }))
    for (let i = 0; i < 10_005; i++) calls.keep("a", `${i}`, ofDefault({ x: i }))
    assert.deepStrictEqual(restored("b", "1"), [{ x: 1 }])
    assert.deepStrictEqual(restored("a", "0", "5", "6"), [undefined, undefined, { x: 6 }])
  })

  it("leaves out what is too large", () => {
    const { calls } = start()
    calls.keep("a", "1", ofDefault({ x: "x".repeat(1024 * 1024) }))
    assert.isTrue(calls.isEmpty("a"))
  })
})

describe("calls that other nodes may know", () => {
  const start = () => {
    const kept = new Map<string, string>()
    const asked: Array<string> = []
    const state = { isDown: false }
    const calls = new SealedCalls(() => 0, {
      put: (owner, callId, text) => Effect.sync(() => void kept.set(`${owner} ${callId}`, text)),
      get: (owner, callId) =>
        Effect.suspend(() => {
          asked.push(callId)
          return state.isDown ? Effect.fail("down") : Effect.succeed(kept.get(`${owner} ${callId}`))
        })
    })
    const restored = (owner: string, id: string) =>
      runSync(calls.restored(owner, conversation(id), minute, "default")).turns[0]!.parts[0]!
    return { asked, calls, kept, restored, state }
  }

  it.effect("are looked up once, by their caller", () =>
    Effect.gen(function*() {
      const { asked, calls, kept, restored } = start()
      kept.set("a 1", "{\"x\":1}")
      yield* calls.lookUp("a", conversation("1", "2"))!
      assert.deepInclude(restored("a", "1"), { sealed: { x: 1 } })
      assert.isUndefined(calls.lookUp("a", conversation("1", "2")))
      yield* calls.lookUp("b", conversation("1"))!
      assert.isTrue(calls.isEmpty("b"))
      assert.deepStrictEqual(asked, ["1", "2", "1"])
    }))

  it.effect("are unknown in another form than this version writes", () =>
    Effect.gen(function*() {
      const { calls, kept, restored } = start()
      const texts = ["", "3", "null", "[]", "[1,{}]", "[\"gpu\",{},{}]", "[\"default\",\"x\"]"]
      for (const [i, text] of texts.entries()) kept.set(`a ${i}`, text)
      kept.set("a good", "[\"default\",{\"x\":1}]")
      yield* calls.lookUp("a", conversation(...texts.map((_, i) => `${i}`), "good"))!
      for (const i of texts.keys()) assert.notProperty(restored("a", `${i}`), "sealed")
      assert.deepInclude(restored("a", "good"), { sealed: { x: 1 } })
    }))

  it.effect("are looked up again if the store did not answer", () =>
    Effect.gen(function*() {
      const { asked, calls, state } = start()
      state.isDown = true
      yield* calls.lookUp("a", conversation("1"))!
      state.isDown = false
      yield* calls.lookUp("a", conversation("1"))!
      assert.isUndefined(calls.lookUp("a", conversation("1")))
      assert.deepStrictEqual(asked, ["1", "1"])
    }))

  it.effect("are looked up to a bound for each request", () =>
    Effect.gen(function*() {
      const { asked, calls } = start()
      yield* calls.lookUp("a", conversation(...Array.from({ length: 100 }, (_, i) => `${i}`), "x".repeat(201)))!
      assert.lengthOf(asked, 32)
    }))

  it.effect("are written by the node that keeps them, and need no look-up there", () =>
    Effect.gen(function*() {
      const { calls, kept } = start()
      yield* calls.keep("a", "1", ofDefault({ x: 1 }))!
      assert.strictEqual(kept.get("a 1"), "{\"x\":1}")
      yield* calls.keep("a", "2", { upstream: "gpu", fields: { x: 2 } })!
      assert.strictEqual(kept.get("a 2"), "[\"gpu\",{\"x\":2}]")
      assert.isUndefined(calls.lookUp("a", conversation("1")))
    }))
})
