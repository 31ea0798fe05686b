/**
 * The state of the soak, and the errors that changes explain: a change explains errors of the requests that run between its start and its
 * end.
 */
import type { ErrorCode } from "../../src/domain/GatewayError.ts"
import type { Plan } from "./plan.ts"

/** The time in which a change has effects. */
interface Window {
  readonly from: number
  /** Infinity while it lasts. */
  readonly to: number
  readonly codes: ReadonlyArray<ErrorCode>
  readonly meets: (plan: Plan) => boolean
}

/** An open window. */
export interface OpenWindow {
  /** Ends the change: it does not affect later requests. */
  readonly end: () => void
}

/** Closed windows are deleted after this time in milliseconds, which is longer than any request. */
const remembered = 300_000

export class World {
  private windows: Array<Window> = []
  private readonly now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.now = now
  }

  /** Registers errors that the change explains from now on. */
  explain(codes: ReadonlyArray<ErrorCode>, meets: (plan: Plan) => boolean = () => true): OpenWindow {
    let window: Window = { from: this.now(), to: Infinity, codes, meets }
    this.windows.push(window)
    return {
      end: () => {
        const ended = { ...window, to: this.now() }
        this.windows = this.windows.filter((each) => each !== window && each.to > this.now() - remembered)
        this.windows.push(ended)
        window = ended
      }
    }
  }

  /** The errors that changes explain for a request in this time. */
  explained(plan: Plan, from: number, to: number): ReadonlySet<ErrorCode> {
    return new Set(
      this.windows.filter((window) => window.from <= to && window.to >= from && window.meets(plan))
        .flatMap(({ codes }) => codes)
    )
  }
}
