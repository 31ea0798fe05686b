/**
 * Input of one connection: passes requests to node's parser one at a time.
 *
 * Node parses and serves everything that arrives at once. A client that pipelines thousands of requests would block all
 * others, and malformed input behind a request would replace its reply. So bytes behind a request, and the end of the
 * input, wait here until its reply is written.
 *
 * A connection holds at most `mostHeld` bytes and one more read; then the socket is paused until the reply is written.
 */
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import type { Turns } from "../../config/clock/cooperative.ts"

/** Held bytes above which the socket is paused. While it is read, a disconnect is noticed. */
const mostHeld = 16 * 1024

/**
 * Chunks of one connection that are parsed in one turn: requests that node rejects itself, and parts of chunked bodies.
 */
const mostPieces = 64

/** Ends a request's head and the last chunk of a body. */
const headEnd = Buffer.from("\r\n\r\n")

const nothing = Buffer.alloc(0)

/** Fields that node's HTTP server adds to a socket. */
interface HttpSocket extends Socket {
  readonly parser?: unknown
  readonly _paused?: boolean
}

type Listener = (...given: ReadonlyArray<unknown>) => void

/** Finds a listener that node's HTTP server has added to a socket. */
const listenerOf = (socket: Socket, event: string, name: string): Listener | undefined =>
  socket.listeners(event).find((listener) => listener.name === `bound ${name}`) as Listener | undefined

/** Length of a partial `headEnd` at the end. */
const begunEnd = (bytes: Buffer): number => {
  for (let size = Math.min(headEnd.length - 1, bytes.length); size > 0; size--) {
    if (bytes.subarray(bytes.length - size).equals(headEnd.subarray(0, size))) return size
  }
  return 0
}

/** Length of the body, 0 without one; `NaN` for a chunked body. */
const bodyLength = ({ headers }: IncomingMessage): number =>
  headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : Number.NaN

export interface IntakeOwner {
  /** Called when the number of held bytes changes. */
  readonly count: () => void
  /** Called when the client ends its input during a request. */
  readonly halfClose: () => void
}

export class Intake {
  private readonly socket: HttpSocket
  private readonly turns: Turns
  /** Node's own listeners, which parse. */
  private readonly parse: Listener
  private readonly finish: Listener
  private readonly owner: IntakeOwner
  private bytes: Buffer = nothing
  /** The request without a complete reply. */
  private request: IncomingMessage | undefined
  private bodyLeft = 0
  private hasEnded = false
  private isPaused = false
  /** The previous reply is written, and the next request is queued. */
  private isInLine = false

  private constructor(socket: HttpSocket, turns: Turns, parse: Listener, finish: Listener, owner: IntakeOwner) {
    this.socket = socket
    this.turns = turns
    this.parse = parse
    this.finish = finish
    this.owner = owner
    // Node parses socket reads natively until there is another data listener.
    socket.on("data", this.arrived)
    socket.on("end", this.ended)
    socket.off("data", parse)
    socket.off("end", finish)
    socket.on("drain", this.drained)
    socket.once("close", this.close)
  }

  /** Intercepts the input of a new connection; `undefined` if the server does not parse. */
  static of(socket: Socket, turns: Turns, owner: IntakeOwner): Intake | undefined {
    const parse = listenerOf(socket, "data", "socketOnData")
    const finish = listenerOf(socket, "end", "socketOnEnd")
    return parse === undefined || finish === undefined
      ? undefined
      : new Intake(socket, turns, parse, finish, owner)
  }

  get held(): number {
    return this.bytes.length
  }

  begun(request: IncomingMessage): void {
    this.request = request
    this.bodyLeft = bodyLength(request)
  }

  /** Called when the reply is written. */
  replied(request: IncomingMessage): void {
    if (this.request === request) this.request = undefined
    if (this.bytes.length > 0 || this.hasEnded) this.waitInLine()
  }

  private readonly arrived = (bytes: Buffer): void => {
    this.bytes = this.bytes.length === 0 ? bytes : Buffer.concat([this.bytes, bytes])
    if (!this.isBusy() && !this.isInLine) this.take()
    else if (this.bytes.length >= mostHeld && !this.isPaused) {
      this.isPaused = true
      this.socket.pause()
    }
    this.owner.count()
  }

  private readonly ended = (): void => {
    this.hasEnded = true
    if (this.isBusy()) this.owner.halfClose()
    else if (!this.isInLine) this.take()
  }

  private readonly served = (): void => {
    this.isInLine = false
    this.take()
    this.owner.count()
  }

  private readonly drained = (): void => {
    if (!this.isInLine) this.take()
  }

  private readonly close = (): void => {
    this.turns.leave(this.served)
    this.bytes = nothing
    this.hasEnded = false
  }

  private isBusy(): boolean {
    return this.request !== undefined && this.request.complete
  }

  private waitInLine(): void {
    this.isInLine = true
    this.turns.join(this.served)
  }

  /** Passes input to node, up to the end of one request. */
  private take(): void {
    const { socket } = this
    for (let pieces = 0; this.bytes.length > 0; pieces++) {
      if (socket.destroyed || socket._paused === true || this.isBusy()) return
      if (pieces === mostPieces) return this.waitInLine()
      const size = this.nextPiece()
      if (size === 0) break
      const piece = this.bytes.subarray(0, size)
      this.bytes = size === this.bytes.length ? nothing : this.bytes.subarray(size)
      this.parse(piece)
      // Node has upgraded the socket to another protocol.
      if (socket.parser === null) return this.handOver()
    }
    if (this.isPaused) {
      this.isPaused = false
      socket.resume()
    }
    if (!this.hasEnded || this.bytes.length > 0) return
    if (this.isBusy()) return this.owner.halfClose()
    this.hasEnded = false
    this.finish()
  }

  /**
   * Length of the next chunk, which ends with the current request at the latest; 0 while only a part of the ending blank
   * line has arrived.
   */
  private nextPiece(): number {
    const { bytes } = this
    if (this.bodyLeft > 0) {
      const size = Math.min(this.bodyLeft, bytes.length)
      this.bodyLeft -= size
      return size
    }
    const end = bytes.indexOf(headEnd)
    if (end !== -1) return end + headEnd.length
    return this.hasEnded ? bytes.length : bytes.length - begunEnd(bytes)
  }

  private handOver(): void {
    const { bytes, socket } = this
    socket.off("data", this.arrived)
    socket.off("end", this.ended)
    socket.off("drain", this.drained)
    this.close()
    if (bytes.length > 0) socket.unshift(bytes)
  }
}
