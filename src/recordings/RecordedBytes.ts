/**
 * The bytes of bodies, recorded once for captures and request records: `ByteLog` stores the chunks of a body with their times,
 * `RecordedBody` shares a log among its holders, and each `Hold` keeps a beginning of it within its own limit.
 *
 * Chunks of bytes are views of network buffers, often a few bytes of a large one. They are copied into blocks, so that the
 * buffers are freed and many small chunks cost no more than a few large ones. Chunks of text are referenced until they fill a
 * block; short ASCII texts stay references. Blocks are pooled, because long-lived strings would stay until the next full
 * collection and bring it forward.
 */

/** Largest block, in bytes. */
export const blockSize = 16 * 1024
/** Smallest block, in bytes; each block of a log is about twice as large as the one before. */
const smallestBlock = 256
/** Largest sum of pooled blocks, in bytes: enough for a few requests with large bodies. */
const mostSpareBytes = 8 * 1024 * 1024

/** The end position of a chunk, and its arrival in milliseconds of the writer's clock. */
export interface Mark {
  readonly end: number
  readonly at: number
}

/** Memory of a mark, in bytes. */
export const markSize = 16

/** Memory of a text beside its characters, in bytes. */
const textSize = 32

/** Upper bound of a growing log's memory beside its marks, in bytes, for `size` bytes of content. */
export const openSize = (size: number): number => size + Math.min(size + smallestBlock, blockSize)

/** A chunk: bytes, or a text that is stored as UTF-8. */
export type Chunk = Uint8Array | string

const encoder = new TextEncoder()

/** The size of the smallest poolable block for `bytes`; the largest block if no block is large enough. */
const reusableSize = (bytes: number): number => Math.min(blockSize, 1 << (32 - Math.clz32(bytes - 1)))

/** A pool of blocks from released logs, bounded by `mostSpareBytes`. */
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

/** An append-only log of bytes; the limit that `push` takes bounds it. */
export class ByteLog {
  readonly #spares: Spares
  /** All blocks but the last are full. */
  #blocks: Array<Buffer> = []
  /** Free bytes of the last block. */
  #room = 0
  /** Texts behind the blocks, together less than a block. */
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

  /** Bytes in the log. */
  get size(): number {
    return this.#size
  }

  /** Appends a chunk of `length` bytes, truncated so that the log has at most `limit` bytes. */
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

  /** Copies the first `most` bytes. */
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

  /** The marks of all chunks, in order. */
  marks(): ReadonlyArray<Mark> {
    return this.#ends.map((end, index) => ({ end, at: this.#times[index]! }))
  }

  /** Truncates to the first `most` bytes and frees unused memory. Nothing may be appended afterwards. */
  compact(most: number): void {
    if (this.#isCompact && most >= this.#size) return
    this.#isCompact = true
    const size = Math.min(most, this.#size)
    // An ASCII string takes one byte per character, as its UTF-8 does.
    if (this.#textLength === this.#textBytes && size === this.#size) {
      if (this.#texts.length > 1) this.#texts = [this.#texts.join("")]
      if (this.#blocks.length === 0) return
    } else this.#encode()
    const blocks: Array<Buffer> = []
    let kept = 0
    const inBlocks = size - this.#textBytes
    for (const block of this.#blocks) {
      const rest = inBlocks - kept
      // The last block is replaced by a copy of exact size and returned to the pool.
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

  /** Returns the blocks to the pool; the log must not be used afterwards. */
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
      // A UTF-16 unit takes at most three bytes. If all remaining texts fit, so does this one.
      if (3 * text.length <= this.#room || coming <= this.#room) {
        const length = block.write(text, block.length - this.#room)
        this.#room -= length
        coming -= length
      } else {
        coming -= this.#appendText(text, coming)
      }
    }
  }

  /** Appends the first `most` bytes of a text, and returns how many were appended. */
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
        // The next character does not fit into the block or the limit: its bytes are split.
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

  /** Appends bytes; `coming` is the known number of bytes to come, these included. */
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
    // A small body usually arrives in one chunk: its block has its exact size.
    const size = last === undefined && coming >= smallestBlock
      ? Math.min(blockSize, coming)
      : reusableSize(Math.max(coming, last === undefined ? smallestBlock : last.length + 1))
    // Not zeroed: only written bytes are read. `allocUnsafe` would keep a slab of node's shared pool alive.
    const block = this.#spares.take(size) ?? Buffer.allocUnsafeSlow(size)
    this.#blocks.push(block)
    this.#room = size
  }
}

/** The kept bytes of a body with the times of its chunks. */
export interface RecordedBytes {
  readonly bytes: Uint8Array
  /** Times in monotonic milliseconds. */
  readonly marks: ReadonlyArray<Mark>
  readonly truncated: boolean
  readonly contentType: string | undefined
}

/** The rule of a hold: how much of a body it keeps. */
export interface HoldLimit {
  /** Called for every chunk: returns how many of `next` bytes, in `chunks` chunks, may be kept. */
  readonly allow: (next: number, chunks: number) => number
  /** Called when the body is complete. */
  readonly complete: () => void
}

/** A holder's beginning of a recorded body. */
export class Hold {
  kept = 0
  truncated = false
  readonly limit: HoldLimit
  readonly #body: RecordedBody

  constructor(body: RecordedBody, limit: HoldLimit) {
    this.#body = body
    this.limit = limit
  }

  /** Copies the kept bytes. */
  bytes(): Uint8Array {
    return this.#body.log.bytes(this.kept)
  }

  /** The kept bytes as text, without a truncated last character. */
  text(): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.bytes(), { stream: true })
  }

  /** The marks of the kept bytes. */
  marks(): ReadonlyArray<Mark> {
    const marks: Array<Mark> = []
    for (const { at, end } of this.#body.log.marks()) {
      if ((marks.at(-1)?.end ?? 0) >= this.kept) break
      marks.push({ at, end: Math.min(end, this.kept) })
    }
    return marks
  }

  /** Drops the kept bytes. */
  release(): void {
    this.#body.drop(this)
    this.kept = 0
  }
}

/** The bytes of a body, shared by its holds; without holds nothing is stored. */
export class RecordedBody {
  readonly log: ByteLog
  readonly #holds: Array<Hold> = []
  #received = 0
  #chunks = 0
  #closed = false

  constructor(spares: Spares) {
    this.log = new ByteLog(spares)
  }

  hold(limit: HoldLimit): Hold {
    const hold = new Hold(this, limit)
    this.#holds.push(hold)
    return hold
  }

  drop(hold: Hold): void {
    const place = this.#holds.indexOf(hold)
    if (place === -1) return
    this.#holds.splice(place, 1)
    this.#compact()
  }

  push(chunk: Chunk, at: number): void {
    const length = typeof chunk === "string" ? Buffer.byteLength(chunk) : chunk.length
    const received = this.#received += length
    const chunks = ++this.#chunks
    let most = 0
    for (const hold of this.#holds) {
      if (hold.truncated) continue
      const allowed = hold.limit.allow(received, chunks)
      hold.kept = Math.max(hold.kept, Math.min(received, allowed))
      hold.truncated = allowed < received
      if (hold.kept > most) most = hold.kept
    }
    if (most > this.log.size) this.log.push(chunk, length, most, at)
  }

  /** Ends the body and frees unused memory. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#compact()
    for (const { limit } of this.#holds) limit.complete()
  }

  #compact(): void {
    if (this.#holds.length === 0) this.log.release()
    else if (this.#closed) this.log.compact(this.#holds.reduce((most, { kept }) => Math.max(most, kept), 0))
  }
}
