/**
 * The envelope of every reply that is no event stream (upstream-protocol, "Envelope"): its data, or the facts of a refusal.
 */
import type { FailurePhase } from "../../domain/UpstreamFailure.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { isRecord, type JsonRecord } from "./patchDocument.ts"

/** What a reply was, beyond its body. */
export interface ReplyHead {
  readonly phase: FailurePhase
  readonly status: number
  /** Seconds, where the reply has the header. */
  readonly retryAfter: number | undefined
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const text = (value: unknown): string | undefined => typeof value === "string" && value !== "" ? value : undefined

const isCode = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value)

/**
 * Reads an envelope: `biz_data` as a record, or the failure that it tells. A page, an empty body or any other JSON is
 * malformed; a status that says trouble is told even where the body does not.
 */
export const readEnvelope = (body: string, head: ReplyHead): JsonRecord | UpstreamFailure => {
  const { phase, retryAfter, status } = head
  const facts = { phase, status, ...(retryAfter === undefined ? {} : { retryAfter }) }
  const envelope = parse(body)
  if (!isRecord(envelope) || !isCode(envelope["code"])) {
    return status >= 400
      ? new UpstreamFailure({ ...facts, kind: "refused" })
      : new UpstreamFailure({ ...facts, kind: body.trim() === "" ? "empty" : "malformed" })
  }
  const { code, data, msg } = envelope
  if (code !== 0) {
    const message = text(msg)
    return new UpstreamFailure({ ...facts, kind: "refused", code, ...(message === undefined ? {} : { message }) })
  }
  const inner = isRecord(data) ? data : {}
  const { biz_code: bizCode, biz_data: bizData, biz_msg: bizMsg } = inner
  if (isCode(bizCode) && bizCode !== 0) {
    const message = text(bizMsg)
    return new UpstreamFailure({ ...facts, kind: "refused", bizCode, ...(message === undefined ? {} : { message }) })
  }
  if (status >= 400) return new UpstreamFailure({ ...facts, kind: "refused" })
  return isRecord(bizData) ? bizData : {}
}
