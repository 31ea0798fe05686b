/**
 * One WebSocket connection: takes messages, runs their turns in lanes, and sends the events. A turn is a request of the gateway as any other;
 * `run` starts it. Everything here is synchronous, so that an idle connection is one waiting fiber and one deadline.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import type { Socket } from "node:net"
import { startCooperatively } from "../../../config/clock/cooperative.ts"
import type { Deadline, Deadlines } from "../../../config/clock/Deadlines.ts"
import { type BufferedBytes, HeldBytes } from "../../../config/limits.ts"
import { openaiErrors } from "../../../contracts/shared/openaiErrors.ts"
import { faultHeader, faultOf } from "../../../domain/fault.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../../../domain/GatewayError.ts"
import { isRecord, type JsonRecord } from "../../../domain/json.ts"
import type { Limits } from "../../../domain/limits.ts"
import { bytesOfValues, type Measured } from "../../../domain/stream/measureJson.ts"
import { pullOf } from "../../../domain/stream/transduce.ts"
import { measureFault } from "../../../http/bodyLimits.ts"
import { BodyPace } from "../../../http/BodyPace.ts"
import { smallBody, tooLarge, tooMuchHeld } from "../../../http/receiveBody.ts"
import type { Connections, OpenConnection, Outcome } from "./Connections.ts"
import { type LaneName, Lanes } from "./lanes.ts"
import { isAbsent, isChoice, isStreamId, type ReadEnvelope, readEnvelope } from "./readEnvelope.ts"
import { notTaken, tooMuchKept, tooOld } from "./refusals.ts"
import {
  headersField,
  laneField,
  messagesOf,
  textFrames,
  Turn,
  type TurnConnection,
  type TurnResponse
} from "./Turn.ts"

/** Milliseconds without a byte of the client after which it is asked for a sign of life, and after which it is disconnected. */
const pingAfter = 20_000
const dropAfter = 60_000

/** Bytes beside the content of a message of the largest number of fragments. */
const mostFraming = 256 * 1024

/** A ping without content (RFC 6455, 5.5.2). */
const ping = Buffer.from([0x89, 0])

/** The part of node's socket that a connection uses. */
type NodeSocket = Pick<
  Socket,
  "destroy" | "destroyed" | "off" | "on" | "pause" | "writableEnded" | "writableLength" | "writableNeedDrain" | "write"
>

/** Close codes (RFC 6455, 7.4). */
type CloseCode = 1000 | 1001 | 1003 | 1008 | 1009 | 1013

export interface ConnectionOptions {
  readonly socket: NodeSocket
  /** The id of the request that opened the connection. */
  readonly id: string
  readonly share: string
  readonly limits: () => Limits
  readonly sum: BufferedBytes
  readonly deadlines: Deadlines["Service"]
  readonly connections: Connections
  /** Starts the request of a turn. */
  readonly run: (turn: Turn) => Fiber.Fiber<void, unknown>
  /** Begins the closing handshake. */
  readonly close: (code: CloseCode, reason: string) => void
}

export class Connection implements OpenConnection, TurnConnection {
  readonly queue = { bytes: 0 }
  readonly share: string
  readonly #options: ConnectionOptions
  #lanes = new Lanes<Turn, TurnResponse>()
  readonly #running = new Map<Turn, Fiber.Fiber<void, unknown>>()
  readonly #deadline: Deadline
  readonly #openedAt: number
  #heardAt: number
  /** Bytes since the last whole message, and their pace. A small message is not counted. */
  #arrived = 0
  #pace: BodyPace
  readonly #arriving: HeldBytes
  /** Resume what waits until the client has read. Bounded by the turns that run, and the reader. */
  #waiting: Array<() => void> = []
  /** No other message is taken before the client has read: its silence means nothing. */
  #isBehind = false
  #isRetired = false
  #isClosing = false
  #outcome: Outcome = "left"

  constructor(options: ConnectionOptions) {
    const { deadlines, limits, share, socket, sum } = options
    this.#options = options
    this.share = share
    this.#openedAt = this.#heardAt = deadlines.now()
    this.#deadline = deadlines.add(this.#openedAt + pingAfter, (now) => this.#look(now))
    this.#pace = new BodyPace(limits())
    this.#arriving = new HeldBytes(sum, limits)
    socket.on("data", this.#heard)
    socket.on("drain", this.#drained)
    options.connections.opened(this)
    if (options.connections.isLeaving) this.leave()
  }

  get isRetired(): boolean {
    return this.#isRetired
  }

  get outcome(): Outcome {
    return this.#outcome
  }

  get isIdle(): boolean {
    return this.#lanes.isIdle
  }

  get size(): number {
    return this.#lanes.size
  }

  find(id: string): TurnResponse | undefined {
    return this.#lanes.find(id)
  }

  /** Takes a message. Waits until the client has read what was sent to it. */
  receive(message: string | Uint8Array): Effect.Effect<void> {
    this.#arrived = 0
    this.#arriving.release()
    if (this.#isClosing) return Effect.void
    if (typeof message !== "string") return Effect.sync(() => this.#close(1003, "Messages are JSON text"))
    const limits = this.#options.limits()
    const { body_bytes } = limits
    if (message.length > body_bytes || Buffer.byteLength(message) > body_bytes) {
      return Effect.sync(() => this.#close(1009, tooLarge(body_bytes).message))
    }
    return Effect.flatMap(startCooperatively(readEnvelope(message, limits)), (read) => {
      const fault = measureFault(read.measured, limits, "The message")
      if (fault !== undefined) this.refuse(fault)
      else if (!this.#isClosing) this.#take(message, read)
      const room = this.#room()
      if (room === undefined) return Effect.void
      this.#isBehind = true
      return Effect.map(room, () => {
        this.#isBehind = false
      })
    })
  }

  sendNow(turn: Turn, frames: string): boolean {
    if (this.#options.socket.writableLength > 0) return false
    this.#sendFrames(turn, frames)
    return true
  }

  /** Sends an error that no request has answered. */
  refuse(error: GatewayError, lane?: LaneName): void {
    const retryAfter = error.retryAfter === undefined ? {} : { "retry-after": String(error.retryAfter) }
    const fault = { [faultHeader]: faultOf({ error: error.code }) }
    const headers = JSON.stringify({ "x-request-id": this.#options.id, ...fault, ...retryAfter })
    const body = openaiErrors.text(error).slice(1, -1)
    this.#send([`{"type":"error","status":${error.status},${body},"headers":${headers}${laneField(lane)}}`])
  }

  /** Sends the reply of a turn. */
  deliver(
    turn: Turn,
    { body, headers, status }: HttpServerResponse.HttpServerResponse,
    scope: Scope.Scope
  ): Effect.Effect<void> {
    turn.forget()
    if (body._tag === "Stream") {
      turn.headers = headers
      return Effect.flatMap(pullOf(body.stream, scope), (pull) => {
        const next: Pull.Pull<never, unknown> = Effect.flatMap(pull, (chunks) => {
          for (const chunk of chunks) this.#sendFrames(turn, textOf(chunk))
          const room = this.#room()
          return room === undefined ? next : Effect.flatMap(room, () => next)
        })
        return Effect.catchCause(
          next,
          (cause) => Pull.isDoneCause(cause) ? Effect.void : Effect.failCause(cause as never)
        )
      })
    }
    const text = body._tag === "Uint8Array" ? textOf(body.body) : "{}"
    if (status === 200) {
      turn.headers = headers
      this.#sendFrames(turn, text)
      return Effect.void
    }
    this.#send([
      `{"type":"error","status":${status},${text.slice(1, -1)}${headersField(headers)}${laneField(turn.lane)}}`
    ])
    if (status === 401) this.#close(1008, "The API key is not valid any more")
    return Effect.void
  }

  leave(): void {
    if (this.isIdle) this.#close(1001, "The gateway is shutting down", "drained")
  }

  forget(): void {
    this.#options.connections.grew(-this.size)
    this.#lanes = new Lanes()
    this.#expire(tooMuchKept)
  }

  retire(): void {
    this.#isRetired = true
  }

  /** Ends the connection: no turn of it goes on. */
  readonly release: Effect.Effect<void> = Effect.suspend(() => {
    const { connections, socket } = this.#options
    this.#isClosing = true
    this.#deadline.cancel()
    socket.off("data", this.#heard)
    socket.off("drain", this.#drained)
    this.#arriving.release()
    this.#dropWaiting()
    connections.closed(this)
    connections.grew(-this.size)
    return Fiber.interruptAll([...this.#running.values()])
  })

  readonly #heard = (bytes: Uint8Array): void => {
    const { deadlines, limits } = this.#options
    const now = deadlines.now()
    const before = this.#arrived
    if (before === 0) this.#pace = new BodyPace(limits())
    this.#pace.arrived(bytes.length, before === 0 ? 0 : now - this.#heardAt)
    this.#heardAt = now
    this.#arrived += bytes.length
    if (this.#arrived <= smallBody || this.#isClosing) return
    const { body_bytes } = limits()
    if (this.#arrived > body_bytes + mostFraming) return this.#stop(1009, tooLarge(body_bytes))
    if (this.#arriving.add(before <= smallBody ? this.#arrived : bytes.length)) return
    this.refuse(tooMuchHeld)
    this.#stop(1013, tooMuchHeld)
  }

  readonly #drained = (): void => {
    for (const resume of this.#waiting.splice(0)) resume()
  }

  /** Waits until the client has read what the socket holds; `undefined` if it holds little. */
  #room(): Effect.Effect<void> | undefined {
    const { socket } = this.#options
    if (!socket.writableNeedDrain || socket.destroyed) return undefined
    return Effect.callback((resume) => {
      const waiter = () => resume(Effect.void)
      this.#waiting.push(waiter)
      return Effect.sync(() => {
        this.#waiting = this.#waiting.filter((each) => each !== waiter)
      })
    })
  }

  #send(messages: ReadonlyArray<string>): void {
    const { socket } = this.#options
    if (messages.length === 0 || this.#isClosing || socket.writableEnded || socket.destroyed) return
    socket.write(textFrames(messages))
  }

  #sendFrames(turn: Turn, frames: string): void {
    this.#send(messagesOf(turn, frames, () => this.#keep(turn)))
  }

  #take(text: string, { envelope: { generate, stream_id, type }, measured }: ReadEnvelope): void {
    if (type === "response.create" && (isAbsent(stream_id) || isStreamId(stream_id)) && isChoice(generate)) {
      return this.#begin(text, measured, generate !== false, isAbsent(stream_id) ? undefined : stream_id)
    }
    const held = new HeldBytes(this.#options.sum, this.#options.limits)
    if (held.add(bytesOfValues(measured.values))) this.#refuseMessage(text)
    else this.refuse(tooMuchHeld)
    held.release()
  }

  /** Tells why a message begins no turn. */
  #refuseMessage(text: string): void {
    let message: unknown
    try {
      message = JSON.parse(text)
    } catch (error) {
      const place = error instanceof Error ? `: ${error.message}` : ""
      return this.refuse(invalidRequest(`The message is not valid JSON${place}`.slice(0, 300)))
    }
    if (!isRecord(message)) return this.refuse(invalidRequest("The message must be a JSON object"))
    const { stream_id, type } = message
    if (type === "response.steer") return this.#refuseSteering(message)
    if (!isAbsent(stream_id) && !isStreamId(stream_id)) {
      const what = "stream_id: must be 1 to 256 letters, digits, `_`, `-` or `.`"
      return this.refuse(gatewayError("invalid_stream_id", what, { param: "stream_id" }))
    }
    const error = type === "response.create"
      ? invalidRequest("generate: must be true or false", "generate")
      : invalidRequest("type: must be response.create or response.steer", "type")
    this.refuse(error, isAbsent(stream_id) ? undefined : stream_id)
  }

  #begin(text: string, measured: Measured, generates: boolean, lane: LaneName): void {
    const { limits, sum } = this.#options
    const end = this.#end
    if (end !== undefined) return this.refuse(end, lane)
    const held = new HeldBytes(sum, limits)
    const turn = new Turn({ text, measured, generates, lane, held }, this)
    // A message is held as text, and later as what it says. Its values are counted once they are parsed, when its turn begins.
    const offered = held.add(2 * text.length) ? this.#lanes.offer(turn) : "too large"
    if (offered === "runs") return this.#run(turn)
    if (offered === "waits") return
    held.release()
    this.refuse(
      offered === "too large"
        ? tooMuchHeld
        : notTaken(offered === "too many lanes" ? "websocket_stream_limit_reached" : "rate_limit_exceeded"),
      lane
    )
  }

  #refuseSteering({ input, previous_response_id }: JsonRecord): void {
    const error = {
      type: "invalid_request_error",
      code: "steering_not_supported",
      message: "The gateway does not steer a response; send the input with the next response.create"
    }
    const steer = { previous_response_id, input }
    this.#send([JSON.stringify({ type: "response.steer.failed", sequence_number: 0, error, steer })])
  }

  #run(turn: Turn): void {
    const fiber = this.#options.run(turn)
    this.#running.set(turn, fiber)
    fiber.addObserver((exit) => this.#ended(turn, exit))
  }

  #ended(turn: Turn, exit: Exit.Exit<void, unknown>): void {
    const { connections, limits } = this.#options
    this.#running.delete(turn)
    turn.held.release()
    const next = this.#lanes.end(turn)
    // A reply that is interrupted while its client is here is one that the client does not read.
    if (Exit.hasInterrupts(exit) && !this.#isClosing) this.#drop()
    if (next !== undefined) this.#run(next)
    if (this.#isClosing) return
    const end = this.#end
    if (connections.isLeaving) this.leave()
    else if (this.isIdle && end !== undefined) this.#expire(end)
    connections.makeRoom(limits().websocket_bytes)
  }

  /** Keeps the response of a turn. Every later turn of the connection can continue it. */
  #keep(turn: Turn): void {
    if (turn.response === undefined) return
    const before = this.size
    this.#lanes.keep(turn, turn.response, !turn.generates)
    this.#options.connections.grew(this.size - before)
  }

  /** Why the connection begins no other turn; `undefined` if it does. */
  get #end(): GatewayError | undefined {
    const { deadlines, limits } = this.#options
    const { websocket_seconds } = limits()
    if (this.#isRetired) return tooMuchKept
    return deadlines.now() - this.#openedAt >= websocket_seconds * 1000 ? tooOld(websocket_seconds) : undefined
  }

  #expire(error: GatewayError): void {
    this.refuse(error)
    this.#close(1000, error.code, error === tooMuchKept ? "full" : "expired")
  }

  #look(now: number): void {
    const { limits, socket } = this.#options
    if (this.#isBehind) this.#heardAt = now
    const silence = now - this.#heardAt
    if (silence >= dropAfter) return this.#drop()
    if (this.#isClosing) return
    const over = this.#end
    if (over !== undefined && this.isIdle) return this.#expire(over)
    if (this.#arrived > smallBody && silence >= this.#pace.patience) {
      this.refuse(this.#pace.fault)
      return this.#close(1008, this.#pace.fault.message)
    }
    if (silence >= pingAfter && !socket.writableEnded) socket.write(ping)
    const next = silence >= pingAfter ? now + pingAfter : this.#heardAt + pingAfter
    const end = this.#openedAt + limits().websocket_seconds * 1000
    this.#deadline.at = end > now ? Math.min(next, end) : next
  }

  /** Disconnects a client that neither sends nor reads. */
  #drop(): void {
    if (!this.#isClosing) this.#outcome = "silent"
    this.#options.socket.destroy()
  }

  #close(code: CloseCode, reason: string, outcome: Outcome = "refused"): void {
    if (this.#isClosing) return
    this.#isClosing = true
    this.#outcome = outcome
    this.#dropWaiting()
    this.#options.close(code, reason)
    for (const fiber of this.#running.values()) fiber.interruptUnsafe()
  }

  /** Closes the connection within a message, of which no more is read. */
  #stop(code: CloseCode, { message }: GatewayError): void {
    this.#options.socket.pause()
    this.#close(code, message)
  }

  #dropWaiting(): void {
    for (const turn of this.#lanes.dropWaiting()) turn.held.release()
  }
}

const decoder = new TextDecoder()

const textOf = (bytes: Uint8Array): string => decoder.decode(bytes)
