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
  it("holds the text before it and lets it go with the call", () => {
    const machine = toolPolicy(required, false)
    const out: Array<ReplyEvent> = []
    machine.push(Reply.ReasoningDelta("hm"), out)
    machine.push(Reply.TextDelta("let me"), out)
    assert.deepStrictEqual(out, [Reply.ReasoningDelta("hm")])
    for (const event of call(0, "f")) machine.push(event, out)
    assert.deepStrictEqual(out.slice(1, 3), [Reply.TextDelta("let me"), Reply.CallStarted(0, "id0", "f")])
  })

  it("that does not come is a violation, and nothing of the reply's text was shown", () => {
    const { out, violated } = held(required, [Reply.TextDelta("no"), Reply.Finish("stop")])
    assert.deepStrictEqual(out, [])
    assert.isTrue(violated)
  })

  it("counts only of the forced function, and the shown ones count from 0", () => {
    const { out, violated } = held(forced, [...call(0, "other"), ...call(1, "wanted"), Reply.Finish("tool_calls")])
    assert.deepStrictEqual(out.map((event) => event._tag), ["CallStarted", "CallArguments", "CallFinished", "Finish"])
    assert.isTrue(out.every((event) => !("index" in event) || event.index === 0))
    assert.isFalse(violated)
    assert.isTrue(held(forced, [...call(0, "other"), Reply.Finish("tool_calls")]).violated)
  })

  it("lets a withdrawn reply end as one", () => {
    const { out, violated } = held(required, [Reply.TextDelta("a"), Reply.Finish("content_filter")])
    assert.isFalse(violated)
    assert.deepStrictEqual(out, [Reply.TextDelta("a"), Reply.Finish("content_filter")])
  })

  it("on the second try shows no reasoning again", () => {
    const { out } = held(required, [Reply.ReasoningDelta("hm"), ...call(0, "f")], true)
    assert.isFalse(out.some((event) => event._tag === "ReasoningDelta"))
  })
})
