/**
 * Who an upstream account is: identifiers, the normal forms by which two spellings are one account, and what may be shown
 * of a token. Hashing is handed in, since this floor does no I/O and knows no crypto.
 */

/** What identifies an account, as configured. Blank strings count as absent. */
export interface Identity {
  readonly email?: string | undefined
  readonly mobile?: string | undefined
  readonly token?: string | undefined
}

/** Hex digits of the SHA-256 of a text's UTF-8 bytes. */
export type Sha256Hex = (text: string) => string

const trimmed = (text: string | undefined): string => text === undefined ? "" : text.trim()

/**
 * Normal form of a mobile number: `+` and its digits; 11 digits starting 1[3-9] get the country code 86. Empty when there
 * are no digits. For comparison only: numbers are shown as they were configured.
 */
export const normalizeMobile = (mobile: string): string => {
  const digits = mobile.replace(/\D/g, "")
  if (digits === "") return ""
  return /^1[3-9]\d{9}$/.test(digits) ? `+86${digits}` : `+${digits}`
}

/** The digits that the upstream is given: the national number, without country code 86. */
export const nationalMobile = (mobile: string): string =>
  normalizeMobile(mobile).replace(/^\+86(?=\d{11}$)/, "").replace("+", "")

/** Normal form of an email: without surrounding blanks and in lower case. */
export const normalizeEmail = (email: string): string => email.trim().toLowerCase()

/**
 * The identifier of an account that has neither email nor mobile: `token:` and the first 16 hex digits of the SHA-256 of
 * the trimmed token.
 */
export const tokenIdentifier = (token: string, sha256Hex: Sha256Hex): string =>
  `token:${sha256Hex(token.trim()).slice(0, 16)}`

/**
 * The name an account goes by in the admin API: the trimmed email, else the mobile as configured, else the token's
 * identifier. Empty when nothing identifies it.
 */
export const identifierOf = (identity: Identity, sha256Hex: Sha256Hex): string => {
  const email = trimmed(identity.email)
  if (email !== "") return email
  const mobile = trimmed(identity.mobile)
  if (mobile !== "") return mobile
  const token = trimmed(identity.token)
  return token === "" ? "" : tokenIdentifier(token, sha256Hex)
}

/**
 * Every normal form that an account answers to. Two accounts are one when they share one of these; a token counts only
 * where there is neither email nor mobile.
 */
export const identityKeys = (identity: Identity, sha256Hex: Sha256Hex): ReadonlyArray<string> => {
  const keys: Array<string> = []
  const email = normalizeEmail(identity.email ?? "")
  if (email !== "") keys.push(email)
  const mobile = normalizeMobile(identity.mobile ?? "")
  if (mobile !== "") keys.push(mobile)
  if (keys.length > 0) return keys
  const token = trimmed(identity.token)
  return token === "" ? keys : [tokenIdentifier(token, sha256Hex)]
}

/** The keys under which to look for the account that a caller or operator named: an email, a mobile or `token:<hash>`. */
export const lookupKeys = (name: string): ReadonlyArray<string> => {
  const key = normalizeEmail(name)
  const mobile = /^[+\d\s().-]+$/.test(key) ? normalizeMobile(key) : ""
  return mobile === "" ? [key] : [mobile, key]
}

/** Hex digits of a key id. */
const keyIdLength = 16

/**
 * The id of a business key, by which records and usage name it: the first 16 hex digits of the SHA-256 of the trimmed key.
 * `digest` is that SHA-256 in hex.
 */
export const keyIdOfDigest = (digest: string): string => digest.slice(0, keyIdLength)

/** The id of a business key. */
export const keyId = (key: string, sha256Hex: Sha256Hex): string => keyIdOfDigest(sha256Hex(key.trim()))

/** That form in words. */
export const keyIdForm = "16 hex digits, which is the form of key ids"

/** True for what has the form of a key id. */
export const isKeyId = (text: string): boolean => /^[0-9a-f]{16}$/.test(text)

/** What stands for an account in logs, traces and usage: twelve hex digits of the SHA-256 of its first normal form. */
export const accountHash = (identity: string, sha256Hex: Sha256Hex): string => sha256Hex(identity).slice(0, 12)

/** What may be shown of a token: at most its first 8 characters, never more than a third of it, and `...`. */
export const tokenPreview = (token: string): string => {
  const text = token.trim()
  return text === "" ? "" : `${text.slice(0, Math.min(8, Math.floor(text.length / 3)))}...`
}
