import { assert, describe, it } from "@effect/vitest"
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

describe("what is kept of calls", () => {
  const start = () => {
    let now = 0
    const calls = new SealedCalls(() => now)
    const restored = (owner: string, ...ids: ReadonlyArray<string>) =>
      runSync(calls.restored(owner, conversation(...ids), minute)).turns[0]!.parts
        .map((part) => part._tag === "Call" ? part.sealed : undefined)
    return { calls, restored, pass: (millis: number) => void (now += millis) }
  }

  it("belongs to its caller and call", () => {
    const { calls, restored } = start()
    calls.keep("a", "1", { x: 1 })
    assert.deepStrictEqual(restored("a", "1", "2"), [{ x: 1 }, undefined])
    assert.deepStrictEqual(restored("b", "1"), [undefined])
    assert.isTrue(calls.isEmpty("b"))
  })

  it("is forgotten after its time", () => {
    const { calls, pass, restored } = start()
    calls.keep("a", "1", { x: 1 })
    pass(minute)
    assert.deepStrictEqual(restored("a", "1"), [undefined])
    assert.isTrue(calls.isEmpty("a"))
  })

  it("makes room at the cost of the caller that has the most, oldest first", () => {
    const { calls, restored } = start()
    calls.keep("b", "1", { x: 1 })
    for (let i = 0; i < 10_005; i++) calls.keep("a", `${i}`, { x: i })
    assert.deepStrictEqual(restored("b", "1"), [{ x: 1 }])
    assert.deepStrictEqual(restored("a", "0", "5", "6"), [undefined, undefined, { x: 6 }])
  })

  it("leaves out what is too large", () => {
    const { calls } = start()
    calls.keep("a", "1", { x: "x".repeat(1024 * 1024) })
    assert.isTrue(calls.isEmpty("a"))
  })
})
