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
import type * as Scope from "effect/Scope"
import { ConfigStore } from "../config/ConfigStore.ts"
import { monotonicMillis } from "../domain/time.ts"
import type { Recorder } from "../upstream/Upstream.ts"
import type { CaptureChain, CapturedRound, RoundSummary } from "./CapturedRound.ts"
import { chainHolds } from "./capturePreview.ts"
import { type HoldLimit, Spares } from "./RecordedBytes.ts"
import { plainUrl, redactBytes, redactText } from "./redactRound.ts"
import { type KeptRound, releaseRound, Round, type RoundOrigin } from "./Round.ts"

/** A round in the ring. */
interface Entry {
  readonly id: string
  readonly createdAt: number
  readonly requestId: string
  readonly chainKey: string
  /** A follower keeps the rounds of this request after they have left the ring. */
  readonly followed: boolean
  readonly kept: KeptRound
  /** False after the round has left the ring. */
  isKept: boolean
}

/** A request that keeps rounds. Must be cheap and must not throw. */
export interface RoundsKeeper {
  /** Called when a round starts. `captureId` is empty while captures are off. */
  readonly keepRound: (round: Round, captureId: string) => void
}

/** A round without its bodies. */
const headOf = ({ chainKey, createdAt, id, kept: { reply, round }, requestId }: Entry) => ({
  id,
  requestId,
  createdAt,
  label: round.label,
  protocol: round.protocol,
  url: plainUrl(round.url),
  upstream: round.upstream,
  account: round.account,
  status: round.status,
  contentType: round.contentType,
  truncated: reply.truncated,
  closed: round.isOver,
  cause: round.cause,
  chainKey
})

const summaryOf = (entry: Entry): RoundSummary => ({
  ...headOf(entry),
  requestBytes: entry.kept.request.kept,
  responseBytes: entry.kept.reply.kept
})

const shown = (entry: Entry): CapturedRound => {
  const { reply, request, round: { secrets } } = entry.kept
  return {
    ...headOf(entry),
    requestBody: redactText(request.text(), secrets),
    bytes: redactBytes(reply.bytes(), secrets)
  }
}

/** True for rounds of one reply. Different upstreams may use the same session id, so the request counts too. */
const sameReply = (a: Entry, b: Entry): boolean => a.chainKey === b.chainKey && a.requestId === b.requestId

/** The rounds of a reply whose bytes are still kept. */
const toChain = (entries: ReadonlyArray<Entry>): CaptureChain | undefined => {
  const rounds = entries.filter(({ isKept }) => isKept).map(shown)
  return Arr.isReadonlyArrayNonEmpty(rounds) ? rounds : undefined
}

export class Captures extends Context.Service<Captures, {
  /** Makes the recorder of one completion, for the ring and for a `keeper`. Returns `undefined` while captures are off and it lacks a keeper. */
  readonly recorder: (
    origin: RoundOrigin,
    requestId: string,
    keeper: RoundsKeeper | undefined
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
        entry.isKept = false
        releaseRound(entry.kept)
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
      },
      complete() {}
    }

    /** Puts a round into the ring, and returns its id there. */
    const capture = (round: Round, requestId: string): string => {
      const id = `cap_${(++made).toString(36).padStart(6, "0")}`
      const following = followed.get(requestId)
      const entry: Entry = {
        id,
        createdAt: clock.currentTimeMillisUnsafe(),
        requestId,
        chainKey: round.sessionId ?? id,
        followed: following !== undefined,
        kept: round.keep(mostBytes, mostBytes),
        isKept: true
      }
      following?.push(entry)
      ring.push(entry)
      trim()
      return id
    }

    const now = () => monotonicMillis(clock)

    const recorder = (
      origin: RoundOrigin,
      requestId: string,
      keeper: RoundsKeeper | undefined
    ): Recorder | undefined => {
      if (!settings().enabled && keeper === undefined) return undefined
      return {
        round(info) {
          const round = new Round(info, origin, spares, now)
          const captureId = settings().enabled ? capture(round, requestId) : ""
          keeper?.keepRound(round, captureId)
          round.sends(info.requestBody)
          return round
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
