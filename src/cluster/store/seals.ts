/**
 * Seals for what lies in the store: AES-256-GCM with a random nonce; the key is derived from the store key by HKDF, and the
 * name of the place is part of what is authenticated, so that a value cannot be moved to another one.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto"

const algorithm = "aes-256-gcm"
const nonceSize = 12
const tagSize = 16

export interface Seals {
  /** Seals a text for the place `name`. */
  readonly seal: (name: string, text: string) => string
  /** Opens what was sealed for the place; `undefined` where that is not what it is, or another key sealed it. */
  readonly open: (name: string, sealed: string) => string | undefined
  /** True where only the previous key opens it, so that it is to be sealed anew. */
  readonly isOld: (name: string, sealed: string) => boolean
}

const keyOf = (secret: string): Buffer => Buffer.from(hkdfSync("sha256", secret, "model-gateway", "seal", 32))

const openWith = (key: Buffer, name: string, sealed: string): string | undefined => {
  const bytes = Buffer.from(sealed, "base64url")
  if (bytes.length < nonceSize + tagSize) return undefined
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceSize), { authTagLength: tagSize })
  decipher.setAAD(Buffer.from(name))
  decipher.setAuthTag(bytes.subarray(-tagSize))
  try {
    return decipher.update(bytes.subarray(nonceSize, -tagSize), undefined, "utf8") + decipher.final("utf8")
  } catch {
    return undefined
  }
}

/** Makes the seals of a key; what the previous one sealed is opened too. */
export const makeSeals = (secret: string, previous: string | undefined): Seals => {
  const key = keyOf(secret)
  const old = previous === undefined ? undefined : keyOf(previous)
  return {
    seal: (name, text) => {
      const nonce = randomBytes(nonceSize)
      const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagSize })
      cipher.setAAD(Buffer.from(name))
      return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString(
        "base64url"
      )
    },
    open: (name, sealed) =>
      openWith(key, name, sealed) ?? (old === undefined ? undefined : openWith(old, name, sealed)),
    isOld: (name, sealed) =>
      old !== undefined && openWith(key, name, sealed) === undefined && openWith(old, name, sealed) !== undefined
  }
}
