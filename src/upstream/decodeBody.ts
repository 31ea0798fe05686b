/**
 * The body of an exchange to values, as a stage of its stream. A reply is a stream of events, or the one object of a server that does not
 * stream.
 */
import type * as Stream from "effect/Stream"
import type { ChunkDecoder } from "../contracts/shared/ChunkDecoder.ts"
import { valueBytesOf } from "../contracts/shared/json.ts"
import { EventStream } from "../domain/stream/eventStream.ts"
import { makeSseDecoder, type SseEvent } from "../domain/stream/sse.ts"
import { once, transduce } from "../domain/stream/transduce.ts"
import { clear, type FailingMachine } from "../domain/stream/transducer.ts"
import type { UpstreamEvent } from "../domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { RequestBudget } from "./budget.ts"
import type { Exchange } from "./Exchange.ts"
import type { RoundRecorder } from "./Upstream.ts"

/** A decoder of a whole body, from network chunks to values. Values decoded before its failure are still valid. */
export interface BodyDecoder<A> extends FailingMachine<Uint8Array, A, UpstreamFailure> {
  readonly failure: () => UpstreamFailure | undefined
  /** The decoder needs nothing more of the body, or there is nothing more. */
  readonly done: () => boolean
}

/** Whether a decoder has read enough. */
export const isDecoded = <A>(decoder: BodyDecoder<A>): boolean => decoder.done()

/** The decoded values of a body, for a single reader. */
export const decodeBody = <A>({ bytes }: Exchange, decoder: BodyDecoder<A>): Stream.Stream<A, UpstreamFailure> =>
  bytes.pipe(transduce<Uint8Array, A, UpstreamFailure, BodyDecoder<A>>(once(decoder), isDecoded))

/** Milliseconds of silence that end the body. After the finish reason only usage and the sentinel may follow; then nothing. */
const endAfterFinish = 2_000
const endAfterSentinel = 100

/** Bytes of a reply that came as a whole, which one parse reads. */
const longestWhole = 64 * 1024 * 1024

const malformed = new UpstreamFailure({ phase: "stream", kind: "malformed" })

/** Decodes a stream of events. */
const streamDecoder = (chunks: ChunkDecoder, expectEnd: Exchange["expectEnd"]): BodyDecoder<UpstreamEvent> => {
  const sse = makeSseDecoder()
  const events: Array<SseEvent> = []
  let over = false
  let expected: number | undefined
  const expectEndWithin = (millis: number | undefined) => {
    if (expected === millis) return
    expected = millis
    expectEnd(millis)
  }
  return {
    push(bytes, out) {
      over = chunks.done()
      sse.push(bytes, events)
      for (let i = 0; i < events.length; i++) chunks.push(events[i]!, out)
      clear(events)
      expectEndWithin(chunks.done() ? endAfterSentinel : chunks.finishing() ? endAfterFinish : undefined)
    },
    end(out) {
      sse.end(events)
      for (const event of events) chunks.pushUnterminated(event, out)
      chunks.end(out)
    },
    failure: () => sse.overflowed ? malformed : chunks.failure(),
    // Reading the body to its end keeps the connection usable; a body that continues after the sentinel is left.
    done: () => over || chunks.withdrawn()
  }
}

/** Decodes one object, at the end. Until then its bytes count towards the memory of all requests. */
const wholeDecoder = (chunks: ChunkDecoder, budget: RequestBudget): BodyDecoder<UpstreamEvent> => {
  const pieces: Array<Uint8Array> = []
  let size = 0
  let tooMany: UpstreamFailure | undefined
  return {
    push(bytes) {
      size += bytes.length
      if (size > longestWhole) tooMany = malformed
      else if (!budget.keepBytes(bytes.length)) tooMany = budget.tooMuchKept("stream")
      else pieces.push(bytes)
    },
    end(out) {
      budget.keepBytes(-size)
      if (tooMany !== undefined) return
      const text = new TextDecoder().decode(Buffer.concat(pieces))
      const values = valueBytesOf(text)
      if (values === undefined) tooMany = malformed
      else if (!budget.keepBytes(values)) tooMany = budget.tooMuchKept("stream")
      else {
        chunks.pushWhole(text, out)
        chunks.end(out)
      }
      budget.keepBytes(-(values ?? 0))
    },
    failure: () => tooMany ?? chunks.failure(),
    done: () => false
  }
}

/** The type of AWS's binary event stream. */
const eventStream = "application/vnd.amazon.eventstream"

/** The decoder of a body of a content type: what is in AWS's binary frames is decoded, and recorded, as server-sent events. */
export const unframed = (
  contentType: string | undefined,
  decoder: BodyDecoder<UpstreamEvent>
): BodyDecoder<UpstreamEvent> => {
  if (contentType?.startsWith(eventStream) !== true) return decoder
  const stream = new EventStream()
  const texts: Array<Uint8Array> = []
  return {
    push(bytes, out) {
      stream.push(bytes, texts)
      for (let i = 0; i < texts.length; i++) decoder.push(texts[i]!, out)
      clear(texts)
    },
    end(out) {
      stream.end()
      decoder.end(out)
    },
    failure: () => decoder.failure() ?? (stream.isBroken ? malformed : undefined),
    done: decoder.done
  }
}

const isBlank = (byte: number): boolean => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
const isJson = (byte: number): boolean => byte === 0x7b || byte === 0x5b

/** The byte order mark, which some servers send first. */
const mark = [0xef, 0xbb, 0xbf]

/**
 * Starts the decoder of a reply's body; `chunks` decodes its events, `round` records every byte, and `isRead` says that the last bytes
 * have been read. Content types are unreliable here; the
 * first byte that is not a blank decides. A reply with too many characters
 * for the `budget` ends by length; a reply with too many bytes fails.
 */
export const replyDecoder = (
  chunks: ChunkDecoder,
  expectEnd: Exchange["expectEnd"],
  budget: RequestBudget,
  round: Pick<RoundRecorder, "bytes"> | undefined,
  isRead: () => boolean = () => false
): BodyDecoder<UpstreamEvent> => {
  let decoder: BodyDecoder<UpstreamEvent> | undefined
  let tooMany: UpstreamFailure | undefined
  let isFull = false
  /** Bytes of a leading byte order mark so far. */
  let marked = 0
  /** The index at which the reply begins in the first bytes; their length if it does not begin there. */
  const beginning = (bytes: Uint8Array): number => {
    let at = 0
    while (at < bytes.length && marked < mark.length && bytes[at] === mark[marked]) {
      marked++
      at++
    }
    while (at < bytes.length && isBlank(bytes[at]!)) at++
    return at
  }
  const failure = () => isFull ? undefined : tooMany ?? (decoder ?? chunks).failure()
  const decide = (first: number | undefined) =>
    first !== undefined && isJson(first) ? wholeDecoder(chunks, budget) : streamDecoder(chunks, expectEnd)
  return {
    push(bytes, out) {
      if (isFull || tooMany !== undefined) return
      round?.bytes(bytes)
      let body = bytes
      if (!budget.addBytes(bytes.length)) {
        tooMany = budget.tooManyBytes("stream")
        return
      }
      if (decoder === undefined) {
        const at = beginning(bytes)
        if (at === bytes.length) return
        decoder = decide(bytes[at])
        if (marked > 0) body = bytes.subarray(at)
      }
      const from = out.length
      decoder.push(body, out)
      isFull = budget.admit(out, from)
    },
    end(out) {
      // The end of a cut reply was emitted already.
      if (isFull || tooMany !== undefined) return
      const from = out.length
      const last = decoder ?? decide(undefined)
      last.end(out)
      isFull = budget.admit(out, from)
    },
    failure,
    done: () => isFull || decoder?.done() === true || (isRead() && failure() === undefined)
  }
}
