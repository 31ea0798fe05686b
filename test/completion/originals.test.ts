/** Which pieces of a reply still have the server's event behind the machines, and which have lost it with their text. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type AssembleOptions, assembleReply } from "../../src/completion/assembleReply.ts"
import { toolPolicy } from "../../src/completion/toolPolicy.ts"
import type { ReplyEvent } from "../../src/domain/ReplyEvent.ts"
import { compileStopSequences } from "../../src/domain/stream/stopSequences.ts"
import { run } from "../../src/domain/stream/transducer.ts"
import { UpstreamCall, type UpstreamEvent, UpstreamFinish, UpstreamText } from "../../src/domain/UpstreamEvent.ts"
import { sieve } from "../../src/sieve/sieve.ts"

const tools = [{ name: "f", parameters: { type: "object" } }]
const callText = `<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>`

const options: AssembleOptions = {
  sieve: sieve({ tools, callId: (index) => `call_text_${index}` }),
  reasoningCalls: undefined,
  stripMarkers: true,
  stop: compileStopSequences(["STOP"]),
  singleCall: false,
  showReasoning: true,
  addCall: () => true,
  callId: (index) => `call_${index}`,
  promptTokens: () => 7,
  meter: undefined,
  keepSealed: undefined,
  keepSeal: undefined
}

/** Pieces of text as a server sends them, each with its number. */
const sent = (...pieces: ReadonlyArray<string>): Array<UpstreamEvent> =>
  pieces.map((piece, number) => UpstreamText(piece, { number }))

const assemble = (events: ReadonlyArray<UpstreamEvent>, changed: Partial<AssembleOptions> = {}) =>
  run(() => assembleReply({ ...options, ...changed }), [...events, UpstreamFinish("stop")])

/** The pieces of text, and the numbers of their originals. */
const shown = (events: ReadonlyArray<ReplyEvent>) =>
  events.flatMap((event) => event._tag === "TextDelta" ? [[event.text, event.original?.["number"]]] : [])

describe("a piece of text", () => {
  it("has its original where nothing was changed", () => {
    assert.deepStrictEqual(shown(assemble(sent("a ", "b"))), [["a ", 0], ["b", 1]])
  })

  it("has it where it was held with others, whole or in two", () => {
    const pieces = ["a <", "tool", " and", " b"]
    const events = shown(assemble(sent(...pieces), { stripMarkers: false, stop: undefined }))
    assert.deepStrictEqual(events, [["a ", undefined], ["<", undefined], ["tool", 1], [" and", 2], [" b", 3]])
  })

  it("has it behind a call of the server", () => {
    const call = UpstreamCall(0, "c", "f", "{}")
    assert.deepStrictEqual(shown(assemble([call, ...sent("a", "b")])), [["a", 0], ["b", 1]])
  })

  it("has it behind the first of calls that came together, while it waits", () => {
    const first = UpstreamCall(0, "c", "f", `{"a":`)
    const rest = UpstreamCall(0, undefined, undefined, "1}")
    assert.deepStrictEqual(shown(assemble([first, ...sent("a", "b"), rest])), [["a", 0], ["b", 1]])
  })

  it("loses it to a call in the text, and the pieces behind the call keep theirs", () => {
    const events = shown(assemble(sent("a", ` b ${callText} c`, "d")))
    assert.deepStrictEqual(events.map(([text]) => text).join(""), "a b  cd")
    assert.deepStrictEqual(events.map(([, number]) => number), [0, ...events.slice(1, -1).map(() => undefined), 2])
  })

  it("loses it where a marker or a stop sequence is taken away", () => {
    assert.deepStrictEqual(shown(assemble(sent("a", "b [citation:1]", "c STOP d"))), [
      ["a", 0],
      ["b ", undefined],
      ["c ", undefined]
    ])
  })

  it("has the original of its own text alone, whatever the machines hold", () => {
    const words = fc.constantFrom(
      "a",
      "<tool",
      "_call>",
      callText,
      "`",
      "```",
      "json\n",
      "[",
      "[citation:1]",
      "ST",
      "OP",
      "\n"
    )
    fc.assert(fc.property(fc.array(words, { maxLength: 12 }), fc.boolean(), (pieces, strips) => {
      const events = assemble(sent(...pieces), strips ? {} : { stripMarkers: false, stop: undefined })
      for (const [text, number] of shown(events)) {
        if (number !== undefined) assert.strictEqual(text, pieces[Number(number)])
      }
    }))
  })

  it("has it behind the wait for a call that has to come", () => {
    const machine = toolPolicy({ _tag: "Required" }, false)
    const out: Array<ReplyEvent> = []
    for (const event of assemble([...sent("a", "b"), UpstreamCall(0, "c", "f", "{}")])) machine.push(event, out)
    assert.deepStrictEqual(shown(out), [["a", 0], ["b", 1]])
  })
})
