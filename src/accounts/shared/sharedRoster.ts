/**
 * The accounts of the configuration by their names in the store. Which of them may be given, and how often, the store knows
 * from the node that saved the configuration.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { StoreShape } from "../../cluster/store/Store.ts"
import { type Account, isSameAccount } from "../../config/Account.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { inSlices } from "../../config/inSlices.ts"
import { anonymousAccount } from "../../config/sharedConfig.ts"
import { eachSliced, type Sliced } from "../../domain/stream/slices.ts"
import type { Driver } from "../../upstream/Upstream.ts"
import { PooledAccount } from "../PooledAccount.ts"

/** Makes the roster of a node. `apply` costs two comparisons as long as nothing changed. */
export const makeSharedRoster = (store: StoreShape) => {
  let accounts: ReadonlyArray<Account> | undefined
  let driver: Driver | undefined
  let byName: ReadonlyMap<string, PooledAccount> = new Map()
  let byKey: ReadonlyMap<string, { readonly account: PooledAccount; readonly name: string }> = new Map()
  const turn = Semaphore.makeUnsafe(1)

  store.listen((kind) => {
    // Names may be others than before.
    if (kind === "restored") accounts = undefined
  })

  function* take(config: GatewayConfig, next: Driver): Sliced<void> {
    const names = new Map<string, PooledAccount>()
    const keys = new Map<string, { readonly account: PooledAccount; readonly name: string }>()
    const add = (account: PooledAccount, name: string) => {
      names.set(name, account)
      keys.set(account.key, { account, name })
    }
    yield* eachSliced(config.accounts, (account) => {
      const key = account.identity[0]!
      const known = next === driver ? byKey.get(key)?.account : undefined
      const same = known?.account !== undefined && isSameAccount(known.account, account)
      add(same ? known : new PooledAccount(key, account.identifier, account), store.nameOf(key))
    })
    // An upstream that asks for no credential has one account of its own.
    if (keys.size === 0 && next.capabilities.anonymous) {
      add(new PooledAccount(next.name, next.name, undefined), store.nameOf(anonymousAccount))
    }
    byName = names
    byKey = keys
    accounts = config.accounts
    driver = next
  }

  const isApplied = (config: GatewayConfig, next: Driver) => config.accounts === accounts && next === driver

  return {
    apply: (current: () => GatewayConfig, next: Driver): Effect.Effect<void> =>
      Effect.suspend(() =>
        isApplied(current(), next)
          ? Effect.void
          : turn.withPermit(Effect.suspend(() =>
            isApplied(current(), next) ? Effect.void : Effect.uninterruptible(inSlices(take(current(), next)))
          ))
      ),
    named: (name: string): PooledAccount | undefined => byName.get(name),
    nameOf: (key: string): string | undefined => byKey.get(key)?.name,
    /** A configured account by its key. */
    get: (key: string): PooledAccount | undefined => byKey.get(key)?.account,
    size: (): number => byKey.size,
    /** In the order of the configuration. */
    all: (): Iterable<readonly [name: string, account: PooledAccount]> => byName
  }
}

export type SharedRoster = ReturnType<typeof makeSharedRoster>
