/**
 * The faults that a request can request from the scripted upstream, and the errors that each explains.
 */
import type { ErrorCode } from "../../src/domain/GatewayError.ts"
import type { FaultName } from "../../src/testing/provider/faults.ts"

/**
 * How a fault ends. `harmless`: the reply is normal. `passing`: it happens once, and another attempt or a continued stream recovers.
 * `shown`: it happens once after the first word. If the stream has sent that word, the stream ends with the error; otherwise the reply is
 * normal. `fatal`: always this error. `ends`: the reply ends early with the given reason.
 */
export type FaultEffect = "harmless" | "passing" | "shown" | "fatal" | "ends"

/** A fault, as lines of a script. */
export interface FaultRow {
  readonly name: FaultName
  readonly lines: ReadonlyArray<string>
  readonly effect: FaultEffect
  /** The errors that the fault explains. */
  readonly codes: ReadonlyArray<ErrorCode>
  /** The finish reason of a reply that the fault ends. */
  readonly finish?: "length" | "content_filter"
  /** The fault takes the account out of rotation, so it only runs on accounts that other requests do not need. */
  readonly hurts?: true
  /** The fault lasts for a time limit, so it is rare. */
  readonly slow?: true
  /** Beginning of the text that replaces the script's text. */
  readonly counts?: true
}

const line = (name: FaultName, options: string): string => `!fault ${name}${options === "" ? "" : ` ${options}`}`

const row = (name: FaultName, effect: FaultEffect, options = "", rest: Partial<FaultRow> = {}): FaultRow => ({
  name,
  lines: [line(name, options)],
  effect,
  codes: [],
  ...rest
})

const harmless = (name: FaultName, options = "") => row(name, "harmless", options)

const passing = (name: FaultName, options = "", rest: Partial<FaultRow> = {}) =>
  row(name, "passing", options === "" ? "times=1" : `${options} times=1`, rest)

const shown = (name: FaultName, code: ErrorCode, options = "", rest: Partial<FaultRow> = {}) =>
  row(name, "shown", options === "" ? "after=1 times=1" : `after=1 ${options} times=1`, { codes: [code], ...rest })

const fatal = (name: FaultName, code: ErrorCode, options = "", rest: Partial<FaultRow> = {}) =>
  row(name, "fatal", options, { codes: [code], ...rest })

/** A reply that breaks off after its first word, and the fault of the call that continues it. */
const continued = (name: FaultName, effect: FaultEffect, options: string, rest: Partial<FaultRow> = {}): FaultRow => ({
  name,
  lines: [line("reset-mid-stream", "after=1"), line(name, `call=continue${options === "" ? "" : ` ${options}`}`)],
  effect,
  codes: [],
  ...rest
})

const slow = { slow: true } as const
const hurts = { hurts: true } as const

/** Every fault of the reference upstream, before the first word and after it. */
export const faultRows: ReadonlyArray<FaultRow> = [
  passing("no-token"),
  passing("token-invalid"),
  passing("token-expired"),
  passing("token-expired", "status=401"),
  passing("rate-limited"),
  passing("rate-limited", "status=429 retry_after=1"),
  passing("trouble"),
  passing("trouble", "status=500"),
  passing("busy"),
  passing("refused"),
  passing("no-session"),
  passing("suspended"),
  passing("wrong-credentials"),
  passing("html"),
  passing("html", "status=200"),
  passing("empty"),
  passing("broken-json"),
  passing("no-data"),
  passing("not-a-stream"),
  passing("wrong-content-type"),
  passing("reset-before-headers"),
  passing("hang-before-headers", "", slow),
  passing("empty-stream"),
  passing("reset-before-events"),
  passing("hang-before-events", "", slow),
  passing("broken-line", "after=0"),
  passing("hint", "after=0"),
  passing("hint", "after=0 reason=other"),
  passing("toast", "after=0"),
  passing("timeout-status", "after=0"),
  passing("error-status", "after=0"),
  passing("hang-mid-stream", "after=0", slow),
  passing("reset-mid-stream", "after=1"),
  passing("reset-mid-stream", "after=2"),
  passing("cut-off", "after=1"),
  passing("no-status"),
  continued("trouble", "shown", "times=1", { codes: ["upstream_error"] }),
  continued("reset-before-headers", "passing", "times=1"),
  continued("reset-mid-stream", "passing", "after=1 times=1"),
  // An account with a bare token cannot get another one.
  continued("token-expired", "shown", "times=1", { codes: ["no_account_available"] }),
  continued("disagree", "shown", "times=1", { codes: ["upstream_error"] }),
  continued("nothing-new", "passing", "times=1"),
  continued("crlf", "harmless", ""),
  continued("trickle", "harmless", ""),
  shown("hang-mid-stream", "upstream_timeout", "", slow),
  shown("broken-line", "upstream_error"),
  shown("hint", "upstream_rate_limited"),
  shown("toast", "upstream_error", "reason=other"),
  shown("timeout-status", "upstream_error"),
  shown("error-status", "upstream_error"),
  fatal("too-long", "context_length_exceeded"),
  fatal("hint", "context_length_exceeded", "after=0 reason=input_exceeds_limit"),
  fatal("content-filter", "content_filter", "after=0"),
  fatal("trouble", "upstream_error"),
  fatal("refused", "upstream_error"),
  fatal("html", "upstream_error"),
  fatal("broken-json", "upstream_error"),
  fatal("wrong-content-type", "upstream_error"),
  fatal("reset-before-headers", "upstream_error"),
  fatal("empty-stream", "upstream_error"),
  fatal("error-status", "upstream_error", "after=0"),
  fatal("error-status", "upstream_error", "after=2"),
  fatal("broken-line", "upstream_error", "after=1"),
  fatal("token-expired", "no_account_available", "", hurts),
  fatal("token-invalid", "no_account_available", "", hurts),
  fatal("rate-limited", "upstream_rate_limited", "", hurts),
  fatal("busy", "upstream_rate_limited", "", hurts),
  fatal("hint", "upstream_rate_limited", "after=1", hurts),
  fatal("toast", "upstream_rate_limited", "after=0", hurts),
  row("content-filter", "ends", "after=2", { finish: "content_filter" }),
  {
    ...row("incomplete-nothing", "ends", "", { finish: "length" }),
    lines: ["!cut 3", line("incomplete-nothing", "")]
  },
  {
    ...row("incomplete-nothing", "harmless"),
    lines: ["!cut 3", line("incomplete-nothing", "times=1")]
  },
  row("endless-incomplete", "ends", "", { finish: "length", counts: true }),
  harmless("slow", "ms=50"),
  harmless("empty-fragment"),
  harmless("unknown-parts"),
  harmless("no-ready"),
  harmless("no-close"),
  harmless("done"),
  harmless("done-only"),
  harmless("linger"),
  harmless("crlf"),
  harmless("cr"),
  harmless("comments"),
  harmless("retry-lines"),
  harmless("multi-line-data"),
  harmless("no-space"),
  harmless("chatter"),
  harmless("trickle"),
  harmless("split-utf8")
]

/** The error with a direct token, for each error with a pooled account. */
export const ownToken = (code: ErrorCode): ErrorCode => code === "no_account_available" ? "authentication_failed" : code
