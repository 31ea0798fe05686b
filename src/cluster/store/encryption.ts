/**
 * Values in the store: encrypted with AES-256-GCM, large ones in chunks.
 *
 * The encryption key is derived from the store key by HKDF. The nonce is random. The name of the place is authenticated too, so that
 * a value cannot be moved to another place.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto"

const algorithm = "aes-256-gcm"
const nonceSize = 12
const tagSize = 16

export interface Encryption {
  /** Differs between keys, and reveals nothing of them. */
  readonly keyName: string
  /** Encrypts a text for the place `name`. */
  readonly seal: (name: string, text: string) => string
  /** Decrypts a text of the place `name`; `undefined` if it is malformed or from another place or key. */
  readonly open: (name: string, sealed: string) => string | undefined
  /** True if only the previous key decrypts the text, so that it should be encrypted again. */
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

/** Makes the encryption with a key. The previous key still decrypts. */
export const makeEncryption = (secret: string, previous: string | undefined): Encryption => {
  const key = keyOf(secret)
  const old = previous === undefined ? undefined : keyOf(previous)
  return {
    keyName: createHmac("sha256", key).update("name").digest("hex"),
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

/**
 * Maximum size of a chunk before encryption, in bytes. Chunks are written and read one by one, so that no single command
 * blocks the store.
 */
export const pieceBytes = 256 * 1024

const encoder = new TextEncoder()
const scratch = new Uint8Array(pieceBytes)

/** Splits a text into chunks in order, between characters. */
export function* piecesOf(text: string): Generator<string, void> {
  for (let from = 0; from < text.length;) {
    const { read } = encoder.encodeInto(text.slice(from, from + pieceBytes), scratch)
    yield text.slice(from, from + read)
    from += read
  }
}
