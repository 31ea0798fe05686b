/**
 * The gateways in front of the scripted upstream, with the initial configuration of a soak.
 */
import { mkdir, writeFile } from "node:fs/promises"
import { request } from "node:http"
import path from "node:path"
import { Client } from "./client.ts"
import { Inspectors } from "./inspectors.ts"
import { at, listAt, numberAt, parseJson, textAt } from "./json.ts"
import { churning, type Plan, victims } from "./plan.ts"
import { type Gateway, type Running, startGateway, startReference } from "./processes.ts"
import { SoakStore } from "./store.ts"
import { pause, until } from "./until.ts"

export const adminKey = "soak-admin-key"
export const businessKey = "soak-key"

/** Upper bound of concurrent requests of an account in the soak. */
export const mostInFlight = 4

export const accountOf = (name: string) => ({ email: `${name}@soak.example`, password: `password of ${name}` })
export const victimOf = (number: number) => accountOf(`victim-${number}`)
export const stableOf = (number: number) => accountOf(`stable-${number}`)
export const churnKeyOf = (number: number): string => `soak-churn-key-${number}`

export const aliasOf = (number: number): string => `soak-alias-${number}`

/** Milliseconds after which a node counts a command of the store as failed: the machine is busy. */
const storeTimeout = "500"

const killQuietly = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // It has ended.
  }
}

const numbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, i) => i)

/** Limits that no request of the soak reaches. */
export const wideLimits = (clients: number) => ({
  account_max_queue: 8 * clients + 50,
  global_max_inflight: 8 * clients + 50
})

/** Number of accounts that stay healthy. More clients need more accounts. */
export const stableCount = (clients: number): number => Math.max(12, Math.ceil(clients / 2))

/** The pinned account of a plan. */
export const targetOf = ({ victim }: Plan): string | undefined =>
  victim === undefined ? undefined : victimOf(victim).email

/** The credential of a plan. */
export const keyOf = ({ credential, number, variant }: Plan): string =>
  credential === "direct"
    ? `soak-direct-token-${number}`
    : credential === "churn"
    ? churnKeyOf(variant % churning)
    : businessKey

/** How many processes a soak has. */
export interface Size {
  readonly clients: number
  /** Gateways, which share a store unless there is one only. */
  readonly nodes: number
  /** Workers of each gateway. With one, the gateway is one process. */
  readonly workers: number
}

/** The processes and the functions to call them. */
export interface Site {
  readonly size: Size
  readonly gateways: ReadonlyArray<Gateway>
  readonly upstream: Running & { readonly url: string }
  /** `undefined` for a single process. */
  readonly store: SoakStore | undefined
  readonly inspectors: Inspectors
  readonly client: Client
  /** Calls the admin API, by default of the gateways in turn. A change is in effect on all nodes when it resolves. */
  readonly admin: (
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    body?: unknown,
    gateway?: Gateway
  ) => Promise<AdminReply>
  /** Calls the control endpoint of the upstream. */
  readonly control: (path: string, body?: unknown) => Promise<unknown>
  readonly stop: () => Promise<void>
}

export interface AdminReply {
  readonly status: number
  readonly text: string
  readonly value: unknown
}

const configOf = (clients: number, upstream: string) => ({
  keys: [businessKey, ...numbers(churning).map(churnKeyOf)],
  accounts: [
    ...numbers(stableCount(clients)).map(stableOf),
    ...numbers(victims).map(victimOf),
    { token: "soak-token-of-an-account" }
  ],
  upstream: {
    driver: "session",
    base_url: upstream,
    // Long limits: a busy machine must not look like a silent upstream.
    timeouts: { connect: 12, first_byte: 12, silence: 12, queue: 30, attempts: 60, client: 8, drain: 60 }
  },
  // Streams that are open at a stop are drained, not served.
  drain: { notice: 0 },
  runtime: { account_max_inflight: 2, ...wideLimits(clients) },
  model_aliases: Object.fromEntries(numbers(churning).map((i) => [aliasOf(i), "upstream-chat"])),
  responses: { store_ttl_seconds: 30 },
  embeddings: { provider: "builtin" },
  captures: { limit: 20, max_body_bytes: 65_536 },
  // Small limits: lists fill early, so that later growth of memory is a leak.
  requests: { limit: 200, max_body_bytes: 65_536 }
})

/** Uses a new connection, so that no connection of the soak itself is open at a rest. */
const callOnce = (method: string, url: string, headers: Readonly<Record<string, string>>, body: string) =>
  new Promise<AdminReply>((resolve, reject) => {
    const outgoing = request(url, { method, agent: false, headers }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk))
      response.on("error", reject)
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode ?? 0, text, value: parseJson(text) })
      })
    })
    outgoing.on("error", reject)
    outgoing.end(body)
  })

/** Reads again if the connection breaks: a worker may have been killed. */
const call = async (...sent: Parameters<typeof callOnce>): Promise<AdminReply> => {
  for (let left = sent[0] === "GET" ? 5 : 0;; left--) {
    try {
      return await callOnce(...sent)
    } catch (error) {
      if (left === 0) throw error
      await pause(100)
    }
  }
}

/** The nodes that the store lists; `undefined` unless each of them has sent a heartbeat since `since`. */
export const nodesSince = async (
  { admin }: Pick<Site, "admin">,
  since: number
): Promise<ReadonlyArray<unknown> | undefined> => {
  const asked = performance.now()
  const nodes = listAt((await admin("GET", "/admin/nodes")).value, "nodes")
    .filter((node) => textAt(node, "state") !== "late")
  const silence = Math.max(...nodes.map((node) => numberAt(node, "last_beat_ms") ?? Infinity))
  return silence < asked - since ? nodes : undefined
}

/** Waits until all nodes have the same configuration, and have sent a heartbeat since `changed`. */
const settleConfig = (site: Pick<Site, "admin">, changed: number): Promise<boolean> =>
  until(async () => {
    const nodes = await nodesSince(site, changed)
    return nodes !== undefined && new Set(nodes.map((node) => numberAt(node, "config_revision"))).size === 1
  }, 10_000)

/** Starts all processes, of the bundle that `scripts/start` runs; their output and files are in `folder`. */
export const startSite = async (folder: string, size: Size): Promise<Site> => {
  const { clients, nodes, workers } = size
  const inspectorFolder = path.join(folder, "inspectors")
  await mkdir(inspectorFolder, { recursive: true })
  // Bundled first, so that a failed build leaves no process behind.
  const { service } = await import("../../test/support/service.ts")
  const gateways: Array<Gateway> = []
  const inspectors = new Inspectors(inspectorFolder, gateways, workers)
  let upstream: Awaited<ReturnType<typeof startReference>> | undefined
  let store: SoakStore | undefined
  const stop = async (): Promise<void> => {
    const pids = await inspectors.pids()
    inspectors.close()
    for (const { child } of gateways) child.kill("SIGKILL")
    for (const pid of pids) killQuietly(pid)
    for (const { ended } of gateways) await ended
    upstream?.child.kill("SIGKILL")
    await upstream?.ended
    await store?.stop()
  }
  try {
    upstream = await startReference(path.join(folder, "upstream.log"))
    if (nodes > 1 || workers > 1) store = await SoakStore.start()
    const config = JSON.stringify(configOf(clients, upstream.url), undefined, 2)
    for (const number of numbers(nodes)) {
      const name = nodes === 1 ? "gateway" : `node ${number + 1}`
      const own = path.join(folder, name.replace(" ", "-"))
      await mkdir(own)
      await writeFile(path.join(own, "config.json"), config, { mode: 0o600 })
      const env = store === undefined ? {} : {
        GATEWAY_STORE_URL: store.url,
        GATEWAY_STORE_TIMEOUT_MS: storeTimeout,
        GATEWAY_NODE_ID: name.replace(" ", "-")
      }
      gateways.push(
        await startGateway(service, {
          name,
          folder: own,
          inspectors: inspectorFolder,
          args: workers > 1 ? ["serve", "--workers", String(workers)] : [],
          env: { GATEWAY_ADMIN_KEY: adminKey, ...env }
        })
      )
    }
  } catch (error) {
    await stop()
    throw error
  }
  const upstreamUrl = upstream.url
  let turn = 0
  const admin: Site["admin"] = async (method, path, body, gateway = gateways[turn++ % gateways.length]!) => {
    const changed = performance.now()
    const reply = await call(
      method,
      gateway.url + path,
      { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
      body === undefined ? "" : JSON.stringify(body)
    )
    if (method !== "GET" && reply.status === 200 && store !== undefined && !await settleConfig({ admin }, changed)) {
      throw new Error(`the change ${method} ${path} is not in effect on all nodes after 10 s`)
    }
    return reply
  }
  return {
    size,
    gateways,
    upstream,
    store,
    inspectors,
    client: new Client(gateways.map(({ url }) => url)),
    admin,
    control: async (path, body) => {
      const method = body === undefined ? "GET" : "POST"
      const text = body === undefined ? "" : JSON.stringify(body)
      const reply = await call(method, `${upstreamUrl}/control/${path}`, {}, text)
      if (reply.status !== 200) throw new Error(`the upstream refused ${path}: ${reply.text}`)
      return reply.value
    },
    stop
  }
}

/** Reads one number of the gateway's metrics. */
export const metricOf = (text: string, name: string): number =>
  Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN)

/** Resources in use. */
export interface Use {
  /** Requests that the gateway is processing. */
  readonly active: number
  readonly inUse: number
  readonly waiting: number
  /** Requests that the upstream is answering. */
  readonly upstream: number
}

/** Reads the resources in use on both sides. */
export const useOf = async ({ admin, control, gateways }: Site): Promise<Use> => {
  // Sequential, because the first calls count active requests.
  let active = 0
  for (const gateway of gateways) {
    const metrics = await admin("GET", "/metrics", undefined, gateway)
    // The call itself is one of them.
    active += metricOf(metrics.text, "gateway_requests_active") - 1
  }
  const queue = await admin("GET", "/admin/queue/status")
  const report = await control("report")
  return {
    active,
    inUse: numberAt(queue.value, "in_use") ?? Number.NaN,
    waiting: numberAt(queue.value, "waiting") ?? Number.NaN,
    upstream: numberAt(report, "open") ?? Number.NaN
  }
}

/** The most concurrent streams of each account at the upstream. */
export const mostAtOnce = async ({ control }: Site): Promise<ReadonlyArray<readonly [account: string, most: number]>> =>
  Object.entries(at(await control("report"), "mostAtOnce") ?? {})
    .filter(([account]) => account.endsWith("@soak.example"))
    .map(([account, most]) => [account, Number(most)])
