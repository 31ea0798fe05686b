/**
 * Frames that wait for one client, bounded in bytes: who writes waits for room, who reads gets what there is, in pieces that
 * are never long, so that a client which reads slowly is seen to read.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Held } from "../config/CurrentLimits.ts"

/** Bytes that are given to the reader at once, apart from a single frame that is longer. */
const mostAtOnce = 64 * 1024

const encoder = new TextEncoder()

/** One writer, one reader. */
export class FrameQueue {
  readonly #limit: () => number
  readonly #held: Held
  readonly #pieces: Array<string> = []
  readonly #sizes: Array<number> = []
  /** The first piece that was not taken. */
  #first = 0
  #bytes = 0
  #ended = false
  /** Whether the sum over all requests has room. */
  #roomy = true
  #readable: Deferred.Deferred<void> | undefined
  #writable: Deferred.Deferred<void> | undefined

  /** `limit`: bytes that may wait before the writer does; `held` counts them with those of all requests. */
  constructor(limit: () => number, held: Held) {
    this.#limit = limit
    this.#held = held
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#bytes
  }

  /** Adds frames. */
  push(frames: string): void {
    if (frames === "") return
    const size = Buffer.byteLength(frames)
    this.#pieces.push(frames)
    this.#sizes.push(size)
    this.#bytes += size
    this.#roomy = this.#held.add(size)
    this.#wake()
  }

  /** Says that nothing more comes. */
  end(): void {
    this.#ended = true
    this.#wake()
  }

  /** Waits until there is room, which is at once where the client keeps up. */
  room(): Effect.Effect<void> {
    if (this.#hasRoom) return Effect.void
    const writable = this.#writable ??= Deferred.makeUnsafe<void>()
    return Deferred.await(writable)
  }

  /** Waits for frames and takes some, as bytes; `undefined` after the end. */
  take(): Effect.Effect<Uint8Array | undefined> {
    return Effect.suspend(() => {
      if (this.#first < this.#pieces.length) return Effect.succeed(this.#takeNow())
      if (this.#ended) return Effect.undefined
      const readable = this.#readable ??= Deferred.makeUnsafe<void>()
      return Effect.flatMap(Deferred.await(readable), () => this.take())
    })
  }

  get #hasRoom(): boolean {
    return this.#bytes === 0 || (this.#roomy && this.#bytes < this.#limit())
  }

  #takeNow(): Uint8Array {
    const from = this.#first
    let size = this.#sizes[this.#first++]!
    while (this.#first < this.#pieces.length && size + this.#sizes[this.#first]! <= mostAtOnce) {
      size += this.#sizes[this.#first++]!
    }
    const text = this.#first === from + 1 ? this.#pieces[from]! : this.#pieces.slice(from, this.#first).join("")
    this.#bytes -= size
    this.#held.add(-size)
    if (this.#first === this.#pieces.length) {
      this.#pieces.length = 0
      this.#sizes.length = 0
      this.#first = 0
    } else {
      // What was sent must not be kept until the rest is.
      this.#pieces.fill("", from, this.#first)
    }
    if (this.#writable !== undefined && this.#hasRoom) {
      const writable = this.#writable
      this.#writable = undefined
      Deferred.doneUnsafe(writable, Exit.void)
    }
    return encoder.encode(text)
  }

  #wake(): void {
    if (this.#readable === undefined) return
    const readable = this.#readable
    this.#readable = undefined
    Deferred.doneUnsafe(readable, Exit.void)
  }
}
