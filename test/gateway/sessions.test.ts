/** Sessions of clients: what a record, a filter and the metrics say of them, and the account that they stay at. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { admin } from "./support.ts"

const otherKey = "sk-of-another-team"

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({
    keys: [businessKey, otherKey],
    runtime: { sticky: true, account_max_inflight: 1 },
    upstream: { driver: "openai", base_url: server.baseUrl, models: { m: "m" } },
    accounts: [1, 2, 3].map((i) => ({ token: `sk-account-${i}` }))
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

interface Asking {
  readonly key?: string
  readonly headers?: { readonly [name: string]: string }
  readonly turns?: ReadonlyArray<string>
}

const post = (words: string, { headers = {}, key = businessKey, turns = [] }: Asking = {}) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({
      model: "m",
      messages: [...turns.map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content })), {
        role: "user",
        content: words
      }]
    })
  })

/** Asks, and returns the account that the server saw. */
const accountOf = async (words: string, asking?: Asking): Promise<string> => {
  const response = await post(words, asking)
  assert.strictEqual(response.status, 200, await response.text())
  return server.requests.at(-1)?.headers.authorization ?? ""
}

/** Asks, and keeps the answer back until it is released. */
const holds = async (words: string, asking: Asking) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const answer = streamed({ content: "Hello" })
  server.answer((_, index) => index === 0 ? { pieces: [promise, ...answer.pieces ?? []] } : answer)
  const running = post(words, asking).then((response) => response.text())
  await server.until((requests) => requests.length === 1)
  return { release: resolve, busy: running }
}

describe("a session", () => {
  it("stays at one account from its first turn on, also after its history was rewritten, each agent at its own", async () => {
    const main = { headers: { "x-gateway-session": "one" } }
    const agent = { headers: { "x-gateway-session": "one", "x-gateway-agent": "sub" } }
    const first = await accountOf("Hi", main)
    // An agent begins where its session is, unless that is busy.
    assert.strictEqual(await accountOf("Look", { headers: { ...agent.headers, "x-gateway-agent": "first" } }), first)
    const { busy, release } = await holds("Busy", main)
    const ofAgent = await accountOf("Look", agent)
    assert.notStrictEqual(first, ofAgent)
    release()
    await busy
    await accountOf("Something else")
    assert.strictEqual(await accountOf("What else?", main), first)
    assert.strictEqual(await accountOf("Go on", { ...main, turns: ["A summary", "I see."] }), first)
    assert.strictEqual(await accountOf("Look again", agent), ofAgent)
  })

  it("of another key is another session", async () => {
    const headers = { "x-claude-code-session-id": "two" }
    const first = await accountOf("Hi", { headers })
    const other = await accountOf("Hi", { headers, key: otherKey })
    assert.notStrictEqual(other, first)
    assert.strictEqual(await accountOf("Go on", { headers }), first)
  })

  it("never waits for its account", async () => {
    const headers = { "session-id": "three" }
    const first = await accountOf("Hi", { headers })
    const { busy, release } = await holds("Go on", { headers })
    assert.notStrictEqual(await accountOf("And this?", { headers }), first)
    release()
    await busy
  })
})

describe("the record of a request", () => {
  it("names the app, the session and the agents, and is found by them", async () => {
    await accountOf("Hi", {
      headers: {
        "user-agent": "claude-cli/2.1.330",
        "x-claude-code-session-id": "four",
        "x-claude-code-agent-id": "explorer",
        "x-claude-code-parent-agent-id": "main"
      }
    })
    await accountOf("Hi", { headers: { "user-agent": "curl/8.5.0" } })
    const { items } = await admin(gateway.url, "GET", "/admin/requests?session=four&app=claude-code")
    assert.lengthOf(items as ReadonlyArray<unknown>, 1)
    assert.deepInclude((items as ReadonlyArray<object>)[0], {
      app: "claude-code",
      session: "four",
      agent: "explorer",
      parent: "main",
      key: keyId(businessKey, sha256Hex)
    })
    const { facets } = await admin(gateway.url, "GET", "/admin/requests/facets?session=four") as {
      facets: { app: ReadonlyArray<object> }
    }
    assert.deepStrictEqual(facets.app, [{ value: "claude-code", name: null, count: 1 }])
    await accountOf("Go on", { headers: { "user-agent": "claude-cli/2.1.330", "x-claude-code-session-id": "four" } })
    const kept = await admin(gateway.url, "GET", "/admin/requests?session=four") as {
      items: ReadonlyArray<{ readonly started_at: number; readonly duration_ms: number }>
    }
    const [last, begun] = kept.items
    const { complete, sessions } = await admin(gateway.url, "GET", "/admin/requests/sessions?model=m") as {
      complete: boolean
      sessions: ReadonlyArray<{ readonly session: string }>
    }
    assert.isTrue(complete)
    assert.deepStrictEqual(sessions.filter(({ session }) => session === "four") as ReadonlyArray<object>, [{
      key: keyId(businessKey, sha256Hex),
      app: "claude-code",
      session: "four",
      models: ["m"],
      from: begun!.started_at,
      to: last!.started_at + Math.round(last!.duration_ms),
      requests: 2
    }])
    // The same name under two keys is two sessions.
    assert.lengthOf(sessions.filter(({ session }) => session === "two"), 2)
    assert.deepInclude(await admin(gateway.url, "GET", "/admin/requests/sessions?session=none"), { sessions: [] })
    const metrics = await (await fetch(`${gateway.url}/metrics`, {
      headers: { authorization: `Bearer ${adminKey}` }
    })).text()
    assert.match(metrics, /^gateway_app_requests_total\{app="claude-code"\} \d+$/m)
    assert.notInclude(metrics, "four")
  })

  it("keeps of the session what privacy.sessions says, in its headers too", async () => {
    for (const sessions of ["hash", "none"] as const) {
      const strict = await startGateway({ privacy: { sessions } })
      try {
        const headers = { authorization: `Bearer ${businessKey}`, "content-type": "application/json" }
        await fetch(`${strict.url}/v1/chat/completions`, {
          method: "POST",
          headers: { ...headers, "x-gateway-session": "secret-session", "x-gateway-agent": "secret-agent" },
          body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hi" }] })
        })
        const { items } = await admin(strict.url, "GET", "/admin/requests?limit=1") as {
          items: ReadonlyArray<{ id: string; app?: string; session?: string }>
        }
        const [item] = items
        assert.strictEqual(item?.app, "other")
        if (sessions === "hash") assert.match(item?.session ?? "", /^[\da-f]{16}$/)
        else assert.notProperty(item, "session")
        assert.notInclude(JSON.stringify(await admin(strict.url, "GET", `/admin/requests/${item?.id}`)), "secret-")
      } finally {
        await strict.stop()
      }
    }
  })
})
