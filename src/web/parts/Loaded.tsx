/**
 * Values and pages that are loaded: a notice while they load, the reason when loading fails, then the value or page.
 */
import * as Cause from "effect/Cause"
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import * as Atom from "effect/reactivity/Atom"
import type { ComponentChildren, ComponentType } from "preact"
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import { causeText, failureText, isRefusal } from "../state/failure.ts"
import type { Read } from "../state/reads.ts"
import { registry, useAtom } from "../state/registry.ts"
import { useTexts } from "../state/texts.ts"
import { ReadContext } from "./still.ts"

/** Empty for 0.3 seconds, so that a quick load does not flicker; then says that the page is loading. */
export const Loading = () => {
  const t = useTexts()
  const [late, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 300)
    return () => clearTimeout(timer)
  }, [])
  return <p class="loading">{late ? t.common.loading : " "}</p>
}

/** Rows of the size of what comes; nothing for 0.15 seconds. */
export const Skeleton = ({ rows }: { readonly rows: number }) => {
  const t = useTexts()
  const [late, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div class="loading skeleton">
      <span class="sr-only">{t.common.loading}</span>
      {late && Array.from({ length: rows }, (_, row) => <span key={row} aria-hidden="true" />)}
    </div>
  )
}

/** Why something could not be loaded, and a button to try again. */
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
 * Why some of several reads failed, and a button that tries those again; nothing while none has. `isRead` says whether each has a value.
 * What the gateway refuses as wrong is no failure: it has nothing to show.
 */
export const useReads = (
  reads: ReadonlyArray<Read>
): { readonly isRead: boolean; readonly failure: ComponentChildren } => {
  const { failed, isRead } = useAtom(useMemo(() =>
    Atom.make((get) => {
      const results = reads.map((read) => [read, get(read)] as const)
      return {
        isRead: results.every(([, result]) =>
          Option.isSome(AsyncResult.value(result)) || (AsyncResult.isFailure(result) && isRefusal(result.cause))
        ),
        failed: results.flatMap(([read, result]) =>
          AsyncResult.isFailure(result) && !isRefusal(result.cause) ? [{ read, text: causeText(result.cause) }] : []
        )
      }
    }), reads))
  return {
    isRead,
    failure: failed.length === 0 ? null : (
      <LoadFailure
        text={[...new Set(failed.map(({ text }) => text))].join(" ")}
        onRetry={() => failed.forEach(({ read }) => registry.refresh(read))}
      />
    )
  }
}

/**
 * An atom's value when it is loaded. The previous value stays while the next one loads, and is dimmed while it is the value of
 * another atom, such as another range. When the next one or reloading fails, it stays below the reason, with everything that was chosen in it
 * or typed into it.
 */
export const Loaded = <A, E>({ atom, children, failed, rows }: {
  readonly atom: Atom.Atom<AsyncResult.AsyncResult<A, E>>
  /** How many rows stand in for the first value while it loads; without, the usual notice does. */
  readonly rows?: number
  /** Shown in place of the usual notice, if it returns something. */
  readonly failed?: (failure: unknown) => ComponentChildren | undefined
  readonly children: (value: A, waiting: boolean) => ComponentChildren
}) => {
  const result = useAtom(atom)
  const last = useRef<Option.Option<A>>(Option.none())
  const shown = useRef<unknown>(undefined)
  const value = AsyncResult.value(result)
  if (Option.isSome(value)) {
    last.current = value
    shown.current = atom
  }
  // While a failed read is tried again, it still has failed.
  const failure = AsyncResult.isFailure(result)
    ? failed?.(Cause.squash(result.cause)) ??
      <LoadFailure text={causeText(result.cause)} onRetry={() => registry.refresh(atom)} />
    : null
  if (Option.isNone(last.current)) {
    return failure !== null
      ? failure
      : rows === undefined
      ? <Loading />
      : <Skeleton rows={rows} />
  }
  return (
    <>
      {failure}
      <div key="value" class="loaded" aria-busy={shown.current !== atom}>
        <ReadContext.Provider value={shown.current}>
          {children(last.current.value, result.waiting || Option.isNone(value))}
        </ReadContext.Provider>
      </div>
    </>
  )
}

/** A page's view. `of` is the part of the address behind the page's name. */
export type PageView = ComponentType<{ readonly of: string | undefined }>

const loaded = new Map<() => Promise<PageView>, PageView>()

/** A page whose code is loaded when the page is first shown. */
export const Lazy = ({ load, of }: { readonly load: () => Promise<PageView>; readonly of: string | undefined }) => {
  const [tries, setTries] = useState(0)
  const [failure, setFailure] = useState<string>()
  const [, setReady] = useState(false)
  const View = loaded.get(load)
  useEffect(() => {
    if (View !== undefined) return
    let gone = false
    load().then(
      (view) => {
        loaded.set(load, view)
        if (!gone) setReady(true)
      },
      (reason: unknown) => {
        if (!gone) setFailure(failureText(reason))
      }
    )
    return () => {
      gone = true
    }
  }, [tries])
  if (View !== undefined) return <View of={of} />
  if (failure === undefined) return <Loading />
  // An update of the gateway renames the files of its pages: only a reload finds them.
  return <LoadFailure text={failure} onRetry={() => tries > 0 ? location.reload() : setTries(tries + 1)} />
}
