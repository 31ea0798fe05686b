import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { ArrivingText } from "../../src/http/receiveBody.ts"

const encoder = new TextEncoder()

/** Valid UTF-8, invalid UTF-8, and both, with or without a byte order mark. */
const anyBytes = fc.array(
  fc.oneof(
    fc.string({ unit: "binary" }).map((text) => encoder.encode(text)),
    fc.constantFrom("\uFEFF", "é", "漢", "🦊").map((text) => encoder.encode(text)),
    fc.uint8Array({ maxLength: 4 })
  )
).map((pieces) => Uint8Array.from(pieces.flatMap((piece) => [...piece])))

describe("the decoder of text that arrives in chunks", () => {
  it("returns the text of the whole bytes, wherever the chunks are cut", () => {
    fc.assert(fc.property(anyBytes, fc.array(fc.nat()), (bytes, cuts) => {
      const text = new ArrivingText()
      let at = 0
      for (const cut of cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b)) {
        text.add(bytes.subarray(at, cut))
        at = cut
      }
      text.add(bytes.subarray(at))
      assert.strictEqual(text.end(), new TextDecoder().decode(bytes))
    }))
  })

  it("holds few strings of a text that arrives byte by byte", () => {
    const text = new ArrivingText()
    const bytes = 100_000
    for (let i = 0; i < bytes; i++) text.add(Uint8Array.of(97))
    assert.isAtMost(text.heldStrings, 256 + bytes / 256)
    assert.strictEqual(text.end(), "a".repeat(bytes))
  })

  it("returns an empty text without chunks", () => {
    assert.strictEqual(new ArrivingText().end(), "")
  })
})
