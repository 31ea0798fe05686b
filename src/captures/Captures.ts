/**
 * Captures: a bounded ring of what went to and came from the upstream, a round each, in chains by upstream session.
 *
 * Bytes are kept exactly as they came and are not copied; credentials are never handed to a recorder. While captures are off
 * there is no recorder, and nothing is done for them.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { Recorder, RoundRecorder } from "../upstream/Upstream.ts"

/** One round with the upstream. */
export interface Capture {
  readonly id: string
  /** Unix seconds. */
  readonly created_at: number
  /** `completion` or `continue`. */
  readonly label: string
  readonly url: string
  /** The account's identifier; empty for a caller's own token. */
  readonly account_id: string
  /** HTTP status of the reply; 0 while there is none. */
  readonly status_code: number
  readonly request_body: string
  /** The reply's bytes as text; `rawBody` has them exactly. */
  readonly response_body: string
  /** The reply was longer than `max_body_bytes`; what is kept is its beginning. */
  readonly response_truncated: boolean
  /** The upstream session, which all rounds of one reply share. */
  readonly chain_key: string
}

/** The rounds of one reply, first to last. */
export interface CaptureChain {
  readonly chain_key: string
  readonly capture_ids: ReadonlyArray<string>
  readonly round_count: number
  readonly initial_label: string
  readonly request_preview: string
  readonly response_preview: string
  /** The upstream bytes of all rounds, one after another, exactly. */
  readonly bytes: Uint8Array
  readonly captures: ReadonlyArray<Capture>
}

/** A round that is being recorded. */
interface Entry {
  readonly id: string
  readonly createdAt: number
  readonly label: string
  readonly url: string
  readonly account: string
  readonly requestId: string
  readonly requestBody: string
  readonly chainKey: string
  readonly chunks: Array<Uint8Array>
  status: number
  size: number
  truncated: boolean
}

/** Characters of a preview. */
const previewLength = 240

const preview = (text: string): string => text.length <= previewLength ? text : `${text.slice(0, previewLength)}…`

const joined = (chunks: ReadonlyArray<Uint8Array>): Uint8Array => {
  const whole = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}

const shown = (entry: Entry): Capture => ({
  id: entry.id,
  created_at: Math.floor(entry.createdAt / 1000),
  label: entry.label,
  url: entry.url,
  account_id: entry.account,
  status_code: entry.status,
  request_body: entry.requestBody,
  response_body: new TextDecoder().decode(joined(entry.chunks)),
  response_truncated: entry.truncated,
  chain_key: entry.chainKey
})

const chainOf = (entries: ReadonlyArray<Entry>): CaptureChain => {
  const captures = entries.map(shown)
  const first = captures[0]!
  return {
    chain_key: first.chain_key,
    capture_ids: captures.map((capture) => capture.id),
    round_count: captures.length,
    initial_label: first.label,
    request_preview: preview(first.request_body),
    response_preview: preview(first.response_body),
    bytes: joined(entries.flatMap((entry) => entry.chunks)),
    captures
  }
}

/** Cuts a text to a number of UTF-8 bytes at most, without splitting a character. */
const cutText = (text: string, most: number): string => {
  if (text.length * 3 <= most) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(most))
  return text.slice(0, read)
}

export class Captures extends Context.Service<Captures, {
  /**
   * A recorder for one completion: the account's identifier (`undefined` for a caller's own token) and the id of the request
   * that it serves. `undefined` while captures are off.
   */
  readonly recorder: (account: string | undefined, requestId: string) => Recorder | undefined
  /** Captures, newest first. */
  readonly list: Effect.Effect<ReadonlyArray<Capture>>
  /** Forgets all captures. */
  readonly clear: Effect.Effect<void>
  /** Chains whose request or reply holds the text (any case; empty for all), newest first, `limit` at most. */
  readonly query: (text: string, limit: number) => Effect.Effect<ReadonlyArray<CaptureChain>>
  /** The chain with this key. */
  readonly chain: (key: string) => Effect.Effect<CaptureChain | undefined>
  /** The one round with this id. */
  readonly capture: (id: string) => Effect.Effect<CaptureChain | undefined>
  /** The rounds that served a request. */
  readonly ofRequest: (requestId: string) => Effect.Effect<CaptureChain | undefined>
}>()("model-gateway/captures/Captures") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    const clock = yield* Clock.Clock
    /** Oldest first. */
    let ring: Array<Entry> = []
    let made = 0

    const trim = () => {
      const { limit } = config.unsafeCurrent().captures
      if (ring.length > limit) ring = ring.slice(ring.length - limit)
    }

    const record = (entry: Entry, most: number): RoundRecorder => ({
      opened(status) {
        entry.status = status
      },
      bytes(chunk) {
        if (entry.truncated) return
        const left = most - entry.size
        if (chunk.length <= left) {
          entry.chunks.push(chunk)
          entry.size += chunk.length
          return
        }
        // A copy, so that the tail does not keep the rest of its buffer alive.
        entry.chunks.push(chunk.slice(0, left))
        entry.size = most
        entry.truncated = true
      },
      closed() {}
    })

    const recorder = (account: string | undefined, requestId: string): Recorder | undefined => {
      const { enabled, max_body_bytes } = config.unsafeCurrent().captures
      if (!enabled) return undefined
      return {
        round(info) {
          const id = `cap_${(++made).toString(36).padStart(6, "0")}`
          const entry: Entry = {
            id,
            createdAt: clock.currentTimeMillisUnsafe(),
            label: info.label,
            url: info.url,
            account: account ?? "",
            requestId,
            requestBody: cutText(info.requestBody, max_body_bytes),
            chainKey: info.sessionId ?? id,
            chunks: [],
            status: 0,
            size: 0,
            truncated: false
          }
          ring.push(entry)
          trim()
          return record(entry, max_body_bytes)
        }
      }
    }

    /** Chains of the entries that fit, the one with the newest round first. */
    const chains = (fits: (entry: Entry) => boolean): ReadonlyArray<ReadonlyArray<Entry>> => {
      trim()
      const groups = new Map<string, Array<Entry>>()
      for (const entry of ring.toReversed()) {
        const group = groups.get(entry.chainKey)
        if (group === undefined) groups.set(entry.chainKey, [entry])
        else group.unshift(entry)
      }
      return [...groups.values()].filter((group) => group.some(fits))
    }
    const first = (fits: (entry: Entry) => boolean) =>
      Effect.sync(() => {
        const found = chains(fits)[0]
        return found === undefined ? undefined : chainOf(found)
      })

    return Captures.of({
      recorder,
      list: Effect.sync(() => {
        trim()
        return ring.toReversed().map(shown)
      }),
      clear: Effect.sync(() => {
        ring = []
      }),
      query: (text, limit) =>
        Effect.sync(() => {
          const wanted = text.trim().toLowerCase()
          const holds = (entry: Entry) =>
            wanted === "" || entry.requestBody.toLowerCase().includes(wanted) ||
            shown(entry).response_body.toLowerCase().includes(wanted)
          return chains(holds).slice(0, limit).map(chainOf)
        }),
      chain: (key) => first((entry) => entry.chainKey === key),
      capture: (id) =>
        Effect.sync(() => {
          const entry = ring.find((each) => each.id === id)
          return entry === undefined ? undefined : chainOf([entry])
        }),
      ofRequest: (requestId) => first((entry) => entry.requestId === requestId)
    })
  })

  static readonly layer: Layer.Layer<Captures, never, ConfigStore> = Layer.effect(Captures, Captures.make)
}
