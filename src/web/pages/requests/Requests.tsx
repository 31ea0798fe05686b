/**
 * The list of requests, updated live.
 */
import { useEffect, useState } from "preact/hooks"
import { recordedStyles } from "../../../api.ts"
import { RequestBadge } from "../../parts/Badge.tsx"
import { Search, Select } from "../../parts/Form.tsx"
import { elapsed, number, timeOfDay } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { LoadFailure, Loading } from "../../parts/Loaded.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import { report } from "../../state/actions.ts"
import type { RequestItem } from "../../state/client.ts"
import { failureText } from "../../state/failure.ts"
import { onRequests, onReset } from "../../state/live.ts"
import { useTexts } from "../../state/preferences.ts"
import { listRequests, type RequestFilter } from "../../state/requests.ts"
import { linkTo } from "../../state/route.ts"
import { Inspector } from "./Inspector.tsx"
import { pageSize, type ShownPage, updatePage } from "./updatePage.ts"

const statuses = ["open", "ok", "failed", "cancelled", "4xx", "5xx"] as const

const everything: RequestFilter = { status: "", style: "", model: "", key: "", account: "" }

const Row = ({ item }: { readonly item: RequestItem }) => {
  const t = useTexts().requests
  return (
    <tr>
      <td class="nowrap number">{timeOfDay(item.started_at)}</td>
      <th scope="row">
        <a class="id" href={linkTo("requests", item.id)} title={item.request_id}>{item.request_id}</a>
      </th>
      <td class="nowrap">
        <RequestBadge item={item} />
        {item.status !== null && <span class="hint">{` ${item.status}`}</span>}
        {item.error !== null && <p class="hint">{item.error}</p>}
      </td>
      <td>
        <span class="clip narrow" title={item.model ?? ""}>{item.model ?? "–"}</span>
        <p class="hint nowrap">{t.styles(item.style)}</p>
      </td>
      <td>
        <code>{item.key}</code>
      </td>
      <td>
        <span class="clip narrow" title={item.account}>{item.account || "–"}</span>
        {item.target !== undefined && <p class="hint clip narrow" title={item.target}>{item.target}</p>}
      </td>
      <td class="number">
        {item.duration_ms === null ? "–" : elapsed(item.duration_ms)}
        {item.first_event_ms !== null && <p class="hint">{t.firstAfter(elapsed(item.first_event_ms))}</p>}
      </td>
      <td class="number">
        {item.usage === null ? "–" : `${number(item.usage.prompt_tokens)} + ${number(item.usage.completion_tokens)}`}
      </td>
    </tr>
  )
}

/** A page of the list, updated by events. Another value of `tries` loads it again. */
const useRequests = (filter: RequestFilter, cursor: string | undefined, paused: boolean, tries: number) => {
  const [page, setPage] = useState<ShownPage>()
  const [failure, setFailure] = useState<string>()
  const [waiting, setWaiting] = useState(true)
  const [missed, setMissed] = useState(0)
  useEffect(() => {
    if (paused) return
    const loading = new AbortController()
    setWaiting(true)
    listRequests(filter, pageSize, cursor, loading.signal).then(
      (next) => {
        setPage({ ...next, cut: false })
        setFailure(undefined)
        setWaiting(false)
      },
      (reason: unknown) => {
        if (loading.signal.aborted) return
        setFailure(failureText(reason))
        setWaiting(false)
      }
    )
    return () => loading.abort()
  }, [filter, cursor, paused, tries, missed])
  useEffect(() => {
    if (paused) return
    const stop = onRequests((items) =>
      setPage((now) => now === undefined ? now : updatePage(now, items, filter, cursor === undefined))
    )
    const stopReset = onReset(() => setMissed((count) => count + 1))
    return () => {
      stop()
      stopReset()
    }
  }, [filter, cursor, paused])
  return { page, failure, waiting }
}

const List = () => {
  const { common, requests: t } = useTexts()
  const [filter, setFilter] = useState(everything)
  const [cursor, setCursor] = useState<string>()
  const [paused, setPaused] = useState(false)
  const [tries, setTries] = useState(0)
  const { failure, page, waiting } = useRequests(filter, cursor, paused, tries)
  const narrow = (change: Partial<RequestFilter>) => {
    setFilter((now) => ({ ...now, ...change }))
    setCursor(undefined)
  }
  const retry = () => setTries(tries + 1)
  const newest = () => {
    setCursor(undefined)
    setPaused(false)
    retry()
  }
  const older = async () => {
    if (page?.cut !== true) return setCursor(page?.next_cursor ?? undefined)
    try {
      // The page's cursor is from before newer requests pushed rows off the page.
      const now = await listRequests(filter, pageSize, undefined, new AbortController().signal)
      return setCursor(now.next_cursor ?? undefined)
    } catch (reason) {
      return report(failureText(reason), true)
    }
  }
  const narrowed = Object.values(filter).some((value) => value !== "")
  return (
    <>
      <Heading name={common.pages.requests}>
        <button type="button" onClick={() => setPaused(!paused)}>{paused ? t.resume : t.pause}</button>
      </Heading>
      <div class="row filters">
        <Select
          label={t.status}
          value={filter.status}
          options={[["", t.any], ...statuses.map((each) => [each, t.outcomes(each)] as const)]}
          onValue={(status) => narrow({ status })}
        />
        <Select
          label={t.style}
          value={filter.style}
          options={[["", t.any], ...recordedStyles.map((each) => [each, t.styles(each)] as const)]}
          onValue={(style) => narrow({ style })}
        />
        <Search label={t.model} onSearch={(model) => narrow({ model })} />
        <Search label={t.key} onSearch={(key) => narrow({ key })} />
        <Search label={t.account} onSearch={(account) => narrow({ account })} />
      </div>
      {paused && <p class="notice">{t.paused}</p>}
      {page?.enabled === false && <p class="notice warn">{t.switchedOff}</p>}
      {failure !== undefined && <LoadFailure text={failure} onRetry={retry} />}
      {page === undefined
        ? failure === undefined && <Loading />
        : (
          <>
            <Table
              name={common.pages.requests}
              busy={waiting && !paused}
              columns={[
                ...numbers(t.time),
                t.request,
                t.outcome,
                t.model,
                t.key,
                t.account,
                ...numbers(t.duration, t.tokens)
              ]}
              rows={page.items.length}
              empty={narrowed ? t.noneFit : t.empty}
            >
              {page.items.map((item) => <Row key={item.id} item={item} />)}
            </Table>
            <div class="pager">
              <button type="button" disabled={cursor === undefined && !paused} onClick={newest}>{t.newest}</button>
              <button
                type="button"
                disabled={(page.next_cursor === null && !page.cut) || paused}
                onClick={() => void older()}
              >
                {t.older}
              </button>
              <span>{t.kept(page.kept, page.limit)}</span>
            </div>
          </>
        )}
    </>
  )
}

/** The list of requests, or the inspector of request `of`. */
export const Requests = ({ of }: { readonly of: string | undefined }) =>
  of === undefined ? <List /> : <Inspector key={of} id={of} />
