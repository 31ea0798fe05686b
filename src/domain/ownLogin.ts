/**
 * A caller's own login with a vendor, beside the gateway's key: the header that it came in, and its value.
 *
 * It travels as a token, which no configured token can be: those have no line breaks.
 */
import { keysOfToken, secretsOfKeys } from "./signingKeys.ts"

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
