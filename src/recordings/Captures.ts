/**
 * Captures: a bounded ring of rounds with the upstream, grouped into chains by upstream session.
 *
 * Bytes are kept as received, except for credentials that the upstream repeats, which are redacted. While captures are off,
 * nothing is recorded.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { FailureCause } from "../domain/FailureCause.ts"
import { monotonicMillis } from "../domain/time.ts"
import type { Recorder, RoundRecorder } from "../upstream/Upstream.ts"
import type { CaptureChain, CapturedRound, RoundSummary } from "./CapturedRound.ts"
import { chainHolds } from "./capturePreview.ts"
import { type Hold, type HoldLimit, RecordedBody, Spares } from "./RecordedBytes.ts"
import { plainUrl, redactBytes, redactText } from "./redactRound.ts"

/** The driver's description of a round, known before it starts. */
type RoundInfo = Parameters<Recorder["round"]>[0]

/** A round that is being recorded. */
interface Entry {
  readonly id: string
  readonly createdAt: number
  readonly upstream: string
  readonly account: string
  readonly requestId: string
  readonly info: RoundInfo
  readonly chainKey: string
  /** A follower keeps the rounds of this request after they have left the ring. */
  readonly followed: boolean
  /** `request` and `log` are `undefined` after the round has left the ring. */
  request: Hold | undefined
  log: Hold | undefined
  status: number
  contentType: string | undefined
  closed: boolean
  cause: FailureCause | undefined
}

/** Observes the rounds of one request, and may hold their bytes. Must be cheap and must not throw. */
export interface RoundsWatch {
  /** Called when a round starts. `captureId` is empty while captures are off. */
  readonly round: (round: {
    readonly captureId: string
    readonly account: string
    readonly info: RoundInfo
    /** The body of the request. */
    readonly request: RecordedBody
    /** The body of the reply. */
    readonly reply: RecordedBody
  }) => Pick<RoundRecorder, "opened" | "closed">
}

/** Who serves the rounds of a completion. */
export interface RoundOrigin {
  /** The upstream's name. */
  readonly upstream: string
  /** The account's identifier; `undefined` for a caller's own token. */
  readonly identifier: string | undefined
}

/** A round without its bodies. */
const headOf = (entry: Entry) => ({
  id: entry.id,
  requestId: entry.requestId,
  createdAt: entry.createdAt,
  label: entry.info.label,
  protocol: entry.info.protocol,
  url: plainUrl(entry.info.url),
  upstream: entry.upstream,
  account: entry.account,
  status: entry.status,
  contentType: entry.contentType,
  truncated: entry.log?.truncated ?? false,
  closed: entry.closed,
  cause: entry.cause,
  chainKey: entry.chainKey
})

const summaryOf = (entry: Entry): RoundSummary => ({
  ...headOf(entry),
  requestBytes: entry.request?.kept ?? 0,
  responseBytes: entry.log?.kept ?? 0
})

const shown = (entry: Entry): CapturedRound => {
  const { secret, secrets: others = [] } = entry.info
  const secrets = (secret === undefined ? others : [secret, ...others]).map(Redacted.value)
  return {
    ...headOf(entry),
    requestBody: redactText(entry.request?.text() ?? "", secrets),
    bytes: redactBytes(entry.log?.bytes() ?? new Uint8Array(0), secrets)
  }
}

/** True for rounds of one reply. Different upstreams may use the same session id, so the request counts too. */
const sameReply = (a: Entry, b: Entry): boolean => a.chainKey === b.chainKey && a.requestId === b.requestId

/** The rounds of a reply whose bytes are still kept. */
const toChain = (entries: ReadonlyArray<Entry>): CaptureChain | undefined => {
  const rounds = entries.filter((entry) => entry.log !== undefined).map(shown)
  return Arr.isReadonlyArrayNonEmpty(rounds) ? rounds : undefined
}

export class Captures extends Context.Service<Captures, {
  /** Makes the recorder of one completion. Returns `undefined` while captures are off and there is no `watch`. */
  readonly recorder: (
    origin: RoundOrigin,
    requestId: string,
    watch?: RoundsWatch | undefined
  ) => Recorder | undefined
  /** Rounds, newest first. */
  readonly list: Effect.Effect<ReadonlyArray<CapturedRound>>
  /** Rounds without their bodies, newest first. */
  readonly summaries: Effect.Effect<ReadonlyArray<RoundSummary>>
  /** The round with this id. */
  readonly round: (id: string) => Effect.Effect<CapturedRound | undefined>
  /** Removes all captures. */
  readonly clear: Effect.Effect<void>
  /** At most `limit` chains that contain every word of a text, ignoring case, newest first; all chains for an empty text. */
  readonly query: (text: string, limit: number) => Effect.Effect<ReadonlyArray<CaptureChain>>
  /** The newest chain with this key. */
  readonly chain: (key: string) => Effect.Effect<CaptureChain | undefined>
  /** The chain of the round with this id. */
  readonly chainOf: (id: string) => Effect.Effect<CaptureChain | undefined>
  /**
   * Keeps the rounds of a coming request until the scope ends, also after they have left the ring. The returned effect gives
   * the newest chain of the request: the attempt that made the reply.
   */
  readonly follow: (requestId: string) => Effect.Effect<Effect.Effect<CaptureChain | undefined>, never, Scope.Scope>
}>()("model-gateway/captures/Captures") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    const clock = yield* Clock.Clock
    const spares = new Spares()
    const settings = () => config.now().captures
    /** Oldest first. */
    const ring: Array<Entry> = []
    const followed = new Map<string, Array<Entry>>()
    let made = 0

    const drop = (entries: ReadonlyArray<Entry>) => {
      for (const entry of entries) {
        if (entry.followed) continue
        entry.request?.release()
        entry.request = undefined
        entry.log?.release()
        entry.log = undefined
      }
    }

    const trim = () => {
      const surplus = ring.length - settings().limit
      if (surplus > 0) drop(ring.splice(0, surplus))
    }

    const mostBytes: HoldLimit = {
      allow() {
        const { enabled, max_body_bytes } = settings()
        return enabled ? max_body_bytes : 0
      }
    }

    const capture = (
      info: RoundInfo,
      { identifier: account = "", upstream }: RoundOrigin,
      requestId: string,
      request: RecordedBody,
      reply: RecordedBody
    ): Entry => {
      const id = `cap_${(++made).toString(36).padStart(6, "0")}`
      const following = followed.get(requestId)
      const entry: Entry = {
        id,
        createdAt: clock.currentTimeMillisUnsafe(),
        upstream,
        account,
        requestId,
        // `request` keeps the beginning of the body; `info` must not keep all of it alive.
        info: { ...info, requestBody: "" },
        request: request.hold(mostBytes),
        chainKey: info.sessionId ?? id,
        followed: following !== undefined,
        log: reply.hold(mostBytes),
        status: 0,
        contentType: undefined,
        closed: false,
        cause: undefined
      }
      following?.push(entry)
      ring.push(entry)
      trim()
      return entry
    }

    const recorder = (
      { identifier, upstream }: RoundOrigin,
      requestId: string,
      watch: RoundsWatch | undefined
    ): Recorder | undefined => {
      if (!settings().enabled && watch === undefined) return undefined
      return {
        round(info) {
          const request = new RecordedBody(spares)
          const reply = new RecordedBody(spares)
          const origin = { identifier, upstream }
          const entry = settings().enabled ? capture(info, origin, requestId, request, reply) : undefined
          const watching = watch?.round({ captureId: entry?.id ?? "", account: identifier ?? "", info, request, reply })
          request.push(info.requestBody, monotonicMillis(clock))
          request.close()
          return {
            opened(status, contentType) {
              watching?.opened(status, contentType)
              if (entry === undefined) return
              entry.status = status
              entry.contentType = contentType
            },
            bytes(chunk) {
              reply.push(chunk, monotonicMillis(clock))
            },
            closed(cause) {
              reply.close()
              watching?.closed(cause)
              if (entry === undefined) return
              entry.closed = true
              entry.cause = cause
            }
          }
        }
      }
    }

    /** The chain of the newest entry that fits. */
    const find = (entries: ReadonlyArray<Entry>, fits: (entry: Entry) => boolean) => {
      const newest = entries.findLast(fits)
      return newest === undefined ? undefined : toChain(entries.filter((entry) => sameReply(entry, newest)))
    }

    return Captures.of({
      recorder,
      list: Effect.sync(() => {
        trim()
        return ring.toReversed().map(shown)
      }),
      summaries: Effect.sync(() => {
        trim()
        return ring.toReversed().map(summaryOf)
      }),
      round: (id) =>
        Effect.sync(() => {
          trim()
          const entry = ring.find((each) => each.id === id)
          return entry === undefined ? undefined : shown(entry)
        }),
      clear: Effect.sync(() => drop(ring.splice(0))),
      query: Effect.fnUntraced(function*(text, limit) {
        trim()
        const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "")
        const entries = ring.toReversed()
        const chains: Array<CaptureChain> = []
        for (const [index, entry] of entries.entries()) {
          if (chains.length >= limit) break
          if (entries.slice(0, index).some((newer) => sameReply(newer, entry))) continue
          // Searching a long body takes time, so other fibers run between the chains.
          if (index > 0) yield* Effect.yieldNow
          const chain = toChain(entries.filter((each) => sameReply(each, entry)).reverse())
          if (chain !== undefined && chainHolds(chain, words)) chains.push(chain)
        }
        return chains
      }),
      chain: (key) => Effect.sync(() => find(ring, (entry) => entry.chainKey === key)),
      chainOf: (id) => Effect.sync(() => find(ring, (entry) => entry.id === id)),
      follow: (requestId) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            const entries: Array<Entry> = []
            followed.set(requestId, entries)
            return Effect.sync(() => find(entries, () => true))
          }),
          () => Effect.sync(() => followed.delete(requestId))
        )
    })
  })

  static readonly layer: Layer.Layer<Captures, never, ConfigStore> = Layer.effect(Captures, Captures.make)
}
