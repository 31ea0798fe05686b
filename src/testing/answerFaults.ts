/**
 * Faults that answer a call in place of the call itself, and faults that spoil how a right reply is carried.
 */
import { plainReply, refused, turnedAway } from "./envelope.ts"
import type { AnswerFault, CarrierFault, Fault } from "./Fault.ts"
import { Hang, Reset, type Step, Wait } from "./Step.ts"

const page = "<!doctype html>\n<html><head><title>Bad gateway</title></head>" +
  "<body><h1>Bad gateway</h1><p>The origin did not answer.</p></body></html>\n"

interface AnswerRow {
  readonly about: string
  readonly steps: (fault: Fault) => ReadonlyArray<Step>
}

const turnAway = (about: string, code: number, message: string): AnswerRow => ({
  about,
  steps: (fault) =>
    turnedAway(
      fault.code ?? code,
      fault.message ?? message,
      fault.status ?? 200,
      fault.retryAfter === undefined ? {} : { "retry-after": String(fault.retryAfter) }
    )
})

const refuse = (about: string, bizCode: number, message: string): AnswerRow => ({
  about,
  steps: (fault) => refused(fault.bizCode ?? bizCode, fault.message ?? message, fault.status ?? 200)
})

/** Answer faults by name. */
export const answers: Readonly<Record<AnswerFault, AnswerRow>> = {
  "no-token": turnAway("envelope `code` 40001", 40001, "no token"),
  "token-invalid": turnAway("envelope `code` 40002", 40002, "token invalid"),
  "token-expired": turnAway("envelope `code` 40003 (`status=401` for HTTP 401)", 40003, "token expired"),
  "rate-limited": turnAway(
    "envelope `code` 42900 (`status=429` for HTTP 429, `retry_after=N` for the header)",
    42900,
    "too many requests"
  ),
  "trouble": turnAway("envelope `code` 50000, or `code=N`, with HTTP 200 or `status=N`", 50000, "service unavailable"),
  "wrong-credentials": refuse("`biz_code` 2", 2, "wrong email, mobile or password"),
  "suspended": refuse("`biz_code` 5", 5, "account suspended"),
  "no-session": refuse("`biz_code` 3", 3, "no such session"),
  "busy": refuse("`biz_code` 6", 6, "too many completions are running"),
  "too-long": refuse("`biz_code` 9", 9, "the prompt is too long"),
  "refused": refuse("`biz_code` 1, or `biz_code=N`", 1, "refused"),
  "html": {
    about: "an HTML page, HTTP 502 or `status=N`",
    steps: (fault) => plainReply(fault.status ?? 502, "text/html; charset=utf-8", page)
  },
  "empty": {
    about: "an empty body, HTTP 200 or `status=N`",
    steps: (fault) => plainReply(fault.status ?? 200, "application/json", "")
  },
  "broken-json": {
    about: "an envelope that breaks off",
    steps: (fault) => plainReply(fault.status ?? 200, "application/json", "{\"code\":0,\"msg\":\"\",\"data\":{\"biz_co")
  },
  "no-data": {
    about: "an envelope with `code` 0 and `data` null",
    steps: (fault) => turnedAway(0, "", fault.status ?? 200)
  },
  "not-a-stream": {
    about: "an accepting envelope where a stream belongs",
    steps: (fault) =>
      plainReply(
        fault.status ?? 200,
        "application/json",
        "{\"code\":0,\"msg\":\"\",\"data\":{\"biz_code\":0,\"biz_msg\":\"\",\"biz_data\":{}}}"
      )
  },
  "reset-before-headers": { about: "the connection breaks before the head", steps: () => [Reset] },
  "hang-before-headers": { about: "silence before the head", steps: () => [Hang] }
}

interface CarrierRow {
  readonly about: string
  readonly steps: (fault: Fault, steps: ReadonlyArray<Step>) => ReadonlyArray<Step>
}

/** Carrier faults by name. */
export const carriers: Readonly<Record<CarrierFault, CarrierRow>> = {
  "slow": {
    about: "1 s, or `ms=N`, before the head",
    steps: (fault, steps) => [Wait(fault.millis ?? 1000), ...steps]
  },
  "wrong-content-type": {
    about: "the right body as `text/plain`",
    steps: (_, steps) =>
      steps.map((step) =>
        step._tag === "Head" ? { ...step, headers: { ...step.headers, "content-type": "text/plain" } } : step
      )
  }
}
