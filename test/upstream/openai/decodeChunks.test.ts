import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { chunkDecoder, recordedForm } from "../../../src/contracts/chat/readReply.ts"
import { makeSseDecoder, type SseEvent } from "../../../src/domain/stream/sse.ts"
import type { PartialUsage, UpstreamEvent } from "../../../src/domain/UpstreamEvent.ts"
import type { UpstreamFailure } from "../../../src/domain/UpstreamFailure.ts"
import { cutsOf } from "../../support/cuts.ts"
import { runs } from "../../support/effort.ts"

interface Call {
  readonly id: string | undefined
  readonly name: string | undefined
  readonly arguments: string
}

interface Reply {
  readonly reasoning: string
  readonly text: string
  readonly calls: ReadonlyArray<Call>
  readonly usage: PartialUsage
  readonly finish: string | undefined
}

const fold = (events: ReadonlyArray<UpstreamEvent>): Reply => {
  const calls: Array<Call> = []
  let reasoning = ""
  let text = ""
  const usage: PartialUsage = {}
  let finish: string | undefined
  for (const event of events) {
    switch (event._tag) {
      case "UpstreamReasoning":
        reasoning += event.text
        break
      case "UpstreamText":
        text += event.text
        break
      case "UpstreamCall": {
        const { argumentsDelta, id, index, name } = event
        const known = calls[index]
        calls[index] = known === undefined
          ? { id, name, arguments: argumentsDelta }
          : { ...known, arguments: known.arguments + argumentsDelta }
        break
      }
      case "UpstreamUsage":
        Object.assign(usage, event.usage)
        break
      case "UpstreamFinish":
        assert.isUndefined(finish)
        finish = event.reason
    }
  }
  return { reasoning, text, calls, usage, finish }
}

/** The characters of the reply in one event. */
const saidBy = (event: UpstreamEvent): string =>
  event._tag === "UpstreamCall"
    ? event.argumentsDelta
    : event._tag === "UpstreamText" || event._tag === "UpstreamReasoning"
    ? event.text
    : ""

interface Decoded extends Reply {
  readonly failure: UpstreamFailure | undefined
  readonly events: ReadonlyArray<UpstreamEvent>
}

/** Decodes a body that comes in these pieces. */
const decodeBytes = (pieces: Iterable<Uint8Array>, stop: ReadonlyArray<string> = []): Decoded => {
  const sse = makeSseDecoder()
  const chunks = chunkDecoder({ ...recordedForm(), stop, choices: 1 })
  const out: Array<UpstreamEvent> = []
  const events: Array<SseEvent> = []
  for (const piece of pieces) {
    sse.push(piece, events)
    for (const event of events.splice(0)) chunks.push(event, out)
  }
  sse.end(events)
  for (const event of events) chunks.pushUnterminated(event, out)
  chunks.end(out)
  return { ...fold(out), failure: chunks.failure(), events: out }
}

const encoder = new TextEncoder()
const decode = (text: string, stop?: ReadonlyArray<string>) => decodeBytes([encoder.encode(text)], stop)

/** What a failure states; an error's message is no enumerable property. */
const factsOf = (failure: UpstreamFailure | undefined) => failure && { ...failure, message: failure.message }

const frame = (value: unknown): string => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`
const frames = (...values: ReadonlyArray<unknown>): string => values.map(frame).join("")
const delta = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }]
})
const done = "[DONE]"

/** How servers tell of calls. */
const callDialects = [
  "deltas",
  "deltas without index",
  "whole",
  "whole, all 0",
  "whole, all 0, no ids",
  "whole, all 0, empty ids",
  "whole, all 0, same ids, one list",
  "whole, all 0, no ids, one list",
  "whole, objects",
  "id in every delta",
  "id in every delta, no index",
  "name in every delta, all 0",
  "name in every delta",
  "names first",
  "names first, all 0"
] as const

/** How a server writes what it has to say. */
interface Dialect {
  readonly reasoning: "reasoning_content" | "reasoning" | "inline"
  readonly calls: typeof callDialects[number]
  readonly usage: "own chunk" | "with the finish" | "in every chunk"
  readonly sentinel: boolean
  readonly noise: boolean
  readonly lineEnd: "\n" | "\r\n" | "\r"
}

const dialect: fc.Arbitrary<Dialect> = fc.record({
  reasoning: fc.constantFrom("reasoning_content", "reasoning", "inline"),
  calls: fc.constantFrom(...callDialects),
  usage: fc.constantFrom("own chunk", "with the finish", "in every chunk"),
  sentinel: fc.boolean(),
  noise: fc.boolean(),
  lineEnd: fc.constantFrom("\n", "\r\n", "\r")
})

const words = fc.string({
  unit: fc.constantFrom("a", "é", "日", "🌍", " ", "<", "think>", "</", "{", "\\", "\""),
  maxLength: 12
})
const spoken = words.map((text) => `w${text}`)

const said = fc.record({
  reasoning: fc.option(spoken.filter((text) => !text.includes("</think>")), { nil: "" }),
  text: fc.option(spoken, { nil: "" }),
  calls: fc.array(
    fc.tuple(
      fc.stringMatching(/^[a-z_]{1,8}$/),
      fc.dictionary(fc.stringMatching(/^[a-z]{1,4}$/), words, { maxKeys: 3 })
    ),
    { maxLength: 3 }
  ).map((calls) => calls.map(([name, args], i) => ({ id: `call_${i}`, name, arguments: JSON.stringify(args) }))),
  usage: fc.record({ promptTokens: fc.nat(999), completionTokens: fc.nat(999), reasoningTokens: fc.nat(999) }),
  finish: fc.constantFrom("stop", "length", "content_filter")
})

const callDeltas = (
  { calls }: { readonly calls: Dialect["calls"] },
  call: Call,
  index: number,
  pieces: ReadonlyArray<string>
): ReadonlyArray<object> => {
  const { arguments: text, id, name } = call
  switch (calls) {
    case "whole":
      return [{ index, id, type: "function", function: { name, arguments: text } }]
    case "whole, all 0":
      return [{ index: 0, id, type: "function", function: { name, arguments: text } }]
    case "whole, all 0, no ids":
    case "whole, all 0, no ids, one list":
      return [{ index: 0, function: { name, arguments: text } }]
    case "whole, all 0, empty ids":
      return [{ index: 0, id: "", function: { name, arguments: text } }]
    case "whole, all 0, same ids, one list":
      return [{ index: 0, id: "same", function: { name, arguments: text } }]
    case "id in every delta, no index":
      return [
        { id, function: { name, arguments: "" } },
        ...pieces.map((piece, i) => ({ id: `${id}-${i}`, function: { arguments: piece } }))
      ]
    case "name in every delta, all 0":
      return pieces.map((piece) => ({ index: 0, function: { name, arguments: piece } }))
    case "name in every delta":
      return pieces.map((piece) => ({ function: { name, arguments: piece } }))
    case "names first, all 0":
      return [
        { index: 0, id, function: { name, arguments: "" } },
        ...pieces.map((piece) => ({ index: 0, id, function: { arguments: piece } }))
      ]
    case "whole, objects":
      return [{ id, type: "function", function: { name, arguments: JSON.parse(text) } }]
    case "deltas without index":
      return [{ id, function: { name, arguments: "" } }, ...pieces.map((piece) => ({ function: { arguments: piece } }))]
    case "id in every delta":
      return [
        { index, id, function: { name } },
        ...pieces.map((piece, i) => ({ index, id: `${id}-${i}`, function: { name: null, arguments: piece } }))
      ]
    case "deltas":
    case "names first":
      return [
        { index, id, type: "function", function: { name, arguments: "" } },
        ...pieces.map((piece) => ({ index, function: { arguments: piece } }))
      ]
  }
}

const written = fc.tuple(said, dialect).chain(([reply, how]) =>
  fc.record({
    reply: fc.constant(reply),
    how: fc.constant(how),
    reasoning: cutsOf(reply.reasoning),
    text: cutsOf(reply.text),
    inline: cutsOf(reply.reasoning === "" ? reply.text : `<think>${reply.reasoning}</think>\n\n${reply.text}`),
    calls: fc.tuple(...reply.calls.map((call) => cutsOf(call.arguments)))
  })
).map(({ calls, how, inline, reasoning, reply, text }) => {
  const usage = {
    prompt_tokens: reply.usage.promptTokens,
    completion_tokens: reply.usage.completionTokens,
    completion_tokens_details: { reasoning_tokens: reply.usage.reasoningTokens }
  }
  const content = (piece: string) => delta({ content: piece })
  const made = reply.calls.map((call, i) => callDeltas(how, call, i, calls[i]!))
  const lists = how.calls.endsWith("one list")
    ? [made.flat()]
    : how.calls.startsWith("names first")
    ? [made.map(([first]) => first), ...made.flatMap(([, ...rest]) => rest.map((piece) => [piece]))]
    : made.flat().map((piece) => [piece])
  const ids = how.calls.includes("no ids") || how.calls.includes("empty ids") || how.calls.startsWith("name in")
    ? () => undefined
    : how.calls.includes("same ids")
    ? () => "same"
    : ({ id }: Call) => id
  const deltas = [
    delta({ role: "assistant", content: "" }),
    ...(how.reasoning === "inline"
      ? inline.map(content)
      : [...reasoning.map((piece) => delta({ [how.reasoning]: piece, content: null })), ...text.map(content)]),
    ...lists.map((list) => delta({ tool_calls: list }))
  ]
  const running = how.usage === "in every chunk" ? { usage: { ...usage, completion_tokens: 1 } } : { usage: null }
  const final = how.usage === "own chunk" ? { usage: null } : { usage }
  const values = [
    ...deltas.map((value) => ({ ...value, ...running })),
    { ...delta({}, reply.finish), ...final },
    ...(how.usage === "own chunk" ? [{ choices: [], usage }] : []),
    ...(how.sentinel ? [done] : [])
  ]
  const noise = how.noise ? ": keep-alive\n\n" + frame({ id: "x", choices: [] }) : ""
  const stream = values.map((value) => noise + frame(value)).join("").replaceAll("\n", how.lineEnd)
  return { reply: { ...reply, calls: reply.calls.map((call) => ({ ...call, id: ids(call) })) }, stream }
})

const lastCut = (bytes: Uint8Array, positions: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const cuts = [...new Set(positions.map((at) => at % (bytes.length + 1)))].toSorted((a, b) => a - b)
  return [...cuts, bytes.length].map((to, i) => bytes.subarray(i === 0 ? 0 : cuts[i - 1]!, to))
}

describe("chunkDecoder", () => {
  it("reads the same reply from every dialect, however the bytes are cut", () => {
    fc.assert(
      fc.property(written, fc.array(fc.nat(), { maxLength: 12 }), ({ reply, stream }, cuts) => {
        const decoded = decodeBytes(lastCut(encoder.encode(stream), cuts))
        assert.isUndefined(decoded.failure)
        assert.deepStrictEqual(fold(decoded.events), reply)
        // However the server cuts them, pieces are whole characters.
        for (const event of decoded.events) assert.isTrue(saidBy(event).isWellFormed())
      }),
      { numRuns: runs(500) }
    )
  })

  it("loses no half of a character that never came whole", () => {
    const call = (index: number, piece: string, name?: string) =>
      delta({
        tool_calls: [{ index, ...(name === undefined ? {} : { id: name }), function: { name, arguments: piece } }]
      })
    const decoded = decode(frames(
      delta({ reasoning_content: "r\ud83d" }),
      delta({ content: "t\ud83d" }),
      call(0, "\"\ud83d", "f"),
      call(1, "\"\ud83d", "g"),
      call(1, "\ude00\""),
      delta({}, "length")
    ))
    assert.deepInclude(decoded, { reasoning: "r\ud83d", text: "t\ud83d", finish: "length" })
    assert.deepStrictEqual(decoded.calls.map((call) => call.arguments), ["\"\ud83d", "\"\ud83d\ude00\""])
    assert.strictEqual(decoded.events.at(-1)?._tag, "UpstreamFinish")
  })

  it("reads the same reply at every cut of every byte", () => {
    const stream = frames(
      delta({ role: "assistant", content: "" }),
      delta({ content: "<think>Zwölf 🌍</think>\n\nHällo" }),
      delta({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{\"ü\":" } }] }),
      delta({ tool_calls: [{ index: 0, function: { arguments: "1}" } }] }),
      delta({}, "tool_calls"),
      { choices: [], usage: { prompt_tokens: 3, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 2 } } },
      done
    )
    const expected: Reply = {
      reasoning: "Zwölf 🌍",
      text: "Hällo",
      calls: [{ id: "a", name: "f", arguments: "{\"ü\":1}" }],
      usage: { promptTokens: 3, completionTokens: 9, cachedTokens: 2 },
      finish: "tool_calls"
    }
    const bytes = encoder.encode(stream)
    for (let at = 0; at <= bytes.length; at++) {
      const decoded = decodeBytes([bytes.subarray(0, at), bytes.subarray(at)])
      assert.deepStrictEqual(fold(decoded.events), expected)
    }
  })

  it("never takes a reply that ends before its finish for a whole one, wherever it ends", () => {
    const stream = frames(delta({ content: "one" }), delta({ content: " two" }), delta({}, "stop"), done)
    const bytes = encoder.encode(stream)
    const finished = stream.indexOf("\"finish_reason\":\"stop\"}]}") + "\"finish_reason\":\"stop\"}]}".length
    for (let at = 0; at <= bytes.length; at++) {
      const { failure, finish, text } = decodeBytes([bytes.subarray(0, at)])
      if (at >= finished) {
        assert.deepStrictEqual({ failure, finish, text }, { failure: undefined, finish: "stop", text: "one two" })
      } else assert.include(["truncated", "empty"], failure?.kind)
      assert.isTrue("one two".startsWith(text))
    }
  })

  describe("reasoning", () => {
    const inline = (...pieces: ReadonlyArray<string>) =>
      decode(frames(...pieces.map((content) => delta({ content })), delta({}, "stop")))

    it("stands inline at the very start only", () => {
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, reasoning: string, text: string]> = [
        [["<think>a</think>b"], "a", "b"],
        [["\n <think>\na\n</think>\n\nb"], "\na\n", "b"],
        [["<th", "ink>a</th", "ink>", "\n", "\n", "b"], "a", "b"],
        [["<think></think>b"], "", "b"],
        [["<think>a</th</think>b"], "a</th", "b"],
        [["<think>a"], "a", ""],
        [["<think>a</thi"], "a</thi", ""],
        [["x <think>a</think>"], "", "x <think>a</think>"],
        [["<think>a</think>b<think>c</think>"], "a", "b<think>c</think>"],
        [["<thin"], "", "<thin"],
        [["<thing>"], "", "<thing>"],
        [["  "], "", "  "],
        [["</think>b"], "", "</think>b"],
        [["<|START_THINKING|>a</think><|END_THINKING|>\nb"], "a</think>", "b"],
        [["<|START_", "THINKING|>a<|END_", "THIN", "KING|>b"], "a", "b"],
        [["<think>a<|END_THINKING|></think>b"], "a<|END_THINKING|>", "b"],
        [["<|START_"], "", "<|START_"],
        [["<|START_RESPONSE|>b<|END_RESPONSE|>"], "", "<|START_RESPONSE|>b<|END_RESPONSE|>"]
      ]
      for (const [pieces, reasoning, text] of cases) {
        assert.deepInclude(inline(...pieces), { reasoning, text, finish: "stop" }, pieces.join("|"))
      }
    })

    it("under two names together counts once", () => {
      const both = decode(frames(delta({ reasoning_content: "a", reasoning: "a" }), delta({ content: "b" }, "stop")))
      assert.deepInclude(both, { reasoning: "a", text: "b" })
    })

    it("lets the text before a call out before the call", () => {
      const { events } = decode(frames(
        delta({ content: "\n\n" }),
        delta({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }] }),
        delta({ content: "<think>no</think>" }, "tool_calls")
      ))
      assert.deepStrictEqual(events.map((event) => event._tag), [
        "UpstreamText",
        "UpstreamCall",
        "UpstreamText",
        "UpstreamFinish"
      ])
    })
  })

  describe("calls", () => {
    const calls = (...pieces: ReadonlyArray<object>) =>
      decode(frames(...pieces.map((piece) => delta({ tool_calls: [piece] })), delta({}, "tool_calls"))).calls

    it("interleave by index or by id", () => {
      const expected = [
        { id: "a", name: "f", arguments: "[1]" },
        { id: "b", name: "g", arguments: "[2]" }
      ]
      for (const key of ["index", "id"]) {
        const mark = (i: number) => key === "index" ? { index: i } : { id: "ab"[i] }
        assert.deepStrictEqual(
          calls(
            { ...mark(0), id: "a", function: { name: "f", arguments: "[" } },
            { ...mark(1), id: "b", function: { name: "g", arguments: "[" } },
            { ...mark(0), function: { arguments: "1]" } },
            { ...mark(1), function: { arguments: "2]" } }
          ),
          expected,
          key
        )
      }
    })

    it("have ids of up to 256 characters", () => {
      const named = (id: string) =>
        frames(
          delta({ tool_calls: [{ index: 0, id, function: { name: "f", arguments: "{}" } }] }),
          delta({}, "tool_calls")
        )
      const longest = decode(named("x".repeat(256)))
      assert.isUndefined(longest.failure)
      assert.strictEqual(longest.calls[0]?.id, "x".repeat(256))
      assert.deepInclude(factsOf(decode(named("x".repeat(257))).failure), { phase: "stream", kind: "malformed" })
    })

    it("are distinguished without indexes and ids", () => {
      assert.deepStrictEqual(
        calls({ function: { name: "f", arguments: "{}" } }, { function: { name: "f", arguments: "{\"a\":1}" } }),
        [{ id: undefined, name: "f", arguments: "{}" }, { id: undefined, name: "f", arguments: "{\"a\":1}" }]
      )
    })

    it("come in the older form too", () => {
      const { calls, finish } = decode(frames(
        delta({ function_call: { name: "f", arguments: "" } }),
        delta({ function_call: { arguments: "{}" } }, "function_call")
      ))
      assert.deepStrictEqual({ calls, finish }, {
        calls: [{ id: undefined, name: "f", arguments: "{}" }],
        finish: "tool_calls"
      })
    })
  })

  describe("the end", () => {
    it("has the reason that the server's word means", () => {
      const cases = {
        stop: "stop",
        eos: "stop",
        length: "length",
        MAX_TOKENS: "length",
        tool_calls: "tool_calls",
        content_filter: "content_filter",
        sensitive: "content_filter"
      }
      for (const [word, reason] of Object.entries(cases)) {
        assert.strictEqual(decode(frames(delta({ content: "a" }, word))).finish, reason, word)
      }
    })

    it("is not a placeholder word, wherever the stream is cut off", () => {
      for (const word of ["null", "NULL", "None", "none", " ", ""]) {
        const parts = frames(delta({ content: "a" }, word), delta({ content: "b" }, word))
        const bytes = encoder.encode(parts)
        for (let at = 0; at <= bytes.length; at++) {
          assert.include(["truncated", "empty"], decodeBytes([bytes.subarray(0, at)]).failure?.kind, word)
        }
        assert.deepInclude(decode(parts + frames(delta({}, "length"))), { text: "ab", finish: "length" }, word)
        assert.deepInclude(factsOf(decode(parts + frames(done)).failure), { kind: "truncated" }, word)
      }
    })

    it("is ignored if any part of the reply follows it", () => {
      const more: ReadonlyArray<object> = [
        { content: "b" },
        { reasoning_content: "b" },
        { refusal: "b" },
        { tool_calls: [{ index: 0, id: "c", function: { name: "f", arguments: "" } }] },
        { function_call: { name: "f", arguments: "{" } }
      ]
      for (const word of ["partial", "stop", "length", "tool_calls"]) {
        for (const piece of more) {
          const begun = frames(delta({ content: "a" }, word), delta(piece))
          const error = { error: { message: "late", code: 503 } }
          assert.strictEqual(decode(begun).failure?.kind, "truncated", word)
          assert.deepInclude(factsOf(decode(begun + frames(error)).failure), { kind: "refused", message: "late" }, word)
          assert.strictEqual(decode(begun + frames("oops")).failure?.kind, "malformed", word)
          const whole = decode(begun + frames(delta({}, "stop"), error))
          assert.deepInclude(whole, { failure: undefined, finish: "stop" }, word)
        }
      }
      assert.strictEqual(decode(frames(delta({}, "length"), delta({ content: "a" }), done)).finish, "length")
      const again = frames({ choices: [{ delta: { content: "a" }, finish_reason: "stop", stop_reason: "END" }] })
      const { events } = decode(again + frames(delta({ content: "b" }), delta({}, "stop")), ["END"])
      assert.deepStrictEqual(events.at(-1), { _tag: "UpstreamFinish", reason: "stop" })
    })

    it("stays where what follows is nothing of the reply", () => {
      const nothing = [
        delta({ role: "assistant", content: "" }),
        delta({ content: "\n", reasoning_content: " " }),
        delta({ content: null, tool_calls: [] }),
        delta({ tool_calls: [{ index: 0, function: { arguments: "" } }] }),
        delta({}, "null"),
        { choices: [], usage: { prompt_tokens: 3 } }
      ]
      for (const value of nothing) {
        const decoded = decode(frames(delta({ content: "a" }, "length"), value))
        assert.deepInclude(decoded, { failure: undefined, finish: "length" }, JSON.stringify(value))
      }
    })

    it("is a failure where the server gave up", () => {
      for (const word of ["error", "abort", "network_error"]) {
        const { failure, finish } = decode(frames(delta({ content: "a" }), delta({}, word), done))
        assert.deepInclude(factsOf(failure), { kind: "gave_up", reason: word })
        assert.isUndefined(finish)
      }
    })

    it("is the sentinel alone for a server without finish reasons, and for no other one", () => {
      const plain = { choices: [{ index: 0, delta: { content: "a" } }] }
      assert.deepInclude(decode(frames(plain, done)), { text: "a", finish: "stop", failure: undefined })
      assert.strictEqual(decode(frames(plain)).failure?.kind, "truncated")
      const usage = { choices: [], usage: { prompt_tokens: 3, completion_tokens: 1 } }
      for (const more of [[], [delta({ content: "b" })], [delta({}), usage]]) {
        const { failure, finish } = decode(frames(delta({ content: "a" }), plain, ...more, done))
        assert.strictEqual(failure?.kind, "truncated")
        assert.isUndefined(finish)
      }
    })

    it("holds whatever follows it", () => {
      for (const after of ["oops", JSON.stringify({ error: { message: "late" } })]) {
        const decoded = decode(frames(delta({ content: "a" }, "stop"), after))
        assert.deepInclude(decoded, { text: "a", finish: "stop", failure: undefined })
      }
    })

    it("names the stop sequence that the server found, if it is one of the request's", () => {
      for (const key of ["stop_reason", "matched_stop"]) {
        const stream = frames({ choices: [{ delta: { content: "a" }, finish_reason: "stop", [key]: "END" }] })
        const found = (stop: ReadonlyArray<string>) => decode(stream, stop).events.at(-1)
        assert.deepStrictEqual(found(["X", "END"]), { _tag: "UpstreamFinish", reason: "stop", stopSequence: "END" })
        assert.deepStrictEqual(found(["X"]), { _tag: "UpstreamFinish", reason: "stop" })
      }
    })
  })

  describe("failures", () => {
    it("are the error objects that servers send in a stream", () => {
      const cases: ReadonlyArray<readonly [string, facts: object]> = [
        [
          frame({ error: { message: "no", type: "server_error", code: "rate_limit_exceeded", param: null } }),
          { kind: "refused", reason: "rate_limit_exceeded", message: "no" }
        ],
        [frame({ error: { message: "no", type: "BadRequestError", code: 400 } }), {
          kind: "refused",
          reason: "BadRequestError",
          status: 400
        }],
        [frame({ object: "error", message: "no", type: "x", code: 503 }), {
          kind: "refused",
          message: "no",
          status: 503
        }],
        [frame({ error: "no" }), { kind: "refused", message: "no" }],
        [`event: error\n${frame({ message: "no", code: "429" })}`, { kind: "refused", message: "no", status: 429 }],
        [`event: error\n${frame("no JSON")}`, { kind: "refused" }],
        [frame("{broken"), { kind: "malformed" }],
        [frame([]), { kind: "malformed" }]
      ]
      for (const [last, facts] of cases) {
        const { failure, text } = decode(frames(delta({ content: "a" })) + last + frames(delta({}, "stop")))
        assert.deepInclude(factsOf(failure), { phase: "stream", ...facts }, last)
        assert.strictEqual(text, "a")
      }
    })

    it("are no errors that say nothing beside a reply", () => {
      const noError = fc.dictionary(
        fc.constantFrom("message", "type", "code", "status", "param", "details"),
        fc.constantFrom("", " ", 0, "0", null, false, {}, []),
        { noNullPrototype: true }
      )
      fc.assert(fc.property(noError, noError, (first, last) => {
        const stream = frames({ ...delta({ content: "a" }), error: first }, { ...delta({}, "stop"), error: last })
        assert.deepInclude(decode(stream), { failure: undefined, text: "a", finish: "stop" })
        assert.strictEqual(decode(frames({ error: first })).failure?.kind, "refused")
      }))
      for (const error of [{ message: "no" }, { code: 7 }, { code: "503" }, { type: "x" }, { details: [{}] }, "no"]) {
        const { failure } = decode(frames({ ...delta({ content: "a" }), error }))
        assert.strictEqual(failure?.kind, "refused", JSON.stringify(error))
      }
    })

    it("are empty and cut streams", () => {
      assert.strictEqual(decode("").failure?.kind, "empty")
      assert.strictEqual(decode(": hi\n\n").failure?.kind, "empty")
      assert.strictEqual(decode(frames(delta({ content: "a" }))).failure?.kind, "truncated")
    })

    it("are not merely unusual fields", () => {
      const odd = [
        { choices: null },
        { choices: [null] },
        { choices: [{ index: 0, delta: null }] },
        { choices: [{ index: 0 }] },
        { error: null, choices: [] },
        delta({ content: [{ type: "text", text: "a" }, { type: "other" }, null] }),
        delta({ tool_calls: null }),
        delta({ tool_calls: [null, 1] }),
        { usage: { prompt_tokens: "3", completion_tokens: -1 }, choices: [] }
      ]
      const decoded = decode(frames(...odd, delta({}, "stop"), done))
      assert.deepInclude(decoded, { failure: undefined, text: "a", calls: [], usage: {}, finish: "stop" })
    })
  })

  describe("whole answers", () => {
    const whole = (body: string) => {
      const chunks = chunkDecoder({ ...recordedForm(), choices: 1 })
      const out: Array<UpstreamEvent> = []
      chunks.pushWhole(body, out)
      chunks.end(out)
      return { ...fold(out), failure: chunks.failure() }
    }

    it("are whole without a finish reason too", () => {
      const choices = [{ index: 0, message: { content: "a" }, finish_reason: null }]
      assert.deepInclude(whole(JSON.stringify({ choices })), { text: "a", finish: "stop", failure: undefined })
    })

    it("are one large delta", () => {
      const message = {
        role: "assistant",
        reasoning_content: "r",
        content: "t",
        tool_calls: [{ id: "a", function: { name: "f", arguments: "{}" } }, {
          id: "b",
          function: { name: "g", arguments: { x: 1 } }
        }]
      }
      const { failure, ...reply } = whole(JSON.stringify({
        choices: [{ message, finish_reason: "tool_calls" }],
        usage: { prompt_tokens: 1, completion_tokens: 2 }
      }))
      assert.isUndefined(failure)
      assert.deepStrictEqual(reply, {
        reasoning: "r",
        text: "t",
        calls: [{ id: "a", name: "f", arguments: "{}" }, { id: "b", name: "g", arguments: "{\"x\":1}" }],
        usage: { promptTokens: 1, completionTokens: 2 },
        finish: "tool_calls"
      })
      assert.strictEqual(whole(JSON.stringify({ choices: [{ message: { content: "t" } }] })).finish, "stop")
    })

    it("fail as what they are when they are no reply", () => {
      assert.deepInclude(factsOf(whole("{\"error\":\"Unexpected endpoint\"}").failure), {
        kind: "refused",
        message: "Unexpected endpoint"
      })
      assert.deepInclude(factsOf(whole("{\"detail\":\"Not Found\"}").failure), {
        kind: "malformed",
        message: "Not Found"
      })
      assert.strictEqual(whole("{\"choices\":[{\"mess").failure?.kind, "malformed")
    })
  })
})
