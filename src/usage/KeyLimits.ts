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
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { type KeyRecord, modelsNamed } from "../config/keyRecords.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { isKeyId } from "../domain/identity.ts"
import type { Model } from "../domain/models.ts"
import { Store } from "../store/Store.ts"
import { Admission, type Admitted, type KeyState, passTo, remainingOf, stateAt } from "./Admission.ts"
import {
  type AdmissionRequest,
  Asking,
  countsTokens,
  type KeyUsage,
  maxInFlight,
  noLimits,
  refusalOf,
  Refused
} from "./keyRules.ts"
import { makeSharedLimits } from "./sharedLimits.ts"
import { UsageStore } from "./UsageStore.ts"

export {
  type AdmissionRequest,
  Asking,
  type KeyStanding,
  type KeyUsage,
  Refused,
  refuseKey,
  standingOf
} from "./keyRules.ts"

/** A clock that steps back by up to this is taken to stand still; by more, the windows are those of its new time. */
const clockSlack = 60_000

/** What keys may ask for, which is the same wherever it is counted. */
const rightsOf = (config: ConfigStore["Service"]) => {
  const allowed = new WeakMap<KeyRecord, readonly [GatewayConfig["model_table"], unknown, ReadonlySet<string>]>()

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

  return {
    countsTokens: (key: string) => countsTokens(config.unsafeCurrent().key_records.get(key)?.limits ?? noLimits),
    modelsOf,
    refuseModel: (key: string, model: Model) =>
      modelsOf(key)?.has(model.id) === false
        ? gatewayError("model_not_allowed", `This API key may not use the model "${model.id}"`, { param: "model" })
        : undefined
  }
}

type Ask = (request: AdmissionRequest) => Admitted | Refused | Asking

/** Admits for the length of a scope. */
const scoped = (ask: Ask) => (request: AdmissionRequest): Effect.Effect<Admitted, GatewayError, Scope.Scope> =>
  Effect.flatMap(
    Effect.acquireRelease(
      Effect.suspend(() => {
        const asked = ask(request)
        return asked instanceof Refused ? Effect.fail(asked.error) : Effect.succeed(asked)
      }),
      (asked) => Effect.sync(() => (asked instanceof Asking ? asked.admission : asked).settle(false, 0))
    ),
    (asked) =>
      asked instanceof Asking
        ? Effect.flatMap(asked.answer, (refused) =>
          refused === undefined ? Effect.succeed(asked.admission) : Effect.fail(refused.error))
        : Effect.succeed(asked)
  )

/** The limits of keys. */
export class KeyLimits extends Context.Service<KeyLimits, {
  /**
   * Admits a request or refuses it, at once; or asks other nodes first. What is admitted must be settled once, whatever
   * becomes of the request.
   */
  readonly admitUnsafe: (request: AdmissionRequest) => Admitted | Refused | Asking
  /** The same for the length of a scope: what is not settled when it ends is given back whole. */
  readonly admit: (request: AdmissionRequest) => Effect.Effect<Admitted, GatewayError, Scope.Scope>
  /** Whether a key has a limit of tokens, so that prompts are estimated for its admission. */
  readonly countsTokens: (key: string) => boolean
  /** The ids of the models that a key may use; `undefined` for every one. */
  readonly modelsOf: (key: string) => ReadonlySet<string> | undefined
  /** The error of a request for a model that its key may not use. */
  readonly refuseModel: (key: string, model: Model) => GatewayError | undefined
  /** What keys have under way and have used, in their order. */
  readonly usageOf: (keys: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<KeyUsage>, GatewayError>
}>()("model-gateway/usage/KeyLimits") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    const store = yield* UsageStore
    const clock = yield* Clock.Clock
    const states = new Map<string, KeyState>()
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

    const admitUnsafe = ({ key, promptTokens }: AdmissionRequest): Admission | Refused => {
      if (!isKeyId(key)) return new Admission(undefined, noLimits, clock.currentTimeMillisUnsafe(), 0)
      const current = config.unsafeCurrent()
      const record = current.key_records.get(key)
      const limits = record?.limits ?? noLimits
      const [state, now] = find(key)
      const most = maxInFlight(current, record)
      const isFull = most !== undefined && state.inFlight >= most
      const tokens = !isFull && countsTokens(limits) ? promptTokens() : 0
      const refusal = isFull || limits.length > 0 ? refusalOf({ state, limits, most, tokens, now }) : undefined
      if (refusal === undefined) return new Admission(state, limits, now, tokens)
      return new Refused(refusal, limits.length === 0 ? undefined : remainingOf(state, limits, now))
    }

    return KeyLimits.of({
      ...rightsOf(config),
      admitUnsafe,
      admit: scoped(admitUnsafe),
      usageOf: (ids) =>
        Effect.sync(() => {
          const current = config.unsafeCurrent()
          return ids.map((id) => {
            const [{ inFlight, lastUsedAt, windows }] = find(id)
            return { inFlight, lastUsedAt, windows, maxInFlight: maxInFlight(current, current.key_records.get(id)) }
          })
        })
    })
  })

  /** The limits as the nodes of a store count them together. */
  static readonly makeShared = Effect.gen(function*() {
    const config = yield* ConfigStore
    const store = yield* Store
    const clock = yield* Clock.Clock
    const fork = yield* FiberSet.makeRuntime<never, void, never>()
    const { admitUnsafe, tell, usageOf } = makeSharedLimits(
      store,
      config,
      () => clock.currentTimeMillisUnsafe(),
      fork
    )
    yield* Effect.addFinalizer(() => tell)
    return KeyLimits.of({ ...rightsOf(config), admitUnsafe, admit: scoped(admitUnsafe), usageOf })
  })

  /** Counted over all nodes of a store. */
  static readonly layerShared: Layer.Layer<KeyLimits, never, ConfigStore | Store> = Layer.effect(
    KeyLimits,
    KeyLimits.makeShared
  )

  static readonly layer: Layer.Layer<KeyLimits, never, ConfigStore | UsageStore> = Layer.effect(
    KeyLimits,
    KeyLimits.make
  )
}
