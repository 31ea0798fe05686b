/**
 * Two gateways over a store with TLS, as a user with only the documented rights: their interaction beyond requests.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import { makeEncryption } from "../../src/cluster/store/encryption.ts"
import { proveDocument } from "../../src/config/sharedDocument.ts"
import { accounts, admin, chat, emailOf, send, textOf } from "../gateway/support.ts"
import { businessKey } from "../support/gateway.ts"
import { documentedRights } from "../support/redisGroups.ts"
import { command, redisServer, speaksTls, tlsServer } from "../support/redisServer.ts"
import { untilHolds } from "../support/until.ts"
import { type Cluster, clusterKey, startCluster, untilIdle, untilReady } from "./cluster.ts"

const user = ["--user", "gateway", "on", ">a-password", ...documentedRights("~gw:")]

/** Without TLS support in the server, only the user is tested. */
const secured = speaksTls()
  ? Effect.map(tlsServer(...user), ({ cert, server }) => ({
    server,
    url: `rediss://gateway:a-password@127.0.0.1:${server.port}`,
    env: { NODE_EXTRA_CA_CERTS: cert }
  }))
  : Effect.map(redisServer(...user), (server) => ({
    server,
    url: `redis://gateway:a-password@127.0.0.1:${server.port}`,
    env: {}
  }))

describe("two nodes over a store with TLS and a user with few rights", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "secured-"))
  const file = path.join(folder, "config.json")
  /** The traces that the collector has received. */
  const exported: Array<string> = []
  const collector = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString()
    })
    request.on("end", () => {
      exported.push(body)
      response.setHeader("content-type", "application/json")
      response.end("{}")
    })
  })
  let cluster: Cluster
  const urlOf = (i: number) => cluster.nodes[i]!.url
  const config = { keys: [businessKey], accounts: accounts("a"), runtime: { account_max_inflight: 4 } }

  beforeAll(async () => {
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", () => resolve()))
    cluster = await startCluster({ nodes: 1, config, store: secured })
    const { port } = collector.address() as AddressInfo
    // The file of the second node; its upstream comes from the store.
    writeFileSync(file, JSON.stringify({ ...config, model_aliases: { "of-the-file": "upstream-chat" } }))
    await cluster.add("n2", {
      GATEWAY_CONFIG_JSON: "",
      GATEWAY_CONFIG_PATH: file,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_BSP_SCHEDULE_DELAY: "50"
    })
  }, 60_000)
  afterAll(async () => {
    await cluster.stop()
    await new Promise((resolve) => collector.close(resolve))
    rmSync(folder, { recursive: true, force: true })
  })

  it("work with the documented rights", async () => {
    for (const i of [0, 1]) assert.strictEqual(textOf(await chat(urlOf(i), "!say one")), "one")
    const { nodes, store } = await admin(urlOf(1), "GET", "/admin/nodes") as {
      readonly nodes: ReadonlyArray<{ readonly id: string }>
      readonly store: { readonly url: string }
    }
    assert.deepStrictEqual(nodes.map(({ id }) => id), ["n1", "n2"])
    assert.strictEqual(store.url, `${speaksTls() ? "rediss" : "redis"}://127.0.0.1:${cluster.store.port}`)
    // Covers every use of the store.
    const made = await fetch(`${urlOf(0)}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "upstream-chat", input: "!say two" })
    })
    const { id } = await made.json() as { readonly id: string }
    for (const method of ["GET", "DELETE"]) {
      const there = await fetch(`${urlOf(1)}/v1/responses/${id}`, {
        method,
        headers: { authorization: `Bearer ${businessKey}` }
      })
      assert.strictEqual(there.status, 200)
    }
    const { items } = await admin(urlOf(0), "GET", "/admin/requests") as { readonly items: ReadonlyArray<object> }
    assert.lengthOf(items, 3)
    for (const list of ["/admin/keys", "/admin/usage?by=key"]) await admin(urlOf(1), "GET", list)
    const metrics = await (await fetch(`${urlOf(1)}/metrics`, { headers: { authorization: "Bearer test-admin-key" } }))
      .text()
    assert.match(metrics, /^gateway_store_round_trip_seconds_count [1-9]/m)
    const client = await cluster.client()
    assert.deepStrictEqual(await command(client, "ACL", "LOG"), [])
    await untilIdle(cluster)
  })

  it("name the node in each trace", async () => {
    await untilHolds(async () => {
      await chat(urlOf(1), "!say one")
      return exported.some((body) => body.includes("service.instance.id"))
    })
    const spans = exported.find((body) => body.includes("resourceSpans")) ?? "{}"
    const { resourceSpans: [first] } = JSON.parse(spans) as {
      readonly resourceSpans: ReadonlyArray<{
        readonly resource: { readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: object }> }
      }>
    }
    assert.deepInclude([...first?.resource.attributes ?? []], {
      key: "service.instance.id",
      value: { stringValue: "n2" }
    })
  })

  it("delete all sessions of an account once no node has a lease on it", async () => {
    await admin(urlOf(0), "PUT", "/admin/settings", { auto_delete: { mode: "all" } })
    await untilHolds(async () => {
      const { auto_delete } = await admin(urlOf(1), "GET", "/admin/settings") as {
        readonly auto_delete: { readonly mode: string }
      }
      return auto_delete.mode === "all"
    })
    const before = (await cluster.report()).calls.delete_all
    const held = await send(urlOf(0), "!say one\n!fault hang-mid-stream after=1", { stream: true })
    assert.strictEqual(held.status, 200)
    // The clean-up on one node waits for the lease of the other.
    assert.strictEqual(textOf(await chat(urlOf(1), "!say two", { target: emailOf("a") })), "two")
    assert.strictEqual(textOf(await chat(urlOf(0), "!say three")), "three")
    assert.strictEqual((await cluster.report()).calls.delete_all, before)
    await held.body?.cancel()
    await cluster.until(({ calls, sessions }) => calls.delete_all === before + 1 && sessions.open === 0)
    await admin(urlOf(0), "PUT", "/admin/settings", { auto_delete: { mode: "none" } })
    await untilIdle(cluster)
  })

  it("apply an edit of one node's file to both, merged with other changes", async () => {
    await admin(urlOf(0), "POST", "/admin/keys", { key: "of an operator" })
    writeFileSync(file, JSON.stringify({ ...config, keys: [businessKey, "of the file"] }))
    await cluster.nodes[1]!.running.printed(/was edited: the change applies to all nodes/)
    for (const i of [0, 1]) {
      await untilHolds(async () => {
        const { keys } = await admin(urlOf(i), "GET", "/admin/config") as { readonly keys: ReadonlyArray<string> }
        return keys.length === 3
      })
    }
    assert.strictEqual(textOf(await chat(urlOf(0), "!say hello", { key: "of the file" })), "hello")
    assert.strictEqual(textOf(await chat(urlOf(1), "!say hello", { key: "of an operator" })), "hello")
    // The history of every node has each change once, from the node that made it.
    await untilHolds(async () => {
      const { changes } = await admin(urlOf(0), "GET", "/admin/changes?limit=2") as {
        readonly changes: ReadonlyArray<{ readonly who: unknown; readonly node: string; readonly action: string }>
      }
      return JSON.stringify(changes.map(({ action, node, who }) => [node, action, who])) === JSON.stringify([
        [cluster.nodes[1]!.id, "the configuration file was edited", { kind: "file", name: file }],
        [cluster.nodes[0]!.id, "a gateway key was added", { kind: "key", name: null }]
      ])
    })
    // An invalid document is rejected with a message and changes nothing.
    writeFileSync(file, JSON.stringify({ ...config, runtime: { account_max_inflight: "many" } }))
    await cluster.nodes[1]!.running.printed(/The edit is not applied: [^\n]*runtime\.account_max_inflight/)
    assert.strictEqual(textOf(await chat(urlOf(1), "!say hello", { key: "of the file" })), "hello")
    await untilIdle(cluster)
  })

  it("are not ready while the shared document is invalid for them, and keep the last valid one", async () => {
    const client = await cluster.client()
    const seals = makeEncryption(clusterKey, undefined)
    const place = "gw:{main}:config"
    const document = seals.open(place, String(await command(client, "HGET", place, "document"))) ?? ""
    const put = async (text: string) => {
      const revision = Number(await command(client, "HGET", place, "revision")) + 1
      const sealed = seals.seal(place, text)
      const proof = proveDocument(seals, revision, sealed)
      await command(client, "HSET", place, "document", sealed, "proof", proof, "revision", String(revision))
      await command(client, "HSET", "gw:{main}:lim", "revision", String(revision))
    }
    // Saved as by a node of another version.
    await put(JSON.stringify({ ...JSON.parse(document) as object, runtime: { account_max_inflight: "many" } }))
    for (const { running, url } of cluster.nodes) {
      await running.printed(/runtime\.account_max_inflight/)
      await untilHolds(async () => (await fetch(`${url}/readyz`)).status === 503)
      assert.include(await (await fetch(`${url}/readyz`)).text(), "invalid for this node")
      assert.strictEqual((await fetch(`${url}/healthz`)).status, 200)
      assert.strictEqual(textOf(await chat(url, "!say still")), "still")
    }
    await put(document)
    for (const node of cluster.nodes) await untilReady(node)
    await untilIdle(cluster)
  })
})
