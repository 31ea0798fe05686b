/** What a node knows of budgets that the store counts (`budgets.lua`): it tells webhooks of it, and brings it back to a store that lost it. */
import * as Effect from "effect/Effect"
import type { Store } from "../../cluster/store/Store.ts"
import type { StoreUnavailable } from "../../cluster/store/StoreShape.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { readWindows, SeenWindows } from "../../usage/sharedWindows.ts"
import { type Budgets, budgetsOf, spentUntil } from "../budgets.ts"
import type { PooledAccount } from "../PooledAccount.ts"
import type { Grant } from "./claims.ts"

/** Accounts and upstreams in one call. */
const perCall = 500

/** The keys of an account and of an upstream among those of `windows.lua`. */
const keyOfAccount = (name: string): string => `#${name}`
const keyOfUpstream = (pool: string): string => `@${pool}`

export class SharedBudgets {
  readonly #store: Store["Service"]
  readonly #config: () => GatewayConfig
  readonly #budgets: Budgets
  readonly #seen = new SeenWindows()

  constructor(store: Store["Service"], config: () => GatewayConfig, budgets: Budgets) {
    this.#store = store
    this.#config = config
    this.#budgets = budgets
  }

  /** Keeps what the store says is used after a lease: its time, and the windows of the account and its upstream, empty without budgets. */
  saw(
    { account: name, pool }: Grant,
    account: PooledAccount | undefined,
    [at, own, ofUpstream]: ReadonlyArray<string>
  ): void {
    const windowsIn = (text = ""): ReadonlyArray<string> => text === "" ? [] : text.split(" ")
    const time = Number(at)
    const used = [[keyOfAccount(name), windowsIn(own)], [keyOfUpstream(pool), windowsIn(ofUpstream)]] as const
    for (const [key, windows] of used) if (windows.length > 0) this.#seen.keep(key, time, windows)
    if (account === undefined) return
    this.#budgets.saw(account, (owner) => {
      const [, windows] = owner.account === null ? used[1] : used[0]
      return windows.length === 0 ? [] : readWindows(time, windows)
    })
  }

  /** Whether an account, by its name in the store, or its upstream is at a budget, as far as this node knows. `now` is the store's time. */
  isAtBudget(account: PooledAccount, name: string, now: number): boolean {
    const [own, ofUpstream] = budgetsOf(account, account.upstream, this.#config())
    return spentUntil(this.#seen.of(keyOfAccount(name)), own) > now ||
      spentUntil(this.#seen.of(keyOfUpstream(account.upstream)), ofUpstream) > now
  }

  /** Writes to the store what it has said since a time, in Unix milliseconds, and what it may have lost. */
  bringBack(since: number): Effect.Effect<void, StoreUnavailable> {
    const lost = this.#seen.since(since)
    const calls = Array.from(
      { length: Math.ceil(lost.length / perCall) },
      (_, i) => this.#store.run("keys", "seen", JSON.stringify(lost.slice(i * perCall, (i + 1) * perCall)))
    )
    return Effect.all(calls, { discard: true })
  }
}
