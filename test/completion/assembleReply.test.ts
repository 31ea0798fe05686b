import { assert, describe, it } from "@effect/vitest"
import { type AssembleOptions, assembleReply } from "../../src/completion/assembleReply.ts"
import type { ReplyEvent } from "../../src/domain/ReplyEvent.ts"
import { compileStopSequences } from "../../src/domain/stream/stopSequences.ts"
import { run } from "../../src/domain/stream/transducer.ts"
import {
  UpstreamCall,
  type UpstreamEvent,
  UpstreamFinish,
  UpstreamReasoning,
  UpstreamText,
  UpstreamUsage
} from "../../src/domain/UpstreamEvent.ts"
import { assertLinear } from "../support/linear.ts"

const options: AssembleOptions = {
  sieve: undefined,
  reasoningCalls: undefined,
  stripMarkers: false,
  stop: undefined,
  singleCall: false,
  showReasoning: true,
  addCall: () => true,
  callId: (index) => `call_${index}`,
  promptTokens: () => 7,
  meter: undefined,
  keepSealed: undefined,
  keepSeal: undefined
}

const assemble = (events: ReadonlyArray<UpstreamEvent>, changed: Partial<AssembleOptions> = {}) =>
  run(() => assembleReply({ ...options, ...changed }), events)

const textOf = (events: ReadonlyArray<ReplyEvent>) =>
  events.map((event) => event._tag === "TextDelta" ? event.text : "").join("")

const finishOf = (events: ReadonlyArray<ReplyEvent>) => {
  const last = events.at(-1)
  assert(last !== undefined && last._tag === "Finish")
  return last
}

describe("a reply without tools", () => {
  it("consists of text and reasoning, then usage and finish", () => {
    const events = assemble([
      UpstreamReasoning("hm"),
      UpstreamText("Hello"),
      UpstreamUsage({ completionTokens: 40 }),
      UpstreamUsage({ promptTokens: 11, completionTokens: 41 }),
      UpstreamFinish("stop")
    ])
    assert.deepStrictEqual(events.map((event) => event._tag), [
      "ReasoningDelta",
      "TextDelta",
      "UsageReported",
      "Finish"
    ])
    const usage = events.find((event) => event._tag === "UsageReported")
    assert.deepStrictEqual(usage?.usage, {
      promptTokens: 11,
      completionTokens: 41,
      reasoningTokens: 1,
      cachedTokens: 0
    })
  })

  it("has estimates for the tokens that the upstream does not report", () => {
    const events = assemble([UpstreamText("four words of text"), UpstreamFinish("stop")])
    const usage = events.find((event) => event._tag === "UsageReported")
    assert.deepStrictEqual(usage?.usage, {
      promptTokens: 7,
      completionTokens: 4,
      reasoningTokens: 0,
      cachedTokens: 0
    })
  })

  it("keeps earlier reported tokens, and ignores invalid counts", () => {
    const events = assemble([
      UpstreamText("four words of text"),
      UpstreamUsage({ promptTokens: 11, completionTokens: undefined, cachedTokens: 40 }),
      UpstreamUsage({ promptTokens: undefined, completionTokens: 5 }),
      UpstreamUsage({ promptTokens: NaN, completionTokens: -3, reasoningTokens: Infinity }),
      UpstreamFinish("stop")
    ])
    const usage = events.find((event) => event._tag === "UsageReported")
    assert.deepStrictEqual(usage?.usage, {
      promptTokens: 11,
      completionTokens: 5,
      reasoningTokens: 0,
      cachedTokens: 11
    })
  })

  it("ends before a stop sequence that is split over chunks, and drops what follows", () => {
    const events = assemble(
      [UpstreamText("one EN"), UpstreamText("D two"), UpstreamText("three"), UpstreamFinish("stop")],
      { stop: compileStopSequences(["END"]) }
    )
    assert.strictEqual(textOf(events), "one ")
    assert.deepStrictEqual(finishOf(events), { _tag: "Finish", reason: "stop_sequence", stopSequence: "END" })
  })

  it("finds a stop sequence that appears when a marker is removed", () => {
    const events = assemble(
      [UpstreamText("a E[cita"), UpstreamText("tion:1]ND b"), UpstreamFinish("stop")],
      { stripMarkers: true, stop: compileStopSequences(["END"]) }
    )
    assert.strictEqual(textOf(events), "a ")
  })

  it("releases held text when the upstream ends", () => {
    const events = assemble([UpstreamText("an E"), UpstreamText("N"), UpstreamFinish("stop")], {
      stop: compileStopSequences(["END"])
    })
    assert.strictEqual(textOf(events), "an EN")
  })

  it("reports the upstream's stop sequence, unless the reply was cut off or made calls", () => {
    assert.deepInclude(finishOf(assemble([UpstreamText("a "), UpstreamFinish("stop", "END")])), {
      reason: "stop_sequence",
      stopSequence: "END"
    })
    assert.strictEqual(finishOf(assemble([UpstreamText("a"), UpstreamFinish("length", "END")])).reason, "length")
    const call = UpstreamCall(0, "c", "f", "{}")
    assert.strictEqual(finishOf(assemble([call, UpstreamFinish("stop", "END")])).reason, "tool_calls")
  })

  it("finishes as length or content_filter if the upstream cut or withdrew it", () => {
    assert.strictEqual(finishOf(assemble([UpstreamText("a"), UpstreamFinish("length")])).reason, "length")
    assert.strictEqual(
      finishOf(assemble([UpstreamText("a"), UpstreamFinish("content_filter")])).reason,
      "content_filter"
    )
  })
})

describe("structured calls of the upstream", () => {
  it("become calls in their order, closed one after another", () => {
    const events = assemble([
      UpstreamText("Let me look."),
      UpstreamCall(0, "a", "weather", ""),
      UpstreamCall(0, undefined, undefined, "{\"city\":"),
      UpstreamCall(0, undefined, undefined, "\"Oslo\"}"),
      UpstreamCall(1, "b", "time", "{}"),
      UpstreamFinish("tool_calls")
    ])
    assert.deepStrictEqual(
      events.filter((event) => event._tag === "CallFinished"),
      [
        { _tag: "CallFinished", index: 0, id: "a", name: "weather", arguments: "{\"city\":\"Oslo\"}" },
        { _tag: "CallFinished", index: 1, id: "b", name: "time", arguments: "{}" }
      ]
    )
    assert.strictEqual(finishOf(events).reason, "tool_calls")
  })

  it("are distinguished when their chunks interleave", () => {
    const events = assemble([
      UpstreamCall(0, "a", "f", "{\"x\""),
      UpstreamCall(1, "b", "g", "{\"y\""),
      UpstreamCall(0, undefined, undefined, ":1}"),
      UpstreamCall(1, undefined, undefined, ":2}"),
      UpstreamFinish("tool_calls")
    ])
    const finished = events.flatMap((event) => event._tag === "CallFinished" ? [[event.id, event.arguments]] : [])
    assert.deepStrictEqual(finished, [["a", "{\"x\":1}"], ["b", "{\"y\":2}"]])
    let open: number | undefined
    for (const event of events) {
      if (event._tag === "CallStarted") open = event.index
      if (event._tag === "CallArguments" || event._tag === "CallFinished") assert.strictEqual(event.index, open)
    }
  })

  it("get {} for missing arguments and wait for their name", () => {
    const events = assemble([
      UpstreamCall(0, "a", undefined, ""),
      UpstreamCall(0, undefined, "now", ""),
      UpstreamFinish("tool_calls")
    ])
    assert.deepStrictEqual(events.slice(0, 3), [
      { _tag: "CallStarted", index: 0, id: "a", name: "now" },
      { _tag: "CallArguments", index: 0, delta: "{}" },
      { _tag: "CallFinished", index: 0, id: "a", name: "now", arguments: "{}" }
    ])
  })

  const finishedOf = (events: ReadonlyArray<ReplyEvent>) =>
    events.flatMap((event) => event._tag === "CallFinished" ? [[event.id, event.name, event.arguments]] : [])
  const args = (index: number, delta: string) => UpstreamCall(index, undefined, undefined, delta)

  it("get their arguments if the upstream names all calls first, however the chunks are ordered", () => {
    const named = [UpstreamCall(0, "a", "f", ""), UpstreamCall(1, "b", "g", " "), UpstreamCall(2, "c", "h", "")]
    const expected = [["a", "f", "{\"x\":1}"], ["b", "g", " {\"y\":2}"], ["c", "h", "{}"]]
    const orders = [
      [args(0, "{\"x\":1}"), args(1, "{\"y\":2}")],
      [args(1, "{\"y\":2}"), args(0, "{\"x\":1}")],
      [args(1, "{\"y\""), args(0, "{\"x\":1"), args(1, ":2}"), args(2, ""), args(0, "}")]
    ]
    for (const order of orders) {
      const events = assemble([...named, ...order, UpstreamFinish("tool_calls")])
      assert.deepStrictEqual(finishedOf(events), expected)
      assert.strictEqual(finishOf(events).reason, "tool_calls")
    }
  })

  it("stream as soon as the call before them is complete", () => {
    const machine = assembleReply(options)
    const pushed = (event: UpstreamEvent) => {
      const out: Array<ReplyEvent> = []
      machine.push(event, out)
      return out.map((made) => "index" in made ? `${made._tag} ${made.index}` : made._tag)
    }
    assert.deepStrictEqual(pushed(UpstreamCall(0, "a", "f", "")), ["CallStarted 0"])
    assert.deepStrictEqual(pushed(UpstreamCall(1, "b", "g", "")), [])
    assert.deepStrictEqual(pushed(args(0, "{\"x\":")), ["CallArguments 0"])
    assert.deepStrictEqual(pushed(args(0, "1}")), ["CallArguments 0", "CallFinished 0", "CallStarted 1"])
    assert.deepStrictEqual(pushed(args(1, "{")), ["CallArguments 1"])
  })

  it("without arguments end with the reply, in their order", () => {
    const events = assemble([
      UpstreamCall(0, "a", "f", ""),
      UpstreamCall(1, "b", "g", "{\"y\":2}"),
      UpstreamText("Wait."),
      UpstreamCall(2, "c", "h", ""),
      UpstreamFinish("tool_calls")
    ])
    assert.deepStrictEqual(finishedOf(events), [["a", "f", "{}"], ["b", "g", "{\"y\":2}"], ["c", "h", "{}"]])
    assert.strictEqual(finishOf(events).reason, "tool_calls")
    assert.deepStrictEqual(
      events.flatMap((event) =>
        event._tag === "CallFinished" ? [event.name] : event._tag === "TextDelta" ? [event.text] : []
      ),
      ["f", "g", "Wait.", "h"]
    )
  })

  it("without arguments are cut off if the reply is cut", () => {
    const named = [UpstreamCall(0, "a", "f", "{}"), UpstreamCall(1, "b", "g", "")]
    for (const events of [[UpstreamFinish("length")], [args(2, "{\"x\":1}"), UpstreamFinish("tool_calls")]]) {
      const cut = assemble([...named, ...events])
      assert.deepStrictEqual(finishedOf(cut), [["a", "f", "{}"]])
      assert.deepInclude(cut, { _tag: "CallCutOff", index: 1, id: "b", name: "g", arguments: "" })
      assert.strictEqual(finishOf(cut).reason, "length")
    }
  })

  it("finish the reply as length if arguments belong to no call", () => {
    const whole = UpstreamCall(0, "a", "f", "{}")
    const stray: ReadonlyArray<ReadonlyArray<UpstreamEvent>> = [
      [whole, args(1, "{\"y\":2}")],
      [whole, UpstreamText("So."), args(0, "{\"x\":1}")],
      [UpstreamText("So."), args(0, "{")]
    ]
    for (const events of stray) {
      assert.strictEqual(finishOf(assemble([...events, UpstreamFinish("tool_calls")])).reason, "length")
      assert.strictEqual(finishOf(assemble([...events, UpstreamFinish("stop", "END")])).reason, "length")
      assert.strictEqual(finishOf(assemble(events)).reason, "length")
      assert.strictEqual(
        finishOf(assemble([...events, UpstreamFinish("content_filter")])).reason,
        "content_filter"
      )
    }
    const blank = [whole, UpstreamText("So."), args(0, "\n"), args(1, " "), UpstreamFinish("tool_calls")]
    assert.strictEqual(finishOf(assemble(blank)).reason, "tool_calls")
  })

  it("that break off are cut off, and the reply finishes as length", () => {
    const events = assemble([UpstreamCall(0, "a", "f", "{\"x\": \"rm -"), UpstreamFinish("tool_calls")])
    assert.isTrue(events.some((event) => event._tag === "CallCutOff"))
    assert.strictEqual(finishOf(events).reason, "length")
  })

  it("end the reply after the first call if parallel calls are off", () => {
    const events = assemble([
      UpstreamCall(0, "a", "f", "{}"),
      UpstreamCall(1, "b", "g", "{}"),
      UpstreamText("more"),
      UpstreamFinish("tool_calls")
    ], { singleCall: true })
    assert.deepStrictEqual(events.map((event) => event._tag), [
      "CallStarted",
      "CallArguments",
      "CallFinished",
      "UsageReported",
      "Finish"
    ])
  })
})

describe("interleaved calls", () => {
  const shapes: { readonly [about: string]: (n: number) => ReadonlyArray<UpstreamEvent> } = {
    "many at once, a piece of each in turn": (n) => {
      const calls = Math.floor(Math.sqrt(n))
      const pieces: Array<UpstreamEvent> = []
      for (let i = 0; i < calls; i++) pieces.push(UpstreamCall(i, `id${i}`, "f", "{\"a\":\""))
      for (let round = 0; round < calls; round++) {
        for (let i = 0; i < calls; i++) pieces.push(UpstreamCall(i, undefined, undefined, "x"))
      }
      for (let i = calls - 1; i >= 0; i--) pieces.push(UpstreamCall(i, undefined, undefined, "\"}"))
      return pieces
    },
    "named first, their arguments from the last to the first": (n) => [
      ...Array.from({ length: n }, (_, i) => UpstreamCall(i, `id${i}`, "f", "")),
      ...Array.from({ length: n }, (_, i) => UpstreamCall(n - 1 - i, undefined, undefined, "{}"))
    ],
    "text in the midst of one that goes on": (n) =>
      Array.from({ length: n }, (_, i) => i % 2 === 0 ? UpstreamCall(0, "id", "f", "[") : UpstreamText("t")),
    "arguments that seem whole at each step": (n) => [
      UpstreamCall(0, "id", "f", "{}"),
      ...Array.from({ length: n }, (_, i) => i % 2 === 0 ? UpstreamCall(0, "id", undefined, " ") : UpstreamText("t"))
    ],
    "blanks in the place of arguments": (n) =>
      Array.from({ length: n }, (_, i) => i % 2 === 0 ? UpstreamCall(0, "id", "f", " ") : UpstreamText("t"))
  }
  for (const [about, make] of Object.entries(shapes)) {
    it(`take constant work per character: ${about}`, () =>
      assertLinear(
        (n, meter) => {
          const events = make(n)
          assemble([...events, UpstreamFinish("stop")], { meter })
          return events.length
        },
        2_000,
        8
      ))
  }

  it("are complete, in the order in which they started", () => {
    const events = assemble([
      UpstreamCall(0, "a", "f", "{\"x\":"),
      UpstreamCall(1, "b", "g", "{"),
      UpstreamCall(2, "c", undefined, "{}"),
      UpstreamText("be"),
      UpstreamCall(1, undefined, undefined, "}"),
      UpstreamText("tween"),
      UpstreamCall(2, undefined, "h", ""),
      UpstreamCall(0, undefined, undefined, "1}"),
      UpstreamFinish("tool_calls")
    ])
    const finished = events.flatMap((event) => event._tag === "CallFinished" ? [[event.id, event.arguments]] : [])
    assert.deepStrictEqual(finished, [["a", "{\"x\":1}"], ["b", "{}"], ["c", "{}"]])
    assert.strictEqual(textOf(events), "between")
  })
})

describe("the limits of a reply", () => {
  it("drop and count the reasoning of a model without reasoning, and find the calls at its end", () => {
    const events = assemble([UpstreamReasoning("some words"), UpstreamText("Hi"), UpstreamFinish("stop")], {
      showReasoning: false
    })
    assert.notInclude(events.map(({ _tag }) => _tag), "ReasoningDelta")
    const usage = events.find((event) => event._tag === "UsageReported")?.usage
    assert.strictEqual(usage?.reasoningTokens, 2)
    assert.strictEqual(usage?.completionTokens, 3)
    const called = assemble([UpstreamReasoning("CALL"), UpstreamFinish("stop")], {
      showReasoning: false,
      reasoningCalls: () => ({ push: () => undefined, held: 0, end: () => [{ name: "f", arguments: "{}" }] })
    })
    assert.deepStrictEqual(
      called.map(({ _tag }) => _tag),
      ["CallStarted", "CallArguments", "CallFinished", "UsageReported", "Finish"]
    )
  })

  it("finish the reply as length at the first call over the limit, and keep the earlier ones", () => {
    const addCall = () => {
      let left = 2
      return () => left-- > 0
    }
    for (const count of [2, 3]) {
      const calls = Array.from({ length: count }, (_, i) => UpstreamCall(i, `id${i}`, "f", "{}"))
      const events = assemble([...calls, UpstreamFinish("tool_calls")], { addCall: addCall() })
      assert.lengthOf(events.filter(({ _tag }) => _tag === "CallFinished"), 2)
      assert.strictEqual(finishOf(events).reason, count === 2 ? "tool_calls" : "length")
    }
  })
})
