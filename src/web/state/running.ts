/**
 * How many requests run: those that were open when the page asked, and what the events said since.
 */
import * as Atom from "effect/reactivity/Atom"
import { read } from "./actions.ts"
import { onRequests, onReset } from "./live.ts"
import type { RequestItem } from "./types.ts"

export const runningAtom = Atom.make((get): number => {
  const open = new Set<string>()
  /** Those that ended while the page asks: the reply may still have them. */
  const closed = new Set<string>()
  let asked = 0
  const asking = new AbortController()
  const take = (items: ReadonlyArray<RequestItem>) => {
    for (const { id, outcome } of items) {
      if (outcome === "open") {
        if (!closed.has(id)) open.add(id)
      } else {
        open.delete(id)
        if (asked > 0) closed.add(id)
      }
    }
  }
  const ask = async () => {
    asked += 1
    try {
      const { items } = await read(
        (client) => client["admin-requests"].list({ query: { status: "open", limit: 200 } }),
        asking.signal
      )
      take(items)
      get.setSelf(open.size)
    } finally {
      asked -= 1
      if (asked === 0) closed.clear()
    }
  }
  const again = () => {
    open.clear()
    void ask().catch(() => undefined)
  }
  get.addFinalizer(onRequests((items) => {
    take(items)
    get.setSelf(open.size)
  }))
  get.addFinalizer(onReset(again))
  get.addFinalizer(() => asking.abort())
  again()
  return 0
})
