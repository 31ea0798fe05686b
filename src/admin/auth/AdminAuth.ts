/**
 * Authentication of operators: the admin key or password, and the JWTs that a login returns (behaviour: "JWT").
 *
 * A configured password replaces the environment's key. Wrong credentials slow their address (`CredentialThrottle.ts`). A password
 * is never taken for a caller's upstream token.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { errors, type JWTPayload, jwtVerify, SignJWT } from "jose"
import { randomUUID } from "node:crypto"
import { AdminPassword, maxPassword } from "../../accounts/AdminPassword.ts"
import { AdminSecrets } from "../../accounts/AdminSecrets.ts"
import { type QueueFull, tooManyLogins } from "../../accounts/CredentialThrottle.ts"
import { CredentialThrottles } from "../../accounts/CredentialThrottles.ts"
import { AdminCredentials } from "../../config/AdminCredentials.ts"
import { ConfigStore, type Saved } from "../../config/ConfigStore.ts"
import type { LoginToken } from "../../config/EndedLogins.ts"
import type { AdminConfig, AdminToken } from "../../config/GatewayConfig.ts"
import type { Role } from "../../config/schema.ts"
import { adminTokenPrefix } from "../../config/secrets.ts"
import { SharedRevision } from "../../config/sharedConfig.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { savedOr, setFields } from "../changes.ts"
import type { Operator } from "../middleware.ts"
import { findToken, fingerprintOf, hasExpired, tokenOfSession } from "./adminTokens.ts"

const minPassword = 8
/** An environment's key of this length cannot be guessed at any rate, so its checks need no throttle. */
const unguessable = 24

/** The characters of a session's id by which the history tells sessions apart. */
const shownOfSession = 8

interface Login {
  readonly token: string
  /** Seconds. */
  readonly expiresIn: number
}

/** A valid JWT. */
interface Session {
  readonly role: Role
  /** The token that signed in; `null` for the admin key or password. */
  readonly name: string | null
  /** Unix seconds. */
  readonly expiresAt: number
  readonly remainingSeconds: number
}

/** The claims of a JWT: the login, the generation of the password, and the fingerprint of the token that signed in. */
interface Claims extends LoginToken {
  readonly generation: unknown
  readonly token: string | undefined
}

const claimsOf = ({ exp, generation, iat, jti, role, token }: JWTPayload): Claims | undefined => {
  // A viewer is always a token.
  const isKnown = typeof token === "string" ? role === "admin" || role === "viewer" : role === "admin"
  return !isKnown || exp === undefined
    ? undefined
    : {
      jti: jti ?? "",
      issuedAt: iat ?? 0,
      expiresAt: exp,
      generation,
      token: typeof token === "string" ? token : undefined
    }
}

const unauthorized = gatewayError(
  "authentication_failed",
  "The admin credential is missing, wrong or expired: send it as Authorization: Bearer <credential>"
)

export class AdminAuth extends Context.Service<AdminAuth, {
  /**
   * Checks the admin key or password, or a token, and returns a JWT for `hours`; if absent, for the configured time. A JWT does
   * not outlive its token. At a slowed address a
   * wrong key, or one that finds the queue full, fails with `rate_limit_exceeded`.
   */
  readonly login: (key: string, hours: number | undefined, address: string) => Effect.Effect<Login, GatewayError>
  /** Whether a credential has the form of a JWT. */
  readonly isLogin: (credential: string) => boolean
  /** Checks a JWT. */
  readonly verify: (token: string, address: string) => Effect.Effect<Session, GatewayError>
  /** Checks the credential of any admin route: a JWT, a token, or the admin key or password. */
  readonly authorize: (bearer: string, address: string) => Effect.Effect<Operator, GatewayError>
  /**
   * Revokes a JWT at all nodes; an invalid one is ignored. False if the revocation is in effect but not saved yet: saving is
   * retried.
   */
  readonly logout: (token: string) => Effect.Effect<boolean>
  /** Whether this is the current admin key or password. Throttled as a login. */
  readonly isPresent: (key: string, address: string) => Effect.Effect<boolean, GatewayError>
  /** Whether the generated admin key of a start without a key is still in use. */
  readonly usesGeneratedKey: () => boolean
  /** Sets the password and invalidates every JWT. */
  readonly setPassword: (
    password: string
  ) => Effect.Effect<Saved & { readonly validAfter: number }, GatewayError>
}>()("model-gateway/admin/AdminAuth") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    const { adminKeyGenerated, endedLogins, isAdminKey, jwtSecret } = yield* AdminCredentials
    const { newest } = yield* SharedRevision
    const password = yield* AdminPassword
    const secrets = yield* AdminSecrets
    const throttle = (yield* CredentialThrottles).admin
    /** The clock of all nodes. */
    const currentTimeMillis = Effect.map(Clock.currentTimeMillis, (now) => now + secrets.clockOffset())
    const secret = Redacted.value(jwtSecret)

    /** Saves the byte that tells most callers' tokens from the password, if it is missing or made with another secret. */
    const saveCheck = (key: string, hash: string) => {
      const check = password.checkOf(key, hash)
      return config.now().admin.password_check === check ? Effect.void : Effect.ignore(
        config.update((raw, { admin }) =>
          Effect.succeed(
            admin.password_hash === undefined || Redacted.value(admin.password_hash) !== hash
              ? raw
              : setFields(raw, "admin", { password_check: check })
          )
        )
      )
    }

    const isRight = (key: string, admin: AdminConfig, address: string): Effect.Effect<boolean, QueueFull> => {
      // The generation makes credentials that were right before a password change unknown.
      const known = `${admin.generation} ${key}`
      if (admin.password_hash === undefined) {
        const right = isAdminKey(key)
        return right && key.length >= unguessable
          ? Effect.succeed(true)
          : throttle.check(address, Effect.succeed(right), known)
      }
      const hash = Redacted.value(admin.password_hash)
      return throttle.check(
        address,
        Effect.flatMap(
          throttle.slowedFor(address),
          (slowed) => password.verify(key, hash, slowed > 0 && !throttle.wasRight(address, known))
        ),
        known
      ).pipe(
        Effect.tap((right) => {
          if (!right) return Effect.void
          password.withhold(key)
          return saveCheck(key, hash)
        })
      )
    }

    /** Seconds to wait after a wrong credential; `undefined` if its address is not slowed. */
    const retryAfterWrong = (address: string) =>
      Effect.map(
        throttle.slowedFor(address),
        (millis) => millis === 0 ? undefined : Math.max(1, Math.ceil(millis / 1000))
      )

    const wrong = ({ retryAfter }: { readonly retryAfter: number | undefined }) =>
      Effect.fail(
        retryAfter === undefined
          ? unauthorized
          : gatewayError("authentication_failed", unauthorized.message, { retryAfter })
      )

    /** Fails on a wrong credential, and on a full queue too, with the error that asks the operator to log in again. */
    const checkBearer = (
      address: string,
      right: Effect.Effect<boolean, QueueFull>
    ): Effect.Effect<void, GatewayError> =>
      right.pipe(
        Effect.catchTag("QueueFull", wrong),
        Effect.flatMap((is) =>
          is ? Effect.void : Effect.flatMap(retryAfterWrong(address), (retryAfter) => wrong({ retryAfter }))
        )
      )

    /** Counts a credential that cannot be right, such as a JWT with a foreign signature, and fails. */
    const wrongBearer = (address: string): Effect.Effect<never, GatewayError> =>
      Effect.andThen(checkBearer(address, throttle.check(address, Effect.succeed(false))), Effect.fail(unauthorized))

    /** The token that a credential is; a node of a store looks in the newest configuration before it gives up. */
    const tokenIn = (credential: string): Effect.Effect<AdminToken | undefined> => {
      const found = findToken(config.now().admin, credential)
      return found !== undefined || newest === undefined || !credential.startsWith(adminTokenPrefix)
        ? Effect.succeed(found)
        : Effect.map(Effect.ignore(newest), () => findToken(config.now().admin, credential))
    }

    /** Whether a token is still configured and valid at `now`, in milliseconds. */
    const tokenHolds = (token: AdminToken, now: number): boolean => {
      const current = tokenOfSession(config.now().admin, fingerprintOf(token))
      return current !== undefined && !hasExpired(current, now)
    }

    /** Whether the claims are valid at `now`, in milliseconds. */
    const isValid = (claims: Claims, now: number): Effect.Effect<boolean> => {
      const { admin } = config.now()
      const token = claims.token === undefined ? undefined : tokenOfSession(admin, claims.token)
      return claims.expiresAt * 1000 > now && claims.generation === admin.generation &&
          (claims.token === undefined || (token !== undefined && !hasExpired(token, now)))
        ? Effect.map(endedLogins.has(claims), (ended) => !ended)
        : Effect.succeed(false)
    }

    /** Role and name of a session, as the configuration has them now. */
    const identityOf = ({ token: fingerprint }: Claims): Pick<Session, "role" | "name"> => {
      if (fingerprint === undefined) return { role: "admin", name: null }
      const token = tokenOfSession(config.now().admin, fingerprint)
      return token === undefined ? { role: "viewer", name: null } : { role: token.role, name: token.name }
    }

    /** The admin key, or a password, holds until the password changes. */
    const keyHolds = (generation: number) => Effect.sync(() => config.now().admin.generation === generation)

    /** The payload of a JWT that the gateway signed; fails with whether it has expired. `now` in milliseconds. */
    const verifyJwt = (token: string, now: number): Effect.Effect<JWTPayload, boolean> =>
      Effect.tryPromise({
        try: () =>
          jwtVerify(token, secret, { algorithms: ["HS256"], currentDate: new Date(now) })
            .then(({ payload }) => payload),
        catch: (error) => error instanceof errors.JWTExpired
      })

    /** The claims of a valid JWT. Only a foreign signature counts as a wrong credential, an expired or revoked JWT does not. */
    const readJwt = (token: string, address: string): Effect.Effect<Claims, GatewayError> =>
      Effect.gen(function*() {
        const now = yield* currentTimeMillis
        const payload = yield* Effect.catch(
          verifyJwt(token, now),
          (expired) => expired ? Effect.fail(unauthorized) : wrongBearer(address)
        )
        const claims = claimsOf(payload)
        if (claims === undefined || !(yield* isValid(claims, now))) return yield* unauthorized
        return claims
      })

    const looksLikeJwt = (token: string) => token.startsWith("eyJ") && token.split(".").length === 3

    return AdminAuth.of({
      login: Effect.fn("AdminAuth.login")(function*(key, hours, address) {
        // One snapshot for the check and the JWT: the password may change in between.
        const { admin } = config.now()
        const lifetime = hours ?? admin.jwt_expire_hours
        if (!(lifetime >= 1 && lifetime <= 720)) {
          return yield* invalidRequest("expire_hours must be between 1 and 720", "expire_hours")
        }
        const token = yield* tokenIn(key)
        if (
          token === undefined && !(yield* Effect.catchTag(isRight(key, admin, address), "QueueFull", tooManyLogins))
        ) {
          const retryAfter = yield* retryAfterWrong(address)
          return yield* retryAfter === undefined ? unauthorized : tooManyLogins({ retryAfter })
        }
        const now = yield* currentTimeMillis
        const issuedAt = Math.floor(now / 1000)
        const left = token?.expires_at === undefined ? Infinity : Math.floor(token.expires_at / 1000) - issuedAt
        if (left <= 0) return yield* unauthorized
        const expiresIn = Math.min(Math.floor(lifetime * 3600), left)
        const identity = token === undefined ? { role: "admin" } : { role: token.role, token: fingerprintOf(token) }
        const jwt = yield* Effect.promise(() =>
          new SignJWT({ ...identity, generation: admin.generation })
            .setProtectedHeader({ alg: "HS256", typ: "JWT" })
            .setJti(randomUUID())
            .setIssuedAt(issuedAt)
            .setExpirationTime(issuedAt + expiresIn)
            .sign(secret)
        )
        return { token: jwt, expiresIn }
      }),
      isLogin: looksLikeJwt,
      verify: (token, address) =>
        Effect.flatMap(readJwt(token, address), (claims) =>
          Effect.map(currentTimeMillis, (now) => ({
            ...identityOf(claims),
            expiresAt: claims.expiresAt,
            remainingSeconds: Math.max(0, claims.expiresAt - Math.floor(now / 1000))
          }))),
      authorize: (bearer, address) =>
        Effect.gen(function*() {
          if (looksLikeJwt(bearer)) {
            const claims = yield* readJwt(bearer, address)
            const { name, role } = identityOf(claims)
            return {
              who: { kind: "session", name: name ?? (claims.jti.slice(0, shownOfSession) || null) },
              role,
              holds: Effect.flatMap(currentTimeMillis, (now) => isValid(claims, now))
            }
          }
          const token = yield* tokenIn(bearer)
          if (token !== undefined) {
            const holds = Effect.map(currentTimeMillis, (now) => tokenHolds(token, now))
            if (!(yield* holds)) return yield* unauthorized
            return { who: { kind: "token", name: token.name }, role: token.role, holds }
          }
          const { admin } = config.now()
          yield* checkBearer(address, isRight(bearer, admin, address))
          return { role: "admin", who: { kind: "key", name: null }, holds: keyHolds(admin.generation) }
        }),
      logout: (token) =>
        currentTimeMillis.pipe(
          Effect.flatMap((now) => Effect.option(verifyJwt(token, now))),
          Effect.map(Option.flatMapNullishOr(claimsOf)),
          Effect.flatMap(Option.match({
            onNone: () => Effect.succeed(true),
            onSome: (claims) => claims.jti === "" ? Effect.succeed(true) : endedLogins.end(claims)
          }))
        ),
      isPresent: (key, address) =>
        Effect.suspend(() => isRight(key, config.now().admin, address)).pipe(
          Effect.catchTag("QueueFull", tooManyLogins)
        ),
      usesGeneratedKey: () => adminKeyGenerated && config.now().admin.password_hash === undefined,
      setPassword: Effect.fn("AdminAuth.setPassword")(function*(chosen) {
        if (chosen.length < minPassword || chosen.length > maxPassword) {
          const rule = chosen.length < minPassword ? `at least ${minPassword}` : `at most ${maxPassword}`
          return yield* invalidRequest(`new_password must have ${rule} characters`, "new_password")
        }
        const { check, hash } = yield* password.hash(chosen)
        const validAfter = Math.floor((yield* currentTimeMillis) / 1000)
        const saved = yield* savedOr(config.update((raw, current) =>
          Effect.succeed(setFields(raw, "admin", {
            password_hash: hash,
            password_check: check,
            jwt_valid_after_unix: validAfter,
            generation: current.admin.generation + 1
          }))
        ))
        password.withhold(chosen)
        return { ...saved, validAfter }
      })
    })
  })

  static readonly layer: Layer.Layer<
    AdminAuth,
    never,
    AdminCredentials | AdminSecrets | ConfigStore | CredentialThrottles | SharedRevision
  > = Layer.effect(AdminAuth, AdminAuth.make).pipe(Layer.provide(AdminPassword.layer))
}
