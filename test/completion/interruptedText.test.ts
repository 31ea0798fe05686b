/** Structured calls of the upstream within text in which the sieve finds calls too. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type AssembleOptions, assembleReply } from "../../src/completion/assembleReply.ts"
import { foldReply } from "../../src/domain/Reply.ts"
import type { ReplyEvent } from "../../src/domain/ReplyEvent.ts"
import { compileStopSequences } from "../../src/domain/stream/stopSequences.ts"
import { run } from "../../src/domain/stream/transducer.ts"
import {
  UpstreamCall,
  type UpstreamEvent,
  UpstreamFinish,
  UpstreamReasoning,
  UpstreamText
} from "../../src/domain/UpstreamEvent.ts"
import { sieve } from "../../src/sieve/sieve.ts"
import { feed, readCases, replyOf, tools } from "../sieve/support.ts"
import { cutAt } from "../support/cuts.ts"
import { runs } from "../support/effort.ts"

/** Distinct from the ids of the upstream. */
const callId = (index: number): string => `own_${index}`

const assemble = (events: ReadonlyArray<UpstreamEvent>, changed: Partial<AssembleOptions> = {}): Array<ReplyEvent> =>
  run(() =>
    assembleReply({
      sieve: sieve({ tools, callId }),
      reasoningCalls: undefined,
      stripMarkers: false,
      stop: undefined,
      singleCall: false,
      showReasoning: true,
      addCall: () => true,
      callId,
      promptTokens: () => 1,
      meter: undefined,
      keepSealed: undefined,
      keepSeal: undefined,
      ...changed
    }), [...events, UpstreamFinish("tool_calls")])

interface Call {
  readonly id: string
  readonly name: string
  readonly arguments: string
  readonly isFinished: boolean
}
/** A piece of the reply: text, reasoning behind a mark, or a call. */
type Item = string | Call

const reasoningMark = "⟦reasoning⟧"

/** Folds events to a reply; fails on an order of events that styles do not support. */
const itemsOf = (events: ReadonlyArray<ReplyEvent>): ReadonlyArray<Item> => {
  const items: Array<Item> = []
  const ids = new Set<string>()
  let open: { readonly index: number; readonly id: string; readonly name: string; deltas: string } | undefined
  let calls = 0
  for (const event of events) {
    switch (event._tag) {
      case "TextDelta":
      case "ReasoningDelta": {
        assert.isUndefined(open, "text in the midst of a call")
        const text = event._tag === "TextDelta" ? event.text : `${reasoningMark}${event.text}`
        const last = items.at(-1)
        if (typeof last === "string" && event._tag === "TextDelta" && !last.startsWith(reasoningMark)) {
          items[items.length - 1] = last + text
        } else items.push(text)
        break
      }
      case "CallStarted":
        assert.isUndefined(open, "a call in the midst of another")
        assert.strictEqual(event.index, calls++)
        assert.isFalse(ids.has(event.id), "an id twice")
        ids.add(event.id)
        open = { index: event.index, id: event.id, name: event.name, deltas: "" }
        break
      case "CallArguments":
        assert.strictEqual(event.index, open?.index)
        open!.deltas += event.delta
        break
      case "CallFinished":
      case "CallCutOff": {
        const { arguments: args, id, index, name } = event
        assert.deepStrictEqual({ index, id, name, deltas: args }, open)
        items.push({ id, name, arguments: args, isFinished: event._tag === "CallFinished" })
        open = undefined
        break
      }
      case "UsageReported":
      case "Finish":
        assert.isUndefined(open, "a call without an end")
    }
  }
  // The whole reply has the same calls and text.
  const fold = foldReply()
  for (const event of events) fold.push(event)
  const { blocks } = fold.reply()
  assert.deepStrictEqual(
    blocks.filter((block) => block._tag === "Call").map(({ arguments: args, id, name }) => [id, name, args]),
    items.flatMap((item) => typeof item !== "string" && item.isFinished ? [[item.id, item.name, item.arguments]] : [])
  )
  assert.strictEqual(
    blocks.map((block) => block._tag === "Text" ? block.text : "").join(""),
    items.map((item) => typeof item === "string" && !item.startsWith(reasoningMark) ? item : "").join("")
  )
  return items
}

const native = (i: number, cuts: ReadonlyArray<number>): ReadonlyArray<UpstreamEvent> => [
  UpstreamCall(i, `native_${i}`, "native", ""),
  ...cutAt(nativeArguments(i), cuts).map((piece) => UpstreamCall(i, undefined, undefined, piece))
]
const nativeArguments = (i: number): string => `{"n":${i}}`
const nativeCall = (i: number): Call => ({
  id: `native_${i}`,
  name: "native",
  arguments: nativeArguments(i),
  isFinished: true
})
const isNative = (item: Item): boolean => typeof item !== "string" && item.name === "native"

const finishOf = (events: ReadonlyArray<ReplyEvent>): string => {
  const last = events.at(-1)
  assert(last?._tag === "Finish")
  return last.reason
}

/** A call of `wx` in some of the forms, with a unique city. */
const forms: ReadonlyArray<(city: string) => string> = [
  (city) => `<tool_call>{"name":"wx","arguments":{"city":"${city}"}}</tool_call>`,
  (city) => `{"tool_calls":[{"name":"wx","input":{"city":"${city}"}}]}`,
  (city) => `<tool_calls><invoke name="wx"><parameter name="city">${city}</parameter></invoke></tool_calls>`,
  (city) => `<tool_call><function=wx><parameter=city>${city}</parameter></function></tool_call>`,
  (city) => `[TOOL_CALLS][{"name":"wx","arguments":{"city":"${city}"}}]`
]

type Written = { readonly text: string; readonly city: string | undefined }

const written: fc.Arbitrary<ReadonlyArray<Written>> = fc.array(
  fc.tuple(
    fc.boolean(),
    fc.nat(forms.length - 1),
    fc.constantFrom("Look: ", "a < b ", "See <tool", "one\n\ntwo ", "<x")
  ),
  { minLength: 1, maxLength: 5 }
).map((made) =>
  made.map(([isCall, form, prose], i) => {
    // Each piece ends its paragraph, so that it cannot continue in the next one.
    const city = `c${"qrstu"[i]}${i}`
    return isCall ? { text: `${forms[form]!(city)}\n\n`, city } : { text: `${prose}.\n\n`, city: undefined }
  })
)

/** The text with structured calls at these places, cut into chunks, with or without reasoning between them. */
const interrupted = (
  text: string,
  places: ReadonlyArray<number>,
  cuts: ReadonlyArray<number>,
  thinks: boolean
): ReadonlyArray<UpstreamEvent> => {
  const events: Array<UpstreamEvent> = []
  let from = 0
  for (const [i, place] of places.entries()) {
    const before = text.slice(from, place)
    for (const piece of cutAt(before, cuts.map((at) => at - from))) events.push(UpstreamText(piece))
    if (thinks) events.push(UpstreamReasoning("hm"))
    events.push(...native(i, cuts))
    from = place
  }
  for (const piece of cutAt(text.slice(from), cuts.map((at) => at - from))) events.push(UpstreamText(piece))
  return events
}

/** A call that breaks off, and its missing rest. */
const cut = `<tool_call>{"name":"wx","arguments":{"city":"Os`
const rest = `lo"}}</tool_call>`

describe("a structured call within text", () => {
  it("is emitted unchanged with the text around it in order, whatever it interrupts, at every cut", () => {
    fc.assert(
      fc.property(
        written,
        fc.array(fc.nat(), { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat(300), { maxLength: 8 }),
        fc.boolean(),
        (parts, at, cuts, thinks) => {
          const text = parts.map((part) => part.text).join("")
          const places = at.map((place) => place % (text.length + 1)).toSorted((a, b) => a - b)
          const items = itemsOf(assemble(interrupted(text, places, cuts, thinks)))
          const plain = (list: ReadonlyArray<Item>) =>
            list.filter((item) => typeof item !== "string" || !item.startsWith(reasoningMark))
          assert.deepStrictEqual(items.filter(isNative), places.map((_, i) => nativeCall(i)))
          // The cuts change nothing.
          const merged = (list: ReadonlyArray<Item>) =>
            plain(list).reduce<Array<Item>>((all, item) => {
              const last = all.at(-1)
              if (typeof item === "string" && typeof last === "string") all[all.length - 1] = last + item
              else all.push(item)
              return all
            }, [])
          assert.deepStrictEqual(merged(items), merged(itemsOf(assemble(interrupted(text, places, [], false)))))

          const shown = plain(items).map((item) => typeof item === "string" ? item : "").join("")
          const made = items.filter((item) => typeof item !== "string" && !isNative(item)) as ReadonlyArray<Call>
          let from = 0
          let seen = 0
          for (const part of parts) {
            const to = from + part.text.length
            const end = to - 2
            const isCut = places.some((place) => place > from && place < end)
            if (part.city === undefined) {
              // The prose is complete and in order.
              seen = shown.indexOf(part.text, seen) + part.text.length
              assert.isAtLeast(seen, part.text.length, part.text)
            } else if (isCut) {
              // An interrupted call is complete only if it lacked nothing but closers.
              for (const { arguments: args, isFinished } of made) {
                if (isFinished && args.includes(part.city.slice(0, 2))) {
                  assert.deepStrictEqual(JSON.parse(args), { city: part.city })
                }
              }
            } else {
              // Any other call is found, and its text is removed.
              assert.notInclude(shown, part.city)
              assert.lengthOf(
                made.filter(({ arguments: args, isFinished }) => isFinished && args === `{"city":"${part.city}"}`),
                1
              )
            }
            from = to
          }
        }
      ),
      { numRuns: runs(1_500) }
    )
  })

  it("leaves the text before it as at the end of a reply, in every form and at every cut", () => {
    const cases = [...readCases("families"), ...readCases("details"), ...readCases("noCalls")]
    fc.assert(
      fc.property(fc.constantFrom(...cases), fc.nat(), ({ text }, at) => {
        // A reply of a single fenced block is treated differently.
        const before = `So:\n${text.slice(0, at % (text.length + 1))}`
        const after = text.slice(at % (text.length + 1))
        const items = itemsOf(assemble([UpstreamText(before), ...native(0, []), UpstreamText(after)]))
        const place = items.findIndex(isNative)
        assert.deepStrictEqual(items[place], nativeCall(0))
        assert.deepStrictEqual(
          items.slice(0, place).map((item) => typeof item === "string" ? item : { ...item, id: undefined }),
          replyOf(feed([before])).map((item) => typeof item === "string" ? item : { ...item, id: undefined })
        )
        assert.lengthOf(items.filter(isNative), 1)
      }),
      { numRuns: runs(2_000) }
    )
  })

  it("cuts off an open call in the text, whose rest is text, and the reply finishes as length", () => {
    for (const after of [[], [UpstreamText(rest)]]) {
      const events = assemble([UpstreamText(cut), ...native(0, [3]), ...after])
      assert.deepStrictEqual(itemsOf(events), [
        { id: "own_0", name: "wx", arguments: `{"city":"Os`, isFinished: false },
        nativeCall(0),
        ...after.map(({ text }) => text)
      ])
      assert.strictEqual(finishOf(events), "length")
    }
  })

  it("finishes a call in the text that lacks only its closers", () => {
    const call = `<tool_call>{"name":"wx","arguments":{"city":"Oslo"}`
    const events = assemble([UpstreamText(call), ...native(0, [])])
    assert.deepStrictEqual(itemsOf(events), [
      { id: "own_0", name: "wx", arguments: `{"city":"Oslo"}`, isFinished: true },
      nativeCall(0)
    ])
    assert.strictEqual(finishOf(events), "tool_calls")
  })

  it("follows text that might have been the start of a call", () => {
    assert.deepStrictEqual(itemsOf(assemble([UpstreamText("See <tool"), ...native(0, []), UpstreamText("s>")])), [
      "See <tool",
      nativeCall(0),
      "s>"
    ])
  })

  it("is the single call of a reply unless the text before it made one", () => {
    const one = { singleCall: true }
    assert.deepStrictEqual(itemsOf(assemble([UpstreamText("<tool_c"), ...native(0, []), UpstreamText("x")], one)), [
      "<tool_c",
      nativeCall(0)
    ])
    const late = assemble([UpstreamText(cut), ...native(0, [])], one)
    assert.lengthOf(itemsOf(late), 1)
    assert.strictEqual(finishOf(late), "length")
  })

  it("is dropped if the text that it releases contains a stop sequence", () => {
    const events = assemble([UpstreamText("a <tool"), ...native(0, [])], { stop: compileStopSequences(["<to"]) })
    assert.deepStrictEqual(itemsOf(events), ["a "])
    assert.strictEqual(finishOf(events), "stop_sequence")
  })

  const fenced = "```json\n{\"name\":\"wx\",\"arguments\":{\"city\":\"Oslo\"}}\n```\n"

  it("keeps fenced blocks before and after it as text", () => {
    assert.deepStrictEqual(itemsOf(assemble([UpstreamText(fenced), ...native(0, [])])), [fenced, nativeCall(0)])
    assert.deepStrictEqual(itemsOf(assemble([...native(0, []), UpstreamText(fenced)])), [nativeCall(0), fenced])
    for (let at = 1; at < fenced.length; at++) {
      const [before, after] = [fenced.slice(0, at), fenced.slice(at)]
      assert.deepStrictEqual(
        itemsOf(assemble([UpstreamText(before), ...native(0, []), UpstreamText(after)])),
        [before, nativeCall(0), after],
        before
      )
    }
  })

  it("does not end the fence around it", () => {
    const [before, after] = ["So:\n```\n", `<tool_call>{"name":"wx","arguments":{}}</tool_call>\n\`\`\`\n`]
    const events = assemble([UpstreamText(before), ...native(0, []), UpstreamText(after)])
    assert.deepStrictEqual(itemsOf(events), [before, nativeCall(0), after])
  })

  it("gets a new id if another call has the upstream's id", () => {
    const events = assemble([UpstreamCall(0, "same", "wx", "{}"), UpstreamCall(1, "same", "t", "{}")])
    assert.deepStrictEqual(
      itemsOf(events).map((item) => typeof item === "string" ? item : item.id),
      ["same", "own_1"]
    )
  })
})

describe("reasoning within a call in the text", () => {
  it("follows the call", () => {
    const events = assemble([
      UpstreamText(cut),
      UpstreamReasoning("h"),
      UpstreamReasoning("m"),
      UpstreamText(`${rest} Done.`)
    ])
    assert.deepStrictEqual(itemsOf(events), [
      { id: "own_0", name: "wx", arguments: `{"city":"Oslo"}`, isFinished: true },
      `${reasoningMark}hm`,
      " Done."
    ])
    assert.strictEqual(finishOf(events), "tool_calls")
  })

  it("follows a call that breaks off", () => {
    assert.deepStrictEqual(itemsOf(assemble([UpstreamText(cut), UpstreamReasoning("hm")])).slice(1), [
      `${reasoningMark}hm`
    ])
  })
})
