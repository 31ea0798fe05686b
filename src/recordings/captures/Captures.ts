/**
 * Captures: a bounded ring of what went to and came from the upstream, a round each, in chains by upstream session.
 *
 * Bytes are kept exactly as they came; only a credential that the upstream repeats is blotted out. While captures are off
 * there is no recorder, and nothing is done for them.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { FailureCause } from "../../domain/FailureCause.ts"
import { monotonicMillis } from "../../domain/time.ts"
import type { Recorder, RoundRecorder } from "../../upstream/Upstream.ts"
import { blotBytes, blotText, plainUrl } from "./blot.ts"
import { Spares } from "./byteLog.ts"
import type { CaptureChain, CapturedRound, RoundSummary } from "./CapturedRound.ts"
import { chainHolds } from "./chainText.ts"
import { type Hold, type HoldLimit, RoundBytes } from "./RoundBytes.ts"

/** What a driver tells of a round before it begins. */
export type RoundInfo = Parameters<Recorder["round"]>[0]

/** A round that is being recorded. */
interface Entry {
  readonly id: string
  readonly createdAt: number
  readonly account: string
  readonly requestId: string
  readonly info: RoundInfo
  readonly chainKey: string
  /** Whoever asked for this request's rounds keeps them, whatever becomes of the ring. */
  readonly followed: boolean
  /** `undefined` once the round has left the ring, as is `log`. */
  request: Hold | undefined
  log: Hold | undefined
  status: number
  contentType: string | undefined
  closed: boolean
  cause: FailureCause | undefined
}

/** Watches the rounds of one request, and may hold their bytes. Must be cheap and must not throw. */
export interface RoundsWatch {
  /** A round begins. `captureId` is empty where it is not captured. */
  readonly round: (round: {
    readonly captureId: string
    readonly account: string
    readonly info: RoundInfo
    /** The body that goes to the upstream. */
    readonly request: RoundBytes
    /** The reply that comes back. */
    readonly reply: RoundBytes
  }) => Pick<RoundRecorder, "opened" | "closed">
}

/** What is shown of a round beside its bodies. */
const headOf = (entry: Entry) => ({
  id: entry.id,
  requestId: entry.requestId,
  createdAt: entry.createdAt,
  label: entry.info.label,
  protocol: entry.info.protocol,
  url: plainUrl(entry.info.url),
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
  const token = entry.info.secret === undefined ? "" : Redacted.value(entry.info.secret)
  return {
    ...headOf(entry),
    requestBody: blotText(entry.request?.text() ?? "", [token]),
    bytes: blotBytes(entry.log?.bytes() ?? new Uint8Array(0), [token])
  }
}

/** Entries of one reply; sessions may go by the same name once the upstream was changed. */
const sameReply = (a: Entry, b: Entry): boolean => a.chainKey === b.chainKey && a.requestId === b.requestId

/** What is still kept of a reply. */
const toChain = (entries: ReadonlyArray<Entry>): CaptureChain | undefined => {
  const rounds = entries.filter((entry) => entry.log !== undefined).map(shown)
  return Arr.isReadonlyArrayNonEmpty(rounds) ? rounds : undefined
}

export class Captures extends Context.Service<Captures, {
  /**
   * A recorder for one completion: the account's identifier (`undefined` for a caller's own token) and the id of the request
   * that it serves. `undefined` while captures are off and nobody watches.
   */
  readonly recorder: (
    account: string | undefined,
    requestId: string,
    watch?: RoundsWatch | undefined
  ) => Recorder | undefined
  /** Rounds, newest first. */
  readonly list: Effect.Effect<ReadonlyArray<CapturedRound>>
  /** The same without bodies. */
  readonly summaries: Effect.Effect<ReadonlyArray<RoundSummary>>
  /** The round with this id. */
  readonly round: (id: string) => Effect.Effect<CapturedRound | undefined>
  /** Forgets all captures. */
  readonly clear: Effect.Effect<void>
  /** Chains that hold every word of a text in any case (all chains for none), newest first, `limit` at most. */
  readonly query: (text: string, limit: number) => Effect.Effect<ReadonlyArray<CaptureChain>>
  /** The newest chain with this key. */
  readonly chain: (key: string) => Effect.Effect<CaptureChain | undefined>
  /** The chain that the round with this id belongs to. */
  readonly chainOf: (id: string) => Effect.Effect<CaptureChain | undefined>
  /**
   * Keeps the rounds of a request that is about to be made, however much else is captured meanwhile, until the scope ends.
   * What comes back gives its newest chain: that of the attempt which made the reply.
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
      account: string,
      requestId: string,
      request: RoundBytes,
      reply: RoundBytes
    ): Entry => {
      const id = `cap_${(++made).toString(36).padStart(6, "0")}`
      const following = followed.get(requestId)
      const entry: Entry = {
        id,
        createdAt: clock.currentTimeMillisUnsafe(),
        account,
        requestId,
        // `request` has the body, as far as it is kept; the info must not hold the whole of it.
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
      account = "",
      requestId: string,
      watch: RoundsWatch | undefined
    ): Recorder | undefined => {
      if (!settings().enabled && watch === undefined) return undefined
      return {
        round(info) {
          const request = new RoundBytes(spares)
          const reply = new RoundBytes(spares)
          const entry = settings().enabled ? capture(info, account, requestId, request, reply) : undefined
          const watching = watch?.round({ captureId: entry?.id ?? "", account, info, request, reply })
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

    /** The newest entry that fits, with all of its reply. */
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
          // Bodies may be long, and are read as a whole: others run between them.
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
