/**
 * The lanes of one WebSocket connection, as a pure machine. The turns of a lane run in the order of their arrival, and lanes run at the same
 * time. A turn without a name runs in the unnamed lane.
 *
 * A lane keeps its latest response and its latest warm-up for as long as the connection is open, so that a turn of any lane can continue
 * them. A turn that fails keeps nothing, so its parent can be continued again.
 */

/** The bounds of one connection: turns that run, named lanes, and turns that wait. */
export const mostActive = 16
export const mostLanes = 32
export const mostWaiting = 64

/** The name of a lane; `undefined` for the unnamed one. */
export type LaneName = string | undefined

/** What a lane keeps of a turn. */
export interface Kept {
  readonly id: string
  /** Bytes. */
  readonly size: number
}

interface Lane<R> {
  isActive: boolean
  latest: R | undefined
  warmUp: R | undefined
}

/** What becomes of an offered turn: it runs now, it waits, or its lane or its wait would be one too many. */
export type Offered = "runs" | "waits" | "too many lanes" | "too many waiting"

export class Lanes<T extends { readonly lane: LaneName }, R extends Kept> {
  readonly #lanes = new Map<LaneName, Lane<R>>()
  #waiting: Array<T> = []
  #active = 0
  #size = 0

  /** True if no turn runs, and thus none waits. */
  get isIdle(): boolean {
    return this.#active === 0
  }

  /** The bytes of all kept responses. */
  get size(): number {
    return this.#size
  }

  /** Takes a turn that has arrived. */
  offer(turn: T): Offered {
    const known = this.#lanes.get(turn.lane)
    if (known === undefined && turn.lane !== undefined && this.#names === mostLanes) return "too many lanes"
    const runs = this.#active < mostActive && known?.isActive !== true
    if (!runs && this.#waiting.length === mostWaiting) return "too many waiting"
    const lane = known ?? { isActive: false, latest: undefined, warmUp: undefined }
    this.#lanes.set(turn.lane, lane)
    if (runs) this.#start(lane)
    else this.#waiting.push(turn)
    return runs ? "runs" : "waits"
  }

  /** Ends a turn that runs. Returns the turn that runs now in its place: the first of those that wait for no other turn of their lane. */
  end({ lane }: T): T | undefined {
    this.#lanes.get(lane)!.isActive = false
    this.#active--
    const next = this.#waiting.findIndex((turn) => !this.#lanes.get(turn.lane)!.isActive)
    const [turn] = next === -1 ? [] : this.#waiting.splice(next, 1)
    if (turn !== undefined) this.#start(this.#lanes.get(turn.lane)!)
    return turn
  }

  /** Drops the turns that wait, and returns them. */
  dropWaiting(): ReadonlyArray<T> {
    const dropped = this.#waiting
    this.#waiting = []
    return dropped
  }

  /** Keeps the response of a turn that runs, in place of the one before it. */
  keep({ lane: name }: T, response: R, isWarmUp: boolean): void {
    const lane = this.#lanes.get(name)!
    const before = sizeOf(lane)
    lane.latest = response
    if (isWarmUp) lane.warmUp = response
    this.#size += sizeOf(lane) - before
  }

  /** The kept response with this id, of any lane. There are at most two for each lane. */
  find(id: string): R | undefined {
    for (const { latest, warmUp } of this.#lanes.values()) {
      if (latest?.id === id) return latest
      if (warmUp?.id === id) return warmUp
    }
    return undefined
  }

  get #names(): number {
    return this.#lanes.size - (this.#lanes.has(undefined) ? 1 : 0)
  }

  #start(lane: Lane<R>): void {
    lane.isActive = true
    this.#active++
  }
}

const sizeOf = ({ latest, warmUp }: Lane<Kept>): number =>
  (latest?.size ?? 0) + (warmUp === latest ? 0 : warmUp?.size ?? 0)
