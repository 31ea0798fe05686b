/**
 * The registry of atoms, and the hook that reads them in views.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import type * as Atom from "effect/reactivity/Atom"
import * as AtomRegistry from "effect/reactivity/AtomRegistry"
import { useLayoutEffect, useReducer } from "preact/hooks"

/** The page's registry. It keeps an unused atom for 2 seconds, so that going back is quick. */
export const registry = AtomRegistry.make({ defaultIdleTTL: 2_000 })

const next = (count: number): number => count + 1

/** An atom's value. Redraws the view when it changes. */
export const useAtom = <A>(atom: Atom.Atom<A>): A => {
  const [, redraw] = useReducer<number, void>(next, 0)
  const value = registry.get(atom)
  useLayoutEffect(() => {
    const stop = registry.subscribe(atom, () => redraw())
    // The value may have changed since the view was drawn.
    if (!Object.is(registry.get(atom), value)) redraw()
    return stop
    // `value` is left out: a new value is no reason to subscribe again.
  }, [atom])
  return value
}

/** The value of an atom that is loaded, the earlier one while it loads again; `undefined` before. */
export const useValue = <A, E>(atom: Atom.Atom<AsyncResult.AsyncResult<A, E>>): A | undefined =>
  Option.getOrUndefined(AsyncResult.value(useAtom(atom)))
