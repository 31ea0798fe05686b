/**
 * What a fresh gateway shows first: the key of its start, and how to use it.
 */
import { useEffect, useState } from "preact/hooks"
import { Lazy } from "../../parts/Loaded.tsx"
import { read } from "../../state/actions.ts"
import { useGeneratedKey } from "../configuration.tsx"

const load = () => import("../keys/Access.tsx").then((module) => module.FirstRun)

/** Whether the gateway had answered no request when the page opened; `undefined` while that is unknown. */
const useUnused = (): boolean | undefined => {
  const [unused, setUnused] = useState<boolean>()
  useEffect(() => {
    const reading = new AbortController()
    const { signal } = reading
    Promise.all([
      read((client) => client["admin-requests"].list({ query: { limit: 1 } }), signal),
      read((client) => client["admin-minutes"].list(), signal)
    ]).then(
      ([{ items }, { minutes }]) => setUnused(items.length === 0 && minutes.every(({ requests }) => requests === 0)),
      () => undefined
    )
    return () => reading.abort()
  }, [])
  return unused
}

/** Stays when the first request arrives, until the page is left: it says that the key works. */
export const FirstRunNotice = () => {
  const key = useGeneratedKey()
  const unused = useUnused()
  return key !== undefined && unused === true ? <Lazy load={load} of={key} /> : null
}
