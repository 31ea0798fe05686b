/**
 * One round with the upstream as it is shown: what went there, and the bytes that came back.
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { FailureCause } from "../../domain/FailureCause.ts"

export interface CapturedRound {
  readonly id: string
  /** Id of the request that it served. */
  readonly requestId: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
  /** `completion` or `continue`. */
  readonly label: string
  readonly protocol: "session" | "openai"
  /** Without credentials and query. */
  readonly url: string
  /** The account's identifier; empty for a caller's own token. */
  readonly account: string
  /** HTTP status of the reply; 0 while there is none. */
  readonly status: number
  readonly contentType: string | undefined
  readonly requestBody: string
  /** The reply exactly as it came, up to the limit. */
  readonly bytes: Uint8Array
  /** The reply was longer than what is kept. */
  readonly truncated: boolean
  /** The round is over. */
  readonly closed: boolean
  /** The upstream session, which all rounds of one reply share. */
  readonly chainKey: string
  /** Why the round failed, where the network or the answer told. */
  readonly cause: FailureCause | undefined
}

/** A round without its bodies, only how many bytes each of them has. */
export interface RoundSummary extends Omit<CapturedRound, "requestBody" | "bytes"> {
  readonly requestBytes: number
  readonly responseBytes: number
}

/** The rounds of one reply that are kept, first to last. */
export type CaptureChain = NonEmptyReadonlyArray<CapturedRound>

/** A reply's bytes as text; bytes that are no UTF-8 are replaced. */
export const responseText = (round: CapturedRound): string => decoder.decode(round.bytes)

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
