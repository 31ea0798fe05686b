/**
 * Credentials that are no plain key: a caller's own login with a vendor, beside the gateway's key, which is the header that it came in and its
 * value; and keys of AWS, by which each request is signed.
 *
 * They travel as tokens, which no configured token can be: those have no line breaks.
 */

/** The headers that may have a login, the first one that is sent counts. */
export const loginHeaders = ["authorization", "x-api-key", "x-goog-api-key"] as const

/** The header that has the gateway's key where another one has the caller's login. */
export const gatewayKeyHeader = "x-gateway-key"

export interface OwnLogin {
  /** In lower case. */
  readonly header: string
  /** As it came. */
  readonly value: string
}

/** The login as a token. */
export const tokenOfLogin = ({ header, value }: OwnLogin): string => `\n${header}\n${value}`

/** The login that a token is; `undefined` for an account's token. */
export const loginOfToken = (token: string): OwnLogin | undefined => {
  const [before, header, value] = token.split("\n", 3)
  return before === "" && header !== undefined && header !== "" && value !== undefined ? { header, value } : undefined
}

/** Keys of AWS. Those of a session have its token beside them. */
export interface SigningKeys {
  readonly id: string
  readonly secret: string
  readonly session: string | undefined
}

/** Keys in one line, as their source issues them. */
export const textOfKeys = ({ id, secret, session }: SigningKeys): string => [id, secret, session ?? ""].join(" ").trim()

/** The token of keys in one line. */
export const tokenOfKeys = (text: string): string => `\n\n${text}`

/** The keys that a token is; `undefined` for other tokens. */
export const keysOfToken = (token: string): SigningKeys | undefined => {
  if (!token.startsWith("\n\n")) return undefined
  const [id = "", secret = "", session] = token.slice(2).split(" ")
  return { id, secret, session }
}

/** What of keys must not be shown: each of them, and the line last. */
export const secretsOfKeys = (keys: SigningKeys): ReadonlyArray<string> => [
  keys.id,
  keys.secret,
  ...(keys.session === undefined ? [] : [keys.session]),
  textOfKeys(keys)
]

/** The secrets of a token, as the texts that servers may repeat: the login's value, and its token without the scheme; or signing keys. */
export const secretsOfToken = (token: string): ReadonlyArray<string> => {
  const keys = keysOfToken(token)
  if (keys !== undefined) return secretsOfKeys(keys)
  const login = loginOfToken(token)
  if (login === undefined) return [token]
  const bare = login.value.replace(/^bearer\s+/i, "")
  return bare === login.value ? [login.value] : [login.value, bare]
}

/** Words of a login that are looked at. Vendors' logins have one or two, signatures four. */
const mostWords = 8

/** The two halves of the credential of the scheme `Basic`. */
const halvesOf = (word: string): ReadonlyArray<string> => {
  const decoded = Buffer.from(word, "base64").toString()
  const colon = decoded.indexOf(":")
  return colon === -1 ? [] : [decoded.slice(0, colon), decoded.slice(colon + 1)].filter((half) => half !== "")
}

/**
 * The credentials that a login's header may have: its value without the scheme, each of its words, and the halves of one of the scheme
 * `Basic`; `undefined` for a value of more words than a login has. A header that was sent twice has both values with a comma between them.
 */
export const credentialsOfLogin = (token: string): ReadonlyArray<string> | undefined => {
  const value = loginOfToken(token)?.value.trim() ?? ""
  const bare = value.replace(/^(?:bearer|basic)\s+/i, "")
  const words = bare.split(/[\s,]+/, mostWords + 1).filter((word) => word !== "")
  if (words.length > mostWords) return undefined
  return [...new Set([bare, ...words, ...(/^basic\s/i.test(value) ? words.flatMap(halvesOf) : [])])]
}
