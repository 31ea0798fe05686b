/** The recent tries of all nodes in the list of upstreams. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { UpstreamActivity } from "../../src/accounts/UpstreamActivity.ts"
import { UpstreamTimes } from "../../src/accounts/UpstreamTimes.ts"
import { Nodes } from "../../src/admin/nodes/Nodes.ts"
import { noPeers, type QueryHandler } from "../../src/admin/nodes/peers.ts"
import { UpstreamViews } from "../../src/admin/upstreams/UpstreamViews.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"

const gpu = { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { m: "m" } }

/** Two nodes over one store that no longer knows the pools; a third one does not answer. */
const twoNodes = () => {
  const handlers = new Map<string, QueryHandler>()
  const times = { one: new UpstreamTimes(() => 0), other: new UpstreamTimes(() => 0) }
  const viewsOf = (id: "one" | "other") =>
    Layer.provide(UpstreamViews.layer, [
      Layer.succeed(UpstreamActivity, {
        recentTries: Effect.sync(() => times[id].recent()),
        upstreams: Effect.succeed([])
      }),
      ConfigStore.layerJson({ upstreams: { gpu, hosted: { ...gpu, enabled: false } } }),
      Layer.succeed(Nodes, {
        id,
        store: () => ({ state: "up", url: "", version: "", revision: 1, round_trip_ms: 0, since: 0 }),
        isReady: () => true,
        list: Effect.succeed([]),
        watchDraining: () => undefined,
        metrics: Effect.undefined,
        peers: {
          ...noPeers,
          answers: (kind, handler) => {
            if (id === "other") handlers.set(kind, handler)
          },
          queryAll: (kind, question) =>
            Effect.map(handlers.get(kind)!(question), (text) => ({
              answers: new Map([["other", text]]),
              missing: ["third"]
            })).pipe(Effect.orDie)
        }
      })
    ])
  return { times, viewsOf }
}

describe("the list of upstreams over nodes", () => {
  it.effect("adds up the tries of the nodes, and names those that did not answer", () => {
    const { times, viewsOf } = twoNodes()
    return Effect.gen(function*() {
      yield* Layer.build(viewsOf("other"))
      const { now } = yield* Effect.provide(UpstreamViews, viewsOf("one"))
      for (const [node, took] of [["one", 100], ["one", 100], ["other", 800]] as const) {
        times[node].began("gpu")
        times[node].answered("gpu", took)
      }
      times.other.began("gpu")
      times.other.failed("gpu")
      const { live, missing } = yield* now
      assert.deepStrictEqual(missing, { nodes_missing: ["third"] })
      assert.deepStrictEqual(
        live.map(({ last_5m: { errors, requests }, name, state }) => ({ errors, name, requests, state })),
        [
          { errors: 1, name: "gpu", requests: 4, state: "ready" },
          { errors: 0, name: "hosted", requests: 0, state: "disabled" }
        ]
      )
      const { p50_ms, p95_ms } = live[0]!.last_5m
      assert.closeTo(p50_ms!, 100, 5)
      assert.closeTo(p95_ms!, 800, 40)
      assert.isNull(live[1]!.last_5m.p50_ms)
      assert.lengthOf(live[1]!.last_hour, 12)
      assert.deepStrictEqual(live[0]!.last_hour.at(-1), { requests: 4, errors: 1 })
    })
  })
})
