/**
 * The machine of a contract that writes a reply as the frames of its stream.
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import type { ReplyEvent } from "../../domain/ReplyEvent.ts"
import type { FailingMachine } from "../../domain/stream/transducer.ts"

/** A writer of one streamed reply. */
export interface FrameRenderer {
  /** Reply events to frames, which are SSE text. */
  readonly frames: FailingMachine<ReplyEvent, string, GatewayError>
  /** Text that keeps the connection alive after the first frame. */
  readonly keepAlive: () => string
  /** The last frames of a reply that fails after its first frame. */
  readonly failure: (error: GatewayError) => string
}
