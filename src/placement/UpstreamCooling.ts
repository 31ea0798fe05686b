/**
 * When an upstream as a whole is left alone for a while, as a pure machine: times and randomness are arguments.
 *
 * A failed connection cools an upstream immediately. Other trouble of the server cools it after three failures in a row of at least two
 * requests, so that a single caller's prompt cannot shut others out. Any event from the upstream ends both. When the time is over one
 * request probes the upstream while others go on skipping it.
 *
 * A request with no other target goes to a cooled upstream all the same; its failure does not lengthen the time, since only the probe
 * shows whether the upstream works again.
 */
import { jitter } from "../accounts/backOff.ts"
import type { FailureClass } from "../domain/FailureClass.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"

/** Milliseconds of the first cooling, and of the longest one that doubling reaches. */
const first = 1_000
const longest = 60_000

/** The longest cooling that an upstream asks for, in milliseconds. */
const longestAsked = 600_000

/** Failures in a row, and the requests that they belong to, that cool an upstream which accepts connections. */
const mostFailures = 3

/** `connection`: there was no connection. `trouble`: the server failed. */
export type UpstreamFault = "connection" | "trouble"

/** Codes of the system, of TLS and of proxies for a connection that did not come about. */
const noConnection = new RegExp(
  "^(?:ECONNREFUSED|ENOTFOUND|EAI_\\w+|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|" +
    "UND_ERR_PRX_\\w+|UND_ERR_SOCKS5\\w*|CERT_\\w+|ERR_TLS_\\w+|ERR_SSL_\\w+|EPROTO|DEPTH_ZERO_\\w+|SELF_SIGNED_\\w+|" +
    "UNABLE_TO_\\w+|HOSTNAME_MISMATCH|INVALID_CA)$"
)

const troubles: ReadonlySet<FailureClass> = new Set<FailureClass>([
  "timed_out",
  "unreachable",
  "cut_off",
  "disagreement",
  "overloaded",
  "upstream_trouble"
])

/** What a failed try says about the upstream; `undefined` for failures of the account, of the request or of the gateway. */
export const upstreamFault = (failure: UpstreamFailure, failureClass: FailureClass): UpstreamFault | undefined => {
  if (!troubles.has(failureClass)) return undefined
  const code = failure.cause?.code
  return code !== undefined && noConnection.test(code) ? "connection" : "trouble"
}

/** A try at an upstream, from `begin` until `succeeded`, `failed` or `ended`. */
export interface UpstreamTry {
  /** Identifies the request. */
  readonly request: string
  /** The number of coolings before the try. */
  readonly epoch: number
}

/** A failure of the upstream. */
export interface UpstreamFailed {
  readonly fault: UpstreamFault
  /** Seconds of the `Retry-After` of a 503. */
  readonly retryAfter: number | undefined
  readonly now: number
  /** In [0, 1). */
  readonly random: number
}

/** The cooling of one upstream. Times are in milliseconds. */
export class UpstreamCooling {
  #until: number | undefined = undefined
  #probe: UpstreamTry | undefined = undefined
  /** Coolings in a row, without an event in between. */
  #inRow = 0
  /** Coolings in all: a failure of a try that began before the last one is not a new fault. */
  #epoch = 0
  #failures = 0
  /** The request of the first of these failures. */
  #failed: string | undefined = undefined
  /** More than one request failed. */
  #manyFailed = false

  /** When the upstream may be probed; `undefined` while it is not cooled. */
  get until(): number | undefined {
    return this.#until
  }

  /** Whether a request that has another target leaves the upstream out. */
  isSkipped(now: number): boolean {
    return this.#until !== undefined && (now < this.#until || this.#probe !== undefined)
  }

  /** Begins a try. The first one after the time is over is the probe. */
  begin(request: string, now: number): UpstreamTry {
    const attempt: UpstreamTry = { request, epoch: this.#epoch }
    if (this.#until !== undefined && !this.isSkipped(now)) this.#probe = attempt
    return attempt
  }

  /** Notes the first event of a try: the upstream works. */
  succeeded(): void {
    this.#until = undefined
    this.#probe = undefined
    this.#inRow = 0
    this.#clearFailures()
  }

  /** Notes a failure. Returns the milliseconds of the cooling that it begins. */
  failed(attempt: UpstreamTry, { fault, now, random, retryAfter }: UpstreamFailed): number | undefined {
    const isProbe = this.#probe === attempt
    if (isProbe) return this.#cool(now, retryAfter, random)
    if (this.#until !== undefined) {
      if (retryAfter !== undefined) this.#until = Math.max(this.#until, now + asked(retryAfter))
      return undefined
    }
    if (attempt.epoch !== this.#epoch) return undefined
    this.#failures++
    this.#failed ??= attempt.request
    this.#manyFailed ||= this.#failed !== attempt.request
    const cools = fault === "connection" || (this.#failures >= mostFailures && this.#manyFailed)
    return cools ? this.#cool(now, retryAfter, random) : undefined
  }

  /** Notes the end of a try that says nothing about the upstream. Another request probes the upstream instead of this one. */
  ended(attempt: UpstreamTry): void {
    if (this.#probe === attempt) this.#probe = undefined
  }

  #cool(now: number, retryAfter: number | undefined, random: number): number {
    const own = Math.min(first * 2 ** Math.min(this.#inRow, 30) * (1 + jitter * random), longest)
    const delay = Math.round(retryAfter === undefined ? own : asked(retryAfter))
    this.#until = now + delay
    this.#probe = undefined
    this.#inRow++
    this.#epoch++
    this.#clearFailures()
    return delay
  }

  #clearFailures(): void {
    this.#failures = 0
    this.#failed = undefined
    this.#manyFailed = false
  }
}

/** Milliseconds of a `Retry-After`, within bounds. */
const asked = (retryAfter: number): number => Math.min(Math.max(retryAfter * 1_000, first), longestAsked)
