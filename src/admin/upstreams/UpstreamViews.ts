/**
 * What the upstreams do now, for their list. The place where the pools, their cooling and the times of replies are joined.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Accounts } from "../../accounts/Accounts.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"

/** The numbers of five minutes; times to the first event, `null` without any. */
export interface RecentTries {
  readonly requests: number
  readonly errors: number
  readonly p50_ms: number | null
  readonly p95_ms: number | null
}

/** The live part of an upstream's view. */
export interface UpstreamLive {
  readonly name: string
  readonly accounts: {
    readonly ready: number
    readonly cooling: number
    readonly out: number
    readonly disabled: number
  }
  readonly in_use: number
  readonly max_inflight: number
  readonly waiting: number
  readonly state: "ready" | "cooled" | "disabled"
  /** Milliseconds until a request tries it again; `null` unless it is cooled. */
  readonly cooled_ms: number | null
  readonly reason: string | null
  readonly last_5m: RecentTries
}

/** Accounts whose facts are read from the pool at once. */
const sliceLength = 500

const none: RecentTries = { requests: 0, errors: 0, p50_ms: null, p95_ms: null }

/** The upstreams in the order of the configuration. */
export class UpstreamViews extends Context.Service<UpstreamViews, {
  readonly now: Effect.Effect<ReadonlyArray<UpstreamLive>>
}>()("model-gateway/admin/UpstreamViews") {
  /** Counts the facts of the pool's accounts. */
  static readonly layer: Layer.Layer<UpstreamViews, never, Accounts | ConfigStore> = Layer.effect(
    UpstreamViews,
    Effect.gen(function*() {
      const pool = yield* Accounts
      const store = yield* ConfigStore
      return {
        now: Effect.gen(function*() {
          const { accounts: configured, upstreams } = store.now()
          const status = yield* pool.status
          const counts = new Map(upstreams.map(({ name }) => [name, { ready: 0, cooling: 0, out: 0, disabled: 0 }]))
          const inUse = new Map<string, number>()
          for (let start = 0; start < configured.length; start += sliceLength) {
            if (start > 0) yield* Effect.yieldNow
            const slice = configured.slice(start, start + sliceLength)
            const facts = new Map(
              (yield* pool.describe(slice.map(({ name }) => name))).map((each) => [each.identifier, each])
            )
            for (const { name, upstream } of slice) {
              const fact = facts.get(name)
              const count = counts.get(upstream)
              if (fact === undefined || count === undefined) continue
              count[fact.disabled ? "disabled" : fact.health]++
              inUse.set(upstream, (inUse.get(upstream) ?? 0) + fact.inUse)
            }
          }
          const isAlone = upstreams.length === 1
          return upstreams.map(({ driver, enabled, limits, name }): UpstreamLive => {
            const accounts = counts.get(name)!
            const hasNone = accounts.ready + accounts.cooling + accounts.out + accounts.disabled === 0
            return {
              name,
              // An upstream that needs no key has one account of its own.
              accounts: hasNone && driver !== "session" ? { ...accounts, ready: 1 } : accounts,
              in_use: isAlone ? status.in_use : inUse.get(name) ?? 0,
              max_inflight: limits.global,
              waiting: isAlone ? status.waiting : 0,
              state: enabled ? "ready" : "disabled",
              cooled_ms: null,
              reason: isAlone ? status.reason : null,
              last_5m: none
            }
          })
        })
      }
    })
  )
}
