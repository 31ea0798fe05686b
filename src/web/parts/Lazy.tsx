/**
 * A page whose code is loaded when it is first shown.
 */
import type { ComponentType } from "preact"
import { useEffect, useState } from "preact/hooks"
import { failureText } from "../state/failure.ts"
import { LoadFailure, Loading } from "./Loaded.tsx"

type PageView = ComponentType<{ readonly of: string | undefined }>

const loaded = new Map<() => Promise<PageView>, PageView>()

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
  if (failure !== undefined) {
    // After an update of the gateway the page's own files have other names.
    return <LoadFailure text={failure} onRetry={() => tries > 0 ? location.reload() : setTries(tries + 1)} />
  }
  return <Loading />
}
