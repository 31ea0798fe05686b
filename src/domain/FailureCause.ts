/**
 * The network's reason for a failed exchange with the upstream. Operators see it in the log and in captures; callers see only its class.
 */
import * as Schema from "effect/Schema"
import { redactMessage } from "./redact.ts"

/** A cause. It contains neither credentials nor an account's identity. */
export const FailureCause = Schema.Struct({
  /** The error code of the system or the TLS library: `ECONNREFUSED`, `CERT_HAS_EXPIRED`. */
  code: Schema.optionalKey(Schema.String),
  /** Scheme, host and port of the request. */
  address: Schema.optionalKey(Schema.String),
  /** HTTP status of the response, which may be the proxy's. */
  status: Schema.optionalKey(Schema.Number),
  /** The proxy that failed. */
  proxy: Schema.optionalKey(Schema.Struct({
    /** Whose it is: by `account` the account is at fault, else the upstream. */
    of: Schema.Literals(["account", "upstream", "environment"]),
    /** Without credentials. */
    address: Schema.String,
    /** The error code of the connection to the proxy, or the reply of the SOCKS protocol. */
    code: Schema.optionalKey(Schema.String)
  })),
  /** The first 200 characters of a body that did not come from a model server. */
  body: Schema.optionalKey(Schema.String),
  /** The first 200 characters of the server's message. */
  message: Schema.optionalKey(Schema.String),
  /** The setting by which the operator changes what refused the request, or advice that names it. Texts for callers name no settings. */
  setting: Schema.optionalKey(Schema.String)
})
export type FailureCause = typeof FailureCause.Type

/** The most characters of an excerpt. */
export const longestExcerpt = 200

/** How deep wrapped errors are searched. */
const deepest = 5

const codeIn = (error: unknown, depth: number): string | undefined => {
  if (depth === 0 || typeof error !== "object" || error === null) return undefined
  // Of several addresses, the first one counts.
  const inner = "errors" in error && Array.isArray(error.errors) ? codeIn(error.errors[0], depth - 1) : undefined
  const own = "code" in error && typeof error.code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(error.code)
    ? error.code
    : undefined
  const cause = "cause" in error ? codeIn(error.cause, depth - 1) : undefined
  // undici's own codes are less specific than those that they wrap.
  return inner ?? (own === undefined || own.startsWith("UND_ERR_SOCKET") ? cause ?? own : own)
}

/** The code of a transport's error, or of an error that it wraps, up to five levels deep. */
export const codeOf = (error: unknown): string | undefined => codeIn(error, deepest)

/** The beginning of a body in one line, without the `secrets` and anything that looks like a token or an account. */
export const excerptOf = (text: string, secrets: ReadonlyArray<string> = []): string => {
  // Tags become blanks: the text of a proxy's page shows who answered.
  const plain = text.slice(0, 4_000).replace(/<(?:style|script)\b[^]*?(?:<\/(?:style|script)>|$)/gi, " ")
    .replace(/<[^>]{0,500}>/g, " ")
  return (redactMessage(plain, secrets) ?? "").slice(0, longestExcerpt)
}

const classes: ReadonlyArray<readonly [pattern: RegExp, words: string]> = [
  [/^UND_ERR_PRX_CONN$/, "there is no connection to the proxy"],
  [/^UND_ERR_PRX_TLS$/, "TLS with the proxy failed"],
  [/^UND_ERR_PRX_TIMEOUT$/, "the proxy made no connection in time"],
  [/^UND_ERR_PRX_AUTH$/, "the proxy refused the credentials"],
  [/^UND_ERR_PRX_REFUSED$/, "the proxy refused the connection"],
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

/** The class of a cause, for callers: it does not name the host. `undefined` for an unknown cause. */
export const causeClass = (cause: FailureCause | undefined): string | undefined => {
  if (cause?.code !== undefined) return classes.find(([pattern]) => pattern.test(cause.code!))?.[1]
  if (cause?.body === undefined) return undefined
  const status = cause.status === undefined ? "" : ` (HTTP ${cause.status})`
  return `what answered is not a model server${status}`
}
