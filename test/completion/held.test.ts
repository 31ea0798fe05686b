/** The memory of a reply's machines does not grow with the reply, except for held text, which they count. */
import { assert, describe, it } from "@effect/vitest"
import { type AssembleOptions, assembleReply, type ReplyMachine } from "../../src/completion/assembleReply.ts"
import type { ReplyEvent } from "../../src/domain/ReplyEvent.ts"
import { compileStopSequences } from "../../src/domain/stream/stopSequences.ts"
import { UpstreamCall, type UpstreamEvent, UpstreamReasoning, UpstreamText } from "../../src/domain/UpstreamEvent.ts"
import { ReasoningCalls } from "../../src/sieve/reasoningCalls.ts"
import { sieve } from "../../src/sieve/sieve.ts"
import { retainedBy } from "../support/retained.ts"

const tools = [{ name: "lookup", description: undefined, parameters: undefined, strict: undefined }]
const callId = (index: number) => `call_${index}`

const options: AssembleOptions = {
  sieve: sieve({ tools, callId }),
  reasoningCalls: () => new ReasoningCalls(tools),
  stripMarkers: true,
  stop: compileStopSequences(["STOP"]),
  singleCall: false,
  showReasoning: true,
  addCall: () => true,
  callId,
  promptTokens: () => 7,
  meter: undefined,
  keepSealed: undefined,
  keepSeal: undefined
}

const feed = (machine: ReplyMachine, events: Iterable<UpstreamEvent>): ReadonlyArray<ReplyEvent> => {
  const out: Array<ReplyEvent> = []
  for (const event of events) machine.push(event, out)
  return out
}

const sentence = "Some **words** of `a long reply`, with {\"json\": [1, 2]} and <b>tags</b>.\n"

function* repeated(count: number, event: (text: string) => UpstreamEvent) {
  for (let i = 0; i < count; i++) yield event(sentence)
}

describe("the machines of a streamed reply", () => {
  it.each([
    ["text", [UpstreamText]],
    ["reasoning", [UpstreamReasoning]],
    ["reasoning and text", [UpstreamReasoning, UpstreamText]]
  ])("hold no more of a long reply than of a short one: %s", (_, kinds) => {
    const kept = (count: number) => {
      const machine = assembleReply(options)
      for (const kind of kinds) feed(machine, repeated(count, kind))
      assert.isAtMost(machine.held, sentence.length)
      return retainedBy(machine)
    }
    const short = kept(100)
    // The last characters wait for the token count or for the characters that may follow.
    assert.isAtMost(kept(4_000), short + 2 * 1024)
  })

  it("count the arguments of an open structured call and everything that waits behind it", () => {
    const machine = assembleReply(options)
    feed(machine, [UpstreamCall(0, "a", "lookup", "{\"text\":\"")])
    const before = machine.held
    feed(machine, [UpstreamCall(0, undefined, undefined, "x".repeat(10_000))])
    assert.strictEqual(machine.held, before + 10_000)
    feed(machine, [UpstreamText("y".repeat(5_000)), UpstreamCall(1, "b", "lookup", "{\"a\":1}")])
    assert.strictEqual(machine.held, before + 15_000 + 7)
    feed(machine, [UpstreamCall(0, undefined, undefined, "\"}")])
    feed(machine, [UpstreamCall(1, undefined, undefined, " "), UpstreamText("z")])
    assert.strictEqual(machine.held, 0)
  })

  it("count the arguments of a call in the text or in the reasoning", () => {
    const opening = "<tool_call>{\"name\":\"lookup\",\"arguments\":{\"text\":\""
    for (const kind of [UpstreamText, UpstreamReasoning]) {
      const machine = assembleReply(options)
      feed(machine, [kind(opening), kind("x".repeat(10_000))])
      assert.isAtLeast(machine.held, 10_000)
      assert.isAtMost(machine.held, 10_000 + opening.length)
      feed(machine, [kind("\"}}</tool_call>")])
      // A call at the end of the reasoning is held until the reply has text or ends.
      assert.isAtLeast(machine.held, kind === UpstreamText ? 0 : 10_000)
      feed(machine, [UpstreamText("That was it.")])
      assert.isAtMost(machine.held, 100)
    }
  })
})
