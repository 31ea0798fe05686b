/**
 * Keeps the pool's accounts and limits as the configuration and the driver say.
 *
 * An account whose credentials changed is a new one to the pool, but for its slots: running leases go on counting, tokens
 * and faults are forgotten. So is every account's when the upstream changes: no token is ever sent to another address.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { type Account, isSameAccount } from "../config/Account.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { inSlices } from "../config/inSlices.ts"
import { eachSliced, type Sliced } from "../domain/stream/slices.ts"
import type { Driver } from "../upstream/Upstream.ts"
import { PooledAccount } from "./PooledAccount.ts"
import type { PoolState } from "./PoolState.ts"

/** Makes the roster of a pool. `apply` costs two comparisons as long as nothing changed; else all wait for one who applies it. */
export const makeRoster = (state: PoolState<PooledAccount>) => {
  let config: GatewayConfig | undefined
  let driver: Driver | undefined
  let accounts: ReadonlyArray<Account> | undefined
  let disabled: ReadonlySet<string> = new Set()
  let pooled: ReadonlyMap<string, PooledAccount> = new Map()

  const turn = Semaphore.makeUnsafe(1)

  function* enroll(
    configured: ReadonlyArray<Account>,
    next: Driver,
    keep: boolean
  ): Sliced<Map<string, PooledAccount>> {
    const enrolled = new Map<string, PooledAccount>()
    yield* eachSliced(configured, (account) => {
      const key = account.identity[0]!
      const known = keep ? pooled.get(key) : undefined
      if (known?.account !== undefined && isSameAccount(known.account, account)) enrolled.set(key, known)
      else enrolled.set(key, new PooledAccount(key, account.identifier, account))
    })
    // An upstream that asks for no credential has one account of its own.
    if (enrolled.size === 0 && next.capabilities.anonymous) {
      enrolled.set(next.name, new PooledAccount(next.name, next.name, undefined))
    }
    return enrolled
  }

  function* take(nextConfig: GatewayConfig, nextDriver: Driver): Sliced<boolean> {
    if (nextConfig.accounts !== accounts || nextDriver !== driver) {
      pooled = yield* enroll(nextConfig.accounts, nextDriver, nextDriver === driver)
      const next = new Set<string>()
      yield* eachSliced(nextConfig.accounts, (account) => {
        if (account.disabled) next.add(account.identity[0]!)
      })
      disabled = next
    }
    const { account_max_inflight, account_max_queue, global_max_inflight } = nextConfig.runtime
    const limits = {
      perAccount: account_max_inflight,
      global: global_max_inflight,
      queue: account_max_queue,
      direct: nextConfig.auth.direct_max_inflight
    }
    yield* state.configure(pooled, limits, disabled)
    yield* eachSliced(state.slots(), (slot) => {
      if (slot.state !== "ready" && slot.account.fault === undefined) state.restore(slot)
    })
    config = nextConfig
    driver = nextDriver
    accounts = nextConfig.accounts
    return true
  }

  const isApplied = (nextConfig: GatewayConfig, nextDriver: Driver): boolean =>
    nextConfig === config && nextDriver === driver

  return {
    /** True where the configuration or the driver is another one than before; looks when it is called. */
    apply: (current: () => GatewayConfig, nextDriver: Driver): Effect.Effect<boolean> =>
      isApplied(current(), nextDriver)
        ? Effect.succeed(false)
        // Half a roster must not stay: once begun it is taken to its end.
        : turn.withPermit(Effect.suspend(() => {
          const next = current()
          return isApplied(next, nextDriver)
            ? Effect.succeed(false)
            : Effect.uninterruptible(inSlices(take(next, nextDriver)))
        }))
  }
}
