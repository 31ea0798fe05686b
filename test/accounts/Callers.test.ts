import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { hashPassword } from "../../src/accounts/AdminPassword.ts"
import { Callers } from "../../src/accounts/Callers.ts"
import { CredentialThrottles } from "../../src/accounts/CredentialThrottles.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { ConfigTransfer } from "../../src/config/ConfigTransfer.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keysOf } from "../../src/config/rawConfig.ts"
import { generateKey } from "../../src/config/secrets.ts"
import { tokenOfLogin } from "../../src/domain/ownLogin.ts"
import { withTransfer } from "../support/configServices.ts"

const withCallers = (raw: RawConfig) =>
  Callers.layer.pipe(
    Layer.provide(CredentialThrottles.layerNone),
    Layer.provideMerge(withTransfer(ConfigStore.layerJson(raw, { adminKey: "the-admin-key" })))
  )

const identify = (credential: string) =>
  Effect.flatMap(Callers, (callers) =>
    Effect.match(callers.identify(credential, undefined, "192.0.2.1"), {
      onFailure: (error) => error.code,
      onSuccess: (caller) => caller._tag
    }))

const without = (key: string) =>
  Effect.flatMap(
    ConfigStore,
    (store) => store.update((raw) => Effect.succeed({ ...raw, keys: keysOf(raw).filter((each) => each !== key) }))
  )

const removedOf = (raw: RawConfig) => (raw["auth"] as { readonly removed_keys?: ReadonlyArray<string> }).removed_keys

describe("a caller's credential", () => {
  it.effect("that is not a key is an upstream token only if it can be one", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* identify("schl\u00fcssel mit blank"), "Managed")
      assert.strictEqual(yield* identify("a-token"), "Direct")
      assert.strictEqual(yield* identify("x".repeat(4096)), "Direct")
      for (const bad of ["\ufffd\ufffd", "a\r\nb", "two words", "\u0000", "x".repeat(4097), "t\u00f6ken"]) {
        assert.strictEqual(yield* identify(bad), "authentication_failed", JSON.stringify(bad.slice(0, 20)))
      }
    }).pipe(Effect.provide(withCallers({ keys: ["schl\u00fcssel mit blank"] }))))

  const words = (beside?: { readonly login: undefined }) =>
    Effect.flatMap(
      Callers,
      (callers) => Effect.flip(callers.identify("two words", undefined, "192.0.2.1", beside))
    ).pipe(Effect.map(({ message }) => message))

  it.effect("that is refused learns which kinds of credentials are accepted", () =>
    Effect.gen(function*() {
      assert.match(
        yield* words(),
        /no key of this gateway, and cannot be a token of its upstream\. Send a gateway key, or/
      )
      assert.match(yield* words({ login: undefined }), /no key of this gateway\. Send a gateway key;/)
    }).pipe(Effect.provide(withCallers({ keys: ["k"] }))))

  it.effect("that is refused learns of keys alone where tokens are not accepted", () =>
    Effect.gen(function*() {
      assert.match(yield* words(), /no key of this gateway\. Send a gateway key;/)
    }).pipe(Effect.provide(withCallers({ keys: ["k"], auth: { direct_tokens: false } }))))

  it.effect("that was a key is never sent upstream, also after a restart", () =>
    Effect.gen(function*() {
      const store = yield* ConfigStore
      yield* without("first")
      assert.strictEqual(yield* identify("first"), "authentication_failed")
      const raw = yield* store.currentRaw
      assert.deepStrictEqual(removedOf(raw), [sha256Hex("first")])
      assert.notInclude(JSON.stringify(raw), "first")
      const restarted = Effect.provide(identify("first"), withCallers(raw))
      assert.strictEqual(yield* restarted, "authentication_failed")
      assert.strictEqual(yield* Effect.provide(identify("never"), withCallers(raw)), "Direct")
      // A key that is added again is a key.
      yield* store.update((now) => Effect.succeed({ ...now, keys: ["first", "second"] }))
      assert.strictEqual(yield* identify("first"), "Managed")
    }).pipe(Effect.provide(withCallers({ keys: ["first", "second"] }))))

  it.effect("that was generated as a key at a start is never an upstream token", () =>
    Effect.gen(function*() {
      for (const key of [generateKey("gw"), generateKey("admin")]) {
        assert.match(key, /^(gw|admin)-[\w-]{32}$/)
        assert.strictEqual(yield* identify(key), "authentication_failed")
        assert.strictEqual(yield* identify(`${key.slice(0, -1)}${key.endsWith("A") ? "B" : "A"}`), "Direct")
      }
    }).pipe(Effect.provide(withCallers({ keys: ["k"] }))))

  it.effect("that was a key is remembered among the newest thousand, and is neither exported nor synced", () =>
    Effect.gen(function*() {
      const store = yield* ConfigStore
      const transfer = yield* ConfigTransfer
      const before = yield* transfer.configHash
      const keys = Array.from({ length: 1100 }, (_, i) => `key-${i}`)
      yield* store.update((raw) => Effect.succeed({ ...raw, keys: ["stays", ...keys] }))
      yield* store.update((raw) => Effect.succeed({ ...raw, keys: ["stays"] }))
      const removed = removedOf(yield* store.currentRaw) ?? []
      assert.lengthOf(removed, 1000)
      assert.strictEqual(removed.at(-1), sha256Hex("key-1099"))
      assert.notInclude((yield* transfer.exportConfig).json, "removed_keys")
      assert.strictEqual(yield* transfer.configHash, before)
      yield* transfer.importConfig({ keys: ["stays"], auth: { removed_keys: [] } }, "replace")
      assert.lengthOf(removedOf(yield* store.currentRaw) ?? [], 1000)
    }).pipe(Effect.provide(withCallers({ keys: ["stays"] }))))
})

const loginBesides = (value: string, header = "authorization") => {
  const login = tokenOfLogin({ header, value })
  return Effect.flatMap(Callers, (callers) =>
    Effect.map(
      callers.identify("k", undefined, "192.0.2.1", { login }),
      (caller) => caller._tag === "Managed" && caller.login === login
    ))
}

describe("a login beside the gateway's key", () => {
  it.effect("is left out if it is a secret of the gateway, removed ones included", () =>
    Effect.gen(function*() {
      const password_hash = yield* hashPassword("the-password")
      const claims = Buffer.from(JSON.stringify({ role: "admin", generation: 0 })).toString("base64url")
      const secrets = ["k", "other", "was-removed", "the-admin-key", `eyJhbGciOiJIUzI1NiJ9.${claims}.c2ln`]
      yield* Effect.gen(function*() {
        yield* without("was-removed")
        assert.strictEqual(yield* identify("was-removed"), "authentication_failed")
        for (const secret of [...secrets, generateKey("gw"), generateKey("admin"), "the-password"]) {
          for (const value of [`Bearer ${secret}`, `bearer  ${secret}`, secret, `${secret}, sk-ant-1`]) {
            assert.isFalse(yield* loginBesides(value), value)
          }
          const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`
          for (const value of [basic(`${secret}:`), basic(`user:${secret}`)]) assert.isFalse(yield* loginBesides(value))
          assert.isFalse(yield* loginBesides(secret, "x-api-key"), secret)
        }
        assert.isFalse(yield* loginBesides(Array(10).fill("word").join(" ")))
        for (const value of ["Bearer sk-ant-oat01-login", "Basic dXNlcjpwYXNz"]) {
          assert.isTrue(yield* loginBesides(value))
        }
        assert.isTrue(yield* loginBesides("sk-ant-api03-key", "x-api-key"))
      }).pipe(Effect.provide(
        withCallers({ keys: ["k", "other", "was-removed"], admin: { password_hash } })
      ))
    }))
})
