import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { cutFrames } from "../../src/recordings/frames.ts"

const piece = fc.constantFrom("data: one", "data: 多字节 ✓", "event: x", ": note", "id: 7", "", "data: {\"a\":1}")
const ending = fc.constantFrom("\n", "\r\n", "\r")

/** Streams of events with any line endings, blank lines between them, and possibly a truncated end. */
const stream = fc.array(
  fc.record({
    lines: fc.array(piece, { minLength: 1, maxLength: 4 }),
    end: ending,
    blanks: fc.nat(2),
    last: fc.boolean()
  }),
  { maxLength: 8 }
).map((events) =>
  events.map(({ blanks, end, last, lines }, index) =>
    lines.map((line) => line + end).join("") + (last && index === events.length - 1 ? "" : end.repeat(1 + blanks))
  ).join("")
)

/** Chunks that end at the given places, 1.5 ms apart. */
const inChunks = (bytes: Uint8Array, cuts: ReadonlyArray<number>) =>
  [...new Set([...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].filter((end) => end > 0)
    .sort((a, b) => a - b).map((end, index) => ({ end, at: 1_000 + index * 1.5 }))

const record = (bytes: Uint8Array, cuts: ReadonlyArray<number>, contentType = "text/event-stream; charset=utf-8") => ({
  bytes,
  marks: inChunks(bytes, cuts),
  truncated: false,
  contentType
})

describe("frames", () => {
  it("are the stream split after each event, however its chunks were cut", () => {
    fc.assert(fc.property(stream, fc.array(fc.nat(400)), (text, cuts) => {
      const bytes = Buffer.from(text)
      const recorded = record(bytes, cuts)
      const frames = cutFrames(recorded, 1_000)
      assert.strictEqual(frames.map(({ data }) => data).join(""), text)
      assert.deepStrictEqual(
        frames.map(({ data }) => data),
        cutFrames(record(bytes, []), 1_000).map(({ data }) => data)
      )
      for (const [index, { data }] of frames.entries()) {
        // Each frame is one event: a blank line follows lines only at its end.
        if (index < frames.length - 1) assert.match(data, /^(?:\r\n|\r|\n)*[^\r\n][^]*?(?:\r\n|\n|\r(?!\n)){2}$/)
        assert.notMatch(data, /[^\r\n](?:\r\n\r\n|\n\n|\r\r)[^]*[^\r\n]/)
      }
    }))
  })

  it("have the time of the chunk that completed them, in ascending order", () => {
    fc.assert(fc.property(stream, fc.array(fc.nat(400)), (text, cuts) => {
      const recorded = record(Buffer.from(text), cuts)
      let end = 0
      let last = 0
      for (const { at_ms, data } of cutFrames(recorded, 1_000)) {
        end += Buffer.byteLength(data)
        const completed = recorded.marks.find((mark) => mark.end >= end)!
        assert.strictEqual(at_ms, Math.round(10 * (completed.at - 1_000)) / 10)
        assert.isAtLeast(at_ms, last)
        last = at_ms
      }
    }))
  })

  it("are one for a whole body and zero for an empty one", () => {
    const body = Buffer.from("{\n\n\"a\": 1}")
    assert.deepStrictEqual(cutFrames(record(body, [3], "application/json"), 999), [
      { at_ms: 2.5, data: "{\n\n\"a\": 1}" }
    ])
    assert.deepStrictEqual(cutFrames(record(Buffer.from(""), []), 1_000), [])
  })
})
