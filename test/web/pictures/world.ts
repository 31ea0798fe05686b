/**
 * The gateway of the pictures: the product itself over prepared accounts, keys, prices and samples, with a month of traffic of a fixed seed
 * behind it. What a page shows is therefore what the product's own filters, searches, sorts and sums give.
 */
import { hash } from "node:crypto"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { hostname, tmpdir } from "node:os"
import path from "node:path"
import { sha256Hex } from "../../../src/config/json.ts"
import { keyId } from "../../../src/domain/identity.ts"
import { adminKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../../support/movedClock.ts"
import { startOpenAiServer } from "../../support/openaiServer.ts"
import { type Done, makeTraffic, type Planned, planOf } from "../traffic.ts"

/** The fixed time of all pictures: 2026-11-21 13:10:30 UTC. */
export const now = Date.UTC(2026, 10, 21, 13, 10, 30)

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

const people = [
  "ada",
  "alan",
  "barbara",
  "claude",
  "dorothy",
  "edsger",
  "frances",
  "grace",
  "hedy",
  "ivan",
  "jean",
  "katherine",
  "linus",
  "margaret",
  "niklaus"
]
const domains = ["research.example.com", "example.com", "lab.example.org", "studio.example.net"]

/** The accounts of `hosted`, each by its address. */
export const addresses = domains.flatMap((domain) => people.map((name) => `${name}@${domain}`))

const keyNames = [
  "Mobile app (production)",
  "Mobile app (staging)",
  "Website chat",
  "Data team notebooks",
  "Support desk",
  "Nightly evaluation",
  "Partner integration",
  "Search ranking",
  ...Array.from({ length: 16 }, (_, index) => `Workshop seat ${index + 1}`)
]

/** The keys of callers, each with its name and what it may do. */
export const keys = keyNames.map((name, index) => {
  const key = `sk-gw-${hash("sha256", `key ${index}`).slice(0, 32)}`
  return {
    key,
    id: keyId(key, sha256Hex),
    name,
    record: {
      name,
      ...index % 6 === 0 ? { note: "Owner: platform team" } : {},
      ...index < 6 ? { limits: [{ window: "day", requests: index === 2 ? 60 : 200, tokens: 20_000_000 }] } : {},
      ...index < 4 ? { max_inflight: 20 } : {},
      ...index === 12 ? { models: ["gpt-4o", "claude-sonnet-4-5"] } : {},
      ...index === 3 ? { expires_at: "2027-01-01T00:00:00Z" } : {},
      ...index === 5 ? { disabled: true } : {},
      ...index === 6 ? { expires_at: "2026-11-01T00:00:00Z" } : {},
      created_at: new Date(now - 30 * day - index * hour).toISOString()
    }
  }
})

const callers = keys.filter((_, index) => index !== 5 && index !== 6).slice(0, 9).map(({ key }) => key)

/** The names that callers ask for. */
const models = ["gpt-4o", "claude-sonnet-4-5", "claude-haiku-4-5", "llama-3.3"]

const serverModels = {
  hosted: ["claude-sonnet-4-5", "claude-haiku-4-5"],
  local: ["llama-3.3"]
}

/** The addresses that pages show in place of those of the servers, whose ports are of the run. */
const shownAddresses = { hosted: "https://models.example.com/v1", local: "http://127.0.0.1:8001/v1" }

/** The host of the gateway, which its pages are of too. */
export const shownHost = "gateway.localhost"

/** The id of a session of an agent. */
export const sessionOf = (index: number): string => `${hash("sha256", `session ${index}`).slice(0, 8)}-1c4e-4b7a`

/** The headers of a session, as Claude Code sends them. */
const agentOf = (index: number): Readonly<Record<string, string>> => ({
  "user-agent": "claude-cli/2.1.0 (external, cli)",
  "x-claude-code-session-id": sessionOf(index),
  ...index % 3 === 2 ? { "x-claude-code-agent-id": "explorer" } : {}
})

const question = "What is the capital of Norway, and where does it lie?"
const words = "The| capital| of| Norway| is| Oslo|,| which| lies| at| the| northern| end| of| the| Oslofjord|.".split(
  "|"
)

/** The requests whose pages are shown, and one that runs. */
const shown = {
  streamed: {
    model: "gpt-4o",
    end: "streamed",
    first: 748,
    rest: 850,
    prompt: 31,
    cached: 0,
    completion: 17,
    question,
    words
  },
  failed: { model: "claude-sonnet-4-5", end: "broken", question },
  running: { model: "claude-sonnet-4-5", end: "streamed", first: 912, rest: 6_000, question, words }
} as const

/** Writes the samples of the folder. */
const writeSamples = (folder: string): void => {
  for (const [index, name] of ["empty-reply", "long-tool-call", "stops-early"].entries()) {
    const at = path.join(folder, name)
    mkdirSync(at, { recursive: true })
    const frames = words.map((content) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
    )
    const bytes = Buffer.from(`${frames.join("")}data: [DONE]\n\n`)
    const request = { model: models[index]!, messages: [{ role: "user", content: question }], stream: true }
    writeFileSync(path.join(at, "upstream.stream.sse"), bytes)
    writeFileSync(
      path.join(at, "meta.json"),
      JSON.stringify({
        sample_id: name,
        created_at: new Date(now - (index + 1) * 25 * hour).toISOString(),
        protocol: "openai",
        chain_key: `capture-${index}`,
        capture_ids: [`capture-${index}`],
        round_count: 1,
        request,
        rounds: [{
          capture_id: `capture-${index}`,
          label: "completion",
          url: `${shownAddresses.hosted}/chat/completions`,
          status_code: index === 0 ? 502 : 200,
          content_type: "text/event-stream",
          request_body: JSON.stringify(request),
          offset: 0,
          length: bytes.length,
          truncated: false,
          complete: true
        }],
        upstream_sha256: hash("sha256", bytes)
      })
    )
  }
}

/** A gateway for pictures. */
export interface World {
  readonly url: string
  /** A text of the gateway with the addresses that pages show. */
  readonly shown: (text: string) => string
  /** The records of the requests whose pages are shown. */
  readonly requests: Readonly<Record<keyof typeof shown, string>>
  readonly stop: () => Promise<void>
}

const admin = async (url: string, name: string, init: RequestInit = {}): Promise<Readonly<Record<string, unknown>>> => {
  const reply = await fetch(url + name, {
    ...init,
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" }
  })
  return await reply.json() as Readonly<Record<string, unknown>>
}

/** Fixes what differs between two runs: ids look random and are the same on each one, and no wait is longer by chance. */
const fixChance = (): () => void => {
  const own = { randomUUID: crypto.randomUUID, random: Math.random }
  let count = 0
  Math.random = () => 0.5
  crypto.randomUUID = () => {
    const digits = hash("sha256", `id ${count++}`)
    return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-a${digits.slice(17, 20)}-${
      digits.slice(20, 32)
    }`
  }
  return () => {
    crypto.randomUUID = own.randomUUID
    Math.random = own.random
  }
}

/** Moves the clock to a time, which must not be over. */
const moveTo = (clock: MovedClock, at: number): void => {
  const left = at - clock.currentTimeMillisUnsafe()
  if (left < 0) throw new Error(`The plan of the pictures is ${-left} ms too long`)
  clock.move(left)
}

/** The plan of a month: a few requests a day, more on the last day, and most in the last hour. */
const playMonth = async (
  clock: MovedClock,
  play: (plan: ReadonlyArray<Planned>) => Promise<ReadonlyArray<Done>>
): Promise<void> => {
  const of = { keys: callers, models }
  const agents = (count: number, every: number) =>
    Object.fromEntries(
      Array.from({ length: Math.floor(count / every) }, (_, index) => [index * every, { headers: agentOf(index % 9) }])
    )
  await play(planOf({ ...of, count: 60, seed: 11, pause: 14 * hour }))
  moveTo(clock, now - day)
  await play(planOf({ ...of, count: 90, seed: 12, pause: 18 * minute, changes: agents(90, 3) }))
  moveTo(clock, now - 2 * hour)
  await play(planOf({ ...of, count: 64, seed: 15, pause: minute, changes: agents(64, 4) }))
  moveTo(clock, now - hour)
  await play(planOf({
    ...of,
    count: 130,
    seed: 13,
    pause: 30 * second,
    changes: {
      ...agents(130, 5),
      ...Object.fromEntries(
        [41, 47, 58].map((at) => [at, { model: "claude-sonnet-4-5", end: "streamed", refusals: [401] }])
      ),
      ...Object.fromEntries(
        [61, 72].map((at) => [at, { model: "claude-haiku-4-5", end: "streamed", refusals: [429] }])
      ),
      77: { model: "gpt-5-turbo", end: "refused" }
    }
  }))
}

/** Starts the gateway of the pictures, and plays its month. */
export const startWorld = async (): Promise<World> => {
  const folder = mkdtempSync(path.join(tmpdir(), "pictures-"))
  const samples = path.join(folder, "samples")
  writeSamples(samples)
  const restoreChance = fixChance()
  const clock = makeMovedClock({ still: true, wall: now - 29 * day })
  const [hosted, local] = await Promise.all([startOpenAiServer(), startOpenAiServer()])
  const servers = { hosted, local }
  const gateway: RunningGateway = await startGateway({
    keys: keys.map(({ key }) => key),
    key_records: Object.fromEntries(keys.map(({ id, record }) => [id, record])),
    upstreams: Object.fromEntries(
      (["local", "hosted"] as const).map((name) => [name, {
        driver: "openai",
        base_url: servers[name].baseUrl,
        models: Object.fromEntries(serverModels[name].map((model) => [model, model]))
      }])
    ),
    accounts: [
      { upstream: "local", token: "none" },
      ...addresses.map((email, index) => ({
        upstream: "hosted",
        email,
        token: `token-${index}`,
        ...index === 30 ? { disabled: true } : {},
        ...index % 12 === 0 ? { note: "Research team" } : {}
      }))
    ],
    routes: { "gpt-4o": { targets: ["hosted/claude-sonnet-4-5", "local/llama-3.3"] } },
    currency: "USD",
    prices: {
      "hosted/claude-sonnet-4-5": { input: 3, cached_input: 0.3, output: 15 },
      "hosted/claude-haiku-4-5": { input: 1, cached_input: 0.1, output: 5 },
      "llama-*": { input: 0.05 },
      "gpt-3": { per_request: "0.002" }
    },
    admin: {
      tokens: [{
        id: "t1",
        name: "dashboard",
        role: "viewer",
        hash: sha256Hex("dashboard"),
        expires_at: "2027-01-31T00:00:00Z"
      }]
    },
    webhooks: [{
      name: "ops",
      url: "https://hooks.example.com/gateway",
      secret: `whsec_${Buffer.from("a secret of the pictures, 32 b..").toString("base64")}`,
      events: ["budget.*"]
    }],
    samples: { dir: samples }
  }, { clock, keepsUsage: true, environment: { GATEWAY_DATA_DIR: path.join(folder, "data") } })
  const { url } = gateway
  const traffic = makeTraffic({ clock, gateway: () => gateway, servers, models: serverModels })
  await playMonth(clock, traffic.play)
  const base = planOf({ keys: callers.slice(0, 1), models, count: 3, seed: 14, pause: 10 * second })
  const [failed, streamed] = await traffic.play([{ ...base[0]!, ...shown.failed }, { ...base[1]!, ...shown.streamed }])
  const change = (method: string, name: string, body: object) =>
    admin(url, name, { method, body: JSON.stringify(body) })
  await change("PUT", "/admin/settings", { runtime: { account_max_queue: 120, sticky: true } })
  await change("PATCH", `/admin/keys/${keys[0]!.id}`, { max_inflight: 25 })
  moveTo(clock, now - 3 * second)
  const leave = await traffic.run({ ...base[2]!, ...shown.running })
  moveTo(clock, now)
  const { items } = await admin(url, "/admin/requests?limit=10") as {
    readonly items: ReadonlyArray<{ readonly id: string; readonly request_id: string; readonly outcome: string }>
  }
  const recordOf = (id: string) => items.find(({ request_id }) => request_id === id)!.id
  return {
    url,
    shown: (text) =>
      text.replaceAll(hosted.baseUrl, shownAddresses.hosted).replaceAll(local.baseUrl, shownAddresses.local)
        .replaceAll(new URL(url).host, shownHost).replaceAll(folder, "/var/lib/gateway").replaceAll(
          `"node":"${hostname()}"`,
          `"node":"gateway-1"`
        ),
    requests: {
      failed: recordOf(failed!.id),
      streamed: recordOf(streamed!.id),
      running: items.find(({ outcome }) => outcome === "open")!.id
    },
    stop: async () => {
      restoreChance()
      leave()
      await gateway.stop()
      await Promise.all(Object.values(servers).map((server) => server.stop()))
      rmSync(folder, { recursive: true })
    }
  }
}

/** Starts a gateway whose first request is still to come, with the key that it made. */
export const startFresh = async (): Promise<Pick<World, "url" | "shown" | "stop">> => {
  const clock = makeMovedClock({ still: true, wall: now })
  const { stop, url } = await startGateway({ keys: [] }, { clock })
  const { generated_key: generated } = await admin(url, "/admin/config")
  const shown = (text: string) =>
    text.replaceAll(new URL(url).host, shownHost).replaceAll(`"node":"${hostname()}"`, `"node":"gateway-1"`)
      .replaceAll(String(generated), keys[0]!.key)
  return { url, shown, stop }
}
