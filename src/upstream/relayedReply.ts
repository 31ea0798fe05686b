/**
 * The beginning of a relayed reply: as much of it as shows whether it is an error, which servers also send with a good status.
 */
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import { parseJson } from "../contracts/shared/json.ts"
import { isRecord, type JsonRecord } from "../domain/json.ts"
import { makeSseDecoder, type SseEvent } from "../domain/stream/sse.ts"
import type { ChunkPull } from "../domain/stream/transduce.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { RequestBudget } from "./budget.ts"

/** Bytes of a beginning at most; a longer one is no error. */
const longestBeginning = 1024 * 1024

/** True for the type of an event stream. */
export const isEventStream = (contentType: string): boolean => /^text\/event-stream\b/i.test(contentType)

/** True for the type of JSON. */
export const isJson = (contentType: string): boolean => /[/+]json\b/i.test(contentType)

/** True for a type that people can read. */
export const isText = (contentType: string): boolean => isJson(contentType) || /^text\//i.test(contentType)

const blankLines = ["\n\n", "\r\n\r\n", "\r\r"]

/** Bytes before a chunk that may be the first part of a blank line. */
const overlap = 3

/** Whether enough has arrived, by the last chunk and the bytes before it. */
const isEnough = (contentType: string, before: Uint8Array | undefined, chunk: Uint8Array): boolean => {
  if (isEventStream(contentType)) {
    const tail = Buffer.concat([before?.subarray(-overlap) ?? new Uint8Array(), chunk])
    return blankLines.some((line) => tail.includes(line))
  }
  return !isJson(contentType)
}

/**
 * The first bytes: the first event of an event stream, the whole of a JSON body, otherwise what arrives first; at most about 1 MiB. Fails
 * for a reply without bytes.
 */
export const firstBytes = (
  next: ChunkPull<Uint8Array, UpstreamFailure>,
  contentType: string,
  budget: RequestBudget
): Effect.Effect<Uint8Array, UpstreamFailure> => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  const end = (): Effect.Effect<Uint8Array, UpstreamFailure> => {
    budget.hold(0)
    return size === 0
      ? Effect.fail(new UpstreamFailure({ phase: "stream", kind: "empty" }))
      : Effect.succeed(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size))
  }
  const read: Effect.Effect<Uint8Array, UpstreamFailure> = Pull.matchEffect(next, {
    onSuccess: ([chunk]) => {
      const before = chunks[chunks.length - 1]
      chunks.push(chunk)
      size += chunk.length
      return size > longestBeginning || isEnough(contentType, before, chunk) || !budget.hold(size / 2) ? end() : read
    },
    onFailure: (cause) => Effect.failCause(cause),
    onDone: end
  })
  return read
}

/** The object that may be an error: that of the first event, or of the whole body. */
export const errorIn = (first: Uint8Array, contentType: string): JsonRecord | undefined => {
  if (first.length > 2 * longestBeginning) return undefined
  let text: string | undefined
  if (isEventStream(contentType)) {
    const events: Array<SseEvent> = []
    makeSseDecoder().push(first, events)
    text = events[0]?.data
  } else if (isJson(contentType)) {
    text = new TextDecoder().decode(first)
  }
  const value = text === undefined ? undefined : parseJson(text)
  return isRecord(value) ? value : undefined
}
