/**
 * Checks the API key of a business request: a configured key, the caller's own upstream token, or a refusal. Timing does not
 * depend on the key. Says with what right a caller goes to a target.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { hash } from "node:crypto"
import { AdminCredentials } from "../config/AdminCredentials.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { isGeneratedKey } from "../config/secrets.ts"
import { SharedRevision } from "../config/sharedConfig.ts"
import { isOfVendor } from "../contracts/contractOf.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { keyDigest, keyIdOfDigest } from "../domain/identity.ts"
import { credentialsOfLogin } from "../domain/ownLogin.ts"
import type { Target } from "../domain/routes.ts"
import type { Right } from "../placement/place.ts"
import { refuseKey } from "../usage/KeyLimits.ts"
import type { Caller } from "./Accounts.ts"
import { AdminPassword, type InTurn } from "./AdminPassword.ts"
import { type QueueFull, tooManyLogins } from "./CredentialThrottle.ts"
import { CredentialThrottles } from "./CredentialThrottles.ts"
import { notAKey, notAKeyOrToken, storeUnavailable } from "./refusals.ts"

const digest = (text: string): string => hash("sha256", text)

const tooManyKeys = ({ retryAfter }: QueueFull) =>
  Effect.fail(gatewayError("rate_limit_exceeded", "Too many wrong API keys from this address", { retryAfter }))

/** Whether a credential is a token of the admin API: a JWT with our claims. It must never go upstream. */
const isAdminToken = (token: string): boolean => {
  const parts = token.split(".")
  if (parts.length !== 3 || !parts[0]!.startsWith("eyJ")) return false
  try {
    const claims: unknown = JSON.parse(atob(parts[1]!.replaceAll("-", "+").replaceAll("_", "/")))
    return typeof claims === "object" && claims !== null && "role" in claims && "generation" in claims
  } catch {
    return false
  }
}

/** Whether a credential can be an upstream token: visible ASCII of bounded length, safe in a header. */
const mayBeToken = (credential: string): boolean => credential.length <= 4096 && /^[\x21-\x7e]+$/.test(credential)

/** Says that a bearer came in the header for the gateway's key. */
export interface GatewayKey {
  /** The caller's own login, as a token. */
  readonly login: string | undefined
}

/** Bearers that a node remembers as not being keys. */
const maxUnknown = 10_000

/** Identifies callers. */
export class Callers extends Context.Service<Callers, {
  /**
   * Takes a bearer token, the `X-Gateway-Target-Account` header, the client's address, and the caller's own login if the bearer came in the
   * header for the gateway's key, where it is one. Fails with `authentication_failed`
   * for a disabled or expired key; without `direct_tokens`, for every bearer that is not a configured key; and for a bearer
   * that cannot be a token or must never go upstream: a removed or generated key, the admin key or password, a token of the
   * admin API. The same credentials are no login: the caller has none then. A configured key without a login is identified synchronously. Before
   * a node of a store identifies another bearer or a login for the first time, it makes sure that it has the newest configuration, so that a key that was just added elsewhere never goes upstream;
   * fails with `store_unavailable` if it cannot.
   */
  readonly identify: (
    token: string,
    target: string | undefined,
    address: string,
    beside?: GatewayKey | undefined
  ) => Effect.Effect<Caller, GatewayError>
  /** The id of the configured key that a bearer token is, if that key may be used. Synchronous. */
  readonly activeKey: (token: string) => string | undefined
  /** The id of the configured key that a bearer token is, also of a disabled or expired key. */
  readonly keyOf: (token: string) => string | undefined
}>()("model-gateway/accounts/Callers") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    const { isAdminKey } = yield* AdminCredentials
    const { newest } = yield* SharedRevision
    const clock = yield* Clock.Clock
    const password = yield* AdminPassword
    const throttles = yield* CredentialThrottles
    /** Digests of the configured keys, and of what must never go upstream: all keys configured since the start. */
    let keys = new Set<string>()
    const known = new Set<string>()
    let appliedKeys: ReadonlyArray<string> = []
    let appliedRemovedKeys: ReadonlyArray<string> = []
    const sync = () => {
      const { auth: { removed_keys }, keys: configured } = config.now()
      if (removed_keys !== appliedRemovedKeys) {
        appliedRemovedKeys = removed_keys
        for (const key of removed_keys) known.add(key)
      }
      if (configured === appliedKeys) return
      appliedKeys = configured
      keys = new Set(configured.map((key) => keyDigest(key, digest)))
      for (const key of keys) known.add(key)
    }
    sync()
    /** Digests of bearers that are not keys of the newest configuration; when full, the oldest is forgotten. */
    const notKeys = new Set<string>()
    // A key may be added and removed without a request in between, and must be known all the same.
    yield* Stream.runForEach(config.changes, () => Effect.sync(sync)).pipe(Effect.forkScoped)

    const keyOf = (token: string): string | undefined => {
      sync()
      const owner = digest(token)
      return keys.has(owner) ? keyIdOfDigest(owner) : undefined
    }

    /** The check of a bearer that may be the admin password waits like a login, and its wrong bearers count as wrong logins. */
    const turnOf = (address: string): InTurn => (check) =>
      Effect.catchTag(throttles.admin.check(address, check), "QueueFull", tooManyLogins)
    /** The refusal of a wrong key waits, and is another one where too many wait. */
    const refusalTurn = (address: string): Effect.Effect<void, GatewayError> =>
      Effect.catchTag(Effect.asVoid(throttles.keys.check(address, Effect.succeed(false))), "QueueFull", tooManyKeys)

    /** Whether a credential is a secret of this gateway other than the password, which must never go upstream. `owner` is its digest. */
    const isOurs = (token: string, owner: string): boolean =>
      known.has(owner) || password.isWithheld(owner) || isAdminToken(token) || isGeneratedKey(token) ||
      isAdminKey(token)

    /** A key's caller, with the login that came beside it unless that is a secret of this gateway. */
    const managed = (
      owner: string,
      target: string | undefined,
      address: string,
      login: string | undefined
    ): Effect.Effect<Caller, GatewayError> => {
      const caller: Caller = { _tag: "Managed", owner, target, key: keyIdOfDigest(owner) }
      const credentials = login === undefined ? undefined : credentialsOfLogin(login)
      if (login === undefined || credentials === undefined || credentials.some((each) => isOurs(each, digest(each)))) {
        return Effect.succeed(caller)
      }
      const isPassword = Effect.findFirst(credentials, (each) => password.isPassword(each, turnOf(address)))
      return Effect.map(isPassword, (found) => Option.isSome(found) ? caller : { ...caller, login })
    }

    /** Identifies a bearer by the configuration in effect on this node. */
    const identifyHere = (
      token: string,
      owner: string,
      target: string | undefined,
      address: string,
      beside: GatewayKey | undefined
    ): Effect.Effect<Caller, GatewayError> => {
      const current = config.now()
      if (keys.has(owner)) {
        const refusal = refuseKey(current.key_records.get(keyIdOfDigest(owner)), clock.currentTimeMillisUnsafe())
        return refusal === undefined ? managed(owner, target, address, beside?.login) : Effect.fail(refusal)
      }
      if (
        beside !== undefined || current.auth.direct_upstream === undefined || !mayBeToken(token) || isOurs(token, owner)
      ) {
        const takesToken = beside === undefined && current.auth.direct_upstream !== undefined
        return Effect.andThen(refusalTurn(address), Effect.fail(takesToken ? notAKeyOrToken : notAKey))
      }
      return Effect.flatMap(
        password.isPassword(token, turnOf(address)),
        (is): Effect.Effect<Caller, GatewayError> =>
          is ? Effect.fail(notAKeyOrToken) : Effect.succeed({ _tag: "Direct", owner, token, isLogin: false })
      )
    }

    return Callers.of({
      identify: (token, target, address, beside) => {
        sync()
        const owner = digest(token)
        const logins = newest === undefined || beside?.login === undefined ? [] : credentialsOfLogin(beside.login) ?? []
        const unknown = newest === undefined ?
          [] :
          [owner, ...logins.map(digest)].filter((each) => !keys.has(each) && !notKeys.has(each))
        if (newest === undefined || unknown.length === 0) return identifyHere(token, owner, target, address, beside)
        return Effect.flatMap(Effect.mapError(newest, storeUnavailable), () => {
          sync()
          for (const each of unknown) {
            if (notKeys.size >= maxUnknown) notKeys.delete(notKeys.values().next().value!)
            notKeys.add(each)
          }
          return identifyHere(token, owner, target, address, beside)
        })
      },
      activeKey: (token) => {
        const key = keyOf(token)
        if (key === undefined) return undefined
        const record = config.now().key_records.get(key)
        return refuseKey(record, clock.currentTimeMillisUnsafe()) === undefined ? key : undefined
      },
      keyOf
    })
  })

  static readonly layer: Layer.Layer<
    Callers,
    never,
    AdminCredentials | ConfigStore | CredentialThrottles | SharedRevision
  > = Layer.effect(
    Callers,
    Callers.make
  ).pipe(Layer.provide(AdminPassword.layer))
}

/** Whose credential a target gets. A caller's own token goes to the first target of its upstream. */
export const rightTo = (
  caller: Caller,
  style: string | undefined,
  target: Target,
  targets: ReadonlyArray<Target>,
  { auth: { direct_upstream }, upstreams }: Pick<GatewayConfig, "auth" | "upstreams">
): Right => {
  if (caller._tag === "Direct") {
    return targets.find(({ upstream }) => upstream === direct_upstream) === target ? "account" : "not_allowed"
  }
  const { credential = "account", driver = "" } = upstreams.get(target.upstream) ?? {}
  if (credential === "account") return "account"
  if (caller.login !== undefined && isOfVendor(style, driver)) return "login"
  return credential === "either" ? "account" : "login_required"
}
