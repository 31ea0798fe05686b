import { assert, describe, it } from "@effect/vitest"
import { chunkDecoder, recordedForm } from "../../../src/contracts/chat/readReply.ts"
import { defaultLimits } from "../../../src/domain/limits.ts"
import type { UpstreamEvent } from "../../../src/domain/UpstreamEvent.ts"
import { RequestBudget } from "../../../src/upstream/budget.ts"
import { replyDecoder } from "../../../src/upstream/decodeBody.ts"

const encoder = new TextEncoder()

/** A body that comes in these pieces: what it yields, and for how long silence is waited out after each piece that says so. */
const decode = (pieces: Iterable<Uint8Array>) => {
  const settled: Array<number | undefined> = []
  const budget = new RequestBudget(defaultLimits, { monotonicTimeNanosUnsafe: () => 0n })
  const decoder = replyDecoder(
    chunkDecoder({ ...recordedForm(), choices: 1 }),
    (millis) => settled.push(millis),
    budget,
    undefined
  )
  const out: Array<UpstreamEvent> = []
  for (const piece of pieces) decoder.push(piece, out)
  decoder.end(out)
  return { out, settled, failure: decoder.failure()?.kind }
}

const whole = JSON.stringify({ choices: [{ message: { content: "Hällo" }, finish_reason: "stop" }] })
const frame = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ delta, finish_reason }] })}\n\n`

describe("the decoder of a reply's body", () => {
  it("distinguishes one object from a stream by its first byte, after a byte order mark too, in every cut", () => {
    const expected = decode([encoder.encode(whole)]).out
    assert.deepInclude(expected, { _tag: "UpstreamText", text: "Hällo" })
    for (const before of ["", "\uFEFF", "\uFEFF\r\n ", "\n"]) {
      for (const body of [whole, frame({ content: "Hällo" }, "stop") + "data: [DONE]\n\n"]) {
        const bytes = encoder.encode(before + body)
        const all = Array.from(bytes, (_, at) => [bytes.subarray(0, at), bytes.subarray(at)])
        for (const pieces of [...all, Array.from(bytes, (byte) => Uint8Array.of(byte))]) {
          const { failure, out } = decode(pieces)
          assert.deepStrictEqual({ failure, out }, { failure: undefined, out: expected })
        }
      }
    }
  })

  it("is empty where nothing but blanks and a mark came", () => {
    for (const body of ["", "\uFEFF", "\uFEFF \n"]) assert.strictEqual(decode([encoder.encode(body)]).failure, "empty")
  })

  it("waits for little after the finish, for less after the sentinel, and for a reply that goes on as ever", () => {
    const pieces = [
      frame({ content: "a" }),
      frame({ content: "b" }, "partial"),
      frame({}, "partial"),
      frame({ content: "c" }),
      frame({}, "stop"),
      "data: [DONE]\n\n"
    ]
    assert.deepStrictEqual(decode(pieces.map((piece) => encoder.encode(piece))).settled, [2_000, undefined, 2_000, 100])
  })
})
