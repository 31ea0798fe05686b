/**
 * Who may call the upstream: leases on accounts of the pool, or a caller's own token.
 *
 * A lease is a scoped resource. Whatever ends its scope gives the slot back exactly once.
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { Store } from "../cluster/store/Store.ts"
import type { ConfigStore } from "../config/ConfigStore.ts"
import type { Upstream } from "../upstream/Upstream.ts"
import { makeFixed } from "./fixedAccount.ts"
import type { AccountPool } from "./Lease.ts"
import { makePool } from "./pool.ts"
import { makeSharedPool } from "./shared/sharedPool.ts"

export type {
  AccountAccess,
  AccountFacts,
  AccountPool,
  AccountsMetrics,
  Caller,
  Lease,
  LeaseOptions,
  QueueStatus
} from "./Lease.ts"

/** The pool of accounts. */
export class Accounts extends Context.Service<Accounts, AccountPool>()("model-gateway/accounts/Accounts") {
  /** The pool that the configuration describes. */
  static readonly layer: Layer.Layer<Accounts, never, ConfigStore | Upstream> = Layer.effect(Accounts, makePool)

  /** The pool that the nodes of a store share; needs a `ConfigStore` that they share too. */
  static readonly layerShared: Layer.Layer<Accounts, never, ConfigStore | Upstream | Store> = Layer.effect(
    Accounts,
    makeSharedPool
  )

  /** One fixed credential, no limits, no queue: for embedders that call the upstream with a token of their own. */
  static readonly layerFixed = (token: string | undefined): Layer.Layer<Accounts, never, Upstream> =>
    Layer.effect(Accounts, makeFixed(token))
}
