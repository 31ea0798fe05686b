/**
 * Deterministic embeddings: hashes the words and character trigrams of a text to a vector of unit length. Texts that share
 * words are closer to each other than texts that do not; the vectors carry no other meaning.
 *
 * Two passes keep the work linear. The first sums the weight of each feature in a table of fixed size; the second projects
 * the features that occurred. When a text has more distinct features than the table has slots, some features share a slot.
 */

import { type Cooperative, Slice } from "../../../domain/stream/cooperative.ts"

/** The default number of dimensions. */
export const defaultDimensions = 256

/** A slice has 64 Ki numbers. */
const charsPerNumber = 4

const tableBits = 16
const tableSize = 1 << tableBits

/** The weight of a trigram; a word weighs 1. It brings `embed` near `embedding` without making all texts alike. */
const trigramWeight = 0.15

/** Makes one vector after another: `take` returns the vector of everything added since the last `take`. */
export interface Vectorizer {
  /** Adds a text, or the next piece of one. */
  readonly addText: (text: string) => void
  /** Adds a text given as token ids, or the next piece of one. */
  readonly addTokens: (tokens: ReadonlyArray<number>) => void
  /** Returns the unit vector, in slices, and starts the next one. */
  readonly take: () => Cooperative<Float64Array>
}

/** Finalizer of MurmurHash3: every bit of the input affects every bit of the output. */
const mix = (hash: number): number => {
  let h = hash ^ hash >>> 16
  h = Math.imul(h, 0x85ebca6b)
  h ^= h >>> 13
  h = Math.imul(h, 0xc2b2ae35)
  return h ^ h >>> 16
}

/** True for characters between words: blanks, and ASCII, general and CJK punctuation. */
const separates = (code: number): boolean =>
  code < 128
    ? !(code >= 97 && code <= 122 || code >= 48 && code <= 57)
    : code >= 0x80 && code <= 0xbf || code >= 0x2000 && code <= 0x206f || code >= 0x3000 && code <= 0x303f ||
      code >= 0xff00 && code <= 0xff0f

/** True for Han characters and kana, which are words by themselves: these scripts have no blanks between words. */
const isWord = (code: number): boolean => code >= 0x3040 && code <= 0x30ff || code >= 0x3400 && code <= 0x9fff

const fnvOffset = 0x811c9dc5 | 0
const step = (hash: number, code: number): number => Math.imul(hash ^ code, 0x01000193)

// Each kind of feature starts from its own hash, so that a pair never equals a word.
const pair = (first: number, second: number): number => step(step(fnvOffset ^ 2, first), second)
const trigram = (first: number, second: number, third: number): number =>
  step(step(step(fnvOffset ^ 3, first), second), third)

/** Makes a vectorizer for vectors of `dimensions` numbers. */
export const makeVectorizer = (dimensions: number): Vectorizer => {
  const weights = new Float32Array(tableSize)
  let touched: Array<number> = []

  const add = (hash: number, weight: number) => {
    const place = mix(hash) >>> 32 - tableBits
    if (weights[place] === 0) touched.push(place)
    weights[place]! += weight
  }

  /** Sums the directions of the features. Square roots damp the weights, so that a repeated word does not dominate. */
  function* project(): Cooperative<Float64Array> {
    const slice = new Slice()
    const vector = new Float64Array(dimensions)
    for (const place of touched) {
      // A number costs much less than an item of a slice.
      if (slice.add(0, dimensions * charsPerNumber)) yield slice.end()
      const weight = Math.sqrt(weights[place]!) * 2 ** -31
      weights[place] = 0
      // Xorshift: the slot seeds a pseudo-random direction over all dimensions.
      let state = mix(place + 1) | 1
      for (let i = 0; i < dimensions; i++) {
        state ^= state << 13
        state ^= state >>> 17
        state ^= state << 5
        vector[i]! += weight * state
      }
    }
    touched = []
    let square = 0
    for (const value of vector) square += value * value
    const scale = 1 / Math.sqrt(square)
    for (let i = 0; i < dimensions; i++) vector[i]! *= scale
    return vector
  }

  // The current word; it may continue in the next piece.
  let word = fnvOffset
  let length = 0
  let before = 0
  let last = 0
  let lastHan = 0
  let lastToken = -1
  /** Hash of the separators: the only feature of a text without words. */
  let separators = fnvOffset

  const endWord = () => {
    if (length === 0) return
    add(word, 1)
    add(trigram(before, last, 0), trigramWeight)
    word = fnvOffset
    length = before = last = 0
  }
  /** Adds the words of a lower-case text and their trigrams; in a trigram, 0 marks the start or end of a word. */
  const addWords = (text: string) => {
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (isWord(code)) {
        endWord()
        add(step(fnvOffset, code), 1)
        if (lastHan !== 0) add(pair(lastHan, code), 1)
        lastHan = code
        continue
      }
      lastHan = 0
      if (separates(code)) {
        endWord()
        separators = step(separators, code)
        continue
      }
      word = step(word, code)
      if (length++ > 0) add(trigram(before, last, code), trigramWeight)
      before = last
      last = code
    }
  }

  return {
    addText(text) {
      addWords(text.normalize("NFKC").toLowerCase())
    },
    addTokens(tokens) {
      for (const token of tokens) {
        add(step(fnvOffset, token), 1)
        if (lastToken !== -1) add(pair(lastToken, token), trigramWeight)
        lastToken = token
      }
    },
    *take() {
      endWord()
      if (touched.length === 0) add(separators, 1)
      lastHan = 0
      lastToken = -1
      separators = fnvOffset
      return yield* project()
    }
  }
}
