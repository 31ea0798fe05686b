/**
 * Bytes that grow up to a limit, in memory of their own.
 *
 * What arrives are views of network buffers, often a few bytes of a large one: they are copied, so that keeping them keeps
 * nothing else alive and a reply of many tiny chunks costs no more than one of few.
 */

const blockSize = 16 * 1024
/** Blocks that wait to be used again. */
const mostSpares = 64

export interface ByteLog {
  /** Appends what fits below `limit` bytes in all; false where not all of it did. */
  readonly push: (chunk: Uint8Array, limit: number) => boolean
  /** How many bytes it holds. */
  readonly size: () => number
  /** All bytes, in an array of their own. */
  readonly bytes: () => Uint8Array
  /** Gives the memory back; the log must not be used afterwards. */
  readonly release: () => void
}

/** Makes empty logs, each of which takes up to 16 KiB more than it holds. Blocks of released logs are used again. */
export const makeByteLogs = (): () => ByteLog => {
  const spares: Array<Uint8Array> = []
  return () => {
    const blocks: Array<Uint8Array> = []
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

    return {
      push(chunk, limit) {
        const room = Math.max(0, limit - size)
        append(chunk.length <= room ? chunk : chunk.subarray(0, room))
        return chunk.length <= room
      },
      size: () => size,
      bytes: () => Buffer.concat(blocks, size),
      release() {
        spares.push(...blocks.slice(0, mostSpares - spares.length))
      }
    }
  }
}
