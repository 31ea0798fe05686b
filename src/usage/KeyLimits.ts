/**
 * Enforces the limits of keys: models, concurrent requests, and requests, tokens and cost in each window. Independent of HTTP.
 *
 * The check of a key's state and the reservation are one synchronous step. Windows have no timers: a request that finds a
 * window over replaces it. What a key used before its state was first loaded comes from the usage store, which may be slow.
 */
import * as Cache from "effect/Cache"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { Store } from "../cluster/store/Store.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { KeyRecord } from "../config/keyRecords.ts"
import { CurrentNotices } from "../config/Notices.ts"
import type { Pricing } from "../config/prices.ts"
import { type AllowedRoutes, allowedRoutes, isAllowed } from "../domain/allowedRoutes.ts"
import { GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { isKeyId } from "../domain/identity.ts"
import type { Route } from "../domain/routes.ts"
import {
  type Admitted,
  admittedAt,
  advanceTo,
  type CountedState,
  moveTo,
  notCounted,
  remainingOf,
  Reservation,
  type Reserved,
  reserveWithin,
  stateAt
} from "./Admission.ts"
import { BudgetNotices, ownerOfKey } from "./budgetNotices.ts"
import {
  type AdmissionRequest,
  countsTokens,
  firstStage,
  type KeyUsage,
  maxInFlight,
  nextStage,
  noLimits,
  noShare,
  refusalOf,
  refuseChoosing,
  Refused,
  refuseUnpriced,
  type Stage
} from "./keyRules.ts"
import { UsageStore } from "./UsageStore.ts"

export { type AdmissionRequest, keyStatusOf, type KeyUsage, Refused, refuseKey } from "./keyRules.ts"

/** A clock that steps back by up to this counts as standing still; after a larger step the windows are loaded again. */
const clockSlack = 60_000

/** Keys that are loaded together; beyond this each request loads its key itself. */
const maxLookUps = 10_000

const allowed = new WeakMap<KeyRecord, readonly [GatewayConfig["route_table"], AllowedRoutes]>()

/** What the `models` of a key allow by a configuration, which is read once for both; `undefined` for all models. */
export const modelsOfKey = (
  { key_records, route_table }: Pick<GatewayConfig, "key_records" | "route_table">,
  key: string
): AllowedRoutes | undefined => {
  const record = key_records.get(key)
  if (record?.models === undefined) return undefined
  const known = allowed.get(record)
  if (known?.[0] === route_table) return known[1]
  const routes = allowedRoutes(route_table, record.models)
  allowed.set(record, [route_table, routes])
  return routes
}

/** The rights of keys, which do not depend on where usage is counted. */
const rightsOf = (config: ConfigStore["Service"], clock: Clock.Clock) => {
  const modelsOf = (key: string) => modelsOfKey(config.now(), key)

  return {
    countsTokens: (key: string) => countsTokens(config.now().key_records.get(key)?.limits ?? noLimits),
    modelsOf,
    refuseModel: (key: string, route: Route) => {
      if (!isAllowed(modelsOf(key), route)) {
        return gatewayError(
          "model_not_allowed",
          `This API key may not use the model "${route.id}"; GET /v1/models lists the models of the key`,
          { param: "model" }
        )
      }
      const current = config.now()
      return refuseUnpriced(
        current,
        current.key_records.get(key)?.limits ?? noLimits,
        route,
        clock.currentTimeMillisUnsafe()
      )
    },
    limitsRunning: (key: string) =>
      isKeyId(key) && maxInFlight(config.now(), config.now().key_records.get(key)) !== undefined,
    refuseChoosing: (key: string, route: Route, paths: ReadonlyArray<string>) => {
      const current = config.now()
      return refuseChoosing(current, current.key_records.get(key), route, paths)
    },
    pricing: () => {
      const { currency, prices, upstreams } = config.now()
      return { currency, prices, upstreams, now: clock.currentTimeMillisUnsafe() }
    }
  }
}

/** The limits of keys. */
export class KeyLimits extends Context.Service<KeyLimits, {
  /**
   * Admits a request for the lifetime of a scope, or refuses it. When the scope closes, the request's actual use replaces what
   * was reserved.
   */
  readonly admit: (request: AdmissionRequest) => Effect.Effect<Admitted, Refused, Scope.Scope>
  /**
   * Counts a request among the running ones of its key while its body arrives, or refuses it. Reserves one request, without tokens or
   * cost, until its admission or the end of the scope.
   */
  readonly enter: (key: string) => Effect.Effect<Reserved, Refused, Scope.Scope>
  /** Whether the running requests of a key are limited: those whose body arrives are counted then. */
  readonly limitsRunning: (key: string) => boolean
  /** Whether a key has a limit of tokens or cost: admission then estimates the tokens of its prompts. */
  readonly countsTokens: (key: string) => boolean
  /** What the `models` of a key allow; `undefined` for all models. */
  readonly modelsOf: (key: string) => AllowedRoutes | undefined
  /** The error of a request for a model that its key may not use, or that has no price while the key's cost is limited. */
  readonly refuseModel: (key: string, route: Route) => GatewayError | undefined
  /**
   * The error of a request with fields that choose another model, or a tier, while the models or the cost of its key are limited. `paths` come
   * from the fields.
   */
  readonly refuseChoosing: (key: string, route: Route, paths: ReadonlyArray<string>) => GatewayError | undefined
  /** The prices of now. */
  readonly pricing: () => Pricing
  /** The usage of keys, in the order given. */
  readonly usageOf: (keys: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<KeyUsage>, GatewayError>
}>()("model-gateway/usage/KeyLimits") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    const store = yield* UsageStore
    const clock = yield* Clock.Clock
    const budgets = new BudgetNotices(yield* CurrentNotices)
    const states = new Map<string, CountedState>()
    let keys = config.now().keys
    /** The idle states at the last change of the keys, with their `lastUsedAt`. */
    let idle = new Map<string, number | undefined>()

    /** Loads the state of a key once for all requests that wait for it. */
    const lookUps = yield* Cache.make({
      capacity: maxLookUps,
      timeToLive: 0,
      lookup: (key: string) =>
        Effect.suspend(() => {
          const now = clock.currentTimeMillisUnsafe()
          return Effect.map(store.counters(key, now), (counters) => {
            const loaded = stateAt(now, counters)
            const state = states.get(key)
            budgets.known(ownerOfKey(config.now(), key), loaded.windows)
            if (state === undefined) {
              loaded.ended = (windows) => {
                if (budgets.isWanted) budgets.look(ownerOfKey(config.now(), key), windows)
              }
              states.set(key, loaded)
            } else moveTo(state, now, counters)
            return state ?? loaded
          })
        })
    })

    /**
     * Drops the states that are idle over two changes of the keys, which bounds `states`. The usage store has their counters by
     * then, and a key that returns is loaded again.
     */
    const forget = () => {
      const current = config.now().keys
      if (current === keys) return
      keys = current
      const before = idle
      idle = new Map()
      for (const [key, { inFlight, lastUsedAt }] of states) {
        if (inFlight > 0) continue
        if (before.has(key) && before.get(key) === lastUsedAt) states.delete(key)
        else idle.set(key, lastUsedAt)
      }
    }

    /** The state of a key; loaded at its first use, and after the clock was set back. */
    const stateOf = (key: string): Effect.Effect<CountedState> => {
      forget()
      const state = states.get(key)
      return state !== undefined && clock.currentTimeMillisUnsafe() >= state.windows[0]!.startedAt - clockSlack
        ? Effect.succeed(state)
        : Cache.get(lookUps, key)
    }

    /** Replaces the windows that are over; returns the time. */
    const advance = (state: CountedState): number => {
      const now = Math.max(clock.currentTimeMillisUnsafe(), state.windows[0]!.startedAt)
      advanceTo(state, now)
      return now
    }

    /** Checks and reserves in one synchronous step. Before its admission, a request is checked by the number of running ones alone. */
    const reserve = (
      request: AdmissionRequest,
      state: CountedState,
      isAdmitted: boolean
    ): Effect.Effect<Reservation, Refused> => {
      const current = config.now()
      const { currency } = current
      const record = current.key_records.get(request.key)
      const limits = record?.limits ?? noLimits
      const checked = isAdmitted ? limits : noLimits
      request.entered?.commit(notCounted)
      const now = advance(state)
      const most = maxInFlight(current, record)
      const isFull = most !== undefined && state.inFlight >= most
      let stage: Stage | GatewayError = isFull
        ? { share: noShare, checked, fallback: undefined }
        : firstStage(current, checked, request, now)
      // One stage at most for each window.
      while (!(stage instanceof GatewayError)) {
        const { share } = stage
        const refusal = isFull || stage.checked.length > 0
          ? refusalOf({
            state,
            limits: stage.checked,
            most,
            share,
            now,
            currency,
            takesFallback: request.takesFallback
          })
          : undefined
        if (refusal === undefined) {
          return Effect.succeed(new Reservation(state, checked, now, share, stage.fallback))
        }
        if (!isFull) budgets.refused(ownerOfKey(current, request.key), state, stage.checked, share)
        stage = nextStage(current, checked, request, stage, refusal, { state, most, now })
      }
      return Effect.fail(new Refused(stage, limits.length === 0 ? undefined : remainingOf(state, limits, now)))
    }

    const reserveFor = (request: AdmissionRequest, isAdmitted: boolean) =>
      Effect.withFiber<Reservation, Refused, Scope.Scope>(({ context }) => {
        const scope = Context.getUnsafe(context, Scope.Scope)
        return Effect.flatMapEager(
          stateOf(request.key),
          (state) => reserveWithin(scope, request.used, () => reserve(request, state, isAdmitted))
        )
      })

    return KeyLimits.of({
      ...rightsOf(config, clock),
      admit: (request) =>
        isKeyId(request.key)
          ? reserveFor(request, true)
          : Effect.sync(() => admittedAt(clock.currentTimeMillisUnsafe())),
      enter: (key) =>
        reserveFor({
          key,
          promptTokens: () => 0,
          used: () => notCounted,
          model: undefined,
          bounds: undefined,
          takesFallback: false,
          entered: undefined
        }, false),
      usageOf: (ids) =>
        Effect.suspend(() => {
          const current = config.now()
          return Effect.forEach(ids, (id) =>
            Effect.mapEager(stateOf(id), (state) => {
              advance(state)
              const { inFlight, lastUsedAt, windows } = state
              return { inFlight, lastUsedAt, windows, maxInFlight: maxInFlight(current, current.key_records.get(id)) }
            }))
        })
    })
  })

  /** The limits, counted over all nodes of a store. */
  static readonly makeShared = Effect.gen(function*() {
    const config = yield* ConfigStore
    const store = yield* Store
    const clock = yield* Clock.Clock
    const fork = yield* FiberSet.makeRuntime<never, void, never>()
    const { makeSharedLimits } = yield* Effect.promise(() => import("./sharedLimits.ts"))
    const { admit, enter, flush, usageOf } = makeSharedLimits(
      store,
      config,
      () => clock.currentTimeMillisUnsafe(),
      fork,
      new BudgetNotices(yield* CurrentNotices)
    )
    yield* Effect.addFinalizer(() => flush)
    return KeyLimits.of({ ...rightsOf(config, clock), admit, enter, usageOf })
  })

  static readonly layerShared: Layer.Layer<KeyLimits, never, ConfigStore | Store> = Layer.effect(
    KeyLimits,
    KeyLimits.makeShared
  )

  static readonly layer: Layer.Layer<KeyLimits, never, ConfigStore | UsageStore> = Layer.effect(
    KeyLimits,
    KeyLimits.make
  )
}
