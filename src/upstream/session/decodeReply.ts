/**
 * Decodes the events of a session reply into upstream events, over all of its rounds (upstream-protocol, "The event stream").
 *
 * Text leaves as it grows: what is out is never taken back, so a document that no longer begins with it is a failure.
 */
import { type UpstreamEvent, UpstreamReasoning, UpstreamText, UpstreamUsage } from "../../domain/UpstreamEvent.ts"
import type { PartialUsage } from "../../domain/Usage.ts"
import type { SseEvent } from "../../stream/sse.ts"
import type { Meter } from "../../stream/steps.ts"
import { TextPieces } from "../../stream/TextPieces.ts"
import { type Change, isRecord, type JsonRecord, makePatchDocument } from "./patchDocument.ts"

/** A message id as the upstream wrote it, to be passed back in the same form. */
export type MessageId = string | number

/** Why a reply failed, in the terms of `UpstreamFailure`. */
export interface ReplyTrouble {
  readonly kind: "malformed" | "truncated" | "withdrawn" | "gave_up" | "disagrees" | "empty"
  readonly reason: string | undefined
  readonly message: string | undefined
}

/** What the end of one round's stream means. */
export type RoundEnd =
  | { readonly _tag: "Finished"; readonly reason: "stop" | "content_filter" }
  /** Cut at the upstream's output limit: `chat/continue` goes on. */
  | { readonly _tag: "Incomplete" }
  /** Cut off: `chat/continue` resumes it. `trouble` is what the reply fails with where that is impossible. */
  | { readonly _tag: "CutOff"; readonly trouble: ReplyTrouble }
  | { readonly _tag: "Failed"; readonly trouble: ReplyTrouble }

/** A decoder of one reply. */
export interface ReplyDecoder {
  /** Takes one event and appends what it yields. */
  readonly push: (event: SseEvent, out: Array<UpstreamEvent>) => void
  /** Takes the event that the stream's end left unterminated: it counts only if its data is whole. */
  readonly pushUnterminated: (event: SseEvent, out: Array<UpstreamEvent>) => void
  /** What the round's end means; to be asked once no event of it follows. */
  readonly endRound: () => RoundEnd
  /**
   * A continued stream begins. `missed`: an earlier one may have brought what nobody received. Unless this one shows the
   * reply so far, the reply has a hole that nobody could see, and fails.
   */
  readonly startRound: (missed?: boolean) => void
  /** The reply's message id, once it is known. */
  readonly messageId: MessageId | undefined
  /** Nothing more will come of this round: the upstream said so, or the reply has failed. */
  readonly closed: boolean
  /** The reply has failed: nothing more is wanted of this round. */
  readonly failed: boolean
  /** The content filter withdrew the reply: nothing that follows is shown or waited for. */
  readonly withdrawn: boolean
  /**
   * The document has a final status: little may follow, and nothing that must be waited for. The status with which a
   * continued stream opens may be the one of the round before, and is not final while it says `INCOMPLETE`.
   */
  readonly final: boolean
  /** UTF-16 units of text and reasoning that have left; grows with each piece. */
  readonly produced: number
}

type Channel = "reasoning" | "text"

/** A text-bearing piece of the document. */
interface Piece {
  readonly channel: Channel
  readonly content: string
  /** The fragment's; 0 in documents without. */
  readonly index: number
}

const finalStatuses = new Set([
  "FINISHED",
  "INCOMPLETE",
  "AUTO_CONTINUE",
  "CONTENT_FILTER",
  "TIMEOUT",
  "ERROR"
])

const isIncomplete = (status: string | undefined): boolean => status === "INCOMPLETE" || status === "AUTO_CONTINUE"

const trouble = (kind: ReplyTrouble["kind"], reason?: string, message?: string): ReplyTrouble => ({
  kind,
  reason,
  message
})

const failed = (cause: ReplyTrouble): RoundEnd => ({ _tag: "Failed", trouble: cause })

const isMessageId = (value: unknown): value is MessageId =>
  (typeof value === "string" && value !== "" && value.length <= 256) || Number.isSafeInteger(value)

const mostTokens = 1e12

const tokens = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= mostTokens ? value : undefined

/** `undefined` where the text is no JSON; `null` is JSON. */
const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const fragmentChannel = (fragment: unknown): Channel | undefined => {
  if (!isRecord(fragment)) return undefined
  return fragment["type"] === "RESPONSE" ? "text" : fragment["type"] === "THINK" ? "reasoning" : undefined
}

const contentOf = (fragment: unknown): string => {
  const content = isRecord(fragment) ? fragment["content"] : undefined
  return typeof content === "string" ? content : ""
}

const emptyResponse: JsonRecord = {}

const makePatched = () => ({
  count: 0,
  only: undefined as Change | undefined,
  /** The response as a whole was replaced. */
  snapshot: false,
  status: false,
  /** Text was appended. */
  grew: false,
  /** Text was changed in a way that only a comparison can judge. */
  rewritten: false
})

/** A place of the document that grows. */
interface Cursor {
  readonly owner: JsonRecord
  readonly key: string
  readonly channel: Channel | undefined
  /** The fragment's; 0 in documents without. */
  readonly index: number
}

/**
 * Characters of the document that may be compared with what has left: so many for each character received, and some to begin
 * with. Replies that grow need none; one that is rewritten over and over is given up.
 */
const comparedPerCharacter = 64
const comparedAtLeast = 1024 * 1024

/** The most that the document may weigh, in characters; how often it is weighed grows with it. */
const mostWeight = 48 * 1024 * 1024
const weighedAfter = 16 * 1024 * 1024

/** Characters of a JSON value, and some for each of its parts; no more than needed is counted beyond `most`. */
const weigh = (value: unknown, most: number): number => {
  let weight = 0
  const left: Array<unknown> = [value]
  while (left.length > 0 && weight <= most) {
    const next = left.pop()
    weight += typeof next === "string" ? next.length + 8 : 8
    if (Array.isArray(next)) { for (const element of next) left.push(element) }
    else if (isRecord(next)) {
      for (const key of Object.keys(next)) {
        weight += key.length
        left.push(next[key])
      }
    }
  }
  return weight
}

/** Starts a decoder. Linear in what it is sent, whatever that is; `meter` is told its steps. */
export const makeReplyDecoder = (meter?: Meter): ReplyDecoder => {
  const document = makePatchDocument(meter)
  /** What has left, and how much of it is not in the document (an empty snapshot starts the document anew). */
  const emitted = { reasoning: new TextPieces(), text: new TextPieces() }
  const base = { reasoning: 0, text: 0 }
  /** The last fragment with text of each channel: growth before it would land inside what has left. */
  const lastText = { reasoning: -1, text: -1 }
  /** Where a bare string patch grows the document, and what has been appended there but not yet written down. */
  let cursor: Cursor | undefined
  const pending = new TextPieces()
  let received = 0
  let compared = 0
  let weighAt = weighedAfter
  let messageId: MessageId | undefined
  let status: string | undefined
  let stale = false
  let final = false
  /** `[DONE]` was sent. */
  let sentinel = false
  let cause: ReplyTrouble | undefined
  let closed = false
  let consistent = true
  let firstOfRound = false
  /** A continued stream may be missing, as far as the snapshots since then tell. */
  let missed = false
  let produced = 0
  let usage: PartialUsage = {}
  /** What the patch at hand has done so far. */
  const patched = makePatched()

  const response = (): JsonRecord => {
    const value = document.root["response"]
    return isRecord(value) ? value : emptyResponse
  }

  const emit = (channel: Channel, text: string, out: Array<UpstreamEvent>) => {
    produced += text.length
    out.push(channel === "text" ? UpstreamText(text) : UpstreamReasoning(text))
  }

  const fail = (reason: ReplyTrouble) => {
    cause = reason
    closed = true
  }

  /** Writes down what the fast path has appended. */
  const settle = () => {
    if (cursor !== undefined && pending.length > 0) {
      cursor.owner[cursor.key] = (cursor.owner[cursor.key] as string) + pending.toString()
      pending.clear()
    }
    cursor = undefined
  }

  const pieces = (): Array<Piece> => {
    const found: Array<Piece> = []
    const { content, fragments, thinking_content: thinking } = response()
    if (Array.isArray(fragments)) {
      count(fragments.length)
      fragments.forEach((fragment, index) => {
        const channel = fragmentChannel(fragment)
        if (channel !== undefined) found.push({ channel, content: contentOf(fragment), index })
      })
    } else {
      if (typeof thinking === "string") found.push({ channel: "reasoning", content: thinking, index: 0 })
      if (typeof content === "string") found.push({ channel: "text", content, index: 0 })
    }
    return found
  }

  /** Compares the document with what has left: all beyond it is growth, unless the two disagree. */
  const compare = (out: Array<UpstreamEvent>) => {
    const position = { reasoning: base.reasoning, text: base.text }
    const growth: Array<Piece> = []
    consistent = true
    lastText.reasoning = -1
    lastText.text = -1
    count(emitted.reasoning.length + emitted.text.length)
    for (const { channel, content, index } of pieces()) {
      const known = emitted[channel].toString()
      const start = position[channel]
      count(content.length)
      if (content !== "") lastText[channel] = index
      position[channel] = start + content.length
      if (start >= known.length) {
        if (content !== "") growth.push({ channel, content, index })
      } else if (position[channel] <= known.length) {
        consistent &&= known.startsWith(content, start)
      } else {
        const overlap = known.length - start
        consistent &&= content.startsWith(start === 0 ? known : known.slice(start))
        growth.push({ channel, content: content.slice(overlap), index })
      }
    }
    consistent &&= position.reasoning >= emitted.reasoning.length && position.text >= emitted.text.length
    if (!consistent) return
    for (const { channel, content } of growth) grow(channel, content, out)
  }

  const count = (steps: number) => {
    compared += steps
    if (meter !== undefined) meter.steps += steps
  }

  /** True for a change that can have changed the reply's text. */
  const touchesText = (change: Change): boolean => {
    if (change._tag === "Root") return true
    const [first, second, , fourth] = change.path
    if (first !== "response") return false
    if (change.path.length === 1) return true
    if (second === "content" || second === "thinking_content") return !Array.isArray(response()["fragments"])
    return second === "fragments" && (fourth === undefined || fourth === "content" || fourth === "type")
  }

  /** The place of the text that a change is of, where it is the text itself. */
  const placeOf = (owner: JsonRecord | undefined, path: ReadonlyArray<string>): Cursor | undefined => {
    if (owner === undefined) return undefined
    const key = path[path.length - 1]!
    if (path.length === 4 && path[1] === "fragments" && key === "content") {
      return { owner, key, channel: fragmentChannel(owner), index: Number(path[2]) }
    }
    if (path.length !== 2 || Array.isArray(response()["fragments"])) return undefined
    if (key !== "content" && key !== "thinking_content") return undefined
    return { owner, key, channel: key === "content" ? "text" : "reasoning", index: 0 }
  }

  /** Text grows at a place; false where that is inside of what has left. */
  const growAt = ({ channel, index }: Cursor, text: string, out: Array<UpstreamEvent>): boolean => {
    if (channel === undefined || text === "") return true
    if (lastText[channel] > index) return false
    lastText[channel] = index
    grow(channel, text, out)
    return true
  }

  const growFragments = (fragments: ReadonlyArray<unknown>, from: number, out: Array<UpstreamEvent>) => {
    for (let index = from; index < fragments.length; index++) {
      const channel = fragmentChannel(fragments[index])
      const content = contentOf(fragments[index])
      if (channel === undefined || content === "") continue
      lastText[channel] = index
      grow(channel, content, out)
    }
  }

  /** Handles one change of text where its own extent tells what grew; false where it does not. */
  const follow = (change: Change, out: Array<UpstreamEvent>): boolean => {
    if (change._tag === "Root" || !consistent) return false
    const { path } = change
    const fragments = response()["fragments"]
    if (path[1] === "fragments" && Array.isArray(fragments)) {
      const isNew = change._tag === "Replaced" && path.length === 3 && change.before === undefined
      if (isNew || (change._tag === "Extended" && path.length === 2)) {
        growFragments(fragments, change._tag === "Extended" ? change.from : fragments.length - 1, out)
        return true
      }
    }
    if (change._tag === "Extended") return false
    const place = placeOf(change.owner, path)
    if (place === undefined) return false
    if (change._tag === "Grown") return growAt(place, change.text, out)
    const { before = "", value } = change
    if (place.channel === undefined) return true
    if (typeof before !== "string" || typeof value !== "string" || !value.startsWith(before)) return false
    return growAt(place, value.slice(before.length), out)
  }

  const grow = (channel: Channel, text: string, out: Array<UpstreamEvent>) => {
    if (text === "") return
    emitted[channel].push(text)
    emit(channel, text, out)
  }

  /** The last values count, over all rounds; `token_usage` wins where the document has both. */
  const readUsage = (out: Array<UpstreamEvent>) => {
    const { accumulated_token_usage: accumulated, token_usage: given } = response()
    const total = tokens(accumulated)
    const detail = isRecord(given) ? given : { completion_tokens: given }
    const promptTokens = tokens(detail["prompt_tokens"])
    // Documents start with a total of 0, which says nothing.
    const completion = tokens(detail["completion_tokens"]) ?? (total === 0 ? undefined : total)
    const reasoningTokens = tokens(detail["reasoning_tokens"])
    const changed = (promptTokens !== undefined && promptTokens !== usage.promptTokens) ||
      (completion !== undefined && completion !== usage.completionTokens) ||
      (reasoningTokens !== undefined && reasoningTokens !== usage.reasoningTokens)
    if (!changed) return
    usage = {
      ...usage,
      ...(promptTokens === undefined ? {} : { promptTokens }),
      ...(completion === undefined ? {} : { completionTokens: completion }),
      ...(reasoningTokens === undefined ? {} : { reasoningTokens })
    }
    out.push(UpstreamUsage(usage))
  }

  const isEmptySnapshot = (): boolean => pieces().every((piece) => piece.content === "")

  const applyPatch = (patch: JsonRecord, out: Array<UpstreamEvent>) => {
    settle()
    const from = out.length
    Object.assign(patched, makePatched())
    document.apply(patch, (change) => {
      if (meter !== undefined) meter.steps++
      patched.only = patched.count++ === 0 ? change : undefined
      if (change._tag === "Root" || (change._tag === "Replaced" && change.path.length === 1)) patched.snapshot = true
      if (change._tag === "Root" || change.path[1] === "status") patched.status = true
      if (!touchesText(change)) return
      if (change._tag === "Grown") patched.grew = true
      // Text that comes after the status is not shown.
      if (patched.rewritten || isWithdrawn()) return
      patched.rewritten = !follow(change, out)
    })
    const opensRound = firstOfRound && patched.snapshot
    const empty = opensRound && isEmptySnapshot()
    if (opensRound) {
      base.reasoning = empty ? emitted.reasoning.length : 0
      base.text = empty ? emitted.text.length : 0
    }
    if (missed && firstOfRound) {
      missed = false
      if ((empty || !opensRound) && !isWithdrawn()) {
        out.length = from
        return fail(trouble("truncated", undefined, "A part of the reply was lost on its way"))
      }
    }
    firstOfRound = false
    const wasConsistent = consistent
    if (isWithdrawn()) closed = true
    else if (patched.rewritten) compare(out)
    const { message_id: id, status: next } = response()
    takeMessageId(id)
    if (typeof next === "string") status = next
    if (opensRound) stale = isIncomplete(status)
    else if (patched.status) stale = false
    final = status !== undefined && finalStatuses.has(status) && !stale
    if (patched.count > 0) readUsage(out)
    // A withdrawal may replace the text before it says so; text that goes on growing is no withdrawal.
    const goesOn = !wasConsistent && patched.grew
    if (!consistent && status !== "CONTENT_FILTER" && (opensRound || goesOn)) fail(trouble("disagrees"))
    if (compared > comparedAtLeast + comparedPerCharacter * received) fail(trouble("disagrees"))
    const { only } = patched
    if (only?._tag === "Grown" && typeof patch["v"] === "string" && consistent) placeCursor(only)
  }

  /** Fails a document that grows beyond all measure, in whatever part of it. */
  const weighDocument = () => {
    const weight = pending.length + weigh(document.root, mostWeight)
    if (meter !== undefined) meter.steps += weight
    if (weight > mostWeight) fail(trouble("malformed", undefined, "The reply's document is too large"))
    weighAt = received + Math.max(weighedAfter, weight)
  }

  const isWithdrawn = (): boolean => response()["status"] === "CONTENT_FILTER"

  const placeCursor = (change: Extract<Change, { readonly _tag: "Grown" }>) => {
    if (change.path[0] !== "response") return
    const place = placeOf(change.owner, change.path)
    if (place === undefined || (place.channel !== undefined && lastText[place.channel] > place.index)) return
    cursor = place
  }

  const append = (text: string, out: Array<UpstreamEvent>) => {
    pending.push(text)
    growAt(cursor!, text, out)
  }

  const pushPatch = (data: string, out: Array<UpstreamEvent>): boolean => {
    received += data.length
    if (received > weighAt) weighDocument()
    if (meter !== undefined) meter.steps += data.length
    // `{"v":"…"}` without escapes needs no parser.
    if (
      cursor !== undefined && data.startsWith("{\"v\":\"") && data.indexOf("\"", 6) === data.length - 2 &&
      data.charCodeAt(data.length - 1) === 125 && !data.includes("\\")
    ) {
      append(data.slice(6, -2), out)
      return true
    }
    const patch = parse(data)
    if (patch === undefined) return false
    if (!isRecord(patch)) return true
    const { o: operation, p: path, v: value } = patch
    if (
      cursor !== undefined && typeof value === "string" &&
      (path === undefined || path === document.stickyPath) &&
      (operation === undefined || (operation === "APPEND" && document.stickyOperation === "APPEND"))
    ) append(value, out)
    else applyPatch(patch, out)
    return true
  }

  const takeMessageId = (id: unknown) => {
    if (isMessageId(id)) messageId = id
    else if (id !== undefined && id !== null) fail(trouble("malformed", undefined, "The reply's message id is no id"))
  }

  const pushReady = (data: string): boolean => {
    const ready = parse(data)
    if (ready === undefined) return false
    if (isRecord(ready)) takeMessageId(ready["response_message_id"])
    return true
  }

  const pushHint = (data: string) => {
    const parsed = parse(data)
    const body: JsonRecord = isRecord(parsed) ? parsed : { type: "error" }
    const reason = typeof body["finish_reason"] === "string" && body["finish_reason"] !== ""
      ? body["finish_reason"]
      : undefined
    // A hint of another type that names no reason informs people, and is no end.
    if (body["type"] !== "error" && reason === undefined) return
    // A reply that is complete stays so, whatever is said after it.
    if (!final) fail(trouble("gave_up", reason, typeof body["content"] === "string" ? body["content"] : undefined))
  }

  /** False where data that has to be JSON is not. */
  const take = (event: SseEvent, out: Array<UpstreamEvent>): boolean => {
    if (closed) return true
    switch (event.event) {
      case undefined:
      case "message": {
        if (event.data === "[DONE]") {
          closed = true
          sentinel = true
          return true
        }
        return pushPatch(event.data, out)
      }
      case "ready":
        return pushReady(event.data)
      case "hint":
      case "toast":
        pushHint(event.data)
        return true
      case "close":
        closed = true
        return true
      default:
        return true
    }
  }

  const endRound = (): RoundEnd => {
    if (cause !== undefined) return failed(cause)
    settle()
    if (status === "CONTENT_FILTER") {
      return produced === 0 ? failed(trouble("withdrawn")) : { _tag: "Finished", reason: "content_filter" }
    }
    if (status === "TIMEOUT" || status === "ERROR") return failed(trouble("gave_up", status))
    if (!consistent) return failed(trouble("disagrees"))
    if (status === "FINISHED") {
      return produced === 0 ? failed(trouble("empty")) : { _tag: "Finished", reason: "stop" }
    }
    if (isIncomplete(status)) return { _tag: "Incomplete" }
    return { _tag: "CutOff", trouble: trouble(sentinel && produced === 0 ? "empty" : "truncated") }
  }

  return {
    push(event, out) {
      if (!take(event, out)) fail(trouble("malformed", undefined, "An event of the reply is not JSON"))
    },
    pushUnterminated(event, out) {
      if (event.data === "[DONE]" || parse(event.data) !== undefined) take(event, out)
    },
    endRound,
    startRound(isMissing = false) {
      settle()
      missed ||= isMissing
      document.startRound()
      // The status of the round before is no end of this one.
      const current = response()
      if (current !== emptyResponse) current["status"] = "WIP"
      status = undefined
      final = false
      sentinel = false
      closed = false
      firstOfRound = true
    },
    get messageId() {
      return messageId
    },
    get closed() {
      return closed
    },
    get failed() {
      return cause !== undefined
    },
    get withdrawn() {
      return status === "CONTENT_FILTER"
    },
    get final() {
      return final
    },
    get produced() {
      return produced
    }
  }
}
