/**
 * Why a server ended a reply, by its own word. A word that says failure fails the reply. A word that no table knows is no clean end: the reply
 * counts as cut off, and the record names the word.
 */
import type { UpstreamFinish } from "../../domain/UpstreamEvent.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"

type Finish = UpstreamFinish["reason"]

/** The end of a reply. */
export interface End {
  readonly reason: Finish
  /** The server's word, if no table knows it. */
  readonly unknown: string | undefined
}

/** What the words of all vendors and servers for a failure have in them. */
const failed =
  /abort|cancel|error|exception|expired|fail|insufficient|interrupt|malformed|overload|time_?(?:d_)?out|unexpected/i

/** Characters of a word. */
const longestWord = 60

/** The end that a word says by a contract's table; `undefined` if it says failure. */
export const endOf = (word: string, known: ReadonlyMap<string, Finish>): End | undefined => {
  const reason = known.get(word)
  if (reason !== undefined) return { reason, unknown: undefined }
  return failed.test(word) ? undefined : { reason: "length", unknown: word.slice(0, longestWord) }
}

/** The failure of a reply that its server has ended with a word. */
export const gaveUp = (
  word: string,
  message = `it ended the reply with "${word.slice(0, longestWord)}"`
): Omit<ConstructorParameters<typeof UpstreamFailure>[0], "phase"> => ({ kind: "gave_up", reason: word, message })
