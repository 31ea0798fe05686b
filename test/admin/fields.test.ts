/** Bodies with wrong types, in every field of every admin endpoint that accepts a body. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import * as fc from "fast-check"
import { ConfigTransfer } from "../../src/config/ConfigTransfer.ts"
import { runs } from "../support/effort.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { hostileBodies, wrongTypes } from "../support/wrongTypes.ts"
import { caller } from "./support.ts"

let gateway: RunningGateway
const call = caller(() => gateway)

beforeAll(async () => {
  gateway = await startGateway({
    accounts: [{ email: "a@x.org", password: "pw" }],
    upstream: { driver: "embedded" },
    upstreams: { gpu: { driver: "openai", base_url: "http://127.0.0.1:9/v1" } }
  })
})
afterAll(() => gateway.stop())

const account = { email: "new@x.org", mobile: "13900000000", password: "pw", token: "token" }
const mapping = { fast: "upstream-chat", slow: "upstream-reasoner" }
const settings = {
  admin: { jwt_expire_hours: 24 },
  runtime: {
    account_max_inflight: 2,
    account_max_queue: 10,
    global_max_inflight: 10,
    token_refresh_interval_hours: 6,
    sticky: false
  },
  compat: { wide_input_strict_output: true, strip_reference_markers: true },
  responses: { store_ttl_seconds: 900 },
  embeddings: { provider: "builtin" },
  auto_delete: { mode: "none" },
  msgcompat_mapping: mapping,
  model_aliases: { mine: "upstream-chat" }
}
const { compat: _compat, ...imported } = settings
const upstream = {
  enabled: true,
  driver: "openai",
  base_url: "https://127.0.0.1:9/v1",
  models: { m: "name", n: { model: "name", reasoning: true, images: false, max_tokens: 5 } },
  tools: "native",
  history_reasoning: "all",
  fields: ["a"],
  timeouts: { connect: 1, first_byte: 1, silence: 1 },
  headers: { a: "b" },
  credential_header: "api-key",
  forward_headers: ["x-trace"],
  errors: "own",
  choose: "weighted",
  reserve: 0.2,
  rate_limit_headers: "never",
  proxy: "direct",
  tls: { server_name: "x" },
  max_inflight: 5,
  account_max_inflight: 5,
  account_max_queue: 5
}
const route = {
  targets: ["gpu/m", { target: "gpu/n", weight: 2 }],
  wait: 1,
  also_on: ["context_length"],
  spread: "weighted",
  schemas: "required"
}
const lists = { keys: ["new-key"], accounts: [account] }

/** A body with every field, for every endpoint. */
const bodies = [
  { method: "POST", path: "/admin/login", body: { admin_key: adminKey, expire_hours: 1 } },
  { method: "POST", path: "/admin/config", body: { ...lists, msgcompat_mapping: mapping } },
  { method: "PUT", path: "/admin/settings", body: settings },
  { method: "PUT", path: "/admin/settings", body: { auto_delete: { sessions: true } } },
  { method: "POST", path: "/admin/settings/password", body: { new_password: "long enough" } },
  { method: "POST", path: "/admin/settings/password", body: { password: "long enough" } },
  { method: "POST", path: "/admin/config/import", body: { ...imported, ...lists, mode: "merge" } },
  { method: "POST", path: "/admin/config/import", body: { msgcompat_model_mapping: mapping } },
  { method: "POST", path: "/admin/import", body: lists },
  { method: "POST", path: "/admin/keys", body: { key: "new-key" } },
  { method: "POST", path: "/admin/accounts", body: account },
  {
    method: "POST",
    path: "/admin/accounts",
    body: { upstream: "gpu", token: "t", note: "n", proxy: "direct", organization: "o" }
  },
  {
    method: "PATCH",
    path: "/admin/accounts/a@x.org",
    body: { disabled: false, note: "n", proxy: "direct", organization: "o" }
  },
  { method: "POST", path: "/admin/upstreams", body: { name: "other", ...upstream } },
  { method: "PATCH", path: "/admin/upstreams/gpu", body: upstream },
  { method: "POST", path: "/admin/upstreams/test", body: { upstream, key: "k" } },
  { method: "POST", path: "/admin/upstreams/gpu/test", body: { upstream, key: "k" } },
  { method: "PUT", path: "/admin/routes", body: { routes: { r: route, s: ["gpu/m"] } } },
  {
    method: "PUT",
    path: "/admin/prices",
    body: { prices: { m: { input: 1, cached_input: 1, output: 1, per_request: 1 } } }
  },
  {
    method: "POST",
    path: "/admin/accounts/test",
    body: { identifier: "a@x.org", model: "upstream-chat", message: "hello" }
  },
  { method: "POST", path: "/admin/accounts/test-all", body: { model: "upstream-chat" } },
  { method: "POST", path: "/admin/accounts/sessions/delete-all", body: { identifier: "a@x.org" } },
  { method: "POST", path: "/admin/test", body: { model: "upstream-chat", message: "hello", api_key: "test-key" } }
] as const

/** The names by which an error may refer to a field: the mapping's older name is reported by its current name. */
const names = (field: string): ReadonlyArray<string> => [
  field,
  field.replace("msgcompat_model_mapping", "msgcompat_mapping")
]

const configuration = () => Effect.runPromise(Context.get(gateway.services, ConfigTransfer).configHash)

describe("a wrong type in an admin request", () => {
  for (const { body, method, path } of bodies) {
    it(`is a 400 that names the field: ${method} ${path} ${Object.keys(body).join(" ")}`, async () => {
      const before = await configuration()
      for (const faulty of wrongTypes(body, [])) {
        const answer = await call(method, path, { body: faulty.body })
        assert.strictEqual(answer.status, 400, `${JSON.stringify(faulty.body)} ${answer.text}`)
        assert.isTrue(
          names(faulty.field).some((name) => answer.detail.includes(name)),
          `${faulty.field}: ${answer.text}`
        )
      }
      assert.strictEqual(await configuration(), before)
    })
  }

  it("is a 400 in the wrapper of an import", async () => {
    for (const config of [5, null, [], "x"]) {
      const answer = await call("POST", "/admin/config/import", { body: { config } })
      assert.strictEqual(answer.status, 400)
      assert.include(answer.detail, "config must be an object")
    }
    const mode = await call("POST", "/admin/config/import?mode=both", { body: {} })
    assert.strictEqual(mode.detail, "mode must be merge or replace")
  })
})

describe("an admin request whose body is not a JSON object", () => {
  const broken = ["", "{", "[]", "5", "null", "\"text\"", `{"a":${"[".repeat(300)}${"]".repeat(300)}}`]
  for (const { body, method, path } of bodies) {
    it(`is a 400: ${method} ${path} ${Object.keys(body).join(" ")}`, async () => {
      const optional = path === "/admin/test" || path === "/admin/accounts/test-all" || path.endsWith("/gpu/test")
      for (const text of broken) {
        if (optional && text === "") continue
        const answer = await call(method, path, { text })
        assert.strictEqual(answer.status, 400, `${text.slice(0, 20)} ${answer.text}`)
        assert.notStrictEqual(answer.detail, "")
      }
    })
  }
})

describe("an admin request with arbitrary JSON in any field", () => {
  it("is accepted or rejected, and never an error of the gateway", () =>
    fc.assert(
      fc.asyncProperty(
        // Each password costs a hash, and an accepted one would invalidate the test's own credential. A second upstream of
        // one name is a conflict.
        fc.constantFrom(
          ...bodies.filter(({ path }) => path !== "/admin/settings/password" && path !== "/admin/upstreams")
        ).chain((endpoint) => hostileBodies(endpoint.body).map((body) => ({ ...endpoint, body }))),
        async ({ body, method, path }) => {
          const answer = await call(method, path, { body })
          // An accepted list of accounts lacks the account of later requests.
          assert.include([200, 400, 401, 404, 429], answer.status, answer.text)
        }
      ),
      { numRuns: runs(300) }
    ))
})

describe("an admin request with a large body", () => {
  it("is rejected above 64 KiB for a login, before its credential is checked, and above 32 MiB elsewhere", async () => {
    const login = await call("POST", "/admin/login", {
      bearer: null,
      body: { admin_key: "x".repeat(70_000) }
    })
    assert.strictEqual(login.status, 413)
    assert.include(login.detail, "64 KiB")
    const large = await call("POST", "/admin/import", { text: " ".repeat(33 * 1024 * 1024) })
    assert.strictEqual(large.status, 413)
    assert.include(large.detail, "32 MiB")
  })
})
