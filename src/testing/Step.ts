/**
 * What the reference upstream does with one request, as a list of steps: the planner writes it, a socket or an in-process
 * client plays it. After the last step the reply ends as HTTP says it should.
 */

/** The head of the HTTP reply. Steps before it happen while the caller still waits for headers. */
export interface Head {
  readonly _tag: "Head"
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

/** One write to the network. `sent` is how many pieces of the reply have left once it is written. */
export interface Chunk {
  readonly _tag: "Chunk"
  readonly bytes: Uint8Array
  readonly sent: number
}

/** A pause; 0 lets the chunk before it leave by itself. */
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

export const Head = (status: number, headers: Readonly<Record<string, string>>): Head => ({
  _tag: "Head",
  status,
  headers
})
export const Chunk = (bytes: Uint8Array, sent: number): Chunk => ({ _tag: "Chunk", bytes, sent })
export const Wait = (millis: number): Wait => ({ _tag: "Wait", millis })
export const Hang: Hang = { _tag: "Hang" }
export const Reset: Reset = { _tag: "Reset" }
