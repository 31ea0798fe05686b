/** Two gateways as processes over one store and two upstreams, whose requests are counted at the servers. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { isDeepStrictEqual } from "node:util"
import { accounts, admin, chat, send, textOf } from "../gateway/support.ts"
import { businessKey } from "../support/gateway.ts"
import { json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { command, listOf } from "../support/redisServer.ts"
import { untilHolds, untilValue } from "../support/until.ts"
import { type Cluster, type ClusterNode, startCluster, untilIdle, untilQueueAt, untilReady } from "./cluster.ts"
import { poolsPlace, storedPool } from "./support.ts"

const smart = { model: "smart" }

/** Places in the queues of both upstreams, as the store counts them. */
const placesOf = async (cluster: Cluster): Promise<ReadonlyArray<unknown>> => {
  const pools = await listOf(await cluster.client(), "HMGET", poolsPlace, "default", "gpu")
  return pools.map((pool) => storedPool(pool)["waiting"])
}

describe("two nodes over two upstreams", () => {
  let cluster: Cluster
  let gpu: OpenAiServer
  beforeAll(async () => {
    gpu = await startOpenAiServer()
    cluster = await startCluster({
      nodes: 2,
      config: {
        accounts: accounts("a"),
        upstreams: { gpu: { driver: "openai", base_url: gpu.baseUrl, models: { m: "m" }, max_inflight: 1 } },
        routes: { smart: ["gpu/m", "default/upstream-chat"] },
        currency: "EUR",
        prices: { "default/upstream-chat": { per_request: "0.25" } },
        runtime: { account_max_inflight: 1, account_max_queue: 10 }
      }
    })
  })
  afterAll(async () => {
    await cluster.stop()
    await gpu.stop()
  })

  it("list a node whose values in the store are bad, with zeros in their place", async () => {
    const client = await cluster.client()
    const [one] = cluster.nodes
    const started = Number(await command(client, "HGET", "gw:{main}:node:n2", "started"))
    for (const bad of ["", "abc", "-1", "1.5", "1e400", "nan", "-inf", "9007199254740993", "0x10000000000000000"]) {
      await command(client, "ZADD", "gw:{main}:nodes", "inf", "bad")
      await command(
        client,
        "HSET",
        "gw:{main}:node:bad",
        ...["started", "beat", "state", "revision", "version"]
          .flatMap((field) => [field, bad])
      )
      const { nodes } = await admin(one!.url, "GET", "/admin/nodes") as {
        readonly nodes: ReadonlyArray<Readonly<Record<string, unknown>>>
      }
      assert.deepStrictEqual(nodes.map(({ id }) => id), ["bad", "n1", "n2"], bad)
      const zeros = { started_at: 0, config_revision: 0, in_use: 0, waiting: 0 }
      assert.deepInclude(nodes[0], { ...zeros, state: "late", version: bad })
      assert.deepInclude(nodes[2], { state: "up", started_at: started })
      await admin(one!.url, "GET", "/admin/queue/status")
    }
    await command(client, "ZREM", "gw:{main}:nodes", "bad")
    await command(client, "DEL", "gw:{main}:node:bad")
  })

  it("count a price that one node has set for the next request at the other, whose history has the change", async () => {
    const [one, other] = [cluster.nodes[0]!, cluster.nodes[1]!]
    const costAt = async ({ url }: ClusterNode) => {
      const response = await send(url, "!say one")
      assert.strictEqual(response.status, 200, await response.text())
      const id = response.headers.get("x-request-id")!
      // A record is complete just after the reply.
      const { cost } = await untilValue(
        "the record of the request",
        () => admin(url, "GET", `/admin/requests/${id}`),
        ({ outcome }) => outcome !== "open"
      )
      return cost
    }
    assert.strictEqual(await costAt(other), "0.25")
    const prices = { "default/upstream-chat": { per_request: "0.5" } }
    await admin(one.url, "PUT", "/admin/prices", { prices })
    assert.strictEqual(await costAt(one), "0.5")
    await untilHolds(async () => isDeepStrictEqual((await admin(other.url, "GET", "/admin/prices"))["prices"], prices))
    assert.strictEqual(await costAt(other), "0.5")
    const { changes } = await admin(other.url, "GET", "/admin/changes") as {
      readonly changes: ReadonlyArray<Readonly<Record<string, unknown>>>
    }
    assert.deepInclude(changes[0], {
      node: "n1",
      action: "the prices were changed",
      fields: [{ path: "prices.default/upstream-chat.per_request", before: "0.25", after: "0.5" }]
    })
    await untilIdle(cluster)
  })

  it("lose both places of a node that is killed while it waits at both, and none of a slot", async () => {
    const [one, other] = [cluster.nodes[0]!, cluster.nodes[1]!]
    gpu.answer(() => ({ after: "hang" }))
    const streams = [new AbortController(), new AbortController()]
    // The first stream has the one slot of the first target, the second one that of the other.
    const held = send(one.url, "hello", { ...smart, stream: true, signal: streams[0]!.signal }).catch(() => undefined)
    await gpu.until((requests) => requests.length === 1)
    const second = await send(one.url, "!say one\n!fault hang-mid-stream after=1", {
      ...smart,
      stream: true,
      signal: streams[1]!.signal
    })
    assert.strictEqual(second.headers.get("x-gateway-upstream"), "default")
    const lost = chat(other.url, "!say lost", smart).catch(() => undefined)
    await untilQueueAt(one, { in_use: 2, waiting: 1 })
    const behind = chat(one.url, "!say behind", smart)
    await untilQueueAt(one, { in_use: 2, waiting: 2 })
    assert.deepStrictEqual(await placesOf(cluster), [2, 2])

    await other.kill()
    await lost
    await untilQueueAt(one, { in_use: 2, waiting: 1 })
    assert.deepStrictEqual(await placesOf(cluster), [1, 1])
    streams[1]!.abort()
    assert.strictEqual(textOf(await behind), "behind")
    streams[0]!.abort()
    await held
    await gpu.until((requests) => requests.every(({ outcome }) => outcome !== "open"))
    await untilIdle(cluster)
    const client = await cluster.client()
    for (
      const key of [
        "pool:default:several",
        "pool:gpu:several",
        "pool:gpu:lines",
        "pool:gpu:use",
        "tickets:n2",
        "leases:n2"
      ]
    ) {
      assert.strictEqual(await command(client, "EXISTS", `gw:{main}:${key}`), 0, key)
    }
  })

  it("rehearse with a token that another node has made, once, and refuse one that no node has made", async () => {
    const [one, other] = [cluster.nodes[0]!, await cluster.add("n3")]
    await untilReady(other)
    gpu.answer(() => streamed({ content: "of the server" }))
    await untilHolds(async () => textOf(await chat(other.url, "!say default", smart)) === "of the server")
    const { length } = gpu.requests
    const rehearsal = { route: "smart", without: ["gpu/m"] }
    const { token } = await admin(one.url, "POST", "/admin/routes/rehearse", rehearsal) as { readonly token: string }
    const rehearse = (text: string) =>
      send(other.url, "!say default", { ...smart, headers: { "x-gateway-rehearsal": text } })
    for (const text of [`${token}x`, token.replace(/^n1/, "n9")]) assert.strictEqual((await rehearse(text)).status, 400)
    const told = await rehearse(token)
    assert.deepStrictEqual([told.status, told.headers.get("x-gateway-upstream")], [200, "default"])
    assert.strictEqual((await rehearse(token)).status, 400)
    assert.strictEqual(gpu.requests.length, length)
  })

  it("know at each node what the turn before had, and why the prompt cache missed a turn", async () => {
    const [one, other] = [cluster.nodes[0]!, cluster.nodes.at(-1)!]
    const turn = async (
      { id, url }: ClusterNode,
      system: string,
      said: ReadonlyArray<string>,
      prompt: number,
      cached: number
    ) => {
      gpu.answer(() =>
        json(200, {
          object: "chat.completion",
          model: "m",
          choices: [{ index: 0, message: { role: "assistant", content: "Yes" }, finish_reason: "stop" }],
          usage: { prompt_tokens: prompt, completion_tokens: 1, prompt_tokens_details: { cached_tokens: cached } }
        })
      )
      const messages = said.map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content }))
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "gpu/m", messages: [{ role: "system", content: system }, ...messages] })
      })
      assert.strictEqual(response.status, 200)
      await response.text()
      const { node, prompt_cache } = await admin(
        url,
        "GET",
        `/admin/requests/${response.headers.get("x-request-id")!}`
      ) as { readonly node: string; readonly prompt_cache: Readonly<Record<string, unknown>> }
      assert.strictEqual(node, id)
      await untilIdle(cluster)
      return prompt_cache
    }
    const first = await turn(one, "Be kind", ["How are you?"], 2_000, 0)
    assert.deepInclude(first, { predicted: 0, reason: "first_turn" })
    const said = ["How are you?", "Yes", "And now?"]
    const second = await turn(other, "Be kind", said, 2_100, 2_000)
    assert.deepInclude(second, { predicted: 2_000, result: "hit" })
    const third = await turn(one, "Be kind", [...said, "Yes", "Still?"], 2_200, 2_100)
    assert.deepInclude(third, { predicted: 2_100, result: "hit" })
    const changed = await turn(other, "Be kind", [...said, "No", "Really?"], 2_200, 0)
    assert.deepInclude(changed, { result: "miss", reason: "changed", at: "messages[3]" })
  })

  it("fail over to the next target on any node while an upstream refuses connections", async () => {
    const other = cluster.nodes.at(-1)!
    gpu.answer(() => streamed({ content: "of the server" }))
    await untilHolds(async () => textOf(await chat(other.url, "!say default", smart)) === "of the server")
    await gpu.stop()
    for (const { url } of [cluster.nodes[0]!, other]) {
      assert.strictEqual(textOf(await chat(url, "!say default", smart)), "default")
    }
    await untilIdle(cluster)
  })
})
