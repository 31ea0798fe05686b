/** A style's renderer of one streamed reply. */
import type * as Effect from "effect/Effect"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import type { Machine } from "../domain/stream/transducer.ts"

export interface FrameRenderer {
  /** Renders events to the text of frames. */
  readonly frames: Machine<ReplyEvent, string>
  /** Text that keeps the connection alive after the first frame. */
  readonly keepAlive: () => string
  /** An effect that must finish before the rendered frames are sent; `undefined` if nothing is pending. */
  readonly pending?: () => Effect.Effect<void> | undefined
  /** The last frames of a reply that fails after its first frame. */
  readonly failure: (error: GatewayError) => string
}

/** Renders the style's frames; calls `last` after rendering `Finish`, before its frames are sent. */
export class Rendering implements Machine<ReplyEvent, string> {
  private readonly frames: FrameRenderer["frames"]
  private readonly last: () => void

  constructor(frames: FrameRenderer["frames"], last: () => void) {
    this.frames = frames
    this.last = last
  }

  push(event: ReplyEvent, out: Array<string>): void {
    this.frames.push(event, out)
    if (event._tag === "Finish") this.last()
  }

  end(out: Array<string>): void {
    this.frames.end(out)
  }
}
