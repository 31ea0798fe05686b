/**
 * How many requests run: those that were open when the page asked, and what the events said since.
 */
import * as Atom from "effect/reactivity/Atom"
import { at, credentials } from "./client.ts"
import { onRequests, onReset } from "./live.ts"
import type { RequestItem } from "./types.ts"

export const runningAtom = Atom.make((get): number => {
  const open = new Set<string>()
  const closed = new Set<string>()
  const take = (items: ReadonlyArray<RequestItem>) => {
    for (const { id, outcome } of items) {
      if (outcome === "open") {
        if (!closed.has(id)) open.add(id)
      } else {
        open.delete(id)
        closed.add(id)
      }
    }
  }
  const ask = async () => {
    const response = await fetch(at("/admin/requests?status=open&limit=200"), { headers: credentials() })
    if (!response.ok) return
    const { items } = await response.json() as { readonly items: ReadonlyArray<RequestItem> }
    take(items)
    get.setSelf(open.size)
  }
  const again = () => {
    open.clear()
    closed.clear()
    void ask().catch(() => undefined)
  }
  get.addFinalizer(onRequests((items) => {
    take(items)
    get.setSelf(open.size)
  }))
  get.addFinalizer(onReset(again))
  again()
  return 0
})
