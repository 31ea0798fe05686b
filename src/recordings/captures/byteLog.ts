/**
 * Bytes that grow chunk by chunk, with the time at which each chunk came.
 *
 * Chunks of bytes are views of network buffers, often a few bytes of a large one: they are copied into blocks, so that
 * nothing else stays alive and many tiny chunks cost no more than a few large ones. Texts exist anyway: the log refers to
 * them until a block is full, and for good where they are short and ASCII. Long texts become blocks, which are used again
 * and again: as strings they would live until the next full collection, and bring it forward.
 */

/** Bytes by which the memory of a log grows, at most. */
export const blockSize = 16 * 1024
/** Bytes by which it grows first, at least: each block is about twice as large as the one before. */
const smallestBlock = 256
/** Bytes of blocks that wait to be used again, at most: what a few requests with large bodies take. */
const mostSpareBytes = 8 * 1024 * 1024

/** Where a chunk ends, and when it came: milliseconds of whatever clock the writer goes by. */
export interface Mark {
  readonly end: number
  readonly at: number
}

/** Bytes of memory that a chunk's mark takes. */
export const markSize = 16

/** Bytes of memory that a text takes beside its characters. */
const textSize = 32

/** Bytes of memory that a log may take beside its marks while `size` bytes are in it and more may come. */
export const openSize = (size: number): number => size + Math.min(size + smallestBlock, blockSize)

/** A chunk as bytes, or as text that stands for its UTF-8. */
export type Chunk = Uint8Array | string

const encoder = new TextEncoder()

/** The size of a block that can be used again, which has room for `bytes` where any has. */
const reusableSize = (bytes: number): number => Math.min(blockSize, 1 << (32 - Math.clz32(bytes - 1)))

/** Blocks of released logs, to be used again. */
export class Spares {
  readonly #bySize = new Map<number, Array<Buffer>>()
  #bytes = 0

  take(size: number): Buffer | undefined {
    const block = this.#bySize.get(size)?.pop()
    if (block !== undefined) this.#bytes -= size
    return block
  }

  give(blocks: ReadonlyArray<Buffer>): void {
    for (const block of blocks) {
      const { length } = block
      if (length < smallestBlock || length !== reusableSize(length) || this.#bytes + length > mostSpareBytes) continue
      const alike = this.#bySize.get(length)
      if (alike === undefined) this.#bySize.set(length, [block])
      else alike.push(block)
      this.#bytes += length
    }
  }
}

/** Its writer bounds it: `push` appends up to a limit. */
export class ByteLog {
  readonly #spares: Spares
  /** All but the last one are full. */
  #blocks: Array<Buffer> = []
  /** Bytes that the last block has room for. */
  #room = 0
  /** What comes behind the blocks, at most a block's worth. */
  #texts: Array<string> = []
  #textBytes = 0
  #textLength = 0
  #ends: Array<number> = []
  #times: Array<number> = []
  #size = 0
  #isCompact = false

  constructor(spares: Spares) {
    this.#spares = spares
  }

  /** How many bytes it holds. */
  get size(): number {
    return this.#size
  }

  /** Appends what fits below `limit` bytes in all; the chunk has `length` bytes. */
  push(chunk: Chunk, length: number, limit: number, at: number): void {
    const room = Math.max(0, limit - this.#size)
    if (room === 0 || length === 0) return
    if (typeof chunk === "string" && length <= room) {
      this.#texts.push(chunk)
      this.#textBytes += length
      this.#textLength += chunk.length
      this.#size += length
      if (this.#textBytes + textSize * this.#texts.length >= blockSize) this.#encode()
    } else {
      this.#encode()
      const fitting = Math.min(length, room)
      if (typeof chunk === "string") this.#appendText(chunk, fitting)
      else this.#append(chunk.length === fitting ? chunk : chunk.subarray(0, fitting), fitting)
      this.#size += fitting
    }
    this.#ends.push(this.#size)
    this.#times.push(at)
  }

  /** The first `most` bytes, in an array of their own. */
  bytes(most: number): Uint8Array {
    this.#encode()
    const length = Math.min(most, this.#size)
    const whole = Buffer.allocUnsafeSlow(length)
    let at = 0
    for (const block of this.#blocks) {
      if (at >= length) break
      whole.set(block.length <= length - at ? block : block.subarray(0, length - at), at)
      at += block.length
    }
    return whole
  }

  /** The chunks' marks, first to last. */
  marks(): ReadonlyArray<Mark> {
    return this.#ends.map((end, index) => ({ end, at: this.#times[index]! }))
  }

  /** Keeps the first `most` bytes, in little more memory than they need. Nothing may be appended afterwards. */
  compact(most: number): void {
    if (this.#isCompact && most >= this.#size) return
    this.#isCompact = true
    const size = Math.min(most, this.#size)
    // ASCII takes one byte a character as a string too.
    if (this.#textLength === this.#textBytes && size === this.#size) {
      if (this.#texts.length > 1) this.#texts = [this.#texts.join("")]
      if (this.#blocks.length === 0) return
    } else this.#encode()
    const blocks: Array<Buffer> = []
    let kept = 0
    const inBlocks = size - this.#textBytes
    for (const block of this.#blocks) {
      const rest = inBlocks - kept
      // Of the last block there is a copy of its own size, so that it can be used again.
      const exact = rest >= block.length ? block : rest === 0 ? undefined : Buffer.allocUnsafeSlow(rest)
      if (exact !== block) {
        exact?.set(block.subarray(0, rest))
        this.#spares.give([block])
      }
      if (exact !== undefined) blocks.push(exact)
      kept += exact?.length ?? 0
    }
    this.#blocks = blocks
    this.#room = 0
    if (size === this.#size) return
    const count = this.#ends.findIndex((end) => end >= size) + 1
    this.#ends = this.#ends.slice(0, count)
    this.#times = this.#times.slice(0, count)
    if (count > 0) this.#ends[count - 1] = size
    this.#size = size
  }

  /** Gives the memory back; the log must not be used afterwards. */
  release(): void {
    this.#spares.give(this.#blocks)
    this.#blocks = []
    this.#room = 0
    this.#texts = []
    this.#textBytes = 0
    this.#textLength = 0
    this.#ends = []
    this.#times = []
    this.#size = 0
  }

  #encode(): void {
    if (this.#texts.length === 0) return
    const texts = this.#texts
    let coming = this.#textBytes
    this.#texts = []
    this.#textBytes = 0
    this.#textLength = 0
    for (const text of texts) {
      if (this.#room === 0) this.#grow(coming)
      const block = this.#blocks[this.#blocks.length - 1]!
      // A character takes three bytes at most. The last text fits where what is known to come does.
      if (3 * text.length <= this.#room || coming <= this.#room) {
        const length = block.write(text, block.length - this.#room)
        this.#room -= length
        coming -= length
      } else {
        coming -= this.#appendText(text, coming)
      }
    }
  }

  /** Encodes the first `most` bytes of a text behind what is there, and returns how many there were. */
  #appendText(text: string, most: number): number {
    let rest = text
    let left = most
    while (rest !== "" && left > 0) {
      if (this.#room === 0) this.#grow(left)
      const block = this.#blocks[this.#blocks.length - 1]!
      const start = block.length - this.#room
      const { read, written } = encoder.encodeInto(rest, block.subarray(start, start + Math.min(this.#room, left)))
      this.#room -= written
      left -= written
      if (read > 0) {
        rest = rest.slice(read)
      } else {
        // The next character is longer than the rest of the block, or of what is kept.
        const character = String.fromCodePoint(rest.codePointAt(0)!)
        const bytes = Buffer.from(character)
        const fitting = Math.min(bytes.length, left)
        this.#append(bytes.subarray(0, fitting), left)
        left -= fitting
        rest = rest.slice(character.length)
      }
    }
    return most - left
  }

  /** Copies bytes behind what is there; `coming` says how many are known to come, they among them. */
  #append(bytes: Uint8Array, coming: number): void {
    let from = 0
    while (from < bytes.length) {
      if (this.#room === 0) this.#grow(coming - from)
      const block = this.#blocks[this.#blocks.length - 1]!
      const count = Math.min(bytes.length - from, this.#room)
      block.set(count === bytes.length ? bytes : bytes.subarray(from, from + count), block.length - this.#room)
      this.#room -= count
      from += count
    }
  }

  #grow(coming: number): void {
    const last = this.#blocks.at(-1)
    // Of a small reply that comes at once nothing more comes: its block is as large as it is.
    const size = last === undefined && coming >= smallestBlock
      ? Math.min(blockSize, coming)
      : reusableSize(Math.max(coming, last === undefined ? smallestBlock : last.length + 1))
    // Not cleared: only what was written is ever read. Not out of the shared pool, which it would keep alive.
    const block = this.#spares.take(size) ?? Buffer.allocUnsafeSlow(size)
    this.#blocks.push(block)
    this.#room = size
  }
}
