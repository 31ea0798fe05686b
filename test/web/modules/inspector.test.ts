/**
 * The inspector of a request: what frames add, the course of a request, the verdict, and differences of texts.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { readFileSync } from "node:fs"
import { rules } from "../../../src/domain/failureRules.ts"
import { errorTable } from "../../../src/domain/GatewayError.ts"
import { runSync } from "../../../src/domain/stream/cooperative.ts"
import { cutFrames } from "../../../src/recordings/frames.ts"
import { assembleReply, assembleRounds } from "../../../src/recordings/recordedReply.ts"
import { asJson, asText, turnsOf } from "../../../src/web/pages/requests/conversationText.ts"
import { differenceOf, inOrderOf, linesOf } from "../../../src/web/pages/requests/diff.ts"
import { FrameReader, lengthOf, type Part } from "../../../src/web/pages/requests/frameParts.ts"
import { moment } from "../../../src/web/pages/requests/moment.ts"
import { readSides } from "../../../src/web/pages/requests/sides.ts"
import { judge } from "../../../src/web/pages/requests/verdict.ts"
import { binsOf, type Course, ratesOf, ticksOf, waterfallOf } from "../../../src/web/pages/requests/waterfall.ts"
import { later as en } from "../../../src/web/texts/later.ts"
import { zh } from "../../../src/web/texts/zh.ts"
import { kinds as goldenKinds } from "../../golden/cases/scripts.ts"
import { repliesIn } from "../../golden/replies.ts"

const fixtures = new URL("../../fixtures/", import.meta.url)

/** The parts of a reply to a client of a style, or of the session protocol's server. */
const partsOf = (frames: ReadonlyArray<string>, style?: string): ReadonlyArray<Part> => {
  const reader = style === undefined ? FrameReader.ofServer("session") : FrameReader.ofClient(style)
  const read = frames.map((frame) => reader.read(frame))
  reader.end()
  return read.flatMap(({ parts }) => parts)
}

const joined = (parts: ReadonlyArray<Part>, kind: Part["kind"]): string =>
  parts.filter((part) => part.kind === kind).map(({ text }) => text).join("")

const styles = ["chat", "responses", "messages", "generate"]

/** The kinds of reply; golden files have other exchanges too, such as counts of tokens. */
const kinds: ReadonlySet<string> = new Set(goldenKinds.map(({ name }) => name))

describe("what the frames of a reply add", () => {
  it.each(styles)("%s: together it is the reply that the gateway puts together", (style) => {
    const replies = repliesIn(style, "embedded").filter(({ name }) => kinds.has(name.split(",")[0]!))
    assert.isAtLeast(replies.length, 25)
    for (const { bytes, contentType, name, status } of replies) {
      const frames = cutFrames({ bytes, contentType, marks: [], truncated: false }, 0)
      const parts = partsOf(frames.map(({ data }) => data), style)
      if (status !== 200) {
        assert.isNotEmpty(joined(parts, "error"), name)
        continue
      }
      const { calls, finish, reasoning, text } = runSync(assembleReply(style, frames, contentType))!
      assert.strictEqual(joined(parts, "text"), text, name)
      assert.strictEqual(joined(parts, "reasoning"), reasoning, name)
      assert.strictEqual(joined(parts, "call"), calls.map((call) => call.name).join(""), name)
      assert.strictEqual(parts.findLast(({ kind }) => kind === "finish")?.text, finish, name)
      for (const call of calls) {
        assert.include(joined(parts, "arguments").replaceAll(/\s/g, ""), call.arguments.replaceAll(/\s/g, ""), name)
      }
    }
  })

  /** The rounds' frames, put together by the gateway's own decoder of the session protocol. */
  const decoded = (frames: ReadonlyArray<string>) =>
    runSync(assembleRounds([{
      protocol: "session",
      bytes: Buffer.from(frames.join("")),
      contentType: "text/event-stream"
    }]))

  it("session: a patch without a path goes on at that of the patch before it", () => {
    const frames = readFileSync(new URL("session/example.sse", fixtures), "utf8").split(/(?<=\n\n)/)
    const parts = partsOf(frames)
    const { reasoning, text } = decoded(frames)
    assert.deepStrictEqual([joined(parts, "text"), joined(parts, "reasoning")], [text, reasoning])
    assert.deepStrictEqual([text, reasoning], ["4.", "Two and two make four."])
    assert.deepStrictEqual(
      parts.filter(({ kind }) => kind === "finish" || kind === "usage").map(({ text: value }) => value),
      ["41", "stop"]
    )
  })

  const piece = fc.string({ minLength: 1, maxLength: 6, unit: "grapheme-ascii" })
  const fragment = fc.record({
    type: fc.constantFrom("THINK", "RESPONSE", "TIP"),
    first: piece,
    more: fc.array(piece, { maxLength: 4 }),
    way: fc.constantFrom("whole", "bare", "batch")
  })

  it("session: it is the reply in every way of writing patches", () => {
    fc.assert(fc.property(fc.array(fragment, { minLength: 1, maxLength: 6 }), fc.boolean(), (fragments, repeats) => {
      const patches: Array<object> = [{ v: { response: { status: "WIP", fragments: [] } } }]
      const known: Array<object> = []
      for (const { first, more, type, way } of fragments) {
        patches.push({ p: "response/fragments", o: "APPEND", v: [{ type, content: first }] })
        known.push({ type, content: first + more.join("") })
        const path = "fragments/-1/content"
        more.forEach((v, i) => {
          if (way === "batch") patches.push({ p: "response", o: "BATCH", v: [{ p: path, o: "APPEND", v }] })
          else patches.push(way === "bare" && i > 0 ? { v } : { p: `response/${path}`, o: "APPEND", v })
        })
      }
      // A snapshot repeats the document as it is.
      if (repeats) patches.push({ v: { response: { status: "WIP", fragments: known } } })
      patches.push({ p: "response/status", o: "SET", v: "FINISHED" })
      const frames = patches.map((patch) => `data: ${JSON.stringify(patch)}\n\n`)
      const parts = partsOf(frames)
      const { reasoning, text } = decoded(frames)
      assert.deepStrictEqual([joined(parts, "text"), joined(parts, "reasoning")], [text, reasoning])
      const isEmpty = text === "" && reasoning === ""
      assert.deepStrictEqual([joined(parts, "finish"), joined(parts, "error")], isEmpty ? ["", "empty"] : ["stop", ""])
    }))
  })

  it("session: a refusal is an error, also within an accepted call", () => {
    const error = (text: string) => [{ kind: "error", text } as const]
    assert.deepStrictEqual(partsOf([`{"code":40003,"msg":"expired","data":null}`]), error("expired"))
    assert.deepStrictEqual(
      partsOf([`{"code":0,"msg":"","data":{"biz_code":9,"biz_msg":"too long"}}`]),
      error("too long")
    )
  })

  it("of frames that are no JSON, or have unknown forms, is nothing", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.json(), fc.json().map((text) => `data: ${text}\n\n`))),
        (frames) => {
          assert.isArray(partsOf(frames))
        }
      )
    )
    const reader = FrameReader.ofClient("chat")
    assert.deepStrictEqual(reader.read(": ping\n\n").parts, [])
    assert.deepStrictEqual(reader.read("data: [DONE]\n\n"), { name: "[DONE]", parts: [] })
  })

  it("counts the characters of text, reasoning and calls alone", () => {
    assert.strictEqual(lengthOf([{ kind: "text", text: "abc" }, { kind: "usage", text: "1 + 2" }]), 3)
  })
})

describe("the course of a request", () => {
  const trial = (began_ms: number, took_ms: number | null, cause: string | null = null, queued_ms = 0) => ({
    upstream: "default",
    model: "m",
    account: "ada@example.com",
    status: null,
    cause,
    queued_ms,
    began_ms,
    took_ms,
    cost: null
  })
  const course: Course = {
    outcome: "ok",
    queued_ms: 0,
    first_event_ms: null,
    duration_ms: 100,
    tries: [],
    upstream: [],
    client: []
  }

  it("has a lane for each try, whose last one streams", () => {
    const { end, gaps, lanes } = waterfallOf({
      ...course,
      first_event_ms: 60,
      tries: [trial(10, 20, "overloaded", 8), trial(45, 15)]
    }, 0)
    assert.strictEqual(end, 100)
    assert.deepStrictEqual(
      lanes.map(({ spans }) => spans.map(({ failed, from, kind, to }) => [kind, from, to, failed])),
      [
        [["queue", 2, 10, false], ["try", 10, 30, true]],
        [["try", 45, 60, false], ["stream", 60, 100, false]]
      ]
    )
    assert.deepStrictEqual(gaps, [{ kind: "between", from: 30, to: 45 }])
  })

  it("names silences, and a client that is behind", () => {
    const { gaps } = waterfallOf({
      ...course,
      duration_ms: 10_000,
      tries: [trial(0, 10)],
      upstream: [10, 20, 3_000, 3_010],
      client: [10, 9_990]
    }, 0)
    assert.deepStrictEqual(gaps, [{ kind: "silence", from: 20, to: 3_000 }, { kind: "behind", from: 3_010, to: 9_990 }])
  })

  it("of a request that waits is a queue that goes on", () => {
    const { end, lanes } = waterfallOf({ ...course, outcome: "open", queued_ms: null, duration_ms: null }, 4_000)
    assert.strictEqual(end, 4_000)
    assert.deepStrictEqual(lanes, [{
      place: undefined,
      spans: [{ kind: "queue", from: 0, to: 4_000, failed: false, open: true }]
    }])
  })

  const times = fc.array(fc.double({ min: 0, max: 1e5, noNaN: true }), { maxLength: 40 }).map((all) =>
    all.toSorted((a, b) => a - b)
  )
  const step = fc.record({
    queued: fc.double({ min: 0, max: 100, noNaN: true }),
    took: fc.option(fc.double({ min: 0, max: 1_000, noNaN: true })),
    failed: fc.boolean()
  })

  it("has spans in order and within the scale", () => {
    fc.assert(fc.property(
      fc.array(step, { maxLength: 5 }),
      fc.constantFrom("ok", "failed", "cancelled", "open" as const),
      times,
      fc.double({ min: 0, max: 2e4, noNaN: true }),
      (steps, outcome, frames, length) => {
        let at = 0
        const tries = steps.map(({ failed, queued, took }) => {
          const began = at + queued
          at = began + (took ?? 0)
          return trial(began, took, failed ? "overloaded" : null, queued)
        })
        const { end, gaps, lanes } = waterfallOf(
          { ...course, outcome, duration_ms: length, tries, upstream: frames },
          length
        )
        assert.lengthOf(lanes, Math.max(1, tries.length))
        for (const { from, to } of [...lanes.flatMap(({ spans }) => spans), ...gaps]) {
          assert.isAtLeast(from, 0)
          assert.isAtLeast(to, from)
          assert.isAtMost(to, end + 1e-6)
        }
        for (const { spans } of lanes) {
          spans.slice(1).forEach(({ from }, i) => assert.isAtLeast(from + 1e-6, spans[i]!.to))
        }
      }
    ))
  })

  it("counts every frame in one bin, and spreads the tokens over them", () => {
    const frame = fc.record({ at: fc.double({ min: 0, max: 500, noNaN: true }), length: fc.nat(50) })
    fc.assert(fc.property(fc.array(frame), fc.integer({ min: 1, max: 80 }), fc.nat(1_000), (frames, count, tokens) => {
      const bins = binsOf(frames, 500, count)
      assert.lengthOf(bins, count)
      assert.strictEqual(bins.reduce((sum, bin) => sum + bin.frames, 0), frames.length)
      const total = frames.reduce((sum, { length }) => sum + length, 0)
      const spread = ratesOf(bins, tokens).reduce(
        (sum, rate, i) => sum + rate * (bins[i]!.to - bins[i]!.from) / 1000,
        0
      )
      assert.closeTo(spread, total === 0 ? 0 : tokens, 1e-6 * Math.max(1, tokens))
    }))
  })

  it("has ticks at 3 to 7 round places", () => {
    fc.assert(fc.property(fc.double({ min: 1, max: 1e7, noNaN: true }), (end) => {
      const { step: distance, ticks } = ticksOf(end)
      assert.isAtLeast(ticks.length, 4)
      assert.isAtMost(ticks.length, 8)
      assert.isAtMost(ticks.at(-1)!, end * 1.000001)
      assert.match(distance.toExponential(), /^[125]e/)
    }))
  })

  it("has times in milliseconds below a second, and in seconds above", () => {
    assert.deepStrictEqual([0, 0.44, 13.7, 999.4, 999.6, 1_180.6, 75_000].map(moment), [
      "0 ms",
      "0.4 ms",
      "14 ms",
      "999 ms",
      "1.000 s",
      "1.181 s",
      "75.000 s"
    ])
  })
})

describe("the verdict on a request", () => {
  const judged = {
    outcome: "failed",
    state: "done",
    finish: null,
    error: "upstream_error",
    fault: "upstream",
    first_event_ms: null,
    duration_ms: 10,
    key: "k",
    tries: []
  } as const

  it("has advice in every language for every error code and every class of failures", () => {
    const names = [...Object.keys(errorTable), ...rules.map((rule) => rule.class)]
    const missing = names.filter((name) => {
      const { advice } = judge({ ...judged, error: name, fault: null })
      return [en, zh].some(({ inspector }) =>
        inspector.advice(advice[0] ?? "") === undefined && name !== "invalid_request"
      )
    })
    assert.deepStrictEqual(missing, [])
    for (const { inspector } of [en, zh]) {
      for (const fault of ["caller", "gateway", "upstream", "account", "own_token", "queue_full"]) {
        assert.isDefined(inspector.advice(fault), fault)
      }
      for (const { class: name } of rules) assert.notStrictEqual(inspector.causes(name), name)
    }
  })

  it("names the cause of the last try before the error code", () => {
    const tried = (cause: string) => [{
      upstream: "default",
      model: "m",
      account: "ada@example.com",
      cause,
      status: null,
      queued_ms: 0,
      began_ms: 0,
      took_ms: 1,
      cost: null
    }]
    assert.deepStrictEqual(judge({ ...judged, tries: tried("overloaded") }).advice, [
      "overloaded",
      "upstream_error",
      "upstream"
    ])
    assert.strictEqual(
      judge({ ...judged, key: "direct", fault: "caller", tries: tried("token_refused") }).advice[0],
      "own_token"
    )
    assert.strictEqual(judge({ ...judged, error: "rate_limit_exceeded", fault: "gateway" }).advice[0], "queue_full")
  })

  it.each(
    [
      [{ outcome: "ok", error: null, finish: "stop" }, "answered", "good"],
      [{ outcome: "ok", error: null, finish: "length" }, "cut", "warn"],
      [{ outcome: "ok", error: null, finish: "content_filter" }, "filtered", "warn"],
      [{ outcome: "cancelled", error: null }, "leftEarly", "warn"],
      [{ outcome: "cancelled", error: null, first_event_ms: 3 }, "left", "warn"],
      [{ outcome: "failed" }, "failed", "bad"],
      [{ outcome: "open", state: "queued", error: null }, "queued", ""],
      [{ outcome: "open", state: "streaming", error: null }, "streaming", ""]
    ] as const
  )("of %o is %s", (facts, kind, tone) => {
    const verdict = judge({ ...judged, ...facts })
    assert.deepStrictEqual([verdict.kind, verdict.tone], [kind, tone])
    assert.strictEqual(verdict.fault, kind === "failed" ? "upstream" : null)
  })
})

describe("the difference of two texts", () => {
  const words = fc.array(fc.constantFrom("a", "b", " ", "\n", "<x>", "né", "🌍"), { maxLength: 40 }).map((all) =>
    all.join("")
  )

  it("has both texts whole, and what they share once", () => {
    fc.assert(fc.property(words, words, (before, after) => {
      const stretches = differenceOf(before, after)
      const without = (kind: string) => stretches.filter((each) => each.kind !== kind).map(({ text }) => text).join("")
      assert.strictEqual(without("added"), before)
      assert.strictEqual(without("removed"), after)
    }))
    assert.deepStrictEqual(differenceOf("same", "same"), [{ kind: "same", text: "same" }])
    assert.deepStrictEqual(differenceOf("Hi <call>x</call> there", "Hi there"), [
      { kind: "same", text: "Hi " },
      { kind: "removed", text: "<call>x</call> " },
      { kind: "same", text: "there" }
    ])
  })

  it("replaces the middle of texts that are too long to compare", () => {
    const [before, after] = ["x ".repeat(2_000), "y ".repeat(2_000)]
    assert.deepStrictEqual(differenceOf(`1 ${before}2`, `1 ${after}2`).map(({ kind }) => kind), [
      "same",
      "removed",
      "added",
      "same"
    ])
  })

  it("of bodies is line by line, leaves most equal lines out, and does not depend on the order of members", () => {
    const long = Array.from({ length: 20 }, (_, i) => `line ${i}`)
    const shown = (before: string, after: string) =>
      linesOf(before, after).map((line) => line.kind === "equal" ? line.count : `${line.kind} ${line.text}`)
    assert.deepStrictEqual(shown([...long, "a", "b"].join("\n"), [...long, "c", "b"].join("\n")), [
      17,
      "same line 17",
      "same line 18",
      "same line 19",
      "removed a",
      "added c",
      "same b"
    ])
    assert.deepStrictEqual(shown("", "a"), ["removed ", "added a"])
    const one = { b: 1, a: [{ x: 1, y: 2 }, 3] }
    const other = { a: [{ y: 2, x: 1 }, 4], new: null, b: 1 }
    assert.strictEqual(JSON.stringify(inOrderOf(other, one)), `{"b":1,"a":[{"x":1,"y":2},4],"new":null}`)
    // More lines than are compared count as replaced.
    const many = (name: string) => Array.from({ length: 2_000 }, (_, i) => `${name} ${i}`).join("\n")
    assert.lengthOf(linesOf(many("a"), many("b")), 4_000)
  })
})

describe("the conversation of a request", () => {
  const conversation = [{ role: "user", text: "Weather?", calls: [], call_id: null }]
  const reply = {
    status: 200,
    headers: {},
    frames: [],
    truncated: false,
    text: "Looking.",
    reasoning: "Hm.",
    calls: [{ id: "1", name: "get_weather", arguments: `{"city":"Oslo"}` }],
    finish: "tool_calls"
  }

  it("ends with the reply, as text and as JSON", () => {
    const turns = turnsOf({ conversation, reply })
    assert.strictEqual(asText(turns), `user:\nWeather?\n\nassistant:\n(Hm.)\nLooking.\nget_weather({"city":"Oslo"})`)
    assert.deepStrictEqual(JSON.parse(asJson(turns)), [
      { role: "user", text: "Weather?" },
      {
        role: "assistant",
        reasoning: "Hm.",
        text: "Looking.",
        calls: [{ id: "1", name: "get_weather", arguments: { city: "Oslo" } }],
        finish: "tool_calls"
      }
    ])
  })

  it("has no reply if it failed, has not begun, or is no conversation", () => {
    for (const none of [null, { ...reply, status: 503, text: "" }, { ...reply, text: null }]) {
      assert.lengthOf(turnsOf({ conversation, reply: none }), 1)
    }
  })

  it("the frames of each try are read by themselves", () => {
    const round = (attempt: number, at_ms: number, v: object) => ({
      capture_id: "",
      label: "completion",
      protocol: "session",
      attempt,
      url: "",
      account: "",
      status: 200,
      request_body: "",
      truncated: false,
      frames: [{ at_ms, data: `data: ${JSON.stringify({ v })}\n\n` }]
    })
    const document = (content: string) => ({ response: { status: "WIP", fragments: [{ type: "RESPONSE", content }] } })
    const added = (attempts: ReadonlyArray<number>) =>
      readSides({
        reply: null,
        style: "chat",
        upstream: attempts.map((attempt, i) => round(attempt, i, document("Hello")))
      })
        .upstream.map(({ length }) => length)
    assert.deepStrictEqual(added([1, 2]), [5, 5])
    assert.deepStrictEqual(added([1, 1]), [5, 0])
  })
})
