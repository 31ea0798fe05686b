/**
 * Reads the envelope of every reply that is not an event stream (upstream-protocol, "Envelope").
 *
 * The envelope decides, not the HTTP status: a refusal may have status 200, and an intermediary's page any status.
 */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { parseJson } from "../shared/json.ts"

/** What the envelope of a refusal has. `errors.ts` has the meaning of its numbers. */
export interface EnvelopeFacts {
  readonly kind: "refused" | "malformed" | "empty"
  readonly code?: number
  readonly bizCode?: number
  readonly message?: string
}

export type Envelope =
  | { readonly _tag: "Accepted"; readonly data: JsonRecord }
  | { readonly _tag: "Refused"; readonly facts: EnvelopeFacts }

const refused = (facts: EnvelopeFacts): Envelope => ({ _tag: "Refused", facts })

const malformed = refused({ kind: "malformed" })

/** A code that a server may have written as a string. */
const numeric = (value: unknown): number | undefined => {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value
  return typeof number === "number" && Number.isFinite(number) ? number : undefined
}

const firstText = (...candidates: ReadonlyArray<unknown>): { readonly message?: string } => {
  for (const candidate of candidates) {
    if (typeof candidate === "string" && candidate !== "") return { message: candidate }
  }
  return {}
}

/** Reads a body. A page, broken JSON or another shape is `malformed`; a blank body is `empty`. */
export const readEnvelope = (status: number, body: string): Envelope => {
  if (body.trim() === "") return refused({ kind: "empty" })
  const envelope = parseJson(body)
  if (!isRecord(envelope)) return malformed
  const code = numeric(envelope["code"])
  if (code === undefined) return malformed
  if (code !== 0) return refused({ kind: "refused", code, ...firstText(envelope["msg"]) })
  const data = envelope["data"]
  if (!isRecord(data)) return malformed
  const bizCode = numeric(data["biz_code"])
  if (bizCode === undefined) return malformed
  if (bizCode !== 0) {
    return refused({ kind: "refused", bizCode, ...firstText(data["biz_msg"], envelope["msg"]) })
  }
  // Success with an error status: an intermediary disagrees with the service.
  if (status >= 400) return malformed
  return { _tag: "Accepted", data: isRecord(data["biz_data"]) ? data["biz_data"] : {} }
}
