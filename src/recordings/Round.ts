/**
 * A round with an upstream as it is recorded: its facts, and its two bodies, once for all who keep it. Who keeps a round has a rule for its
 * bytes: the ring of captures has a number of rounds, a record has its share of the memory of all records, and a sample keeps what its
 * request makes.
 */
import * as Redacted from "effect/Redacted"
import type { UpstreamProtocol } from "../contracts/drivers.ts"
import type { FailureCause } from "../domain/FailureCause.ts"
import type { Recorder, RoundRecorder } from "../upstream/Upstream.ts"
import { type Hold, type HoldLimit, RecordedBody, type Spares } from "./RecordedBytes.ts"

/** The driver's description of a round, known before it starts. */
type RoundInfo = Parameters<Recorder["round"]>[0]

/** Who serves the rounds of a completion. */
export interface RoundOrigin {
  /** The upstream's name. */
  readonly upstream: string
  /** The account's identifier; `undefined` for a caller's own token. */
  readonly identifier: string | undefined
}

/** What one keeper keeps of a round. */
export interface KeptRound {
  readonly round: Round
  readonly request: Hold
  readonly reply: Hold
}

export class Round implements RoundRecorder {
  /** `completion`, `continue` or `relayed`. */
  readonly label: string
  readonly protocol: UpstreamProtocol
  readonly url: string
  /** The upstream session, if there is one. */
  readonly sessionId: string | undefined
  readonly upstream: string
  /** The account's identifier; empty for a caller's own token. */
  readonly account: string
  /** HTTP status of the reply; 0 before the reply. */
  status = 0
  contentType: string | undefined
  isOver = false
  /** Cause of a failure, as far as the network or the reply reveals it. */
  cause: FailureCause | undefined
  /** What was sent that is secret, and is redacted where the upstream repeats it. */
  readonly #secrets: ReadonlyArray<Redacted.Redacted<string>>
  readonly #request: RecordedBody
  readonly #reply: RecordedBody
  readonly #now: () => number

  /** `now`: monotonic milliseconds. */
  constructor(
    { label, protocol, secret, secrets, sessionId, url }: RoundInfo,
    { identifier = "", upstream }: RoundOrigin,
    spares: Spares,
    now: () => number
  ) {
    this.label = label
    this.protocol = protocol
    this.url = url
    this.sessionId = sessionId
    this.upstream = upstream
    this.account = identifier
    this.#secrets = secret === undefined ? secrets : [secret, ...secrets]
    this.#request = new RecordedBody(spares)
    this.#reply = new RecordedBody(spares)
    this.#now = now
  }

  /** Keeps what the rules of the two bodies allow. Called before the round has bytes. */
  keep(request: HoldLimit, reply: HoldLimit): KeptRound {
    return { round: this, request: this.#request.hold(request), reply: this.#reply.hold(reply) }
  }

  get secrets(): ReadonlyArray<string> {
    return this.#secrets.map(Redacted.value)
  }

  /** Records the whole body of the request. */
  sends(body: string): void {
    this.#request.push(body, this.#now())
    this.#request.close()
  }

  opened(status: number, contentType: string | undefined): void {
    this.status = status
    this.contentType = contentType
  }

  bytes(chunk: Uint8Array): void {
    this.#reply.push(chunk, this.#now())
  }

  closed(cause?: FailureCause): void {
    this.#reply.close()
    this.isOver = true
    this.cause = cause
  }
}

/** Drops the bytes that a keeper keeps. */
export const releaseRound = ({ reply, request }: KeptRound): void => {
  request.release()
  reply.release()
}
