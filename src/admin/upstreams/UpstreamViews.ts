/**
 * What the upstreams do now, for their list: their pools, which nodes share, and the tries of all nodes in the last minutes.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { UpstreamFacts } from "../../accounts/Accounts.ts"
import { UpstreamActivity } from "../../accounts/UpstreamActivity.ts"
import { addTries, noTries, quantileOf, steps, TriesText, type TryCounts } from "../../accounts/UpstreamTimes.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { UpstreamConfig } from "../../config/GatewayConfig.ts"
import { makeNodeItems } from "../nodeItems.ts"
import type { Nodes } from "../nodes/Nodes.ts"
import { answerQuery, askAll, noQuestion } from "../nodes/Query.ts"

/** The numbers of five minutes; times to the first event, `null` without any. */
export interface RecentTries {
  readonly requests: number
  readonly errors: number
  readonly p50_ms: number | null
  readonly p95_ms: number | null
}

/** The tries of five minutes. */
interface Step {
  readonly requests: number
  readonly errors: number
}

/** The live part of an upstream's view. */
export interface UpstreamLive extends UpstreamFacts {
  readonly last_5m: RecentTries
  /** The oldest first. */
  readonly last_hour: ReadonlyArray<Step>
}

const recentOf = (tries: TryCounts): RecentTries => ({
  requests: tries.requests,
  errors: tries.errors,
  p50_ms: quantileOf(tries, 0.5),
  p95_ms: quantileOf(tries, 0.95)
})

const hourOf = ({ hour }: TryCounts): ReadonlyArray<Step> =>
  Array.from({ length: steps }, (_, step) => ({ requests: hour[2 * step]!, errors: hour[2 * step + 1]! }))

/** Facts of an upstream while the shared store does not answer. */
const unknownFacts = ({ enabled, limits, name }: UpstreamConfig): UpstreamFacts => ({
  name,
  accounts: { ready: 0, cooling: 0, out: 0, disabled: 0 },
  in_use: 0,
  max_inflight: limits.global,
  waiting: 0,
  state: enabled ? "ready" : "disabled",
  cooled_ms: null,
  reason: null,
  budgets: []
})

/** The question to each node for its counts by upstream. Its name changes with the form of the counts. */
const query = {
  name: "upstream-hours",
  question: noQuestion,
  answer: Schema.fromJsonString(Schema.Record(Schema.String, TriesText))
}

/** The upstreams in the order of the configuration. */
export class UpstreamViews extends Context.Service<UpstreamViews, {
  readonly now: Effect.Effect<{
    readonly live: ReadonlyArray<UpstreamLive>
    /** The reply field `nodes_missing`. */
    readonly missing: { readonly nodes_missing?: ReadonlyArray<string> }
  }>
}>()("model-gateway/admin/UpstreamViews") {
  static readonly layer: Layer.Layer<UpstreamViews, never, ConfigStore | Nodes | UpstreamActivity> = Layer.effect(
    UpstreamViews,
    Effect.gen(function*() {
      const config = yield* ConfigStore
      const activity = yield* UpstreamActivity
      const { missingNodes, peers } = yield* makeNodeItems

      answerQuery(peers, query, () => Effect.map(activity.recentTries, (recent) => Object.fromEntries(recent)))
      const ask = askAll(peers, query)

      return {
        now: Effect.gen(function*() {
          const [facts, { answers, missing }] = yield* Effect.all([activity.upstreams, ask("")], {
            concurrency: 2
          })
          const sums = new Map(yield* activity.recentTries)
          for (const counts of answers.values()) {
            for (const [name, tries] of Object.entries(counts)) {
              const sum = sums.get(name) ?? noTries()
              addTries(sum, tries)
              sums.set(name, sum)
            }
          }
          const known = new Map(facts.map((each) => [each.name, each]))
          return {
            live: Array.from(config.now().upstreams.values(), (upstream) => {
              const tries = sums.get(upstream.name) ?? noTries()
              return {
                ...known.get(upstream.name) ?? unknownFacts(upstream),
                last_5m: recentOf(tries),
                last_hour: hourOf(tries)
              }
            }),
            missing: missingNodes(missing)
          }
        })
      }
    })
  )
}
