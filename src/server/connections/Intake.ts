/**
 * Input of one connection: passes requests to node's parser one at a time.
 *
 * Node parses and serves everything that arrives together. A client that pipelines thousands of requests would block all
 * others, and malformed input behind a request would replace its reply. So bytes behind a request, and the end of the
 * input, wait here until its reply is written.
 *
 * A connection holds at most `mostHeld` bytes in `mostReads` reads, and one more read; then the socket is paused.
 */
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import type { Turns } from "../../config/clock/cooperative.ts"
import { RequestFraming } from "./RequestFraming.ts"

/** Held bytes, and held reads, from which the socket is paused. While it is read, a disconnect is noticed. */
const mostHeld = 16 * 1024
const mostReads = 64

/** Bytes of an unread body that are discarded. A client that sends more waits until its connection is closed. */
const mostDiscarded = 1024 * 1024

/** Calls of the parser for one connection in one turn, such as for requests that node rejects itself. */
const mostCalls = 4

/** Fields that node's HTTP server adds to a socket. */
interface HttpSocket extends Socket {
  readonly parser?: unknown
  readonly _paused?: boolean
}

type Listener = (...given: ReadonlyArray<unknown>) => void

/** Finds a listener that node's HTTP server has added to a socket. */
const listenerOf = (socket: Socket, event: string, name: string): Listener | undefined =>
  socket.listeners(event).find((listener) => listener.name === `bound ${name}`) as Listener | undefined

/** Length of the body, 0 without one; `undefined` for a chunked body. */
const bodyLength = ({ headers }: IncomingMessage): number | undefined =>
  headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : undefined

export interface IntakeOwner {
  /** Called when the number of held bytes changes. */
  readonly count: () => void
  /** Called when the client ends its input during a request. */
  readonly halfClose: () => void
}

export class Intake {
  /** Bytes that wait for the parser. */
  held = 0
  /** The connection closes: its last reply is written, and input is discarded. */
  isClosing = false
  private readonly socket: HttpSocket
  private readonly turns: Turns
  /** Node's own listeners, which parse. */
  private readonly parse: Listener
  private readonly finish: Listener
  private readonly owner: IntakeOwner
  private readonly framing = new RequestFraming()
  /** The held bytes, as they were read. */
  private readonly reads: Array<Buffer> = []
  /** The request without a complete reply. */
  private request: IncomingMessage | undefined
  private discarded = 0
  private hasEnded = false
  /** Node wants input: it pauses the socket for a body or a reply that is not read. */
  private isWanted = true
  /** The new owner of an upgraded socket wants input already, while node still emits the upgrade. */
  private isAskedByOwner = false
  /** The previous reply is written, and the next request is queued. */
  private isInLine = false
  private readonly pause: () => void
  private readonly resume: () => void

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
    this.pause = socket.pause.bind(socket)
    this.resume = socket.resume.bind(socket)
    this.watchCalls()
  }

  /** Intercepts the input of a new connection; `undefined` if the server does not parse. */
  static of(socket: Socket, turns: Turns, owner: IntakeOwner): Intake | undefined {
    const parse = listenerOf(socket, "data", "socketOnData")
    const finish = listenerOf(socket, "end", "socketOnEnd")
    return parse === undefined || finish === undefined
      ? undefined
      : new Intake(socket, turns, parse, finish, owner)
  }

  begun(request: IncomingMessage): void {
    this.request = request
    this.framing.bodyFollows(bodyLength(request))
  }

  /** Called when the reply is written. */
  replied(request: IncomingMessage): void {
    if (this.request === request) this.request = undefined
    if (!request.complete) this.closeUnread()
    else if (this.held > 0 || this.hasEnded) this.waitInLine()
  }

  private readonly arrived = (bytes: Buffer): void => {
    if (this.isClosing) return this.discard(bytes)
    this.reads.push(bytes)
    this.held += bytes.length
    if (!this.isBusy() && !this.isInLine) this.take()
    this.flow()
    this.owner.count()
  }

  private readonly ended = (): void => {
    this.hasEnded = true
    if (this.isClosing) this.socket.destroy()
    else if (this.isBusy()) this.owner.halfClose()
    else if (!this.isInLine) this.take()
  }

  private readonly served = (): void => {
    this.isInLine = false
    this.take()
    this.flow()
    this.owner.count()
  }

  private readonly drained = (): void => {
    if (this.isInLine) return
    this.take()
    this.flow()
  }

  private readonly close = (): void => {
    this.turns.leave(this.served)
    this.drop()
    this.hasEnded = false
  }

  private drop(): void {
    this.reads.length = 0
    this.held = 0
  }

  /**
   * Closes the connection behind a reply whose request has not arrived, because its handler reads no more of it. The rest is discarded
   * until the client closes: the system answers input on a closed socket with a reset, which may overtake the reply.
   */
  private closeUnread(): void {
    if (this.isClosing) return
    this.isClosing = true
    this.turns.leave(this.served)
    this.drop()
    this.socket.end()
    this.resume()
  }

  private discard(bytes: Buffer): void {
    this.discarded += bytes.length
    if (this.discarded >= mostDiscarded) this.pause()
  }

  private isBusy(): boolean {
    return this.request !== undefined && this.request.complete
  }

  private waitInLine(): void {
    this.isInLine = true
    this.turns.join(this.served)
  }

  /** Reads the socket while node wants input and there is room for it. */
  private flow(): void {
    // Without a parser, the socket belongs to another protocol.
    if (this.isClosing || this.socket.parser === null) return
    const hasRoom = this.held < mostHeld && this.reads.length < mostReads
    if (hasRoom && this.isWanted) this.resume()
    else this.pause()
  }

  /** Passes input to node, up to the end of one request. */
  private take(): void {
    const { reads, socket } = this
    for (let calls = 0; reads.length > 0; calls++) {
      if (socket.destroyed || socket._paused === true || this.isClosing || this.isBusy()) return
      if (calls === mostCalls) return this.waitInLine()
      const piece = this.nextPiece()
      if (piece === undefined) continue
      this.parse(piece)
      // Node has upgraded the socket to another protocol.
      if (socket.parser === null) return this.handOver()
    }
    if (!this.hasEnded) return
    if (this.isBusy()) return this.owner.halfClose()
    this.hasEnded = false
    this.finish()
  }

  /** Takes the next bytes for the parser, which end with the current request at the latest; `undefined` for blank lines in front of it. */
  private nextPiece(): Buffer | undefined {
    const bytes = this.reads[0]!
    const blanks = this.framing.blanks(bytes)
    const length = blanks > 0 ? blanks : this.framing.next(bytes)
    if (length === bytes.length) this.reads.shift()
    else this.reads[0] = bytes.subarray(length)
    this.held -= length
    return blanks > 0 ? undefined : bytes.subarray(0, length)
  }

  /** Intercepts the calls by which node pauses and resumes the socket, because it resumes it whatever is held here. */
  private watchCalls(): void {
    const { socket } = this
    const want = (isWanted: boolean) => {
      this.isWanted = isWanted
      this.isAskedByOwner = isWanted && socket.parser === null
      this.flow()
      return socket
    }
    Reflect.set(socket, "pause", () => want(false))
    Reflect.set(socket, "resume", () => want(true))
  }

  private handOver(): void {
    const { socket } = this
    const rest = this.reads.toReversed()
    socket.off("data", this.arrived)
    socket.off("end", this.ended)
    socket.off("drain", this.drained)
    Reflect.deleteProperty(socket, "pause")
    Reflect.deleteProperty(socket, "resume")
    this.close()
    for (const bytes of rest) socket.unshift(bytes)
    if (this.isAskedByOwner) socket.resume()
  }
}
