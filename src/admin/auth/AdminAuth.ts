/**
 * Who may use the admin API: the admin key or password, and the JWTs that a login gives (behaviour: "JWT").
 *
 * A password that was set stands in for the environment's key. Its scrypt hash is costly on purpose, so a key that was right
 * is remembered by its HMAC, and wrong ones are counted by address.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import { jwtVerify, SignJWT } from "jose"
import { createHmac, randomBytes } from "node:crypto"
import { ConfigStore, type Saved } from "../../config/ConfigStore.ts"
import { setField } from "../../config/edit.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { savedOr } from "../configErrors.ts"
import { hashPassword, verifyPassword } from "./password.ts"

/** Wrong logins that an address has a minute; further wrong ones are told to wait. */
const wrongLogins = 5

const minPassword = 8
/** scrypt takes as long as its input allows; nobody has a password of this length. */
const maxPassword = 1024

/** A login's token. */
export interface Login {
  readonly token: string
  /** Seconds. */
  readonly expiresIn: number
}

/** A JWT that is valid. */
export interface Session {
  /** Unix seconds. */
  readonly expiresAt: number
  readonly remainingSeconds: number
}

const unauthorized = gatewayError("authentication_failed", "The admin credential is missing, wrong or expired")

export class AdminAuth extends Context.Service<AdminAuth, {
  /** Checks the admin key and gives a JWT for `hours` (the configured time where it is absent). */
  readonly login: (key: string, hours: number | undefined, address: string) => Effect.Effect<Login, GatewayError>
  /** Checks a JWT. */
  readonly verify: (token: string, address: string) => Effect.Effect<Session, GatewayError>
  /** Checks a bearer of any admin route: a JWT, or the admin key itself. */
  readonly authorize: (bearer: string, address: string) => Effect.Effect<void, GatewayError>
  /** Sets the password and invalidates every JWT. */
  readonly setPassword: (
    password: string
  ) => Effect.Effect<Saved & { readonly validAfter: number }, GatewayError>
}>()("model-gateway/admin/AdminAuth") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    const limiter = yield* RateLimiter.RateLimiter
    // scrypt runs in node's thread pool of four, which files and name look-ups need too.
    const hashing = yield* Semaphore.make(2)
    const rememberKey = randomBytes(32)
    /** HMAC of the last key that was right, for the password hash that it was right for. */
    let remembered: { readonly hash: string; readonly mac: string } | undefined
    const secret = Redacted.value(config.jwtSecret)
    const macOf = (key: string) => createHmac("sha256", rememberKey).update(key).digest("hex")

    const isRight = (key: string): Effect.Effect<boolean> => {
      const hash = config.unsafeCurrent().admin.password_hash
      if (hash === undefined) return Effect.succeed(config.isAdminKey(key))
      const expected = Redacted.value(hash)
      // Comparing MACs under a secret key tells an attacker nothing by its time.
      const mac = macOf(key)
      if (remembered?.hash === expected && remembered.mac === mac) return Effect.succeed(true)
      if (key.length > maxPassword) return Effect.succeed(false)
      return Effect.map(hashing.withPermit(verifyPassword(key, expected)), (right) => {
        if (right) remembered = { hash: expected, mac }
        return right
      })
    }

    /** Counts a wrong credential and fails with what its sender is told. */
    const wrong = (address: string): Effect.Effect<never, GatewayError> =>
      limiter.consume({ key: address, limit: wrongLogins, window: "1 minute", onExceeded: "fail" }).pipe(
        Effect.catch((error) =>
          Effect.fail(
            gatewayError("rate_limit_exceeded", "Too many wrong logins from this address", {
              retryAfter: error.reason._tag === "RateLimitExceeded"
                ? Math.ceil(Number(error.reason.retryAfter) / 1000)
                : 60
            })
          )
        ),
        Effect.andThen(Effect.fail(unauthorized))
      )

    const readJwt = (token: string): Effect.Effect<Session, GatewayError> =>
      Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        const { payload } = yield* Effect.tryPromise({
          try: () => jwtVerify(token, secret, { algorithms: ["HS256"], currentDate: new Date(now) }),
          catch: () => unauthorized
        })
        const { exp, generation, role } = payload
        if (role !== "admin" || generation !== config.unsafeCurrent().admin.generation || exp === undefined) {
          return yield* unauthorized
        }
        return { expiresAt: exp, remainingSeconds: Math.max(0, exp - Math.floor(now / 1000)) }
      })

    const looksLikeJwt = (token: string) => token.startsWith("eyJ") && token.split(".").length === 3

    return AdminAuth.of({
      login: Effect.fn("AdminAuth.login")(function*(key, hours, address) {
        const lifetime = hours ?? config.unsafeCurrent().admin.jwt_expire_hours
        if (!(lifetime >= 1 && lifetime <= 720)) {
          return yield* invalidRequest("expire_hours must be between 1 and 720", "expire_hours")
        }
        if (!(yield* isRight(key))) return yield* wrong(address)
        const issuedAt = Math.floor((yield* Clock.currentTimeMillis) / 1000)
        const expiresIn = Math.floor(lifetime * 3600)
        const { generation } = config.unsafeCurrent().admin
        const token = yield* Effect.promise(() =>
          new SignJWT({ role: "admin", generation })
            .setProtectedHeader({ alg: "HS256", typ: "JWT" })
            .setIssuedAt(issuedAt)
            .setExpirationTime(issuedAt + expiresIn)
            .sign(secret)
        )
        return { token, expiresIn }
      }),
      verify: (token, address) => Effect.catch(readJwt(token), () => wrong(address)),
      authorize: (bearer, address) =>
        Effect.gen(function*() {
          if (looksLikeJwt(bearer)) {
            // An expired login is no attempt at a key, but its sender has to log in anew all the same.
            yield* Effect.catch(readJwt(bearer), () => wrong(address))
            return
          }
          if (!(yield* isRight(bearer))) return yield* wrong(address)
        }),
      setPassword: Effect.fn("AdminAuth.setPassword")(function*(password) {
        if (password.length < minPassword) {
          return yield* invalidRequest(`new_password must have at least ${minPassword} characters`, "new_password")
        }
        if (password.length > maxPassword) {
          return yield* invalidRequest(`new_password must have at most ${maxPassword} characters`, "new_password")
        }
        const hash = yield* hashing.withPermit(hashPassword(password))
        const validAfter = Math.floor((yield* Clock.currentTimeMillis) / 1000)
        const saved = yield* savedOr(config.update((raw, current) =>
          Effect.succeed(
            [
              ["password_hash", hash] as const,
              ["jwt_valid_after_unix", validAfter] as const,
              ["generation", current.admin.generation + 1] as const
            ].reduce((next, [field, value]) => setField(next, ["admin", field], value), raw)
          )
        ))
        return { ...saved, validAfter }
      })
    })
  })

  static readonly layer: Layer.Layer<AdminAuth, never, ConfigStore> = Layer.effect(AdminAuth, AdminAuth.make).pipe(
    Layer.provide(RateLimiter.layer),
    Layer.provide(RateLimiter.layerStoreMemory)
  )
}
