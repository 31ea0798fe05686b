/**
 * Nodes over stores with TLS that fail over, as a user with only the documented rights.
 */
import { afterEach, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { accounts, admin, chat, textOf } from "../../gateway/support.ts"
import { type RedisGroup, securedClusterGroup, securedSentinelGroup } from "../../support/redisGroups.ts"
import { command, connect } from "../../support/redisServer.ts"
import { untilHolds } from "../../support/until.ts"
import { type Cluster, startCluster, untilReady } from "../cluster.ts"

let cluster: Cluster
afterEach(() => cluster.stop())

describe("two nodes over a store with TLS", () => {
  for (
    const [kind, start] of Object.entries({ "three sentinels": securedSentinelGroup, "a cluster": securedClusterGroup })
  ) {
    it(`behind ${kind} follow its primary, and report a policy that evicts keys`, async () => {
      let group: RedisGroup | undefined
      cluster = await startCluster({
        nodes: 2,
        config: { accounts: accounts("a") },
        store: Effect.map(start, (made) => {
          group = made
          return { server: made.first, url: made.url + made.query, env: made.env }
        })
      })
      assert.isDefined(group)
      const { nodes } = cluster
      for (const { url } of nodes) assert.strictEqual(textOf(await chat(url, "!say before")), "before")
      await group.handOver()
      await group.untilHandedOver()
      for (const node of nodes) {
        await untilHolds(async () => (await chat(node.url, "!say after")).text === "after")
        await untilReady(node)
      }
      const client = await connect(group.second.socket, group.second.password)
      assert.deepStrictEqual(await command(client, "ACL", "LOG"), [])
      await command(client, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
      await command(client, "CONFIG", "SET", "maxmemory", "100mb")
      client.destroy()
      const detail = "The store may evict keys (maxmemory-policy volatile-lru): use noeviction"
      for (const { running, url } of nodes) {
        await running.printed(/The store may evict keys/)
        await untilHolds(async () => (await (await fetch(`${url}/readyz`)).text()).includes(detail))
        const { store } = await admin(url, "GET", "/admin/nodes") as { readonly store: { readonly detail: string } }
        assert.strictEqual(store.detail, detail)
      }
    })
  }
})
