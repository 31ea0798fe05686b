import { assert, describe, it } from "@effect/vitest"
import { toolPolicy } from "../../src/completion/toolPolicy.ts"
import type { ToolChoice } from "../../src/domain/Conversation.ts"
import type { ReplyEvent } from "../../src/domain/ReplyEvent.ts"
import * as Reply from "../../src/domain/ReplyEvent.ts"

const required: ToolChoice = { _tag: "Required" }
const forced: ToolChoice = { _tag: "Function", name: "wanted" }

const held = (choice: ToolChoice, events: ReadonlyArray<ReplyEvent>, dropReasoning = false) => {
  const machine = toolPolicy(choice, dropReasoning)
  const out: Array<ReplyEvent> = []
  for (const event of events) machine.push(event, out)
  return { out, violated: machine.violated() }
}

const call = (index: number, name: string): ReadonlyArray<ReplyEvent> => [
  Reply.CallStarted(index, `id${index}`, name),
  Reply.CallArguments(index, "{}"),
  Reply.CallFinished(index, `id${index}`, name, "{}")
]

describe("a demanded call", () => {
  it("holds the text before it and releases it with the call", () => {
    const machine = toolPolicy(required, false)
    const out: Array<ReplyEvent> = []
    machine.push(Reply.ReasoningDelta("hm"), out)
    machine.push(Reply.TextDelta("let me"), out)
    assert.deepStrictEqual(out, [Reply.ReasoningDelta("hm")])
    for (const event of call(0, "f")) machine.push(event, out)
    assert.deepStrictEqual(out.slice(1, 3), [Reply.TextDelta("let me"), Reply.CallStarted(0, "id0", "f")])
  })

  it("that is missing is a violation, and no text of the reply is released", () => {
    const { out, violated } = held(required, [Reply.TextDelta("no"), Reply.Finish("stop")])
    assert.deepStrictEqual(out, [])
    assert.isTrue(violated)
  })

  it("must be one of the forced function; the released calls are numbered from 0", () => {
    const { out, violated } = held(forced, [...call(0, "other"), ...call(1, "wanted"), Reply.Finish("tool_calls")])
    assert.deepStrictEqual(out.map((event) => event._tag), ["CallStarted", "CallArguments", "CallFinished", "Finish"])
    assert.isTrue(out.every((event) => !("index" in event) || event.index === 0))
    assert.isFalse(violated)
    assert.isTrue(held(forced, [...call(0, "other"), Reply.Finish("tool_calls")]).violated)
  })

  it("is not required of a withdrawn reply", () => {
    const { out, violated } = held(required, [Reply.TextDelta("a"), Reply.Finish("content_filter")])
    assert.isFalse(violated)
    assert.deepStrictEqual(out, [Reply.TextDelta("a"), Reply.Finish("content_filter")])
  })

  it("releases what a server says of its own with the call, in order, and counts what is held of it", () => {
    const machine = toolPolicy(required, false)
    const out: Array<ReplyEvent> = []
    const extra = (type: string) => Reply.ReplyExtra("responses", "item", { type })
    machine.push(extra("a"), out)
    machine.push(Reply.TextDelta("let me"), out)
    machine.push(extra("b".repeat(1_000)), out)
    assert.deepStrictEqual(out, [])
    assert.isAbove(machine.held, 1_000)
    for (const event of call(0, "f")) machine.push(event, out)
    assert.deepStrictEqual(out.slice(0, 3), [extra("a"), Reply.TextDelta("let me"), extra("b".repeat(1_000))])
    assert.strictEqual(out[3]?._tag, "CallStarted")
    assert.strictEqual(machine.held, 0)
  })

  it("drops the reasoning of the second turn", () => {
    const { out } = held(required, [Reply.ReasoningDelta("hm"), ...call(0, "f")], true)
    assert.isFalse(out.some((event) => event._tag === "ReasoningDelta"))
  })
})
