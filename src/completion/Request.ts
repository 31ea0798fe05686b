/**
 * A running request: the facts that decisions may depend on. What happens to it is written to its stats, which only its record, its log
 * line, its headers and its metrics read.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { CurrentBufferedBytes, CurrentLimits, HeldBytes } from "../config/limits.ts"
import type { ClientIdentity } from "../domain/clientIdentity.ts"
import type { ErrorFamily } from "../domain/errorBody.ts"
import type { OutputFields } from "../domain/outputFields.ts"
import { monotonicMillis } from "../domain/time.ts"
import { none } from "../domain/usageNames.ts"
import type { RequestRecord } from "../recordings/RequestRecord.ts"
import type { CallerHeaders } from "../upstream/Upstream.ts"
import type { Reserved } from "../usage/Admission.ts"
import type { Rehearsal } from "./Rehearsal.ts"
import { makeRequestStats, type RequestStats } from "./RequestStats.ts"

/** What follows a request up to its end. */
export interface RequestFollowers {
  /** The recording for operators; `undefined` while recordings are off. */
  recording: RequestRecord | undefined
  /** Adds the request to the usage history; `undefined` for a request that is no use: of an endpoint without callers, or one that asks for nothing yet. */
  usage: { readonly ended: (stats: RequestStats) => void } | undefined
  /** Finishes the request after its response body; run once. */
  ended: (() => Effect.Effect<void>) | undefined
}

/** One request, from its arrival to the end of its reply. */
export interface Request {
  readonly id: string
  /** Monotonic milliseconds. */
  readonly startedAt: number
  /** The client's address as `privacy.client_address` allows; `undefined` if nothing of it is kept. */
  readonly client: string | undefined
  /** `undefined` for a request without an endpoint. */
  readonly style: string | undefined
  /** The protocol of the caller's errors; absent without one. */
  readonly errorFamily: ErrorFamily | undefined
  /** The headers of the caller's request, by their names in lower case; absent for a request within the process. */
  readonly callerHeaders: CallerHeaders | undefined
  /** Id of the caller's key, or a fixed id for callers without one; `none` for an endpoint without callers. */
  readonly key: string
  /** Who calls, as the client says; `undefined` for an endpoint without callers, and for an app. */
  readonly identity: ClientIdentity | undefined
  /** What the request rehearses; absent for any other. */
  readonly rehearsal: Rehearsal | undefined
  /** Its share of the key's running requests from before its admission, while its body arrived. */
  readonly entered: Reserved | undefined
  /** The body's fields by which servers choose another model, or a tier, as far as the body was read. */
  readonly choosing: Array<string>
  /** The body's fields that say how much is made, as far as the body was read. */
  outputs: OutputFields
  /** Characters of the body; absent until it is read, and for a request of an app. */
  bodyChars: number | undefined
  /** The reply's share of `limits.buffered_bytes`; released at the end of the request. */
  readonly held: HeldBytes
  readonly followers: RequestFollowers
  readonly stats: RequestStats
}

/** A request that starts now. */
export const startRequest = (
  { client, held, id, startedAt }: Pick<Request, "client" | "held" | "id" | "startedAt">
): Request => {
  const stats = makeRequestStats(id, startedAt)
  stats.client = client
  return {
    id,
    startedAt,
    client,
    style: undefined,
    key: none,
    identity: undefined,
    entered: undefined,
    choosing: [],
    outputs: {},
    held,
    followers: { recording: undefined, usage: undefined, ended: undefined },
    stats,
    errorFamily: undefined,
    callerHeaders: undefined,
    rehearsal: undefined,
    bodyChars: undefined
  }
}

/** Starts a request of an app, without HTTP. The scope is the request's: it releases what the reply holds. */
export const beginRequest = (
  { id, key, style }: Pick<Request, "id" | "key" | "style">
): Effect.Effect<Request, never, Scope.Scope> =>
  Effect.gen(function*() {
    const startedAt = monotonicMillis(yield* Clock.Clock)
    const held = new HeldBytes(yield* CurrentBufferedBytes, yield* CurrentLimits)
    yield* Effect.addFinalizer(() => Effect.sync(() => held.release()))
    const started = startRequest({ id, startedAt, client: undefined, held })
    started.stats.style = style
    started.stats.key = key
    return { ...started, key, style }
  })
