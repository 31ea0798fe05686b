/**
 * Keeps the pool's accounts and limits as the configuration and the driver say.
 *
 * An account whose credentials changed is a new one to the pool, but for its slots: running leases go on counting, tokens
 * and faults are forgotten. So is every account's when the upstream changes: no token is ever sent to another address.
 */
import type { Account } from "../config/Account.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { Driver } from "../upstream/Upstream.ts"
import { isSameAccount, PooledAccount } from "./PooledAccount.ts"
import type { PoolState } from "./PoolState.ts"

/** Makes the roster of a pool. `apply` costs two comparisons as long as nothing changed. */
export const makeRoster = (state: PoolState<PooledAccount>) => {
  let config: GatewayConfig | undefined
  let driver: Driver | undefined
  let accounts: ReadonlyArray<Account> | undefined
  let pooled: ReadonlyMap<string, PooledAccount> = new Map()

  const enroll = (configured: ReadonlyArray<Account>, next: Driver, keep: boolean): Map<string, PooledAccount> => {
    const enrolled = new Map<string, PooledAccount>()
    for (const account of configured) {
      const key = account.identity[0]!
      const known = keep ? pooled.get(key) : undefined
      if (known?.account !== undefined && isSameAccount(known.account, account)) enrolled.set(key, known)
      else enrolled.set(key, new PooledAccount(key, account.identifier, account))
    }
    // An upstream that asks for no credential has one account of its own.
    if (enrolled.size === 0 && next.capabilities.anonymous) {
      enrolled.set(next.name, new PooledAccount(next.name, next.name, undefined))
    }
    return enrolled
  }

  return {
    apply: (nextConfig: GatewayConfig, nextDriver: Driver): void => {
      if (nextConfig === config && nextDriver === driver) return
      if (nextConfig.accounts !== accounts || nextDriver !== driver) {
        pooled = enroll(nextConfig.accounts, nextDriver, nextDriver === driver)
      }
      config = nextConfig
      driver = nextDriver
      accounts = nextConfig.accounts
      const { account_max_inflight, account_max_queue, global_max_inflight } = nextConfig.runtime
      state.configure(pooled, {
        perAccount: account_max_inflight,
        global: global_max_inflight,
        queue: account_max_queue
      })
      for (const slot of state.slots()) {
        if (slot.state !== "ready" && slot.account.fault === undefined) state.restore(slot)
      }
    }
  }
}
