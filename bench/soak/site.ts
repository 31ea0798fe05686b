/**
 * The gateway in front of the scripted upstream, with the initial configuration of a soak.
 */
import { mkdir, writeFile } from "node:fs/promises"
import { request } from "node:http"
import path from "node:path"
import { Client } from "./client.ts"
import { Inspector } from "./inspector.ts"
import { numberAt, parseJson } from "./json.ts"
import { churning, type Plan, victims } from "./plan.ts"
import { bundleInto, type Running, startGateway, startReference } from "./processes.ts"

export const adminKey = "soak-admin-key"
export const businessKey = "soak-key"

/** Upper bound of concurrent requests of an account in the soak. */
export const mostInFlight = 4

export const accountOf = (name: string) => ({ email: `${name}@soak.example`, password: `password of ${name}` })
export const victimOf = (number: number) => accountOf(`victim-${number}`)
export const stableOf = (number: number) => accountOf(`stable-${number}`)
export const churnKeyOf = (number: number): string => `soak-churn-key-${number}`

export const aliasOf = (number: number): string => `soak-alias-${number}`

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

/** Both processes and the functions to call them. */
export interface Site {
  readonly folder: string
  readonly gateway: Running & { readonly url: string }
  readonly upstream: Running & { readonly url: string }
  readonly inspector: Inspector
  readonly client: Client
  /** Calls the admin API. */
  readonly admin: (method: "GET" | "POST" | "PUT" | "DELETE", path: string, body?: unknown) => Promise<AdminReply>
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
  runtime: { account_max_inflight: 2, ...wideLimits(clients) },
  model_aliases: Object.fromEntries(numbers(churning).map((i) => [aliasOf(i), "upstream-chat"])),
  responses: { store_ttl_seconds: 30 },
  embeddings: { provider: "builtin" },
  captures: { limit: 20, max_body_bytes: 65_536 },
  // Small limits: lists fill early, so that later growth of memory is a leak.
  requests: { limit: 200, max_body_bytes: 65_536 }
})

/** Uses a new connection, so that no admin connection is open at a rest. */
const call = (method: string, url: string, headers: Readonly<Record<string, string>>, body: string) =>
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

/** Bundles the service and starts both processes; their output and files are in `folder`. */
export const startSite = async (folder: string, clients: number): Promise<Site> => {
  await mkdir(folder, { recursive: true })
  // Bundle first, so that a failed build leaves no process behind.
  const service = await bundleInto(path.join(folder, "service"))
  const upstream = await startReference(path.join(folder, "upstream.log"))
  try {
    const config = JSON.stringify(configOf(clients, upstream.url), undefined, 2)
    await writeFile(path.join(folder, "config.json"), config, { mode: 0o600 })
    const gateway = await startGateway(service, { cwd: folder, adminKey, log: path.join(folder, "gateway.log") })
    const inspector = await Inspector.open(gateway.inspector)
    return {
      folder,
      gateway,
      upstream,
      inspector,
      client: new Client(gateway.url),
      admin: (method, path, body) =>
        call(
          method,
          gateway.url + path,
          { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
          body === undefined ? "" : JSON.stringify(body)
        ),
      control: async (path, body) => {
        const method = body === undefined ? "GET" : "POST"
        const text = body === undefined ? "" : JSON.stringify(body)
        const reply = await call(method, `${upstream.url}/control/${path}`, {}, text)
        if (reply.status !== 200) throw new Error(`the upstream refused ${path}: ${reply.text}`)
        return reply.value
      },
      stop: async () => {
        inspector.close()
        for (const { child, ended } of [gateway, upstream]) {
          child.kill("SIGKILL")
          await ended
        }
      }
    }
  } catch (error) {
    upstream.child.kill("SIGKILL")
    throw error
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
export const useOf = async ({ admin, control }: Site): Promise<Use> => {
  // Sequential, because the first call counts active requests.
  const metrics = await admin("GET", "/metrics")
  const queue = await admin("GET", "/admin/queue/status")
  const report = await control("report")
  return {
    // The call itself is one of them.
    active: metricOf(metrics.text, "gateway_requests_active") - 1,
    inUse: numberAt(queue.value, "in_use") ?? Number.NaN,
    waiting: numberAt(queue.value, "waiting") ?? Number.NaN,
    upstream: numberAt(report, "open") ?? Number.NaN
  }
}
