/**
 * Bytes that grow up to a limit, in memory of their own.
 *
 * What arrives are views of network buffers, often a few bytes of a large one: they are copied, so that keeping them keeps
 * nothing else alive and a reply of many tiny chunks costs no more than one of few.
 */

const firstBlock = 4 * 1024
const largestBlock = 256 * 1024

export interface ByteLog {
  /** Appends what fits below `limit` bytes in all; false where not all of it did. */
  readonly push: (chunk: Uint8Array, limit: number) => boolean
  /** All bytes, in an array of their own. */
  readonly bytes: () => Uint8Array
}

/** Starts an empty log. Takes at most twice the memory of what it holds, plus 4 KiB. */
export const makeByteLog = (): ByteLog => {
  const full: Array<Uint8Array> = []
  let block = new Uint8Array(0)
  let used = 0
  let before = 0

  const append = (chunk: Uint8Array) => {
    let from = 0
    while (from < chunk.length) {
      if (used === block.length) {
        if (used > 0) full.push(block)
        before += used
        block = new Uint8Array(Math.min(largestBlock, Math.max(firstBlock, before)))
        used = 0
      }
      const count = Math.min(chunk.length - from, block.length - used)
      block.set(count === chunk.length ? chunk : chunk.subarray(from, from + count), used)
      used += count
      from += count
    }
  }

  return {
    push(chunk, limit) {
      const room = Math.max(0, limit - before - used)
      if (chunk.length <= room) {
        append(chunk)
        return true
      }
      append(chunk.subarray(0, room))
      return false
    },
    bytes: () => Buffer.concat([...full, block.subarray(0, used)])
  }
}
