/**
 * Faults of the scripted provider: what each name does, and the options that a script may give it.
 *
 * A fault acts at one of four places: it answers in place of the call (`answer`), spoils how a right reply is delivered
 * (`deliver`), changes the content of the reply (`reply`), or changes its event stream (`stream`).
 */
import type { CallName } from "../../contracts/session/readRequest.ts"
import { refused, turnedAway } from "../../contracts/session/writeReply.ts"
import { Hang, Reset, type Steps, stepsOf, Wait } from "./Call.ts"
import type { FaultSpec, Piece, Reply, ScriptedFault } from "./Reply.ts"
import { readCount, readPairs, readWord } from "./scriptValues.ts"
import { streamFaults } from "./streamFaults.ts"
import type { Draft } from "./wire.ts"

interface FaultRow {
  readonly about: string
  readonly answer: ((fault: FaultSpec) => Steps) | undefined
  readonly deliver: ((fault: FaultSpec, steps: Steps) => Steps) | undefined
  readonly reply: ((fault: FaultSpec, reply: Reply) => Reply) | undefined
  readonly stream: ((fault: FaultSpec, draft: Draft) => Draft) | undefined
  /** The fault applies to continued streams only. */
  readonly continued: boolean
}

const nowhere = { answer: undefined, deliver: undefined, reply: undefined, stream: undefined, continued: false }

/** A row as the table below has it: with the place where the fault acts. */
type GivenRow = Pick<FaultRow, "about"> & Partial<FaultRow>

const page = "<!doctype html>\n<html><head><title>Bad gateway</title></head>" +
  "<body><h1>Bad gateway</h1><p>The origin did not answer.</p></body></html>\n"

const turnAway = (about: string, code: number, message: string): GivenRow => ({
  about,
  answer: (fault) =>
    stepsOf(turnedAway(
      fault.code ?? code,
      fault.message ?? message,
      fault.status ?? 200,
      fault.retryAfter === undefined ? {} : { "retry-after": String(fault.retryAfter) }
    ))
})

const refuse = (about: string, bizCode: number, message: string): GivenRow => ({
  about,
  answer: (fault) => stepsOf(refused(fault.bizCode ?? bizCode, fault.message ?? message, fault.status ?? 200))
})

const body = (about: string, contentType: string, text: string, status = 200): GivenRow => ({
  about,
  answer: (fault) => stepsOf({ status: fault.status ?? status, headers: { "content-type": contentType }, body: text })
})

/** The longest line that a script may ask for. */
const maxLine = 64 * 1024 * 1024

const insert = (reply: Reply, at: number, ...pieces: ReadonlyArray<Piece>): Reply => ({
  ...reply,
  pieces: [...reply.pieces.slice(0, at), ...pieces, ...reply.pieces.slice(at)]
})

const rows = {
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
  "html": body("an HTML page, HTTP 502 or `status=N`", "text/html; charset=utf-8", page, 502),
  "empty": body("an empty body, HTTP 200 or `status=N`", "application/json", ""),
  "broken-json": body(
    "an envelope that breaks off",
    "application/json",
    "{\"code\":0,\"msg\":\"\",\"data\":{\"biz_co"
  ),
  "no-data": {
    about: "an envelope with `code` 0 and `data` null",
    answer: (fault) => stepsOf(turnedAway(0, "", fault.status ?? 200))
  },
  "not-a-stream": body(
    "an accepting envelope in place of a stream",
    "application/json",
    "{\"code\":0,\"msg\":\"\",\"data\":{\"biz_code\":0,\"biz_msg\":\"\",\"biz_data\":{}}}"
  ),
  "reset-before-headers": { about: "the connection breaks before the head", answer: () => [Reset] },
  "hang-before-headers": { about: "silence before the head", answer: () => [Hang] },
  "slow": {
    about: "1 s, or `ms=N`, before the head",
    deliver: (fault, steps) => [Wait(fault.millis ?? 1000), ...steps]
  },
  "wrong-content-type": {
    about: "the right body as `text/plain`",
    deliver: (_, steps) =>
      steps.map((step) =>
        step._tag === "Head" ? { ...step, headers: { ...step.headers, "content-type": "text/plain" } } : step
      )
  },
  "long-line": {
    about: "a piece of 8 MB (`bytes=N`) of text in one line",
    reply: (fault, reply) =>
      insert(reply, fault.after ?? 1, {
        _tag: "Say",
        text: "x".repeat(Math.min(fault.bytes ?? 8 * 1024 * 1024, maxLine)),
        wait: 0
      })
  },
  "empty-fragment": {
    about: "the `RESPONSE` fragment starts empty",
    reply: (_, reply) => {
      const first = reply.pieces.findIndex((piece) => piece._tag === "Say")
      return first === -1 ? reply : insert(reply, first, { _tag: "Say", text: "", wait: 0 })
    }
  },
  "unknown-parts": {
    about: "fragments of unknown types and unknown fields",
    reply: (fault, reply) =>
      insert(
        reply,
        fault.after ?? 1,
        { _tag: "Set", path: "response/mood", value: { cheerful: true }, wait: 0 },
        { _tag: "Fragment", type: "TIP", fields: { content: "never reply text" }, wait: 0 },
        { _tag: "Fragment", type: "SOMETHING_NEW", fields: { content: "never reply text" }, wait: 0 }
      )
  },
  "endless-incomplete": {
    about: "INCOMPLETE after every piece, for as long as the caller continues",
    reply: (_, reply) => ({
      ...reply,
      pieces: Array.from({ length: 10_000 }, (_, i): Piece => ({ _tag: "Say", text: `${i} `, wait: 0 })),
      cuts: { ...reply.cuts, every: 1 }
    })
  },
  ...streamFaults
} as const satisfies Readonly<Record<string, GivenRow>>

/** The name of a fault. */
export type FaultName = keyof typeof rows

/** A fault by its name. */
export interface Fault extends FaultSpec {
  readonly name: FaultName
}

const byName: ReadonlyMap<string, FaultRow> = new Map(
  Object.entries<GivenRow>(rows).map(([name, row]) => [name, { ...nowhere, ...row }])
)

const isFault = (name: string): name is FaultName => Object.hasOwn(rows, name)

const rowOf = ({ name }: FaultSpec): FaultRow | undefined => byName.get(name)

/** The answer that a fault gives in place of the call; `undefined` if the call proceeds. */
export const answerWith = (fault: FaultSpec): Steps | undefined => rowOf(fault)?.answer?.(fault)

/** Spoils how a reply is delivered. */
export const deliverWith = (fault: FaultSpec, steps: Steps): Steps => rowOf(fault)?.deliver?.(fault, steps) ?? steps

/** Changes the content of a reply. */
export const replyWith = (fault: FaultSpec, reply: Reply): Reply => rowOf(fault)?.reply?.(fault, reply) ?? reply

/** Changes the events of a stream. */
export const streamWith = (fault: FaultSpec, draft: Draft): Draft => rowOf(fault)?.stream?.(fault, draft) ?? draft

/** The call that a fault applies to by default: `continue` for faults of a continued stream. */
export const usualCall = (name: FaultName): CallName => byName.get(name)!.continued ? "continue" : "completion"

/** Whether a fault can happen to a call: faults of replies and streams need a call that has one. */
export const faultFits = (name: FaultName, call: CallName): boolean => {
  const { answer, deliver, continued, stream } = byName.get(name)!
  return answer !== undefined || deliver !== undefined || (call === "continue" && stream !== undefined) ||
    (call === "completion" && !continued)
}

/** Every fault by name, with a description. */
export const faultTable: ReadonlyArray<{ readonly name: FaultName; readonly about: string }> = Object.entries(rows)
  .flatMap(([name, { about }]) => isFault(name) ? [{ name, about }] : [])

export const faultNames: ReadonlyArray<FaultName> = faultTable.map(({ name }) => name)

const numbers = {
  times: "times",
  after: "after",
  status: "status",
  retry_after: "retryAfter",
  code: "code",
  biz_code: "bizCode",
  ms: "millis",
  bytes: "bytes"
} as const

const isNumberOption = (key: string): key is keyof typeof numbers => Object.hasOwn(numbers, key)

const isTextOption = (key: string): key is "message" | "reason" => key === "message" || key === "reason"

/** Reads the fault of a script, `NAME key=value …`; returns what was expected if it cannot be read. */
export const readFault = (rest: string): ScriptedFault | string => {
  const [name, options] = readWord(rest)
  if (!isFault(name)) return "the name of a fault"
  const pairs = readPairs(options)
  if (pairs === undefined) return "options such as after=2"
  const call = pairs.get("call") ?? usualCall(name)
  if ((call !== "completion" && call !== "continue") || !faultFits(name, call)) {
    return "call=completion or call=continue, whichever it can happen to"
  }
  const read: { -readonly [key in keyof ScriptedFault]?: ScriptedFault[key] } = {}
  for (const [key, value] of pairs) {
    if (isNumberOption(key)) {
      const count = readCount(value, 1e9)
      if (count === undefined) return `a number for ${key}`
      read[numbers[key]] = count
    } else if (isTextOption(key)) {
      read[key] = value
    } else if (key !== "call") {
      return `an option that faults have, not ${key}`
    }
  }
  return { ...read, name, call, times: read.times }
}
