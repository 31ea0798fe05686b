/** What the history shows of a change of the configuration. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { changedFields } from "../../src/config/changedFields.ts"
import { isJsonObject, type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"

/** The changed fields as rows. */
const rows = (before: RawConfig, after: RawConfig) =>
  Effect.map(
    changedFields(before, after),
    ({ fields }) => fields.map(({ after, before, path }) => [path, before, after] as const)
  )

const secret = "a-secret-of-the-test"

/** A configuration with the secret in each field that may hold one. */
const withSecret = (text: string): RawConfig => ({
  keys: [`${text}-business-key`],
  accounts: [{
    email: "ada@example.com",
    password: text,
    token: text,
    proxy: `http://user:${text}@proxy.example:3128`
  }, { token: text }],
  admin: {
    password_hash: text,
    password_check: text,
    tokens: [{ id: "t1", name: "ci", role: "admin", hash: text }]
  },
  upstream: {
    base_url: `https://user:${text}@api.example/v1?key=${text}`,
    proxy: `socks5://user:${text}@proxy.example`,
    headers: { authorization: text, "x-api-key": text },
    tls: {
      ca: `-----BEGIN CERTIFICATE-----\n${text}`,
      cert: `-----BEGIN CERTIFICATE-----\n${text}`,
      key: `-----BEGIN PRIVATE KEY-----\n${text}`
    }
  },
  upstreams: {
    gpu: {
      driver: "openai",
      base_url: `http://:${text}@gpu.example`,
      headers: { authorization: text },
      proxy: `http://${text}@proxy.example`,
      tls: { key: text }
    }
  },
  auth: { removed_keys: [text] },
  host: { token: text },
  store: { url: `redis://default:${text}@store.example:6379` },
  pasword: text,
  runtime: { pasword: text, apiKey: [text] },
  model_aliases: { name: `https://user:${text}@x.example` },
  unknown: { group: { field: text } }
})

describe("the changed fields", () => {
  it.effect("names the account of a credential, and shows no argument of its program", () =>
    Effect.gen(function*() {
      const withLife = (life: number, argument: string): RawConfig => ({
        accounts: [{ upstream: "gpu", credential: { from: "command", run: ["/bin/token", argument], for: life } }]
      })
      const [row, ...others] = yield* rows(withLife(60, secret), withLife(90, secret))
      assert.match(row?.[0] ?? "", /^accounts\[gpu\/command:[0-9a-f]{16}\]\.credential\.for$/)
      assert.deepStrictEqual([row?.[1], row?.[2], others], ["60", "90", []])
      const replaced = yield* rows(withLife(60, secret), withLife(60, "another"))
      assert.lengthOf(replaced, 2)
      assert.notInclude(JSON.stringify(replaced), secret)
    }))

  it.effect("contain no secret of any field, whether it is added, changed or removed", () =>
    Effect.gen(function*() {
      const filled = withSecret(secret)
      const sides: ReadonlyArray<readonly [RawConfig, RawConfig]> = [
        [{}, filled],
        [filled, {}],
        [filled, withSecret(`${secret}-2`)],
        [{ upstream: {}, admin: {}, host: {}, runtime: {}, accounts: [{ email: "ada@example.com" }] }, filled]
      ]
      for (const [before, after] of sides) {
        const found = yield* changedFields(before, after)
        assert.isAbove(found.fields.length, 10)
        assert.notInclude(JSON.stringify(found), secret)
      }
    }))

  it.effect("contain no user information and no query of an address, in whichever form it is written", () =>
    Effect.gen(function*() {
      const addresses = [
        `http:\\\\user:${secret}@host`,
        `http:user:${secret}@host`,
        `ht\ttp://user:${secret}@host`,
        `https://host/v1?key=${secret}`,
        `https://host/v1#${secret}`,
        `\${SCHEME}://user:${secret}@host`
      ]
      for (const address of addresses) {
        const after: RawConfig = {
          accounts: [{ email: "ada@example.com", proxy: address }],
          upstream: { base_url: address },
          upstreams: { gpu: { base_url: address, api_key: secret, models: { m: { model: "m", key_of: secret } } } },
          store: { url: address }
        }
        const { fields } = yield* changedFields({ upstream: {}, upstreams: { gpu: {} } }, after)
        assert.isAtLeast(fields.length, 5)
        assert.notInclude(JSON.stringify(fields), secret, address)
      }
      assert.deepStrictEqual(
        yield* rows({ upstream: { base_url: "https://a/v1?v=1" } }, { upstream: { base_url: "https://u:p@b/v1?v=2" } }),
        [["upstream.base_url", "https://a/v1?v=***", "https://***@b/v1?v=***"]]
      )
    }))

  it.effect("name the secrets that changed", () =>
    Effect.gen(function*() {
      const paths = (yield* rows(withSecret(secret), withSecret(`${secret}-2`))).map(([path]) => path)
      for (
        const path of [
          "accounts[ada@example.com].password",
          "accounts[ada@example.com].proxy",
          "admin.password_hash",
          "admin.tokens[ci].hash",
          "upstream.base_url",
          "upstream.headers",
          "upstream.tls.key",
          "upstreams.gpu.proxy",
          "host.token",
          "store.url",
          "pasword"
        ]
      ) assert.include(paths, path)
    }))

  it.effect("name settings by their dotted path, with both values", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* rows(
          { runtime: { account_max_inflight: 2 }, model_aliases: { a: "b" }, compat: { family_models: true } },
          { runtime: { account_max_inflight: 7, sticky: true }, compat: { family_models: true } }
        ),
        [
          ["runtime.account_max_inflight", "2", "7"],
          ["runtime.sticky", null, "true"],
          ["model_aliases.a", "b", null]
        ]
      )
    }))

  it.effect("name keys by their name or preview, and accounts by their identifier", () =>
    Effect.gen(function*() {
      const [named, plain] = ["sk-gw-of-the-mobile-app-0123456789", "sk-gw-another-0123456789-0123456789"]
      const id = keyId(named, sha256Hex)
      const before: RawConfig = {
        keys: [named],
        key_records: { [id]: { name: "Mobile app", max_inflight: 2 } },
        accounts: [{ email: "ada@example.com" }, { upstream: "gpu", token: "a token" }]
      }
      assert.deepStrictEqual(
        yield* rows(before, {
          keys: [named, plain],
          key_records: { [id]: { name: "Mobile app", max_inflight: 3 } },
          accounts: [{ email: "ada@example.com", disabled: true }, { email: "new@example.com", password: "secret" }]
        }),
        [
          ["keys[sk-gw-an...]", null, "***"],
          ["keys[Mobile app].max_inflight", "2", "3"],
          ["accounts[ada@example.com].disabled", null, "true"],
          ["accounts[new@example.com]", null, `{"email":"new@example.com","password":"***"}`],
          [
            `accounts[gpu/token:${sha256Hex("a token").slice(0, 16)}]`,
            `{"upstream":"gpu","token":"***"}`,
            null
          ]
        ]
      )
      assert.deepStrictEqual(yield* rows(before, { accounts: before["accounts"]! }), [
        ["keys[Mobile app]", `{"name":"Mobile app","max_inflight":2}`, null]
      ])
    }))

  it.effect("include a new order of upstreams and routes, and leave out the order of other fields", () =>
    Effect.gen(function*() {
      const [a, b] = [{ driver: "openai" }, { driver: "messages" }]
      assert.deepStrictEqual(
        yield* rows(
          { upstreams: { a, b }, runtime: { sticky: true, key_max_inflight: 1 }, keys: ["one", "two"] },
          { upstreams: { b, a }, runtime: { key_max_inflight: 1, sticky: true }, keys: ["two", "one"] }
        ),
        [["upstreams (order)", "a, b", "b, a"]]
      )
    }))

  it.effect("are at most 100 with values of at most 200 characters, and the rest is counted", () =>
    Effect.gen(function*() {
      const aliases = Object.fromEntries(Array.from({ length: 130 }, (_, i) => [`name-${i}`, "x".repeat(1000)]))
      const { fields, more } = yield* changedFields({}, { model_aliases: aliases })
      assert.deepStrictEqual([fields.length, more], [100, 30])
      assert.strictEqual(fields[0]?.after, `${"x".repeat(199)}…`)
    }))

  it.effect("are empty for equal configurations, and for state that is the gateway's own", () =>
    Effect.gen(function*() {
      const config = withSecret(secret)
      assert.deepStrictEqual(yield* changedFields(config, { ...config, runtime: { ...objectAt(config, "runtime") } }), {
        differs: false,
        fields: [],
        more: 0
      })
      assert.deepStrictEqual(
        yield* changedFields({ admin: { generation: 1 } }, { admin: { generation: 2, password_check: "x" } }),
        { differs: true, fields: [], more: 0 }
      )
    }))
})

const objectAt = (raw: RawConfig, name: string): RawConfig => {
  const value = raw[name]
  return isJsonObject(value) ? value : {}
}
