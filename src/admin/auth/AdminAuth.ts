/**
 * Who may use the admin API: the admin key or password, and the JWTs that a login gives (behaviour: "JWT").
 *
 * A password that was set stands in for the environment's key. Wrong credentials are counted by address: one with too many
 * waits for its turns, but a right key gets in, and one that was right from there of late does not wait. A password is never taken for a caller's upstream token.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { JWTPayload } from "jose"
import { errors, jwtVerify, SignJWT } from "jose"
import { randomUUID } from "node:crypto"
import { AdminPassword, maxPassword } from "../../accounts/AdminPassword.ts"
import { Callers } from "../../accounts/Callers.ts"
import { ConfigStore, type Saved } from "../../config/ConfigStore.ts"
import { setField } from "../../config/edit.ts"
import type { LoginToken } from "../../config/EndedLogins.ts"
import type { AdminConfig } from "../../config/GatewayConfig.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { savedOr } from "../configErrors.ts"
import type { Operator } from "../Operator.ts"
import { AdminSecrets } from "./AdminSecrets.ts"
import { type Crowded, makeTurns } from "./turns.ts"

const minPassword = 8
/** No rate can guess an environment's key of this length, so it need not wait for a turn. */
const unguessable = 24

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

/** What the gateway has signed: which login it is, and of which generation of the password. */
interface Claims extends LoginToken {
  readonly generation: unknown
}

const claimsOf = ({ exp, generation, iat, jti, role }: JWTPayload): Claims | undefined =>
  role !== "admin" || exp === undefined
    ? undefined
    : { jti: jti ?? "", issuedAt: iat ?? 0, expiresAt: exp, generation }

const unauthorized = gatewayError("authentication_failed", "The admin credential is missing, wrong or expired")

export class AdminAuth extends Context.Service<AdminAuth, {
  /**
   * Checks the admin key and gives a JWT for `hours` (the configured time where it is absent). Keys of an address that has
   * had too many wrong ones wait for their turn; wrong ones, and those for which there is no place, fail with
   * `rate_limit_exceeded`.
   */
  readonly login: (key: string, hours: number | undefined, address: string) => Effect.Effect<Login, GatewayError>
  /** Whether a credential has the form of a JWT. */
  readonly isLogin: (credential: string) => boolean
  /** Checks a JWT. */
  readonly verify: (token: string, address: string) => Effect.Effect<Session, GatewayError>
  /** Checks a bearer of any admin route: a JWT, or the admin key itself. Tells whether it holds later on. */
  readonly authorize: (bearer: string, address: string) => Effect.Effect<Operator, GatewayError>
  /**
   * Ends a JWT before its time, wherever it is used. What is no valid JWT is left alone. False where the end is not kept yet:
   * it is tried again until it is.
   */
  readonly logout: (token: string) => Effect.Effect<boolean>
  /** Whether this is the admin key or password in force. Counts as a login: an address that guesses waits for its turn. */
  readonly isPresent: (key: string, address: string) => Effect.Effect<boolean, GatewayError>
  /** Sets the password and invalidates every JWT. */
  readonly setPassword: (
    password: string
  ) => Effect.Effect<Saved & { readonly validAfter: number }, GatewayError>
}>()("model-gateway/admin/AdminAuth") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    const callers = yield* Callers
    const password = yield* AdminPassword
    const secrets = yield* AdminSecrets
    const turns = makeTurns(secrets, yield* Clock.Clock)
    /** The time that all nodes go by. */
    const currentTimeMillis = Effect.map(Clock.currentTimeMillis, (now) => now + secrets.clockOffset())
    const secret = Redacted.value(config.jwtSecret)

    /** Keeps the byte by which callers' tokens are told from the password, where it is not there or for another secret. */
    const keepCheck = (key: string, hash: string) => {
      const check = password.checkOf(key, hash)
      return config.unsafeCurrent().admin.password_check === check ? Effect.void : Effect.ignore(
        config.update((raw, { admin }) =>
          Effect.succeed(
            admin.password_hash === undefined || Redacted.value(admin.password_hash) !== hash
              ? raw
              : setField(raw, ["admin", "password_check"], check)
          )
        )
      )
    }

    const isRight = (key: string, admin: AdminConfig, address: string): Effect.Effect<boolean, Crowded> => {
      // Of a password that was replaced nothing is remembered.
      const known = `${admin.generation} ${key}`
      if (admin.password_hash === undefined) {
        const right = config.isAdminKey(key)
        return right && key.length >= unguessable
          ? Effect.succeed(true)
          : turns.inTurn(address, Effect.succeed(right), known)
      }
      const hash = Redacted.value(admin.password_hash)
      return turns.inTurn(
        address,
        Effect.flatMap(
          turns.slowedFor(address),
          (slowed) => password.verify(key, hash, slowed > 0 && !turns.wasRight(address, known))
        ),
        known
      ).pipe(
        Effect.tap((right) => {
          if (!right) return Effect.void
          callers.withhold(key)
          return keepCheck(key, hash)
        })
      )
    }

    const inSeconds = (millis: number): number => Math.max(1, Math.ceil(millis / 1000))

    /** What a wrong credential is told: seconds to wait where its address is slowed. */
    const retryAfterWrong = (address: string) =>
      Effect.map(turns.slowedFor(address), (millis) => millis === 0 ? undefined : inSeconds(millis))

    const tooMany = (retryAfter: number) =>
      gatewayError("rate_limit_exceeded", "Too many wrong logins from this address", { retryAfter })
    // A guesser has no more guesses with business requests than with logins.
    callers.inTurns((address) => (check) =>
      Effect.catchTag(
        turns.inTurn(address, check),
        "Crowded",
        ({ retryAfter }) => Effect.fail(tooMany(retryAfter))
      )
    )
    const wrong = (retryAfter: number | undefined) =>
      retryAfter === undefined
        ? unauthorized
        : gatewayError("authentication_failed", unauthorized.message, { retryAfter })

    /** Fails a route that is no login where its credential is wrong: always as `unauthorized`, which asks to log in anew. */
    const checkBearer = (address: string, right: Effect.Effect<boolean, Crowded>): Effect.Effect<void, GatewayError> =>
      right.pipe(
        Effect.catchTag("Crowded", ({ retryAfter }) => Effect.fail(wrong(retryAfter))),
        Effect.flatMap((is) =>
          is ? Effect.void : Effect.flatMap(retryAfterWrong(address), (wait) => Effect.fail(wrong(wait)))
        )
      )

    /** A credential that is no guess of ours to check, such as a JWT that was never signed here. */
    const wrongBearer = (address: string): Effect.Effect<never, GatewayError> =>
      Effect.andThen(checkBearer(address, turns.inTurn(address, Effect.succeed(false))), Effect.fail(unauthorized))

    /** `now` in milliseconds. */
    const counts = (claims: Claims, now: number): Effect.Effect<boolean> =>
      claims.expiresAt * 1000 > now && claims.generation === config.unsafeCurrent().admin.generation
        ? Effect.map(config.endedLogins.has(claims), (ended) => !ended)
        : Effect.succeed(false)

    /** The admin key, or a password, holds until the password is another one. */
    const keyHolds = (generation: number) => Effect.sync(() => config.unsafeCurrent().admin.generation === generation)

    /** What a JWT of ours says; fails with whether it is one that has expired. `now` in milliseconds. */
    const verifyJwt = (token: string, now: number): Effect.Effect<JWTPayload, boolean> =>
      Effect.tryPromise({
        try: () =>
          jwtVerify(token, secret, { algorithms: ["HS256"], currentDate: new Date(now) })
            .then(({ payload }) => payload),
        catch: (error) => error instanceof errors.JWTExpired
      })

    /** A JWT of ours that no longer counts is no guess; one that we never signed is. */
    const readJwt = (token: string, address: string): Effect.Effect<Claims, GatewayError> =>
      Effect.gen(function*() {
        const now = yield* currentTimeMillis
        const payload = yield* Effect.catch(
          verifyJwt(token, now),
          (expired) => expired ? Effect.fail(unauthorized) : wrongBearer(address)
        )
        const claims = claimsOf(payload)
        if (claims === undefined || !(yield* counts(claims, now))) return yield* unauthorized
        return claims
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
        const right = yield* isRight(key, admin, address).pipe(
          Effect.catchTag("Crowded", ({ retryAfter }) => Effect.fail(tooMany(retryAfter)))
        )
        if (!right) {
          const wait = yield* retryAfterWrong(address)
          return yield* wait === undefined ? unauthorized : tooMany(wait)
        }
        const issuedAt = Math.floor((yield* currentTimeMillis) / 1000)
        const expiresIn = Math.floor(lifetime * 3600)
        const token = yield* Effect.promise(() =>
          new SignJWT({ role: "admin", generation: admin.generation })
            .setProtectedHeader({ alg: "HS256", typ: "JWT" })
            .setJti(randomUUID())
            .setIssuedAt(issuedAt)
            .setExpirationTime(issuedAt + expiresIn)
            .sign(secret)
        )
        return { token, expiresIn }
      }),
      isLogin: looksLikeJwt,
      verify: (token, address) =>
        Effect.flatMap(readJwt(token, address), ({ expiresAt }) =>
          Effect.map(currentTimeMillis, (now) => ({
            expiresAt,
            remainingSeconds: Math.max(0, expiresAt - Math.floor(now / 1000))
          }))),
      authorize: (bearer, address) =>
        Effect.gen(function*() {
          if (looksLikeJwt(bearer)) {
            const claims = yield* readJwt(bearer, address)
            return { holds: Effect.flatMap(currentTimeMillis, (now) => counts(claims, now)) }
          }
          const { admin } = config.unsafeCurrent()
          yield* checkBearer(address, isRight(bearer, admin, address))
          return { holds: keyHolds(admin.generation) }
        }),
      logout: (token) =>
        currentTimeMillis.pipe(
          Effect.flatMap((now) => Effect.option(verifyJwt(token, now))),
          Effect.map(Option.flatMapNullishOr(claimsOf)),
          Effect.flatMap(Option.match({
            onNone: () => Effect.succeed(true),
            onSome: (claims) => claims.jti === "" ? Effect.succeed(true) : config.endedLogins.end(claims)
          }))
        ),
      isPresent: (key, address) =>
        Effect.suspend(() => isRight(key, config.unsafeCurrent().admin, address)).pipe(
          Effect.catchTag("Crowded", ({ retryAfter }) => Effect.fail(tooMany(retryAfter)))
        ),
      setPassword: Effect.fn("AdminAuth.setPassword")(function*(chosen) {
        if (chosen.length < minPassword) {
          return yield* invalidRequest(`new_password must have at least ${minPassword} characters`, "new_password")
        }
        if (chosen.length > maxPassword) {
          return yield* invalidRequest(`new_password must have at most ${maxPassword} characters`, "new_password")
        }
        const { check, hash } = yield* password.hash(chosen)
        const validAfter = Math.floor((yield* currentTimeMillis) / 1000)
        const saved = yield* savedOr(config.update((raw, current) =>
          Effect.succeed(
            [
              ["password_hash", hash] as const,
              ["password_check", check] as const,
              ["jwt_valid_after_unix", validAfter] as const,
              ["generation", current.admin.generation + 1] as const
            ].reduce((next, [field, value]) => setField(next, ["admin", field], value), raw)
          )
        ))
        callers.withhold(chosen)
        return { ...saved, validAfter }
      })
    })
  })

  static readonly layer: Layer.Layer<AdminAuth, never, AdminSecrets | ConfigStore | Callers> = Layer.effect(
    AdminAuth,
    AdminAuth.make
  ).pipe(Layer.provide(AdminPassword.layer))
}
