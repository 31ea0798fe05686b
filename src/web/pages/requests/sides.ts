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
export const readSides = ({ reply, upstream }: Pick<RequestRecord, "reply" | "upstream">): ReadSides => {
  let reader = new FrameReader()
  let attempt: number | undefined
  const rows = upstream.flatMap((round, index) => {
    if (round.attempt !== attempt) reader = new FrameReader()
    attempt = round.attempt
    return round.frames.map((frame) => rowOf(reader, frame, index))
  })
  const own = new FrameReader()
  return {
    upstream: rows.sort((a, b) => a.at - b.at),
    client: (reply?.frames ?? []).map((frame) => rowOf(own, frame, 0))
  }
}
