/**
 * One round of a reply as events: the first stream, or a continued one. Its token counts come from the gateway's estimator.
 */
import { closed, type JsonObject, type MessageIds, readyOf, unfinished } from "../../contracts/session/writeReply.ts"
import { estimateTokens } from "../../domain/estimateTokens.ts"
import type { Steps } from "./Call.ts"
import { FragmentDocument, Patches, StringDocument } from "./documents.ts"
import { streamWith } from "./faults.ts"
import { type FaultSpec, nextCut, type Reply, type Restart } from "./Reply.ts"
import { type Draft, type EventItem, plainWire, writeStream } from "./wire.ts"

interface Tokens {
  readonly reasoning: number
  /** Reasoning included. */
  readonly reply: number
}

const count = (reply: Reply, sent: number): Tokens => {
  const text = { Think: "", Say: "" }
  for (let i = 0; i < sent; i++) {
    const piece = reply.pieces[i]!
    if (piece._tag === "Think" || piece._tag === "Say") text[piece._tag] += piece.text
  }
  const reasoning = estimateTokens(text.Think)
  return { reasoning, reply: reasoning + estimateTokens(text.Say) }
}

/** The token counts of a round that ends after `sent` pieces, as fields of `response`. */
const usageAtEnd = (reply: Reply, sent: number): JsonObject => {
  const usage = reply.usage
  switch (usage._tag) {
    case "None":
    case "Zero":
      return {}
    case "Given":
      return { token_usage: usage.value }
    case "Accumulated":
      return { accumulated_token_usage: usage.value }
    case "Computed": {
      const tokens = count(reply, sent)
      const parts = {
        prompt_tokens: reply.promptTokens,
        completion_tokens: tokens.reply,
        reasoning_tokens: tokens.reasoning
      }
      switch (usage.form) {
        case "accumulated":
        case "running":
          return { accumulated_token_usage: tokens.reply }
        case "total":
          return { token_usage: tokens.reply }
        case "parts":
          return { token_usage: parts }
        case "both":
          return { token_usage: parts, accumulated_token_usage: tokens.reply + 1000 }
      }
    }
  }
}

/** The token counts of a snapshot after `sent` pieces. */
const usageInSnapshot = (reply: Reply, sent: number): JsonObject => {
  if (reply.usage._tag === "None") return {}
  const counted = sent === 0 ? undefined : usageAtEnd(reply, sent)["accumulated_token_usage"]
  return { accumulated_token_usage: counted ?? 0 }
}

/** The token count after each piece, for `!usage running`: a share of the total, so that every piece costs the same. */
const runningUsage = (reply: Reply): (sent: number) => number | undefined => {
  if (reply.usage._tag !== "Computed" || reply.usage.form !== "running") return () => undefined
  const whole = count(reply, reply.pieces.length).reply
  return (sent) => Math.round(whole * sent / reply.pieces.length)
}

/** The part of a reply that a stream carries, and how the stream starts. */
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
  for (let i = 0; i < round.from; i++) document.add(reply.pieces[i]!)

  const snapshot = (wait: number) =>
    patches.snapshot(unfinished(ids, reply, usageInSnapshot(reply, round.from), document.body()), wait)

  let repeated: EventItem | undefined = undefined
  if (round.start === "snapshot") {
    snapshot(0)
    repeated = patches.items.pop()
  }
  patches.named("ready", readyOf(ids))
  let next = round.from
  if (round.start !== "none") {
    let wait = 0
    if (round.start === "empty") {
      document.restart()
    } else if (next < end) {
      // The first piece comes with the snapshot, in continued streams too.
      const piece = reply.pieces[next++]!
      document.add(piece)
      wait = piece.wait
      patches.sent = next
    }
    snapshot(wait)
  }
  for (; next < end; next++) {
    const piece = reply.pieces[next]!
    const added = document.add(piece)
    for (const patch of added.slice(0, -1)) patches.write(patch)
    patches.sent++
    for (const patch of added.slice(-1)) patches.write(patch, piece.wait)
    const tokens = running(patches.sent)
    if (tokens !== undefined) patches.write(document.set("response/accumulated_token_usage", tokens))
  }
  const before = patches.items.length
  const last = document.finish(cut === undefined ? "FINISHED" : reply.cuts.status, usageAtEnd(reply, end))
  for (const patch of last) patches.write(patch)
  patches.named("close", closed)
  return { items: patches.items, wire: plainWire, from: round.from, ending: patches.items[before]!, repeated }
}

/** The steps of a round with its faults. */
export const replyStream = (reply: Reply, ids: MessageIds, round: Round, faults: ReadonlyArray<FaultSpec>): Steps =>
  writeStream(faults.reduce((draft, fault) => streamWith(fault, draft), draftRound(reply, ids, round)), reply)
