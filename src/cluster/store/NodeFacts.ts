/**
 * What this node tells the store about itself, as the parts of the gateway have registered it.
 */
import type { HoldingCounts, Holdings } from "./StoreShape.ts"

export class NodeFacts {
  /** Its leases and waiters. */
  holdings: () => Holdings = () => ({ leases: [], tickets: [] })
  counts: () => HoldingCounts = () => ({ leases: 0, tickets: 0, unsettled: 0 })
  isDraining: () => boolean = () => false
  /** The revision of the configuration in effect. */
  revision = 0
  /** Copies that failed to be written. */
  lostWrites = 0
}
