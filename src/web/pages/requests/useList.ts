/**
 * A page of the list of requests as it is shown: loaded for its filters and place, updated by events, still while it is held.
 */
import { useEffect, useMemo, useState } from "preact/hooks"
import { failureText } from "../../state/failure.ts"
import { onRequests, onReset } from "../../state/live.ts"
import { type Failed, useRetry } from "../../state/reads.ts"
import { listRequests, type RequestFilter, type RequestOrder } from "../../state/requests.ts"
import type { Query } from "../../state/route.ts"
import { filterOf, narrowed } from "./filter.ts"
import { holdPage, pageSize, releasePage, type ShownPage, shownPage, updatePage } from "./updatePage.ts"

/** `isHeld` says whether rows must not move now: the pointer or the focus is on them, or they are scrolled. */
export const useList = (query: Query, order: RequestOrder | undefined, paused: boolean, isHeld: () => boolean) => {
  const cursor = query["cursor"]
  // Only the newest page in order of time knows where a new request belongs.
  const isNewest = cursor === undefined &&
    (order === undefined || (order.sort === "started_at" && order.order === "desc"))
  const narrowing = JSON.stringify(narrowed(query))
  const wanted = `${cursor} ${narrowing} ${order?.sort} ${order?.order}`
  const [tries, setTries] = useState(0)
  const [shown, setShown] = useState<{ readonly of: string; readonly page: ShownPage }>()
  const [failure, setFailure] = useState<Failed>()
  const filter = useMemo(() => filterOf(query, Date.now()), [narrowing, tries])
  const reload = () => setTries((count) => count + 1)
  const update = (change: (page: ShownPage) => ShownPage) =>
    setShown((now) => now === undefined || now.of !== wanted ? now : { of: wanted, page: change(now.page) })

  useEffect(() => {
    const loading = new AbortController()
    listRequests(filter, order, pageSize, cursor, loading.signal).then(
      (page) => {
        setShown({ of: wanted, page: shownPage(page) })
        setFailure(undefined)
      },
      (reason: unknown) => {
        if (!loading.signal.aborted) setFailure({ text: failureText(reason) })
      }
    )
    return () => loading.abort()
  }, [wanted, tries])

  useEffect(() => {
    const stop = onRequests((items) =>
      update((page) =>
        paused || isHeld()
          ? holdPage(page, items, filter, isNewest, paused)
          : updatePage(releasePage(page, filter, isNewest), items, filter, isNewest)
      )
    )
    const stopReset = onReset(() => {
      if (paused || isHeld()) update((page) => ({ ...page, outdated: true }))
      else reload()
    })
    return () => {
      stop()
      stopReset()
    }
  }, [filter, wanted, paused])

  useRetry(failure, reload)

  return {
    page: shown?.page,
    /** What is shown is of other filters or another place. */
    isOther: shown !== undefined && shown.of !== wanted,
    failure: failure?.text,
    filter,
    reload,
    /** Shows everything that was held. */
    showHeld: () => update((page) => releasePage(page, filter, isNewest))
  }
}

/** Requests of a page that is read to be saved, and the most of such pages: a search may find little on each. */
const [savedPage, mostSavedPages] = [200, 500]

/** The requests of a list as lines of JSON, page by page. */
export async function* linesOfRequests(
  filter: RequestFilter,
  order: RequestOrder | undefined,
  total: number | undefined,
  signal: AbortSignal
) {
  let cursor: string | undefined
  for (let pages = 0; pages < mostSavedPages; pages++) {
    const page = await listRequests(filter, order, savedPage, cursor, signal)
    yield { lines: page.items.map((item) => `${JSON.stringify(item)}\n`), total }
    if (page.next_cursor === null) return
    cursor = page.next_cursor
  }
}

/** The least time between two counts of changing requests, in milliseconds. */
const countEvery = 5_000

export interface Shown<Counts> {
  readonly counts: Counts | undefined
  /** They are of other filters. */
  readonly isOther: boolean
  /** Why they could not be counted again. */
  readonly failure: string | undefined
}

/** What is counted of the requests of the filters; counted again while requests change, unless the server would have to search texts. */
export const useCounts = <Counts>(
  query: Query,
  count: (filter: RequestFilter, signal: AbortSignal) => Promise<Counts>
): Shown<Counts> => {
  const [shown, setShown] = useState<{ readonly of: string; readonly counts: Counts }>()
  const [failure, setFailure] = useState<Failed>()
  const [tries, setTries] = useState(0)
  const narrowing = JSON.stringify(narrowed(query))
  useEffect(() => {
    const ending = new AbortController()
    let isChanged = false
    const start = () => {
      isChanged = false
      count(filterOf(query, Date.now()), ending.signal).then(
        (counts) => {
          setShown({ of: narrowing, counts })
          setFailure(undefined)
        },
        (reason: unknown) => {
          if (!ending.signal.aborted) setFailure({ text: failureText(reason) })
        }
      )
    }
    const stop = onRequests(() => {
      isChanged = true
    })
    const timer = setInterval(() => {
      if (isChanged && !document.hidden && query["text"] === undefined) start()
    }, countEvery)
    start()
    return () => {
      ending.abort()
      clearInterval(timer)
      stop()
    }
  }, [narrowing, tries])
  useRetry(failure, () => setTries((count) => count + 1))
  return { counts: shown?.counts, isOther: shown !== undefined && shown.of !== narrowing, failure: failure?.text }
}
