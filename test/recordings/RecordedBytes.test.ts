/** Logs of bytes under generated chunks return what was pushed, within the reserved memory. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { blockSize, ByteLog, type Chunk, openSize, Spares } from "../../src/recordings/RecordedBytes.ts"
import { runs } from "../support/effort.ts"

const words = fc.oneof(fc.constantFrom("a", "é", "你好", "🙂", "\ud83d", "data: {}\n\n"), fc.string({ unit: "binary" }))
const text = fc.tuple(words, fc.nat(3_000)).map(([word, times]) => word.repeat(times))
const bytes = fc.tuple(fc.nat(255), fc.nat(40_000)).map(([byte, length]) => new Uint8Array(length).fill(byte))
const chunks = fc.array(fc.oneof({ weight: 3, arbitrary: fc.oneof(words, text) }, bytes), { maxLength: 40 })

const bytesOf = (chunk: Chunk): Buffer => typeof chunk === "string" ? Buffer.from(chunk) : Buffer.from(chunk)

describe("a log of bytes", () => {
  it("returns texts as UTF-8 and bytes unchanged, up to its limit, including in reused blocks", () => {
    const spares = new Spares()
    fc.assert(
      fc.property(chunks, fc.nat(200_000), fc.nat(200_000), fc.boolean(), (given, limit, kept, looks) => {
        const log = new ByteLog(spares)
        let expected = Buffer.alloc(0)
        const ends: Array<number> = []
        for (const [at, chunk] of given.entries()) {
          const encoded = bytesOf(chunk)
          log.push(chunk, encoded.length, limit, at)
          const next = Buffer.concat([expected, encoded]).subarray(0, limit)
          if (next.length > expected.length) ends.push(next.length)
          expected = next
          assert.strictEqual(log.size, expected.length)
          if (looks) assert.strictEqual(Buffer.compare(log.bytes(log.size), expected), 0)
        }
        assert.deepStrictEqual(log.marks().map(({ end }) => end), ends)
        log.compact(kept)
        const left = expected.subarray(0, kept)
        assert.strictEqual(Buffer.compare(log.bytes(kept), left), 0)
        assert.strictEqual(log.marks().at(-1)?.end ?? 0, left.length)
        log.release()
        assert.strictEqual(log.size, 0)
      }),
      { numRuns: runs(150) }
    )
  })

  it("takes no more memory than was reserved, and no block for a short ASCII text", () => {
    const allocate = Buffer.allocUnsafeSlow
    let taken = 0
    Buffer.allocUnsafeSlow = (size) => {
      taken += size
      return allocate(size)
    }
    try {
      const log = new ByteLog(new Spares())
      for (let size = 0; size < 100_000; size += 100) {
        log.push(new Uint8Array(100), 100, Infinity, 0)
        assert.isAtMost(taken, openSize(log.size))
      }
      taken = 0
      const small = new ByteLog(new Spares())
      small.push("é".repeat(350), 700, Infinity, 0)
      small.push("y".repeat(300), 300, Infinity, 0)
      small.compact(Infinity)
      assert.strictEqual(taken, 1_000)
      taken = 0
      const ascii = new ByteLog(new Spares())
      ascii.push("x".repeat(700), 700, Infinity, 0)
      ascii.push("y".repeat(300), 300, Infinity, 0)
      ascii.compact(Infinity)
      assert.strictEqual(taken, 0)
      taken = 0
      const many = new ByteLog(new Spares())
      for (let i = 0; i < 4 * blockSize; i++) many.push("x", 1, Infinity, 0)
      assert.isAtLeast(taken, 3 * blockSize)
    } finally {
      Buffer.allocUnsafeSlow = allocate
    }
  })
})
