/**
 * Which credentials the servers of several upstreams see: each server sees those of its own accounts alone, whatever the gateway does in
 * the background and for whom.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { make, type Reference } from "../../src/testing/Reference.ts"
import { admin } from "../gateway/support.ts"
import { makeAuthority } from "../support/certificates.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { json, type OpenAiServer } from "../support/openaiServer.ts"
import { type ProxyServer, startProxy } from "../support/proxyServers.ts"
import { startTap, type Tap } from "../support/tap.ts"
import { untilHolds } from "../support/until.ts"
import { change, chat, post, startAnswering } from "./support.ts"

const authority = makeAuthority()

/** The secrets of each upstream: nothing of a line belongs to another one. */
const secrets = {
  default: ["key-of-default-1", "key-of-default-2", "key-of-default-3", "header-of-default"],
  hosted: ["key-of-hosted-1", "key-of-hosted-2", "header-of-hosted"],
  vendor: ["key-of-vendor-1", "key-of-vendor-2", "header-of-vendor"],
  portal: ["password-of-portal", "a@portal.example", "reference-token-", "header-of-portal"]
} as const
type Name = keyof typeof secrets
const names = Object.keys(secrets) as ReadonlyArray<Name>
const proxyPassword = "password-of-the-proxy"

let clock: MovedClock
let gateway: RunningGateway
let proxy: ProxyServer
let reference: Reference["Service"]
let servers: Record<"default" | "hosted" | "vendor", OpenAiServer>
let taps: Record<Name, Tap>
const scope = Scope.makeUnsafe()

/** The secrets that a server has seen, by the upstreams that they belong to. */
const seenBy = (name: Name): ReadonlyArray<string> => {
  const sent = taps[name].sent()
  return [...Object.values(secrets).flat(), proxyPassword].filter((secret) => sent.includes(secret))
}

const onlyOwn = () => {
  for (const name of names) {
    assert.isEmpty(seenBy(name).filter((secret) => !secrets[name].includes(secret as never)), name)
  }
}

/** Each server sees its own credentials, and no other ones. */
const exactly = (name: Name, ...expected: ReadonlyArray<string>) => {
  onlyOwn()
  assert.sameMembers([...seenBy(name)], [...expected], name)
}

const clear = () => names.forEach((name) => taps[name].clear())

const portOf = (address: string) => Number(new URL(address).port)
const urlOf = (name: Name) => `http://127.0.0.1:${taps[name].port}`

/** The server that only the account's proxy finds, with a certificate that only its own upstream trusts. */
const hostedUrl = () => `https://upstream.test:${taps.hosted.port}`

const configuration = () => ({
  upstream: {
    driver: "openai",
    base_url: `${urlOf("default")}/v1`,
    models: { d: "d" },
    headers: { "X-Title": "header-of-default" }
  },
  upstreams: {
    hosted: {
      driver: "messages",
      base_url: hostedUrl(),
      models: { h: "h" },
      headers: { "X-Title": "header-of-hosted" },
      tls: { ca: authority.cert }
    },
    vendor: {
      driver: "generate",
      base_url: `${urlOf("vendor")}/v1beta`,
      models: { v: "v" },
      headers: { "X-Title": "header-of-vendor" }
    },
    portal: { driver: "session", base_url: urlOf("portal"), headers: { "X-Title": "header-of-portal" } }
  },
  accounts: [
    { upstream: "hosted", token: "key-of-hosted-1", proxy: proxy.url },
    { upstream: "vendor", token: "key-of-vendor-1" },
    { upstream: "portal", email: "a@portal.example", password: "password-of-portal" },
    { token: "key-of-default-1" },
    { token: "key-of-default-2" }
  ],
  embeddings: { provider: "upstream" },
  auto_delete: { mode: "all" },
  runtime: { token_refresh_interval_hours: 1 }
})

/** Resolves once these servers were asked for their lists since `clear`, and every upstream waits for its next time. */
const listsRead = (...read: ReadonlyArray<Name>) =>
  untilHolds(() =>
    read.every((name) => /^GET \S*\/models/m.test(taps[name].sent())) &&
    clock.sleeping().filter((millis) => millis === 600_000).length === 3
  )

beforeAll(async () => {
  proxy = await startProxy({ kind: "http", credentials: { username: "user", password: proxyPassword } })
  reference = await Effect.runPromise(make())
  const portal = await Effect.runPromise(Scope.provide(reference.listen(), scope))
  servers = { default: await startAnswering(), hosted: await startAnswering(), vendor: await startAnswering() }
  taps = {
    default: await startTap(portOf(servers.default.baseUrl)),
    hosted: await startTap(portOf(servers.hosted.baseUrl), authority.sign("DNS:upstream.test")),
    vendor: await startTap(portOf(servers.vendor.baseUrl)),
    portal: await startTap(portOf(portal))
  }
  clock = makeMovedClock({ still: true })
  gateway = await startGateway(configuration(), { clock })
})
afterAll(async () => {
  await gateway.stop()
  await Promise.all([...Object.values(taps), ...Object.values(servers), proxy].map((each) => each.stop()))
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const models: Readonly<Record<Name, string>> = {
  default: "d",
  hosted: "h",
  vendor: "v",
  portal: "portal/upstream-chat"
}

const isAnswered = async (reply: Promise<{ readonly status: number; readonly body: string }>) => {
  const { body, status } = await reply
  assert.strictEqual(status, 200, body)
}

/** Asks every upstream once. */
const askAll = async () => {
  for (const name of names) await isAnswered(chat(gateway, models[name]))
}

describe("each of several servers sees the credentials of its own accounts alone", () => {
  it("at the start, which reads each list over the upstream's own connection", async () => {
    await listsRead("default", "hosted", "vendor")
    exactly("default", "key-of-default-1", "header-of-default")
    exactly("hosted", "key-of-hosted-1", "header-of-hosted")
    exactly("vendor", "key-of-vendor-1", "header-of-vendor")
    exactly("portal")
    assert.deepStrictEqual(proxy.asked, [`tunnel upstream.test:${taps.hosted.port}`])
  })

  it("ten minutes later", async () => {
    clear()
    clock.move(600_000)
    await listsRead("default", "hosted", "vendor")
    exactly("default", "key-of-default-1", "header-of-default")
    exactly("hosted", "key-of-hosted-1", "header-of-hosted")
    exactly("vendor", "key-of-vendor-1", "header-of-vendor")
    exactly("portal")
  })

  it("after a change of accounts, which reads the list of their upstream alone", async () => {
    clear()
    await change(gateway, (config) => ({
      ...config,
      accounts: [
        { upstream: "vendor", token: "key-of-vendor-2" },
        { token: "key-of-default-3" },
        ...config["accounts"] as ReadonlyArray<{}>
      ]
    }))
    await listsRead("default", "vendor")
    exactly("default", "key-of-default-3", "header-of-default")
    exactly("vendor", "key-of-vendor-2", "header-of-vendor")
    exactly("hosted")
  })

  it("after a change of upstreams, which reads their lists alone", async () => {
    clear()
    await change(gateway, (config) => {
      const upstreams = config["upstreams"] as Record<string, Record<string, unknown>>
      return {
        ...config,
        upstream: { ...config["upstream"] as object, timeouts: { silence: 99 } },
        upstreams: { ...upstreams, hosted: { ...upstreams["hosted"], timeouts: { silence: 99 } } }
      }
    })
    await listsRead("default", "hosted")
    exactly("default", "key-of-default-3", "header-of-default")
    exactly("hosted", "key-of-hosted-1", "header-of-hosted")
    exactly("vendor")
  })

  it("by requests, whose sessions are deleted", async () => {
    clear()
    await askAll()
    await untilHolds(async () => (await Effect.runPromise(reference.report)).sessions.deleted > 0)
    onlyOwn()
    for (const name of names) assert.isNotEmpty(seenBy(name), name)
  })

  it("by counts, embeddings and relayed requests", async () => {
    clear()
    const messages = [{ role: "user", content: "Hi" }]
    for (const model of ["h", "v"]) {
      await isAnswered(post(gateway, "/v1/messages/count_tokens", { model, messages }))
    }
    for (const model of ["d", "v"]) await isAnswered(post(gateway, "/v1/embeddings", { model, input: "Hi" }))
    await isAnswered(post(gateway, "/v1/rerank", { model: "d", query: "a", documents: ["b"] }))
    onlyOwn()
    for (const name of ["default", "hosted", "vendor"] as const) assert.isNotEmpty(seenBy(name), name)
  })

  it("by tests of the accounts", async () => {
    clear()
    await admin(gateway.url, "POST", "/admin/accounts/test-all", {})
    exactly("default", "key-of-default-1", "key-of-default-2", "key-of-default-3", "header-of-default")
    exactly("hosted", "key-of-hosted-1", "header-of-hosted")
    exactly("vendor", "key-of-vendor-1", "key-of-vendor-2", "header-of-vendor")
    exactly("portal", "reference-token-", "header-of-portal")
  })

  it("by tests of the upstreams and by their lists, which go through the account's proxy", async () => {
    clear()
    for (const name of names) {
      const tested = await admin(gateway.url, "POST", `/admin/upstreams/${name}/test`)
      assert.deepInclude(tested, { success: true }, `${name} ${String(tested["message"])}`)
      await admin(gateway.url, "GET", `/admin/upstreams/${name}/models`)
    }
    const { models } = await admin(gateway.url, "GET", "/admin/upstreams/hosted/models")
    assert.deepInclude(models, { model: "listed", listed: true, ids: [] })
    onlyOwn()
    for (const name of names) assert.isNotEmpty(seenBy(name), name)
  })

  it("by the refresh of tokens, and while refused accounts are tried again", async () => {
    clear()
    // The login of the portal's account is older than an hour.
    clock.move(2 * 3_600_000)
    await isAnswered(chat(gateway, models.portal))
    await untilHolds(() => taps.portal.sent().includes("password-of-portal"))
    const { vendor } = servers
    const refused = json(401, { error: { message: "no" } })
    vendor.answer(() => refused)
    vendor.list(() => refused)
    assert.notStrictEqual((await chat(gateway, models.vendor)).status, 200)
    onlyOwn()
    clear()
    clock.move(600_000)
    await untilHolds(() => secrets.vendor.every((secret) => taps.vendor.sent().includes(secret)))
    onlyOwn()
  })
})
