/**
 * The nodes that are one gateway: who they are, whether this one may take requests, and what it costs them to share.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import { hostname } from "node:os"
import { Accounts } from "../../accounts/Accounts.ts"
import { asList, readStatus } from "../../accounts/shared/poolScripts.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { Store } from "../store/Store.ts"
import { makePeers, noPeers, type Peers } from "./asking.ts"

/** A node as the others see it. Times are Unix milliseconds. */
export interface NodeFacts {
  readonly id: string
  readonly self: boolean
  /** `late`: it has shown no life for two seconds. */
  readonly state: "up" | "draining" | "late"
  readonly version: string
  readonly started_at: number
  /** Milliseconds since it showed life. */
  readonly last_beat_ms: number
  readonly in_use: number
  readonly waiting: number
  readonly config_revision: number
}

/** The store as this node finds it. */
export interface StoreFacts {
  readonly state: "up" | "lost"
  readonly url: string
  readonly version: string
  readonly revision: number
  readonly round_trip_ms: number
  readonly since: number
  /** What is wrong with how the server is set up, in words. */
  readonly detail?: string
}

/** Numbers for metrics; counters count since the start. */
export interface NodesMetrics {
  readonly up: boolean
  readonly nodes: number
  readonly scripts: ReadonlyMap<string, number>
  /** Leases that the store had dropped while they ran. */
  readonly leasesLost: number
  /** Copies of stored responses that could not be written. */
  readonly lostWrites: number
}

const lateMillis = 2_000

/** The name that this process was given, in what it logs and exports too; without a store it may have none. */
export const GivenNodeId = Context.Reference<string | undefined>("model-gateway/nodes/GivenNodeId", {
  defaultValue: () => undefined
})

/** What there is to know of the nodes. */
export class Nodes extends Context.Service<Nodes, {
  /** This node's id. */
  readonly id: string
  /** `undefined` without a store. */
  readonly store: () => StoreFacts | undefined
  /** False while this node can take no requests: the store is lost, or its configuration is one that it cannot take. */
  readonly isReady: () => boolean
  /** All nodes by id; this one alone while the store is lost. */
  readonly list: Effect.Effect<ReadonlyArray<NodeFacts>>
  /** Says how to find out whether this node drains, for the others to see. */
  readonly watchDraining: (isDraining: () => boolean) => void
  /** Other nodes, for what each keeps to itself. */
  readonly peers: Peers
  /** `undefined` without a store. */
  readonly metrics: Effect.Effect<NodesMetrics | undefined>
}>()("model-gateway/nodes/Nodes") {
  /** This process alone. `version` is the gateway's. */
  static readonly layer = (version: string): Layer.Layer<Nodes, never, Accounts> =>
    Layer.effect(
      Nodes,
      Effect.gen(function*() {
        const accounts = yield* Accounts
        const started = yield* Clock.currentTimeMillis
        const id = (yield* GivenNodeId) ?? hostname()
        let draining = () => false
        return Nodes.of({
          id,
          store: () => undefined,
          isReady: () => true,
          list: Effect.map(accounts.metrics, ({ inUse, waiting }) => [{
            id,
            self: true,
            state: draining() ? "draining" : "up",
            version,
            started_at: started,
            last_beat_ms: 0,
            in_use: inUse,
            waiting,
            config_revision: 0
          }]),
          watchDraining: (isDraining) => {
            draining = isDraining
          },
          peers: noPeers,
          metrics: Effect.succeed(undefined)
        })
      })
    )

  /** The nodes of a store. */
  static readonly layerShared = (version: string): Layer.Layer<Nodes, never, Accounts | ConfigStore | Store> =>
    Layer.effect(
      Nodes,
      Effect.gen(function*() {
        const accounts = yield* Accounts
        const config = yield* ConfigStore
        const store = yield* Store
        const started = yield* Clock.currentTimeMillis
        const fork = yield* FiberSet.makeRuntime<never, void, never>()
        let leasesLost = 0
        store.listen((kind, rest) => {
          if (kind === "dropped") leasesLost += Number(rest)
        })

        const alone = Effect.map(accounts.metrics, ({ inUse, waiting }): ReadonlyArray<NodeFacts> => [{
          id: store.node,
          self: true,
          state: store.isDraining() ? "draining" : "up",
          version,
          started_at: started,
          last_beat_ms: 0,
          in_use: inUse,
          waiting,
          config_revision: store.revision()
        }])

        const all = Effect.map(store.run("status", ""), (reply): ReadonlyArray<NodeFacts> => {
          const { nodes, now } = readStatus(reply)
          return asList(nodes).map((node): NodeFacts => {
            const silence = Math.max(0, Number(now) - Number(node.beat))
            return {
              id: node.id,
              self: node.id === store.node,
              state: silence > lateMillis ? "late" : node.state === "draining" ? "draining" : "up",
              version: node.version,
              started_at: Number(node.started),
              last_beat_ms: silence,
              in_use: node.in_use,
              waiting: node.waiting,
              config_revision: Number(node.revision)
            }
          }).sort((a, b) => a.id < b.id ? -1 : 1)
        })

        const list = Effect.catch(all, () => alone)
        return Nodes.of({
          id: store.node,
          store: () => {
            const { detail, roundTrip, since, state, url, version } = store.status()
            const facts = { state, url, version, revision: store.revision(), round_trip_ms: roundTrip, since }
            return detail === undefined ? facts : { ...facts, detail }
          },
          isReady: () => store.isUp() && config.isCurrent(),
          list,
          watchDraining: (isDraining) => store.watchDraining(isDraining),
          peers: makePeers(store, fork),
          metrics: Effect.map(list, (nodes) => {
            const { lostWrites, scripts } = store.counts()
            return { up: store.isUp(), nodes: nodes.length, scripts, leasesLost, lostWrites }
          })
        })
      })
    )
}
