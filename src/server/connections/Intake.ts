/**
 * What a client sends on one connection: node's parser gets one request at a time.
 *
 * Node parses and serves everything that comes at once: a client that sends thousands of requests without waiting for replies
 * keeps all others waiting, and what it sends behind a request replaces the reply where it is no request. So the bytes behind a
 * request wait here until its reply is written, and so does the end of what the client sends.
 *
 * A connection holds at most one read of the socket beyond `mostHeld`; then the socket is read no more until the reply is written.
 */
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import type { Turns } from "../../config/clock/Turns.ts"

/** Bytes behind a request above which the socket is not read any more. As long as it is read, a client that leaves is noticed. */
const mostHeld = 16 * 1024

/** Pieces of one connection that are parsed in one turn: requests that node refuses itself, and parts of chunked bodies. */
const mostPieces = 64

/** What ends a request's head, and the last chunk of a body. */
const headEnd = Buffer.from("\r\n\r\n")

const nothing = Buffer.alloc(0)

/** What node's HTTP server keeps on a socket. */
interface HttpSocket extends Socket {
  readonly parser?: unknown
  readonly _paused?: boolean
}

type Listener = (...given: ReadonlyArray<unknown>) => void

/** A listener that node's HTTP server has put on a socket. */
const listenerOf = (socket: Socket, event: string, name: string): Listener | undefined =>
  socket.listeners(event).find((listener) => listener.name === `bound ${name}`) as Listener | undefined

/** Bytes at the end that may be the beginning of what ends a head. */
const begunEnd = (bytes: Buffer): number => {
  for (let size = Math.min(headEnd.length - 1, bytes.length); size > 0; size--) {
    if (bytes.subarray(bytes.length - size).equals(headEnd.subarray(0, size))) return size
  }
  return 0
}

/** A bodyless request has a body of 0 bytes; `NaN` for one whose length is not known beforehand. */
const bodyLength = ({ headers }: IncomingMessage): number =>
  headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : Number.NaN

/** The connection that it is of. */
export interface IntakeOwner {
  /** What waits here is another amount. */
  readonly count: () => void
  /** The client has sent all that it will, and a request is under way. */
  readonly halfClose: () => void
}

export class Intake {
  private readonly socket: HttpSocket
  private readonly turns: Turns
  /** Node's own listeners: they parse. */
  private readonly parse: Listener
  private readonly finish: Listener
  private readonly owner: IntakeOwner
  private bytes: Buffer = nothing
  /** The request whose reply is not written yet. */
  private request: IncomingMessage | undefined
  /** Bytes of the request's body that have not come yet. */
  private bodyLeft = 0
  private hasEnded = false
  private isPaused = false
  /** The reply before is written, and the next request waits for its turn. */
  private isInLine = false

  private constructor(socket: HttpSocket, turns: Turns, parse: Listener, finish: Listener, owner: IntakeOwner) {
    this.socket = socket
    this.turns = turns
    this.parse = parse
    this.finish = finish
    this.owner = owner
    // Node parses what it reads without listeners until there is another listener for data.
    socket.on("data", this.arrived)
    socket.on("end", this.ended)
    socket.off("data", parse)
    socket.off("end", finish)
    socket.on("drain", this.drained)
    socket.once("close", this.close)
  }

  /** Stands before node's parser of a new connection; `undefined` where the server does not parse. */
  static of(socket: Socket, turns: Turns, owner: IntakeOwner): Intake | undefined {
    const parse = listenerOf(socket, "data", "socketOnData")
    const finish = listenerOf(socket, "end", "socketOnEnd")
    return parse === undefined || finish === undefined
      ? undefined
      : new Intake(socket, turns, parse, finish, owner)
  }

  /** Bytes that wait here. */
  get held(): number {
    return this.bytes.length
  }

  begun(request: IncomingMessage): void {
    this.request = request
    this.bodyLeft = bodyLength(request)
  }

  /** The reply to the request is written. */
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

  /** Gives node what has come, up to the end of one request. */
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
      // Node gave the socket to another protocol.
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

  /** Bytes up to the end of what belongs to one request; 0 while the blank line that ends it is not there whole. */
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
