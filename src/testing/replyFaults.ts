/**
 * Faults of what a reply says.
 */
import type { Fault, ReplyFault } from "./Fault.ts"
import type { Piece, Reply } from "./Reply.ts"

/** The longest line that can be asked for. */
const maxLine = 64 * 1024 * 1024

interface ReplyRow {
  readonly about: string
  readonly change: (fault: Fault, reply: Reply) => Reply
}

const insert = (reply: Reply, at: number, ...pieces: ReadonlyArray<Piece>): Reply => ({
  ...reply,
  pieces: [...reply.pieces.slice(0, at), ...pieces, ...reply.pieces.slice(at)]
})

/** Reply faults by name. */
export const replies: Readonly<Record<ReplyFault, ReplyRow>> = {
  "long-line": {
    about: "a piece of 8 MB (`bytes=N`) of text in one line",
    change: (fault, reply) =>
      insert(reply, fault.after ?? 1, {
        _tag: "Say",
        text: "x".repeat(Math.min(fault.bytes ?? 8 * 1024 * 1024, maxLine)),
        wait: 0
      })
  },
  "empty-fragment": {
    about: "the `RESPONSE` fragment starts empty",
    change: (_, reply) => {
      const first = reply.pieces.findIndex((piece) => piece._tag === "Say")
      return first === -1 ? reply : insert(reply, first, { _tag: "Say", text: "", wait: 0 })
    }
  },
  "unknown-parts": {
    about: "fragments of unknown types and fields that no page knows",
    change: (fault, reply) =>
      insert(
        reply,
        fault.after ?? 1,
        { _tag: "Set", path: "response/mood", value: { cheerful: true }, wait: 0 },
        { _tag: "Fragment", type: "TIP", fields: { content: "never reply text" }, wait: 0 },
        { _tag: "Fragment", type: "SOMETHING_NEW", fields: { content: "never reply text" }, wait: 0 }
      )
  },
  "endless-incomplete": {
    about: "INCOMPLETE after every piece, for as long as the caller continues",
    change: (_, reply) => ({
      ...reply,
      pieces: Array.from({ length: 10_000 }, (_, i): Piece => ({ _tag: "Say", text: `${i} `, wait: 0 })),
      cuts: { ...reply.cuts, every: 1 }
    })
  }
}
