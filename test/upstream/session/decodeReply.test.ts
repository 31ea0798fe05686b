import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { mostFragments } from "../../../src/contracts/session/patchDocument.ts"
import { ReplyDecoder } from "../../../src/contracts/session/readReply.ts"
import type { ReplyTrouble, RoundEnd } from "../../../src/contracts/session/roundEnd.ts"
import { makeSseDecoder, type SseEvent } from "../../../src/domain/stream/sse.ts"
import type { UpstreamEvent } from "../../../src/domain/UpstreamEvent.ts"
import { runs } from "../../support/effort.ts"
import { generatedReply } from "./generateReply.ts"
import type { Patch } from "./wholeDocument.ts"

const encoder = new TextEncoder()

interface Folded {
  readonly reasoning: string
  readonly text: string
  readonly completionTokens: number | undefined
}

const fold = (events: ReadonlyArray<UpstreamEvent>): Folded => {
  let reasoning = ""
  let text = ""
  let completionTokens: number | undefined
  for (const event of events) {
    if (event._tag === "UpstreamReasoning") reasoning += event.text
    if (event._tag === "UpstreamText") text += event.text
    if (event._tag === "UpstreamUsage") completionTokens = event.usage.completionTokens ?? completionTokens
  }
  return { reasoning, text, completionTokens }
}

/** Decodes one round's bytes. */
const decodeRound = (decoder: ReplyDecoder, chunks: Iterable<Uint8Array>, out: Array<UpstreamEvent>): RoundEnd => {
  const sse = makeSseDecoder()
  const events: Array<SseEvent> = []
  for (const chunk of chunks) sse.push(chunk, events)
  for (const event of events.splice(0)) decoder.push(event, out)
  sse.end(events)
  for (const event of events) decoder.pushUnterminated(event, out)
  return decoder.endRound()
}

/** Decodes rounds given as text; each but the first is a continued stream. `missed`: before the second was one more. */
const decodeRounds = (rounds: ReadonlyArray<string>, missed: boolean) => {
  const decoder = new ReplyDecoder()
  const out: Array<UpstreamEvent> = []
  const ends = rounds.map((text, i) => {
    if (i > 0) decoder.startRound(missed && i === 1)
    return decodeRound(decoder, [encoder.encode(text)], out)
  })
  return { decoder, out, end: ends.at(-1), ...fold(out) }
}

const decodeText = (...rounds: ReadonlyArray<string>) => decodeRounds(rounds, false)

const patches = (...list: ReadonlyArray<unknown>) => list.map((patch) => `data: ${JSON.stringify(patch)}\n\n`).join("")

const opening = (response: object) => ({ v: { response: { message_id: 2, status: "WIP", ...response } } })
const fragment = (type: string, content: string) => ({ id: 1, type, content })
const finished = { p: "response/status", o: "SET", v: "FINISHED" }
const incomplete = { p: "response/status", o: "SET", v: "INCOMPLETE" }
const stop: RoundEnd = { _tag: "Finished", reason: "stop" }
const failed = (kind: ReplyTrouble["kind"], reason?: string, message?: string): RoundEnd => ({
  _tag: "Failed",
  trouble: { kind, reason, message }
})

const example = `event: ready
data: {"request_message_id":1,"response_message_id":2}

data: {"v":{"response":{"message_id":2,"parent_id":1,"role":"ASSISTANT","status":"WIP","thinking_enabled":true,"accumulated_token_usage":0,"fragments":[{"id":1,"type":"THINK","content":"Two","elapsed_secs":null}]}}}

data: {"p":"response/fragments/-1/content","o":"APPEND","v":" and two"}

data: {"v":" make"}

data: {"v":" four."}

data: {"p":"response/fragments/-1/elapsed_secs","o":"SET","v":0.4}

data: {"p":"response/fragments","o":"APPEND","v":[{"id":2,"type":"RESPONSE","content":"4","references":[]}]}

data: {"p":"response/fragments/-1/content","v":"."}

data: {"p":"response","o":"BATCH","v":[{"p":"accumulated_token_usage","v":41},{"p":"quasi_status","v":"FINISHED"}]}

data: {"p":"response/status","o":"SET","v":"FINISHED"}

event: close
data: {"click_behavior":"none"}

`

/** What has left of a reply that goes on: no first half of a character. */
const wholeOf = ({ reasoning, text, ...rest }: Folded): Folded => ({
  reasoning: reasoning.replace(/[\ud800-\udbff]$/, ""),
  text: text.replace(/[\ud800-\udbff]$/, ""),
  ...rest
})

describe("ReplyDecoder", () => {
  it("decodes the protocol's example the same for every line end and every cut", () => {
    for (const lineEnd of ["\n", "\r\n", "\r"]) {
      const bytes = encoder.encode(example.replaceAll("\n", lineEnd))
      for (let cut = 0; cut <= bytes.length; cut++) {
        const decoder = new ReplyDecoder()
        const out: Array<UpstreamEvent> = []
        const end = decodeRound(decoder, [bytes.subarray(0, cut), bytes.subarray(cut)], out)
        assert.deepStrictEqual(fold(out), { reasoning: "Two and two make four.", text: "4.", completionTokens: 41 })
        assert.deepStrictEqual(end, stop)
        assert.strictEqual(decoder.messageId, 2)
      }
    }
  })

  it("agrees with the whole document, over all rounds, shapes, sticky parts, line ends and cuts", () => {
    fc.assert(
      fc.property(
        generatedReply,
        fc.constantFrom("\n", "\r\n", "\r"),
        fc.array(fc.nat(400), { maxLength: 8 }),
        ({ ends, rounds }, lineEnd, cuts) => {
          const decoder = new ReplyDecoder()
          const out: Array<UpstreamEvent> = []
          rounds.forEach((round: ReadonlyArray<Patch>, i) => {
            if (i > 0) decoder.startRound()
            const bytes = encoder.encode((": hi\n" + patches(...round)).replaceAll("\n", lineEnd))
            const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length]
            const end = decodeRound(decoder, places.slice(1).map((to, j) => bytes.subarray(places[j], to)), out)
            const { status, ...expected } = ends[i]!
            const isLast = i === rounds.length - 1
            if (isLast) decoder.end(out)
            assert.deepStrictEqual(fold(out), isLast ? expected : wholeOf(expected))
            const empty = expected.reasoning + expected.text === ""
            if (status === "WIP") assert.strictEqual(end._tag, "CutOff")
            else if (status === "FINISHED") assert.deepStrictEqual(end, empty ? failed("empty") : stop)
            else assert.strictEqual(end._tag, "Incomplete")
          })
        }
      ),
      { numRuns: runs(1500) }
    )
  })

  it("lets out whole characters, however the upstream cuts them, over rounds too", () => {
    const said = "a🌍b👩‍🚀🌍"
    for (const channel of ["RESPONSE", "THINK"]) {
      for (let cut = 1; cut < said.length; cut++) {
        for (const restart of ["full", "empty", "none", undefined]) {
          const first = opening({ fragments: [fragment("TIP", ""), fragment(channel, said.slice(0, cut))] })
          const more = { p: "response/fragments/-1/content", o: "APPEND", v: said.slice(cut) }
          const between = { p: "response/accumulated_token_usage", o: "SET", v: 1 }
          const anew = opening({ fragments: restart === "full" ? [fragment(channel, said.slice(0, cut))] : [] })
          const fresh = { p: "response/fragments", o: "APPEND", v: [fragment(channel, said.slice(cut))] }
          const rounds = restart === undefined
            ? [patches(first, between, more, finished)]
            : [
              patches(first, incomplete),
              patches(...(restart === "none" ? [more] : [anew, restart === "empty" ? fresh : more]), finished)
            ]
          const { end, out, reasoning, text } = decodeText(...rounds)
          assert.strictEqual(reasoning + text, said)
          assert.deepStrictEqual(end, stop)
          for (const event of out) {
            if (event._tag === "UpstreamText" || event._tag === "UpstreamReasoning") {
              assert.isTrue(event.text.isWellFormed(), `${cut} ${restart}`)
            }
          }
        }
      }
    }
  })

  it("takes no harm from events without data, wherever they come and however they are cut", () => {
    const blank = fc.constantFrom("data\n\n", "data: \n\n", "data:  \n\n", "event: ready\ndata:\n\n", "data\ndata\n\n")
    const events = example.split(/(?<=\n\n)/)
    const cuts = fc.array(fc.nat(1200), { maxLength: 6 })
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(events.length), blank), { maxLength: 4 }), cuts, (blanks, at) => {
        const all = events.map((event, i) => blanks.map(([place, text]) => place === i ? text : "").join("") + event)
        const bytes = encoder.encode(all.join(""))
        const places = [0, ...at.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length]
        const out: Array<UpstreamEvent> = []
        const chunks = places.slice(1).map((to, i) => bytes.subarray(places[i], to))
        assert.deepStrictEqual(decodeRound(new ReplyDecoder(), chunks, out), stop)
        assert.deepStrictEqual(fold(out), { reasoning: "Two and two make four.", text: "4.", completionTokens: 41 })
      }),
      { numRuns: runs(300) }
    )
  })

  it("keeps a complete reply complete when unreadable data follows", () => {
    const junk = [
      "data:\n\n",
      "data: oops\n\n",
      "data: {\"v\":\n\n",
      "event: ready\ndata: oops\n\n",
      "data: [DONE] \n\n"
    ]
    for (const after of [...junk, junk.join(""), "data: [DONE] "]) {
      const { end, text } = decodeText(patches(opening({ content: "a" }), finished) + after)
      assert.deepStrictEqual({ end, text }, { end: stop, text: "a" }, after)
    }
  })

  it("takes the sentinel for the end with blanks around it too", () => {
    for (const last of ["data: [DONE] \n\n", "data:  [DONE]\n\n", "data: [DONE]\t\n\n", "data: [DONE] "]) {
      const { decoder, end } = decodeText(last)
      assert.isTrue(decoder.closed)
      assert.deepInclude(end, { _tag: "CutOff", trouble: { kind: "empty", reason: undefined, message: undefined } })
    }
  })

  it("yields each growth immediately, and one piece for each event", () => {
    const { out } = decodeText(patches(
      opening({ fragments: [] }),
      { p: "response/fragments", o: "APPEND", v: [fragment("RESPONSE", "")] },
      { p: "response/fragments/0/content", v: "a" },
      { v: "b\"" },
      { p: "response/fragments/0/content", o: "APPEND", v: "c" },
      { v: "d" }
    ))
    assert.deepStrictEqual(out.map((event) => event._tag === "UpstreamText" ? event.text : ""), ["a", "b\"", "c", "d"])
  })

  it("takes neither reasoning nor text from fragments of other types, from titles and from unknown events", () => {
    const { end, reasoning, text } = decodeText(
      patches(opening({ fragments: [fragment("TIP", "tip")] }), {
        p: "response/fragments",
        o: "APPEND",
        v: [{ id: 2, type: "TOOL_SEARCH", queries: [{ query: "q" }], results: [{ url: "u", cite_index: 1 }] }]
      }) +
        "event: title\ndata: {\"content\":\"A title\"}\n\nevent: update_session\ndata: {\"updated_at\":1}\n\n" +
        "event: finish\ndata: {}\n\nevent: whatever\ndata: not json\n\n" +
        patches(
          { p: "response/fragments/0/content", o: "APPEND", v: " more" },
          { v: " tip" },
          { p: "response/fragments", v: [fragment("RESPONSE", "yes")] },
          finished
        )
    )
    assert.deepStrictEqual({ reasoning, text }, { reasoning: "", text: "yes" })
    assert.deepStrictEqual(end, stop)
  })

  it("takes nothing after close or [DONE]", () => {
    for (const last of ["event: close\ndata: {}\n\n", "data: [DONE]\n\n"]) {
      const { decoder, text } = decodeText(
        patches(opening({ content: "a" }), finished) + last + patches({ p: "response/content", v: "b" })
      )
      assert.strictEqual(text, "a")
      assert.isTrue(decoder.closed)
    }
  })

  it("passes message ids on as they came", () => {
    assert.strictEqual(
      decodeText("event: ready\ndata: {\"response_message_id\":\"m-1\"}\n\n").decoder.messageId,
      "m-1"
    )
    assert.strictEqual(decodeText(patches({ v: { response: { message_id: 7 } } })).decoder.messageId, 7)
  })

  describe("usage", () => {
    const usageOf = (...list: ReadonlyArray<unknown>) =>
      decodeText(patches(opening({ content: "x", accumulated_token_usage: 0 }), ...list)).out
        .findLast((event) => event._tag === "UpstreamUsage")?.usage

    it("is what was accumulated, unless nothing was", () => {
      assert.isUndefined(usageOf(finished))
      assert.deepStrictEqual(usageOf({ p: "response/accumulated_token_usage", v: 7 }, { v: 9 }), {
        completionTokens: 9
      })
    })

    it("is token_usage where both are there, whichever comes last", () => {
      const total = { p: "response/accumulated_token_usage", o: "SET", v: 7 }
      const exact = {
        p: "response/token_usage",
        o: "SET",
        v: { prompt_tokens: 1, completion_tokens: 5, reasoning_tokens: 2 }
      }
      const expected = { promptTokens: 1, completionTokens: 5, reasoningTokens: 2 }
      assert.deepStrictEqual(usageOf(total, exact), expected)
      assert.deepStrictEqual(usageOf(exact, total), expected)
      assert.deepStrictEqual(usageOf(total, { p: "response/token_usage", v: 5 }), { completionTokens: 5 })
      assert.deepStrictEqual(usageOf(total, { p: "response/token_usage", v: { prompt_tokens: 3 } }), {
        promptTokens: 3,
        completionTokens: 7
      })
    })

    it("ignores token counts that are not numbers of tokens", () => {
      assert.isUndefined(usageOf({ p: "response/token_usage", v: { completion_tokens: "5", prompt_tokens: -1 } }))
    })
  })

  describe("replaced text", () => {
    const before = [opening({ fragments: [fragment("RESPONSE", "Hello")] })]
    const set = (v: string) => ({ p: "response/fragments/0/content", o: "SET", v })

    it("grows where it begins with what was sent", () => {
      const { end, text } = decodeText(patches(...before, set("Hello you"), finished))
      assert.strictEqual(text, "Hello you")
      assert.deepStrictEqual(end, stop)
    })

    it("is a failure where it does not", () => {
      for (const other of ["Help", "Hell", "", "x"]) {
        const { end, text } = decodeText(patches(...before, set(other), finished))
        assert.strictEqual(text, "Hello")
        assert.deepStrictEqual(end, failed("disagrees"))
      }
    })

    it("fails as soon as the rewritten text grows", () => {
      const { decoder } = decodeText(patches(...before, set("Help"), { o: "APPEND", v: "!" }))
      assert.isTrue(decoder.closed)
    })

    it("is forgiven where it comes back", () => {
      const { end, text } = decodeText(patches(...before, set("Help"), set("Hello you"), finished))
      assert.strictEqual(text, "Hello you")
      assert.deepStrictEqual(end, stop)
    })

    it("is a failure where an earlier fragment grows under a later one", () => {
      const { end } = decodeText(patches(
        opening({ fragments: [fragment("RESPONSE", "a"), fragment("RESPONSE", "b")] }),
        { p: "response/fragments/0/content", o: "APPEND", v: "x" },
        finished
      ))
      assert.deepStrictEqual(end, failed("disagrees"))
    })
  })

  describe("the content filter", () => {
    const canned = { p: "response/fragments", o: "SET", v: [fragment("TEMPLATE_RESPONSE", "I cannot say.")] }
    const filter = { p: "response/status", o: "SET", v: "CONTENT_FILTER" }

    it("withdraws a reply of which nothing has left", () => {
      const { end, text } = decodeText(patches(opening({ fragments: [] }), canned, filter))
      assert.strictEqual(text, "")
      assert.deepStrictEqual(end, failed("withdrawn"))
    })

    it("ends a reply of which something has left, and the canned words are no text", () => {
      for (const order of [[canned, filter], [filter, canned]]) {
        const { end, text } = decodeText(patches(opening({ fragments: [fragment("RESPONSE", "He")] }), ...order))
        assert.strictEqual(text, "He")
        assert.deepStrictEqual(end, { _tag: "Finished", reason: "content_filter" })
      }
    })
  })

  it("shows no text after a content filter's status, in the same patch or later", () => {
    const filter = { p: "status", o: "SET", v: "CONTENT_FILTER" }
    const more = { p: "fragments/-1/content", o: "APPEND", v: "llo" }
    for (
      const list of [
        [{ p: "response", o: "BATCH", v: [filter, more] }],
        [{ p: "response", o: "BATCH", v: [filter] }, { p: "response", o: "BATCH", v: [more] }],
        [
          { p: "response", o: "BATCH", v: [filter] },
          { p: "response/status", o: "SET", v: "WIP" },
          opening({
            fragments: [fragment("RESPONSE", "Hello")]
          })
        ]
      ]
    ) {
      const { decoder, end, text } = decodeText(patches(opening({ fragments: [fragment("RESPONSE", "He")] }), ...list))
      assert.strictEqual(text, "He")
      assert.isTrue(decoder.withdrawn)
      assert.deepStrictEqual(end, { _tag: "Finished", reason: "content_filter" })
    }
    const snapshot = opening({ status: "CONTENT_FILTER", fragments: [fragment("RESPONSE", "Hello")] })
    assert.deepStrictEqual(decodeText(patches(snapshot)).end, failed("withdrawn"))
  })

  it("fails on an invalid message id, and ignores invalid token counts", () => {
    for (const id of ["x".repeat(257), 1.5, 1e300, {}, true]) {
      assert.deepInclude(decodeText(patches({ v: { response: { message_id: id, status: "WIP" } } })).end, {
        _tag: "Failed"
      })
    }
    const ready = (id: unknown) => `event: ready\ndata: ${JSON.stringify({ response_message_id: id })}\n\n`
    assert.deepInclude(decodeText(ready("x".repeat(257))).end, { _tag: "Failed" })
    assert.strictEqual(decodeText(ready("x".repeat(256))).decoder.messageId, "x".repeat(256))
    assert.strictEqual(decodeText(patches(opening({ message_id: "x".repeat(256) }))).decoder.messageId, "x".repeat(256))
    for (const [count, given] of [[1e9, 1e9], [1e9 + 1, undefined], [1.7e308, undefined], [1.5, undefined]]) {
      assert.strictEqual(decodeText(patches(opening({ accumulated_token_usage: count }))).completionTokens, given)
    }
  })

  it("says that a reply that ends with nothing but [DONE] is empty", () => {
    assert.deepInclude(decodeText("data: [DONE]\n\n").end, {
      _tag: "CutOff",
      trouble: { kind: "empty", reason: undefined, message: undefined }
    })
  })

  describe("more fragments than are kept", () => {
    const few = 5
    const all = (type: string) => Array.from({ length: mostFragments + few }, () => fragment(type, "x"))
    const list = (o: string, v: unknown, p = "response/fragments") => ({ p, o, v })
    /** The same fragments in all the ways in which they can come. */
    const ways = (type: string): ReadonlyArray<readonly [about: string, ReadonlyArray<unknown>]> => [
      ["snapshot", [opening({ fragments: all(type) })]],
      ["one list", [opening({ fragments: [] }), list("APPEND", all(type))]],
      ["set", [opening({ fragments: [] }), list("SET", all(type))]],
      ["one by one", [opening({ fragments: [] }), ...all(type).map((one) => list("APPEND", [one]))]],
      ["not in a list", [opening({ fragments: [] }), ...all(type).map((one) => list("APPEND", one))]],
      [
        "at their indexes",
        [opening({ fragments: [] }), ...all(type).map((one, i) => list("SET", one, `response/fragments/${i}`))]
      ],
      ["a batch", [
        opening({ fragments: [] }),
        { p: "response", o: "BATCH", v: all(type).map((one) => list("APPEND", [one], "fragments")) }
      ]]
    ]

    it("end the reply as by length where they bear text", () => {
      for (const type of ["RESPONSE", "THINK"]) {
        for (const [about, before] of ways(type)) {
          const more = { p: "response/fragments/-1/content", o: "APPEND", v: "lost" }
          const { decoder, end, reasoning, text } = decodeText(patches(...before, more, finished))
          assert.strictEqual(reasoning + text, "x".repeat(mostFragments), about)
          assert.deepStrictEqual(end, { _tag: "Finished", reason: "length" }, about)
          assert.isTrue(decoder.closed)
          assert.isTrue(decoder.cut)
        }
      }
    })

    it("yield no text for fragments without text, or for their growth", () => {
      const said = { p: "response/fragments/0", o: "SET", v: fragment("RESPONSE", "a") }
      const last = { p: `response/fragments/${mostFragments - 1}`, o: "SET", v: fragment("RESPONSE", "b") }
      const grow = (v: string) => ({ p: "response/fragments/-1/content", o: "APPEND", v })
      for (const [about, before] of ways("TIP")) {
        const begun = patches(...before, said, last, grow("no"), { v: "no" }, {
          p: "response/fragments/-1/type",
          v: "x"
        })
        const whole = decodeText(begun + patches(finished))
        assert.deepInclude(whole, { text: "ab", end: stop }, about)
        assert.isFalse(whole.decoder.cut)
        const cut = decodeText(begun + patches(list("APPEND", [fragment("RESPONSE", "")]), grow("no"), finished))
        assert.deepInclude(cut, { text: "ab", end: { _tag: "Finished", reason: "length" } }, about)
      }
    })

    it("are forgotten where the list is replaced", () => {
      const fewer = list("SET", [fragment("TIP", ""), fragment("RESPONSE", "a")])
      const grow = { p: "response/fragments/-1/content", o: "APPEND", v: "b" }
      for (const [about, before] of ways("TIP")) {
        assert.deepInclude(decodeText(patches(...before, fewer, grow, finished)), { text: "ab", end: stop }, about)
      }
    })

    it("do not cut a withdrawn reply, and do not finish an empty one", () => {
      const snapshot = opening({ status: "CONTENT_FILTER", fragments: all("RESPONSE") })
      assert.deepStrictEqual(decodeText(patches(snapshot)).end, failed("withdrawn"))
      const late = list("APPEND", [fragment("RESPONSE", "a")])
      assert.deepStrictEqual(
        decodeText(patches(opening({ fragments: all("TIP") }), late, finished)).end,
        failed("empty")
      )
    })
  })

  describe("failures", () => {
    it("fails on TIMEOUT and ERROR", () => {
      for (const status of ["TIMEOUT", "ERROR"]) {
        const { end } = decodeText(patches(opening({ content: "a" }), { p: "response/status", v: status }))
        assert.deepStrictEqual(end, failed("gave_up", status))
      }
    })

    it("fails immediately on a hint before there is text, with its words", () => {
      for (const name of ["hint", "toast"]) {
        const { decoder, end } = decodeText(
          patches(opening({ fragments: [fragment("THINK", "hm")] })) +
            `event: ${name}\ndata: {"type":"error","content":"Slow down","finish_reason":"rate_limit_reached"}\n\n`
        )
        assert.isTrue(decoder.closed)
        assert.deepStrictEqual(end, failed("gave_up", "rate_limit_reached", "Slow down"))
      }
    })

    it("fails immediately on a hint after text too, and takes nothing that follows", () => {
      const hint = "event: hint\ndata: {\"type\":\"error\",\"content\":\"Busy\"}\n\n"
      const { decoder, end, text } = decodeText(
        patches(opening({ content: "a" })) + hint + patches({ v: "b" }, finished)
      )
      assert.isTrue(decoder.failed)
      assert.strictEqual(text, "a")
      assert.deepStrictEqual(end, failed("gave_up", undefined, "Busy"))
    })

    it("takes no hint after the end", () => {
      const hint = "event: hint\ndata: {\"type\":\"error\",\"content\":\"Busy\"}\n\n"
      assert.deepStrictEqual(decodeText(patches(opening({ content: "a" }), finished) + hint).end, stop)
    })

    it("ignores a toast that is no error", () => {
      const toast = "event: toast\ndata: {\"type\":\"info\",\"content\":\"Tip\"}\n\n"
      assert.deepStrictEqual(decodeText(toast + patches(opening({ content: "a" }), finished)).end, stop)
    })

    it("fails on an event that is not JSON, and takes one that the end of the stream broke as cut off", () => {
      const start = patches(opening({ content: "a" }))
      const broken = "data: {\"p\":\"response/con"
      assert.strictEqual(decodeText(start + broken + "\n\n" + patches(finished)).end?._tag, "Failed")
      const { end } = decodeText(start + broken)
      assert.deepStrictEqual(end, {
        _tag: "CutOff",
        trouble: { kind: "truncated", reason: undefined, message: undefined }
      })
    })

    it("counts a whole last event without its blank line", () => {
      const { end, text } = decodeText(
        patches(opening({ content: "a" })) + "data: {\"p\":\"response/status\",\"v\":\"FINISHED\"}"
      )
      assert.strictEqual(text, "a")
      assert.deepStrictEqual(end, stop)
    })

    it("says that a finished reply without a word is empty", () => {
      assert.deepStrictEqual(decodeText(patches(opening({ fragments: [] }), finished)).end, failed("empty"))
    })
  })

  describe("continued streams", () => {
    const first = patches(opening({ fragments: [fragment("THINK", "hm"), fragment("RESPONSE", "Hel")] }), incomplete)
    const snapshot = (text: string, status = "WIP") =>
      opening({ status, fragments: [fragment("THINK", "hm"), fragment("RESPONSE", text)] })
    const grow = (text: string) => ({ p: "response/fragments/-1/content", o: "APPEND", v: text })

    it("swallow a snapshot of what was received", () => {
      const { end, reasoning, text } = decodeText(first, patches(snapshot("Hello"), grow("!"), finished))
      assert.deepStrictEqual({ reasoning, text }, { reasoning: "hm", text: "Hello!" })
      assert.deepStrictEqual(end, stop)
    })

    it("fail immediately on a snapshot that disagrees", () => {
      for (const text of ["Hal", "He", "Bye now"]) {
        const { decoder, end } = decodeText(first, patches(snapshot(text)))
        assert.isTrue(decoder.closed)
        assert.deepStrictEqual(end, failed("disagrees"))
      }
    })

    it("take all growth after an empty snapshot as new", () => {
      const empties = [
        { fragments: [] },
        { fragments: [fragment("RESPONSE", "")] },
        { content: "", thinking_content: "" }
      ]
      for (const empty of empties) {
        const path = "content" in empty ? "response/content" : "response/fragments"
        const value = "content" in empty ? "lo" : [fragment("RESPONSE", "lo")]
        const { text } = decodeText(first, patches(opening(empty), { p: path, o: "APPEND", v: value }, finished))
        assert.strictEqual(text, "Hello")
      }
    })

    it("continue the earlier document without a snapshot", () => {
      const { end, text } = decodeText(first, patches(grow("l"), { v: "o" }, finished))
      assert.strictEqual(text, "Hello")
      assert.deepStrictEqual(end, stop)
    })

    it("go on where the stream before stopped where the first patch names nothing", () => {
      const { text } = decodeText(
        patches(opening({ fragments: [fragment("RESPONSE", "a")] }), grow("b")),
        patches({ v: "c" }, { v: "d" })
      )
      assert.strictEqual(text, "abcd")
    })

    it("fail immediately where one was missed and the next does not show the reply so far", () => {
      const empty = opening({ fragments: [] })
      const more = { p: "response/fragments", o: "APPEND", v: [fragment("RESPONSE", "o")] }
      for (const next of [patches(grow("o"), finished), patches(empty, more, finished), patches(finished)]) {
        for (const rounds of [[first, next], [first, "", next]]) {
          const { decoder, end, text } = decodeRounds(rounds, true)
          assert.strictEqual(text, "Hel")
          assert.isTrue(decoder.closed)
          assert.deepStrictEqual(end, failed("truncated", undefined, "A part of the reply was lost on its way"))
        }
      }
    })

    it("bring what was missed where the next shows the reply so far", () => {
      const rounds = [first, patches(snapshot("Hello"), grow("!"), incomplete), patches(grow("?"), finished)]
      const { end, text } = decodeRounds(rounds, true)
      assert.strictEqual(text, "Hello!?")
      assert.deepStrictEqual(end, stop)
    })

    it("do not take the status of the round before for their own end", () => {
      assert.strictEqual(decodeText(first, patches(grow("lo"))).end?._tag, "CutOff")
      const { decoder, end } = decodeText(first, patches(snapshot("Hello", "INCOMPLETE"), grow("!")))
      assert.isFalse(decoder.final)
      assert.strictEqual(end?._tag, "Incomplete")
    })

    it("finish with a snapshot of a reply that was complete", () => {
      const { decoder, end, text } = decodeText(first, patches(snapshot("Hello", "FINISHED")))
      assert.strictEqual(text, "Hello")
      assert.isTrue(decoder.final)
      assert.deepStrictEqual(end, stop)
    })

    it("count usage over all rounds, the last value wins", () => {
      const round = (n: number, text: string) =>
        opening({ fragments: [fragment("RESPONSE", text)], accumulated_token_usage: n, status: "INCOMPLETE" })
      assert.strictEqual(decodeText(patches(round(3, "a")), patches(round(5, "ab"))).completionTokens, 5)
      assert.strictEqual(decodeText(patches(round(3, "a")), patches(round(0, "ab"))).completionTokens, 3)
    })
  })

  it("takes 100,000 patches in linear time", () => {
    const decoder = new ReplyDecoder()
    const out: Array<UpstreamEvent> = []
    decoder.push({ event: undefined, data: JSON.stringify(opening({ fragments: [fragment("RESPONSE", "")] })) }, out)
    const batch = JSON.stringify({
      p: "response",
      o: "BATCH",
      v: [{ p: "fragments/-1/content", o: "APPEND", v: "word " }, { p: "elapsed_secs", o: "SET", v: 1 }]
    })
    for (let i = 0; i < 100_000; i++) decoder.push({ event: undefined, data: batch }, out)
    assert.strictEqual(decoder.produced, 500_000)
  })
})
