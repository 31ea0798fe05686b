/**
 * What is in force while the soak runs, and which errors follow from what has been changed: a change explains errors of the
 * requests that it meets, from when it begins until it is over.
 */
import type { ErrorCode } from "../../src/domain/GatewayError.ts"
import type { Plan } from "./plan.ts"

/** A time in which a change may be seen. */
interface Window {
  readonly from: number
  /** Infinity as long as it lasts. */
  readonly to: number
  readonly codes: ReadonlyArray<ErrorCode>
  readonly meets: (plan: Plan) => boolean
}

/** A window that is open. */
export interface OpenWindow {
  /** The change is over: requests that begin later do not meet it. */
  readonly end: () => void
}

/** Windows that are over are forgotten after this time in milliseconds: no request takes as long. */
const remembered = 300_000

export class World {
  private windows: Array<Window> = []
  private readonly now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.now = now
  }

  /** From now on these errors are explained for the requests that the change meets. */
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

  /** The errors that changes explain for a request that ran in that time. */
  explained(plan: Plan, from: number, to: number): ReadonlySet<ErrorCode> {
    return new Set(
      this.windows.filter((window) => window.from <= to && window.to >= from && window.meets(plan))
        .flatMap(({ codes }) => codes)
    )
  }
}
