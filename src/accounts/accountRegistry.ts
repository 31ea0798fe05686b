/**
 * The accounts of the configuration as the pool has them.
 *
 * An account whose credentials change is a new one to the pool: running leases keep their slots, tokens and faults are
 * forgotten. A new upstream renews every account in this way, so that no token reaches another address.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { type Account, isSameAccount } from "../config/Account.ts"
import { runCooperatively } from "../config/clock/cooperative.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { type Cooperative, eachCooperatively } from "../domain/stream/cooperative.ts"
import type { Driver } from "../upstream/Upstream.ts"
import { PooledAccount } from "./PooledAccount.ts"

/** The accounts of the pool by their keys, in the order of the configuration. */
export type AccountsByKey = ReadonlyMap<string, PooledAccount>

/** Makes the registry of a pool. `configure` brings the pool up to new accounts or another configuration. */
export const makeAccountRegistry = (
  configure: (accounts: AccountsByKey, config: GatewayConfig) => Cooperative<void>
) => {
  let config: GatewayConfig | undefined
  let driver: Driver | undefined
  let accounts: ReadonlyArray<Account> | undefined
  let registered: AccountsByKey = new Map()
  const oneAtATime = Semaphore.makeUnsafe(1)

  function* register(configured: ReadonlyArray<Account>, next: Driver): Cooperative<AccountsByKey> {
    const byKey = new Map<string, PooledAccount>()
    yield* eachCooperatively(configured, (account) => {
      const key = account.identity[0]!
      const known = next === driver ? registered.get(key) : undefined
      if (known?.account !== undefined && isSameAccount(known.account, account)) {
        // The account may have been disabled or enabled, or have another note.
        known.account = account
        byKey.set(key, known)
      } else {
        byKey.set(key, new PooledAccount(key, account.name, account))
      }
    })
    // An upstream that needs no credential has one account of its own.
    if (byKey.size === 0 && next.capabilities.anonymous) {
      byKey.set(next.name, new PooledAccount(next.name, next.name, undefined))
    }
    return byKey
  }

  function* apply(nextConfig: GatewayConfig, nextDriver: Driver): Cooperative<void> {
    if (nextConfig.accounts !== accounts || nextDriver !== driver) {
      registered = yield* register(nextConfig.accounts, nextDriver)
    }
    yield* configure(registered, nextConfig)
    config = nextConfig
    driver = nextDriver
    accounts = nextConfig.accounts
  }

  const isApplied = (nextConfig: GatewayConfig, nextDriver: Driver): boolean =>
    nextConfig === config && nextDriver === driver

  return {
    /** Applies a configuration with a driver; looks when it is called. Costs two comparisons while both are unchanged. */
    apply: (current: () => GatewayConfig, nextDriver: Driver): Effect.Effect<void> =>
      isApplied(current(), nextDriver)
        ? Effect.void
        : oneAtATime.withPermit(Effect.suspend(() => {
          const next = current()
          // A registry must not stay half-built, so its building cannot be interrupted.
          return isApplied(next, nextDriver)
            ? Effect.void
            : Effect.uninterruptible(runCooperatively(apply(next, nextDriver)))
        })),
    /** Makes the next `apply` configure the pool again. */
    invalidate: (): void => {
      config = undefined
    },
    get: (key: string): PooledAccount | undefined => registered.get(key),
    size: (): number => registered.size
  }
}
