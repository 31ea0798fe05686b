/**
 * Four gateways as processes, one store, one upstream that reports the ground truth.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { accounts, admin, chat, emailOf, type Said, send, textOf, times } from "../gateway/support.ts"
import { adminKey, businessKey } from "../support/gateway.ts"
import { command, connect, listOf } from "../support/redisServer.ts"
import { untilHolds } from "../support/until.ts"
import { type Cluster, clusterKey, queueAt, startCluster, untilIdle, untilQueueAt, untilReady } from "./cluster.ts"

const perAccount = 2
const all = 8
const queue = 100
const names = ["a", "b", "c", "d"]

/** A stream that runs until it is ended, with its text. */
const holdAt = async (url: string, target?: string) => {
  const abort = new AbortController()
  const response = await send(url, "!say one\n!fault hang-mid-stream after=1", {
    stream: true,
    signal: abort.signal,
    ...(target === undefined ? {} : { target })
  })
  assert.strictEqual(response.status, 200, response.status === 200 ? "" : await response.text())
  return { response, end: () => abort.abort() }
}

/** Sends a request and retries after `Retry-After`, like a client. */
const persistent = async (url: string, prompt: string, options?: Parameters<typeof chat>[2]): Promise<Said> => {
  let said: Said | undefined
  await untilHolds(async () => {
    said = await chat(url, prompt, options)
    return said.error?.code !== "store_unavailable"
  })
  return said!
}

/** Repeats a request until the reply matches: a slow node is missing from another node's report. */
const replyWith = async <A>(ask: () => Promise<A>, holds: (reply: A) => boolean): Promise<A> => {
  let reply = await ask()
  await untilHolds(async () => holds(reply) || (reply = await ask(), false))
  return reply
}

/** Repeats a request until the given nodes are missing. */
const replyOfAll = <A extends { readonly nodes_missing: ReadonlyArray<string> }>(
  ask: () => Promise<A>,
  but: ReadonlyArray<string> = []
): Promise<A> => replyWith(ask, ({ nodes_missing }) => nodes_missing.join() === but.join())

describe("four nodes over one store", () => {
  let cluster: Cluster
  const node = (i: number) => cluster.nodes[i % 4]!
  beforeAll(async () => {
    cluster = await startCluster({
      nodes: 4,
      config: { accounts: accounts(...names), runtime: { account_max_inflight: perAccount, account_max_queue: queue } },
      reference: { maxRunning: perAccount, remember: 1_000 }
    })
  })
  afterAll(() => cluster.stop())

  it("a logout on one node ends the login on all, and records of requests name their node", async () => {
    const headers = { "sec-fetch-site": "same-origin", "content-type": "application/json" }
    const body = JSON.stringify({ admin_key: adminKey })
    const login = await fetch(`${node(0).url}/admin/session`, { method: "POST", headers, body })
    assert.strictEqual((await login.json() as { readonly success: boolean }).success, true)
    const cookie = login.headers.get("set-cookie")!.split(";")[0]!
    const statusAt = async (i: number) => {
      const response = await fetch(`${node(i).url}/admin/queue/status`, { headers: { ...headers, cookie } })
      await response.arrayBuffer()
      return response.status
    }
    assert.deepStrictEqual(await Promise.all(times(4, statusAt)), [200, 200, 200, 200])
    const logout = await fetch(`${node(1).url}/admin/session`, { method: "DELETE", headers: { ...headers, cookie } })
    await logout.arrayBuffer()
    assert.deepStrictEqual(await Promise.all(times(4, statusAt)), [401, 401, 401, 401])
    assert.strictEqual(textOf(await chat(node(2).url, "!say one")), "one")
    const { items } = await admin(node(2).url, "GET", "/admin/requests") as {
      readonly items: ReadonlyArray<Record<string, unknown>>
    }
    assert.deepInclude(items[0], { node: "n3", style: "chat" })
  })

  it("reach the limits together and never exceed them, and log in once per account", async () => {
    for (const { end } of await Promise.all(times(all, (i) => holdAt(node(i).url)))) end()
    // On a busy machine the store seems not to answer.
    const answers = await Promise.all(
      times(100, (i) => persistent(node(i).url, `!pace 4\n!count ${3 + i % 5}`, { stream: i % 2 === 0 }))
    )
    assert.deepStrictEqual(answers.map(textOf), times(100, (i) => times(3 + i % 5, (n) => String(n + 1)).join(" ")))
    const report = await untilIdle(cluster)
    assert.strictEqual(report.mostStreams, all)
    for (const name of names) {
      assert.strictEqual(report.mostAtOnce[emailOf(name)], perAccount)
      assert.strictEqual(report.logins[emailOf(name)], 1)
      // Rotation is even: every account serves its share, minus the requests for which it was busy.
      const served = report.requests.filter(({ account, call }) => call === "completion" && account === emailOf(name))
      assert.isAtLeast(served.length, 15)
    }
    const list = () =>
      admin(node(2).url, "GET", "/admin/nodes") as unknown as Promise<{
        readonly nodes: ReadonlyArray<{ readonly id: string; readonly self: boolean; readonly state: string }>
        readonly store: { readonly url: string }
      }>
    // A node whose heartbeat is delayed by a busy machine is late for a while.
    const { nodes, store } = await replyWith(list, (reply) => reply.nodes.every(({ state }) => state !== "late"))
    assert.deepStrictEqual(
      nodes.map(({ id, self, state }) => [id, self, state]),
      times(4, (i) => [`n${i + 1}`, i === 2, "up"])
    )
    assert.strictEqual(store.url, cluster.store.url)
  })

  it("serve waiters in order of arrival, and reject requests beyond the queue's limit", async () => {
    const held = await Promise.all(times(all, (i) => holdAt(node(i).url)))
    const waiting: Array<Promise<unknown>> = []
    for (let i = 0; i < 24; i++) {
      waiting.push(chat(node(i * 3).url, `!say number ${i}`).then(textOf))
      await untilQueueAt(node(0), { waiting: i + 1 })
    }
    const more = times(queue - 24, (i) => chat(node(i).url, "!say later").then(textOf))
    await untilQueueAt(node(1), { waiting: queue })
    const refused = await chat(node(3).url, "!say no")
    assert.deepInclude(refused, { status: 429, retryAfter: "2" })
    assert.strictEqual(refused.error?.code, "rate_limit_exceeded")
    const status = await queueAt(node(2))
    assert.deepInclude(status, { in_use: all, waiting: queue, max_queue_size: queue })
    const shares = status["nodes"] as ReadonlyArray<{ readonly in_use: number; readonly waiting: number }>
    assert.strictEqual(shares.reduce((sum, share) => sum + share.in_use, 0), all)
    assert.strictEqual(shares.reduce((sum, share) => sum + share.waiting, 0), queue)
    // One slot comes free at a time, so that the upstream sees the order.
    const before = (await cluster.report()).requests.length
    held[0]!.end()
    await Promise.all(waiting)
    for (const { end } of held) end()
    await Promise.all(more)
    const report = await untilIdle(cluster)
    const order = report.requests.slice(before).flatMap(({ prompt }) => /number (\d+)/.exec(prompt ?? "")?.[1] ?? [])
    assert.deepStrictEqual(order, times(24, String))
  })

  it("release the leases of a killed node, and keep the order of the other waiters", async () => {
    const killed = await cluster.add("killed")
    const held = await Promise.all(times(all, (i) => holdAt(i < 5 ? killed.url : node(i).url)))
    const lost = times(3, () => chat(killed.url, "!say lost").catch(() => "lost"))
    await untilQueueAt(node(0), { waiting: 3 })
    const waiting = times(5, (i) => chat(node(i).url, `!say ${i}`))
    await untilQueueAt(node(0), { waiting: 8 })
    await killed.kill()
    assert.deepStrictEqual((await Promise.all(waiting)).map(textOf), times(5, String))
    assert.deepStrictEqual(await Promise.all(lost), ["lost", "lost", "lost"])
    for (const { end } of held) end()
    await untilIdle(cluster)
  })

  it("continue after a period in which messages were lost", async () => {
    const client = await cluster.client()
    const held = await Promise.all(times(all, (i) => holdAt(node(i).url)))
    const waiting = times(12, (i) => chat(node(i).url, `!say ${i}`))
    await untilQueueAt(node(0), { waiting: 12 })
    await command(client, "CLIENT", "KILL", "TYPE", "pubsub")
    await command(client, "SCRIPT", "FLUSH")
    for (const { end } of held) end()
    assert.deepStrictEqual((await Promise.all(waiting)).map(textOf), times(12, String))
    await untilIdle(cluster)
  })

  it("during a loss of the store and its data, finish running requests, reject new ones, then continue", async () => {
    const held = await holdAt(node(0).url)
    const running = chat(node(1).url, "!count 60\n!fault hang-mid-stream after=20", { stream: true })
    await untilQueueAt(node(0), { in_use: 2 })
    await cluster.until(({ streams }) => streams === 2)
    await cluster.store.stop()
    await untilHolds(async () => (await fetch(`${node(2).url}/readyz`)).status === 503)
    const refused = await chat(node(2).url, "!say no")
    assert.deepInclude(refused, { status: 503, retryAfter: "1" })
    assert.deepInclude(refused.error, { code: "store_unavailable", type: "service_unavailable_error" })
    const change = await fetch(`${node(2).url}/admin/keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
      body: JSON.stringify({ key: "never" })
    })
    assert.deepStrictEqual([change.status, change.headers.get("retry-after")], [503, "1"])
    const queueThen = await fetch(`${node(2).url}/admin/queue/status`, {
      headers: { authorization: `Bearer ${adminKey}` }
    })
    assert.deepStrictEqual([queueThen.status, queueThen.headers.get("retry-after")], [503, "1"])
    assert.deepStrictEqual(await queueThen.json(), { detail: "The gateway's shared store does not answer" })
    await Effect.runPromise(cluster.reference.cut("!count 60"))
    assert.strictEqual(textOf(await running), times(60, (n) => String(n + 1)).join(" "))
    await cluster.store.start()
    for (const one of cluster.nodes.slice(0, 4)) await untilReady(one)
    // New requests wait until all nodes have reattached; rejected ones retry.
    const after = times(8, (i) => persistent(node(i).url, `!say ${i}`))
    assert.deepStrictEqual((await Promise.all(after)).map(textOf), times(8, String))
    held.end()
    await untilIdle(cluster)
    const keys = await admin(node(3).url, "GET", "/admin/config")
    assert.notInclude(JSON.stringify(keys), "never")
  })

  it("share the configuration and the admin logins", async () => {
    await admin(node(0).url, "POST", "/admin/keys", { key: "another-key" })
    // The node learns of the key by a message; until then it is a caller's own token.
    await untilHolds(async () => (await chat(node(3).url, "!say hello", { key: "another-key" })).status === 200)
    const login = await fetch(`${node(1).url}/admin/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ admin_key: adminKey })
    })
    const { token } = await login.json() as { readonly token: string }
    const verified = await fetch(`${node(2).url}/admin/verify`, { headers: { authorization: `Bearer ${token}` } })
    assert.strictEqual(verified.status, 200)
    await untilIdle(cluster)
  })

  it("accept a token for the admin API immediately, end its sessions together, and record each change once", async () => {
    const added = await admin(node(0).url, "POST", "/admin/tokens", { name: "of-all-nodes", role: "admin" })
    const { secret, token: { id } } = added as { readonly secret: string; readonly token: { readonly id: string } }
    const call = (i: number, method: string, where: string, bearer: string, body?: unknown) =>
      fetch(`${node(i).url}${where}`, {
        method,
        headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
        body: body === undefined ? null : JSON.stringify(body)
      })
    const changed = await call(1, "PUT", "/admin/settings", secret, { runtime: { token_refresh_interval_hours: 7 } })
    assert.strictEqual(changed.status, 200)
    const { token } = await (await call(2, "POST", "/admin/login", "", { admin_key: secret })).json() as {
      readonly token: string
    }
    assert.strictEqual((await call(3, "GET", "/admin/settings", token)).status, 200)
    await admin(node(3).url, "DELETE", `/admin/tokens/${id}`)
    for (const i of [0, 1, 2, 3]) {
      for (const bearer of [secret, token]) {
        await untilHolds(async () => (await call(i, "GET", "/admin/settings", bearer)).status === 401)
      }
      const { changes } = await admin(node(i).url, "GET", "/admin/changes?limit=3") as {
        readonly changes: ReadonlyArray<{ readonly who: { readonly name: string | null }; readonly node: string }>
      }
      assert.deepStrictEqual(changes.map(({ node, who: { name } }) => [node, name]), [
        [node(3).id, null],
        [node(1).id, "of-all-nodes"],
        [node(0).id, null]
      ])
    }
  })

  it("count wrong credentials together: those at one node slow down logins at all", async () => {
    const guess = (i: number) =>
      fetch(`${node(i).url}/admin/login`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ admin_key: "wrong" })
      })
    let slowed: Response | undefined
    for (let i = 0; i < 40 && slowed === undefined; i++) {
      const response = await guess(0)
      assert.include([401, 429], response.status)
      if (response.headers.get("retry-after") !== null) slowed = response
    }
    assert.isDefined(slowed)
    for (;;) {
      if ((await guess(3)).headers.get("retry-after") !== null) break
    }
  })

  it("share stored responses: another node reads, continues and deletes a response", async () => {
    const ask = (i: number, method: string, path: string, body?: unknown) =>
      fetch(`${node(i).url}/v1/responses${path}`, {
        method,
        headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
        body: body === undefined ? null : JSON.stringify(body)
      })
    const streamed = await ask(0, "POST", "", { model: "upstream-chat", input: "!say a stored secret", stream: true })
    const text = await streamed.text()
    const id = /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? ""
    const stored = await (await ask(1, "GET", `/${id}`)).json() as { readonly status: string }
    assert.strictEqual(stored.status, "completed")
    const further = await ask(2, "POST", "", {
      model: "upstream-chat",
      input: "!echo-prompt",
      previous_response_id: id
    })
    assert.include(await further.text(), "a stored secret")
    assert.strictEqual((await ask(3, "DELETE", `/${id}`)).status, 200)
    assert.strictEqual((await ask(0, "GET", `/${id}`)).status, 404)
    await untilIdle(cluster)
  })

  it("write only encrypted values to the store", async () => {
    const client = await cluster.client()
    const seen: Array<string> = []
    const monitor = await connect(cluster.store.socket)
    await monitor.monitor((line) => seen.push(String(line)))
    await Promise.all(times(8, (i) => chat(node(i).url, `!say a secret prompt ${i}`)))
    await untilIdle(cluster)
    monitor.destroy()
    let cursor = "0"
    do {
      const reply = await command(client, "SCAN", cursor, "COUNT", "1000")
      const [next, keys] = reply as readonly [string, ReadonlyArray<string>]
      cursor = String(next)
      for (const key of keys) {
        const type = String(await command(client, "TYPE", key))
        seen.push(key)
        if (type === "string") seen.push(String(await command(client, "GET", key)))
        if (type === "hash") seen.push(...await listOf(client, "HGETALL", key))
        if (type === "zset") seen.push(...await listOf(client, "ZRANGE", key, "0", "-1"))
        if (type === "set") seen.push(...await listOf(client, "SMEMBERS", key))
        if (type === "list") seen.push(...await listOf(client, "LRANGE", key, "0", "-1"))
      }
    } while (cursor !== "0")
    const text = seen.join("\n")
    assert.include(text, "gw:{main}:config")
    const secrets = [
      businessKey,
      adminKey,
      clusterKey,
      "secret prompt",
      "stored secret",
      ...names.flatMap((name) => [emailOf(name), `password of ${name}`])
    ]
    for (const secret of secrets) assert.notInclude(text, secret)
  })

  it("enforce the limits of a key together, and report its usage on each node", async () => {
    const key = "a key that has limits"
    const { id } = await admin(node(0).url, "POST", "/admin/keys", {
      key,
      limits: [{ window: "month", requests: 10 }]
    }) as { readonly id: string }
    const ask = async (i: number, more: { readonly stream?: boolean; readonly signal?: AbortSignal } = {}) => {
      const response = await send(node(i).url, "!say one\n!fault hang-mid-stream after=1", {
        key,
        stream: true,
        ...more
      })
      return response
    }
    const shown = async (i: number) => {
      const { items } = await admin(node(i).url, "GET", `/admin/keys?q=${id}`) as {
        readonly items: ReadonlyArray<{
          readonly max_inflight: number | null
          readonly usage: {
            readonly in_flight: number
            readonly windows: ReadonlyArray<
              { readonly requests: { readonly used: number; readonly remaining: number } }
            >
          }
        }>
      }
      return items[0]
    }
    /** Waits until the key matches on every node, because a change takes a moment to spread. */
    const untilShown = async (holds: (item: NonNullable<Awaited<ReturnType<typeof shown>>>) => boolean) => {
      for (const i of times(4, Number)) {
        await untilHolds(async () => {
          const item = await shown(i)
          return item !== undefined && holds(item)
        })
      }
    }
    await untilShown(() => true)
    // Concurrently on all nodes: exactly as many as the limit of the month.
    const said = await Promise.all(times(24, (i) => chat(node(i).url, "!say one", { key })))
    assert.deepStrictEqual(
      [200, 429].map((status) => said.filter((one) => one.status === status).length),
      [10, 14]
    )
    await untilShown(({ usage: { windows: [month] } }) => month?.requests.used === 10 && month.requests.remaining === 0)
    const used = async (i: number) => {
      const { rows } = await admin(node(i).url, "GET", `/admin/usage?by=key&key=${id}`) as {
        readonly rows: ReadonlyArray<{ readonly requests: number; readonly counted_requests: number }>
      }
      return rows[0]
    }
    // Each node writes its usage within a second.
    for (const i of times(4, Number)) {
      await untilHolds(async () => (await used(i))?.requests === 24)
      assert.strictEqual((await used(i))?.counted_requests, 10)
    }

    await admin(node(1).url, "PATCH", `/admin/keys/${id}`, { limits: null, max_inflight: 3 })
    await untilShown(({ max_inflight }) => max_inflight === 3)
    const other = await cluster.add("other")
    const held = await Promise.all([
      send(other.url, "!say one\n!fault hang-mid-stream after=1", { key, stream: true }),
      ...times(2, (i) => ask(i))
    ])
    assert.deepStrictEqual(held.map(({ status }) => status), [200, 200, 200])
    const refused = await chat(node(3).url, "!say no", { key })
    assert.deepStrictEqual([refused.status, refused.retryAfter], [429, "1"])
    assert.strictEqual((await shown(3))?.usage.in_flight, 3)
    // The slots of a dead node are released.
    await other.kill()
    await untilShown(({ usage }) => usage.in_flight === 2)
    assert.strictEqual(textOf(await chat(node(3).url, "!say yes", { key })), "yes")
    for (const response of held.slice(1)) await response.body?.cancel()
    await untilShown(({ usage }) => usage.in_flight === 0)
    await untilIdle(cluster)
  })

  it("list the requests and captures of all nodes, and accept their ids on every node", async () => {
    for (const url of times(4, (i) => node(i).url)) await admin(url, "DELETE", "/admin/requests")
    const minutesAt = async (i: number) => {
      const { minutes } = await replyOfAll(() =>
        admin(node(i).url, "GET", "/admin/minutes") as unknown as Promise<{
          readonly minutes: ReadonlyArray<{ readonly ok: number }>
          readonly nodes_missing: ReadonlyArray<string>
        }>
      )
      return minutes.reduce((sum, { ok }) => sum + ok, 0)
    }
    const attemptsAt = async (i: number) => {
      const { items } = await replyOfAll(() =>
        admin(node(i).url, "GET", "/admin/accounts") as unknown as Promise<{
          readonly items: ReadonlyArray<{ readonly requests_hour: number }>
          readonly nodes_missing: ReadonlyArray<string>
        }>
      )
      return items.reduce((sum, { requests_hour }) => sum + requests_hour, 0)
    }
    const before = await Promise.all([minutesAt(0), attemptsAt(0)])
    const words = times(9, (i) => `word${i}`)
    for (const [i, word] of words.entries()) assert.strictEqual(textOf(await chat(node(i).url, `!say ${word}`)), word)

    // The minutes and the work of accounts of all nodes add up at each.
    assert.deepStrictEqual(await Promise.all([minutesAt(2), attemptsAt(3)]), [before[0]! + 9, before[1]! + 9])

    interface Item {
      readonly id: string
      readonly node: string
      readonly request_id: string
      readonly duration_ms: number
    }
    interface Page {
      readonly items: ReadonlyArray<Item>
      readonly next_cursor: string | null
      readonly kept: number
      readonly nodes_missing: ReadonlyArray<string>
    }
    const page = (i: number, cursor: string | null, query = "") =>
      admin(
        node(i).url,
        "GET",
        `/admin/requests?limit=4${query}${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`
      ) as unknown as Promise<Page>
    // Each page is read from another node.
    const listed = async (query = "") => {
      const items: Array<Item> = []
      let cursor: string | null = null
      for (let i = 0; i === 0 || cursor !== null; i++) {
        const { items: some, kept, next_cursor }: Page = await replyOfAll(() => page(i, cursor, query))
        assert.strictEqual(kept, 9)
        items.push(...some)
        cursor = next_cursor
      }
      return items
    }
    const items = await listed()
    assert.deepStrictEqual(items.map((item) => item.node), times(9, (i) => `n${(8 - i) % 4 + 1}`))
    const slowest = await listed("&sort=duration_ms")
    const durations = slowest.map(({ duration_ms }) => duration_ms)
    assert.deepStrictEqual(durations, durations.toSorted((a, b) => b - a))
    assert.deepStrictEqual(new Set(slowest.map(({ id }) => id)), new Set(items.map(({ id }) => id)))
    const byTime = await replyOfAll(() =>
      admin(node(1).url, "GET", "/admin/requests/histogram") as unknown as Promise<
        Pick<Page, "nodes_missing"> & { readonly buckets: ReadonlyArray<{ readonly ok: number }> }
      >
    )
    assert.strictEqual(byTime.buckets.reduce((sum, { ok }) => sum + ok, 0), 9)
    const counted = await replyOfAll(() =>
      admin(node(2).url, "GET", "/admin/requests/facets?text=WORD") as unknown as Promise<
        Pick<Page, "nodes_missing"> & {
          readonly total: number
          readonly facets: { readonly style: ReadonlyArray<{ readonly value: string; readonly count: number }> }
        }
      >
    )
    assert.strictEqual(counted.total, 9)
    assert.deepStrictEqual(counted.facets.style.map(({ count, value }) => [value, count]), [["chat", 9]])
    for (const [i, { id, node: of, request_id }] of items.entries()) {
      assert.isTrue(id.startsWith(`${of}:rec_`), id)
      for (const name of [id, request_id]) {
        const detail = await admin(node(1).url, "GET", `/admin/requests/${encodeURIComponent(name)}`) as {
          readonly id: string
          readonly request: { readonly body: string }
        }
        assert.strictEqual(detail.id, id)
        assert.include(detail.request.body, `word${8 - i}`)
      }
    }

    // The captures, and a chain that another node saves.
    interface Capture {
      readonly id: string
      readonly node: string
      readonly chain_key: string
      readonly request_body: string
    }
    interface Captures {
      readonly items: ReadonlyArray<Capture>
      readonly nodes_missing: ReadonlyArray<string>
    }
    const capturesAt = (i: number) =>
      replyOfAll(() => admin(node(i).url, "GET", "/admin/dev/captures") as unknown as Promise<Captures>)
    const { items: captured } = await capturesAt(2)
    const fourth = captured.find(({ request_body }) => request_body.includes("!say word3"))
    assert.strictEqual(fourth?.node, "n4")
    const read = await admin(node(0).url, "GET", `/admin/dev/captures/${encodeURIComponent(fourth?.id ?? "")}`)
    assert.deepInclude(read, { id: fourth?.id, chain_key: fourth?.chain_key, node: "n4" })
    interface Chains {
      readonly items: ReadonlyArray<{ readonly chain_key: string; readonly node: string }>
    }
    const { items: chains } = await replyWith(
      () => admin(node(0).url, "GET", "/admin/dev/raw-samples/query?q=word3") as unknown as Promise<Chains>,
      ({ items }) => items.length > 0
    )
    assert.deepStrictEqual(chains.map((chain) => [chain.chain_key, chain.node]), [[fourth?.chain_key, "n4"]])
    const sample = { sample_id: "of-another-node" }
    const saved = await admin(node(0).url, "POST", "/admin/dev/raw-samples/save", {
      ...sample,
      chain_key: fourth?.chain_key
    })
    assert.deepInclude(saved, { success: true, ...sample, chain_key: fourth?.chain_key })
    const samplesAt = (i: number) =>
      admin(node(i).url, "GET", "/admin/dev/raw-samples") as unknown as Promise<
        { readonly items: ReadonlyArray<{ readonly sample_id: string }> }
      >
    assert.deepInclude((await samplesAt(3)).items[0], sample)
    await admin(node(3).url, "DELETE", "/admin/dev/raw-samples/of-another-node")
    const unknown = await fetch(`${node(0).url}/admin/dev/captures/nobody:cap_1`, {
      headers: { authorization: `Bearer ${adminKey}` }
    })
    assert.strictEqual(unknown.status, 404)

    // A node that hangs is listed as missing, without a wait.
    node(3).signal("SIGSTOP")
    const without = await replyOfAll(() => page(0, null), ["n4"])
    assert.deepStrictEqual(without.items.map((item) => item.node), ["n1", "n3", "n2", "n1"])
    node(3).signal("SIGCONT")
    await untilReady(node(3))

    for (const path of ["/admin/requests", "/admin/dev/captures"]) {
      const deleted = await replyOfAll(() =>
        admin(node(1).url, "DELETE", path) as unknown as Promise<{ success: boolean; nodes_missing: Array<string> }>
      )
      assert.isTrue(deleted.success)
    }
    for (const i of times(4, Number)) {
      assert.deepInclude(await replyOfAll(() => page(i, null)), { kept: 0, items: [] })
    }
    assert.deepStrictEqual((await capturesAt(3)).items, [])
    await untilIdle(cluster)
  })

  it("a stopping node finishes its requests and leaves the list of nodes", async () => {
    const leaving = await cluster.add("leaving")
    const running = chat(leaving.url, "!count 40\n!fault hang-mid-stream after=20", { stream: true })
    await untilQueueAt(node(0), { in_use: 1 })
    leaving.signal("SIGTERM")
    await leaving.running.printed(/Draining: 1 open requests/)
    await cluster.until(({ streams }) => streams === 1)
    await Effect.runPromise(cluster.reference.cut())
    assert.strictEqual(textOf(await running), times(40, (n) => String(n + 1)).join(" "))
    assert.strictEqual((await leaving.running.ended).code, 0)
    const { nodes } = await admin(node(0).url, "GET", "/admin/nodes")
    assert.notInclude(JSON.stringify(nodes), "leaving")
    await untilIdle(cluster)
  })
})
