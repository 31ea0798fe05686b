/**
 * The WebSocket connections of this process: their number for each key, the bytes of the conversations that they keep, and their end.
 */
import type * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { GatewayError } from "../../../domain/GatewayError.ts"

/**
 * How a connection ends: its client leaves it, or neither sends nor reads; it is too old, or all connections keep too much; the gateway goes
 * away; its key or what it sends is refused.
 */
export type Outcome = "left" | "silent" | "expired" | "full" | "drained" | "refused"

const openConnections = Metric.gauge("gateway_websockets_open", { description: "Open WebSocket connections" })

const endedConnections = (outcome: Outcome) =>
  Metric.counter("gateway_websockets_total", {
    description: "WebSocket connections that have ended, by outcome",
    incremental: true,
    attributes: { outcome }
  })

/** What is known of one connection. */
export interface OpenConnection {
  /** The callers whose connections count together where memory is short. */
  readonly share: string
  /** Bytes of the conversations that it keeps. */
  readonly size: number
  /** True if no turn runs. */
  readonly isIdle: boolean
  /** True if it begins no other turn, and is closed when it is idle. */
  readonly isRetired: boolean
  /** How it ends, as far as is known. */
  readonly outcome: Outcome
  readonly retire: () => void
  /** Closes the idle connection, because all connections keep too much. */
  readonly forget: () => void
  /** Closes the connection if it is idle, because the gateway goes away. */
  readonly leave: () => void
}

export class Connections {
  readonly #open = new Set<OpenConnection>()
  /** Connections by the caller's key, or by the address of a caller without one. Bounded by the connections. */
  readonly #counts = new Map<string, number>()
  #bytes = 0
  #refusal: GatewayError | undefined
  readonly #metrics: Context.Context<never>

  /** `metrics`: where the connections are counted. */
  constructor(metrics: Context.Context<never>) {
    this.#metrics = metrics
    openConnections.modifyUnsafe(0, metrics)
  }

  /** The refusal of new connections, once connections close: during a drain, and when another worker takes the place of this one. */
  get refusal(): GatewayError | undefined {
    return this.#refusal
  }

  get isLeaving(): boolean {
    return this.#refusal !== undefined
  }

  /** Counts a connection of a caller. Returns false if the caller has `most` of them. */
  enter(owner: string, most: number): boolean {
    const count = this.#counts.get(owner) ?? 0
    if (count >= most) return false
    this.#counts.set(owner, count + 1)
    return true
  }

  /** Undoes `enter`. */
  exit(owner: string): void {
    const count = this.#counts.get(owner)! - 1
    if (count === 0) this.#counts.delete(owner)
    else this.#counts.set(owner, count)
  }

  opened(connection: OpenConnection): void {
    this.#open.add(connection)
    openConnections.modifyUnsafe(1, this.#metrics)
  }

  closed(connection: OpenConnection): void {
    if (!this.#open.delete(connection)) return
    openConnections.modifyUnsafe(-1, this.#metrics)
    endedConnections(connection.outcome).updateUnsafe(1, this.#metrics)
  }

  /** The conversations of a connection have grown by so many bytes. */
  grew(bytes: number): void {
    this.#bytes += bytes
  }

  /**
   * Closes idle connections until all of them together keep at most `most` bytes: of the caller who uses most, the largest first. Where all
   * work, the largest begins no other turn, and is closed when its turns have ended.
   */
  makeRoom(most: number): void {
    while (this.#bytes > most) {
      const idle = this.#largest(({ isIdle }) => isIdle)
      if (idle === undefined) return this.#largest(({ isRetired }) => !isRetired)?.retire()
      idle.forget()
    }
  }

  /** The largest connection of the caller who uses most, among those that keep something and satisfy `is`. */
  #largest(is: (connection: OpenConnection) => boolean): OpenConnection | undefined {
    const used = new Map<string, number>()
    for (const { share, size } of this.#open) used.set(share, (used.get(share) ?? 0) + size)
    let largest: OpenConnection | undefined
    for (const each of this.#open) {
      if (each.size === 0 || !is(each)) continue
      const more = largest === undefined ? 1 : used.get(each.share)! - used.get(largest.share)!
      if (largest === undefined || more > 0 || (more === 0 && each.size > largest.size)) largest = each
    }
    return largest
  }

  /** Closes idle connections now, and the others when they are idle. */
  leave(refusal: GatewayError): void {
    this.#refusal = refusal
    for (const connection of this.#open) connection.leave()
  }
}
