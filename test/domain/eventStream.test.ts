/** AWS's binary event stream: frames in every cut, wrong checksums, and exceptions. */
import { assert, describe, it } from "@effect/vitest"
import { crc32 as crc32OfNode } from "node:zlib"
import { crc32, EventStream } from "../../src/domain/stream/eventStream.ts"
import { chunkFrame, exceptionFrame, frame, framesOf } from "../../src/testing/clouds/eventFrames.ts"

const read = (pieces: ReadonlyArray<Uint8Array>) => {
  const stream = new EventStream()
  const out: Array<Uint8Array> = []
  for (const piece of pieces) stream.push(piece, out)
  stream.end()
  return { isBroken: stream.isBroken, text: Buffer.concat(out).toString() }
}

const events = ["{\"type\":\"ping\"}", "{\"type\":\"text\",\"text\":\"ä🙂\"}"]
const whole = Buffer.concat([
  frame({ ":message-type": "event", ":event-type": "initial-response" }, "{}"),
  ...events.map(chunkFrame)
])
const text = events.map((event) => `data: ${event}\n\n`).join("")

describe("the binary event stream of AWS", () => {
  it("has the events of the model in every cut", () => {
    for (let cut = 0; cut <= whole.length; cut++) {
      assert.deepStrictEqual(read([whole.subarray(0, cut), whole.subarray(cut)]), { isBroken: false, text })
    }
    assert.deepStrictEqual(read(Array.from(whole, (byte) => Uint8Array.of(byte))), { isBroken: false, text })
    assert.strictEqual(read([framesOf(text)]).text, text)
  })

  it("says an exception as an event of an error", () => {
    const { isBroken, text: said } = read([exceptionFrame("throttlingException", "Too many tokens")])
    assert.isFalse(isBroken)
    assert.strictEqual(
      said,
      "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"throttlingException\",\"message\":\"Too many tokens\"}}\n\n"
    )
  })

  it("is broken by any wrong byte, and says nothing of the message that has it", () => {
    const one = chunkFrame(events[0]!)
    for (let at = 0; at < one.length; at++) {
      const wrong = Buffer.from(one)
      wrong[at]! ^= 1
      assert.deepStrictEqual(read([wrong]), { isBroken: true, text: "" }, `byte ${at}`)
    }
  })

  it("is broken where it ends within a message, or a message is longer than any may be", () => {
    assert.deepStrictEqual(read([whole, chunkFrame("{}").subarray(0, 20)]), { isBroken: true, text })
    const prelude = Buffer.alloc(12)
    prelude.writeUInt32BE(0x7fffffff, 0)
    prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8)
    assert.isTrue(read([prelude]).isBroken)
  })

  it("has the checksum CRC-32", () => {
    assert.strictEqual(crc32(Buffer.from(text)), crc32OfNode(text))
  })
})
