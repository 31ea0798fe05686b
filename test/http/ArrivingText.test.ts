import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { ArrivingText } from "../../src/http/ArrivingText.ts"

const encoder = new TextEncoder()

/** Bytes of text, of what is none, and of both, with or without a mark of their order. */
const anyBytes = fc.array(
  fc.oneof(
    fc.string({ unit: "binary" }).map((text) => encoder.encode(text)),
    fc.constantFrom("\uFEFF", "é", "漢", "🦊").map((text) => encoder.encode(text)),
    fc.uint8Array({ maxLength: 4 })
  )
).map((pieces) => Uint8Array.from(pieces.flatMap((piece) => [...piece])))

describe("text that arrives in pieces", () => {
  it("is what the bytes are as a whole, wherever they are cut", () => {
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

  it("is empty where nothing came", () => {
    assert.strictEqual(new ArrivingText().end(), "")
  })
})
