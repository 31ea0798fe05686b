/**
 * The headers of callers that a server gets too, besides those of its contract: `forward_headers` of the configuration. Some never go to a
 * server, whatever is configured.
 */

/** Headers that hold credentials. */
export const credentialHeaders: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "set-cookie",
  "api-key",
  "x-api-key",
  "x-gen-api-key",
  "x-goog-api-key",
  "x-gateway-key",
  "x-auth-token",
  "x-access-token",
  "x-session-token",
  "x-amz-security-token",
  "x-csrf-token",
  "x-xsrf-token",
  "x-host-protection-bypass"
])

/** Headers of the connection, and those that say what the gateway itself can read. */
const ofConnection: ReadonlySet<string> = new Set(
  "accept accept-encoding connection expect forwarded host keep-alive te trailer transfer-encoding upgrade".split(" ")
)

/** Beginnings of headers that belong to the connection, to the body or to the gateway. */
const beginnings = ["content-", "proxy-", "sec-", "x-forwarded-", "x-gateway-"]

/** True for a header that never goes to a server. Names are in lower case. */
const staysHere = (name: string): boolean =>
  credentialHeaders.has(name) || ofConnection.has(name) || beginnings.some((beginning) => name.startsWith(beginning))

/** Why a name or a beginning cannot be forwarded; `undefined` if it can. */
export const forwardRule = (pattern: string): string | undefined => {
  const name = pattern.endsWith("*") ? pattern.slice(0, -1) : pattern
  if (!/^[!#$%&'+.^_`|~0-9A-Za-z-]{1,100}$/.test(name)) {
    return "must be the name of a header, or the beginning of names before a *"
  }
  return staysHere(name.toLowerCase())
    ? "names headers that never go to a server: credentials, cookies, and headers of the connection, the body and the gateway"
    : undefined
}

/** Headers by their names in lower case. */
type Headers = Readonly<Record<string, string | undefined>>

/** The headers that the sender of a request means for the connection alone (RFC 9110 7.6.1). */
const namedByConnection = ({ connection }: Headers): ReadonlySet<string> =>
  new Set(connection === undefined ? [] : connection.toLowerCase().split(",").map((name) => name.trim()))

/** Chooses headers by names in lower case, and by beginnings before a `*`. */
export class ForwardedHeaders {
  readonly #names: ReadonlyArray<string>
  readonly #beginnings: ReadonlyArray<string>
  readonly #never: string | undefined

  /** `never` is a header that is not forwarded either: the one that has the key of an account. */
  constructor(patterns: ReadonlyArray<string>, never?: string) {
    this.#names = patterns.filter((pattern) => !pattern.endsWith("*"))
    this.#beginnings = patterns.filter((pattern) => pattern.endsWith("*")).map((pattern) => pattern.slice(0, -1))
    this.#never = never
  }

  /** Those of the headers that are chosen and may leave. */
  of(headers: Headers | undefined): { readonly [name: string]: string } | undefined {
    if (headers === undefined) return undefined
    let chosen: Record<string, string> | undefined
    const ofHop = namedByConnection(headers)
    const take = (name: string) => {
      const value = headers[name]
      if (value === undefined || name === this.#never || staysHere(name) || ofHop.has(name)) return
      chosen ??= {}
      chosen[name] = value
    }
    for (const name of this.#names) take(name)
    if (this.#beginnings.length === 0) return chosen
    for (const name of Object.keys(headers)) {
      if (this.#beginnings.some((beginning) => name.startsWith(beginning))) take(name)
    }
    return chosen
  }
}
