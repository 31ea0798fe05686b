/** Recognizable secrets, seeded everywhere, appear in no admin reply or log line except where intended. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Logger, Redacted } from "effect"
import { HttpApi } from "effect/http-api"
import { roleOf } from "../../src/admin/roles.ts"
import { AdminApi } from "../../src/server/OperatorApi.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller, credentialsOf, storeOf } from "./support.ts"

/** The paths of everything that a viewer may read, apart from the feed, which does not end. */
const viewed: ReadonlyArray<string> = (() => {
  const found: Array<string> = []
  HttpApi.reflect(AdminApi, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint, group }) => {
      const isRead = endpoint.method === "GET" && roleOf(group.identifier, endpoint.identifier) === "viewer"
      if (isRead && group.identifier !== "admin-events") found.push(endpoint.path)
    }
  })
  return found
})()

const password = "hunter2-of-the-account"
const token = "tokenSecret-0123456789-abcdefghijklmnop"
const newPassword = "admin-password-secret"
const newKey = "key-secret-of-a-caller"
const hostToken = "host-token-secret"

const lines: Array<string> = []
const logger = Logger.make<unknown, void>((options) => {
  lines.push(JSON.stringify(Logger.formatStructured.log(options)))
})

let gateway: RunningGateway
const call = caller(() => gateway)

beforeAll(async () => {
  gateway = await startGateway({
    accounts: [{ email: "a@x.org", password }, { mobile: "13812345678", password }, { token }],
    host: { token: hostToken, project_id: "p" }
  }, { logger })
})
afterAll(() => gateway.stop())

const account = "a@x.org"

/** Every kind of call, including failing ones. `shows` lists the secrets that a reply may contain. */
const calls: ReadonlyArray<{
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly shows?: ReadonlyArray<string>
}> = [
  { method: "POST", path: "/admin/keys", body: { key: newKey } },
  { method: "POST", path: "/admin/keys", body: { key: newKey } },
  { method: "GET", path: "/admin/config", shows: [newKey, businessKey] },
  { method: "GET", path: "/admin/settings" },
  { method: "GET", path: "/admin/accounts" },
  { method: "POST", path: "/admin/accounts", body: { email: "b@x.org", password } },
  { method: "POST", path: "/admin/accounts", body: { email: "b@x.org", password } },
  { method: "POST", path: "/admin/accounts", body: { token } },
  { method: "POST", path: "/admin/config", body: { accounts: [{ email: account, password }, { token, email: 5 }] } },
  { method: "POST", path: "/admin/config/import", body: { accounts: [{ email: "c@x.org", password }, { password }] } },
  { method: "POST", path: "/admin/config/import", body: { keys: [newKey, newKey] } },
  { method: "POST", path: "/admin/import", body: { accounts: [{ email: "c@x.org", password, token }] } },
  { method: "POST", path: "/admin/accounts/test", body: { identifier: account } },
  { method: "POST", path: "/admin/accounts/test", body: { identifier: account, message: "hello" } },
  {
    method: "POST",
    path: "/admin/accounts/test",
    body: { identifier: account, message: "!fault token-expired times=9" }
  },
  { method: "POST", path: "/admin/accounts/test-all", body: {} },
  { method: "GET", path: "/admin/accounts" },
  { method: "POST", path: "/admin/accounts/sessions/delete-all", body: { identifier: account } },
  { method: "GET", path: "/admin/queue/status" },
  { method: "POST", path: "/admin/test", body: { api_key: newKey } },
  { method: "DELETE", path: `/admin/keys/${newKey}` },
  { method: "DELETE", path: `/admin/keys/${newKey}` },
  { method: "PUT", path: "/admin/settings", body: { embeddings: { provider: 5 } } },
  { method: "POST", path: "/admin/settings/password", body: { new_password: "short" } },
  { method: "GET", path: "/admin/config/export", shows: [password, token, businessKey] },
  { method: "GET", path: "/admin/export", shows: [password, token, businessKey] },
  { method: "POST", path: "/admin/settings/password", body: { new_password: newPassword } }
]

/** The secrets to search for. */
const secrets = () => [
  password,
  token,
  newKey,
  businessKey,
  newPassword,
  hostToken,
  "test-admin-key",
  Buffer.from(Redacted.value(credentialsOf(gateway).jwtSecret)).toString("base64url"),
  Buffer.from(Redacted.value(credentialsOf(gateway).jwtSecret)).toString("hex")
]

describe("secrets in the admin API", () => {
  it("appear only in the replies that are meant to show them", async () => {
    for (const { body, method, path, shows = [] } of calls) {
      const answer = await call(method, path, { body })
      const whole = `${answer.text}\n${JSON.stringify([...answer.headers])}`
      for (const secret of secrets()) {
        if (shows.includes(secret)) assert.include(whole, secret, `${method} ${path}`)
        else assert.notInclude(whole, secret, `${method} ${path}`)
      }
    }
    const settings = await call("GET", "/admin/settings", { bearer: newPassword })
    assert.strictEqual(settings.status, 200)
    assert.notInclude(settings.text, "scrypt")
  })

  it("appear in no log line, and every change has a log line", () => {
    const written = lines.join("\n")
    for (const secret of secrets()) assert.notInclude(written, secret)
    const changes = lines.flatMap((line) => /Admin change: ([^"]+)/.exec(line)?.[1] ?? [])
    assert.deepStrictEqual(changes, [
      "a gateway key was added",
      "an account was added",
      "keys and accounts were imported",
      "an account's upstream sessions were deleted",
      "a gateway key was removed",
      "the password was changed"
    ])
    assert.isTrue(lines.filter((line) => line.includes("Admin change")).every((line) => line.includes("request_id")))
  })
})

describe("secrets of upstreams", () => {
  const secret = "secret-of-an-upstream"
  const entry = {
    driver: "openai",
    base_url: `http://user:${secret}@127.0.0.1:9/v1?key=${secret}`,
    api_key: secret,
    models: { m: { model: "m", token: secret } },
    headers: { "x-title": secret },
    proxy: `http://user:${secret}@127.0.0.1:9`,
    timeouts: { connect: 1, header: { "x-api-key": secret } }
  }
  const written: Array<string> = []
  const entryLogger = Logger.make<unknown, void>((options) => {
    written.push(JSON.stringify(Logger.formatStructured.log(options)))
  })
  let several: RunningGateway
  const callSeveral = caller(() => several)

  beforeAll(async () => {
    several = await startGateway(
      { upstream: entry, upstreams: { gpu: entry }, accounts: [{ email: "a@x.org", proxy: entry.proxy }] },
      { logger: entryLogger, logLevel: "Debug" }
    )
  })
  afterAll(() => several.stop())

  it("appear in no reply that a viewer gets, and in no log line", async () => {
    const { json } = await callSeveral("POST", "/admin/tokens", { body: { name: "dashboard", role: "viewer" } })
    const bearer = String(json["secret"])
    for (const base_url of [`http://other:${secret}@127.0.0.1:9/v1?a=${secret}`, entry.base_url]) {
      const changed = await callSeveral("PATCH", "/admin/upstreams/gpu", { body: { base_url } })
      assert.strictEqual(changed.status, 200, changed.text)
      assert.notInclude(changed.text, secret)
    }
    const paths = viewed.filter((path) => !path.includes(":")).concat("/admin/upstreams/gpu/models")
    assert.include(paths, "/admin/upstreams")
    assert.include(paths, "/admin/settings/fields")
    assert.include(paths, "/admin/changes")
    for (const path of paths) {
      const answer = await callSeveral("GET", path, { bearer })
      assert.notInclude(answer.text, secret, path)
    }
    assert.notInclude(written.join("\n"), secret)
    const { upstreams } = (await callSeveral("GET", "/admin/upstreams", { bearer })).json
    assert.containSubset((upstreams as ReadonlyArray<object>)[1], {
      base_url: "http://***@127.0.0.1:9/v1?key=***",
      config: { api_key: "***", models: { m: { model: "m", token: "***" } } }
    })
  })

  it("stay when an entry is changed as it is shown", async () => {
    const { upstreams } = (await callSeveral("GET", "/admin/upstreams")).json
    const { base_url, headers, models, proxy } = (upstreams as ReadonlyArray<{ config: typeof entry }>)[1]!.config
    const kept = await callSeveral("PATCH", "/admin/upstreams/gpu", { body: { base_url, headers, proxy } })
    assert.strictEqual(kept.status, 200, kept.text)
    assert.deepStrictEqual(models, { m: { model: "m", token: "***" } })
    assert.deepStrictEqual(storeOf(several).now().upstreams.get("gpu")?.base_url, entry.base_url)
    const { json } = await callSeveral("GET", "/admin/config/export")
    assert.include(JSON.stringify(json), secret)
  })
})
