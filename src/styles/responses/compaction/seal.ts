/**
 * The seal of a compaction: `gwc1_`, then time, model and summary, encrypted. It is bound to no key of a caller, so that a conversation
 * goes on with another one.
 */
import type { Encryption } from "../../../cluster/store/encryption.ts"

/** What a compaction says. */
export interface Compaction {
  /** When it was made, in Unix seconds. */
  readonly at: number
  /** The model that wrote it, as its caller named it. */
  readonly model: string
  /** At most `longestSummary` characters. */
  readonly summary: string
}

/** Version and purpose: the form of the sealed text, which other texts of the same key do not have. */
const purpose = "gwc1"

const beginning = `${purpose}_`

/** Characters of a summary at most. */
export const longestSummary = 200_000

/** Characters of a model's name at most. */
const longestModel = 200

/** Characters of a seal at most: the longest summary has 600,000 bytes, of which Base64 makes 800,000 characters. */
const longestSeal = 1_000_000

/** True for a seal that a gateway made, this one or another. */
export const isGatewaySeal = (seal: string): boolean => seal.startsWith(beginning)

/** The text to encrypt, for the purpose `name`. */
export const unsealed = ({ at, model, summary }: Compaction): { readonly name: string; readonly text: string } => ({
  name: purpose,
  text: `${JSON.stringify([at, model.slice(0, longestModel)])}\n${summary.slice(0, longestSummary)}`
})

/** The seal of an encrypted text. */
export const sealOf = (encrypted: string): string => beginning + encrypted

/** What a seal says; `undefined` if it was changed, or is not of this gateway. */
export const openSeal = (open: Encryption["open"], seal: string): Compaction | undefined => {
  if (!isGatewaySeal(seal) || seal.length > longestSeal) return undefined
  const encrypted = seal.slice(beginning.length)
  // Decoders of Base64 skip other characters.
  if (Buffer.from(encrypted, "base64url").toString("base64url") !== encrypted) return undefined
  const text = open(purpose, encrypted)
  if (text === undefined) return undefined
  const end = text.indexOf("\n")
  const [at, model]: [number, string] = JSON.parse(text.slice(0, end))
  return { at, model, summary: text.slice(end + 1) }
}
