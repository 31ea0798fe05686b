/**
 * The bytes of one body, kept once for all who hold them: a capture, and the record of the request. Each holds as much of
 * their beginning as its own limit allows.
 */
import { ByteLog, type Chunk, type Mark, type Spares } from "./byteLog.ts"

/** How many bytes a hold may have. */
export interface HoldLimit {
  /** Asked at every chunk, where the hold could have `next` bytes in `chunks` chunks. */
  readonly allow: (next: number, chunks: number) => number
}

/** One who holds the beginning of the bytes. */
export class Hold {
  kept = 0
  truncated = false
  readonly limit: HoldLimit
  readonly #bytes: RoundBytes

  constructor(bytes: RoundBytes, limit: HoldLimit) {
    this.#bytes = bytes
    this.limit = limit
  }

  /** What it has, in an array of its own. */
  bytes(): Uint8Array {
    return this.#bytes.log.bytes(this.kept)
  }

  /** What it has as text, without a character that is cut off at the end. */
  text(): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.bytes(), { stream: true })
  }

  /** Where the chunks of what it has end, and when they came. */
  marks(): ReadonlyArray<Mark> {
    const marks: Array<Mark> = []
    for (const { at, end } of this.#bytes.log.marks()) {
      if ((marks.at(-1)?.end ?? 0) >= this.kept) break
      marks.push({ at, end: Math.min(end, this.kept) })
    }
    return marks
  }

  /** Lets go of it. */
  release(): void {
    this.#bytes.left(this)
    this.kept = 0
  }
}

/** The bytes of a body that is about to come. */
export class RoundBytes {
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

  left(hold: Hold): void {
    const place = this.#holds.indexOf(hold)
    if (place === -1) return
    this.#holds.splice(place, 1)
    this.#tidy()
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

  /** No more comes: what is held takes no more memory than it needs from now on. */
  close(): void {
    this.#closed = true
    this.#tidy()
  }

  #tidy(): void {
    if (this.#holds.length === 0) this.log.release()
    else if (this.#closed) this.log.compact(this.#holds.reduce((most, { kept }) => Math.max(most, kept), 0))
  }
}
