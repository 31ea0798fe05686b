/**
 * The machine of a contract that reads a server's reply: its events, or the one object of a server that does not stream.
 */
import type { SseEvent } from "../../domain/stream/sse.ts"
import type { UpstreamEvent } from "../../domain/UpstreamEvent.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"

/** A decoder of one reply. */
export interface ChunkDecoder {
  /** Decodes one event and appends the results. */
  readonly push: (event: SseEvent, out: Array<UpstreamEvent>) => void
  /** Decodes an event without its final blank line, if its data is complete. */
  readonly pushUnterminated: (event: SseEvent, out: Array<UpstreamEvent>) => void
  /** Decodes the JSON object of a server that does not stream. */
  readonly pushWhole: (body: string, out: Array<UpstreamEvent>) => void
  /** The stream is over: appends the end, unless the reply has failed or was cut off. */
  readonly end: (out: Array<UpstreamEvent>) => void
  /** The failure of the reply. */
  readonly failure: () => UpstreamFailure | undefined
  /** The finish reason was the last part of the reply: only usage and the sentinel may follow. */
  readonly finishing: () => boolean
  /** The content filter ended the reply: everything that follows is ignored. */
  readonly withdrawn: () => boolean
  /** The sentinel was seen: nothing follows. */
  readonly done: () => boolean
}
