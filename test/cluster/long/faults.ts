/**
 * Long faults: nodes and stores that hang, restart, fill up or lose messages, and a wrong clock. After each fault the
 * limits still hold, and nothing is in use or waits on either side.
 */
import { afterEach, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import path from "node:path"
import { accounts, admin, chat, emailOf, type Said, send, times } from "../../gateway/support.ts"
import { command, listOf } from "../../support/redisServer.ts"
import {
  type Cluster,
  type ClusterNode,
  type ClusterOptions,
  startCluster,
  untilIdle,
  untilQueueAt,
  untilReady
} from "../cluster.ts"

const perAccount = 2
const names = ["a", "b", "c", "d"]
const config = { accounts: accounts(...names), runtime: { account_max_inflight: perAccount, account_max_queue: 400 } }

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** Expected outcomes of a request. */
const truthful = new Set(["ok", "store_unavailable", "rate_limit_exceeded", "cut"])

const outcomeOf = (said: Said): string => said.error?.code ?? (said.finish === "stop" ? "ok" : "cut")

/** Sends requests to every node until stopped; returns the number of requests by outcome. */
const load = (nodes: () => ReadonlyArray<ClusterNode>, callers: number) => {
  let running = true
  const outcomes = new Map<string, number>()
  const note = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  const caller = async (i: number) => {
    for (let n = 0; running; n++) {
      const all = nodes()
      const { url } = all[(i + n) % all.length]!
      const outcome = await chat(url, `!pace 3\n!count ${2 + (i + n) % 6}`, { stream: n % 2 === 0 }).then(
        outcomeOf,
        () => "cut"
      )
      note(outcome)
      if (outcome !== "ok") await pause(50)
    }
  }
  const callersDone = times(callers, caller)
  return {
    outcomes,
    stop: async () => {
      running = false
      await Promise.all(callersDone)
      return outcomes
    }
  }
}

let cluster: Cluster
afterEach(() => cluster.stop())

const begin = async (options: Partial<ClusterOptions> = {}) => {
  cluster = await startCluster({ nodes: 4, config, storeTimeoutMillis: 250, reference: { remember: 0 }, ...options })
  return cluster
}

const held = async (most = perAccount) => {
  const report = await untilIdle(cluster)
  for (const name of names) assert.isAtMost(report.mostAtOnce[emailOf(name)] ?? 0, most, name)
  return report
}

const checkOutcomes = (outcomes: ReadonlyMap<string, number>) => {
  for (const [outcome, count] of outcomes) assert.isTrue(truthful.has(outcome), `${count} ${outcome}`)
  assert.isAbove(outcomes.get("ok") ?? 0, 20)
}

describe("four nodes under load", () => {
  it("survive kill -9 of two nodes, and accept a new one", async () => {
    const { nodes } = await begin()
    const alive = () =>
      nodes.filter(({ running }) => running.child.exitCode === null && running.child.signalCode === null)
    const work = load(alive, 40)
    await pause(2_000)
    await nodes[0]!.kill()
    await pause(1_000)
    await nodes[1]!.kill()
    await pause(4_000)
    await cluster.add("n5")
    await pause(2_000)
    checkOutcomes(await work.stop())
    // Requests of a killed node may still run at the upstream when their slots are granted again, but no others.
    await untilIdle(cluster)
  })

  for (const millis of [2_000, 8_000]) {
    it(`continue while one hangs for ${millis} ms, and accept it again`, async () => {
      const { nodes } = await begin()
      const work = load(() => nodes.slice(1), 30)
      const stopped = load(() => nodes.slice(0, 1), 5)
      await pause(1_500)
      nodes[0]!.signal("SIGSTOP")
      await pause(millis)
      nodes[0]!.signal("SIGCONT")
      await pause(3_000)
      checkOutcomes(await work.stop())
      await stopped.stop()
      await untilReady(nodes[0]!)
      await untilIdle(cluster)
    })
  }

  it("survive a store that hangs for two seconds", async () => {
    const { nodes } = await begin()
    const client = await cluster.client()
    const work = load(() => nodes, 40)
    await pause(1_500)
    await command(client, "CLIENT", "PAUSE", "2000", "ALL")
    await pause(5_000)
    checkOutcomes(await work.stop())
    await held()
  })

  it("survive a store whose process hangs for eight seconds", async () => {
    const { nodes, store } = await begin()
    const work = load(() => nodes, 40)
    await pause(1_500)
    store.process.kill("SIGSTOP")
    await pause(8_000)
    store.process.kill("SIGCONT")
    await pause(4_000)
    checkOutcomes(await work.stop())
    for (const node of nodes) await untilReady(node)
    await untilIdle(cluster)
  })

  for (const data of [true, false]) {
    it(`survive a store that restarts ${data ? "with" : "without"} its data`, async () => {
      const { nodes, store } = await begin()
      const work = load(() => nodes, 40)
      await pause(2_000)
      await store.stop(data)
      await pause(1_000)
      await store.start()
      await pause(9_000)
      checkOutcomes(await work.stop())
      await held()
    })
  }

  it("lose no grant when messages are lost", async () => {
    const { nodes } = await begin()
    const client = await cluster.client()
    const work = load(() => nodes, 40)
    for (let i = 0; i < 20; i++) {
      await pause(250)
      await command(client, "CLIENT", "KILL", "TYPE", "pubsub")
    }
    checkOutcomes(await work.stop())
    await held()
  })

  it("apply lowered limits and the removal of an account", async () => {
    const { nodes } = await begin()
    const work = load(() => nodes, 40)
    await pause(1_500)
    await admin(nodes[0]!.url, "PUT", "/admin/settings", { runtime: { account_max_inflight: 1 } })
    await admin(nodes[1]!.url, "DELETE", `/admin/accounts/${emailOf("d")}`)
    await pause(1_500)
    await Effect.runPromise(cluster.reference.forget)
    const before = (await cluster.report()).requests.length
    await pause(2_000)
    checkOutcomes(await work.stop())
    const report = await untilIdle(cluster)
    assert.strictEqual(before, 0)
    assert.isUndefined(report.mostAtOnce[emailOf("d")])
    for (const name of ["a", "b", "c"]) assert.isAtMost(report.mostAtOnce[emailOf(name)] ?? 0, 1)
  })

  it("survive a store without free memory, and continue when it has some", async () => {
    const { nodes } = await begin()
    const client = await cluster.client()
    const work = load(() => nodes, 20)
    await pause(1_500)
    await command(client, "CONFIG", "SET", "maxmemory", "1mb")
    await pause(2_000)
    await command(client, "CONFIG", "SET", "maxmemory", "0")
    await pause(3_000)
    checkOutcomes(await work.stop())
    for (const node of nodes) await untilReady(node)
    await held()
  })
})

describe("one node of a cluster", () => {
  it("works with a clock that is an hour ahead", async () => {
    await begin({ nodes: 1 })
    const ahead = path.join(import.meta.dirname, "../hourAhead.ts")
    const wrong = await cluster.add("wrong", { NODE_OPTIONS: `--import=${ahead}` })
    const work = load(() => cluster.nodes, 20)
    const login = await fetch(`${wrong.url}/admin/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ admin_key: "test-admin-key" })
    })
    const { token } = await login.json() as { readonly token: string }
    const verified = await fetch(`${cluster.nodes[0]!.url}/admin/verify`, {
      headers: { authorization: `Bearer ${token}` }
    })
    assert.strictEqual(verified.status, 200)
    await pause(3_000)
    checkOutcomes(await work.stop())
    await held()
  })

  it("killed during a login: another node logs in", async () => {
    await begin({ nodes: 2 })
    const [first, second] = cluster.nodes
    await Effect.runPromise(cluster.reference.fail({ name: "hang-before-headers", call: "login", times: 1 }))
    const lost = chat(first!.url, "!say lost", { target: emailOf("a") }).then(outcomeOf, () => "cut")
    await cluster.until(({ open }) => open > 0)
    const other = chat(second!.url, "!say found", { target: emailOf("a") })
    await pause(300)
    await first!.kill()
    assert.strictEqual(await lost, "cut")
    assert.strictEqual(outcomeOf(await other), "ok")
    await untilIdle(cluster)
  })

  it("killed during the probe of an account: another node probes it", async () => {
    await begin({ nodes: 2, config: { ...config, accounts: accounts("a") } })
    const client = await cluster.client()
    const [, second] = cluster.nodes
    await Effect.runPromise(cluster.reference.suspend(emailOf("a"), true))
    assert.notStrictEqual(outcomeOf(await chat(second!.url, "!say no")), "ok")
    await Effect.runPromise(cluster.reference.suspend(emailOf("a"), false))
    const [name = ""] = await listOf(client, "ZRANGE", "gw:{main}:pool:default:untried", "0", "-1")
    await Effect.runPromise(cluster.reference.fail({ name: "hang-before-headers", call: "login", times: 1 }))
    await command(client, "ZADD", "gw:{main}:pool:default:untried", "XX", "1", name)
    let tried: string | undefined
    while (tried === undefined) {
      await pause(50)
      const account: unknown = JSON.parse(String(await command(client, "HGET", "gw:{main}:accounts", name)))
      tried = (account as { readonly trying?: string }).trying
    }
    await cluster.until(({ open }) => open > 0)
    const trying = cluster.nodes.find(({ id }) => id === tried)!
    const rest = cluster.nodes.find(({ id }) => id !== tried)!
    await trying.kill()
    for (;;) {
      if (outcomeOf(await chat(rest.url, "!say back")) === "ok") break
      await pause(100)
    }
    await untilIdle(cluster)
  })

  it("keeps the order of its waiters while another node drains", async () => {
    await begin({
      nodes: 2,
      config: { ...config, accounts: accounts("a"), runtime: { account_max_inflight: 1, account_max_queue: 50 } }
    })
    const [first, second] = cluster.nodes
    const abort = new AbortController()
    const response = await send(first!.url, "!say one\n!fault hang-mid-stream after=1", {
      stream: true,
      signal: abort.signal
    })
    assert.strictEqual(response.status, 200)
    const waiting = times(10, (i) => chat((i % 2 === 0 ? first! : second!).url, `!say ${i}`))
    await untilQueueAt(second!, { waiting: 10 })
    first!.signal("SIGTERM")
    await pause(500)
    abort.abort()
    assert.deepStrictEqual((await Promise.all(waiting)).map(outcomeOf), times(10, () => "ok"))
    assert.strictEqual((await first!.running.ended).code, 0)
    await untilIdle(cluster)
  })
})
