/**
 * What is shown of something that is loaded: that it is under way, why it failed, or the value.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import type * as Atom from "effect/reactivity/Atom"
import type { ComponentChildren } from "preact"
import { Fragment } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { causeText } from "../state/failure.ts"
import { useTexts } from "../state/preferences.ts"
import { registry, useAtom } from "../state/registry.ts"

/** Nothing for a moment, so that what is quick does not flicker; then that it is loading. */
export const Loading = () => {
  const t = useTexts()
  const [late, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 300)
    return () => clearTimeout(timer)
  }, [])
  return <p class="loading">{late ? t.common.loading : " "}</p>
}

/** Why something could not be loaded, and another try. */
export const LoadFailure = ({ onRetry, text }: { readonly text: string; readonly onRetry: () => void }) => {
  const t = useTexts()
  return (
    <div class="notice bad" role="alert">
      <p>{text}</p>
      <button type="button" onClick={onRetry}>{t.common.again}</button>
    </div>
  )
}

/**
 * An atom's value once it is there. While another one loads, the one before it stays; where reading it anew failed, it stays
 * below the reason, with all that was written into it.
 */
export const Loaded = <A, E>({ atom, children }: {
  readonly atom: Atom.Atom<AsyncResult.AsyncResult<A, E>>
  readonly children: (value: A, waiting: boolean) => ComponentChildren
}) => {
  const result = useAtom(atom)
  const last = useRef<Option.Option<A>>(Option.none())
  const value = AsyncResult.value(result)
  if (Option.isSome(value)) last.current = value
  const failure = AsyncResult.isFailure(result) && !result.waiting
    ? <LoadFailure text={causeText(result.cause)} onRetry={() => registry.refresh(atom)} />
    : null
  if (failure !== null && Option.isNone(value)) return failure
  return Option.isSome(last.current)
    ? (
      <>
        {failure}
        <Fragment key="value">{children(last.current.value, result.waiting || Option.isNone(value))}</Fragment>
      </>
    )
    : <Loading />
}
