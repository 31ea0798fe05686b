/**
 * The list of requests, updated live, with a drawer for one of them. What one chose lives in the address.
 */
import type { ComponentChildren, RefObject } from "preact"
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import { Empty } from "../../parts/Empty.tsx"
import { Export } from "../../parts/Export.tsx"
import { number } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { Icon } from "../../parts/Icon.tsx"
import { roomy, useLayout, useMedia } from "../../parts/layout.ts"
import { Lazy, LoadFailure, Skeleton } from "../../parts/Loaded.tsx"
import { type MenuItem, RowMenu } from "../../parts/Menu.tsx"
import { isHeld } from "../../parts/still.ts"
import { Row, Table, useOrder } from "../../parts/Table.tsx"
import { copyText, report } from "../../state/actions.ts"
import type { RequestItem } from "../../state/client.ts"
import { useCurrency } from "../../state/currency.ts"
import { failureText } from "../../state/failure.ts"
import { clockAtom } from "../../state/live.ts"
import { zoneAtom } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { countRequests, listRequests, readHistogram, type RequestHistogram } from "../../state/requests.ts"
import { choose, go, linkTo, type Query, useQuery } from "../../state/route.ts"
import { useShortcuts } from "../../state/shortcuts.ts"
import { useTexts } from "../../state/texts.ts"
import type { AllTexts } from "../../texts/later.ts"
import { addedColumns, columnsOf, extraColumns, hasOtherDays, onlyUpstream, sorts } from "./columns.tsx"
import { exactly, filterOf, narrowed } from "./filter.ts"
import { Filters, narrow, TypedFilter } from "./Filters.tsx"
import { Histogram, HistogramPlace } from "./Histogram.tsx"
import { RequestView } from "./Inspector.tsx"
import { freshOf, pageSize, type ShownPage } from "./updatePage.ts"
import { copyCurl, replay } from "./use.ts"
import { linesOfRequests, useCounts, useList } from "./useList.ts"

/** Windows from this width on have room for a drawer beside the list. */
const roomForDrawer = "(min-width: 1240px)"

/** Shows a request: in the drawer, or on its page where there is no room for a drawer. */
const openRequest = (id: string): void => {
  if (matchMedia(roomForDrawer).matches) choose({ open: id })
  else go("requests", id)
}

/** Opens a request by an id that is pasted or typed; of a line such as `x-request-id: req_1` it takes the last word. */
const OpenById = () => {
  const { inspector, requests: t } = useTexts()
  const [text, setText] = useState("")
  const open = (given: string) => {
    const id = given.trim().split(/\s/).at(-1) ?? ""
    if (id === "") return
    setText("")
    openRequest(id)
  }
  return (
    <form
      class="by-id"
      onSubmit={(event) => {
        event.preventDefault()
        open(text)
      }}
    >
      <input
        type="text"
        aria-label={t.openById}
        placeholder={inspector.id}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onPaste={(event) => {
          const pasted = event.clipboardData?.getData("text") ?? ""
          if (text !== "" || pasted.trim() === "") return
          event.preventDefault()
          open(pasted)
        }}
      />
    </form>
  )
}

/** The link of a row. By keyboard, opening what is open in the drawer opens its page. */
const RowLink = ({ children, isOpen, item }: {
  readonly item: RequestItem
  readonly isOpen: boolean
  readonly children: ComponentChildren
}) => (
  <a
    class="row-link"
    href={linkTo("requests", item.id)}
    data-id={item.id}
    title={item.request_id}
    aria-current={isOpen ? "true" : undefined}
    onClick={(event) => {
      const hasOwnTarget = event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0
      if (hasOwnTarget || isOpen || !matchMedia(roomForDrawer).matches) return
      event.preventDefault()
      choose({ open: item.id })
    }}
  >
    {children}
    <span class="sr-only">{` ${item.request_id}`}</span>
  </a>
)

/** What can be done with a request of the list; `open` is the one that is shown beside it. */
const actionsOn = (
  { inspector, requests: t }: AllTexts,
  item: RequestItem,
  open: RequestItem | undefined
): ReadonlyArray<MenuItem> => [
  { id: "id", text: t.copyId, onClick: () => void copyText(item.request_id, t.copied(item.request_id)) },
  { id: "curl", text: t.copyCurl, disabled: !item.bodies_kept, onClick: () => void copyCurl(item.id) },
  { id: "replay", text: inspector.openInPlayground, disabled: !item.bodies_kept, onClick: () => void replay(item.id) },
  ...open === undefined || open.id === item.id ? [] : [{
    id: "compare",
    text: t.compareWith(open.request_id),
    onClick: () => go("requests", open.id, { with: item.id })
  }],
  { id: "key", text: t.onlyKey, apart: true, onClick: () => narrow({ key: exactly("key", item.key) }) }
]

const isOpenIn = (query: Query, item: RequestItem): boolean =>
  query["open"] === item.id || query["open"] === item.request_id

const Rows = ({ busy, columns, compact, page, query }: {
  readonly columns: ReturnType<typeof columnsOf>
  readonly page: ShownPage
  readonly query: Query
  readonly busy: boolean
  readonly compact: boolean
}) => {
  const { common, requests: t } = useTexts()
  return (
    <Table
      name={common.pages.requests}
      busy={busy}
      compact={compact}
      columns={columns}
      order={{ sort: "started_at", order: "desc" }}
      rows={page.items.length}
      empty={Object.keys(narrowed(query)).length === 0
        ? <Empty>{t.empty}</Empty>
        : page.next_cursor === null
        ? t.noneFit
        : t.searchOn}
    >
      {page.items.map((item) => (
        <Row
          key={item.id}
          class={isOpenIn(query, item) ? "current" : ""}
          onOpen={() => openRequest(item.id)}
          cells={columns.map(({ cell }) => cell(item))}
        />
      ))}
    </Table>
  )
}

const Drawer = ({ id, onClose }: { readonly id: string; readonly onClose: () => void }) => {
  const { common, requests: t } = useTexts()
  return (
    <aside class="card drawer" aria-label={t.drawer}>
      <div class="bar-of-drawer">
        <span class="hint">{t.drawerKeys}</span>
        <button type="button" class="quiet icon-only" aria-label={common.close} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <div class="stack" tabIndex={0} role="group" aria-label={t.drawer}>
        <RequestView key={id} id={id} inDrawer />
      </div>
    </aside>
  )
}

/** J and K move the focus among the rows, and the drawer with it; Escape closes the drawer. */
const useRowKeys = (box: RefObject<HTMLElement | null>, open: string | undefined, onClose: () => void): void => {
  const t = useTexts().requests
  const move = (step: number) => {
    const links = [...box.current?.querySelectorAll<HTMLAnchorElement>(".row-link") ?? []]
    const row = document.activeElement?.closest("tr")
    const isFocused = links.findIndex((link) => link.closest("tr") === row)
    const now = isFocused === -1 ? links.findIndex((link) => link.ariaCurrent === "true") : isFocused
    const next = links[now === -1 ? 0 : Math.max(0, Math.min(links.length - 1, now + step))]
    if (next === undefined) return
    next.focus()
    const id = next.dataset["id"]
    if (open !== undefined && id !== undefined) choose({ open: id })
  }
  useShortcuts([
    { keys: "j", text: t.nextRow, act: () => move(1) },
    { keys: "k", text: t.previousRow, act: () => move(-1) },
    { keys: "escape", text: t.closeDrawer, act: onClose, when: () => open !== undefined }
  ])
}

const mostPlaces = 1_000

/** Where the page before each cursor's page begins. Holds the latest 1,000. */
const newerPlaces = new Map<string, Query>()

const placeIn = ({ cursor = "", row = "" }: Query): Query => ({ cursor, row })

const turn = (query: Query, next: Query): void => {
  go("requests", undefined, { ...query, ...next, open: "" })
  scrollTo(0, 0)
}

const Pages = ({ page, query, total }: {
  readonly page: ShownPage
  readonly query: Query
  readonly total: number | undefined
}) => {
  const t = useTexts().requests
  const isNewest = query["cursor"] === undefined
  const before = Math.max(0, Math.floor(Number(query["row"] ?? 0)) || 0)
  const newest = { cursor: "", row: "" }
  const show = (cursor: string | null) => {
    if (cursor === null) return
    newerPlaces.delete(cursor)
    newerPlaces.set(cursor, placeIn(query))
    for (const oldest of newerPlaces.keys()) {
      if (newerPlaces.size <= mostPlaces) break
      newerPlaces.delete(oldest)
    }
    turn(query, { cursor, row: String(before + page.items.length) })
  }
  const older = async () => {
    if (!page.cut) return show(page.next_cursor)
    try {
      // The page's cursor is from before newer requests pushed rows off the page.
      const now = await listRequests(
        filterOf(query, Date.now()),
        undefined,
        pageSize,
        undefined,
        new AbortController().signal
      )
      return show(now.next_cursor)
    } catch (reason) {
      return report(failureText(reason), true)
    }
  }
  return (
    <div class="pager">
      {before > pageSize && <button type="button" onClick={() => turn(query, newest)}>{t.newest}</button>}
      <button
        type="button"
        disabled={isNewest}
        onClick={() => turn(query, newerPlaces.get(query["cursor"] ?? "") ?? newest)}
      >
        {t.newer}
      </button>
      <button type="button" disabled={page.next_cursor === null && !page.cut} onClick={() => void older()}>
        {t.older}
      </button>
      <span>
        {page.items.length > 0 && `${t.position(before + 1, before + page.items.length, total)} · `}
        {t.kept(page.kept, page.limit)}
      </span>
    </div>
  )
}

/** The histogram, which ends now while no bar more would fit behind it. */
const LiveHistogram = ({ busy, of }: { readonly of: RequestHistogram; readonly busy: boolean }) => {
  const isNow = useAtom(clockAtom) - (of.buckets.at(-1)?.at ?? 0) < 2 * of.bucket_ms
  // Drawn anew when one of these changes, and not with the clock.
  return useMemo(
    () => (
      <Histogram
        of={of}
        busy={busy}
        isNow={isNow}
        onRange={(from, to) => narrow({ range: "", from: String(from), to: String(to) })}
      />
    ),
    [of, busy, isNow]
  )
}

/** Pixels that a page is scrolled by before its rows are out of place. */
const scrolledFrom = 60

const List = () => {
  const { common, requests: t } = useTexts()
  useAtom(zoneAtom)
  const query = useQuery()
  const box = useRef<HTMLDivElement>(null)
  const [paused, setPaused] = useState(false)
  const hasRoom = useMedia(roomForDrawer)
  const isStill = () => {
    if (box.current === null || box.current.querySelector(".row-link") === null) return false
    return scrollY > scrolledFrom || box.current.matches(":hover") || isHeld(box.current.querySelector("tbody")) ||
      (box.current.querySelector(".table-box")?.scrollTop ?? 0) > 0
  }
  const order = useOrder(sorts)
  const { failure, isOther, page, reload, showHeld } = useList(query, order, paused, isStill)
  const counts = useCounts(query, countRequests)
  const histogram = useCounts(query, readHistogram)
  const open = query["open"]
  const close = () => {
    choose({ open: "" })
    box.current?.querySelector<HTMLElement>(".row-link[aria-current]")?.focus()
  }
  useRowKeys(box, open, close)
  const isBeside = open !== undefined && hasRoom
  useEffect(() => {
    // One that an address or a key opens may be out of sight.
    if (isBeside) {
      box.current?.querySelector(".row-link[aria-current]")?.closest("tr")?.scrollIntoView({ block: "nearest" })
    }
  }, [open, isBeside])
  useEffect(() => {
    if (open !== undefined && !hasRoom) location.replace(linkTo("requests", open))
  }, [open, hasRoom])
  const fresh = page === undefined ? 0 : freshOf(page)
  const showFresh = () => {
    if (page?.outdated === true) reload()
    else showHeld()
    box.current?.querySelector(".table-box")?.scrollTo(0, 0)
    scrollTo(0, 0)
  }
  const release = () => {
    if (paused || isStill() || page === undefined) return
    if (page.outdated && query["text"] === undefined) reload()
    else if (page.held.size > 0) showHeld()
  }
  useEffect(() => {
    addEventListener("scroll", release, { passive: true })
    return () => removeEventListener("scroll", release)
  })
  useEffect(release, [paused])
  const currency = useCurrency()
  const added = addedColumns(query)
  const texts = useTexts()
  const layout = useLayout()
  const beside = isBeside ? page?.items.find((item) => isOpenIn(query, item)) : undefined
  const columns = columnsOf(
    texts,
    {
      currency,
      days: page !== undefined && hasOtherDays(page.items),
      isBeside,
      layout,
      isRoomy: useMedia(roomy),
      only: onlyUpstream(page?.items ?? []),
      added
    },
    {
      link: (item, content) => <RowLink item={item} isOpen={isOpenIn(query, item)}>{content}</RowLink>,
      menu: (item) => <RowMenu of={item.request_id} items={actionsOn(texts, item, beside)} />
    }
  )
  const isCompact = query["density"] === "compact"
  return (
    <>
      <Heading name={common.pages.requests}>
        <TypedFilter
          name={t.searchText}
          value={query["text"] ?? ""}
          onText={(text) => narrow({ text })}
          data-filter
        />
        <OpenById />
        <RowMenu
          of={t.columns}
          text={t.columns}
          items={extraColumns.map((name) => ({
            id: name,
            text: t.extras[name],
            checked: added.includes(name),
            onClick: () =>
              choose({
                columns: (added.includes(name) ? added.filter((each) => each !== name) : [...added, name]).join(",")
              })
          }))}
        />
        <button
          type="button"
          aria-pressed={isCompact}
          onClick={() => choose({ density: isCompact ? "" : "compact" })}
        >
          {t.compact}
        </button>
        <button type="button" onClick={() => setPaused(!paused)}>{paused ? t.resume : t.pause}</button>
      </Heading>
      <Filters query={query} shown={counts} />
      {page?.nodes_missing !== undefined && <p class="notice warn">{t.nodesMissing(page.nodes_missing.join(", "))}</p>}
      {page?.enabled === false && <p class="notice warn">{t.switchedOff}</p>}
      {failure !== undefined && <LoadFailure text={failure} onRetry={reload} />}
      {histogram.counts === undefined && histogram.failure === undefined && <HistogramPlace />}
      {histogram.counts !== undefined && histogram.counts.buckets.length > 0 && (
        <LiveHistogram of={histogram.counts} busy={histogram.isOther} />
      )}
      {page === undefined && failure === undefined && <Skeleton rows={12} />}
      <div class={isBeside ? "beside" : ""}>
        <div class="stack">
          <div
            ref={box}
            class="requests"
            onMouseLeave={release}
            onFocusOut={() => setTimeout(release)}
            onScrollCapture={release}
          >
            {page !== undefined && (fresh > 0 || page.outdated) && query["cursor"] === undefined && (
              <div class="fresh">
                <button type="button" class="primary" onClick={showFresh}>
                  {fresh === 0 ? t.searchAgain : t.fresh(number(fresh), page.outdated)}
                </button>
              </div>
            )}
            {page !== undefined && (
              <Rows columns={columns} page={page} query={query} busy={isOther} compact={isCompact} />
            )}
          </div>
          {page !== undefined && (page.kept > 0 || page.items.length > 0) && (
            <div class="actions between">
              <Pages page={page} query={query} total={counts.isOther ? undefined : counts.counts?.total} />
              <Export
                list="requests"
                ending="jsonl"
                filter={narrowed(query)}
                read={(signal) => linesOfRequests(filterOf(query, Date.now()), order, counts.counts?.total, signal)}
              />
            </div>
          )}
        </div>
        {open !== undefined && isBeside && <Drawer id={open} onClose={close} />}
      </div>
    </>
  )
}

const loadCompare = () => import("./Compare.tsx").then((module) => module.Compare)

/** The list of requests, or request `of`, or both it and the one that it is compared with. */
export const Requests = ({ of }: { readonly of: string | undefined }) => {
  const { with: other } = useQuery()
  return of === undefined
    ? <List />
    : other === undefined
    ? <RequestView key={of} id={of} />
    : <Lazy load={loadCompare} of={of} />
}
