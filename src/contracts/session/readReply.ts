/**
 * Decodes the events of a session reply into upstream events, over all of its rounds (upstream-protocol, "The event stream").
 */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { Meter } from "../../domain/stream/cooperative.ts"
import type { SseEvent } from "../../domain/stream/sse.ts"
import { type PartialUsage, type UpstreamEvent, UpstreamUsage } from "../../domain/UpstreamEvent.ts"
import { asTokens, parseJson } from "../shared/json.ts"
import { type Change, mostWeight, PatchDocument, weigh, weighedAfter } from "./patchDocument.ts"
import { failed, isFinal, isIncomplete, type ReplyTrouble, type RoundEnd, roundEnd, trouble } from "./roundEnd.ts"
import { touchesText, VisibleText } from "./VisibleText.ts"

/** A message id as the upstream wrote it, to be passed back in the same form. */
export type MessageId = string | number

const isMessageId = (value: unknown): value is MessageId =>
  (typeof value === "string" && value !== "" && value.length <= 256) || Number.isSafeInteger(value)

const emptyResponse: JsonRecord = {}
const noUsage: PartialUsage = {}

/**
 * The token counts of the document; `known` itself if nothing changed. The last values count, over all rounds, and `token_usage`
 * takes precedence.
 */
const readUsage = (response: JsonRecord, known: PartialUsage): PartialUsage => {
  const { accumulated_token_usage: accumulated, token_usage: given } = response
  const total = asTokens(accumulated)
  const detail = isRecord(given) ? given : undefined
  const promptTokens = asTokens(detail?.["prompt_tokens"])
  // Documents start with a total of 0, which says nothing.
  const completion = asTokens(detail === undefined ? given : detail["completion_tokens"]) ??
    (total === 0 ? undefined : total)
  const reasoningTokens = asTokens(detail?.["reasoning_tokens"])
  const changed = (promptTokens !== undefined && promptTokens !== known.promptTokens) ||
    (completion !== undefined && completion !== known.completionTokens) ||
    (reasoningTokens !== undefined && reasoningTokens !== known.reasoningTokens)
  if (!changed) return known
  return {
    ...known,
    ...(promptTokens === undefined ? {} : { promptTokens }),
    ...(completion === undefined ? {} : { completionTokens: completion }),
    ...(reasoningTokens === undefined ? {} : { reasoningTokens })
  }
}

/** The effects of one patch. */
class Patched {
  changes = 0
  /** The only change; `undefined` if there were several. */
  only: Change | undefined = undefined
  /** The response as a whole was replaced. */
  snapshot = false
  status = false
  /** Text was appended. */
  grew = false
  /** Text was changed in a way that needs a comparison. */
  rewritten = false
}

/**
 * A decoder of one reply, linear in the received bytes; `meter` counts its steps. Its state is in plain
 * fields: a stream that is open for long holds one, and each event reads it.
 */
export class ReplyDecoder {
  /** The message id of the reply, once it is known. */
  messageId: MessageId | undefined = undefined
  /** The round is over: the upstream said so, or the reply has failed. */
  closed = false
  /**
   * The document has a final status, so only usage may follow. The opening status of a continued stream may be that of the
   * round before, and is not final while it is `INCOMPLETE`.
   */
  final = false
  private readonly meter: Meter | undefined
  private readonly document: PatchDocument
  private readonly visible: VisibleText
  private received = 0
  private weighAt = weighedAfter
  private status: string | undefined = undefined
  private stale = false
  /** `[DONE]` was sent. */
  private sentinel = false
  private cause: ReplyTrouble | undefined = undefined
  private firstOfRound = false
  /** A part of the reply may be missing, and no snapshot has shown otherwise yet. */
  private missed = false
  private usage = noUsage

  constructor(meter?: Meter) {
    this.meter = meter
    this.document = new PatchDocument(meter)
    this.visible = new VisibleText(meter)
  }

  /** The reply has failed. */
  get failed(): boolean {
    return this.cause !== undefined
  }

  /** The content filter withdrew the reply: everything that follows is ignored. */
  get withdrawn(): boolean {
    return this.status === "CONTENT_FILTER"
  }

  /** The reply was cut because its document is full; the upstream may still be generating it. */
  get cut(): boolean {
    return this.document.overfull && !this.final
  }

  /** UTF-16 units of emitted text and reasoning. */
  get produced(): number {
    return this.visible.produced
  }

  /** Decodes one event and appends the results to `out`. */
  push(event: SseEvent, out: Array<UpstreamEvent>): void {
    // A complete reply stays complete, whatever follows it.
    if (!this.take(event, out) && !this.final) {
      this.fail(trouble("malformed", undefined, "An event of the reply is not JSON"))
    }
  }

  /** Decodes an event without its final blank line, if its data is complete. */
  pushUnterminated(event: SseEvent, out: Array<UpstreamEvent>): void {
    if (event.data.trim() === "[DONE]" || parseJson(event.data) !== undefined) this.take(event, out)
  }

  /**
   * A continued stream begins. `isMissing`: the text of an earlier one may be lost. Then this one has to show the reply so far;
   * otherwise the reply fails, because it may have an undetectable gap.
   */
  startRound(isMissing = false): void {
    this.visible.flush()
    this.missed ||= isMissing
    this.document.startRound()
    // The status of the round before does not end this one.
    const current = this.response()
    if (current !== emptyResponse) current["status"] = "WIP"
    this.status = undefined
    this.final = false
    this.sentinel = false
    this.closed = false
    this.firstOfRound = true
  }

  /** The reply is over: appends what was held of it. */
  end(out: Array<UpstreamEvent>): void {
    this.visible.end(out)
  }

  /** What the round's end means; to be asked once no event of it follows. */
  endRound(): RoundEnd {
    if (this.cause !== undefined) return failed(this.cause)
    this.visible.flush()
    return roundEnd(this.status, this.produced === 0, this.visible.consistent, this.sentinel, this.document.overfull)
  }

  private response(): JsonRecord {
    const value = this.document.root["response"]
    return isRecord(value) ? value : emptyResponse
  }

  private isWithdrawn(): boolean {
    return this.response()["status"] === "CONTENT_FILTER"
  }

  private fail(reason: ReplyTrouble): void {
    this.cause = reason
    this.closed = true
  }

  /** False where data that has to be JSON is not. */
  private take(event: SseEvent, out: Array<UpstreamEvent>): boolean {
    if (this.closed) return true
    switch (event.event) {
      case undefined:
      case "message": {
        return event.data === "[DONE]" ? this.pushOther(event.data) : this.pushPatch(event.data, out)
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

  /** Takes what is no JSON: nothing, which keeps the connection alive, or the sentinel. False where it is neither. */
  private pushOther(data: string): boolean {
    const text = data.trim()
    if (text === "[DONE]") {
      this.closed = true
      this.sentinel = true
    }
    return this.closed || text === ""
  }

  private pushReady(data: string): boolean {
    const ready = parseJson(data)
    if (ready === undefined) return data.trim() === ""
    if (isRecord(ready)) this.takeMessageId(ready["response_message_id"])
    return true
  }

  private pushHint(data: string): void {
    const parsed = parseJson(data)
    const body: JsonRecord = isRecord(parsed) ? parsed : { type: "error" }
    const reason = typeof body["finish_reason"] === "string" && body["finish_reason"] !== ""
      ? body["finish_reason"]
      : undefined
    // A hint of another type without a reason is information for people, and not an end.
    if (body["type"] !== "error" && reason === undefined) return
    // A complete reply stays complete, whatever follows it.
    if (!this.final) {
      this.fail(trouble("gave_up", reason, typeof body["content"] === "string" ? body["content"] : undefined))
    }
  }

  private pushPatch(data: string, out: Array<UpstreamEvent>): boolean {
    const { document, visible } = this
    this.received += data.length
    if (this.received > this.weighAt) this.weighDocument()
    if (this.meter !== undefined) this.meter.steps += data.length
    // `{"v":"…"}` without escapes needs no parser.
    if (
      visible.follows && data.startsWith("{\"v\":\"") && data.indexOf("\"", 6) === data.length - 2 &&
      data.charCodeAt(data.length - 1) === 125 && !data.includes("\\")
    ) {
      visible.append(data.slice(6, -2), out)
      return true
    }
    const patch = parseJson(data)
    if (patch === undefined) return this.pushOther(data)
    if (!isRecord(patch)) return true
    const { o: operation, p: path, v: value } = patch
    if (
      visible.follows && typeof value === "string" && (path === undefined || path === document.stickyPath) &&
      (operation === undefined || (operation === "APPEND" && document.stickyOperation === "APPEND"))
    ) visible.append(value, out)
    else this.applyPatch(patch, out)
    return true
  }

  private applyPatch(patch: JsonRecord, out: Array<UpstreamEvent>): void {
    const { visible } = this
    visible.flush()
    const from = out.length
    const patched = new Patched()
    this.document.apply(patch, (change) => this.changed(change, patched, out))
    const opensRound = this.firstOfRound && patched.snapshot
    const empty = opensRound && visible.isEmpty(this.response())
    if (opensRound) visible.open(empty)
    if (this.missed && this.firstOfRound) {
      this.missed = false
      if ((empty || !opensRound) && !this.isWithdrawn()) {
        out.length = from
        return this.fail(trouble("truncated", undefined, "A part of the reply was lost on its way"))
      }
    }
    this.firstOfRound = false
    const wasConsistent = visible.consistent
    if (this.isWithdrawn()) this.closed = true
    else if (patched.rewritten) visible.compare(this.response(), out)
    this.readResponse(patched, opensRound, out)
    // A withdrawal may replace the text before the status says so; text that keeps growing is not a withdrawal.
    const goesOn = !wasConsistent && patched.grew
    if (!visible.consistent && this.status !== "CONTENT_FILTER" && (opensRound || goesOn)) {
      this.fail(trouble("disagrees"))
    }
    if (visible.isCostly(this.received)) this.fail(trouble("disagrees"))
    // Later text would follow a gap.
    if (this.document.overfull) this.closed = true
    const { only } = patched
    if (only?._tag === "Grown" && typeof patch["v"] === "string" && visible.consistent) {
      visible.continueAt(only, this.response())
    }
  }

  /** Records one change of a patch, and emits the text that grew. */
  private changed(change: Change, patched: Patched, out: Array<UpstreamEvent>): void {
    if (this.meter !== undefined) this.meter.steps++
    patched.only = patched.changes++ === 0 ? change : undefined
    if (change._tag === "Root" || (change._tag === "Replaced" && change.path.length === 1)) patched.snapshot = true
    if (change._tag === "Root" || change.path[1] === "status") patched.status = true
    const response = this.response()
    if (!touchesText(change, response)) return
    if (change._tag === "Grown") patched.grew = true
    // Text after the status is ignored.
    if (patched.rewritten || this.isWithdrawn()) return
    patched.rewritten = !this.visible.follow(change, response, out)
  }

  /** Reads the message id, the status and the usage of the response. */
  private readResponse(patched: Patched, opensRound: boolean, out: Array<UpstreamEvent>): void {
    const response = this.response()
    const { message_id: id, status: next } = response
    this.takeMessageId(id)
    if (typeof next === "string") this.status = next
    if (opensRound) this.stale = isIncomplete(this.status)
    else if (patched.status) this.stale = false
    this.final = isFinal(this.status) && !this.stale
    if (patched.changes === 0) return
    const usage = readUsage(response, this.usage)
    if (usage === this.usage) return
    this.usage = usage
    out.push(UpstreamUsage(usage))
  }

  private takeMessageId(id: unknown): void {
    if (isMessageId(id)) this.messageId = id
    else if (id !== undefined && id !== null) {
      this.fail(trouble("malformed", undefined, "The reply's message id is no id"))
    }
  }

  /** Fails the reply if its document exceeds its bound, in any part. */
  private weighDocument(): void {
    const weight = this.visible.unflushed + weigh(this.document.root)
    if (this.meter !== undefined) this.meter.steps += weight
    if (weight > mostWeight) this.fail(trouble("malformed", undefined, "The reply's document is too large"))
    this.weighAt = this.received + Math.max(weighedAfter, weight)
  }
}
