/**
 * Decodes the events of a session reply into upstream events, over all of its rounds (upstream-protocol, "The event stream").
 *
 * Text leaves as it grows: what is out is never taken back, so a document that no longer begins with it is a failure.
 */
import { type UpstreamEvent, UpstreamReasoning, UpstreamText, UpstreamUsage } from "../../domain/UpstreamEvent.ts"
import type { PartialUsage } from "../../domain/Usage.ts"
import type { SseEvent } from "../../stream/sse.ts"
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
  /** A continued stream begins. */
  readonly startRound: () => void
  /** The reply's message id, once it is known. */
  readonly messageId: MessageId | undefined
  /** Nothing more will come of this round: the upstream said so, or the reply has failed. */
  readonly closed: boolean
  /** The reply has failed: nothing more is wanted of this round. */
  readonly failed: boolean
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
  (typeof value === "string" && value !== "") || (typeof value === "number" && Number.isFinite(value))

const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined

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

/** Starts a decoder. Linear in the length of the reply for documents that grow by appending. */
export const makeReplyDecoder = (): ReplyDecoder => {
  const document = makePatchDocument()
  /** What has left, and how much of it is not in the document (an empty snapshot starts the document anew). */
  const emitted = { reasoning: "", text: "" }
  const base = { reasoning: 0, text: 0 }
  /** Where a bare string patch grows the document, and what has been appended there but not yet written down. */
  let cursor: { readonly owner: JsonRecord; readonly key: string; readonly channel: Channel | undefined } | undefined
  let pending = ""
  let messageId: MessageId | undefined
  let status: string | undefined
  let stale = false
  let final = false
  let hint: ReplyTrouble | undefined
  let cause: ReplyTrouble | undefined
  let closed = false
  let consistent = true
  let firstOfRound = false
  let produced = 0
  let usage: PartialUsage = {}
  const changes: Array<Change> = []

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
    if (cursor !== undefined && pending !== "") {
      cursor.owner[cursor.key] = (cursor.owner[cursor.key] as string) + pending
      if (cursor.channel !== undefined) emitted[cursor.channel] += pending
    }
    pending = ""
    cursor = undefined
  }

  const pieces = (): Array<Piece> => {
    const found: Array<Piece> = []
    const { content, fragments, thinking_content: thinking } = response()
    if (Array.isArray(fragments)) {
      for (const fragment of fragments) {
        const channel = fragmentChannel(fragment)
        if (channel !== undefined) found.push({ channel, content: contentOf(fragment) })
      }
    } else {
      if (typeof thinking === "string") found.push({ channel: "reasoning", content: thinking })
      if (typeof content === "string") found.push({ channel: "text", content })
    }
    return found
  }

  /** Compares the document with what has left: all beyond it is growth, unless the two disagree. */
  const compare = (out: Array<UpstreamEvent>) => {
    const position = { reasoning: base.reasoning, text: base.text }
    const growth: Array<Piece> = []
    consistent = true
    for (const { channel, content } of pieces()) {
      const known = emitted[channel]
      const start = position[channel]
      position[channel] = start + content.length
      if (start >= known.length) {
        if (content !== "") growth.push({ channel, content })
      } else if (position[channel] <= known.length) {
        consistent &&= known.startsWith(content, start)
      } else {
        const overlap = known.length - start
        consistent &&= content.startsWith(start === 0 ? known : known.slice(start))
        growth.push({ channel, content: content.slice(overlap) })
      }
    }
    consistent &&= position.reasoning >= emitted.reasoning.length && position.text >= emitted.text.length
    if (!consistent) return
    for (const { channel, content } of growth) {
      emitted[channel] += content
      emit(channel, content, out)
    }
  }

  /** True where text of the same channel stands behind the fragment, so that its growth would land inside what has left. */
  const hasTextBehind = (index: number, channel: Channel): boolean => {
    const fragments = response()["fragments"]
    return Array.isArray(fragments) &&
      fragments.some((fragment, i) => i > index && fragmentChannel(fragment) === channel && contentOf(fragment) !== "")
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

  /** Handles a patch's one change of text where its own extent tells what grew; false where it does not. */
  const follow = (change: Change, out: Array<UpstreamEvent>): boolean => {
    if (change._tag === "Root" || !consistent) return false
    const { path } = change
    if (path[1] === "fragments") {
      const fragments = response()["fragments"]
      if (change._tag === "Extended" && path.length === 2 && Array.isArray(fragments)) {
        for (const fragment of fragments.slice(change.from)) {
          const channel = fragmentChannel(fragment)
          if (channel !== undefined) grow(channel, contentOf(fragment), out)
        }
        return true
      }
      if (change._tag !== "Grown" || path.length !== 4 || path[3] !== "content") return false
      const channel = fragmentChannel(change.owner)
      if (channel !== undefined && hasTextBehind(Number(path[2]), channel)) return false
      if (channel !== undefined) grow(channel, change.text, out)
      return true
    }
    if (change._tag !== "Grown" || path.length !== 2) return false
    grow(path[1] === "content" ? "text" : "reasoning", change.text, out)
    return true
  }

  const grow = (channel: Channel, text: string, out: Array<UpstreamEvent>) => {
    if (text === "") return
    emitted[channel] += text
    emit(channel, text, out)
  }

  /** The last values count, over all rounds; `token_usage` wins where the document has both. */
  const readUsage = (out: Array<UpstreamEvent>) => {
    const { accumulated_token_usage: accumulated, token_usage: given } = response()
    const total = count(accumulated)
    const detail = isRecord(given) ? given : { completion_tokens: given }
    const promptTokens = count(detail["prompt_tokens"])
    // Documents start with a total of 0, which says nothing.
    const completion = count(detail["completion_tokens"]) ?? (total === 0 ? undefined : total)
    const reasoningTokens = count(detail["reasoning_tokens"])
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
    document.apply(patch, changes)
    const snapshot = changes.some((change) =>
      change._tag === "Root" || (change._tag === "Replaced" && change.path.length === 1)
    )
    const opensRound = firstOfRound && snapshot
    firstOfRound = false
    if (opensRound) {
      const empty = isEmptySnapshot()
      base.reasoning = empty ? emitted.reasoning.length : 0
      base.text = empty ? emitted.text.length : 0
    }
    const wasConsistent = consistent
    const textual = changes.filter(touchesText)
    const [first, second] = textual
    if (first !== undefined && (second !== undefined || !follow(first, out))) compare(out)
    const { message_id: id, status: next } = response()
    if (isMessageId(id)) messageId = id
    if (typeof next === "string") status = next
    if (opensRound) stale = isIncomplete(status)
    else if (changes.some((change) => change._tag === "Root" || change.path[1] === "status")) stale = false
    final = status !== undefined && finalStatuses.has(status) && !stale
    if (changes.length > 0) readUsage(out)
    // A withdrawal may replace the text before it says so; text that goes on growing is no withdrawal.
    const goesOn = !wasConsistent && textual.some((change) => change._tag === "Grown")
    if (!consistent && status !== "CONTENT_FILTER" && (opensRound || goesOn)) fail(trouble("disagrees"))
    const only = changes[0]
    if (changes.length === 1 && only?._tag === "Grown" && typeof patch["v"] === "string" && consistent) {
      placeCursor(only)
    }
    changes.length = 0
  }

  const placeCursor = (change: Extract<Change, { readonly _tag: "Grown" }>) => {
    const { key, owner, path } = change
    if (path[0] !== "response") return
    if (path.length === 2 && !Array.isArray(response()["fragments"])) {
      if (key === "content" || key === "thinking_content") {
        cursor = { owner, key, channel: key === "content" ? "text" : "reasoning" }
      }
    } else if (path.length === 4 && path[1] === "fragments" && key === "content") {
      cursor = { owner, key, channel: fragmentChannel(owner) }
    }
  }

  const append = (text: string, out: Array<UpstreamEvent>) => {
    pending += text
    if (cursor!.channel !== undefined && text !== "") emit(cursor!.channel, text, out)
  }

  const pushPatch = (data: string, out: Array<UpstreamEvent>): boolean => {
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

  const pushReady = (data: string): boolean => {
    const ready = parse(data)
    if (ready === undefined) return false
    if (isRecord(ready) && isMessageId(ready["response_message_id"])) messageId = ready["response_message_id"]
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
    hint = trouble("gave_up", reason, typeof body["content"] === "string" ? body["content"] : undefined)
    settle()
    if (emitted.text === "" && !final) fail(hint)
  }

  /** False where data that has to be JSON is not. */
  const take = (event: SseEvent, out: Array<UpstreamEvent>): boolean => {
    if (closed) return true
    switch (event.event) {
      case undefined:
      case "message": {
        if (event.data === "[DONE]") {
          closed = true
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
    if (status === "TIMEOUT" || status === "ERROR") return failed(hint ?? trouble("gave_up", status))
    if (!consistent) return failed(trouble("disagrees"))
    if (status === "FINISHED") {
      return produced === 0 ? failed(hint ?? trouble("empty")) : { _tag: "Finished", reason: "stop" }
    }
    if (isIncomplete(status)) return { _tag: "Incomplete" }
    return { _tag: "CutOff", trouble: hint ?? trouble("truncated") }
  }

  return {
    push(event, out) {
      if (!take(event, out)) fail(trouble("malformed", undefined, "An event of the reply is not JSON"))
    },
    pushUnterminated(event, out) {
      if (event.data === "[DONE]" || parse(event.data) !== undefined) take(event, out)
    },
    endRound,
    startRound() {
      settle()
      document.startRound()
      // The status of the round before is no end of this one.
      const current = response()
      if (current !== emptyResponse) current["status"] = "WIP"
      status = undefined
      final = false
      hint = undefined
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
    get final() {
      return final
    },
    get produced() {
      return produced
    }
  }
}
