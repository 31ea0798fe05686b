/**
 * One request that the reference upstream is answering: the steps to play, and what the player tells of them.
 */
import type { Step } from "./Step.ts"

/**
 * How a call ended: the reply was sent whole; the caller went away first; the upstream broke the connection, as it had been
 * asked to; or the call was stopped by another one.
 */
export type Outcome = "finished" | "aborted" | "broken" | "stopped"

export class Call {
  steps: ReadonlyArray<Step> = []
  private readonly onEnd: (outcome: Outcome) => void
  /** Takes note of pieces that have left. */
  onProgress: (sent: number) => void = () => {}
  /** Takes note that the reply has fallen silent until the call is stopped; all before that has left. */
  onSilence: () => void = () => {}
  /** Gives back what the call held. */
  onClose: () => void = () => {}
  /** Ends the reply at once, set by the player. */
  onStop: () => void = () => {}
  outcome: Outcome | "open" = "open"

  constructor(onEnd: (outcome: Outcome) => void) {
    this.onEnd = onEnd
  }

  /** To be called by the player once, when nothing follows; later calls say nothing. */
  end(outcome: Outcome): void {
    if (this.outcome !== "open") return
    this.outcome = outcome
    this.onClose()
    this.onEnd(outcome)
  }

  /** Stops the reply where it is, because another call says so or the caller has gone. */
  stop(outcome: "stopped" | "aborted" = "stopped"): void {
    if (this.outcome !== "open") return
    this.end(outcome)
    this.onStop()
  }
}
