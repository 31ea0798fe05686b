/**
 * The identity of upstream accounts and business keys: identifiers, the normal forms in which two spellings are one account, and
 * previews of tokens. SHA-256 is a parameter, since this floor has no crypto.
 */
import { keyWithin } from "./upstreamNames.ts"

/** The configured fields that identify an account: the name of its upstream, absent for the default one, its names and its credential. */
type Identity = Partial<Readonly<Record<"upstream" | "email" | "mobile" | "token", string | undefined>>> & {
  readonly credential?: unknown
}

/** Returns the SHA-256 of a text's UTF-8 bytes in hex. */
type Sha256Hex = (text: string) => string

const trimmed = (text: string | undefined): string => text === undefined ? "" : text.trim()

/**
 * Normal form of a mobile number: `+` and its digits; 11 digits that start with 1[3-9] get the country code 86. Empty without digits.
 * For comparison only: numbers are shown as configured.
 */
export const normalizeMobile = (mobile: string): string => {
  const digits = mobile.replace(/\D/g, "")
  if (digits === "") return ""
  return /^1[3-9]\d{9}$/.test(digits) ? `+86${digits}` : `+${digits}`
}

/** The digits that are sent to the upstream: the national number, without country code 86. */
export const nationalMobile = (mobile: string): string =>
  normalizeMobile(mobile).replace(/^\+86(?=\d{11}$)/, "").replace("+", "")

/** Normal form of an email: without surrounding blanks and in lower case. */
export const normalizeEmail = (email: string): string => email.trim().toLowerCase()

/** The identifier of an account with neither email nor mobile: `token:` and 16 hex digits of the trimmed token's SHA-256. */
export const tokenIdentifier = (token: string, sha256Hex: Sha256Hex): string =>
  `token:${sha256Hex(token.trim()).slice(0, 16)}`

/** Fields of a credential that change while it stays the same one. */
const changeable: ReadonlySet<string> = new Set(["for", "secret", "timeout"])

/** The identifier of an account whose token comes from a source: the source and 16 hex digits of the SHA-256 of what it names. */
const credentialIdentifier = (credential: unknown, sha256Hex: Sha256Hex): string => {
  if (typeof credential !== "object" || credential === null) return ""
  const fields = Object.entries(credential)
  const named = fields.filter(([name]) => !changeable.has(name)).sort(([a], [b]) => a < b ? -1 : 1)
  const from: unknown = fields.find(([name]) => name === "from")?.[1]
  return typeof from === "string" ? `${from}:${sha256Hex(JSON.stringify(named)).slice(0, 16)}` : ""
}

/**
 * The account's name in the admin API: the trimmed email, else the mobile as configured, else the identifier of the token or the credential.
 * Empty when nothing identifies it.
 */
export const identifierOf = (identity: Identity, sha256Hex: Sha256Hex): string => {
  const email = trimmed(identity.email)
  if (email !== "") return email
  const mobile = trimmed(identity.mobile)
  if (mobile !== "") return mobile
  const token = trimmed(identity.token)
  return token === "" ? credentialIdentifier(identity.credential, sha256Hex) : tokenIdentifier(token, sha256Hex)
}

const normalForms = (identity: Identity, sha256Hex: Sha256Hex): ReadonlyArray<string> => {
  const keys: Array<string> = []
  const email = normalizeEmail(identity.email ?? "")
  if (email !== "") keys.push(email)
  const mobile = normalizeMobile(identity.mobile ?? "")
  if (mobile !== "") keys.push(mobile)
  if (keys.length > 0) return keys
  // A mobile without digits identifies nothing.
  const identifier = identifierOf({ ...identity, email: undefined, mobile: undefined }, sha256Hex)
  return identifier === "" ? keys : [identifier]
}

/**
 * Every normal form of an account, with its upstream unless that is the default one. Two accounts that share one are the same. A token
 * counts only without email and mobile.
 */
export const identityKeys = (identity: Identity, sha256Hex: Sha256Hex): ReadonlyArray<string> =>
  normalForms(identity, sha256Hex).map((form) => keyWithin(trimmed(identity.upstream), form))

/** The normal forms under which to look up the account that a caller or operator named: an email, a mobile or `token:<hash>`. */
export const lookupKeys = (name: string): ReadonlyArray<string> => {
  const key = normalizeEmail(name)
  const mobile = /^[+\d\s().-]+$/.test(key) ? normalizeMobile(key) : ""
  return mobile === "" ? [key] : [mobile, key]
}

/** Hex digits of a key id. */
const keyIdLength = 16

/** The id of a business key in records and usage: the first 16 hex digits of `digest`, the trimmed key's SHA-256 in hex. */
export const keyIdOfDigest = (digest: string): string => digest.slice(0, keyIdLength)

const hashedForm = /^(sha256:[0-9a-f]{64})(?: (.*))?$/

/** A key that is known by its hash (`sha256:` and 64 hex digits), as a text with the preview of the key. No client can present it. */
export const hashedKey = (hash: string, preview: string): string => `${hash} ${preview}`.trim()

/** The hash and the preview of a key that is known by its hash; `undefined` for a key itself. */
export const hashOfKey = (key: string): { readonly hash: string; readonly preview: string } | undefined => {
  const [, hash, preview = ""] = hashedForm.exec(key) ?? []
  return hash === undefined ? undefined : { hash, preview }
}

/** The SHA-256 of a configured key in hex. */
export const keyDigest = (key: string, sha256Hex: Sha256Hex): string =>
  hashOfKey(key)?.hash.slice("sha256:".length) ?? sha256Hex(key.trim())

/** Bits from which on a hash keeps a key as well as the key itself would be kept. */
const enoughBits = 128

/** Whether a key is too short, or of too few different characters, for its hash to hide it. An estimate. */
export const isGuessable = (key: string): boolean => [...key].length * Math.log2(new Set(key).size) < enoughBits

/** The id of a business key. */
export const keyId = (key: string, sha256Hex: Sha256Hex): string => keyIdOfDigest(keyDigest(key, sha256Hex))

/** Stands for the label of a key without one. */
export const noLabel = "none"

/** The form of key ids, for error messages. */
export const keyIdForm = "16 hex digits, which is the form of key ids"

/** True for text in the form of a key id. */
export const isKeyId = (text: string): boolean => /^[0-9a-f]{16}$/.test(text)

/** The account in logs, traces and usage: twelve hex digits of the SHA-256 of its first normal form. */
export const accountHash = (identity: string, sha256Hex: Sha256Hex): string => sha256Hex(identity).slice(0, 12)

/** The beginning of generated business keys. */
export const keyPrefix = "sk-gw-"

/**
 * The visible part of a business key: of one that begins with `keyPrefix`, up to 4 characters behind it and up to 4 at the end, at most
 * a quarter of the rest together; of others as of a token.
 */
export const keyPreview = (key: string): string => {
  const hashed = hashOfKey(key)
  if (hashed !== undefined) return hashed.preview
  const text = key.trim()
  const secret = text.startsWith(keyPrefix) ? text.slice(keyPrefix.length) : ""
  const shown = Math.min(4, Math.floor(secret.length / 8))
  return shown === 0 ? tokenPreview(key) : `${keyPrefix}${secret.slice(0, shown)}...${secret.slice(-shown)}`
}

/** The visible part of a token: its first 8 characters, at most a third of it, and `...`. */
export const tokenPreview = (token: string): string => {
  const text = token.trim()
  return text === "" ? "" : `${text.slice(0, Math.min(8, Math.floor(text.length / 3)))}...`
}
