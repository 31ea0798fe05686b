/**
 * What the upstreams do, for operators. The layers of `Accounts` provide it with the pool.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { UpstreamFacts } from "./Lease.ts"
import type { TryCounts } from "./UpstreamTimes.ts"

export class UpstreamActivity extends Context.Service<UpstreamActivity, {
  /** The pools of all upstreams, in the order of the configuration. */
  readonly upstreams: Effect.Effect<ReadonlyArray<UpstreamFacts>>
  /** The tries of this process in the last minutes, by upstream. */
  readonly recentTries: Effect.Effect<ReadonlyMap<string, TryCounts>>
}>()("model-gateway/accounts/UpstreamActivity") {}
