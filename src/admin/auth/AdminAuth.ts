/**
 * Who may use the admin API: the admin key or password, and the JWTs that a login gives (behaviour: "JWT").
 *
 * A password that was set stands in for the environment's key. Its scrypt hash is costly on purpose, so a key that was right
 * is remembered by its HMAC, and wrong ones are counted by address: an address with too many is slowed, but a right key
 * always gets in. A password that is known to be right is never taken for a caller's upstream token.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import { errors, jwtVerify, SignJWT } from "jose"
import { createHmac, randomBytes } from "node:crypto"
import { Callers } from "../../accounts/Callers.ts"
import { ConfigStore, type Saved } from "../../config/ConfigStore.ts"
import { setField } from "../../config/edit.ts"
import type { AdminConfig } from "../../config/GatewayConfig.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { savedOr } from "../configErrors.ts"
import { hashPassword, verifyPassword } from "./password.ts"
import { makeWrongLogins } from "./wrongLogins.ts"

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
  /**
   * Checks the admin key and gives a JWT for `hours` (the configured time where it is absent). Wrong keys beyond the
   * address's limit fail with `rate_limit_exceeded`.
   */
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
    const callers = yield* Callers
    const wrongLogins = makeWrongLogins()
    // scrypt runs in node's thread pool of four, which files and name look-ups need too. Addresses that guess share one
    // permit, so that a flood of guesses leaves the other one to everybody else.
    const hashing = yield* Semaphore.make(2)
    const guessing = yield* Semaphore.make(1)
    const rememberKey = randomBytes(32)
    /** HMAC of the last key that was right, for the password hash that it was right for. */
    let remembered: { readonly hash: string; readonly mac: string } | undefined
    const secret = Redacted.value(config.jwtSecret)
    const macOf = (key: string) => createHmac("sha256", rememberKey).update(key).digest("hex")

    const isRight = (key: string, admin: AdminConfig, address: string): Effect.Effect<boolean> => {
      if (admin.password_hash === undefined) return Effect.succeed(config.isAdminKey(key))
      const expected = Redacted.value(admin.password_hash)
      // Comparing MACs under a secret key tells an attacker nothing by its time.
      const mac = macOf(key)
      if (remembered?.hash === expected && remembered.mac === mac) return Effect.succeed(true)
      if (key.length > maxPassword) return Effect.succeed(false)
      const check = Effect.map(hashing.withPermit(verifyPassword(key, expected)), (right) => {
        if (right) {
          remembered = { hash: expected, mac }
          callers.withhold(key)
        }
        return right
      })
      return Effect.flatMap(
        Clock.currentTimeMillis,
        (now) => wrongLogins.isOver(address, now) ? guessing.withPermit(check) : check
      )
    }

    /** Counts a wrong credential; seconds to wait where the address has had too many. */
    const countWrong = (address: string) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const wait = wrongLogins.count(address, now)
        return wait === undefined ? undefined : Math.ceil(wait / 1000)
      })

    /** Fails a route that is no login: always as `unauthorized`, since the caller may only have to log in anew. */
    const wrongBearer = (address: string): Effect.Effect<never, GatewayError> =>
      Effect.flatMap(countWrong(address), (wait) =>
        Effect.fail(
          wait === undefined
            ? unauthorized
            : gatewayError("authentication_failed", unauthorized.message, { retryAfter: wait })
        ))

    /** A JWT of ours that no longer counts is no guess; one that we never signed is. */
    const readJwt = (token: string, address: string): Effect.Effect<Session, GatewayError> =>
      Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        const payload = yield* Effect.tryPromise({
          try: () => jwtVerify(token, secret, { algorithms: ["HS256"], currentDate: new Date(now) }),
          catch: (error) => error instanceof errors.JWTExpired
        }).pipe(
          Effect.map((verified) => verified.payload),
          Effect.catch((expired) => expired ? Effect.fail(unauthorized) : wrongBearer(address))
        )
        const { exp, generation, role } = payload
        if (role !== "admin" || generation !== config.unsafeCurrent().admin.generation || exp === undefined) {
          return yield* unauthorized
        }
        return { expiresAt: exp, remainingSeconds: Math.max(0, exp - Math.floor(now / 1000)) }
      })

    const looksLikeJwt = (token: string) => token.startsWith("eyJ") && token.split(".").length === 3

    return AdminAuth.of({
      login: Effect.fn("AdminAuth.login")(function*(key, hours, address) {
        // What the key is checked against and what is signed must be of one moment: a password may change meanwhile.
        const { admin } = config.unsafeCurrent()
        const lifetime = hours ?? admin.jwt_expire_hours
        if (!(lifetime >= 1 && lifetime <= 720)) {
          return yield* invalidRequest("expire_hours must be between 1 and 720", "expire_hours")
        }
        if (!(yield* isRight(key, admin, address))) {
          const wait = yield* countWrong(address)
          if (wait === undefined) return yield* unauthorized
          return yield* gatewayError("rate_limit_exceeded", "Too many wrong logins from this address", {
            retryAfter: wait
          })
        }
        const issuedAt = Math.floor((yield* Clock.currentTimeMillis) / 1000)
        const expiresIn = Math.floor(lifetime * 3600)
        const token = yield* Effect.promise(() =>
          new SignJWT({ role: "admin", generation: admin.generation })
            .setProtectedHeader({ alg: "HS256", typ: "JWT" })
            .setIssuedAt(issuedAt)
            .setExpirationTime(issuedAt + expiresIn)
            .sign(secret)
        )
        return { token, expiresIn }
      }),
      verify: (token, address) => readJwt(token, address),
      authorize: (bearer, address) =>
        Effect.gen(function*() {
          if (looksLikeJwt(bearer)) {
            yield* readJwt(bearer, address)
            return
          }
          if (!(yield* isRight(bearer, config.unsafeCurrent().admin, address))) return yield* wrongBearer(address)
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
        callers.withhold(password)
        return { ...saved, validAfter }
      })
    })
  })

  static readonly layer: Layer.Layer<AdminAuth, never, ConfigStore | Callers> = Layer.effect(AdminAuth, AdminAuth.make)
}
