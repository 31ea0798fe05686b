/** Named tokens for the admin API, and what each role may do. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { HttpApi } from "effect/http-api"
import { endpointRoles, roleOf } from "../../src/admin/roles.ts"
import { sha256Hex } from "../../src/config/json.ts"
import { policyOf } from "../../src/http/EndpointPolicy.ts"
import { AdminApi } from "../../src/server/OperatorApi.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller, storeOf } from "./support.ts"

let gateway: RunningGateway
const call = caller(() => gateway)

const handMade = "mga-a-token-that-an-operator-made-by-hand"
const old = "mga-a-token-that-has-expired"

beforeAll(async () => {
  gateway = await startGateway({
    admin: {
      tokens: [
        { id: "by-hand", name: "by hand", role: "admin", hash: sha256Hex(handMade).toUpperCase() },
        { id: "old", name: "old", role: "admin", hash: sha256Hex(old), expires_at: "2020-01-01T00:00:00Z" }
      ]
    }
  })
})
afterAll(() => gateway.stop())

const made = async (name: string, role: string) => {
  const { json, status } = await call("POST", "/admin/tokens", { body: { name, role } })
  assert.strictEqual(status, 200)
  const { secret, token } = json as unknown as { readonly secret: string; readonly token: { readonly id: string } }
  return { secret, id: token.id }
}

interface Endpoint {
  readonly group: string
  readonly name: string
  readonly method: string
  readonly path: string
}

const guarded: ReadonlyArray<Endpoint> = (() => {
  const found: Array<Endpoint> = []
  HttpApi.reflect(AdminApi, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint, group }) => {
      if (policyOf(endpoint).access === "admin") {
        found.push({ group: group.identifier, name: endpoint.identifier, method: endpoint.method, path: endpoint.path })
      }
    }
  })
  return found
})()

/** The queries that endpoints need. */
const queries: Readonly<Record<string, string>> = { "/admin/webhooks/deliveries": "?name=hook" }

describe("the roles of the admin API", () => {
  it("are stated for every GET, and for endpoints that exist", () => {
    const listed = Object.entries(endpointRoles).flatMap(([group, names]) =>
      Object.keys(names).map((name) => `${group}.${name}`)
    )
    const existing = guarded.map(({ group, name }) => `${group}.${name}`)
    assert.isEmpty(listed.filter((name) => !existing.includes(name)))
    const reads = guarded.filter(({ method }) => method === "GET").map(({ group, name }) => `${group}.${name}`)
    assert.isEmpty(reads.filter((name) => !listed.includes(name)))
  })

  it("let a viewer call exactly the endpoints of viewers", async () => {
    const { secret } = await made("walker", "viewer")
    for (const { group, method, name, path } of guarded) {
      const where = path.replaceAll(/:\w+/g, "unknown") + (queries[path] ?? "")
      const response = await fetch(`${gateway.url}${where}`, {
        method,
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
        ...(method === "GET" || method === "DELETE" ? {} : { body: "{}" })
      })
      const isRefused = roleOf(group, name) === "admin"
      if (isRefused) {
        assert.strictEqual(response.status, 403, `${method} ${path}`)
        assert.deepStrictEqual(await response.json(), {
          detail: "The credential has the role viewer; this needs the role admin"
        })
      } else {
        assert.include([200, 404], response.status, `${method} ${path}`)
        await response.body?.cancel()
      }
    }
    assert.isTrue(
      guarded.filter(({ method }) => method !== "GET").every(({ group, name }) => roleOf(group, name) === "admin")
    )
  })

  it("hide the bodies of a request from a viewer", async () => {
    const { secret } = await made("reader", "viewer")
    const asked = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({
        model: "upstream-chat",
        messages: [{ role: "user", content: "!say words-of-the-prompt" }]
      })
    })
    assert.include(await asked.text(), "words-of-the-prompt")
    const id = asked.headers.get("x-request-id") ?? ""
    assert.include((await call("GET", `/admin/requests/${id}`)).text, "words-of-the-prompt")
    const seen = await call("GET", `/admin/requests/${id}`, { bearer: secret })
    assert.strictEqual(seen.status, 200)
    assert.notInclude(seen.text, "words-of-the-prompt")
    assert.containSubset(seen.json, { request_id: id, outcome: "ok", bodies_kept: false })
    assert.notInclude((await call("GET", "/admin/requests", { bearer: secret })).text, "words-of-the-prompt")
  })
})

describe("a token for the admin API", () => {
  it("is shown once, kept as a hash, and used as a bearer", async () => {
    const added = await call("POST", "/admin/tokens", {
      body: { name: "deploy", role: "admin", expires_at: "2100-01-01T00:00:00+01:00" }
    })
    const secret = String(added.json["secret"])
    assert.match(secret, /^mga-[\w-]{32}$/)
    assert.containSubset(added.json["token"], {
      name: "deploy",
      role: "admin",
      expires_at: "2099-12-31T23:00:00Z",
      expired: false
    })
    for (const path of ["/admin/tokens", "/admin/config/export", "/admin/changes"]) {
      const { status, text } = await call("GET", path, { bearer: secret })
      assert.strictEqual(status, 200)
      assert.notInclude(text, secret)
      assert.strictEqual(text.includes(sha256Hex(secret)), path === "/admin/config/export", path)
    }
    assert.strictEqual(
      (await call("PUT", "/admin/settings", { bearer: secret, body: { runtime: { sticky: true } } })).status,
      200
    )
    const { json } = await call("GET", "/admin/changes?limit=2")
    assert.containSubset(json["changes"], [
      { who: { kind: "token", name: "deploy" }, fields: [{ path: "runtime.sticky" }] },
      { who: { kind: "key", name: null }, fields: [{ path: "admin.tokens[deploy]", before: null }] }
    ])
  })

  it("may be written into the file by its hash", async () => {
    assert.strictEqual((await call("GET", "/admin/settings", { bearer: handMade })).status, 200)
    assert.strictEqual((await call("GET", "/admin/settings", { bearer: `${handMade}x` })).status, 401)
  })

  it("is refused once it has expired", async () => {
    assert.strictEqual((await call("GET", "/admin/settings", { bearer: old })).status, 401)
    assert.strictEqual((await call("POST", "/admin/login", { body: { admin_key: old } })).status, 401)
    const { json } = await call("GET", "/admin/tokens")
    assert.containSubset(json["tokens"], [{ id: "old", expired: true }])
  })

  it("signs in with its role, and its sessions end when it is deleted", async () => {
    const { id, secret } = await made("dashboard", "viewer")
    const { json } = await call("POST", "/admin/login", { body: { admin_key: secret } })
    const jwt = String(json["token"])
    assert.strictEqual((await call("GET", "/admin/keys", { bearer: jwt })).status, 200)
    assert.strictEqual((await call("GET", "/admin/config/export", { bearer: jwt })).status, 403)
    const sameOrigin = { "sec-fetch-site": "same-origin" }
    const signedIn = await call("POST", "/admin/session", {
      bearer: null,
      headers: sameOrigin,
      body: { admin_key: secret }
    })
    assert.strictEqual(signedIn.status, 200)
    const cookie = (signedIn.headers.get("set-cookie") ?? "").split(";")[0] ?? ""
    const session = () => call("GET", "/admin/session", { bearer: null, headers: { ...sameOrigin, cookie } })
    assert.containSubset((await session()).json, { active: true, role: "viewer", name: "dashboard" })

    assert.strictEqual((await call("DELETE", `/admin/tokens/${id}`)).status, 200)
    for (const bearer of [secret, jwt]) assert.strictEqual((await call("GET", "/admin/keys", { bearer })).status, 401)
    assert.deepStrictEqual((await session()).json, { active: false })
    assert.strictEqual((await call("DELETE", `/admin/tokens/${id}`)).status, 404)
  })

  it("never goes upstream as a caller's own token", async () => {
    const { secret } = await made("upstream", "admin")
    for (const bearer of [secret, "mga-a-token-of-another-gateway"]) {
      const { json, status } = await call("POST", "/v1/chat/completions", {
        bearer,
        body: { model: "upstream-chat", messages: [{ role: "user", content: "!say hello" }] }
      })
      assert.strictEqual(status, 401)
      assert.containSubset(json, { error: { code: "authentication_failed" } })
    }
  })

  it("reads the metrics", async () => {
    const { secret } = await made("prometheus", "viewer")
    assert.strictEqual((await call("GET", "/metrics", { bearer: secret })).status, 200)
  })

  it("names the field of a bad request", async () => {
    await made("taken", "viewer")
    for (
      const [body, detail] of [
        [{ name: "x", role: "owner" }, /role/],
        [{ name: " ", role: "admin" }, /^name must not be empty/],
        [{ name: "taken", role: "admin" }, /^An admin token named "taken" already exists/],
        [{ name: "x", role: "admin", expires_at: "tomorrow" }, /^expires_at must be a later RFC 3339 time/],
        [{ name: "x", role: "admin", expires_at: "2020-01-01T00:00:00Z" }, /^expires_at must be a later/],
        [{ name: "x", role: "admin", expire: 1 }, /did you mean expires_at/],
        [{ name: "x".repeat(101), role: "admin" }, /at most 100 characters/]
      ] as const
    ) {
      const refused = await call("POST", "/admin/tokens", { body })
      assert.strictEqual(refused.status, 400, JSON.stringify(body))
      assert.match(refused.detail, detail)
    }
  })

  it("is merged by its id when a configuration is imported", async () => {
    const before = storeOf(gateway).now().admin.tokens
    const imported = await call("POST", "/admin/config/import", {
      body: { admin: { tokens: [{ id: "by-hand", name: "renamed", role: "viewer", hash: sha256Hex(handMade) }] } }
    })
    assert.strictEqual(imported.status, 200)
    const { tokens } = storeOf(gateway).now().admin
    assert.strictEqual(tokens.length, before.length)
    assert.containSubset(tokens.find(({ id }) => id === "by-hand"), { name: "renamed", role: "viewer" })
  })
})
