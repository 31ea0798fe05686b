/**
 * Two nodes under load while the primary of their store changes, behind three sentinels and in a cluster. The upstream counts:
 * no limit is ever exceeded. Prints how long requests were refused.
 */
import { afterEach, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { sha256Hex } from "../../../src/config/json.ts"
import { keyId } from "../../../src/domain/identity.ts"
import { accounts, chat, emailOf, readSaid, type Said, send, times } from "../../gateway/support.ts"
import { businessKey } from "../../support/gateway.ts"
import { ask, clusterGroup, type RedisGroup, sentinelGroup } from "../../support/redisGroups.ts"
import { untilHolds } from "../../support/until.ts"
import { type Cluster, queueAt, startCluster, untilQueueAt, untilReady } from "../cluster.ts"

const perAccount = 2
const names = ["a", "b", "c", "d"]
const callers = 200
const limitedKey = "a key with a limit of requests"
const most = 12
/** The longest time of refusals after the new primary answers, in milliseconds. */
const patience = 3_000

const config = {
  keys: [businessKey, limitedKey],
  accounts: accounts(...names),
  key_records: { [keyId(limitedKey, sha256Hex)]: { limits: [{ window: "month", requests: most }], max_inflight: 8 } },
  runtime: { account_max_inflight: perAccount, account_max_queue: callers }
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const outcomeOf = (said: Said): string => said.error?.code ?? (said.finish === "stop" ? "ok" : "cut")

let cluster: Cluster
afterEach(() => cluster.stop())

const kinds: Readonly<Record<string, Effect.Effect<RedisGroup, never, Scope.Scope>>> = {
  "three sentinels": sentinelGroup,
  "a cluster": clusterGroup
}

const faults: Readonly<Record<string, (group: RedisGroup) => Promise<unknown>>> = {
  "handed over": (group) => group.handOver(),
  "killed": ({ first }) => first.crash(),
  // The old primary wakes up after the failover, and takes itself for the primary for a while.
  "asleep": async ({ first }) => {
    void ask(first, "DEBUG", "SLEEP", "8").catch(() => undefined)
  }
}

describe("a cluster without a replica of the node that has the keys", () => {
  it("is lost until that node is back", async () => {
    let group: RedisGroup | undefined
    cluster = await startCluster({
      nodes: 2,
      config,
      store: Effect.map(clusterGroup, (made) => {
        group = made
        return { server: made.first, url: made.url + made.query, env: made.env }
      })
    })
    assert.isDefined(group)
    const { nodes } = cluster
    await group.second.crash()
    assert.strictEqual(outcomeOf(await chat(nodes[0]!.url, "!say before")), "ok")
    await group.first.crash()
    for (const { url } of nodes) await untilHolds(async () => (await fetch(`${url}/readyz`)).status === 503)
    assert.strictEqual(outcomeOf(await chat(nodes[1]!.url, "!say no")), "store_unavailable")
    await group.first.start()
    for (const node of nodes) {
      await untilReady(node)
      await untilHolds(async () => outcomeOf(await chat(node.url, "!say after")) === "ok")
    }
  })
})

for (const [kind, start] of Object.entries(kinds)) {
  describe(`a store behind ${kind}`, () => {
    for (const [fault, cause] of Object.entries(faults)) {
      it(`whose primary is ${fault}`, async () => {
        let group: RedisGroup | undefined
        cluster = await startCluster({
          nodes: 2,
          config,
          storeTimeoutMillis: 500,
          reference: { remember: 0 },
          store: Effect.map(start, (made) => {
            group = made
            return { server: made.first, url: made.url + made.query, env: made.env }
          })
        })
        assert.isDefined(group)
        const { nodes } = cluster
        const streams: Array<Promise<Said>> = []
        for (const { url } of nodes) {
          const response = await send(url, "!pace 100\n!count 150", { stream: true })
          assert.strictEqual(response.status, 200)
          streams.push(readSaid(response))
        }
        const refusals: Array<number> = []
        const outcomes = new Map<string, number>()
        let limited = 0
        let running = true
        const caller = async (i: number) => {
          for (let n = 0; running; n++) {
            const isLimited = i % 4 === 0
            const outcome = await chat(nodes[(i + n) % 2]!.url, `!pace 3\n!count ${2 + (i + n) % 6}`, {
              stream: n % 2 === 0,
              key: isLimited ? limitedKey : businessKey
            }).then(outcomeOf, () => "cut")
            outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
            if (isLimited && (outcome === "ok" || outcome === "cut")) limited++
            if (outcome === "store_unavailable") refusals.push(Date.now())
            if (outcome !== "ok") await pause(50)
          }
        }
        const calling = times(callers, caller)
        await pause(3_000)
        const began = Date.now()
        await cause(group)
        await group.untilHandedOver()
        const answered = Date.now()
        await pause(9_000)
        running = false
        await Promise.all(calling)
        for (const stream of streams) assert.strictEqual(outcomeOf(await stream), "ok")
        for (const node of nodes) {
          await untilReady(node)
          await untilQueueAt(node, { in_use: 0, waiting: 0 })
        }
        const report = await cluster.until(({ open, streams }) => open === 0 && streams === 0)
        const last = Math.max(began, ...refusals)
        const summary = [
          `${kind}, ${fault}: failover ${answered - began} ms`,
          `refused from ${Math.min(last, ...refusals) - began} to ${last - began} ms`,
          `${JSON.stringify(Object.fromEntries(outcomes))}, limited ${limited}`,
          `most at once ${JSON.stringify(report.mostAtOnce)}`
        ]
        process.stdout.write(`${summary.join(", ")}\n`)
        assert.isEmpty(
          [...outcomes.keys()].filter((code) => !["ok", "store_unavailable", "rate_limit_exceeded"].includes(code))
        )
        assert.isAbove(outcomes.get("ok") ?? 0, 100)
        for (const name of names) assert.isAtMost(report.mostAtOnce[emailOf(name)] ?? 0, perAccount, name)
        assert.isAtMost(limited, most)
        assert.isAtMost(last - answered, patience)
        assert.strictEqual((await queueAt(nodes[0]!))["in_use"], 0)
      })
    }
  })
}

describe("a stream that waits for an account", () => {
  it("is refused inside the stream if its headers are sent and the store stays lost", async () => {
    cluster = await startCluster({
      nodes: 1,
      config: { accounts: accounts("a"), runtime: { account_max_inflight: 1, account_max_queue: 2 } },
      timeouts: { queue: 14 }
    })
    const { url } = cluster.nodes[0]!
    const held = await send(url, "!say one\n!fault hang-mid-stream after=1", { stream: true })
    const waiting = await send(url, "!say two", { stream: true })
    assert.strictEqual(waiting.status, 200)
    await cluster.store.crash()
    const { error } = await readSaid(waiting)
    assert.strictEqual(error?.code, "store_unavailable")
    await held.body?.cancel()
  })
})
