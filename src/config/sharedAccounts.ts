/**
 * The accounts and limits of a configuration, as the script `configure` takes them.
 */
import * as Equal from "effect/Equal"
import type { StoreShape } from "../cluster/store/Store.ts"
import { needsAccounts } from "../contracts/drivers.ts"
import { splitAmount } from "../domain/decimal.ts"
import { isUnnamed, upstreamNamed } from "../domain/upstreamNames.ts"
import { isSameAccount } from "./Account.ts"
import type { GatewayConfig, UpstreamConfig } from "./GatewayConfig.ts"
import { settingsOf } from "./upstreams.ts"
import { type KeyLimit, windowLetters } from "./windowLimit.ts"

/** Stands for the single account of an upstream that needs no accounts. */
export const anonymousAccount = "anonymous"

/** The key of the account that stands for an upstream without accounts. */
export const anonymousKey = (upstream: string): string => isUnnamed(upstream) ? anonymousAccount : `${upstream}/`

/** The accounts of an upstream by their names in the store, as `configure` takes them. */
interface PoolAccounts {
  readonly names: Array<string>
  readonly renewed: Array<string>
  readonly disabled: Array<string>
  /** Priority and weight of each. */
  readonly ranks: Array<readonly [priority: number, weight: number]>
}

/** Whether an upstream is another server, or is reached in another way: what is known of its accounts is forgotten. */
const isRenewed = (next: UpstreamConfig, before: UpstreamConfig | undefined): boolean =>
  before !== undefined && next !== before && !Equal.equals(settingsOf(next), settingsOf(before))

/** A limit as the scripts take it (`budgets.lua`). */
export const limitFields = ({ cost, requests = -1, strict = false, tokens = -1, window }: KeyLimit) => [
  windowLetters[window],
  requests,
  tokens,
  ...(cost === undefined ? [-1, 0] : splitAmount(cost)),
  strict ? 1 : 0
]

/** The arguments of the script `configure` that update the shared pools. */
export const poolArguments = (store: StoreShape, next: GatewayConfig, before: GatewayConfig | undefined) => {
  const known = new Map(before?.accounts.map((account) => [account.identity[0]!, account]))
  const accounts = new Map<string, PoolAccounts>()
  const accountsOf = (upstream: string): PoolAccounts => {
    const made = accounts.get(upstream) ?? { names: [], renewed: [], disabled: [], ranks: [] }
    accounts.set(upstream, made)
    return made
  }
  for (const account of next.accounts) {
    const name = store.secrets.nameOf(account.identity[0]!)
    const was = known.get(account.identity[0]!)
    const { disabled, names, ranks, renewed } = accountsOf(account.upstream)
    names.push(name)
    ranks.push([account.priority ?? 0, account.weight ?? 1])
    if (was !== undefined && !isSameAccount(was, account)) renewed.push(name)
    if (account.disabled) disabled.push(name)
  }
  const own = next.upstreams.get(upstreamNamed(undefined))
  const isAlone = next.upstreams.size === 1 && own?.enabled === true
  for (const [name, { driver }] of next.upstreams) {
    const { names } = accountsOf(name)
    if (names.length === 0 && (isAlone || !needsAccounts(driver))) names.push(store.secrets.nameOf(anonymousKey(name)))
  }
  const { global_max_inflight } = next.runtime
  const limits = own?.limits ?? { perAccount: 1, global: 0, queue: 0 }
  const ofDefault = accountsOf(upstreamNamed(undefined))
  const several = Array.from(next.upstreams, ([name, upstream]) => {
    const { enabled, limits: { global, perAccount, queue } } = upstream
    if (isUnnamed(name)) return [name, enabled ? 1 : 0]
    const { disabled, names, renewed } = accountsOf(name)
    const resets = isRenewed(upstream, before?.upstreams.get(name))
    return [name, enabled ? 1 : 0, perAccount, global, queue, 0, resets ? 1 : 0, renewed, names, disabled]
  })
  const choices = Array.from(next.upstreams, ([name, { choose = "rotate" }]) => [name, choose] as const)
    .filter(([, choose]) => choose !== "rotate")
    .map(([name, choose]) => [name, [choose, accountsOf(name).ranks]] as const)
  const budgets = [
    ...next.accounts.map(({ budgets, identity }) => [store.secrets.nameOf(identity[0]!), budgets] as const),
    ...Array.from(next.upstreams, ([name, { budgets }]) => [`@${name}`, budgets] as const)
  ].flatMap(([subject, limits = []]) => limits.length === 0 ? [] : [[subject, limits.map(limitFields)]])
  return {
    /** The budgets of accounts and upstreams. */
    budgets: budgets.length === 0 ? "" : JSON.stringify(budgets),
    /** The pools that are not in rotation. */
    choices: choices.length === 0 ? "" : JSON.stringify(Object.fromEntries(choices)),
    ofDefault: [
      ...[limits.perAccount, Math.min(limits.global, global_max_inflight), limits.queue, next.auth.direct_max_inflight]
        .map(String),
      own !== undefined && isRenewed(own, before?.upstreams.get(own.name)) ? "1" : "0",
      ...[ofDefault.renewed, ofDefault.names, ofDefault.disabled].map((list) => JSON.stringify(list))
    ],
    ofAll: isAlone ? undefined : JSON.stringify([global_max_inflight, several])
  }
}
