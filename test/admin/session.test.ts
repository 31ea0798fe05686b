/** Browser sessions: the cookie, where it is accepted, and a logout that ends the login everywhere. */
import { NodeServices } from "@effect/platform-node"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Layer } from "effect"
import { HttpApi } from "effect/http-api"
import { existsSync } from "node:fs"
import * as fs from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import { GatewayApi } from "../../src/server/Api.ts"
import { withVariables } from "../config/support.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makePatientClock } from "../support/patientClock.ts"
import { untilHolds } from "../support/until.ts"
import { nowSeconds, signJwt } from "./support.ts"

const sameOrigin = { "sec-fetch-site": "same-origin" }

let folder: string
let gateway: RunningGateway

const storeOn = (file: string) =>
  ConfigStore.layer.pipe(
    Layer.provide(Environment.layer),
    Layer.provide(withVariables({ GATEWAY_ADMIN_KEY: adminKey, GATEWAY_CONFIG_PATH: file })),
    Layer.provide(NodeServices.layer)
  )

const { clock, wait } = makePatientClock()

beforeAll(async () => {
  folder = await fs.mkdtemp(path.join(tmpdir(), "admin-session-"))
  gateway = await startGateway({}, { clock })
})
afterAll(async () => {
  await gateway.stop()
  await fs.rm(folder, { recursive: true })
})

interface Call {
  readonly headers?: Record<string, string>
  readonly body?: unknown
  readonly at?: RunningGateway
}

const call = async (method: string, where: string, { at = gateway, body, headers = {} }: Call = {}) => {
  wait()
  const abort = new AbortController()
  const response = await fetch(`${at.url}${where}`, {
    method,
    signal: abort.signal,
    headers: { "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  const streams = response.headers.get("content-type")?.startsWith("text/event-stream") === true
  const text = streams ? "" : await response.text()
  if (streams) abort.abort()
  return {
    status: response.status,
    cookie: response.headers.get("set-cookie"),
    headers: response.headers,
    json: text.startsWith("{") ? JSON.parse(text) as Record<string, unknown> : {}
  }
}

const tokenOf = (cookie: string | null) => /^gateway_session=([^;]*);/.exec(cookie ?? "")?.[1] ?? ""

const signIn = async (headers: Record<string, string> = {}, at = gateway) => {
  const answer = await call("POST", "/admin/session", {
    at,
    headers: { ...sameOrigin, ...headers },
    body: { admin_key: adminKey, expire_hours: 2 }
  })
  assert.strictEqual(answer.status, 200)
  return { ...answer, token: tokenOf(answer.cookie) }
}

const cookieOf = (token: string) => ({ cookie: `theme=dark; gateway_session=${token}` })

describe("POST /admin/session", () => {
  it("sets the login as an HttpOnly cookie for the path of the request", async () => {
    const { cookie, json, token } = await signIn()
    assert.strictEqual(cookie, `gateway_session=${token}; HttpOnly; SameSite=Strict; Max-Age=7200`)
    assert.match(token, /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/)
    assert.deepStrictEqual(Object.keys(json), ["success", "expires_at", "remaining_seconds"])
    assert.deepInclude(json, { success: true, remaining_seconds: 7200 })
    assert.isAtMost(Math.abs(Number(json["expires_at"]) - nowSeconds() - 7200), 60)
    const claims = JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString())
    assert.match(claims.jti, /^[\w-]{20,}$/)
  })

  it("sets a Secure cookie for a page over https", async () => {
    const { cookie, token } = await signIn({ origin: "https://gateway.example" })
    assert.strictEqual(cookie, `gateway_session=${token}; HttpOnly; SameSite=Strict; Max-Age=7200; Secure`)
    assert.notInclude((await signIn({ origin: "http://127.0.0.1:5001" })).cookie, "Secure")
  })

  it("rejects invalid credentials like a login, without a cookie", async () => {
    const attempts: ReadonlyArray<readonly [unknown, number]> = [
      [{ admin_key: "wrong" }, 401],
      [{ admin_key: adminKey, expire_hours: 721 }, 400],
      [{}, 400],
      [7, 400]
    ]
    for (const [body, status] of attempts) {
      const answer = await call("POST", "/admin/session", { headers: sameOrigin, body })
      assert.deepEqual([answer.status, answer.cookie], [status, null], JSON.stringify(body))
      assert.isString(answer.json["detail"])
      assert.strictEqual(answer.headers.get("cache-control"), "no-store")
    }
  })

  it("accepts same-origin pages only: other pages and forms get 401 and no cookie", async () => {
    const { token } = await signIn()
    for (const site of ["cross-site", "same-site", "none", "", undefined]) {
      const headers = {
        ...cookieOf(token),
        origin: "https://elsewhere.example",
        ...(site === undefined ? {} : { "sec-fetch-site": site })
      }
      for (const method of ["POST", "DELETE"]) {
        const body = method === "POST" ? { body: { admin_key: adminKey } } : {}
        const answer = await call(method, "/admin/session", { headers, ...body })
        assert.deepEqual([answer.status, answer.cookie], [401, null], `${method} ${site}`)
        assert.isNull(answer.headers.get("access-control-allow-credentials"))
      }
      const form = await fetch(`${gateway.url}/admin/session`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/x-www-form-urlencoded" },
        body: `admin_key=${adminKey}`
      })
      assert.deepEqual([form.status, form.headers.get("set-cookie")], [401, null])
      await form.arrayBuffer()
    }
    assert.strictEqual(
      (await call("GET", "/admin/config", { headers: { ...sameOrigin, ...cookieOf(token) } })).status,
      200
    )
  })
})

describe("a browser session", () => {
  it("GET answers 200 with and without a session", async () => {
    const { token } = await signIn()
    const get = async (headers: Record<string, string>) => {
      const answer = await call("GET", "/admin/session", { headers })
      assert.strictEqual(answer.status, 200)
      return answer.json
    }
    const active = await get({ ...sameOrigin, ...cookieOf(token) })
    assert.deepInclude(active, { active: true, default_password_warning: false })
    assert.isAtLeast(Number(active["remaining_seconds"]), 7100)
    assert.isAtLeast(Number(active["expires_at"]), nowSeconds() + 7100)
    assert.deepStrictEqual(await get(cookieOf(token)), { active: false })
    assert.deepStrictEqual(await get(sameOrigin), { active: false })
    assert.deepStrictEqual(await get({ ...sameOrigin, ...cookieOf("nonsense") }), { active: false })
    // With an authorization header the cookie is ignored.
    assert.deepStrictEqual(await get({ ...sameOrigin, ...cookieOf(token), authorization: "Bearer wrong" }), {
      active: false
    })
  })

  it("a logout ends it as a cookie and as a bearer; other logins continue", async () => {
    const other = await signIn()
    const { token } = await signIn()
    const headers = { ...sameOrigin, ...cookieOf(token) }
    const ended = await call("DELETE", "/admin/session", { headers })
    assert.deepEqual([ended.status, ended.json], [200, { success: true }])
    assert.strictEqual(ended.cookie, "gateway_session=; HttpOnly; SameSite=Strict; Max-Age=0")
    assert.strictEqual((await call("GET", "/admin/config", { headers })).status, 401)
    assert.strictEqual(
      (await call("GET", "/admin/config", { headers: { authorization: `Bearer ${token}` } })).status,
      401
    )
    assert.strictEqual(
      (await call("GET", "/admin/verify", { headers: { authorization: `Bearer ${token}` } })).status,
      401
    )
    assert.deepStrictEqual((await call("GET", "/admin/session", { headers })).json, { active: false })
    assert.strictEqual(
      (await call("GET", "/admin/config", { headers: { ...sameOrigin, ...cookieOf(other.token) } })).status,
      200
    )
    const again = await call("DELETE", "/admin/session", { headers: sameOrigin })
    assert.deepEqual([again.status, again.json], [200, { success: true }])
  })

  it("an ended one stays ended after a restart, by a file that only its owner can read", async () => {
    const file = path.join(folder, "config.json")
    await fs.writeFile(file, JSON.stringify({ keys: [businessKey] }))
    const first = await startGateway({}, { store: storeOn(file) })
    const { token } = await signIn({}, first)
    const kept = await signIn({}, first)
    await call("DELETE", "/admin/session", { at: first, headers: { ...sameOrigin, ...cookieOf(token) } })
    await first.stop()
    assert.strictEqual((await fs.stat(`${file}.ended-logins`)).mode & 0o777, 0o600)
    assert.notInclude(await fs.readFile(`${file}.ended-logins`, "utf8"), token)
    const second = await startGateway({}, { store: storeOn(file) })
    const status = async (of: string) =>
      (await call("GET", "/admin/config", { at: second, headers: { authorization: `Bearer ${of}` } })).status
    assert.deepEqual([await status(token), await status(kept.token)], [401, 200])
    await second.stop()
  })

  it("a logout that cannot be saved yet is reported as pending, and saved later", async () => {
    const file = path.join(folder, "full", "config.json")
    await fs.mkdir(path.dirname(file))
    await fs.writeFile(file, JSON.stringify({ keys: [businessKey] }))
    const site = await startGateway({}, { store: storeOn(file) })
    const { token } = await signIn({}, site)
    const headers = { ...sameOrigin, ...cookieOf(token) }
    // A folder with the file's name prevents the save.
    await fs.mkdir(`${file}.ended-logins`)
    const ended = await call("DELETE", "/admin/session", { at: site, headers })
    assert.deepEqual([ended.status, ended.json], [200, { success: true, pending: true }])
    assert.strictEqual((await call("GET", "/admin/config", { at: site, headers })).status, 401)
    await fs.rmdir(`${file}.ended-logins`)
    await untilHolds(() => existsSync(`${file}.ended-logins`))
    await site.stop()
    const again = await startGateway({}, { store: storeOn(file) })
    assert.strictEqual((await call("GET", "/admin/config", { at: again, headers })).status, 401)
    await again.stop()
  })

  it("is a 404 if the console is off", async () => {
    const site = await startGateway({ console: { enabled: false } })
    for (const method of ["GET", "POST", "DELETE"]) {
      const answer = await call(method, "/admin/session", { at: site, headers: sameOrigin })
      assert.strictEqual(answer.status, 404, method)
      assert.isString(answer.json["detail"])
    }
    await site.stop()
  })
})

describe("the session cookie", () => {
  const endpoints: Array<{ readonly method: string; readonly path: string }> = []
  HttpApi.reflect(GatewayApi, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) =>
      void endpoints.push({ method: endpoint.method, path: endpoint.path.replaceAll(/\/:\w+/g, "/nobody") })
  })
  const guarded = endpoints.filter(({ path }) =>
    path.startsWith("/admin/") && path !== "/admin/login" && path !== "/admin/session"
  )

  it("is accepted by every admin endpoint, from the same origin only", async () => {
    const { token } = await signIn()
    const ended = (await signIn()).token
    await call("DELETE", "/admin/session", { headers: { ...sameOrigin, ...cookieOf(ended) } })
    const expired = await signJwt(gateway, { issuedAt: nowSeconds() - 100, expiresAt: nowSeconds() - 1 })
    const credentials: ReadonlyArray<readonly [name: string, taken: boolean, headers: Record<string, string>]> = [
      ["none", false, {}],
      ["none, same origin", false, sameOrigin],
      ["cookie, same-origin", true, { ...sameOrigin, ...cookieOf(token) }],
      ["cookie, same-site", false, { "sec-fetch-site": "same-site", ...cookieOf(token) }],
      ["cookie, cross-site", false, { "sec-fetch-site": "cross-site", ...cookieOf(token) }],
      ["cookie, none", false, { "sec-fetch-site": "none", ...cookieOf(token) }],
      ["cookie, not told", false, cookieOf(token)],
      ["ended cookie", false, { ...sameOrigin, ...cookieOf(ended) }],
      ["ended bearer", false, { authorization: `Bearer ${ended}` }],
      ["expired cookie", false, { ...sameOrigin, ...cookieOf(expired) }],
      ["admin key as a cookie", false, { ...sameOrigin, ...cookieOf(adminKey) }],
      ["bearer beside a cookie", false, { ...sameOrigin, ...cookieOf(token), authorization: "Bearer wrong" }],
      ["another header beside a cookie", false, { ...sameOrigin, ...cookieOf(token), authorization: "Basic x" }],
      ["bearer", true, { authorization: `Bearer ${token}` }],
      ["admin key", true, { authorization: `Bearer ${adminKey}` }]
    ]
    assert.isAtLeast(guarded.length, 30)
    for (const { method, path } of guarded) {
      for (const [name, taken, headers] of credentials) {
        // Changes nothing: no endpoint accepts this body.
        const body = method === "GET" || method === "DELETE" ? {} : { body: 7 }
        const { headers: sent, status } = await call(method, path, { headers, ...body })
        const verifies = path === "/admin/verify"
        const expected = verifies ? name === "bearer" : taken
        assert.strictEqual(status !== 401, expected, `${method} ${path}: ${name}: ${status}`)
        assert.strictEqual(sent.get("cache-control"), "no-store", `${method} ${path}: ${name}`)
      }
    }
  })

  it("is rejected by business endpoints and /metrics", async () => {
    const { token } = await signIn()
    const headers = { ...sameOrigin, ...cookieOf(token) }
    const business = endpoints.filter(({ method, path }) => method === "POST" && !path.startsWith("/admin/"))
    for (const { method, path } of business) {
      assert.strictEqual((await call(method, path, { headers, body: {} })).status, 401, path)
    }
    assert.strictEqual((await call("GET", "/metrics", { headers })).status, 401)
  })

  it("sets a password only with the current one, and ends with the change", async () => {
    const { token } = await signIn()
    const headers = { ...sameOrigin, ...cookieOf(token) }
    const change = (body: object) => call("POST", "/admin/settings/password", { headers, body })
    const refusals: ReadonlyArray<readonly [object, string]> = [
      [{}, "current_password is required"],
      [{ current_password: null }, "current_password is required"],
      [{ current_password: "" }, "current_password is not the password in force"],
      [{ current_password: "a wrong one" }, "current_password is not the password in force"]
    ]
    for (const [present, reason] of refusals) {
      const refused = await change({ ...present, new_password: "correct horse" })
      assert.strictEqual(refused.status, 400)
      assert.include(JSON.stringify(refused.json), reason)
    }
    assert.strictEqual((await call("GET", "/admin/config", { headers })).status, 200)
    const changed = await change({ current_password: adminKey, new_password: "correct horse" })
    assert.strictEqual(changed.status, 200)
    assert.strictEqual((await call("GET", "/admin/config", { headers })).status, 401)
    assert.deepStrictEqual((await call("GET", "/admin/session", { headers })).json, { active: false })
  })
})
