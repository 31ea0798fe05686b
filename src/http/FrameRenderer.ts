/** How a style writes one reply's frames. */
import type * as Effect from "effect/Effect"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import type { Machine } from "../domain/stream/transducer.ts"

export interface FrameRenderer {
  /** Frames as text, ready to send. */
  readonly frames: Machine<ReplyEvent, string>
  /** What keeps the connection alive once the first frame is out. */
  readonly keepAlive: () => string
  /** What has to be done before what was rendered may leave, once; `undefined` where that is nothing. */
  readonly pending?: () => Effect.Effect<void> | undefined
  /** The frames with which a reply ends that fails after its first frame. */
  readonly failure: (error: GatewayError) => string
}

/** The style's frames; `last` is called with the reply's end, before its frames leave. */
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
