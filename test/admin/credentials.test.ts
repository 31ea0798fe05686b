/** Access to every admin endpoint of the API, with every kind of credential. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { HttpApi } from "effect/http-api"
import { randomBytes } from "node:crypto"
import { GatewayApi } from "../../src/server/Api.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makePatientClock } from "../support/patientClock.ts"
import { caller, nowSeconds, signJwt } from "./support.ts"

let gateway: RunningGateway
const { clock, wait } = makePatientClock()
const asking = caller(() => gateway)
const call: typeof asking = (...asked) => {
  wait()
  return asking(...asked)
}

beforeAll(async () => {
  gateway = await startGateway({ accounts: [{ email: "a@x.org", password: "pw" }] }, { clock })
})
afterAll(() => gateway.stop())

const open = new Set(["POST /admin/login", "POST /admin/session", "GET /admin/session", "DELETE /admin/session"])

const endpoints: ReadonlyArray<{ readonly method: string; readonly path: string; readonly group: string }> = (() => {
  const found: Array<{ readonly method: string; readonly path: string; readonly group: string }> = []
  HttpApi.reflect(GatewayApi, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint, group }) => {
      if (endpoint.path.startsWith("/admin")) {
        found.push({ method: endpoint.method, path: endpoint.path, group: group.identifier })
      }
    }
  })
  return found
})()

/** The part of the contract that operates the gateway. */
const contract = [
  "POST /admin/login",
  "GET /admin/verify",
  "GET /admin/config",
  "POST /admin/config",
  "GET /admin/settings",
  "PUT /admin/settings",
  "POST /admin/settings/password",
  "POST /admin/config/import",
  "GET /admin/config/export",
  "GET /admin/export",
  "POST /admin/keys",
  "DELETE /admin/keys/:key",
  "GET /admin/accounts",
  "POST /admin/accounts",
  "DELETE /admin/accounts/:identifier",
  "GET /admin/queue/status",
  "POST /admin/accounts/test",
  "POST /admin/accounts/test-all",
  "POST /admin/accounts/sessions/delete-all",
  "POST /admin/import",
  "POST /admin/test"
]

const guarded = endpoints.filter(({ method, path }) => !open.has(`${method} ${path}`))

/** Groups whose endpoints with an empty body change at most this gateway. */
const own = new Set([
  "admin-auth",
  "admin-config",
  "admin-settings",
  "admin-keys",
  "admin-accounts",
  "admin-self-test"
])

const bodyOf = (method: string) => method === "POST" || method === "PUT" ? { body: {} } : {}
const pathOf = (path: string) => path.replaceAll(/:\w+/g, "nobody")

const refused = async (bearer: string | null) => {
  for (const { method, path } of guarded) {
    const answer = await call(method, pathOf(path), { bearer, ...bodyOf(method) })
    assert.strictEqual(answer.status, 401, `${method} ${path}`)
    assert.deepStrictEqual(Object.keys(answer.json), ["detail"], `${method} ${path}`)
    assert.strictEqual(answer.headers.get("cache-control"), "no-store", `${method} ${path}`)
  }
}

const admitted = async (bearer: string) => {
  for (const { group, method, path } of guarded) {
    if (!own.has(group) || path === "/admin/verify") continue
    const answer = await call(method, pathOf(path), { bearer, ...bodyOf(method) })
    assert.include([200, 400, 404], answer.status, `${method} ${path}: ${answer.text}`)
    assert.strictEqual(answer.headers.get("cache-control"), "no-store", `${method} ${path}`)
    assert.isNull(answer.headers.get("access-control-allow-credentials"))
  }
}

const login = async (key: string) => {
  const answer = await call("POST", "/admin/login", { bearer: null, body: { admin_key: key } })
  assert.strictEqual(answer.status, 200, answer.text)
  return String(answer.json["token"])
}

describe("every admin endpoint", () => {
  it("of the contract exists", () => {
    const there = new Set(endpoints.map(({ method, path }) => `${method} ${path}`))
    for (const endpoint of contract) assert.isTrue(there.has(endpoint), endpoint)
  })

  it("rejects calls without a credential", () => refused(null))

  it("rejects a wrong key, however often it is sent", async () => {
    await refused("wrong")
    await refused(businessKey)
  })

  it("rejects a JWT that the gateway did not sign", async () => {
    const token = await signJwt(
      gateway,
      { issuedAt: nowSeconds(), expiresAt: nowSeconds() + 60 },
      randomBytes(32)
    )
    await refused(token)
    const [header, claims] = token.split(".")
    await refused(`${Buffer.from(JSON.stringify({ alg: "none" })).toString("base64url")}.${claims}.`)
    await refused(`${header}.${claims}.x`)
  })

  it("rejects an expired JWT", async () => {
    await refused(await signJwt(gateway, { issuedAt: nowSeconds() - 100, expiresAt: nowSeconds() - 1 }))
  })

  it("accepts the admin key", () => admitted(adminKey))

  it("accepts a JWT", async () => {
    const token = await login(adminKey)
    await admitted(token)
    const verified = await call("GET", "/admin/verify", { bearer: token })
    assert.strictEqual(verified.status, 200)
    assert.isTrue(verified.json["valid"])
  })

  it("rejects a JWT from before a password change, even within the same second", async () => {
    const before = await login(adminKey)
    const changed = await call("POST", "/admin/settings/password", {
      bearer: before,
      body: { new_password: "correct horse" }
    })
    assert.strictEqual(changed.status, 200, changed.text)
    const second = Number(changed.json["jwt_valid_after_unix"])
    await refused(before)
    await refused(await signJwt(gateway, { issuedAt: second, expiresAt: second + 3600, generation: 0 }))
    // The password replaces the key; one endpoint is enough, because every wrong password costs a hash.
    assert.strictEqual((await call("GET", "/admin/settings", { bearer: adminKey })).status, 401)
    await admitted(await login("correct horse"))
    await admitted("correct horse")
  })
})

describe("GET /admin/verify", () => {
  it("accepts only a JWT", async () => {
    assert.strictEqual((await call("GET", "/admin/verify", { bearer: "correct horse" })).status, 401)
  })
})
