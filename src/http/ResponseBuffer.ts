/**
 * What of a streamed reply waits for its client, between the fiber that makes the reply and the one that sends it.
 *
 * The reply runs ahead of its client by at most `client_queue_bytes`, so that a slow client makes the upstream wait only then.
 * After five seconds of silence the client gets a keep-alive. A client that takes nothing for too long is left. Both are
 * deadlines of the common list; times are monotonic.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Pull from "effect/Pull"
import type * as Stream from "effect/Stream"
import type { Deadline, Deadlines } from "../config/clock/Deadlines.ts"
import type { BufferedBytes } from "../config/limits.ts"
import type { Limits } from "../domain/limits.ts"
import { fromPullOnce } from "../domain/stream/transduce.ts"

/** Milliseconds of silence after which something is sent (behaviour: "Keep-alive every 5 s of silence"). */
const keepAliveEvery = 5_000

/** Bytes that the reader gets at once, apart from a single piece that is longer: so a slow client is seen to read. */
const mostAtOnce = 64 * 1024

const responseOptions = {
  contentType: "text/event-stream",
  headers: { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" }
}

const nothing = new Uint8Array()

const comment = (): string => ": keep-alive\n\n"

/** What a buffer is made with. */
export interface ResponseBufferOptions {
  readonly deadlines: Deadlines["Service"]
  /** Milliseconds that the client may take nothing although something waits; then `leave` is called. */
  readonly patience: number
  readonly leave: () => void
  readonly limits: () => Limits
  /** What all requests hold; what waits here is part of it. */
  readonly sum: BufferedBytes
  /** Receives what is handed to the connection, for the request's record. */
  readonly sent: (piece: string | Uint8Array) => void
  /** Sends text past the buffer, where nothing waits on the way to the client. Returns false where it cannot. */
  readonly sendNow: ((text: string) => boolean) | undefined
}

/** One writer, one reader. */
export class ResponseBuffer {
  /** What is sent after a silence; a comment until the style says it. */
  keepAliveText: () => string = comment
  /** The reply is complete but for what is written from now on. */
  private isLast = false
  private readonly options: ResponseBufferOptions
  private readonly pieces: Array<Uint8Array> = []
  /** The first piece that was not taken. */
  private first = 0
  private bytes = 0
  private end: Pull.Pull<never> | undefined
  /** Resume the reader, and the writer, while they wait. */
  private reader: ((next: Pull.Pull<readonly [Uint8Array]>) => void) | undefined
  private writer: ((then: Effect.Effect<void>) => void) | undefined
  private readonly unread: Deadline
  private readonly quiet: Deadline

  constructor(options: ResponseBufferOptions) {
    this.options = options
    this.unread = options.deadlines.add(Infinity, options.leave)
    this.quiet = options.deadlines.add(Infinity, () => this.keepAlive())
  }

  /** Lets text go to the client, now or when it is read. */
  write(text: string): void {
    const { deadlines, sendNow, sent, sum } = this.options
    const now = deadlines.now()
    this.quiet.at = now + keepAliveEvery
    // The reader waits: the head and all that was written before have been handed to the connection.
    if (this.reader !== undefined && sendNow?.(text) === true) return sent(text)
    const piece = Buffer.from(text)
    this.pieces.push(piece)
    this.bytes += piece.length
    sum.used += piece.length
    if (this.reader === undefined) {
      if (this.unread.at === Infinity) this.unread.at = now + this.options.patience
    } else this.wakeReader()
  }

  /** Writes text, and waits while too much waits for the client. */
  readonly offer = (text: string): Effect.Effect<void> => {
    if (text !== "") this.write(text)
    return this.hasRoom ? Effect.void : this.room
  }

  /** Says that the reply's end comes next, whose writer must not wait for the client. */
  readonly last = (): void => {
    this.isLast = true
  }

  /** Says that nothing more comes. An interrupted reply interrupts the response, so that it does not look complete. */
  close(isInterrupted: boolean): void {
    this.end = isInterrupted ? Effect.interrupt : Cause.done()
    this.quiet.cancel()
    this.wakeReader()
  }

  /** Drops what waits. */
  readonly release = (): void => {
    this.quiet.cancel()
    this.unread.cancel()
    this.options.sum.used -= this.bytes
    this.bytes = 0
    this.pieces.length = 0
  }

  /** What the client gets. */
  readonly stream: Stream.Stream<Uint8Array> = fromPullOnce(Effect.callback((resume) => {
    this.unread.at = Infinity
    const next = this.takeNow()
    if (next !== undefined) return resume(next)
    this.reader = resume
    return Effect.sync(() => {
      this.reader = undefined
    })
  }))

  /** The response that the client gets. */
  response(): HttpServerResponse.HttpServerResponse {
    return HttpServerResponse.stream(this.stream, responseOptions)
  }

  private get hasRoom(): boolean {
    const { limits, sum } = this.options
    if (this.bytes === 0 || this.isLast) return true
    const { buffered_bytes, client_queue_bytes } = limits()
    return this.bytes < client_queue_bytes && sum.used <= buffered_bytes
  }

  /** Waits until something is taken that makes room. Time in which the client is behind is no silence. */
  private readonly room: Effect.Effect<void> = Effect.callback((resume) => {
    this.quiet.at = Infinity
    this.writer = resume
  })

  private takeNow(): Pull.Pull<readonly [Uint8Array]> | undefined {
    const from = this.first
    if (from === this.pieces.length) return this.end
    let size = this.pieces[this.first++]!.length
    while (this.first < this.pieces.length && size + this.pieces[this.first]!.length <= mostAtOnce) {
      size += this.pieces[this.first++]!.length
    }
    const taken = this.first === from + 1
      ? this.pieces[from]!
      : Buffer.concat(this.pieces.slice(from, this.first), size)
    this.bytes -= size
    this.options.sum.used -= size
    if (this.first === this.pieces.length) {
      this.pieces.length = 0
      this.first = 0
    } else {
      // What was sent must not be kept until the rest is.
      for (let i = from; i < this.first; i++) this.pieces[i] = nothing
      this.unread.at = this.options.deadlines.now() + this.options.patience
    }
    this.options.sent(taken)
    this.wakeWriter()
    return Effect.succeed([taken])
  }

  private wakeReader(): void {
    const resume = this.reader
    const next = resume === undefined ? undefined : this.takeNow()
    if (next === undefined) return
    this.reader = undefined
    resume?.(next)
  }

  private wakeWriter(): void {
    const resume = this.writer
    if (resume === undefined || !this.hasRoom) return
    this.writer = undefined
    this.quiet.at = this.options.deadlines.now() + keepAliveEvery
    resume(Effect.void)
  }

  /** What waits for the client already keeps the connection alive once it is read. */
  private keepAlive(): void {
    if (this.bytes === 0) this.write(this.keepAliveText())
    else this.quiet.at = this.options.deadlines.now() + keepAliveEvery
  }
}
