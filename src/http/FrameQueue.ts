/**
 * Frames that wait for one client: who writes sees how much waits, who reads gets what there is, in pieces that are never
 * long, so that a client which reads slowly is seen to read. One that takes nothing for too long is left.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import type { Deadline, Deadlines } from "../clock/Deadlines.ts"
import type { ClientWriter } from "./ClientWriter.ts"

/** Bytes that are given to the reader at once, apart from a single piece that is longer. */
const mostAtOnce = 64 * 1024

const nothing = new Uint8Array()

/** One writer, one reader. */
export class FrameQueue implements ClientWriter {
  private readonly pieces: Array<Uint8Array> = []
  /** The first piece that was not taken. */
  private first = 0
  private bytes = 0
  private ended = false
  private readable: Deferred.Deferred<void> | undefined
  private writable: Deferred.Deferred<void> | undefined
  private readonly unread: Deadline
  private readonly deadlines: Deadlines["Service"]
  private readonly patience: number

  /** `patience`: milliseconds that a reader may take nothing although something waits; then `leave` is called. */
  constructor(deadlines: Deadlines["Service"], patience: number, leave: () => void) {
    this.deadlines = deadlines
    this.patience = patience
    this.unread = deadlines.add(Infinity, leave)
  }

  readonly write = (frames: string): void => {
    const bytes = Buffer.from(frames)
    this.pieces.push(bytes)
    this.bytes += bytes.length
    if (this.readable === undefined && this.unread.at === Infinity) this.expectReader()
    this.wake()
  }

  readonly backlog = (): number => this.bytes

  /** Continues when something was taken: whether that makes room is the writer's to say. */
  readonly drained: Effect.Effect<void> = Effect.suspend(() => {
    if (this.bytes === 0) return Effect.void
    const writable = this.writable ??= Deferred.makeUnsafe<void>()
    return Deferred.await(writable)
  })

  /** Says that nothing more comes. */
  readonly end = (): void => {
    this.ended = true
    this.wake()
  }

  /** Nothing of it remains in the list of deadlines. */
  readonly close = (): void => this.unread.cancel()

  /** What the reader gets. */
  readonly stream: Stream.Stream<Uint8Array> = Stream.fromPull(Effect.succeed(Effect.suspend(() => {
    this.unread.at = Infinity
    return this.take()
  })))

  private take(): Pull.Pull<readonly [Uint8Array]> {
    if (this.first < this.pieces.length) return Effect.succeed([this.takeNow()])
    if (this.ended) return Cause.done()
    const readable = this.readable ??= Deferred.makeUnsafe<void>()
    return Effect.flatMap(Deferred.await(readable), () => this.take())
  }

  private takeNow(): Uint8Array {
    const from = this.first
    let size = this.pieces[this.first++]!.length
    while (this.first < this.pieces.length && size + this.pieces[this.first]!.length <= mostAtOnce) {
      size += this.pieces[this.first++]!.length
    }
    const taken = this.first === from + 1
      ? this.pieces[from]!
      : Buffer.concat(this.pieces.slice(from, this.first), size)
    this.bytes -= size
    if (this.first === this.pieces.length) {
      this.pieces.length = 0
      this.first = 0
    } else {
      // What was sent must not be kept until the rest is.
      for (let i = from; i < this.first; i++) this.pieces[i] = nothing
      this.expectReader()
    }
    if (this.writable !== undefined) {
      const writable = this.writable
      this.writable = undefined
      Deferred.doneUnsafe(writable, Exit.void)
    }
    return taken
  }

  private expectReader(): void {
    this.unread.at = this.deadlines.now() + this.patience
  }

  private wake(): void {
    if (this.readable === undefined) return
    const readable = this.readable
    this.readable = undefined
    Deferred.doneUnsafe(readable, Exit.void)
  }
}
