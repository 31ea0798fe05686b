/** docs/reference/metrics.md names exactly the metrics that the gateway exports, with their types, labels and meanings. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { once } from "node:events"
import { readdirSync, readFileSync } from "node:fs"
import { connect } from "node:net"
import path from "node:path"
import { Accounts } from "../../src/accounts/Accounts.ts"
import { makeRequestStats } from "../../src/completion/RequestStats.ts"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { RequestMetrics } from "../../src/server/observability/requestMetrics.ts"
import { anywhere, managed } from "../accounts/support.ts"
import { accounts, times } from "../gateway/support.ts"
import { startReceiver } from "../server/webhooks/receiver.ts"
import { Client } from "../styles/responses/socket/client.ts"
import { adminKey, businessKey, startGateway } from "../support/gateway.ts"
import { metricsOf, metricsTable } from "../support/metricsTable.ts"
import { untilHolds, untilValue } from "../support/until.ts"
import { type ClusterNode, startCluster } from "./cluster.ts"

const scrape = async (url: string): Promise<string> => {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
  assert.strictEqual(response.status, 200)
  return await response.text()
}

/** Sends the turns of a conversation, those of the user and those of the assistant by turns; returns the status. */
const turn = async (url: string, turns: ReadonlyArray<string>): Promise<number> => {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify({
      model: "upstream-chat",
      messages: turns.map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content }))
    })
  })
  await response.text()
  return response.status
}

const limited = keyId(businessKey, sha256Hex)

/** A node of a store with several upstreams, sticky conversations and a key with limits, after two turns. */
const sharedScrape = async (): Promise<string> => {
  const cluster = await startCluster({
    nodes: 2,
    config: {
      accounts: accounts("a"),
      runtime: { sticky: true },
      upstreams: { other: { driver: "session", base_url: "http://127.0.0.1:9" } },
      key_records: { [limited]: { limits: [{ window: "day", requests: 10 }] } }
    }
  })
  try {
    const [{ url }, other] = cluster.nodes as [ClusterNode, ClusterNode]
    for (const said of [[], ["one", "!say two"]]) assert.strictEqual(await turn(url, ["!say one", ...said]), 200)
    // The limits of a key hold over all nodes, and so does their use.
    assert.include(
      await scrape(other.url),
      `gateway_key_limit_used_ratio{key="${limited}",window="day",unit="requests"} 0.2\n`
    )
    return await scrape(url)
  } finally {
    await cluster.stop()
  }
}

/** A gateway alone that has refused a connection, and has counted requests of every kind. */
const ownScrape = async (): Promise<string> => {
  const connections = 16
  const receiver = await startReceiver()
  receiver.answer = (response) => void response.writeHead(410).end()
  const secret = `whsec_${Buffer.alloc(32).toString("base64")}`
  const gateway = await startGateway({
    limits: { connections },
    accounts: [{ token: "key" }],
    webhooks: [{ name: "ops", url: receiver.url, secret, events: ["price.missing"] }]
  })
  const sockets = times(connections + 1, () => connect(Number(new URL(gateway.url).port), "127.0.0.1"))
  try {
    for (const socket of sockets) socket.on("error", () => undefined).resume()
    await Promise.race(sockets.map((socket) => once(socket, "close")))
    for (const socket of sockets) socket.destroy()
    await untilHolds(() => fetch(`${gateway.url}/healthz`).then(() => true, () => false))
    const usedUp = {
      "x-codex-primary-used-percent": "100",
      "x-codex-primary-window-minutes": "300",
      "x-codex-primary-reset-after-seconds": "60"
    }
    const lease = Context.get(gateway.services, Accounts).lease(managed(), anywhere)
    const learned = Effect.map(lease, ({ shown }) => shown.saw(usedUp, undefined, undefined))
    assert.deepInclude(await Effect.runPromise(Effect.scoped(learned)), { isOfModel: false })
    Context.get(gateway.services, RequestMetrics).count({
      ...makeRequestStats("id", 0),
      style: "chat",
      requestedModel: "m",
      model: "m",
      target: { upstream: "other", model: "m" },
      attempts: 3,
      failovers: 1,
      retries: 1,
      continues: 1,
      calls: 1,
      brokenCalls: 1,
      firstEventAt: 1,
      usage: { promptTokens: 1, completionTokens: 1, reasoningTokens: 0, cachedTokens: 0 },
      cost: 1n,
      reserved: { tokens: 1, cost: 0n },
      billed: [{
        upstream: "other",
        model: "m",
        account: undefined,
        usage: {
          promptTokens: 1,
          completionTokens: 1,
          reasoningTokens: 0,
          cachedTokens: 0,
          details: { isCostRefused: true }
        },
        isWasted: false,
        recorded: undefined,
        bill: { cost: 1n, source: "prices", price: undefined, unpriced: [["output", 1]] }
      }],
      promptCache: {
        prompt: 9,
        read: 1,
        written: 1,
        predicted: 5,
        result: "partial",
        reason: "not_kept",
        at: undefined,
        because: undefined,
        age: undefined
      },
      error: "upstream_error"
    })
    const client = await Client.open(gateway.url)
    client.close()
    await client.end()
    await untilValue(
      "the connection and the delivery are counted",
      () => scrape(gateway.url),
      (text) => text.includes("websockets_total") && text.includes("webhook_dropped_total")
    )
    return await scrape(gateway.url)
  } finally {
    await gateway.stop()
    await receiver.stop()
  }
}

/** The names of metrics that the sources make. */
const namesInSources = (): Array<string> => {
  const folder = path.join(import.meta.dirname, "../../src")
  const made = /(?:Metric\.(?:counter|gauge|histogram)|total|gauge|family)\(\s*"([a-z_]+)"/g
  const texts = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))
    .map((file) => readFileSync(path.join(folder, file), "utf8"))
  return [...new Set(texts.flatMap((text) => [...text.matchAll(made)].map(([, name = ""]) => name)))]
}

describe("docs/reference/metrics.md", () => {
  it("names each metric with its type, its labels and its meaning, and no other", async () => {
    const exported = metricsOf([await sharedScrape(), await ownScrape()])
    const described = metricsTable()
    assert.sameMembers([...described.keys()], [...exported.keys()])
    for (const [name, metric] of exported) assert.deepEqual(described.get(name), metric, name)
    assert.sameMembers([...exported.keys()], namesInSources())
  })
})
