/**
 * One client's socket: its requests one after another, the bytes held for it, and whether it reads them.
 *
 * Held bytes are those that node keeps until the client reads them, of any reply, and those that the client has sent ahead. They are
 * counted where they are written, so that every reply counts.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Turns } from "../../config/clock/cooperative.ts"
import type { BufferedBytes } from "../../config/limits.ts"
import { HalfClosed } from "./HalfClosed.ts"
import { Intake, type IntakeOwner } from "./Intake.ts"

const shared = new WeakSet<Uint8Array>()

/** Marks bytes that many replies share. They exist once, so connections do not count them. */
export const shareBytes = <Bytes extends Uint8Array>(bytes: Bytes): Bytes => {
  shared.add(bytes)
  return bytes
}

export const isShared = (bytes: unknown): boolean => bytes instanceof Uint8Array && shared.has(bytes)

/** Milliseconds for which a connection that closes waits until its client has closed it too. */
const closingTime = 5000

/** State that all connections of a server share. */
export interface Common {
  readonly turns: Turns
  /** The sum of held bytes, and the clock in monotonic milliseconds. */
  sum: BufferedBytes
  now: () => number
}

/** Bytes of the current write that the system has not accepted: libuv's own count, which node's timeouts use too. */
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
  /** Active requests; `undefined` before the first one. */
  requests: number | undefined
  /** Bytes that this connection holds. */
  held = 0
  /** Start of a stall: bytes are pending and the client reads nothing. `undefined` without a stall. */
  stuckSince: number | undefined
  /** When the connection was first seen closing. */
  private closingSince: number | undefined
  /** Bytes of completed writes, and the system's pending bytes of the current one. */
  private passed = 0
  private queued = 0
  /** Shared bytes among the pending ones. */
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

  /** Called when the reply is written or the client has disconnected. */
  replied(request: IncomingMessage): void {
    this.requests = (this.requests ?? 1) - 1
    this.response = undefined
    this.halfClosed?.end()
    this.halfClosed = undefined
    this.intake?.replied(request)
    this.count()
  }

  /** The client has closed its sending half. Detects during the reply whether it has disconnected. */
  halfClose(): void {
    if (this.response !== undefined) this.halfClosed ??= new HalfClosed(this.socket, this.response)
  }

  closed(): void {
    this.isClosed = true
    this.halfClosed?.end()
    this.hold(0)
  }

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
    if (this.intake?.isClosing !== true) return
    this.closingSince ??= now
    if (now - this.closingSince >= closingTime) socket.destroy()
  }

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

  /** Intercepts all writes to the socket, by node and others. */
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
