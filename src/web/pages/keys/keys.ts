/**
 * Business keys: their values and ids.
 *
 * SHA-256 is plain code: the browser's is asynchronous and limited to secure contexts, while the console also works over plain
 * HTTP.
 */
import { keyId } from "../../../domain/identity.ts"
import type { Reply } from "../../state/client.ts"

export type KeyItem = Reply<"admin-keys", "list">["items"][number]

type Eight = [number, number, number, number, number, number, number, number]

const wordsAtMost = 64

/** The first 32 bits of the fractional part of a number. */
const fraction = (number: number): number => ((number - Math.floor(number)) * 2 ** 32) | 0

const primes: Array<number> = []
for (let number = 2; primes.length < wordsAtMost; number++) {
  if (primes.every((prime) => number % prime !== 0)) primes.push(number)
}
const initial = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime))) as Eight
const constants = primes.map((prime) => fraction(Math.cbrt(prime)))

const turn = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits))

const encoder = new TextEncoder()

/** The text's bytes, then a 1 bit, zeros and the length in bits, in whole blocks of 64 bytes. */
const padded = (text: string): DataView => {
  const bytes = encoder.encode(text)
  const blocks = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64)
  blocks.set(bytes)
  blocks[bytes.length] = 0x80
  const view = new DataView(blocks.buffer)
  view.setUint32(blocks.length - 8, Math.floor(bytes.length / 2 ** 29))
  view.setUint32(blocks.length - 4, bytes.length * 8)
  return view
}

/** Hex digits of the SHA-256 of a text's UTF-8 bytes. */
export const sha256Hex = (text: string): string => {
  const view = padded(text)
  const state: Eight = [...initial]
  const words = new Int32Array(wordsAtMost)
  for (let block = 0; block < view.byteLength; block += 64) {
    for (let at = 0; at < 16; at++) words[at] = view.getInt32(block + at * 4)
    for (let at = 16; at < wordsAtMost; at++) {
      const [near, far] = [words[at - 2]!, words[at - 15]!]
      words[at] = words[at - 16]! + (turn(far, 7) ^ turn(far, 18) ^ (far >>> 3)) +
        words[at - 7]! + (turn(near, 17) ^ turn(near, 19) ^ (near >>> 10))
    }
    let [a, b, c, d, e, f, g, h] = state
    for (let at = 0; at < wordsAtMost; at++) {
      const first =
        (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + constants[at]! + words[at]!) |
        0
      const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0
      h = g
      g = f
      f = e
      e = (d + first) | 0
      d = c
      c = b
      b = a
      a = (first + second) | 0
    }
    const ends: Eight = [a, b, c, d, e, f, g, h]
    for (let at = 0; at < ends.length; at++) state[at] = (state[at]! + ends[at]!) | 0
  }
  return state.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("")
}

/** The id of a key in the admin API: the first 16 hex digits of the SHA-256 of the trimmed key. */
export const keyIdOf = (key: string): string => keyId(key, sha256Hex)

const indexes = new WeakMap<ReadonlyArray<string>, Map<string, string>>()

/** The key with an id; `undefined` if the list does not contain it. Each key is hashed at most once. */
export const keyOfId = (keys: ReadonlyArray<string>, id: string): string | undefined => {
  const index = indexes.get(keys) ?? new Map<string, string>()
  indexes.set(keys, index)
  // The keys of a configuration are distinct, so the size of the index is the number of hashed keys.
  for (let at = index.size; at < keys.length && !index.has(id); at++) index.set(keyIdOf(keys[at]!), keys[at]!)
  return index.get(id)
}
