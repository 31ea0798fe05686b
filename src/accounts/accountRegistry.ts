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
import { isUnnamed } from "../domain/upstreamNames.ts"
import type { Drivers } from "../upstream/Upstreams.ts"
import { PooledAccount } from "./PooledAccount.ts"

/** The accounts of the pool by their keys, in the order of the configuration. */
export type AccountsByKey = ReadonlyMap<string, PooledAccount>

/** The key of the one account of an upstream that needs no credential, by the name of its driver. */
export const anonymousKey = (upstream: string, driver: string): string => isUnnamed(upstream) ? driver : `${upstream}/`

/** Makes the registry of a pool. `configure` brings the pool up to new accounts or another configuration. */
export const makeAccountRegistry = (
  configure: (accounts: AccountsByKey, config: GatewayConfig) => Cooperative<void>
) => {
  let config: GatewayConfig | undefined
  let drivers: Drivers = new Map()
  let accounts: ReadonlyArray<Account> | undefined
  let registered: AccountsByKey = new Map()
  const oneAtATime = Semaphore.makeUnsafe(1)

  function* register(configured: ReadonlyArray<Account>, next: Drivers): Cooperative<AccountsByKey> {
    const byKey = new Map<string, PooledAccount>()
    const withAccounts = new Set<string>()
    yield* eachCooperatively(configured, (account) => {
      const { upstream } = account
      const key = account.identity[0]!
      withAccounts.add(upstream)
      const known = next.get(upstream) === drivers.get(upstream) ? registered.get(key) : undefined
      if (known?.account !== undefined && isSameAccount(known.account, account)) {
        // The account may have been disabled or enabled, or have another note.
        known.account = account
        byKey.set(key, known)
      } else {
        byKey.set(key, new PooledAccount(upstream, key, account.name, account))
      }
    })
    // An upstream that needs no credential has one account of its own.
    for (const [upstream, { isAnonymous, name }] of next) {
      if (withAccounts.has(upstream) || !isAnonymous) continue
      const key = anonymousKey(upstream, name)
      const known = next.get(upstream) === drivers.get(upstream) ? registered.get(key) : undefined
      const identifier = isUnnamed(upstream) ? name : upstream
      byKey.set(key, known ?? new PooledAccount(upstream, key, identifier, undefined))
    }
    return byKey
  }

  function* apply(nextConfig: GatewayConfig, nextDrivers: Drivers): Cooperative<void> {
    if (nextConfig.accounts !== accounts || nextDrivers !== drivers) {
      registered = yield* register(nextConfig.accounts, nextDrivers)
    }
    yield* configure(registered, nextConfig)
    config = nextConfig
    drivers = nextDrivers
    accounts = nextConfig.accounts
  }

  const isApplied = (nextConfig: GatewayConfig, nextDrivers: Drivers): boolean =>
    nextConfig === config && nextDrivers === drivers

  return {
    /** Applies a configuration with its drivers; looks when it is called. Costs two comparisons while both are unchanged. */
    apply: (current: () => GatewayConfig, nextDrivers: Drivers): Effect.Effect<void> =>
      isApplied(current(), nextDrivers)
        ? Effect.void
        : oneAtATime.withPermit(Effect.suspend(() => {
          const next = current()
          // A registry must not stay half-built, so its building cannot be interrupted.
          return isApplied(next, nextDrivers)
            ? Effect.void
            : Effect.uninterruptible(runCooperatively(apply(next, nextDrivers)))
        })),
    /** Makes the next `apply` configure the pool again. */
    invalidate: (): void => {
      config = undefined
    },
    get: (key: string): PooledAccount | undefined => registered.get(key),
    size: (): number => registered.size
  }
}
