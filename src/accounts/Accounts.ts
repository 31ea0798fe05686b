/**
 * The accounts that upstream calls run on: leases on accounts of the pool, or a caller's own token.
 *
 * This folder is who calls and with what right. `Callers` reads credentials, and says whose credential a target gets;
 * `CredentialThrottle` slows wrong ones down. `Lease` is the interface of the pool; `pool` is what every pool has: leases, tokens, what operators see.
 * `inProcessPool` drives the pools of one process, and `shared` those that the nodes of a store share. `tokens` logs accounts in. `budgets`,
 * `quota` and `ModelLimits` keep what is used, and what servers say of it; `accountHealth` and `upstreamHealth` what attempts show.
 * Where a request goes, and which account gets it, is decided in `placement`.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Store } from "../cluster/store/Store.ts"
import type { ConfigStore } from "../config/ConfigStore.ts"
import type { SharedRevision } from "../config/sharedConfig.ts"
import type { Upstreams } from "../upstream/Upstreams.ts"
import { makePool } from "./inProcessPool.ts"
import type { AccountPool } from "./Lease.ts"
import type { MadePool } from "./pool.ts"
import { UpstreamActivity } from "./UpstreamActivity.ts"

export { anywhere } from "./Lease.ts"
export type {
  AccountAccess,
  AccountFacts,
  AccountPool,
  AccountsMetrics,
  Caller,
  Lease,
  LeasedAccount,
  LeaseTarget,
  PlacementRequest,
  QueueStatus,
  UpstreamFacts
} from "./Lease.ts"

const layerOf = <R>(make: Effect.Effect<MadePool, never, R | Scope.Scope>) =>
  Layer.effectContext(
    Effect.map(make, ({ activity, pool }) => Context.add(Context.make(Accounts, pool), UpstreamActivity, activity))
  )

/** The pool of accounts. */
export class Accounts extends Context.Service<Accounts, AccountPool>()("model-gateway/accounts/Accounts") {
  /** The pool of one process, as the configuration describes it. */
  static readonly layer: Layer.Layer<Accounts | UpstreamActivity, never, ConfigStore | Upstreams> = layerOf(makePool)

  /** The pool that the nodes of a store share. The `ConfigStore` must be the nodes' shared one. */
  static readonly layerShared: Layer.Layer<
    Accounts | UpstreamActivity,
    never,
    ConfigStore | SharedRevision | Upstreams | Store
  > = layerOf(
    // Loaded with a store alone.
    Effect.flatMap(Effect.promise(() => import("./shared/sharedPool.ts")), ({ makeSharedPool }) => makeSharedPool)
  )
}
