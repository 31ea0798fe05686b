/**
 * Why an exchange with the upstream failed, as far as the network and the answer told: for operators, in the log and in
 * captures. A caller is told the class of it only.
 */
import * as Schema from "effect/Schema"
import { redactMessage } from "./redact.ts"

/** What was seen. Neither a credential nor an account's identity is in it. */
export const FailureCause = Schema.Struct({
  /** The system's or the TLS library's word for it: `ECONNREFUSED`, `CERT_HAS_EXPIRED`. */
  code: Schema.optionalKey(Schema.String),
  /** Scheme, host and port that were called. */
  address: Schema.optionalKey(Schema.String),
  /** HTTP status of what answered. */
  status: Schema.optionalKey(Schema.Number),
  /** How a body that was no answer of a model server began, 200 characters at most. */
  body: Schema.optionalKey(Schema.String)
})
export type FailureCause = typeof FailureCause.Type

/** Characters that are kept of a body that was no answer. */
const longestExcerpt = 200

/** Errors wrap one another this deep at most. */
const deepest = 5

const codeIn = (error: unknown, depth: number): string | undefined => {
  if (depth === 0 || typeof error !== "object" || error === null) return undefined
  // Of several addresses that were tried, the first tells.
  const inner = "errors" in error && Array.isArray(error.errors) ? codeIn(error.errors[0], depth - 1) : undefined
  const own = "code" in error && typeof error.code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(error.code)
    ? error.code
    : undefined
  const cause = "cause" in error ? codeIn(error.cause, depth - 1) : undefined
  // undici's own words say less than what they wrap.
  return inner ?? (own === undefined || own.startsWith("UND_ERR_SOCKET") ? cause ?? own : own)
}

/** The code of whatever a carrier failed with, however deep it is wrapped. */
export const codeOf = (error: unknown): string | undefined => codeIn(error, deepest)

/** The beginning of a body in one line, without the `secrets` that were sent and whatever looks like a token or an account. */
export const excerptOf = (text: string, secrets: ReadonlyArray<string> = []): string => {
  // Tags are taken for text here: a page of a proxy says who answered.
  const plain = text.slice(0, 4_000).replace(/<(?:style|script)\b[^]*?(?:<\/(?:style|script)>|$)/gi, " ")
    .replace(/<[^>]{0,500}>/g, " ")
  return (redactMessage(plain, secrets) ?? "").slice(0, longestExcerpt)
}

const classes: ReadonlyArray<readonly [pattern: RegExp, words: string]> = [
  [/^ECONNREFUSED$/, "the connection was refused"],
  [/^(?:ENOTFOUND|EAI_\w+)$/, "there is no such host"],
  [/^(?:EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN)$/, "the host cannot be reached"],
  [/^(?:ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET|UND_ERR_CLOSED)$/, "the connection was reset"],
  [/^(?:ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, "no connection came about in time"],
  [
    /^(?:CERT_|ERR_TLS_|ERR_SSL_|EPROTO$|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH$|INVALID_CA$)/,
    "TLS failed"
  ],
  [/^(?:HPE_|UND_ERR_HEADERS_OVERFLOW$|UND_ERR_RESPONSE)/, "what answered does not speak HTTP"]
]

/** The class of a cause, which callers may know: it names no host. `undefined` where nothing is known. */
export const causeClass = (cause: FailureCause | undefined): string | undefined => {
  if (cause?.code !== undefined) return classes.find(([pattern]) => pattern.test(cause.code!))?.[1]
  if (cause?.body === undefined) return undefined
  const status = cause.status === undefined ? "" : ` (HTTP ${cause.status})`
  return `what answered is not a model server${status}`
}
