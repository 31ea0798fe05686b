/**
 * One round of a reply (the first stream, or a continued one) as events.
 */
import { FragmentDocument, StringDocument } from "./documents.ts"
import { type Draft, type EventItem, plainWire } from "./Draft.ts"
import { Patches } from "./Patches.ts"
import { nextCut, type Reply, type Restart } from "./Reply.ts"
import { runningUsage, usageAtEnd, usageInSnapshot } from "./usage.ts"

/** Message ids of a turn: the caller's request and the upstream's response. */
export interface MessageIds {
  readonly request: number
  readonly response: number
}

/** Which part of a reply a stream carries, and how it starts. */
export interface Round {
  readonly start: "first" | Restart
  /** Pieces that have left already. */
  readonly from: number
}

/** Writes the events of a round, up to the next cut or to the end. */
export const draftRound = (reply: Reply, ids: MessageIds, round: Round): Draft => {
  const patches = new Patches(round.from)
  const document = reply.shape === "new" ? new FragmentDocument() : new StringDocument()
  const running = runningUsage(reply)
  const cut = nextCut(reply, round.from)
  const end = cut ?? reply.pieces.length
  for (let i = 0; i < round.from; i++) document.absorb(reply.pieces[i]!)

  const snapshot = (wait: number) =>
    patches.snapshot({
      message_id: ids.response,
      parent_id: ids.request,
      role: "ASSISTANT",
      status: "WIP",
      thinking_enabled: reply.thinking,
      ...(reply.search ? { search_enabled: true } : {}),
      ...Object.fromEntries(usageInSnapshot(reply, round.from)),
      ...(reply.search ? { search_status: null, search_results: [] } : {}),
      ...document.body()
    }, wait)

  let repeated: EventItem | undefined = undefined
  if (round.start === "snapshot") {
    snapshot(0)
    repeated = patches.items.pop()
  }
  patches.named("ready", { request_message_id: ids.request, response_message_id: ids.response })
  let next = round.from
  if (round.start !== "none") {
    let wait = 0
    if (round.start === "empty") {
      document.restart()
    } else if (next < end) {
      // The first piece comes with the document; a continued snapshot is ahead of what the reader has, too.
      const piece = reply.pieces[next++]!
      document.absorb(piece)
      wait = piece.wait
      patches.sent = next
    }
    snapshot(wait)
  }
  for (; next < end; next++) {
    document.grow(reply.pieces[next]!, patches)
    document.set(running(patches.sent), patches)
  }
  const before = patches.items.length
  document.finish(cut === undefined ? "FINISHED" : reply.cuts.status, usageAtEnd(reply, end), patches)
  patches.named("close", { click_behavior: "none" })
  return { items: patches.items, wire: plainWire, from: round.from, ending: patches.items[before]!, repeated }
}
