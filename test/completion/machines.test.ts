/** Each machine of a reply, over generated interleavings and cuts. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { filterText } from "../../src/completion/filterText.ts"
import { finishMachine } from "../../src/completion/finishMachine.ts"
import { CallBegun, CallGrown, CallOver, Ending, type ReplyPart } from "../../src/completion/ReplyPart.ts"
import { serializeToolCalls } from "../../src/completion/serializeToolCalls.ts"
import { compileStopSequences } from "../../src/domain/stream/stopSequences.ts"
import { run } from "../../src/domain/stream/transducer.ts"
import {
  UpstreamCall,
  type UpstreamEvent,
  UpstreamFinish,
  UpstreamReasoning,
  UpstreamText
} from "../../src/domain/UpstreamEvent.ts"

const pieces = (text: string, sizes: ReadonlyArray<number>): ReadonlyArray<string> => {
  const cut: Array<string> = []
  for (let at = 0, i = 0; at < text.length; i++) {
    const size = sizes.length === 0 ? text.length : sizes[i % sizes.length]!
    cut.push(text.slice(at, at + size))
    at += size
  }
  return cut
}

const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 4 })

/** A call whose arguments are complete, cut off, or missing. */
const call = fc.record({
  args: fc.oneof(fc.constantFrom("", "{}", "{\"a\":", "  "), fc.json().map((json) => JSON.stringify({ a: json }))),
  sizes,
  /** Whether the name comes with the first arguments, before all or after all. */
  name: fc.constantFrom("with", "before", "after")
})

/** Merges lists in a generated order that preserves the order of each list. */
const interleave = <A>(lists: ReadonlyArray<ReadonlyArray<A>>, picks: ReadonlyArray<number>): ReadonlyArray<A> => {
  const left = lists.map((list) => [...list])
  const merged: Array<A> = []
  for (let i = 0; left.some((list) => list.length > 0); i++) {
    const open = left.filter((list) => list.length > 0)
    merged.push(open[(picks[i % picks.length] ?? 0) % open.length]!.shift()!)
  }
  return merged
}

const isWhole = (args: string): boolean => args.trim() === "" || args === "{}" || args.endsWith("}")

describe("serializeToolCalls", () => {
  it("emits calls one after another, complete, in the order of their names, and text unchanged", () => {
    fc.assert(fc.property(
      fc.array(call, { minLength: 1, maxLength: 4 }),
      fc.string({ maxLength: 12 }),
      sizes,
      fc.array(fc.nat(10), { minLength: 1, maxLength: 8 }),
      (calls, text, textSizes, picks) => {
        const events = interleave<UpstreamEvent>([
          ...calls.map(({ args, name, sizes }, index) => {
            const [first = "", ...rest] = pieces(args, sizes)
            const delta = (piece: string) => UpstreamCall(index, undefined, undefined, piece)
            const named = (piece: string) => UpstreamCall(index, `id${index}`, `name${index}`, piece)
            return name === "after"
              ? [...[first, ...rest].map(delta), named("")]
              : name === "before"
              ? [named(""), ...[first, ...rest].map(delta)]
              : [named(first), ...rest.map(delta)]
          }),
          pieces(text, textSizes).map((piece) => UpstreamText(piece))
        ], picks)
        const named = events.flatMap((event) =>
          event._tag === "UpstreamCall" && event.name !== undefined ? [event.name] : []
        )
        const parts = run(() => serializeToolCalls(), [...events, UpstreamFinish("stop")])
        const begun: Array<string> = []
        let open: { name: string; args: string } | undefined
        let said = ""
        for (const part of parts) {
          if (part._tag === "CallBegun") {
            assert.isUndefined(open)
            open = { name: part.name, args: "" }
            begun.push(part.name)
          } else if (part._tag === "CallGrown") {
            open!.args += part.delta
          } else if (part._tag === "CallOver") {
            const { args } = calls[Number(open!.name.slice(4))]!
            assert.strictEqual(part.arguments, open!.args)
            assert.strictEqual(part.arguments.trim(), args.trim() === "" ? "{}" : args)
            assert.strictEqual(part.whole, isWhole(args))
            open = undefined
          } else if (part._tag === "UpstreamText") {
            assert.isUndefined(open)
            said += part.text
          }
        }
        assert.deepStrictEqual(begun, named)
        assert.strictEqual(said, text)
        assert.deepStrictEqual(parts.at(-1), Ending("stop"))
      }
    ))
  })
})

describe("filterText", () => {
  const stop = compileStopSequences(["STOP", "##"])
  const filter = () => filterText({ sieve: undefined, stripMarkers: true, stop })
  const joined = (parts: ReadonlyArray<ReplyPart>): ReadonlyArray<ReplyPart> => {
    const out: Array<ReplyPart> = []
    for (const part of parts) {
      const last = out.at(-1)
      if (part._tag === "UpstreamText" && last?._tag === "UpstreamText") {
        out[out.length - 1] = UpstreamText(last.text + part.text)
      } else out.push(part)
    }
    return out
  }
  const words = fc.array(fc.constantFrom("a", "STO", "STOP", "#", "[citation:1]", "[cita", " "), { maxLength: 8 })
    .map((list) => list.join(""))

  it("gives the same result for all cuts, and never reorders held text", () => {
    fc.assert(fc.property(words, words, sizes, (before, after, cuts) => {
      const among = [UpstreamReasoning("hm"), CallBegun("i", "n"), CallGrown("{}"), CallOver(true, "{}")]
      const whole = run(filter, [UpstreamText(before), ...among, UpstreamText(after), Ending("stop")])
      const cut = run(filter, [
        ...pieces(before, cuts).map((piece) => UpstreamText(piece)),
        ...among,
        ...pieces(after, cuts).map((piece) => UpstreamText(piece)),
        Ending("stop")
      ])
      assert.deepStrictEqual(joined(cut), joined(whole))
      assert.strictEqual(whole.filter((part) => part._tag === "Ending").length, 1)
      assert.strictEqual(whole.at(-1)?._tag, "Ending")
      const text = joined(whole).map((part) => part._tag === "UpstreamText" ? part.text : "|").join("")
      assert.notInclude(text, "STOP")
      assert.notInclude(text, "[citation:1]")
    }))
  })
})

describe("finishMachine", () => {
  const part = fc.constantFrom<ReadonlyArray<ReplyPart>>(
    [UpstreamText("a ")],
    [UpstreamReasoning("r ")],
    [CallBegun(undefined, "n"), CallGrown("{}"), CallOver(true, "{}")],
    [CallBegun("own", "n"), CallGrown("{"), CallOver(false, "{")],
    [{ _tag: "UpstreamUsage", usage: { completionTokens: 7 } }],
    [Ending("stop")],
    [Ending("length")],
    [Ending("content_filter")]
  )

  it("numbers the calls, emits usage and Finish once at the end, and enforces the limit of calls", () => {
    fc.assert(fc.property(fc.array(part, { maxLength: 8 }), fc.nat(3), fc.boolean(), (parts, most, singleCall) => {
      let left = most
      const events = run(() =>
        finishMachine({
          reasoningCalls: undefined,
          singleCall,
          showReasoning: true,
          addCall: () => left-- > 0,
          callId: (index) => `call${index}`,
          promptTokens: () => 3,
          keepSealed: undefined,
          keepSeal: undefined
        }), [...parts.flat(), Ending("stop")])
      const ends = events.flatMap((event, i) => event._tag === "Finish" || event._tag === "UsageReported" ? [i] : [])
      assert.deepStrictEqual(ends, [events.length - 2, events.length - 1])
      const started = events.filter((event) => event._tag === "CallStarted")
      assert.deepStrictEqual(started.map(({ index }) => index), started.map((_, i) => i))
      assert.isAtMost(started.length, singleCall ? Math.min(1, most) : most)
      const finish = events.at(-1)
      assert(finish?._tag === "Finish")
      if (events.some((event) => event._tag === "CallCutOff") && finish.reason !== "content_filter") {
        assert.strictEqual(finish.reason, "length")
      }
    }))
  })
})
