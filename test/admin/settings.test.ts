/** Settings: what is shown, what can be written, and the immediate effect on running traffic. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Redacted, Result } from "effect"
import { patchSettings } from "../../src/admin/settings/patch.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller, credentialsOf } from "./support.ts"

let gateway: RunningGateway
const call = caller(() => gateway)

afterEach(() => gateway.stop())

const start = async (config: RawConfig = {}) => {
  gateway = await startGateway(config)
}

const put = async (body: unknown) => {
  const answer = await call("PUT", "/admin/settings", { body })
  assert.strictEqual(answer.status, 200, answer.text)
  return answer.json
}

const settings = async () => (await call("GET", "/admin/settings")).json

const send = (path: string, body: unknown) =>
  fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })

const business = async (path: string, body: unknown) => {
  const response = await send(path, body)
  return { status: response.status, json: await response.json() as Record<string, unknown> }
}

const chat = (content: string, model = "upstream-chat") => ({ model, messages: [{ role: "user", content }] })

const contentOf = async (content: string, model: string) => {
  const { json } = await business("/v1/chat/completions", chat(content, model))
  const [choice] = json["choices"] as ReadonlyArray<{ message: { content: string } }>
  return choice?.message.content
}

const defaults = {
  success: true,
  env_backed: false,
  needs_host_sync: false,
  admin: {
    has_password_hash: false,
    jwt_expire_hours: 24,
    jwt_valid_after_unix: 0,
    default_password_warning: false
  },
  runtime: {
    account_max_inflight: 2,
    account_max_queue: 4,
    global_max_inflight: 4,
    token_refresh_interval_hours: 6,
    key_max_inflight: null,
    sticky: "auto"
  },
  compat: { wide_input_strict_output: true, strip_reference_markers: true, family_models: true },
  responses: { store_ttl_seconds: 900 },
  embeddings: { provider: "" },
  auto_delete: { mode: "none" },
  msgcompat_mapping: { fast: "upstream-chat", slow: "upstream-reasoner" },
  model_aliases: {}
}

const accounts = [{ email: "a@x.org", password: "pw" }, { email: "b@x.org", password: "pw" }]

const chosen = {
  admin: { jwt_expire_hours: 48 },
  runtime: {
    account_max_inflight: 3,
    account_max_queue: 0,
    global_max_inflight: 5,
    token_refresh_interval_hours: 12,
    key_max_inflight: 7,
    sticky: true
  },
  compat: { wide_input_strict_output: false, strip_reference_markers: false, family_models: false },
  responses: { store_ttl_seconds: 30 },
  embeddings: { provider: "builtin" },
  auto_delete: { mode: "single" },
  msgcompat_mapping: { fast: "upstream-reasoner", slow: "upstream-chat" },
  model_aliases: { Mine: "upstream-chat" }
}

describe("the settings in the admin API", () => {
  it("show every field, with defaults filled in", async () => {
    await start({ accounts })
    assert.deepStrictEqual(await settings(), defaults)
  })

  it("can all be written, and all be unset again", async () => {
    await start({ accounts })
    const { message, ...saved } = await put(chosen)
    assert.isString(message)
    assert.deepStrictEqual(saved, { success: true, env_backed: false, config_writable: false, needs_host_sync: false })
    assert.deepStrictEqual(await settings(), { ...defaults, ...chosen, admin: { ...defaults.admin, ...chosen.admin } })

    await put(Object.fromEntries(
      Object.entries(chosen).map(([name, group]) => [
        name,
        name === "model_aliases" ? null : Object.fromEntries(Object.keys(group).map((field) => [field, null]))
      ])
    ))
    assert.deepStrictEqual(await settings(), defaults)
    await put(chosen)
    await put(Object.fromEntries(Object.keys(chosen).map((name) => [name, null])))
    assert.deepStrictEqual(await settings(), defaults)
  })

  it("keep the fields that a change does not name", async () => {
    await start({ accounts, ...chosen })
    await put({ runtime: { account_max_inflight: 4 }, msgcompat_mapping: { fast: "upstream-chat" } })
    assert.deepStrictEqual(await settings(), {
      ...defaults,
      ...chosen,
      admin: { ...defaults.admin, ...chosen.admin },
      runtime: { ...chosen.runtime, account_max_inflight: 4 },
      msgcompat_mapping: { fast: "upstream-chat", slow: "upstream-chat" }
    })
  })

  it("reject misspelt fields by name", async () => {
    await start({ accounts })
    const answer = await call("PUT", "/admin/settings", {
      body: { runtime: { acount_max_inflight: 4 }, responses: { store_ttl_seconds: 60 } }
    })
    assert.strictEqual(answer.status, 400)
    assert.match(answer.detail, /^runtime\.acount_max_inflight is not a setting .* did you mean runtime\.account_max_/)
    assert.deepStrictEqual(await settings(), defaults)
  })

  it("reject values out of range by name, and then change nothing", async () => {
    await start({ accounts })
    const ranges: ReadonlyArray<readonly [group: string, field: string, low: number, high: number]> = [
      ["admin", "jwt_expire_hours", 1, 720],
      ["runtime", "account_max_inflight", 1, 256],
      ["runtime", "account_max_queue", 0, 200_000],
      ["runtime", "global_max_inflight", 1, 200_000],
      ["runtime", "token_refresh_interval_hours", 1, 720],
      ["runtime", "key_max_inflight", 1, 200_000],
      ["responses", "store_ttl_seconds", 30, 86_400]
    ]
    for (const [group, field, low, high] of ranges) {
      for (const value of [low - 1, high + 1]) {
        const answer = await call("PUT", "/admin/settings", {
          body: { model_aliases: { mine: "upstream-chat" }, [group]: { [field]: value } }
        })
        assert.strictEqual(answer.status, 400)
        assert.strictEqual(answer.detail, `${group}.${field} must be between ${low} and ${high}`)
      }
      for (const value of [low, high]) await put({ [group]: { [field]: value } })
      await put({ [group]: { [field]: null } })
    }
    const mode = await call("PUT", "/admin/settings", { body: { auto_delete: { mode: "some" } } })
    assert.strictEqual(mode.detail, "auto_delete.mode must be one of none, single, all")
    const alias = await call("PUT", "/admin/settings", { body: { model_aliases: { mine: "nothing" } } })
    assert.include(alias.detail, "model_aliases.mine")
    assert.deepStrictEqual(await settings(), defaults)
  })

  it("warn while the admin key is a generated one", async () => {
    await start()
    assert.deepInclude((await settings())["admin"], { default_password_warning: false })
    await gateway.stop()
    gateway = await startGateway({}, { store: ConfigStore.layerJson({}) })
    const bearer = Redacted.value(credentialsOf(gateway).adminKey)
    const warning = async (
      bearer: string
    ) => ((await call("GET", "/admin/settings", { bearer })).json["admin"] as Record<string, unknown>)
    assert.deepInclude(await warning(bearer), { default_password_warning: true, has_password_hash: false })
    await call("POST", "/admin/settings/password", { bearer, body: { new_password: "long enough" } })
    assert.deepInclude(await warning("long enough"), { default_password_warning: false, has_password_hash: true })
  })
})

describe("a patch of the settings", () => {
  const patched = (raw: RawConfig, patch: RawConfig) => Result.getOrThrow(patchSettings(raw, patch))

  it("is rejected as a whole if it names a field that cannot be changed", () => {
    const raw = { upstream: { driver: "openai" }, admin: { password_hash: "hash", generation: 3 } }
    assert.deepStrictEqual(patched(raw, { admin: { jwt_expire_hours: 2 } }), {
      ...raw,
      admin: { password_hash: "hash", generation: 3, jwt_expire_hours: 2 }
    })
    const refused = patchSettings(raw, {
      upstream: { driver: "embedded" },
      admin: { password_hash: "other", generation: 9, jwt_expire_hours: 2 },
      runtime: { acount_max_inflight: 3 },
      msgcompat_mapping: { fats: "upstream-chat" },
      keys: ["x"]
    })
    assert.deepStrictEqual(
      Result.merge(Result.mapError(refused, ({ faults }) => faults.map(({ message }) => message))),
      [
        "upstream is not a setting that can be changed here",
        "admin.password_hash is not a setting that can be changed here",
        "admin.generation is not a setting that can be changed here",
        "runtime.acount_max_inflight is not a setting that can be changed here: did you mean runtime.account_max_inflight?",
        "msgcompat_mapping.fats is not a setting that can be changed here: did you mean msgcompat_mapping.fast?",
        "keys is not a setting that can be changed here"
      ]
    )
  })

  it("converts the older deletion flag to a mode", () => {
    assert.deepStrictEqual(patched({}, { auto_delete: { sessions: true } }), { auto_delete: { mode: "all" } })
    assert.deepStrictEqual(patched({ auto_delete: { sessions: true } }, { auto_delete: { mode: null } }), {
      auto_delete: {}
    })
    assert.deepStrictEqual(patched({ auto_delete: { sessions: true } }, { auto_delete: { sessions: false } }), {
      auto_delete: { mode: "none" }
    })
  })
})

describe("a changed setting takes effect immediately:", () => {
  it("limits, for running and waiting requests", async () => {
    await start({ accounts: [accounts[0]!], runtime: { account_max_inflight: 1, account_max_queue: 0 } })
    const running = await send("/v1/chat/completions", { ...chat("!say one\n!fault hang-mid-stream"), stream: true })
    assert.strictEqual(running.status, 200)
    assert.strictEqual((await business("/v1/chat/completions", chat("hello"))).status, 429)

    await put({ runtime: { account_max_inflight: 2, global_max_inflight: 2 } })
    assert.deepInclude((await call("GET", "/admin/queue/status")).json, {
      in_use: 1,
      available: 1,
      max_inflight_per_account: 2,
      global_max_inflight: 2,
      recommended_concurrency: 2
    })
    assert.strictEqual((await business("/v1/chat/completions", chat("hello"))).status, 200)

    await put({ runtime: { account_max_inflight: 1, account_max_queue: 1 } })
    const waiting = business("/v1/chat/completions", chat("hello"))
    while ((await call("GET", "/admin/queue/status")).json["waiting"] !== 1) await new Promise(setImmediate)
    await put({ runtime: { account_max_inflight: 2 } })
    assert.strictEqual((await waiting).status, 200)
    await running.body?.cancel()
  })

  it("model aliases and mapping", async () => {
    await start()
    const unknown = await business("/v1/chat/completions", chat("hello", "my-model"))
    assert.strictEqual(unknown.status, 400)
    await put({ model_aliases: { "My-Model": "upstream-chat" } })
    assert.strictEqual((await business("/v1/chat/completions", chat("hello", "my-model"))).status, 200)

    const thinking = async () => {
      const { json } = await business("/v1/messages", {
        ...chat("!think hm\n!say yes", "msgcompat-opus-4-6"),
        max_tokens: 100
      })
      return (json["content"] as ReadonlyArray<{ type: string }>).map((block) => block.type)
    }
    assert.deepStrictEqual(await thinking(), ["thinking", "text"])
    await put({ msgcompat_mapping: { slow: "upstream-chat" } })
    assert.deepStrictEqual(await thinking(), ["text"])
  })

  it("removal of reference markers", async () => {
    await start()
    const marked = "!search 1\n!say see [citation:1]."
    const stripped = await contentOf(marked, "upstream-chat-search")
    await put({ compat: { strip_reference_markers: false } })
    const kept = await contentOf(marked, "upstream-chat-search")
    assert.notInclude(stripped, "[citation:1]")
    assert.include(kept, "[citation:1]")
  })

  it("the form of input in the Responses style", async () => {
    await start()
    const request = { model: "upstream-chat", input: "hello" }
    assert.strictEqual((await business("/v1/responses", request)).status, 200)
    await put({ compat: { wide_input_strict_output: false } })
    assert.strictEqual((await business("/v1/responses", request)).status, 400)
  })

  it("provider of embeddings", async () => {
    await start()
    const request = { model: "upstream-chat", input: "hello" }
    assert.strictEqual((await business("/v1/embeddings", request)).status, 501)
    await put({ embeddings: { provider: "builtin" } })
    assert.strictEqual((await business("/v1/embeddings", request)).status, 200)
  })

  it("deletion of sessions", async () => {
    await start({ accounts: [accounts[0]!] })
    const sessions = async () =>
      (await call("POST", "/admin/accounts/test", { body: { identifier: "a@x.org" } })).json["session_count"]
    await business("/v1/chat/completions", chat("hello"))
    await business("/v1/chat/completions", chat("hello"))
    assert.strictEqual(await sessions(), 2)
    await put({ auto_delete: { mode: "all" } })
    await business("/v1/chat/completions", chat("hello"))
    while (await sessions() !== 0) await new Promise(setImmediate)
  })

  it("duration of a login", async () => {
    await start()
    const login = async () =>
      (await call("POST", "/admin/login", { bearer: null, body: { admin_key: "test-admin-key" } })).json["expires_in"]
    assert.strictEqual(await login(), 86_400)
    await put({ admin: { jwt_expire_hours: 1 } })
    assert.strictEqual(await login(), 3_600)
  })
})

describe("a password change in the settings", () => {
  it("accepts either field name, requires eight characters, and ends every login", async () => {
    await start()
    for (const body of [{}, { new_password: "seven 7" }, { password: "" }]) {
      assert.strictEqual((await call("POST", "/admin/settings/password", { body })).status, 400)
    }
    const { message, ...reply } = (await call("POST", "/admin/settings/password", {
      body: { new_password: "first password", password: "ignored" }
    })).json
    assert.isString(message)
    const { jwt_valid_after_unix } = (await call("GET", "/admin/settings", { bearer: "first password" })).json[
      "admin"
    ] as Record<string, unknown>
    assert.deepStrictEqual(reply, {
      success: true,
      force_relogin: true,
      jwt_valid_after_unix,
      config_writable: false,
      needs_host_sync: false
    })
    assert.strictEqual(
      (await call("POST", "/admin/settings/password", { bearer: "first password", body: { password: "second one" } }))
        .status,
      200
    )
    assert.strictEqual((await call("GET", "/admin/settings", { bearer: "first password" })).status, 401)
    assert.strictEqual((await call("GET", "/admin/settings", { bearer: "second one" })).status, 200)
    const change = (current_password: string) =>
      call("POST", "/admin/settings/password", {
        bearer: "second one",
        body: { current_password, new_password: "third one" }
      })
    assert.strictEqual((await change("first password")).status, 400)
    assert.strictEqual((await change("second one")).status, 200)
  })
})
