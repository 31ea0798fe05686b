/**
 * The bytes of one reply of the upstream, kept once for all who hold them: a capture, and the record of the request. Each
 * holds as much of their beginning as its own limit allows.
 */
import type { ByteLog, Mark } from "./byteLog.ts"

/** One who holds the beginning of the bytes. */
export interface Hold {
  /** How many bytes it has. */
  readonly size: () => number
  /** The reply was longer than what it has. */
  readonly isTruncated: () => boolean
  /** What it has, in an array of its own. */
  readonly bytes: () => Uint8Array
  /** Where the chunks of what it has end, and when they came. */
  readonly marks: () => ReadonlyArray<Mark>
  /** Lets go of it. */
  readonly release: () => void
}

export interface RoundBytes {
  /** `limit` is asked at every chunk how many bytes the hold may have, where it could have `next` in `chunks` chunks. */
  readonly hold: (limit: (next: number, chunks: number) => number) => Hold
  readonly push: (chunk: Uint8Array, at: number) => void
  /** No more comes: what is held takes no more memory than it needs from now on. */
  readonly close: () => void
}

interface Holder {
  readonly limit: (next: number, chunks: number) => number
  kept: number
  truncated: boolean
}

/** Makes the bytes of a reply that is about to come. */
export const makeRoundBytes = (log: ByteLog): RoundBytes => {
  const holders: Array<Holder> = []
  let received = 0
  let chunks = 0
  let closed = false

  const tidy = () => {
    if (holders.length === 0) log.release()
    else if (closed) log.compact(Math.max(...holders.map(({ kept }) => kept)))
  }

  return {
    hold(limit) {
      const holder: Holder = { limit, kept: 0, truncated: false }
      holders.push(holder)
      return {
        size: () => holder.kept,
        isTruncated: () => holder.truncated,
        bytes: () => log.bytes(holder.kept),
        marks() {
          const marks: Array<Mark> = []
          for (const { at, end } of log.marks()) {
            if ((marks.at(-1)?.end ?? 0) >= holder.kept) break
            marks.push({ at, end: Math.min(end, holder.kept) })
          }
          return marks
        },
        release() {
          const place = holders.indexOf(holder)
          if (place === -1) return
          holders.splice(place, 1)
          holder.kept = 0
          tidy()
        }
      }
    },
    push(chunk, at) {
      received += chunk.length
      chunks++
      let most = 0
      for (let i = 0; i < holders.length; i++) {
        const holder = holders[i]!
        if (holder.truncated) continue
        const allowed = holder.limit(received, chunks)
        holder.kept = Math.max(holder.kept, Math.min(received, allowed))
        holder.truncated = allowed < received
        if (holder.kept > most) most = holder.kept
      }
      if (most > log.size()) log.push(chunk, most, at)
    },
    close() {
      closed = true
      tidy()
    }
  }
}
