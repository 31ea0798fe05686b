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
import { ConfigStore } from "../config/ConfigStore.ts"
import type { Recorder, RoundRecorder } from "../upstream/Upstream.ts"
import { type ByteLog, makeByteLogs } from "./byteLog.ts"
import type { CaptureChain, CapturedRound, RoundSummary } from "./CapturedRound.ts"
import { chainHolds } from "./chainText.ts"

/** What a driver tells of a round before it begins. */
type RoundInfo = Parameters<Recorder["round"]>[0]

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
  requestBody: string
  /** `undefined` once the round has left the ring: nobody can see it any more. */
  log: ByteLog | undefined
  status: number
  contentType: string | undefined
  truncated: boolean
  closed: boolean
}

/** Shorter secrets are no credentials but words, such as the `none` of a server that asks for no key. */
const shortestSecret = 8

/** Overwrites every occurrence of the secret in place, so that all other bytes stay where they are. */
const blotBytes = (bytes: Uint8Array, secret: string): Uint8Array => {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const wanted = Buffer.from(secret)
  for (let at = view.indexOf(wanted); at !== -1; at = view.indexOf(wanted, at + wanted.length)) {
    view.fill("*", at, at + wanted.length)
  }
  return bytes
}

const blotText = (text: string, secret: string): string => text.replaceAll(secret, "*".repeat(secret.length))

const plainUrl = (url: string): string => {
  if (!URL.canParse(url)) return url
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
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
  truncated: entry.truncated,
  closed: entry.closed,
  chainKey: entry.chainKey
})

const summaryOf = (entry: Entry): RoundSummary => ({
  ...headOf(entry),
  requestBytes: Buffer.byteLength(entry.requestBody),
  responseBytes: entry.log?.size() ?? 0
})

const shown = (entry: Entry): CapturedRound => {
  const token = entry.info.secret === undefined ? "" : Redacted.value(entry.info.secret)
  const secret = token.length < shortestSecret ? undefined : token
  const bytes = entry.log?.bytes() ?? new Uint8Array(0)
  return {
    ...headOf(entry),
    requestBody: secret === undefined ? entry.requestBody : blotText(entry.requestBody, secret),
    bytes: secret === undefined ? bytes : blotBytes(bytes, secret)
  }
}

/** Cuts a text to a number of UTF-8 bytes at most, without splitting a character. What is cut off is not kept alive. */
const cutText = (text: string, most: number): string => {
  if (text.length * 3 <= most || Buffer.byteLength(text) <= most) return text
  const bytes = Buffer.allocUnsafe(most)
  return bytes.toString("utf8", 0, new TextEncoder().encodeInto(text, bytes).written)
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
   * that it serves. `undefined` while captures are off.
   */
  readonly recorder: (account: string | undefined, requestId: string) => Recorder | undefined
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
    const makeLog = makeByteLogs()
    const settings = () => config.unsafeCurrent().captures
    /** Oldest first. */
    const ring: Array<Entry> = []
    const followed = new Map<string, Array<Entry>>()
    let made = 0

    const drop = (entries: ReadonlyArray<Entry>) => {
      for (const entry of entries) {
        if (entry.followed) continue
        entry.log?.release()
        entry.log = undefined
        entry.requestBody = ""
      }
    }

    const trim = () => {
      const surplus = ring.length - settings().limit
      if (surplus > 0) drop(ring.splice(0, surplus))
    }

    const record = (entry: Entry): RoundRecorder => ({
      opened(status, contentType) {
        entry.status = status
        entry.contentType = contentType
      },
      bytes(chunk) {
        if (entry.truncated || entry.log === undefined) return
        const { enabled, max_body_bytes } = settings()
        entry.truncated = !entry.log.push(chunk, enabled ? max_body_bytes : 0)
      },
      closed() {
        entry.closed = true
      }
    })

    const recorder = (account: string | undefined, requestId: string): Recorder | undefined => {
      if (!settings().enabled) return undefined
      return {
        round(info) {
          const id = `cap_${(++made).toString(36).padStart(6, "0")}`
          const following = followed.get(requestId)
          const entry: Entry = {
            id,
            createdAt: clock.currentTimeMillisUnsafe(),
            account: account ?? "",
            requestId,
            // The body is kept cut; the info must not hold the whole of it.
            info: { ...info, requestBody: "" },
            requestBody: cutText(info.requestBody, settings().max_body_bytes),
            chainKey: info.sessionId ?? id,
            followed: following !== undefined,
            log: makeLog(),
            status: 0,
            contentType: undefined,
            truncated: false,
            closed: false
          }
          following?.push(entry)
          ring.push(entry)
          trim()
          return record(entry)
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
