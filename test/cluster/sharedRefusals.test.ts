/** What one node has learned from the refusals of a server, the others do before they send. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Store } from "../../src/cluster/store/Store.ts"
import { LearnedRefusals } from "../../src/upstream/server/LearnedRefusals.ts"
import { makeSharedRefusals } from "../../src/upstream/sharedRefusals.ts"
import { adminKey, businessKey } from "../support/gateway.ts"
import { json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { command, connect, listOf, type RedisServer } from "../support/redisServer.ts"
import { until, untilHolds, untilTrue } from "../support/until.ts"
import { type Cluster, type ClusterNode, startCluster } from "./cluster.ts"
import { settledServer, storeLayer } from "./support.ts"

let server: OpenAiServer
let cluster: Cluster
const words = "Unsupported parameter: 'temperature' is not supported with this model."
beforeAll(async () => {
  server = await startOpenAiServer()
  server.answer(({ body: { temperature } }) =>
    temperature === undefined ? streamed({ content: "Hello" }) : json(400, { error: { message: words } })
  )
  cluster = await startCluster({
    nodes: 2,
    config: { keys: [businessKey], upstream: { driver: "openai", base_url: server.baseUrl } }
  })
})
afterAll(async () => {
  await cluster.stop()
  await server.stop()
})

const ask = async ({ url }: ClusterNode) => {
  const response = await fetch(`${url}/v1/messages`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "upstream-chat",
      max_tokens: 9,
      temperature: 0.5,
      messages: [{ role: "user", content: "Go" }]
    })
  })
  assert.strictEqual(response.status, 200, await response.text())
  assert.strictEqual(response.headers.get("x-gateway-ignored"), "temperature")
}

const shownAt = async ({ url }: ClusterNode) => {
  const response = await fetch(`${url}/admin/upstreams`, { headers: { authorization: `Bearer ${adminKey}` } })
  const { upstreams: [shown] } = await response.json() as {
    readonly upstreams: ReadonlyArray<{ readonly refusals: ReadonlyArray<Record<string, string>> }>
  }
  return shown!.refusals
}

describe("a field that a server refuses", () => {
  it("is refused to one node, and left out by the others", async () => {
    const [one, other] = cluster.nodes as [ClusterNode, ClusterNode]
    await ask(one)
    assert.lengthOf(server.requests, 2)
    await untilHolds(async () => (await shownAt(other)).length === 1)
    const [{ effect, model, words: said } = {}] = await shownAt(other)
    assert.deepStrictEqual([model, effect, said], [
      "upstream-chat",
      "temperature is not sent",
      "Unsupported parameter: 'temperature'"
    ])
    await ask(other)
    assert.lengthOf(server.requests, 3)
  })
})

const nodeOf = (server: RedisServer, name: string) =>
  Effect.gen(function*() {
    const context = yield* Layer.build(storeLayer(server, name))
    const learned = new LearnedRefusals()
    const join = yield* makeSharedRefusals(Context.get(context, Store))
    return { learned, join }
  })

describe("what nodes have learned", () => {
  const model = "m"
  const contract = "openai"
  const fact = {
    contract,
    model,
    part: { _tag: "UnsupportedField", path: "top_k" },
    words: "",
    perCharacter: 0,
    until: 3_600_000
  } as const

  it.live("holds for the same upstream, ends where it is contradicted, and is unreadable in the store", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const client = yield* Effect.promise(() => connect(server.socket))
      const [one, two, other] = [yield* nodeOf(server, "one"), yield* nodeOf(server, "two"), yield* nodeOf(server, "o")]
      const clock = yield* Effect.clockWith(Effect.succeed)
      const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
      const until1 = now() + 3_600_000
      one.join(new Map([["gpu", one.learned]]))
      two.join(new Map([["gpu", two.learned]]))
      other.join(new Map([["gpu at another address", other.learned]]))
      one.learned.learn({ ...fact, until: until1 })
      yield* until(() => two.learned.of(contract, model, now()).length === 1)
      const [taken] = two.learned.all(now())
      assert.deepInclude(taken, { model, part: fact.part })
      assert.isBelow(Math.abs(taken!.until - until1), 60_000)
      const kept = yield* Effect.promise(() => listOf(client, "ZRANGE", "gw:{main}:marks:refusals", "0", "-1"))
      assert.lengthOf(kept, 1)
      assert.notInclude(kept.join(), "top_k")
      two.learned.end(taken!)
      yield* until(() => one.learned.of(contract, model, now()).length === 0)
      // A node that starts later reads both.
      const three = yield* nodeOf(server, "three")
      three.join(new Map([["gpu", three.learned]]))
      assert.deepStrictEqual(three.learned.all(now()), [])
      assert.deepStrictEqual(other.learned.all(now()), [])
      yield* untilTrue(
        Effect.promise(async () => await command(client, "ZCARD", "gw:{main}:marks:refusals") === 2)
      )
      client.destroy()
    }))
})
