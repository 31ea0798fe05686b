/**
 * The meaning of the end of one round of a session reply, by the last status of its document (upstream-protocol, "The document").
 */

/** Why a reply failed, in the terms of `UpstreamFailure`. */
export interface ReplyTrouble {
  readonly kind: "malformed" | "truncated" | "withdrawn" | "gave_up" | "disagrees" | "empty"
  readonly reason: string | undefined
  readonly message: string | undefined
}

/** The meaning of the end of one round. */
export type RoundEnd =
  | { readonly _tag: "Finished"; readonly reason: "stop" | "content_filter" | "length" }
  /** Cut at the upstream's output limit: `chat/continue` goes on. */
  | { readonly _tag: "Incomplete" }
  /** Cut off: `chat/continue` resumes it. `trouble` is the failure of the reply if that is impossible. */
  | { readonly _tag: "CutOff"; readonly trouble: ReplyTrouble }
  | { readonly _tag: "Failed"; readonly trouble: ReplyTrouble }

export const trouble = (kind: ReplyTrouble["kind"], reason?: string, message?: string): ReplyTrouble => ({
  kind,
  reason,
  message
})

const finalStatuses = new Set([
  "FINISHED",
  "INCOMPLETE",
  "AUTO_CONTINUE",
  "CONTENT_FILTER",
  "TIMEOUT",
  "ERROR"
])

/** Whether a status ends the reply or the round. */
export const isFinal = (status: string | undefined): boolean => status !== undefined && finalStatuses.has(status)

/** Whether a status means that the reply was cut at the upstream's output limit. */
export const isIncomplete = (status: string | undefined): boolean =>
  status === "INCOMPLETE" || status === "AUTO_CONTINUE"

/** The end of a round that fails the reply. */
export const failed = (cause: ReplyTrouble): RoundEnd => ({ _tag: "Failed", trouble: cause })

/**
 * The meaning of the end of a round. `nothing`: no text was emitted; `consistent`: the document begins with the emitted text;
 * `sentinel`: the upstream announced the end of the stream; `overfull`: the reply exceeds the bounds of the document.
 */
export const roundEnd = (
  status: string | undefined,
  nothing: boolean,
  consistent: boolean,
  sentinel: boolean,
  overfull: boolean
): RoundEnd => {
  if (status === "CONTENT_FILTER") {
    return nothing ? failed(trouble("withdrawn")) : { _tag: "Finished", reason: "content_filter" }
  }
  if (status === "TIMEOUT" || status === "ERROR") return failed(trouble("gave_up", status))
  if (!consistent) return failed(trouble("disagrees"))
  if (overfull) return nothing ? failed(trouble("empty")) : { _tag: "Finished", reason: "length" }
  if (status === "FINISHED") return nothing ? failed(trouble("empty")) : { _tag: "Finished", reason: "stop" }
  if (isIncomplete(status)) return { _tag: "Incomplete" }
  return { _tag: "CutOff", trouble: trouble(sentinel && nothing ? "empty" : "truncated") }
}
