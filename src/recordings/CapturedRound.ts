/**
 * A captured round with the upstream: the request that was sent, and the bytes of the reply.
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { UpstreamProtocol } from "../contracts/drivers.ts"
import type { FailureCause } from "../domain/FailureCause.ts"

export interface CapturedRound {
  readonly id: string
  /** Id of the request that it served. */
  readonly requestId: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
  /** `completion` or `continue`. */
  readonly label: string
  readonly protocol: UpstreamProtocol
  /** Without credentials and query. */
  readonly url: string
  /** The name of the upstream that served it. */
  readonly upstream: string
  /** The account's identifier; empty if the caller's own token was used. */
  readonly account: string
  /** HTTP status of the reply; 0 before the reply. */
  readonly status: number
  readonly contentType: string | undefined
  readonly requestBody: string
  /** The reply as received, up to the limit. */
  readonly bytes: Uint8Array
  /** The reply exceeded the limit. */
  readonly truncated: boolean
  /** The round is over. */
  readonly closed: boolean
  /** Id of the upstream session, shared by all rounds of a reply. */
  readonly chainKey: string
  /** Cause of a failure, as far as the network or the reply reveals it. */
  readonly cause: FailureCause | undefined
}

/** A round with the sizes of its bodies in place of the bodies. */
export interface RoundSummary extends Omit<CapturedRound, "requestBody" | "bytes"> {
  readonly requestBytes: number
  readonly responseBytes: number
}

/** Bytes of the bodies of rounds. */
export const bytesOfRounds = (rounds: ReadonlyArray<RoundSummary>): number =>
  rounds.reduce((sum, { requestBytes, responseBytes }) => sum + requestBytes + responseBytes, 0)

/** The kept rounds of a reply, in order. */
export type CaptureChain = NonEmptyReadonlyArray<CapturedRound>

/** The reply as text; invalid UTF-8 is replaced. */
export const responseText = (round: CapturedRound): string => decoder.decode(round.bytes)

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
