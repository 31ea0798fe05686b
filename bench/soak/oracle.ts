/**
 * Judges answers. The prompt scripts the reply, so the expected answer is known: a complete reply, or an error that the request's fault or a
 * change explains.
 */
import { isDeepStrictEqual } from "node:util"
import { type ErrorCode, errorTable } from "../../src/domain/GatewayError.ts"
import { type Answer, readStream, readWhole } from "./answers.ts"
import type { Received } from "./client.ts"
import { ownToken } from "./faults.ts"
import { listAt, numberAt, parseJson } from "./json.ts"
import type { Plan } from "./plan.ts"
import { badBodyOf } from "./requests.ts"
import { isRefusal } from "./unrest.ts"

/** The verdict on an answer. */
export interface Judgement {
  readonly outcome: "whole" | "error" | "refused" | "reset" | "left" | "untrue" | "hung"
  /** The error in the answer. */
  readonly error: string | undefined
  /** The wrong parts of the answer. */
  readonly why: string | undefined
}

const untrue = (why: string, error?: string): Judgement => ({ outcome: "untrue", error, why })
const told = (error: string): Judgement => ({ outcome: "error", error, why: undefined })
const whole: Judgement = { outcome: "whole", error: undefined, why: undefined }
const left: Judgement = { outcome: "left", error: undefined, why: undefined }

const shorten = (text: string): string => text.length > 300 ? `${text.slice(0, 300)}… (${text.length})` : text

const wordOf = (code: ErrorCode, plan: Plan): string => plan.style === "generate" ? errorTable[code].rpc : code

/** Why an error is not one of these; `undefined` if it is. */
const refuseError = (
  plan: Plan,
  received: Received,
  error: string,
  codes: Iterable<ErrorCode>
): string | undefined => {
  const allowed = [...codes]
  const isPlain = !received.contentType.startsWith("text/event-stream")
  const fits = allowed.some((code) =>
    wordOf(code, plan) === error && (isPlain ? received.status === errorTable[code].status : received.status === 200)
  )
  return fits
    ? undefined
    : `${received.status} ${error} is not explained (${allowed.join(", ") || "nothing may fail"}): ${
      shorten(received.body)
    }`
}

const isPrefix = (part: string, text: string): boolean => text.startsWith(part)

const countedText = Array.from({ length: 64 }, (_, i) => `${i} `).join("")

/** Why the received text is not a prefix of the expected text. */
const refusePart = (plan: Plan, answer: Answer): string | undefined => {
  const { expected, fault } = plan
  const text = fault?.counts === true ? countedText : expected.text
  if (!isPrefix(answer.reasoning, expected.reasoning)) return `reasoning ${shorten(JSON.stringify(answer.reasoning))}`
  if (plan.behaviour._tag !== "Stalls" && !isPrefix(answer.text, text)) {
    return `text ${shorten(JSON.stringify(answer.text))} is not a prefix of ${shorten(JSON.stringify(text))}`
  }
  if (answer.calls.length > expected.calls.length) return `${answer.calls.length} calls`
  return undefined
}

/** Why a reply is not the complete expected reply. */
const refuseReply = (plan: Plan, answer: Answer): string | undefined => {
  const { expected } = plan
  if (answer.reasoning !== expected.reasoning) return `reasoning ${shorten(JSON.stringify(answer.reasoning))}`
  const calls = answer.calls.map(({ name, text }) => ({ name, arguments: parseJson(text) }))
  if (!isDeepStrictEqual(calls, expected.calls)) return `calls ${shorten(JSON.stringify(answer.calls))}`
  if (answer.text !== expected.text) {
    return `text ${shorten(JSON.stringify(answer.text))} instead of ${shorten(JSON.stringify(expected.text))}`
  }
  const finish = expected.calls.length > 0 ? "tool_calls" : "stop"
  return answer.finish === finish ? undefined : `it finished with ${answer.finish}, not ${finish}`
}

/** The errors that the request itself causes. */
const ownErrors = ({ credential, fault }: Plan): ReadonlyArray<ErrorCode> =>
  (fault?.codes ?? []).map((code) => credential === "direct" ? ownToken(code) : code)

/** The errors that a fault explains if no other account or no time is left to recover. */
const lonely: ReadonlyArray<ErrorCode> = [
  "upstream_error",
  "upstream_timeout",
  "upstream_rate_limited",
  "no_account_available",
  "authentication_failed"
]

/** The error of a lost store, which a failover explains for any request. */
const storeLost: ErrorCode = "store_unavailable"

const judgeReply = (
  plan: Plan,
  received: Received,
  answer: Answer,
  explained: ReadonlySet<ErrorCode>
): Judgement => {
  const { behaviour, credential, fault, kind, victim } = plan
  const partial = refusePart(plan, answer)
  if (partial !== undefined) return untrue(partial, answer.error)
  if (received.how === "left" || (received.how === "broken" && behaviour._tag === "Leaves")) return left
  if (received.how === "broken" && behaviour._tag === "Stalls") return left
  if (received.how === "broken") return untrue("the connection broke off")
  if (!answer.ended) return untrue(`the stream ended without its final frame: ${shorten(received.body.slice(-300))}`)
  if (answer.error !== undefined) {
    // Without a pool there is no failover; earlier requests may have damaged victim accounts.
    const alone = credential === "direct" ? fault !== undefined : victim !== undefined
    const codes = new Set<ErrorCode>([...ownErrors(plan), ...explained, ...(alone ? lonely : [])])
    if (kind === "violation") codes.add("tool_choice_violation")
    const refusal = refuseError(plan, received, answer.error, codes)
    // A request that needs no second account or login needs the store only before its first word.
    const begun = answer.text !== "" || answer.reasoning !== "" || answer.calls.length > 0
    if (begun && fault === undefined && isRefusal(received)) {
      return untrue(`a stream that had begun ended with ${answer.error}`, answer.error)
    }
    return refusal === undefined ? told(answer.error) : untrue(refusal, answer.error)
  }
  if (received.status !== 200) return untrue(`the status ${received.status} without an error`)
  if (kind === "violation") return untrue("the reply violates tool_choice without an error")
  // Either the buffers on the way were large enough, or the client was disconnected.
  if (behaviour._tag === "Stalls") return whole
  switch (fault?.effect) {
    case "fatal":
      return untrue(`a success, although ${fault.name} always causes an error`)
    case "ends":
      return answer.finish === fault.finish ? whole : untrue(`it finished with ${answer.finish}, not ${fault.finish}`)
    default: {
      const refusal = refuseReply(plan, answer)
      return refusal === undefined ? whole : untrue(refusal)
    }
  }
}

const judgeEmbeddings = (received: Received): string | undefined => {
  const vectors = listAt(parseJson(received.body), "data").map((each) => listAt(each, "embedding").map(Number))
  if (vectors.length !== 3) return `${vectors.length} vectors for 3 texts`
  if (!isDeepStrictEqual(vectors[0], vectors[2])) return "one text has two vectors"
  const length = Math.hypot(...vectors[1]!)
  return Math.abs(length - 1) < 1e-3 ? undefined : `a vector of length ${length}`
}

const judgeCount = (plan: Plan, received: Received): string | undefined => {
  const value = parseJson(received.body)
  const count = numberAt(value, plan.style === "generate" ? "totalTokens" : "input_tokens")
  return count !== undefined && Number.isInteger(count) && count > 0 ? undefined : `a count of ${count}`
}

/** Judges a response that the end of its process broke off: what has arrived is the beginning of the reply. */
export const judgeReset = (plan: Plan, received: Received, explained: ReadonlySet<ErrorCode>): Judgement => {
  const leaves: Plan = { ...plan, behaviour: { _tag: "Leaves", when: "stream", after: 0 } }
  if (plan.kind === "bad") return { ...left, outcome: "reset" }
  const judgement = judge(leaves, { ...received, how: "left" }, explained)
  return judgement.outcome === "left" ? { ...judgement, outcome: "reset" } : judgement
}

/** Judges the response to a plan. `explained` are the errors that changes explain. */
export const judge = (plan: Plan, received: Received, explained: ReadonlySet<ErrorCode>): Judgement => {
  if (received.how === "hung") return { outcome: "hung", error: undefined, why: `no end: ${shorten(received.body)}` }
  if (plan.behaviour._tag === "Leaves" && received.status === 0) return left
  const streamed = received.contentType.startsWith("text/event-stream")
  if (plan.kind === "bad") {
    const bad = badBodyOf(plan)
    const error = received.how === "whole" && !streamed ? readWhole(plan.style, received.body).error : undefined
    if (error === undefined) return untrue(`${bad.about} was not refused: ${received.status} ${shorten(received.body)}`)
    const codes = [bad.code, ...(explained.has(storeLost) ? [storeLost] : [])]
    const refusal = refuseError(plan, received, error, codes)
    return refusal === undefined ? told(error) : untrue(`${bad.about}: ${refusal}`, error)
  }
  if (received.status === 0) return untrue("the connection broke before the response head")
  if ((plan.kind === "embeddings" || plan.kind === "counting") && received.status === 200) {
    const wrong = plan.kind === "embeddings" ? judgeEmbeddings(received) : judgeCount(plan, received)
    return wrong === undefined ? whole : untrue(wrong)
  }
  if (received.status === 200 && streamed !== plan.stream) return untrue(`the content type ${received.contentType}`)
  // A body that the client aborted is not complete JSON.
  if (!streamed && received.how !== "whole") return received.how === "left" ? left : untrue("the connection broke off")
  const answer = streamed ? readStream(plan.style, received.body) : readWhole(plan.style, received.body)
  const wrong = answer.wrong[0]
  return wrong === undefined ? judgeReply(plan, received, answer, explained) : untrue(wrong, answer.error)
}
