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
import { type Change, isRecord, type JsonRecord, makePatchDocument, type PatchDocument } from "./patchDocument.ts"

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

/** A decoder of one reply. Its state is in plain fields: a stream that is open for long holds one, and each event reads it. */
class Decoder implements ReplyDecoder {
  messageId: MessageId | undefined = undefined
  closed = false
  final = false
  produced = 0
  private readonly meter: Meter | undefined
  private readonly document: PatchDocument
  /** What has left, and how much of it is not in the document (an empty snapshot starts the document anew). */
  private readonly emitted = { reasoning: new TextPieces(), text: new TextPieces() }
  private readonly base = { reasoning: 0, text: 0 }
  /** The last fragment with text of each channel: growth before it would land inside what has left. */
  private readonly lastText = { reasoning: -1, text: -1 }
  /** Where a bare string patch grows the document, and what has been appended there but not yet written down. */
  private cursor: Cursor | undefined = undefined
  private readonly pending = new TextPieces()
  private received = 0
  private compared = 0
  private weighAt = weighedAfter
  private status: string | undefined = undefined
  private stale = false
  /** `[DONE]` was sent. */
  private sentinel = false
  private cause: ReplyTrouble | undefined = undefined
  private consistent = true
  private firstOfRound = false
  /** A continued stream may be missing, as far as the snapshots since then tell. */
  private missed = false
  private usage: PartialUsage = {}
  /** What the patch at hand has done so far. */
  private readonly patched = makePatched()

  constructor(meter: Meter | undefined) {
    this.meter = meter
    this.document = makePatchDocument(meter)
  }

  get failed(): boolean {
    return this.cause !== undefined
  }

  get withdrawn(): boolean {
    return this.status === "CONTENT_FILTER"
  }

  push(event: SseEvent, out: Array<UpstreamEvent>): void {
    if (!this.take(event, out)) this.fail(trouble("malformed", undefined, "An event of the reply is not JSON"))
  }

  pushUnterminated(event: SseEvent, out: Array<UpstreamEvent>): void {
    if (event.data === "[DONE]" || parse(event.data) !== undefined) this.take(event, out)
  }

  startRound(isMissing = false): void {
    this.settle()
    this.missed ||= isMissing
    this.document.startRound()
    // The status of the round before is no end of this one.
    const current = this.response()
    if (current !== emptyResponse) current["status"] = "WIP"
    this.status = undefined
    this.final = false
    this.sentinel = false
    this.closed = false
    this.firstOfRound = true
  }

  private response(): JsonRecord {
    const value = this.document.root["response"]
    return isRecord(value) ? value : emptyResponse
  }

  private emit(channel: Channel, text: string, out: Array<UpstreamEvent>): void {
    this.produced += text.length
    out.push(channel === "text" ? UpstreamText(text) : UpstreamReasoning(text))
  }

  private fail(reason: ReplyTrouble): void {
    this.cause = reason
    this.closed = true
  }

  /** Writes down what the fast path has appended. */
  private settle(): void {
    if (this.cursor !== undefined && this.pending.length > 0) {
      this.cursor.owner[this.cursor.key] = (this.cursor.owner[this.cursor.key] as string) + this.pending.toString()
      this.pending.clear()
    }
    this.cursor = undefined
  }

  private pieces(): Array<Piece> {
    const found: Array<Piece> = []
    const { content, fragments, thinking_content: thinking } = this.response()
    if (Array.isArray(fragments)) {
      this.count(fragments.length)
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
  private compare(out: Array<UpstreamEvent>): void {
    const position = { reasoning: this.base.reasoning, text: this.base.text }
    const growth: Array<Piece> = []
    this.consistent = true
    this.lastText.reasoning = -1
    this.lastText.text = -1
    this.count(this.emitted.reasoning.length + this.emitted.text.length)
    for (const { channel, content, index } of this.pieces()) {
      const known = this.emitted[channel].toString()
      const start = position[channel]
      this.count(content.length)
      if (content !== "") this.lastText[channel] = index
      position[channel] = start + content.length
      if (start >= known.length) {
        if (content !== "") growth.push({ channel, content, index })
      } else if (position[channel] <= known.length) {
        this.consistent &&= known.startsWith(content, start)
      } else {
        const overlap = known.length - start
        this.consistent &&= content.startsWith(start === 0 ? known : known.slice(start))
        growth.push({ channel, content: content.slice(overlap), index })
      }
    }
    this.consistent &&= position.reasoning >= this.emitted.reasoning.length && position.text >= this.emitted.text.length
    if (!this.consistent) return
    for (const { channel, content } of growth) this.grow(channel, content, out)
  }

  private count(steps: number): void {
    this.compared += steps
    if (this.meter !== undefined) this.meter.steps += steps
  }

  /** True for a change that can have changed the reply's text. */
  private touchesText(change: Change): boolean {
    if (change._tag === "Root") return true
    const [first, second, , fourth] = change.path
    if (first !== "response") return false
    if (change.path.length === 1) return true
    if (second === "content" || second === "thinking_content") return !Array.isArray(this.response()["fragments"])
    return second === "fragments" && (fourth === undefined || fourth === "content" || fourth === "type")
  }

  /** The place of the text that a change is of, where it is the text itself. */
  private placeOf(owner: JsonRecord | undefined, path: ReadonlyArray<string>): Cursor | undefined {
    if (owner === undefined) return undefined
    const key = path[path.length - 1]!
    if (path.length === 4 && path[1] === "fragments" && key === "content") {
      return { owner, key, channel: fragmentChannel(owner), index: Number(path[2]) }
    }
    if (path.length !== 2 || Array.isArray(this.response()["fragments"])) return undefined
    if (key !== "content" && key !== "thinking_content") return undefined
    return { owner, key, channel: key === "content" ? "text" : "reasoning", index: 0 }
  }

  /** Text grows at a place; false where that is inside of what has left. */
  private growAt({ channel, index }: Cursor, text: string, out: Array<UpstreamEvent>): boolean {
    if (channel === undefined || text === "") return true
    if (this.lastText[channel] > index) return false
    this.lastText[channel] = index
    this.grow(channel, text, out)
    return true
  }

  private growFragments(fragments: ReadonlyArray<unknown>, from: number, out: Array<UpstreamEvent>): void {
    for (let index = from; index < fragments.length; index++) {
      const channel = fragmentChannel(fragments[index])
      const content = contentOf(fragments[index])
      if (channel === undefined || content === "") continue
      this.lastText[channel] = index
      this.grow(channel, content, out)
    }
  }

  /** Handles one change of text where its own extent tells what grew; false where it does not. */
  private follow(change: Change, out: Array<UpstreamEvent>): boolean {
    if (change._tag === "Root" || !this.consistent) return false
    const { path } = change
    const fragments = this.response()["fragments"]
    if (path[1] === "fragments" && Array.isArray(fragments)) {
      const isNew = change._tag === "Replaced" && path.length === 3 && change.before === undefined
      if (isNew || (change._tag === "Extended" && path.length === 2)) {
        this.growFragments(fragments, change._tag === "Extended" ? change.from : fragments.length - 1, out)
        return true
      }
    }
    if (change._tag === "Extended") return false
    const place = this.placeOf(change.owner, path)
    if (place === undefined) return false
    if (change._tag === "Grown") return this.growAt(place, change.text, out)
    const { before = "", value } = change
    if (place.channel === undefined) return true
    if (typeof before !== "string" || typeof value !== "string" || !value.startsWith(before)) return false
    return this.growAt(place, value.slice(before.length), out)
  }

  private grow(channel: Channel, text: string, out: Array<UpstreamEvent>): void {
    if (text === "") return
    this.emitted[channel].push(text)
    this.emit(channel, text, out)
  }

  /** The last values count, over all rounds; `token_usage` wins where the document has both. */
  private readUsage(out: Array<UpstreamEvent>): void {
    const { accumulated_token_usage: accumulated, token_usage: given } = this.response()
    const total = tokens(accumulated)
    const detail = isRecord(given) ? given : { completion_tokens: given }
    const promptTokens = tokens(detail["prompt_tokens"])
    // Documents start with a total of 0, which says nothing.
    const completion = tokens(detail["completion_tokens"]) ?? (total === 0 ? undefined : total)
    const reasoningTokens = tokens(detail["reasoning_tokens"])
    const changed = (promptTokens !== undefined && promptTokens !== this.usage.promptTokens) ||
      (completion !== undefined && completion !== this.usage.completionTokens) ||
      (reasoningTokens !== undefined && reasoningTokens !== this.usage.reasoningTokens)
    if (!changed) return
    this.usage = {
      ...this.usage,
      ...(promptTokens === undefined ? {} : { promptTokens }),
      ...(completion === undefined ? {} : { completionTokens: completion }),
      ...(reasoningTokens === undefined ? {} : { reasoningTokens })
    }
    out.push(UpstreamUsage(this.usage))
  }

  private isEmptySnapshot(): boolean {
    return this.pieces().every((piece) => piece.content === "")
  }

  private applyPatch(patch: JsonRecord, out: Array<UpstreamEvent>): void {
    this.settle()
    const from = out.length
    Object.assign(this.patched, makePatched())
    this.document.apply(patch, (change) => {
      if (this.meter !== undefined) this.meter.steps++
      this.patched.only = this.patched.count++ === 0 ? change : undefined
      if (change._tag === "Root" || (change._tag === "Replaced" && change.path.length === 1)) {
        this.patched.snapshot = true
      }
      if (change._tag === "Root" || change.path[1] === "status") this.patched.status = true
      if (!this.touchesText(change)) return
      if (change._tag === "Grown") this.patched.grew = true
      // Text that comes after the status is not shown.
      if (this.patched.rewritten || this.isWithdrawn()) return
      this.patched.rewritten = !this.follow(change, out)
    })
    const opensRound = this.firstOfRound && this.patched.snapshot
    const empty = opensRound && this.isEmptySnapshot()
    if (opensRound) {
      this.base.reasoning = empty ? this.emitted.reasoning.length : 0
      this.base.text = empty ? this.emitted.text.length : 0
    }
    if (this.missed && this.firstOfRound) {
      this.missed = false
      if ((empty || !opensRound) && !this.isWithdrawn()) {
        out.length = from
        return this.fail(trouble("truncated", undefined, "A part of the reply was lost on its way"))
      }
    }
    this.firstOfRound = false
    const wasConsistent = this.consistent
    if (this.isWithdrawn()) this.closed = true
    else if (this.patched.rewritten) this.compare(out)
    const { message_id: id, status: next } = this.response()
    this.takeMessageId(id)
    if (typeof next === "string") this.status = next
    if (opensRound) this.stale = isIncomplete(this.status)
    else if (this.patched.status) this.stale = false
    this.final = this.status !== undefined && finalStatuses.has(this.status) && !this.stale
    if (this.patched.count > 0) this.readUsage(out)
    // A withdrawal may replace the text before it says so; text that goes on growing is no withdrawal.
    const goesOn = !wasConsistent && this.patched.grew
    if (!this.consistent && this.status !== "CONTENT_FILTER" && (opensRound || goesOn)) this.fail(trouble("disagrees"))
    if (this.compared > comparedAtLeast + comparedPerCharacter * this.received) this.fail(trouble("disagrees"))
    const { only } = this.patched
    if (only?._tag === "Grown" && typeof patch["v"] === "string" && this.consistent) this.placeCursor(only)
  }

  /** Fails a document that grows beyond all measure, in whatever part of it. */
  private weighDocument(): void {
    const weight = this.pending.length + weigh(this.document.root, mostWeight)
    if (this.meter !== undefined) this.meter.steps += weight
    if (weight > mostWeight) this.fail(trouble("malformed", undefined, "The reply's document is too large"))
    this.weighAt = this.received + Math.max(weighedAfter, weight)
  }

  private isWithdrawn(): boolean {
    return this.response()["status"] === "CONTENT_FILTER"
  }

  private placeCursor(change: Extract<Change, { readonly _tag: "Grown" }>): void {
    if (change.path[0] !== "response") return
    const place = this.placeOf(change.owner, change.path)
    if (place === undefined || (place.channel !== undefined && this.lastText[place.channel] > place.index)) return
    this.cursor = place
  }

  private append(text: string, out: Array<UpstreamEvent>): void {
    this.pending.push(text)
    this.growAt(this.cursor!, text, out)
  }

  private pushPatch(data: string, out: Array<UpstreamEvent>): boolean {
    this.received += data.length
    if (this.received > this.weighAt) this.weighDocument()
    if (this.meter !== undefined) this.meter.steps += data.length
    // `{"v":"…"}` without escapes needs no parser.
    if (
      this.cursor !== undefined && data.startsWith("{\"v\":\"") && data.indexOf("\"", 6) === data.length - 2 &&
      data.charCodeAt(data.length - 1) === 125 && !data.includes("\\")
    ) {
      this.append(data.slice(6, -2), out)
      return true
    }
    const patch = parse(data)
    if (patch === undefined) return false
    if (!isRecord(patch)) return true
    const { o: operation, p: path, v: value } = patch
    if (
      this.cursor !== undefined && typeof value === "string" &&
      (path === undefined || path === this.document.stickyPath) &&
      (operation === undefined || (operation === "APPEND" && this.document.stickyOperation === "APPEND"))
    ) this.append(value, out)
    else this.applyPatch(patch, out)
    return true
  }

  private takeMessageId(id: unknown): void {
    if (isMessageId(id)) this.messageId = id
    else if (id !== undefined && id !== null) {
      this.fail(trouble("malformed", undefined, "The reply's message id is no id"))
    }
  }

  private pushReady(data: string): boolean {
    const ready = parse(data)
    if (ready === undefined) return false
    if (isRecord(ready)) this.takeMessageId(ready["response_message_id"])
    return true
  }

  private pushHint(data: string): void {
    const parsed = parse(data)
    const body: JsonRecord = isRecord(parsed) ? parsed : { type: "error" }
    const reason = typeof body["finish_reason"] === "string" && body["finish_reason"] !== ""
      ? body["finish_reason"]
      : undefined
    // A hint of another type that names no reason informs people, and is no end.
    if (body["type"] !== "error" && reason === undefined) return
    // A reply that is complete stays so, whatever is said after it.
    if (!this.final) {
      this.fail(trouble("gave_up", reason, typeof body["content"] === "string" ? body["content"] : undefined))
    }
  }

  /** False where data that has to be JSON is not. */
  private take(event: SseEvent, out: Array<UpstreamEvent>): boolean {
    if (this.closed) return true
    switch (event.event) {
      case undefined:
      case "message": {
        if (event.data === "[DONE]") {
          this.closed = true
          this.sentinel = true
          return true
        }
        return this.pushPatch(event.data, out)
      }
      case "ready":
        return this.pushReady(event.data)
      case "hint":
      case "toast":
        this.pushHint(event.data)
        return true
      case "close":
        this.closed = true
        return true
      default:
        return true
    }
  }

  endRound(): RoundEnd {
    if (this.cause !== undefined) return failed(this.cause)
    this.settle()
    if (this.status === "CONTENT_FILTER") {
      return this.produced === 0 ? failed(trouble("withdrawn")) : { _tag: "Finished", reason: "content_filter" }
    }
    if (this.status === "TIMEOUT" || this.status === "ERROR") return failed(trouble("gave_up", this.status))
    if (!this.consistent) return failed(trouble("disagrees"))
    if (this.status === "FINISHED") {
      return this.produced === 0 ? failed(trouble("empty")) : { _tag: "Finished", reason: "stop" }
    }
    if (isIncomplete(this.status)) return { _tag: "Incomplete" }
    return { _tag: "CutOff", trouble: trouble(this.sentinel && this.produced === 0 ? "empty" : "truncated") }
  }
}

/** Starts a decoder. Linear in what it is sent, whatever that is; `meter` is told its steps. */
export const makeReplyDecoder = (meter?: Meter): ReplyDecoder => new Decoder(meter)
