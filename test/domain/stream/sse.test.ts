import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { encodeSse, makeSseDecoder, sseComment, type SseEvent } from "../../../src/domain/stream/sse.ts"
import { runs } from "../../support/effort.ts"

const encoder = new TextEncoder()

const decode = (chunks: Iterable<Uint8Array>, limit?: number) => {
  const decoder = makeSseDecoder(limit)
  const out: Array<SseEvent> = []
  for (const chunk of chunks) decoder.push(chunk, out)
  decoder.end(out)
  return { out, overflowed: decoder.overflowed }
}

const decodeText = (text: string) => decode([encoder.encode(text)]).out

const event = (data: string, name?: string): SseEvent => ({ event: name, data })

/** The standard's algorithm, line by line over the whole text. */
const interpret = (text: string): Array<SseEvent> => {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/)
  const events: Array<SseEvent> = []
  let data: Array<string> = []
  let name = ""
  const dispatch = () => {
    if (data.length > 0) events.push({ event: name === "" ? undefined : name, data: data.join("\n") })
    data = []
    name = ""
  }
  for (const line of lines) {
    if (line === "") {
      dispatch()
      continue
    }
    const colon = line.indexOf(":")
    if (colon === 0) continue
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "")
    if (field === "data") data.push(value)
    if (field === "event") name = value
  }
  dispatch()
  return events
}

const line = fc.oneof(
  fc.constantFrom(
    "",
    "",
    "data",
    "data:",
    "data: ",
    "data:  two blanks",
    "data: {\"v\":\"wörld 🌍\"}",
    "data:[DONE]",
    "event: ready",
    "event:",
    "event",
    ": keep-alive",
    ":",
    "id: 7",
    "retry: 10",
    "database: no",
    "dat: no",
    " data: no",
    "\uFEFFdata: no"
  ),
  fc.string({ unit: "grapheme", maxLength: 8 }).map((text) => text.replace(/[\r\n]/g, ""))
)

const stream = fc.record({
  bom: fc.boolean(),
  lines: fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r")), { maxLength: 12 }),
  last: line
}).map(({ bom, last, lines }) => (bom ? "\uFEFF" : "") + lines.map(([text, end]) => text + end).join("") + last)

const cutAt = (bytes: Uint8Array, cuts: ReadonlyArray<number>): Array<Uint8Array> => {
  const places = [0, ...[...new Set(cuts)].sort((a, b) => a - b), bytes.length]
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end))
}

describe("makeSseDecoder", () => {
  it("follows the standard for any lines and line ends, in any cut of the bytes", () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(200), { maxLength: 6 }), (text, cuts) => {
        const bytes = encoder.encode(text)
        const expected = interpret(text)
        assert.deepStrictEqual(decode([bytes]).out, expected)
        assert.deepStrictEqual(decode(cutAt(bytes, cuts.map((cut) => Math.min(cut, bytes.length)))).out, expected)
        assert.deepStrictEqual(decode(Array.from(bytes, (byte) => Uint8Array.of(byte))).out, expected)
      }),
      { numRuns: runs(400) }
    )
  })

  it("emits the same events for every two-way cut, also inside characters and between CR and LF", () => {
    const bytes = encoder.encode("\uFEFF: hi\r\nevent: a\r\ndata: é🌍\r\ndata: 2\r\n\r\ndata: b\r\rdata: c\n\n")
    const expected = [event("é🌍\n2", "a"), event("b"), event("c")]
    for (let cut = 0; cut <= bytes.length; cut++) {
      assert.deepStrictEqual(decode([bytes.subarray(0, cut), bytes.subarray(cut)]).out, expected)
    }
  })

  it("drops one byte order mark and keeps a second one, in any cut", () => {
    const bytes = encoder.encode("\uFEFF\uFEFFdata: no\n\ndata: yes\n\n")
    for (let cut = 0; cut <= bytes.length; cut++) {
      assert.deepStrictEqual(decode([bytes.subarray(0, cut), bytes.subarray(cut)]).out, [event("yes")])
    }
  })

  it("delivers a last event that lacks its blank line", () => {
    assert.deepStrictEqual(decodeText("data: 1\n\nevent: x\ndata: 2"), [event("1"), event("2", "x")])
  })

  it("does not deliver an event without data", () => {
    assert.deepStrictEqual(decodeText("event: x\n\ndata: 1\n\n"), [event("1")])
  })

  it("replaces invalid bytes and continues", () => {
    assert.deepStrictEqual(decode([Uint8Array.of(0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0x0a, 0x0a)]).out, [
      event("\uFFFD")
    ])
  })

  it("takes lines of 16 MB, cut into network chunks, in linear time", () => {
    const size = 16 * 1024 * 1024
    const chunk = encoder.encode("x".repeat(64 * 1024))
    const decoder = makeSseDecoder()
    const out: Array<SseEvent> = []
    decoder.push(encoder.encode("data: "), out)
    for (let sent = 0; sent < size; sent += chunk.length) decoder.push(chunk, out)
    decoder.push(encoder.encode("\n\n"), out)
    assert.strictEqual(out[0]?.data.length, size)
    assert.isFalse(decoder.overflowed)
  })

  it("holds few strings for an unfinished event of many short lines and chunks", () => {
    const size = 64 * 1024
    const shapes: { readonly [about: string]: { readonly text: string; readonly chunk: number } } = {
      "lines without a character": { text: "data\n", chunk: 4096 },
      "lines of one character": { text: "data:a\n", chunk: 4096 },
      "lines of one character, each a chunk": { text: "data:a\n", chunk: 7 },
      "lines that come byte by byte": { text: "data: ab\r\n", chunk: 1 },
      "one line that comes byte by byte": { text: "x", chunk: 1 }
    }
    for (const [about, { chunk, text }] of Object.entries(shapes)) {
      const decoder = makeSseDecoder()
      const out: Array<SseEvent> = []
      const bytes = encoder.encode("data: " + text.repeat(size / text.length))
      for (let at = 0; at < bytes.length; at += chunk) decoder.push(bytes.subarray(at, at + chunk), out)
      assert.isAtMost(decoder.heldStrings, 3 * 256 + bytes.length / 256, about)
      decoder.push(encoder.encode("\n\n"), out)
      assert.deepStrictEqual(out, interpret("data: " + text.repeat(size / text.length) + "\n\n"), about)
      assert.isAtMost(decoder.heldStrings, 1, about)
    }
  })

  it("reports a line or event beyond the limit, and emits nothing after it", () => {
    for (const text of ["data: 1\n\ndata: 0123456789abcdef", "data: 1\n\ndata: 012345\ndata: 6789ab\n\n"]) {
      const { out, overflowed } = decode([encoder.encode(text), encoder.encode("\n\ndata: 2\n\n")], 12)
      assert.isTrue(overflowed)
      assert.deepStrictEqual(out, [event("1")])
    }
  })
})

describe("encodeSse", () => {
  it("is decoded to the same event, and comments are ignored", () => {
    const data = fc.string({ unit: "grapheme" })
    fc.assert(fc.property(data, fc.constantFrom(undefined, "delta", "message_stop"), (data, name) => {
      const text = sseComment("keep-alive") + encodeSse(name, data) + sseComment("keep-alive")
      assert.deepStrictEqual(decodeText(text), [event(data.replace(/\r\n|\r/g, "\n"), name)])
    }))
  })
})
