import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { hashPassword } from "../../src/accounts/AdminPassword.ts"
import { AdminSecrets } from "../../src/accounts/AdminSecrets.ts"
import { Callers } from "../../src/accounts/Callers.ts"
import { mostWaiting, wrongAMinute } from "../../src/accounts/CredentialThrottle.ts"
import { CredentialThrottles } from "../../src/accounts/CredentialThrottles.ts"
import { AdminAuth } from "../../src/admin/auth/AdminAuth.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"

const key = "right-key"
const here = "192.0.2.1"
const there = "192.0.2.2"

const withAuth = (raw: RawConfig = {}, adminKey = key) =>
  Layer.merge(AdminAuth.layer, Callers.layer).pipe(
    Layer.provide(CredentialThrottles.layer),
    Layer.provide(AdminSecrets.layer),
    Layer.provideMerge(ConfigStore.layerJson(raw, { adminKey }))
  )

const codeOf = <A, R>(effect: Effect.Effect<A, { readonly code: string }, R>) =>
  Effect.map(Effect.flip(effect), (error) => error.code)

const secret = "mga-a-token-of-this-test"
const ofToken = { id: "one", name: "ci", role: "viewer", hash: sha256Hex(secret) }

describe("a token for the admin API", () => {
  it.effect("expires with its sessions, which do not outlive it", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const { expiresIn, token } = yield* auth.login(secret, 24, here)
      assert.strictEqual(expiresIn, 5_400)
      const session = yield* auth.authorize(token, here)
      const operator = yield* auth.authorize(secret, here)
      assert.deepStrictEqual([operator.role, operator.who], ["viewer", { kind: "token", name: "ci" }])
      assert.deepStrictEqual([session.role, session.who], ["viewer", { kind: "session", name: "ci" }])
      yield* TestClock.adjust("5399 seconds")
      assert.isTrue((yield* operator.holds) && (yield* session.holds))
      yield* TestClock.adjust("1 second")
      assert.isFalse((yield* operator.holds) || (yield* session.holds))
      for (const bearer of [secret, token]) {
        assert.strictEqual(yield* codeOf(auth.authorize(bearer, here)), "authentication_failed")
      }
      assert.strictEqual(yield* codeOf(auth.login(secret, 1, here)), "authentication_failed")
    }).pipe(Effect.provide(withAuth({ admin: { tokens: [{ ...ofToken, expires_at: "1970-01-01T01:30:00Z" }] } }))))

  it.effect("is accepted immediately at an address that is slowed by wrong ones, which count as wrong logins", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      for (let i = 0; i < wrongAMinute; i++) {
        assert.strictEqual(yield* codeOf(auth.authorize(`mga-wrong-${i}`, here)), "authentication_failed")
      }
      assert.strictEqual(yield* codeOf(auth.login("wrong", undefined, here)), "rate_limit_exceeded")
      assert.strictEqual((yield* auth.authorize(secret, here)).role, "viewer")
      yield* auth.login(secret, 1, here)
    }).pipe(Effect.provide(withAuth({ admin: { tokens: [ofToken] } }))))

  it.effect("ends the sessions of its former secret when it gets another one", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const config = yield* ConfigStore
      const { token } = yield* auth.login(secret, 1, here)
      yield* config.update((raw) =>
        Effect.succeed({ ...raw, admin: { tokens: [{ ...ofToken, hash: sha256Hex("mga-another") }] } })
      )
      for (const bearer of [secret, token]) {
        assert.strictEqual(yield* codeOf(auth.authorize(bearer, here)), "authentication_failed")
      }
      assert.strictEqual((yield* auth.authorize("mga-another", here)).role, "viewer")
    }).pipe(Effect.provide(withAuth({ admin: { tokens: [ofToken] } }))))
})

describe("an admin login", () => {
  it.effect("lasts for the requested hours, by default for the configured ones", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      assert.strictEqual((yield* auth.login(key, 2, here)).expiresIn, 7_200)
      assert.strictEqual((yield* auth.login(key, 0.5 + 1, here)).expiresIn, 5_400)
      assert.strictEqual((yield* auth.login(key, undefined, here)).expiresIn, 5 * 3_600)
      for (const hours of [0, 0.99, 721, -1]) {
        assert.strictEqual(yield* codeOf(auth.login(key, hours, here)), "invalid_request")
      }
    }).pipe(Effect.provide(withAuth({ admin: { jwt_expire_hours: 5 } }))))

  it.effect("expires to the second", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const { token } = yield* auth.login(key, 1, here)
      yield* TestClock.adjust("3599 seconds")
      assert.deepStrictEqual(yield* auth.verify(token, here), {
        role: "admin",
        name: null,
        expiresAt: 3_600,
        remainingSeconds: 1
      })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* codeOf(auth.verify(token, here)), "authentication_failed")
      assert.strictEqual(yield* codeOf(auth.authorize(token, here)), "authentication_failed")
    }).pipe(Effect.provide(withAuth())))

  it.effect("that runs during a password change belongs to the old password", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      yield* auth.setPassword("first password")
      // Two hashes run at once: the login's hash begins when one of these has ended.
      const change = yield* Effect.forkChild(auth.setPassword("second password"))
      yield* Effect.forkChild(codeOf(auth.login("wrong", undefined, there)))
      const late = yield* Effect.forkChild(auth.login("first password", undefined, here))
      yield* Fiber.join(change)
      const { token } = yield* Fiber.join(late)
      assert.strictEqual(yield* codeOf(auth.verify(token, here)), "authentication_failed")
    }).pipe(Effect.provide(withAuth())))
})

describe("wrong business keys", () => {
  const withKeys = withAuth({ keys: ["a-key"], auth: { direct_tokens: false } })

  it.effect("of an address are refused immediately five times a minute, then four a second, and a right key never waits", () =>
    Effect.gen(function*() {
      yield* AdminAuth
      const callers = yield* Callers
      const ask = (token: string, address: string) => codeOf(callers.identify(token, undefined, address))
      // The first turn is immediate too.
      for (let i = 0; i <= wrongAMinute; i++) {
        assert.strictEqual(yield* ask(`wrong-${i}`, here), "authentication_failed")
      }
      const waiting = yield* Effect.forEach(
        Array.from({ length: mostWaiting }, (_, i) => `more-${i}`),
        (token) => Effect.forkChild(ask(token, here), { startImmediately: true })
      )
      assert.deepInclude(yield* Effect.flip(callers.identify("one-more", undefined, here)), {
        code: "rate_limit_exceeded",
        retryAfter: mostWaiting / 4
      })
      assert.strictEqual((yield* callers.identify("a-key", undefined, here))._tag, "Managed")
      assert.strictEqual(yield* ask("wrong", there), "authentication_failed")
      yield* TestClock.adjust("249 millis")
      assert.isUndefined(waiting[0]?.pollUnsafe())
      yield* TestClock.adjust("751 millis")
      assert.deepStrictEqual(waiting.map((fiber) => fiber.pollUnsafe() !== undefined).indexOf(false), 4)
      yield* TestClock.adjust("15 seconds")
      for (const fiber of waiting) assert.strictEqual(yield* Fiber.join(fiber), "authentication_failed")
    }).pipe(Effect.provide(withKeys)))

  it.effect("do not slow the logins of their address", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const callers = yield* Callers
      for (let i = 0; i <= wrongAMinute; i++) yield* codeOf(callers.identify("wrong", undefined, here))
      assert.isString((yield* auth.login(key, undefined, here)).token)
    }).pipe(Effect.provide(withKeys)))

  it.effect("are those that are refused: neither a caller's own token nor a disabled key counts", () =>
    Effect.gen(function*() {
      yield* AdminAuth
      const callers = yield* Callers
      const id = keyId("disabled-key", sha256Hex)
      const store = yield* ConfigStore
      yield* store.update((raw) => Effect.succeed({ ...raw, key_records: { [id]: { disabled: true } } }))
      for (let i = 0; i <= 2 * wrongAMinute; i++) {
        assert.strictEqual((yield* callers.identify(`token-${i}`, undefined, here))._tag, "Direct")
        assert.strictEqual(yield* codeOf(callers.identify("disabled-key", undefined, here)), "authentication_failed")
      }
      assert.strictEqual(yield* codeOf(callers.identify("no token", undefined, here)), "authentication_failed")
    }).pipe(Effect.provide(withAuth({ keys: ["disabled-key"] }))))
})

describe("wrong admin credentials", () => {
  it.effect("slow down their own address after five in a minute, with Retry-After", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      for (let i = 0; i < wrongAMinute; i++) {
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

  it.effect("count on every route, and the right key still passes", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      for (let i = 0; i < wrongAMinute; i++) {
        assert.strictEqual(yield* codeOf(auth.authorize("wrong", here)), "authentication_failed")
      }
      const slowed = yield* Effect.flip(auth.authorize("wrong", here))
      assert.strictEqual(slowed.code, "authentication_failed")
      assert.strictEqual(slowed.retryAfter, 60)
      const login = yield* Effect.forkChild(codeOf(auth.login("wrong", undefined, here)))
      const right = yield* Effect.forkChild(auth.login(key, undefined, here))
      yield* TestClock.adjust("249 millis")
      // Every reply waits for its turn, and a right credential is not revealed earlier than a wrong one.
      assert.isUndefined(login.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* Fiber.join(login), "rate_limit_exceeded")
      assert.isUndefined(right.pollUnsafe())
      yield* TestClock.adjust("250 millis")
      const { token } = yield* Fiber.join(right)
      // A valid JWT never waits.
      yield* auth.authorize(token, here)
      yield* auth.verify(token, here)
    }).pipe(Effect.provide(withAuth())))

  it.effect("are rejected unchecked with Retry-After while the queue is full", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      for (let i = 0; i <= wrongAMinute; i++) yield* codeOf(auth.authorize("wrong", here))
      for (let i = 0; i < mostWaiting; i++) yield* Effect.forkChild(codeOf(auth.authorize("wrong", here)))
      yield* TestClock.adjust("1 millis")
      assert.deepInclude(yield* Effect.flip(auth.login(key, undefined, here)), {
        code: "rate_limit_exceeded",
        retryAfter: mostWaiting / 4
      })
      assert.deepInclude(yield* Effect.flip(auth.authorize(key, here)), {
        code: "authentication_failed",
        retryAfter: mostWaiting / 4
      })
      yield* auth.authorize(key, there)
      yield* TestClock.adjust(`${mostWaiting / 4 + 1} seconds`)
      yield* auth.authorize(key, here)
    }).pipe(Effect.provide(withAuth())))

  it.effect("do not delay a key that was right from the same address within a day", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      yield* auth.login(key, undefined, here)
      const flood = () => Effect.forkChild(Effect.forever(Effect.exit(auth.login("wrong", undefined, here))))
      yield* TestClock.adjust("23 hours")
      const flooding = yield* Effect.all(Array.from({ length: 40 }, flood))
      yield* TestClock.adjust("30 seconds")
      const logins = yield* Effect.all(
        Array.from({ length: 20 }, () => Effect.forkChild(auth.login(key, undefined, here)))
      )
      yield* TestClock.adjust("2 seconds")
      for (const login of logins) assert.isString((yield* Fiber.join(login)).token)
      yield* Effect.forEach(flooding, Fiber.interrupt)
    }).pipe(Effect.provide(withAuth())))

  it.effect("a replaced password is one of them, and no longer skips the queue", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      yield* auth.login(key, undefined, here)
      for (let i = 0; i <= wrongAMinute; i++) yield* codeOf(auth.login("wrong", undefined, here))
      yield* auth.setPassword("another-password")
      const old = yield* Effect.forkChild(codeOf(auth.login(key, undefined, here)))
      yield* TestClock.adjust("25 millis")
      assert.isUndefined(old.pollUnsafe())
    }).pipe(Effect.provide(withAuth())))

  it.effect("leave a place in the queue for a key that was never right from the address", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const flood = () => Effect.forkChild(Effect.forever(Effect.exit(auth.login("wrong", undefined, here))))
      yield* Effect.all(Array.from({ length: 40 }, flood))
      yield* TestClock.adjust("30 seconds")
      const login = yield* Effect.forkChild(auth.login(key, undefined, here))
      yield* TestClock.adjust("11 seconds")
      assert.isString((yield* Fiber.join(login)).token)
    }).pipe(Effect.provide(withAuth())))

  it.effect("do not delay a key of the environment that is too long to guess", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      for (let i = 0; i <= wrongAMinute; i++) yield* codeOf(auth.authorize("wrong", here))
      for (let i = 0; i < mostWaiting; i++) yield* Effect.forkChild(codeOf(auth.authorize("wrong", here)))
      yield* auth.authorize("a-key-of-24-characters!!", here)
      yield* auth.login("a-key-of-24-characters!!", undefined, here)
    }).pipe(Effect.provide(withAuth({}, "a-key-of-24-characters!!"))))

  it.effect("an expired or revoked JWT is not counted", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const { token } = yield* auth.login(key, 1, here)
      yield* TestClock.adjust("2 hours")
      for (let i = 0; i < 2 * wrongAMinute; i++) yield* codeOf(auth.authorize(token, here))
      assert.strictEqual(yield* codeOf(auth.login("wrong", undefined, here)), "authentication_failed")
    }).pipe(Effect.provide(withAuth())))
})

describe("the admin password", () => {
  const asCaller = (credential: string) =>
    Effect.flatMap(Callers, (callers) => Effect.exit(callers.identify(credential, undefined, here))).pipe(
      Effect.map(Exit.isSuccess)
    )

  it.effect("the current and earlier passwords are never used as a caller's upstream token", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      yield* auth.authorize("configured-password", here)
      assert.isFalse(yield* asCaller("configured-password"))
      yield* auth.setPassword("another-password")
      assert.isFalse(yield* asCaller("another-password"))
      assert.isFalse(yield* asCaller("configured-password"))
      assert.isFalse(yield* asCaller(key))
      assert.isTrue(yield* asCaller("an-upstream-token"))
    }).pipe(
      Effect.provide(
        Layer.unwrap(
          Effect.map(
            hashPassword("configured-password"),
            (password_hash) => withAuth({ keys: ["k"], admin: { password_hash } })
          )
        )
      )
    ))

  it.effect("has 8 to 1024 characters", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      assert.strictEqual(yield* codeOf(auth.setPassword("seven 7")), "invalid_request")
      assert.strictEqual(yield* codeOf(auth.setPassword("x".repeat(1025))), "invalid_request")
    }).pipe(Effect.provide(withAuth())))

  it.effect("is stored as a salted hash", () =>
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

  /** The result of a credential at a gateway that starts with this configuration. */
  const afterStart = (raw: RawConfig, credential: string) =>
    Effect.gen(function*() {
      const callers = yield* Callers
      return yield* Effect.match(callers.identify(credential, undefined, here), {
        onFailure: (error) => error.code,
        onSuccess: (caller) => caller._tag
      })
    }).pipe(Effect.provide(withAuth(raw)))

  it.effect("is recognized after a restart, with or without the stored check byte", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const store = yield* ConfigStore
      yield* auth.setPassword("kept-password")
      const raw = yield* store.currentRaw
      const { password_check, ...admin } = raw["admin"] as Record<string, string>
      assert.match(password_check!, /^[0-9a-f]{16}-[0-9a-f]{2}$/)
      // The byte is of another secret, because each in-memory start has its own; with the same one it rules out most tokens.
      for (const given of [raw, { ...raw, admin }]) {
        assert.strictEqual(yield* afterStart(given, "kept-password"), "authentication_failed")
        assert.strictEqual(yield* afterStart(given, "an-upstream-token"), "Direct")
      }
    }).pipe(Effect.provide(withAuth({ keys: ["k"] }))))

  it.effect("is compared by scrypt for one token in 256, and the result is remembered", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const callers = yield* Callers
      yield* auth.setPassword("kept-password")
      // A comparison by scrypt runs in another thread; the byte alone decides synchronously.
      const waits = (credential: string) =>
        Effect.map(
          Effect.forkChild(callers.identify(credential, undefined, credential), { startImmediately: true }),
          (fiber) => ({
            fiber,
            waits: fiber.pollUnsafe() === undefined
          })
        )
      let tested = 0
      for (let i = 0; i < 1000; i++) {
        const first = yield* waits(`token-${i}`)
        yield* Fiber.join(first.fiber)
        if (first.waits) {
          tested++
          assert.isFalse((yield* waits(`token-${i}`)).waits)
        }
      }
      assert.isAtMost(tested, 30)
    }).pipe(Effect.provide(withAuth({ keys: ["k"] }))))

  it.effect("is guessed through business requests no faster than through logins", () =>
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const callers = yield* Callers
      const ask = (credential: string, address: string) =>
        Effect.exit(callers.identify(credential, undefined, address)).pipe(Effect.map(Exit.isSuccess))
      // Without the check byte every token may be the password.
      for (let i = 0; i < wrongAMinute; i++) assert.isTrue(yield* ask(`guess-${i}`, here))
      // A token with a known result needs no check.
      assert.isTrue(yield* ask("guess-0", here))
      assert.isTrue(yield* ask("a-token", there))
      // The first turn is immediate.
      assert.isTrue(yield* ask("guess-5", here))
      const guesses = yield* Effect.forEach(
        Array.from({ length: mostWaiting }, (_, i) => `more-${i}`),
        (credential) => Effect.forkChild(ask(credential, here), { startImmediately: true })
      )
      assert.strictEqual(yield* codeOf(callers.identify("one-more", undefined, here)), "rate_limit_exceeded")
      assert.strictEqual(yield* codeOf(auth.login("wrong", undefined, here)), "rate_limit_exceeded")
      assert.isTrue(guesses.every((fiber) => fiber.pollUnsafe() === undefined))
      // Another address has its own turns, and each turn serves one waiter.
      yield* auth.login("kept-password", undefined, there)
      yield* TestClock.adjust("1 second")
      assert.isTrue(yield* Fiber.join(guesses[0]!))
      yield* Fiber.interruptAll(guesses)
    }).pipe(
      Effect.provide(
        Layer.unwrap(
          Effect.map(
            hashPassword("kept-password"),
            (password_hash) => withAuth({ keys: ["k"], admin: { password_hash } })
          )
        )
      )
    ))
})
