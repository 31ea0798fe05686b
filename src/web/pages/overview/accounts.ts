/**
 * The accounts that the overview knows: all of a small pool, else those that events have named.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import * as Atom from "effect/reactivity/Atom"
import { useEffect } from "preact/hooks"
import type { AccountItem } from "../../state/client.ts"
import { type Received, receivedAtom } from "../../state/live.ts"
import { accountName } from "../../state/names.ts"
import { type Read, readOf, reload } from "../../state/reads.ts"

const pageSize = 100
const pages = [1, 2, 3, 4] as const

/** The largest pool whose accounts are shown one by one. */
export const mostCells = pageSize * pages.length

const pageAtoms = pages.map((page) =>
  readOf("admin-accounts", "list", {
    query: { page, page_size: pageSize, sort: "state" },
    reactivityKeys: ["accounts"]
  })
)

interface Listed {
  readonly item: AccountItem
  readonly at: number
}

/** All accounts in their order; `undefined` for a pool of more than `mostCells`, and while they are loaded. `reads` are the pages that count. */
const listedAtom = Atom.make(
  (get): { readonly all: ReadonlyArray<Listed> | undefined; readonly reads: Known["reads"] } => {
    const items: Array<Listed> = []
    const reads: Array<Read> = []
    for (const atom of pageAtoms) {
      reads.push(atom)
      const result = get(atom)
      const reply = Option.getOrUndefined(AsyncResult.value(result))
      if (reply === undefined || reply.total > mostCells) return { all: undefined, reads }
      const at = AsyncResult.isSuccess(result) ? result.timestamp : 0
      for (const item of reply.items) items.push({ item, at })
      if (items.length >= reply.total) break
    }
    return { all: items, reads }
  }
)

/** The accounts that are known, the newest state of each. `isAll`: these are all accounts of the pool. */
export interface Known {
  readonly items: ReadonlyArray<Received>
  readonly isAll: boolean
  /** How many accounts failed their last test, whatever their state. */
  readonly failedTests: number
  /** The reads that this comes from. */
  readonly reads: ReadonlyArray<Read>
}

/** What the first page counts. */
const failedTestsAtom = Atom.make((get): number =>
  Option.getOrUndefined(AsyncResult.value(get(pageAtoms[0]!)))?.counts?.failed ?? 0
)

export const knownAtom = Atom.make((get): Known => {
  const received = get(receivedAtom)
  const { all, reads } = get(listedAtom)
  const failedTests = get(failedTestsAtom)
  if (all === undefined) return { failedTests, items: [...received.values()], isAll: false, reads }
  return {
    failedTests,
    reads,
    isAll: true,
    items: all.map(({ at, item }) => {
      const newer = received.get(accountName(item))
      return newer !== undefined && newer.at > at ? { item: { ...item, ...newer.item }, at: newer.at } : { item, at }
    })
  }
})

/** Reads the accounts again every 15 seconds: events do not report what they do at other nodes. */
export const useCurrentAccounts = (): void =>
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) void reload("accounts")
    }, 15_000)
    return () => clearInterval(timer)
  }, [])
