/**
 * Where atoms live, and how views read them.
 */
import type * as Atom from "effect/reactivity/Atom"
import * as AtomRegistry from "effect/reactivity/AtomRegistry"
import { useLayoutEffect, useReducer } from "preact/hooks"

/** The one registry of the page. What nobody looks at is kept for a moment, so that going back is quick. */
export const registry = AtomRegistry.make({ defaultIdleTTL: 2_000 })

const next = (count: number): number => count + 1

/** An atom's value; the view is drawn anew when it changes. */
export const useAtom = <A>(atom: Atom.Atom<A>): A => {
  const [, redraw] = useReducer<number, void>(next, 0)
  const value = registry.get(atom)
  useLayoutEffect(() => {
    const stop = registry.subscribe(atom, () => redraw())
    // It may have changed between drawing and here.
    if (!Object.is(registry.get(atom), value)) redraw()
    return stop
    // `value` is what was drawn: no reason to subscribe anew.
  }, [atom])
  return value
}
