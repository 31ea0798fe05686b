/** What a contract accepts: the limits of its names, ids and counts, and the order of its histories. */
import type { Sampling } from "../../domain/Conversation.ts"
import type { FamilyName } from "../names.ts"
import { longHash } from "./hash.ts"

/** Characters of a hash at the end of a changed word, with the mark before them. */
const hashLength = 17

/** Names of tools, or ids of calls. */
export interface WordLimit {
  /** Characters of a word at most; `undefined` for any number. */
  readonly most: number | undefined
  /** The characters that a word may have, and those that it may begin with, as a class of regular expressions has them; empty for all. */
  readonly characters: string
  readonly first: string
  /** The word that the contract accepts in place of this one: the same for the same word, and another one for another word. */
  readonly accepted: (word: string) => string
}

/**
 * Makes a limit of words. A word that is within it stays; another one is cut, cleaned and ends with a hash of the whole. Of a word without room for
 * more it is the hash alone. `least`: characters of a word at least.
 */
export const wordLimit = (most: number | undefined, characters: string, first = characters, least = 0): WordLimit => {
  const other = characters === "" ? undefined : new RegExp(`[^${characters}]`, "g")
  const begins = new RegExp(first === "" ? "" : `^[${first}]`)
  const fits = (word: string) =>
    word.length >= least && (most === undefined || word.length <= most) &&
    (other === undefined || word.search(other) === -1) &&
    (word === "" || begins.test(word))
  return {
    most,
    characters,
    first,
    accepted: (word) => {
      if (fits(word)) return word
      if (most !== undefined && most <= hashLength) return longHash(word).slice(0, most)
      const clean = other === undefined ? word : word.replace(other, "_")
      const head = begins.test(clean) ? clean : `_${clean}`
      return `${head.slice(0, (most ?? Infinity) - hashLength)}_${longHash(word)}`
    }
  }
}

/** The histories that a contract accepts. Results follow their calls in all of them. */
export interface HistoryRules {
  /** Turns of the assistant in a row are one, and the results of their calls follow the last of them. */
  readonly joinsTurns: boolean
  /** What the first turn may be. */
  readonly begins: "anyhow" | "without a call" | "with the user"
  /** Where no two calls have the same id. */
  readonly uniqueIds: "in a turn" | "in all turns"
  /** The texts that the contract refuses; turns without anything else are refused too. */
  readonly refusedTexts: "none" | "empty" | "blank"
}

/** What a contract accepts of a request. */
export interface Limits {
  /** The contract, whose own elements stay as their caller wrote them. */
  readonly contract: FamilyName
  readonly callIds: WordLimit
  readonly toolNames: WordLimit
  /** Stop sequences at most; the gateway applies the others. `undefined` for any number. */
  readonly stopSequences: number | undefined
  /** Texts in one request for embeddings at most; 0 where the contract has no embeddings; `undefined` for any number. */
  readonly texts: number | undefined
  /** Media types of pictures that come as data; empty for all. */
  readonly pictures: ReadonlyArray<string>
  /** Sampling parameters of which a request may have the first alone. */
  readonly exclusive: ReadonlyArray<readonly [sent: keyof Sampling, other: keyof Sampling]>
  /** A schema of arguments has a list of properties, if only an empty one, and its lists say something of their items. */
  readonly needsProperties: boolean
  readonly history: HistoryRules
}
