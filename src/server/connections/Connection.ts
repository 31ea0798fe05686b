/**
 * One client's socket: what is held for it, whether it takes what it is sent, and its requests one after another.
 *
 * What is held is what node keeps until the client takes it, whatever reply it is of, and what the client has sent ahead. It is
 * counted where it is written, so no reply can be left out.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Turns } from "../../config/clock/Turns.ts"
import type { BufferedBytes } from "../../config/CurrentLimits.ts"
import { HalfClosed } from "./HalfClosed.ts"
import { Intake, type IntakeOwner } from "./Intake.ts"
import { isShared } from "./sharedBytes.ts"

/** What all connections of a server have in common. */
export interface Common {
  readonly turns: Turns
  /** The sum that they count into, and the time that they go by. */
  sum: BufferedBytes
  now: () => number
}

/** Bytes of the piece in work that the system has not taken: libuv's own count, which node's timeouts go by too. */
const queuedBytes = (socket: Socket): number => {
  const handle: unknown = Reflect.get(socket, "_handle")
  const size: unknown = typeof handle === "object" && handle !== null
    ? Reflect.get(handle, "writeQueueSize")
    : undefined
  return typeof size === "number" ? size : 0
}

type Write = (bytes: unknown, encoding?: unknown, callback?: unknown) => boolean

export class Connection implements IntakeOwner {
  readonly socket: Socket
  /** Requests under way; `undefined` before the first one. */
  requests: number | undefined
  /** Bytes that count for it. */
  held = 0
  /** Since when nothing has been taken although bytes wait; `undefined` where none do. */
  stuckSince: number | undefined
  /** Bytes that the socket has passed on whole, and what the system still has of the piece that it is at. */
  private passed = 0
  private queued = 0
  /** Bytes among those that wait that are not this connection's alone. */
  private shared = 0
  private isClosed = false
  private readonly sum: BufferedBytes
  private halfClosed: HalfClosed | undefined
  private response: ServerResponse | undefined
  private readonly intake: Intake | undefined
  private readonly common: Common

  constructor(socket: Socket, common: Common) {
    this.socket = socket
    this.common = common
    this.sum = common.sum
    this.intake = Intake.of(socket, common.turns, this)
    this.watchWrites()
    socket.on("drain", () => this.count())
  }

  begun(request: IncomingMessage, response: ServerResponse): void {
    this.requests = (this.requests ?? 0) + 1
    this.response = response
    this.intake?.begun(request)
  }

  /** The reply is written, or the client has left. */
  replied(request: IncomingMessage): void {
    this.requests = (this.requests ?? 1) - 1
    this.response = undefined
    this.halfClosed?.end()
    this.halfClosed = undefined
    this.intake?.replied(request)
    this.count()
  }

  /** The client sends nothing any more: whether it has left is found out while its reply is made. */
  halfClose(): void {
    if (this.response !== undefined) this.halfClosed ??= new HalfClosed(this.socket, this.response)
  }

  closed(): void {
    this.isClosed = true
    this.halfClosed?.end()
    this.hold(0)
  }

  /** Looks whether the client takes what waits for it. */
  look(now: number): void {
    const { socket } = this
    this.count()
    const queued = queuedBytes(socket)
    const passed = socket.bytesWritten - socket.writableLength
    if (socket.writableLength === 0 && queued === 0) this.stuckSince = undefined
    else if (passed !== this.passed || queued !== this.queued) this.stuckSince = now
    else this.stuckSince ??= now
    this.passed = passed
    this.queued = queued
  }

  /** Counts anew what is held. */
  count(): void {
    const { socket } = this
    if (this.isClosed) return
    const waiting = socket.writableLength
    if (waiting === 0) this.shared = 0
    else this.stuckSince ??= this.common.now()
    this.hold(Math.max(0, waiting - this.shared) + (this.intake?.held ?? 0))
  }

  private hold(bytes: number): void {
    if (bytes === this.held) return
    this.sum.used += bytes - this.held
    this.held = bytes
  }

  /** Whatever is written to the socket, by node or past it, is written here. */
  private watchWrites(): void {
    const { socket } = this
    const write = socket.write.bind(socket) as Write
    const counting: Write = (bytes, encoding, callback) => {
      const rest = this.halfClosed !== undefined && typeof bytes === "string" ? this.halfClosed.rest(bytes) : bytes
      if (isShared(bytes)) this.shared += (bytes as Uint8Array).length
      const isTaken = write(rest, encoding, callback)
      this.count()
      return isTaken
    }
    Reflect.set(socket, "write", counting)
  }
}
