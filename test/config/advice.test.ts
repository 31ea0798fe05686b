/**
 * Warnings about settings that are valid and do not do what their operator expects: each names its place and what to do.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { environmentAdvice } from "../../src/config/advice.ts"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import type { EnvironmentShape } from "../../src/config/Environment.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"

const warningsOf = (raw: RawConfig): Promise<ReadonlyArray<string>> =>
  Effect.runPromise(Effect.map(decodeConfig(raw, { duplicates: "refuse" }), ({ warnings }) => warnings))

const id = keyId("a-key", sha256Hex)
const server = { driver: "openai", base_url: "http://127.0.0.1:8000/v1", models: { "qwen3": "qwen3:8b" } }

describe("the advice on a configuration", () => {
  it("is empty for one that does what it says", async () => {
    assert.deepStrictEqual(
      await warningsOf({
        keys: ["a-key"],
        key_records: { [id]: { limits: [{ window: "day", cost: 5 }] } },
        prices: { "qwen3": { input: 1 }, "default/qwen3": { input: 1 }, "qwen3:8b": { input: 1 }, "qw*": { input: 1 } },
        upstream: server,
        accounts: [{ token: "a-token" }]
      }),
      []
    )
  })

  it("names a record of no configured key, whose limits apply to nothing", async () => {
    const [warning, ...others] = await warningsOf({ keys: ["another"], key_records: { [id]: { max_inflight: 1 } } })
    assert.match(warning ?? "", new RegExp(`^key_records\\.${id} is of no configured key, so it limits nothing: .+`))
    assert.deepStrictEqual(others, [])
  })

  it("names prices that are never used", async () => {
    const one = await warningsOf({ prices: { "gpt-9": { input: 1 } } })
    assert.match(one.join(), /^prices\.gpt-9 is a price of no known model and is never used: name a model/)
    const many = await warningsOf({
      prices: Object.fromEntries(["a", "b", "c", "zz*"].map((name) => [name, { input: 1 }])),
      upstream: server
    })
    assert.match(
      many.join(),
      /^prices has 4 prices of no known model \(a, b, c and 1 more\), which are never used, unless the server lists it/
    )
  })

  it("names cost limits where nothing has a price", async () => {
    const warnings = await warningsOf({
      keys: ["a-key"],
      key_records: { [id]: { limits: [{ window: "day", cost: 5 }] } }
    })
    assert.match(warnings.join(), new RegExp(`^key_records\\.${id}: a cost limit without any price refuses every`))
  })

  it.each([
    [{ accounts: [{ token: "os.environ/MY_KEY" }] }, "accounts[0].token is used as it is written: write ${MY_KEY} for"],
    [
      { accounts: [{ token: "t" }, { token: "$MY_KEY" }] },
      "accounts[1].token is used as it is written: write ${MY_KEY} for"
    ],
    [{ keys: ["os.environ/MY_KEY"] }, "keys[0] is the key itself, not a variable's value: "],
    [
      { upstreams: { a: { ...server, headers: { "x-secret": "%MY_KEY%" } } } },
      "upstreams.a.headers.x-secret is used as it is written: write ${MY_KEY} for"
    ]
  ])("names a secret in the notation of another program: %j", async (raw, beginning) => {
    const warnings = await warningsOf({ upstream: server, ...raw })
    assert.strictEqual(warnings.length, 1)
    assert.isTrue(warnings[0]!.startsWith(beginning), warnings[0])
  })

  it("leaves a secret alone that only contains such text", async () => {
    assert.deepStrictEqual(await warningsOf({ upstream: server, accounts: [{ token: "sk-$abc" }, { token: "$" }] }), [])
  })

  it("names a configuration file that does not exist, and an admin key that is short", () => {
    const variables = { adminKey: undefined, configJson: undefined, configPath: "config.json", configPathNamed: false }
    const adviceOn = (changes: object, file: Option.Option<string> = Option.none()) =>
      environmentAdvice({ ...variables, ...changes } as EnvironmentShape, file)
    assert.deepStrictEqual(adviceOn({}), [])
    const named = { configPathNamed: true }
    assert.match(adviceOn(named).join(), /^GATEWAY_CONFIG_PATH names config\.json, which does not exist: /)
    assert.deepStrictEqual(adviceOn(named, Option.some("{}")), [])
    assert.deepStrictEqual(adviceOn({ adminKey: Redacted.make("a".repeat(16)) }), [])
    assert.match(
      adviceOn({ adminKey: Redacted.make("short") }).join(),
      /^GATEWAY_ADMIN_KEY has fewer than 16 characters: /
    )
  })
})

describe("a configuration is refused", () => {
  const faultsOf = (raw: RawConfig) =>
    Effect.runPromise(Effect.map(Effect.flip(decodeConfig(raw, { duplicates: "refuse" })), ({ message }) => message))

  it.each([
    [{ upstream: { ...server, models: { "*": "x" } } }, "upstream.models.* must be the name of one model"],
    [{ upstreams: { gpu: { ...server, models: { "x/*": "x" } } } }, "upstreams.gpu.models.x/* must be the name of one"],
    [{ upstream: server, routes: { "qw*": ["default/qwen3"] } }, "routes.qw* must be the name of one model"],
    [{ model_aliases: { "gpt-*": "upstream-chat" } }, "model_aliases.gpt-* must be the name of one model"]
  ])("whose name of a model is a pattern: %o", async (raw, message) => {
    assert.include(await faultsOf(raw), message)
  })

  it("whose account has a login at a server with keys", async () => {
    const accounts = [{ token: "t" }, { email: "a@b.example", password: "p" }]
    assert.match(
      await faultsOf({ upstream: server, accounts }),
      /accounts\[1\]\.password must be unset: the upstream default has the driver openai, .+; give a token/
    )
    const session = { driver: "session", base_url: "http://127.0.0.1:9" }
    await Effect.runPromise(decodeConfig({ upstream: session, accounts }, { duplicates: "refuse" }))
  })
})
