/**
 * What keys may do, enforced: which models, how much at once and in each window. It knows no HTTP.
 *
 * Admission is one synchronous step, so that nothing comes between the look and the reservation. Windows have no timers: they
 * are replaced when a request finds them over. What a key used before this process, or before it was looked at, comes from
 * the store.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { type KeyLimit, type KeyRecord, modelsNamed } from "../config/keyRecords.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { isKeyId } from "../domain/identity.ts"
import type { Model } from "../domain/models.ts"
import { formatTimestamp } from "../domain/timestamp.ts"
import { Admission, exceededBy, type KeyState, passTo, remainingOf, stateAt, type WindowCount } from "./Admission.ts"
import { exceededMessage, type RateLimits } from "./rateLimits.ts"
import { UsageStore } from "./UsageStore.ts"

/** A request that asks to be admitted. */
export interface AdmissionRequest {
  /** The id of its key; what is no key id is not limited. */
  readonly key: string
  /** Estimates the tokens of its prompt; only called where the key has a limit of tokens. */
  readonly promptTokens: () => number
}

/** Why a request is not admitted. */
export class Refused {
  readonly error: GatewayError
  /** What is left of the key's limits; `undefined` where it has none. */
  readonly rateLimits: RateLimits | undefined
  constructor(error: GatewayError, rateLimits: RateLimits | undefined) {
    this.error = error
    this.rateLimits = rateLimits
  }
}

/** What a key has under way and has used, for whoever looks. */
export interface KeyUsage {
  readonly inFlight: number
  /** `undefined` for no limit. */
  readonly maxInFlight: number | undefined
  /** Milliseconds of Unix time. */
  readonly lastUsedAt: number | undefined
  /** One for each of `windowNames`. */
  readonly windows: ReadonlyArray<Readonly<WindowCount>>
}

/** Whether a key may be used at all. */
export type KeyStanding = "active" | "disabled" | "expired"

/** Whether a key with this record may be used at `now`, in milliseconds. */
export const standingOf = (record: KeyRecord | undefined, now: number): KeyStanding =>
  record === undefined
    ? "active"
    : record.disabled
    ? "disabled"
    : record.expires_at !== undefined && record.expires_at <= now
    ? "expired"
    : "active"

/** What a caller with a key that may not be used is told; `undefined` where it may. */
export const refuseKey = (record: KeyRecord | undefined, now: number): GatewayError | undefined => {
  const standing = standingOf(record, now)
  if (standing === "active") return undefined
  const message = standing === "disabled"
    ? "This API key is disabled"
    : `This API key expired at ${formatTimestamp(record?.expires_at ?? now)}`
  return gatewayError("authentication_failed", message)
}

/** A clock that steps back by up to this is taken to stand still; by more, the windows are those of its new time. */
const clockSlack = 60_000

/** A `Retry-After` beyond this is not waited for: clients would try at once, or sleep that long. */
const longestRetry = 60

const noLimits: ReadonlyArray<KeyLimit> = []

const countsTokens = (limits: ReadonlyArray<KeyLimit>): boolean => limits.some(({ tokens }) => tokens !== undefined)

/** The limits of keys. */
export class KeyLimits extends Context.Service<KeyLimits, {
  /** Admits a request or refuses it, at once. What is admitted must be settled once, whatever becomes of the request. */
  readonly admitUnsafe: (request: AdmissionRequest) => Admission | Refused
  /** The same for the length of a scope: what is not settled when it ends is given back whole. */
  readonly admit: (request: AdmissionRequest) => Effect.Effect<Admission, GatewayError, Scope.Scope>
  /** Whether a key has a limit of tokens, so that prompts are estimated for its admission. */
  readonly countsTokens: (key: string) => boolean
  /** The ids of the models that a key may use; `undefined` for every one. */
  readonly modelsOf: (key: string) => ReadonlySet<string> | undefined
  /** The error of a request for a model that its key may not use. */
  readonly refuseModel: (key: string, model: Model) => GatewayError | undefined
  /** What a key has under way and has used. */
  readonly usageOf: (key: string) => KeyUsage
}>()("model-gateway/usage/KeyLimits") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    const store = yield* UsageStore
    const clock = yield* Clock.Clock
    const states = new Map<string, KeyState>()
    const allowed = new WeakMap<KeyRecord, readonly [GatewayConfig["model_table"], unknown, ReadonlySet<string>]>()
    let keys = config.unsafeCurrent().keys

    const load = (key: string, now: number): KeyState => {
      const counters = Effect.runSyncExit(store.counters(key, now))
      if (Exit.isFailure(counters)) throw new Error("the usage store of a process must answer at once")
      const state = stateAt(now, counters.value)
      states.set(key, state)
      return state
    }

    /** The state of a key, and the time that it is of. */
    const find = (key: string): readonly [KeyState, number] => {
      const now = clock.currentTimeMillisUnsafe()
      const current = config.unsafeCurrent().keys
      if (current !== keys) {
        // What is kept here is only what the store knows too: a key that comes back is looked up again.
        keys = current
        for (const [id, state] of states) if (state.inFlight === 0) states.delete(id)
      }
      const state = states.get(key)
      if (state === undefined) return [load(key, now), now]
      const startedAt = state.windows[0]!.startedAt
      if (now >= startedAt) {
        passTo(state, now)
        return [state, now]
      }
      if (now >= startedAt - clockSlack) return [state, startedAt]
      const { windows } = load(key, now)
      states.set(key, state)
      state.windows = windows
      return [state, now]
    }

    const maxInFlight = ({ runtime }: GatewayConfig, record: KeyRecord | undefined): number | undefined =>
      record?.max_inflight ?? runtime.key_max_inflight

    const admitUnsafe = ({ key, promptTokens }: AdmissionRequest): Admission | Refused => {
      if (!isKeyId(key)) return new Admission(undefined, noLimits, clock.currentTimeMillisUnsafe(), 0)
      const current = config.unsafeCurrent()
      const record = current.key_records.get(key)
      const limits = record?.limits ?? noLimits
      const [state, now] = find(key)
      const left = () => limits.length === 0 ? undefined : remainingOf(state, limits, now)
      const most = maxInFlight(current, record)
      if (most !== undefined && state.inFlight >= most) {
        const message = `This API key has as many requests under way as it may have (${most})`
        return new Refused(gatewayError("rate_limit_exceeded", message, { retryAfter: 1 }), left())
      }
      const tokens = countsTokens(limits) ? promptTokens() : 0
      const exceeded = limits.length === 0 ? [] : exceededBy(state, limits, tokens)
      if (exceeded.length === 0) return new Admission(state, limits, now, tokens)
      const tooSmall = limits.find((limit) => limit.tokens !== undefined && tokens > limit.tokens)
      if (tooSmall !== undefined) {
        const message =
          `The prompt has about ${tokens} tokens; this API key is limited to ${tooSmall.tokens} per ${tooSmall.window}`
        return new Refused(gatewayError("rate_limit_exceeded", message, { retry: false }), left())
      }
      const retryAfter = Math.ceil((Math.max(...exceeded.map(({ resetsAt }) => resetsAt)) - now) / 1000)
      const retry = retryAfter > longestRetry ? { retryAfter, retry: false } : { retryAfter }
      return new Refused(gatewayError("rate_limit_exceeded", exceededMessage(exceeded), retry), left())
    }

    const modelsOf = (key: string): ReadonlySet<string> | undefined => {
      const current = config.unsafeCurrent()
      const record = current.key_records.get(key)
      if (record?.models === undefined) return undefined
      const known = allowed.get(record)
      if (known !== undefined && known[0] === current.model_table && known[1] === current.msgcompat_mapping) {
        return known[2]
      }
      const ids = new Set(record.models.flatMap((name) => modelsNamed(current, name)))
      allowed.set(record, [current.model_table, current.msgcompat_mapping, ids])
      return ids
    }

    return KeyLimits.of({
      admitUnsafe,
      admit: (request) =>
        Effect.acquireRelease(
          Effect.suspend(() => {
            const admitted = admitUnsafe(request)
            return admitted instanceof Refused ? Effect.fail(admitted.error) : Effect.succeed(admitted)
          }),
          (admission) => Effect.sync(() => admission.settle(false, 0))
        ),
      countsTokens: (key) => countsTokens(config.unsafeCurrent().key_records.get(key)?.limits ?? noLimits),
      modelsOf,
      refuseModel: (key, model) =>
        modelsOf(key)?.has(model.id) === false
          ? gatewayError("model_not_allowed", `This API key may not use the model "${model.id}"`, { param: "model" })
          : undefined,
      usageOf: (key) => {
        const current = config.unsafeCurrent()
        const [{ inFlight, lastUsedAt, windows }] = find(key)
        return { inFlight, lastUsedAt, windows, maxInFlight: maxInFlight(current, current.key_records.get(key)) }
      }
    })
  })

  static readonly layer: Layer.Layer<KeyLimits, never, ConfigStore | UsageStore> = Layer.effect(
    KeyLimits,
    KeyLimits.make
  )
}
