/**
 * The accounts and limits of a configuration, as the script `configure` takes them.
 */
import * as Equal from "effect/Equal"
import type { StoreShape } from "../cluster/store/Store.ts"
import { needsAccounts } from "../contracts/drivers.ts"
import { isUnnamed } from "../domain/upstreamNames.ts"
import { isSameAccount } from "./Account.ts"
import type { GatewayConfig, UpstreamConfig } from "./GatewayConfig.ts"
import { settingsOf } from "./upstreams.ts"
import { limitFields } from "./windowLimit.ts"

/** Stands for the single account of an upstream that needs no accounts. */
export const anonymousAccount = "anonymous"

/** The key of the account that stands for an upstream without accounts. */
export const anonymousKey = (upstream: string): string => isUnnamed(upstream) ? anonymousAccount : `${upstream}/`

/** Whether an upstream is another server, or is reached in another way: what is known of its accounts is forgotten. */
const isRenewed = (next: UpstreamConfig, before: UpstreamConfig | undefined): boolean =>
  before !== undefined && next !== before && !Equal.equals(settingsOf(next), settingsOf(before))

/** A pool as `configure` takes it (`configure.lua`); accounts are their names in the store. */
export interface SharedPool {
  readonly name: string
  readonly enabled: boolean
  /** Slots of an account, and of all. */
  readonly per: number
  readonly global: number
  /** Places in the queue. */
  readonly queue: number
  /** Slots of callers with their own tokens. */
  readonly direct: number
  /** The share of its accounts' windows that background requests leave to others. */
  readonly reserve: number
  /** Whether it is another server: what is known of its accounts is forgotten. */
  readonly resets: boolean
  /** In order. */
  readonly accounts: ReadonlyArray<string>
  /** Those with changed credentials. */
  readonly renewed: ReadonlyArray<string>
  readonly disabled: ReadonlyArray<string>
  readonly choose: NonNullable<UpstreamConfig["choose"]>
  /** Priority and weight of each account; empty for those in rotation. */
  readonly ranks: ReadonlyArray<readonly [priority: number, weight: number]>
}

/** The pools of a configuration, the most slots in use of all, and the limits of accounts and upstreams with budgets. */
export interface SharedPools {
  readonly total: number
  readonly pools: ReadonlyArray<SharedPool>
  readonly budgets: ReadonlyArray<readonly [subject: string, limits: ReadonlyArray<ReturnType<typeof limitFields>>]>
}

/** The pools of a configuration as `configure` takes them, with the most slots in use of all and the budgets of accounts and upstreams. */
export const sharedPools = (
  store: StoreShape,
  next: GatewayConfig,
  before: GatewayConfig | undefined
): SharedPools => {
  const known = new Map(before?.accounts.map((account) => [account.identity[0]!, account]))
  const emptyPool = () => ({
    accounts: new Array<string>(),
    renewed: new Array<string>(),
    disabled: new Array<string>(),
    ranks: new Array<SharedPool["ranks"][number]>()
  })
  const accountsOf = new Map(Array.from(next.upstreams.keys(), (name) => [name, emptyPool()]))
  for (const account of next.accounts) {
    const name = store.secrets.nameOf(account.identity[0]!)
    const was = known.get(account.identity[0]!)
    const { accounts, disabled, ranks, renewed } = accountsOf.get(account.upstream)!
    accounts.push(name)
    ranks.push([account.priority ?? 0, account.weight ?? 1])
    if (was !== undefined && !isSameAccount(was, account)) renewed.push(name)
    if (account.disabled) disabled.push(name)
  }
  const pools = Array.from(next.upstreams, ([name, upstream]): SharedPool => {
    const { choose = "rotate", driver, enabled, limits: { global, perAccount, queue }, reserve = 0 } = upstream
    const { accounts, disabled, ranks, renewed } = accountsOf.get(name)!
    if (accounts.length === 0 && !needsAccounts(driver)) accounts.push(store.secrets.nameOf(anonymousKey(name)))
    return {
      name,
      enabled,
      per: perAccount,
      global,
      queue,
      direct: isUnnamed(name) ? next.auth.direct_max_inflight : 0,
      reserve,
      resets: isRenewed(upstream, before?.upstreams.get(name)),
      accounts,
      renewed,
      disabled,
      choose,
      ranks: choose === "rotate" ? [] : ranks
    }
  })
  const budgets = [
    ...next.accounts.map(({ budgets, identity }) => [store.secrets.nameOf(identity[0]!), budgets] as const),
    ...Array.from(next.upstreams, ([name, { budgets }]) => [`@${name}`, budgets] as const)
  ].flatMap(([subject, limits = []]) => limits.length === 0 ? [] : [[subject, limits.map(limitFields)] as const])
  return { total: next.runtime.global_max_inflight, pools, budgets }
}
