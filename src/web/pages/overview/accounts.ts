/**
 * The accounts that the overview knows: the counts and causes of all, the hundred that need attention most, and those that events have named.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import * as Atom from "effect/reactivity/Atom"
import { useEffect } from "preact/hooks"
import type { Reply } from "../../state/client.ts"
import { poolAtom, type PoolNow, type Received, receivedAtom } from "../../state/live.ts"
import { accountName } from "../../state/names.ts"
import { readOf, reload } from "../../state/reads.ts"
import { registry } from "../../state/registry.ts"

type AccountList = Reply<"admin-accounts", "list">
export type Cause = NonNullable<AccountList["causes"]>[number]
export type Counts = NonNullable<AccountList["counts"]>

const pageSize = 100

/** Those that need attention are first. */
export const accountsAtom = readOf("admin-accounts", "list", {
  query: { page: 1, page_size: pageSize, sort: "state" },
  reactivityKeys: ["accounts"]
})

export interface Known {
  /** The newest state of each account that is known. */
  readonly items: ReadonlyArray<Received>
  /** These are all accounts. */
  readonly isAll: boolean
  readonly counts: Counts | undefined
  /** Why accounts need attention, the worst first. */
  readonly causes: ReadonlyArray<Cause>
  /** When the counts and causes arrived, by the page's clock. */
  readonly at: number
}

/** An event has the newest state of an account that is in use or held back; the list has the others. */
export const knownAtom = Atom.make((get): Known => {
  const received = get(receivedAtom)
  const result = get(accountsAtom)
  const reply = Option.getOrUndefined(AsyncResult.value(result))
  const at = AsyncResult.isSuccess(result) ? result.timestamp : 0
  const listed = new Map((reply?.items ?? []).map((item) => [accountName(item), { item, at }]))
  const newest = [...listed].map(([name, each]): Received => {
    const newer = received.get(name)
    return newer !== undefined && newer.at > at ? { item: { ...each.item, ...newer.item }, at: newer.at } : each
  })
  const isAll = reply !== undefined && reply.total <= listed.size
  const others = isAll ? [] : [...received].flatMap(([name, each]) => listed.has(name) ? [] : [each])
  return { at, causes: reply?.causes ?? [], counts: reply?.counts, isAll, items: [...newest, ...others] }
})

const readEvery = 15_000

/** What an event says of the states of accounts, to be compared. */
const heldBackIn = (pool: PoolNow | undefined): string | undefined =>
  pool && JSON.stringify([pool.total, pool.out, pool.cooling, pool.disabled, pool.failed_tests])

/**
 * Reads the accounts again when an event says that more or fewer are held back than the list has counted, and every 15 seconds: events do not
 * report what they do at other nodes.
 */
export const useCurrentAccounts = (): void =>
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) void reload("accounts")
    }, readEvery)
    let seen = heldBackIn(registry.get(poolAtom))
    const stop = registry.subscribe(poolAtom, (pool) => {
      const now = heldBackIn(pool)
      if (seen !== undefined && seen !== now) void reload("accounts")
      seen = now
    })
    return () => {
      clearInterval(timer)
      stop()
    }
  }, [])
