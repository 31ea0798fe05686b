/**
 * The revision of the configuration that the nodes of a store share, and how a node reaches it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { StoreUnavailable } from "../cluster/store/StoreShape.ts"
import { shareRuns } from "./clock/cooperative.ts"
import type { Shared } from "./sharedConfig.ts"

/** Minimum pause between two reads of the newest revision, in milliseconds. */
export const askingPause = 100

export class SharedRevision extends Context.Service<SharedRevision, {
  /** Waits until a revision of the shared document, or a later one, is in effect, if possible. */
  readonly reach: (revision: number) => Effect.Effect<void>
  /**
   * Waits until this node has the newest shared configuration as of the call. Fails if that cannot be determined.
   * `undefined` without a cluster.
   */
  readonly newest: Effect.Effect<void, StoreUnavailable> | undefined
  /** The shared document: its revision on this node and the file that keeps it. `undefined` without a cluster. */
  readonly shared: Pick<Shared, "revision" | "keptIn"> | undefined
  /** False while the shared document is invalid for this node. */
  readonly isCurrent: () => boolean
}>()("model-gateway/config/SharedRevision") {}

/** A process without a cluster has its configuration to itself. */
const notShared: SharedRevision["Service"] = {
  reach: () => Effect.void,
  newest: undefined,
  shared: undefined,
  isCurrent: () => true
}

/** `takeEdit` applies the newest document of the store. */
export const makeSharedRevision = Effect.fnUntraced(function*(
  shared: Pick<Shared, "revision" | "isCurrent" | "newestRevision" | "keptIn"> | undefined,
  takeEdit: Effect.Effect<void>
): Effect.fn.Return<SharedRevision["Service"], never, Scope.Scope> {
  if (shared === undefined) return notShared
  const reach = (revision: number) => Effect.suspend(() => shared.revision() >= revision ? Effect.void : takeEdit)
  const newest = yield* shareRuns(
    Effect.gen(function*() {
      const revision = yield* shared.newestRevision
      yield* reach(revision)
      if (shared.revision() < revision) {
        return yield* new StoreUnavailable({ message: "The newest configuration is invalid for this node" })
      }
    }),
    askingPause
  )
  return { reach, newest, shared, isCurrent: shared.isCurrent }
})
