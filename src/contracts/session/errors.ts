/**
 * What a refusal of a session server means (upstream-protocol, "Envelope"): its numbers as facts of an `UpstreamFailure`.
 */
import type { FailurePhase, Refusal } from "../../domain/UpstreamFailure.ts"
import type { EnvelopeFacts } from "./envelope.ts"

type OtherFacts = Pick<EnvelopeFacts, "kind" | "message">

/** A refusal by the terms of `UpstreamFailure`. */
export type RefusalFacts = OtherFacts | (OtherFacts & { readonly refusal: Refusal })

const ofCodes: ReadonlyMap<number, Refusal> = new Map([
  [40001, "token"],
  [40002, "token"],
  [40003, "token"],
  [42900, "rate"]
])

const ofLogins: ReadonlyMap<number, Refusal> = new Map([[2, "login"], [5, "suspended"]])

const ofSessions: ReadonlyMap<number, Refusal> = new Map([[3, "lost_session"]])

const ofReplies: ReadonlyMap<number, Refusal> = new Map([...ofSessions, [6, "busy"], [9, "length"]])

/** What each `biz_code` means depends on the call: those of completions, continuations and their streams have the most. */
const ofBizCodes: Readonly<Record<FailurePhase, ReadonlyMap<number, Refusal>>> = {
  login: ofLogins,
  session: ofSessions,
  completion: ofReplies,
  stream: ofReplies,
  resume: ofReplies
}

/** The facts of a refused call. A number without a meaning is a refusal for another reason. */
export const readRefusal = (phase: FailurePhase, { bizCode, code, ...facts }: EnvelopeFacts): RefusalFacts => {
  if (code !== undefined) return { ...facts, refusal: ofCodes.get(code) ?? "other" }
  return bizCode === undefined ? facts : { ...facts, refusal: ofBizCodes[phase].get(bizCode) ?? "other" }
}
