/** Renderers of one streamed reply. */
import type * as Effect from "effect/Effect"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import type { FailingMachine } from "../domain/stream/transducer.ts"
import type { StreamHead } from "./ResponseBuffer.ts"

/** What clients get: text, or bytes as they are. */
export type Frame = string | Uint8Array

/** Renders what a reply consists of. */
export interface ReplyRenderer<I, F extends Frame> {
  readonly frames: FailingMachine<I, F, GatewayError>
  /** Text that keeps the connection alive after the first frame; `undefined` for replies without it. */
  readonly keepAlive: (() => string) | undefined
  /** The head of the response; by default that of an event stream. */
  readonly head?: StreamHead
  /** False if recordings keep nothing of the frames. */
  readonly isRecorded?: boolean
  /** An effect that must finish before the rendered frames are sent; `undefined` if nothing is pending. */
  readonly pending?: () => Effect.Effect<void> | undefined
  /** The last frames of a reply that fails after its first frame; `undefined` breaks the response off. */
  readonly failure: (error: GatewayError) => string | undefined
}

/** A style's renderer of events. */
export interface FrameRenderer extends ReplyRenderer<ReplyEvent, string> {
  readonly keepAlive: () => string
  readonly failure: (error: GatewayError) => string
}

/** Renders frames; calls `last` after rendering `Finish`, before its frames are sent. */
export class Rendering<I extends ReplyEvent | Uint8Array, F extends Frame>
  implements FailingMachine<I, F, GatewayError>
{
  readonly failure: (() => GatewayError | undefined) | undefined
  private readonly frames: ReplyRenderer<I, F>["frames"]
  private readonly last: () => void

  constructor(frames: ReplyRenderer<I, F>["frames"], last: () => void) {
    this.frames = frames
    this.failure = frames.failure?.bind(frames)
    this.last = last
  }

  push(event: I, out: Array<F>): void {
    this.frames.push(event, out)
    if ("_tag" in event && event._tag === "Finish") this.last()
  }

  end(out: Array<F>): void {
    this.frames.end(out)
  }
}
