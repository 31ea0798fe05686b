/**
 * The nodes of a cluster: their list, the readiness of this one, and metrics of the shared store.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import { hostname } from "node:os"
import { Accounts } from "../../accounts/Accounts.ts"
import { asList, readStatus } from "../../accounts/shared/poolScripts.ts"
import { Store } from "../../cluster/store/Store.ts"
import { SharedRevision } from "../../config/sharedConfig.ts"
import { makePeers, noPeers, type Peers } from "./peers.ts"

/** The state of a node. Times are Unix milliseconds. */
export interface NodeFacts {
  readonly id: string
  readonly self: boolean
  /** `late`: no heartbeat for two seconds. */
  readonly state: "up" | "draining" | "late"
  readonly version: string
  readonly started_at: number
  /** Milliseconds since the last heartbeat. */
  readonly last_beat_ms: number
  readonly in_use: number
  readonly waiting: number
  readonly config_revision: number
}

/** The state of the store, as this node sees it. */
export interface StoreFacts {
  readonly state: "up" | "lost"
  readonly url: string
  readonly version: string
  readonly revision: number
  readonly round_trip_ms: number
  readonly since: number
  /** A problem with the server's configuration. */
  readonly detail?: string
}

/** Metrics; counters start at 0 with the process. */
export interface NodesMetrics {
  readonly up: boolean
  readonly nodes: number
  readonly scripts: ReadonlyMap<string, number>
  /** Leases that the store dropped while they were in use. */
  readonly leasesLost: number
  /** Copies of stored responses that failed to be written. */
  readonly lostWrites: number
}

const lateMillis = 2_000

/** A count or a time that a node has written to the store; 0 for a text that is neither, which others may have written. */
const wholeNumber = (text: string): number =>
  /^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : 0

/** The configured id of this node, also used in logs and exports; optional without a store. */
export const GivenNodeId = Context.Reference<string | undefined>("model-gateway/nodes/GivenNodeId", {
  defaultValue: () => undefined
})

/** A list of this node alone. */
const selfOnly = (
  accounts: Accounts["Service"],
  facts: () => Pick<NodeFacts, "id" | "version" | "started_at" | "config_revision"> & { readonly draining: boolean }
) =>
  Effect.map(accounts.metrics, ({ inUse, waiting }): ReadonlyArray<NodeFacts> => {
    const { draining, ...rest } = facts()
    return [{ ...rest, self: true, state: draining ? "draining" : "up", last_beat_ms: 0, in_use: inUse, waiting }]
  })

/** The nodes of this gateway. */
export class Nodes extends Context.Service<Nodes, {
  readonly id: string
  /** `undefined` without a store. */
  readonly store: () => StoreFacts | undefined
  /** False while the store is lost or its configuration is invalid for this node. */
  readonly isReady: () => boolean
  /** All nodes, sorted by id; only this one while the store is lost. */
  readonly list: Effect.Effect<ReadonlyArray<NodeFacts>>
  /** Registers the drain state of this node, which the others see. */
  readonly watchDraining: (isDraining: () => boolean) => void
  /** Queries to other nodes for data that each keeps in its memory. */
  readonly peers: Peers
  /** `undefined` without a store. */
  readonly metrics: Effect.Effect<NodesMetrics | undefined>
}>()("model-gateway/nodes/Nodes") {
  /** A single node without a store. `version` is the gateway's. */
  static readonly layer = (version: string): Layer.Layer<Nodes, never, Accounts> =>
    Layer.effect(
      Nodes,
      Effect.gen(function*() {
        const accounts = yield* Accounts
        const started_at = yield* Clock.currentTimeMillis
        const id = (yield* GivenNodeId) ?? hostname()
        let draining = () => false
        return Nodes.of({
          id,
          store: () => undefined,
          isReady: () => true,
          list: selfOnly(accounts, () => ({ id, version, started_at, draining: draining(), config_revision: 0 })),
          watchDraining: (isDraining) => {
            draining = isDraining
          },
          peers: noPeers,
          metrics: Effect.succeed(undefined)
        })
      })
    )

  /** The nodes of a store. */
  static readonly layerShared = (version: string): Layer.Layer<Nodes, never, Accounts | SharedRevision | Store> =>
    Layer.effect(
      Nodes,
      Effect.gen(function*() {
        const accounts = yield* Accounts
        const { isCurrent } = yield* SharedRevision
        const store = yield* Store
        const started_at = yield* Clock.currentTimeMillis
        const fork = yield* FiberSet.makeRuntime<never, void, never>()
        let leasesLost = 0
        store.listen((event) => {
          if (event._tag === "dropped") leasesLost += event.leases
        })

        const alone = selfOnly(accounts, () => ({
          id: store.membership.node,
          version,
          started_at,
          draining: store.membership.isDraining(),
          config_revision: store.membership.revision()
        }))

        const all = Effect.map(store.run("status", ""), (reply): ReadonlyArray<NodeFacts> => {
          const { nodes, now } = readStatus(reply)
          return asList(nodes).map((node): NodeFacts => {
            const silence = Math.max(0, Number(now) - wholeNumber(node.beat))
            return {
              id: node.id,
              self: node.id === store.membership.node,
              state: silence > lateMillis ? "late" : node.state === "draining" ? "draining" : "up",
              version: node.version,
              started_at: wholeNumber(node.started),
              last_beat_ms: silence,
              in_use: node.in_use,
              waiting: Math.max(0, node.waiting),
              config_revision: wholeNumber(node.revision)
            }
          }).sort((a, b) => a.id < b.id ? -1 : 1)
        })

        const list = Effect.catch(all, () => alone)
        return Nodes.of({
          id: store.membership.node,
          store: () => {
            const { detail, roundTrip, since, state, url, version } = store.status()
            const facts = {
              state,
              url,
              version,
              revision: store.membership.revision(),
              round_trip_ms: roundTrip,
              since
            }
            return detail === undefined ? facts : { ...facts, detail }
          },
          isReady: () => store.isUp() && isCurrent(),
          list,
          watchDraining: (isDraining) => store.membership.watchDraining(isDraining),
          peers: makePeers(store, fork),
          metrics: Effect.map(list, (nodes) => {
            const { lostWrites, scripts } = store.membership.counts()
            return { up: store.isUp(), nodes: nodes.length, scripts, leasesLost, lostWrites }
          })
        })
      })
    )
}
