/**
 * Tells configured keys from callers' own upstream tokens (spec "Authentication"), in time that does not depend on the key.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { hash } from "node:crypto"
import { ConfigStore } from "../config/ConfigStore.ts"
import { isGeneratedKey } from "../config/generatedKey.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { gatewayError } from "../domain/GatewayError.ts"
import { keyIdOfDigest } from "../domain/identity.ts"
import { refuseKey } from "../usage/KeyLimits.ts"
import type { Caller } from "./Accounts.ts"
import { AdminPassword, type InTurn } from "./AdminPassword.ts"
import { storeUnavailable } from "./refusals.ts"

const digest = (text: string): string => hash("sha256", text)

const refused = gatewayError("authentication_failed", "The API key is not valid")

/** True for a token of the admin API: a JWT whose claims are ours. It must never be tried upstream. */
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

/** Upstream tokens are visible ASCII of some length; nothing else goes into a header. */
const mayBeToken = (credential: string): boolean => credential.length <= 4096 && /^[\x21-\x7e]+$/.test(credential)

/** Bearers that a node remembers as no keys. */
const mostJudged = 10_000

/** Who a credential belongs to. */
export class Callers extends Context.Service<Callers, {
  /**
   * Takes a bearer token, the `X-Gateway-Target-Account` header and the address that the token comes from. Fails with `authentication_failed` where the token is
   * a key that is disabled or expired, no configured key where direct tokens are off, where it could be no token, or where it must never go upstream: a key
   * that was removed or generated, the admin key or password, a token of the admin API. Looks when it is called; a configured
   * key is known at once. Before another bearer is judged for the first time a node of a store makes sure that it has the newest
   * configuration: a key that was just added elsewhere never goes upstream. Where that cannot be known the bearer fails with
   * `store_unavailable`.
   */
  readonly identify: (
    token: string,
    target: string | undefined,
    address: string
  ) => Effect.Effect<Caller, GatewayError>
  /** The id of the configured key that a bearer token is, where it may be used. At once, and whatever else the token is. */
  readonly activeKey: (token: string) => string | undefined
  /** The id of the configured key that a bearer token is, whether it may be used or not. */
  readonly keyOf: (token: string) => string | undefined
  /** Says that a credential, such as the admin password, must never go upstream. */
  readonly withhold: (credential: string) => void
  /** From now on bearers that may be the admin password are checked in the turns of their address. */
  readonly inTurns: (turnsOf: (address: string) => InTurn) => void
}>()("model-gateway/accounts/Callers") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    const clock = yield* Clock.Clock
    const password = yield* AdminPassword
    /** Digests of the configured keys, and of what must never go upstream: all that were configured since the start. */
    let keys = new Set<string>()
    const known = new Set<string>()
    let taken: ReadonlyArray<string> = []
    let removedTaken: ReadonlyArray<string> = []
    const sync = () => {
      const { auth: { removed_keys }, keys: configured } = config.unsafeCurrent()
      if (removed_keys !== removedTaken) {
        removedTaken = removed_keys
        for (const key of removed_keys) known.add(key)
      }
      if (configured === taken) return
      taken = configured
      keys = new Set(configured.map(digest))
      for (const key of keys) known.add(key)
    }
    sync()
    /** Digests of bearers that were no key when the configuration was the newest; the oldest goes when it is full. */
    const judged = new Set<string>()
    let turnsOf: ((address: string) => InTurn) | undefined
    // Without a request in between a key may come and go: it must be known all the same.
    yield* Stream.runForEach(config.changes, () => Effect.sync(sync)).pipe(Effect.forkScoped)

    const keyOf = (token: string): string | undefined => {
      sync()
      const owner = digest(token)
      return keys.has(owner) ? keyIdOfDigest(owner) : undefined
    }

    /** Who a bearer belongs to by the configuration that is in effect here. */
    const judge = (
      token: string,
      owner: string,
      target: string | undefined,
      address: string
    ): Effect.Effect<Caller, GatewayError> => {
      const current = config.unsafeCurrent()
      if (keys.has(owner)) {
        const key = keyIdOfDigest(owner)
        const refusal = refuseKey(current.key_records.get(key), clock.currentTimeMillisUnsafe())
        return refusal === undefined
          ? Effect.succeed({ _tag: "Managed", owner, target, key })
          : Effect.fail(refusal)
      }
      if (
        !current.auth.direct_tokens || !mayBeToken(token) || known.has(owner) || isAdminToken(token) ||
        isGeneratedKey(token) || config.isAdminKey(token)
      ) {
        return Effect.fail(refused)
      }
      return Effect.flatMap(
        password.isPassword(token, turnsOf?.(address)),
        (is): Effect.Effect<Caller, GatewayError> =>
          is ? Effect.fail(refused) : Effect.succeed({ _tag: "Direct", owner, token })
      )
    }

    return Callers.of({
      identify: (token, target, address) => {
        sync()
        const owner = digest(token)
        if (config.newest === undefined || keys.has(owner) || judged.has(owner)) {
          return judge(token, owner, target, address)
        }
        return Effect.flatMap(Effect.mapError(config.newest, storeUnavailable), () => {
          sync()
          if (judged.size >= mostJudged) judged.delete(judged.values().next().value!)
          judged.add(owner)
          return judge(token, owner, target, address)
        })
      },
      activeKey: (token) => {
        const key = keyOf(token)
        if (key === undefined) return undefined
        const record = config.unsafeCurrent().key_records.get(key)
        return refuseKey(record, clock.currentTimeMillisUnsafe()) === undefined ? key : undefined
      },
      keyOf,
      withhold: (credential) => {
        known.add(digest(credential))
      },
      inTurns: (given) => {
        turnsOf = given
      }
    })
  })

  static readonly layer: Layer.Layer<Callers, never, ConfigStore> = Layer.effect(Callers, Callers.make).pipe(
    Layer.provide(AdminPassword.layer)
  )
}
