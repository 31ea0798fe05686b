/**
 * The frames of both sides of a request, read.
 */
import type { RecordedFrame, RequestRecord } from "../../state/requests.ts"
import { FrameReader, lengthOf, type ReadFrame } from "./frameParts.ts"

export interface ReadRow extends ReadFrame {
  readonly at: number
  readonly data: string
  /** The round with the upstream, counted from 0. */
  readonly round: number
  /** Characters that it adds. */
  readonly length: number
}

export interface ReadSides {
  readonly upstream: ReadonlyArray<ReadRow>
  readonly client: ReadonlyArray<ReadRow>
}

const rowOf = (reader: FrameReader, { at_ms, data }: RecordedFrame, round: number): ReadRow => {
  const read = reader.read(data)
  return { ...read, at: at_ms, data, round, length: lengthOf(read.parts) }
}

/** Reads all frames. The rounds of one try make one reply. */
export const readSides = (
  { reply, style, upstream }: Pick<RequestRecord, "reply" | "style" | "upstream">
): ReadSides => {
  let reader: FrameReader | undefined
  let attempt: number | undefined
  const rows = upstream.flatMap((round, index) => {
    if (reader !== undefined && round.attempt === attempt) reader.nextRound()
    else {
      reader?.end()
      reader = FrameReader.ofServer(round.protocol)
    }
    attempt = round.attempt
    const own = reader
    // Each row keeps its parts, to which the end of the reply may add why it ended.
    return round.frames.map((frame) => rowOf(own, frame, index))
  })
  reader?.end()
  const own = FrameReader.ofClient(style)
  const client = (reply?.frames ?? []).map((frame) => rowOf(own, frame, 0))
  own.end()
  return { upstream: rows.sort((a, b) => a.at - b.at), client }
}
