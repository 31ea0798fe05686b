import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { Callers } from "../../src/accounts/Callers.ts"
import { AdminAuth } from "../../src/admin/auth/AdminAuth.ts"
import { hashPassword } from "../../src/admin/auth/password.ts"
import { makeWrongLogins, wrongLoginsAMinute } from "../../src/admin/auth/wrongLogins.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"

const key = "right-key"
const here = "192.0.2.1"
const there = "192.0.2.2"

const withAuth = (raw = {}) =>
  AdminAuth.layer.pipe(
    Layer.provideMerge(Callers.layer),
    Layer.provideMerge(ConfigStore.layerMemory(raw, { adminKey: key }))
  )

const codeOf = <A, R>(effect: Effect.Effect<A, { readonly code: string }, R>) =>
  Effect.map(Effect.flip(effect), (error) => error.code)

describe("a login", () => {
  it.effect("lasts as long as was asked for, else as is configured", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      assert.strictEqual((yield* auth.login(key, 2, here)).expiresIn, 7_200)
      assert.strictEqual((yield* auth.login(key, 0.5 + 1, here)).expiresIn, 5_400)
      assert.strictEqual((yield* auth.login(key, undefined, here)).expiresIn, 5 * 3_600)
      for (const hours of [0, 0.99, 721, -1]) {
        assert.strictEqual(yield* codeOf(auth.login(key, hours, here)), "invalid_request")
      }
    }).pipe(Effect.provide(withAuth({ admin: { jwt_expire_hours: 5 } }))))

  it.effect("ends to the second", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const { token } = yield* auth.login(key, 1, here)
      yield* TestClock.adjust("3599 seconds")
      assert.deepStrictEqual(yield* auth.verify(token, here), { expiresAt: 3_600, remainingSeconds: 1 })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* codeOf(auth.verify(token, here)), "authentication_failed")
      assert.strictEqual(yield* codeOf(auth.authorize(token, here)), "authentication_failed")
    }).pipe(Effect.provide(withAuth())))

  it.effect("that was under way when the password changed is of before the change", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      yield* auth.setPassword("first password")
      // Two hashes run at once: the login's own begins when one of these has ended.
      const change = yield* Effect.forkChild(auth.setPassword("second password"))
      yield* Effect.forkChild(codeOf(auth.login("wrong", undefined, there)))
      const late = yield* Effect.forkChild(auth.login("first password", undefined, here))
      yield* Fiber.join(change)
      const { token } = yield* Fiber.join(late)
      assert.strictEqual(yield* codeOf(auth.verify(token, here)), "authentication_failed")
    }).pipe(Effect.provide(withAuth())))
})

describe("wrong credentials", () => {
  it.effect("are told to wait after five a minute, the address for itself", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      for (let i = 0; i < wrongLoginsAMinute; i++) {
        assert.strictEqual(yield* codeOf(auth.login("wrong", undefined, here)), "authentication_failed")
      }
      yield* TestClock.adjust("20 seconds")
      const slowed = yield* Effect.flip(auth.login("wrong", undefined, here))
      assert.strictEqual(slowed.code, "rate_limit_exceeded")
      assert.strictEqual(slowed.retryAfter, 40)
      assert.strictEqual(yield* codeOf(auth.login("wrong", undefined, there)), "authentication_failed")
      yield* TestClock.adjust("40 seconds")
      assert.strictEqual(yield* codeOf(auth.login("wrong", undefined, here)), "authentication_failed")
    }).pipe(Effect.provide(withAuth())))

  it.effect("count on every route, and a right key gets in all the same", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      for (let i = 0; i < wrongLoginsAMinute; i++) {
        assert.strictEqual(yield* codeOf(auth.authorize("wrong", here)), "authentication_failed")
      }
      const slowed = yield* Effect.flip(auth.authorize("wrong", here))
      assert.strictEqual(slowed.code, "authentication_failed")
      assert.strictEqual(slowed.retryAfter, 60)
      assert.strictEqual(yield* codeOf(auth.login("wrong", undefined, here)), "rate_limit_exceeded")
      yield* auth.authorize(key, here)
      yield* auth.authorize((yield* auth.login(key, undefined, here)).token, here)
    }).pipe(Effect.provide(withAuth())))

  it.effect("are not what a login of before is", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const { token } = yield* auth.login(key, 1, here)
      yield* TestClock.adjust("2 hours")
      for (let i = 0; i < 2 * wrongLoginsAMinute; i++) yield* codeOf(auth.authorize(token, here))
      assert.strictEqual(yield* codeOf(auth.login("wrong", undefined, here)), "authentication_failed")
    }).pipe(Effect.provide(withAuth())))

  it("are counted by address in windows of a minute, and no more addresses than fit are remembered", () => {
    fc.assert(fc.property(
      fc.array(fc.record({ address: fc.constantFrom("a", "b", "c"), later: fc.nat(30_000) }), { maxLength: 60 }),
      (attempts) => {
        const wrong = makeWrongLogins()
        const model = new Map<string, { count: number; ends: number }>()
        let now = 0
        for (const { address, later } of attempts) {
          now += later
          const known = model.get(address)
          const window = known !== undefined && known.ends > now ? known : { count: 0, ends: now + 60_000 }
          window.count++
          model.set(address, window)
          assert.strictEqual(
            wrong.count(address, now),
            window.count > wrongLoginsAMinute ? window.ends - now : undefined
          )
          assert.strictEqual(wrong.isOver(address, now), window.count >= wrongLoginsAMinute)
        }
      }
    ))
    const many = makeWrongLogins()
    for (let i = 0; i < wrongLoginsAMinute; i++) many.count("first", 0)
    assert.isTrue(many.isOver("first", 1))
    for (let i = 0; i < 10_000; i++) many.count(`address ${i}`, 1)
    assert.isFalse(many.isOver("first", 1))
  })
})

describe("a password", () => {
  const asCaller = (credential: string) =>
    Effect.flatMap(Callers, (callers) => Effect.exit(callers.identify(credential, undefined))).pipe(
      Effect.map(Exit.isSuccess)
    )

  it.effect("that was set, or was right once, is never taken for a caller's upstream token", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      yield* auth.authorize("configured password", here)
      assert.isFalse(yield* asCaller("configured password"))
      yield* auth.setPassword("another password")
      assert.isFalse(yield* asCaller("another password"))
      assert.isFalse(yield* asCaller("configured password"))
      assert.isFalse(yield* asCaller(key))
      assert.isTrue(yield* asCaller("an upstream token"))
    }).pipe(
      Effect.provide(
        Layer.unwrap(
          Effect.map(
            hashPassword("configured password"),
            (password_hash) => withAuth({ keys: ["k"], admin: { password_hash } })
          )
        )
      )
    ))

  it.effect("has at least eight characters and at most 1024", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      assert.strictEqual(yield* codeOf(auth.setPassword("seven 7")), "invalid_request")
      assert.strictEqual(yield* codeOf(auth.setPassword("x".repeat(1025))), "invalid_request")
    }).pipe(Effect.provide(withAuth())))

  it.effect("is kept as a salted hash", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const store = yield* ConfigStore
      yield* auth.setPassword("same password")
      const first = JSON.stringify(yield* store.currentRaw)
      yield* auth.setPassword("same password")
      const second = JSON.stringify(yield* store.currentRaw)
      assert.notInclude(first, "same password")
      assert.notStrictEqual(/scrypt[^"]*/.exec(first)?.[0], /scrypt[^"]*/.exec(second)?.[0])
      yield* auth.authorize("same password", here)
    }).pipe(Effect.provide(withAuth())))
})
