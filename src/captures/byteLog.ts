/**
 * Bytes that grow chunk by chunk, in memory of their own, with when each chunk came.
 *
 * What arrives are views of network buffers, often a few bytes of a large one: they are copied, so that keeping them keeps
 * nothing else alive and a reply of many tiny chunks costs no more than one of few.
 */

/** Bytes by which the memory of a log grows. */
export const blockSize = 16 * 1024
/** Blocks that wait to be used again. */
const mostSpares = 64

/** Where a chunk ends, and when it came: milliseconds of whatever clock the writer goes by. */
export interface Mark {
  readonly end: number
  readonly at: number
}

/** Bytes of memory that a chunk's mark takes. */
export const markSize = 16

export interface ByteLog {
  /** Appends what fits below `limit` bytes in all. */
  readonly push: (chunk: Uint8Array, limit: number, at: number) => void
  /** How many bytes it holds. */
  readonly size: () => number
  /** The first `most` bytes, in an array of their own. */
  readonly bytes: (most: number) => Uint8Array
  /** The chunks' marks, first to last. */
  readonly marks: () => ReadonlyArray<Mark>
  /** Keeps the first `most` bytes, in little more memory than they need. Nothing may be appended afterwards. */
  readonly compact: (most: number) => void
  /** Gives the memory back; the log must not be used afterwards. */
  readonly release: () => void
}

/** Makes empty logs, each of which takes up to a block more than it holds. Blocks of released logs are used again. */
export const makeByteLogs = (): () => ByteLog => {
  const spares: Array<Uint8Array> = []
  return () => {
    let blocks: Array<Uint8Array> = []
    let ends: Array<number> = []
    let times: Array<number> = []
    let size = 0

    const append = (chunk: Uint8Array) => {
      let from = 0
      while (from < chunk.length) {
        const used = size % blockSize
        // Not cleared: only what was written is ever read. Not out of the shared pool, which it would keep alive.
        if (used === 0) blocks.push(spares.pop() ?? Buffer.allocUnsafeSlow(blockSize))
        const count = Math.min(chunk.length - from, blockSize - used)
        blocks[blocks.length - 1]!.set(count === chunk.length ? chunk : chunk.subarray(from, from + count), used)
        size += count
        from += count
      }
    }

    const bytes = (most: number): Uint8Array => {
      const length = Math.min(most, size)
      const whole = Buffer.allocUnsafeSlow(length)
      let at = 0
      for (const block of blocks) {
        if (at >= length) break
        whole.set(block.length <= length - at ? block : block.subarray(0, length - at), at)
        at += block.length
      }
      return whole
    }

    const giveBack = (unused: ReadonlyArray<Uint8Array>) => {
      for (const block of unused) {
        if (spares.length >= mostSpares) return
        if (block.length === blockSize) spares.push(block)
      }
    }

    return {
      push(chunk, limit, at) {
        const room = Math.max(0, limit - size)
        if (room === 0 || chunk.length === 0) return
        append(chunk.length <= room ? chunk : chunk.subarray(0, room))
        ends.push(size)
        times.push(at)
      },
      size: () => size,
      bytes,
      marks: () => ends.map((end, index) => ({ end, at: times[index]! })),
      compact(most) {
        const kept = Math.min(most, size)
        const whole = Math.floor(kept / blockSize)
        const rest = kept - whole * blockSize
        // Whole blocks stay as they are; of the last one there is a copy of its own size, so that it can be used again.
        const last = rest === 0 ? undefined : blocks[whole]!
        const exact = last === undefined || last.length === rest ? last : Buffer.allocUnsafeSlow(rest)
        if (last !== undefined && exact !== last) exact!.set(last.subarray(0, rest))
        giveBack(blocks.slice(exact === last && last !== undefined ? whole + 1 : whole))
        blocks = exact === undefined ? blocks.slice(0, whole) : [...blocks.slice(0, whole), exact]
        const count = ends.findIndex((end) => end >= kept) + 1
        if (count > 0) {
          ends = ends.slice(0, count)
          times = times.slice(0, count)
          ends[count - 1] = kept
        }
        size = kept
      },
      release() {
        giveBack(blocks)
        blocks = []
        ends = []
        times = []
        size = 0
      }
    }
  }
}
