/**
 * One call that the scripted provider answers: the steps of its reply, and the callbacks of the player that carries them out.
 *
 * The answerer writes the steps; a socket or the in-process client plays them. After the last step the reply ends as HTTP
 * prescribes.
 */
import type { Answer } from "../../contracts/session/writeReply.ts"

/** The head of the HTTP reply. During the steps before it the caller still waits for headers. */
export interface Head {
  readonly _tag: "Head"
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

/** One write to the network. `sent` is the number of reply pieces that have left once it is written. */
export interface Chunk {
  readonly _tag: "Chunk"
  readonly bytes: Uint8Array
  readonly sent: number
}

/** A pause in milliseconds; 0 lets the chunk before it leave by itself. */
export interface Wait {
  readonly _tag: "Wait"
  readonly millis: number
}

/** Silence until the caller leaves or the call is stopped. */
export interface Hang {
  readonly _tag: "Hang"
}

/** The connection breaks. */
export interface Reset {
  readonly _tag: "Reset"
}

export type Step = Head | Chunk | Wait | Hang | Reset
export type Steps = ReadonlyArray<Step>

export const Head = (status: number, headers: Readonly<Record<string, string>>): Head => ({
  _tag: "Head",
  status,
  headers
})
export const Chunk = (bytes: Uint8Array, sent: number): Chunk => ({ _tag: "Chunk", bytes, sent })
export const Wait = (millis: number): Wait => ({ _tag: "Wait", millis })
export const Hang: Hang = { _tag: "Hang" }
export const Reset: Reset = { _tag: "Reset" }

/** A whole answer that is not a stream. */
export const stepsOf = ({ body, headers, status }: Answer): Steps => {
  const bytes = Buffer.from(body)
  const head = Head(status, { ...headers, "content-length": String(bytes.length) })
  return bytes.length === 0 ? [head] : [head, Chunk(bytes, 0)]
}

/**
 * How a call ended. `finished`: the whole reply was sent; `aborted`: the caller left first; `broken`: the upstream broke the
 * connection, as a fault asked it to; `stopped`: another call stopped this one.
 */
export type Outcome = "finished" | "aborted" | "broken" | "stopped"

export class Call {
  steps: Steps = []
  outcome: Outcome | "open" = "open"
  /** Receives the number of pieces that have left. */
  onProgress: (sent: number) => void = () => {}
  /** Called when the reply falls silent until it is stopped; everything before that has left. */
  onSilence: () => void = () => {}
  /** Releases what the call held. */
  onClose: () => void = () => {}
  /** Ends the reply immediately; set by the player. */
  onStop: () => void = () => {}
  /** Receives the outcome once. */
  onEnd: (outcome: Outcome) => void = () => {}

  /** Called by the player when nothing follows; only the first call counts. */
  end(outcome: Outcome): void {
    if (this.outcome !== "open") return
    this.outcome = outcome
    this.onClose()
    this.onEnd(outcome)
  }

  /** Stops the reply where it is, because another call asks for it or the caller has left. */
  stop(outcome: "stopped" | "aborted" = "stopped"): void {
    if (this.outcome !== "open") return
    this.end(outcome)
    this.onStop()
  }
}
