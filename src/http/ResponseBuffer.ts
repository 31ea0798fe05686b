/**
 * The buffer of a streamed reply, between the fiber that makes the reply and the one that sends it.
 *
 * The reply runs ahead of its client by at most `client_queue_bytes`; beyond that, a slow client slows down the upstream. A
 * keep-alive is sent after five seconds of silence. A client that reads nothing for too long is disconnected. Both are entries of
 * `Deadlines`; times are monotonic.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { ServerResponse } from "node:http"
import type { Deadline, Deadlines } from "../config/clock/Deadlines.ts"
import type { BufferedBytes } from "../config/limits.ts"
import type { Limits } from "../domain/limits.ts"
import { fromPullOnce, pullOf } from "../domain/stream/transduce.ts"

/** Milliseconds of silence before a keep-alive (behaviour: "Keep-alive every 5 s of silence"). */
const keepAliveEvery = 5_000

/** Most bytes per read, except for a single longer chunk, so that the progress of a slow client is visible. */
const mostAtOnce = 64 * 1024

/** What clients get: text, or bytes as they are. */
export type Frame = string | Uint8Array

/** The headers of event streams. */
export const streamHeaders = { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" }

/** The head of a streamed response. */
export interface StreamHead {
  readonly status: number | undefined
  readonly contentType: string
  readonly contentLength: number | undefined
  readonly headers: { readonly [name: string]: string }
}

const eventStream: StreamHead = {
  contentType: "text/event-stream",
  headers: streamHeaders,
  status: undefined,
  contentLength: undefined
}

const nothing = new Uint8Array()

/** The keep-alive of event streams. */
export const comment = (): string => ": keep-alive\n\n"

/** The bytes that wait for one client. The replies of a WebSocket share theirs. */
export interface ClientQueue {
  bytes: number
}

/** Options of a buffer. */
interface ResponseBufferOptions {
  readonly deadlines: Deadlines["Service"]
  /** Milliseconds that the client may leave buffered bytes unread; then `leave` is called. */
  readonly patience: number
  readonly leave: () => void
  readonly limits: () => Limits
  /** What waits for the client, this buffer included. */
  readonly queue: ClientQueue
  /** The bytes held for all requests, which include this buffer. */
  readonly sum: BufferedBytes
  /** Called with every chunk that is handed to the connection, for the recording. */
  readonly sent: (piece: Frame) => void
  /** Sends text past the buffer. Returns false if earlier bytes are still unsent. */
  readonly sendNow: ((text: string) => boolean) | undefined
}

/** A bounded buffer for one writer and one reader. */
export class ResponseBuffer {
  /** Makes the keep-alive: a comment until the style provides its own. `undefined` for replies without keep-alives. */
  keepAliveText: (() => string) | undefined = comment
  /** An effect that must finish before rendered frames are sent. */
  pending: (() => Effect.Effect<void> | undefined) | undefined
  /** The head of the response: that of an event stream until the reply has its own. */
  head = eventStream
  /** The reply's last frames follow: the writer no longer waits. */
  private isLast = false
  private readonly options: ResponseBufferOptions
  private readonly pieces: Array<Uint8Array> = []
  /** Index of the first unread piece. */
  private first = 0
  private bytes = 0
  private end: Pull.Pull<never> | undefined
  /** Resume the waiting reader and the waiting writer. */
  private reader: ((next: Pull.Pull<readonly [Uint8Array]>) => void) | undefined
  private writer: ((then: Effect.Effect<void>) => void) | undefined
  private readonly unread: Deadline
  private readonly quiet: Deadline

  constructor(options: ResponseBufferOptions) {
    this.options = options
    this.unread = options.deadlines.add(Infinity, options.leave)
    this.quiet = options.deadlines.add(Infinity, () => this.keepAlive())
  }

  /** Sends text or bytes to the client, immediately or through the buffer. */
  write(content: Frame): void {
    const { deadlines, queue, sendNow, sent, sum } = this.options
    const now = deadlines.now()
    this.quiet.at = now + keepAliveEvery
    // The reader waits, so the connection has the response head and everything written before.
    if (this.reader !== undefined && typeof content === "string" && sendNow?.(content) === true) return sent(content)
    const piece = typeof content === "string" ? Buffer.from(content) : content
    this.pieces.push(piece)
    this.bytes += piece.length
    queue.bytes += piece.length
    sum.used += piece.length
    if (this.reader === undefined) {
      if (this.unread.at === Infinity) this.unread.at = now + this.options.patience
    } else this.wakeReader()
  }

  /** Writes frames, the texts as one. Returns the wait for room; `undefined` if there is room. */
  offer(frames: ReadonlyArray<Frame>): Effect.Effect<void> | undefined {
    const contents = frames.length > 1 && typeof frames[0] === "string" ? [frames.join("")] : frames
    for (const content of contents) if (content.length > 0) this.write(content)
    return this.hasRoom ? undefined : this.room
  }

  /** Announces the last frames, whose writer must not wait for the client. */
  last(): void {
    this.isLast = true
  }

  /** Ends the response. An interrupted reply interrupts the response, so that it does not look complete. */
  close(isInterrupted: boolean): void {
    this.end = isInterrupted ? Effect.interrupt : Cause.done()
    this.quiet.cancel()
    this.wakeReader()
  }

  /** Drops the buffered bytes. */
  readonly release = (): void => {
    this.quiet.cancel()
    this.unread.cancel()
    this.options.queue.bytes -= this.bytes
    this.options.sum.used -= this.bytes
    this.bytes = 0
    this.pieces.length = 0
  }

  /** The response body. */
  readonly stream: Stream.Stream<Uint8Array> = fromPullOnce(Effect.callback((resume) => {
    this.unread.at = Infinity
    const next = this.takeNow()
    if (next !== undefined) return resume(next)
    this.reader = resume
    return Effect.sync(() => {
      this.reader = undefined
    })
  }))

  /** The response with the buffer's stream. */
  response(): HttpServerResponse.HttpServerResponse {
    return HttpServerResponse.stream(this.stream, this.head)
  }

  private get hasRoom(): boolean {
    const { limits, queue, sum } = this.options
    if (this.bytes === 0 || this.isLast) return true
    const { buffered_bytes, client_queue_bytes } = limits()
    return queue.bytes < client_queue_bytes && sum.used <= buffered_bytes
  }

  /** Waits until a read makes room. No keep-alive is due while the client is behind. */
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
    this.options.queue.bytes -= size
    this.options.sum.used -= size
    if (this.first === this.pieces.length) {
      this.pieces.length = 0
      this.first = 0
    } else {
      // Releases the chunks that were sent.
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

  /** Sends a keep-alive, unless buffered bytes keep the connection alive already. */
  private keepAlive(): void {
    if (this.keepAliveText === undefined) return
    if (this.bytes === 0) this.write(this.keepAliveText())
    else this.quiet.at = this.options.deadlines.now() + keepAliveEvery
  }
}

/** Sends frames to a client, through its buffer or directly to its socket, up to their end or failure. `attempts` holds the frames' stream. */
export const bufferedFor =
  ({ attempts, buffer }: { readonly attempts: Scope.Scope; readonly buffer: ResponseBuffer }) =>
  <E>(frames: Stream.Stream<Frame, E>): Effect.Effect<never, E | Cause.Done> =>
    Effect.flatMapEager(pullOf(frames, attempts), (pull) => {
      const write = (frames: ReadonlyArray<Frame>) => {
        const room = buffer.offer(frames)
        return room === undefined ? next : Effect.flatMap(room, () => next)
      }
      const next: Effect.Effect<never, E | Cause.Done> = Effect.flatMap(pull, (frames) => {
        const before = buffer.pending?.()
        return before === undefined ? write(frames) : Effect.flatMap(before, () => write(frames))
      })
      return next
    })

/** Makes a function that sends text immediately and returns false if earlier bytes are still unsent. */
const sendBy = (response: ServerResponse) => {
  let hasBegun = false
  return (text: string): boolean => {
    const { socket } = response
    if (
      socket === null || !response.headersSent || !response.chunkedEncoding || response.writableCorked > 0 ||
      socket.writableLength > 0 || response.writableEnded || socket.destroyed
    ) return false
    // The response head leaves with the first chunk.
    if (hasBegun) socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
    else response.write(text)
    hasBegun = true
    return true
  }
}

/**
 * Makes a function that writes a chunk to the client's socket, past the response's stream; `undefined` if the request did not
 * arrive over a node socket.
 *
 * `ServerResponse.write` makes four writes per chunk and collects them until the next tick, which doubles the cost of an event.
 * The direct write is possible while the stream's reader waits and all earlier bytes have left; otherwise text goes through the
 * stream.
 */
export const sendNow = (
  request: HttpServerRequest.HttpServerRequest | undefined
): ((text: string) => boolean) | undefined => {
  const response: unknown = request === undefined ? undefined : NodeHttpServerRequest.toServerResponse(request)
  return response instanceof ServerResponse ? sendBy(response) : undefined
}
