/**
 * The list of requests, live.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { recordedStyles } from "../../../api.ts"
import { elapsed, number, timeOfDay } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { LoadFailure, Loading } from "../../parts/Loaded.tsx"
import { Select } from "../../parts/Select.tsx"
import { Table } from "../../parts/Table.tsx"
import { tell } from "../../state/actions.ts"
import { failureText } from "../../state/failure.ts"
import { onRequests, onReset } from "../../state/live.ts"
import { useTexts } from "../../state/preferences.ts"
import type { RequestFilter } from "../../state/requests.ts"
import { listRequests } from "../../state/requests.ts"
import { linkTo } from "../../state/route.ts"
import type { RequestItem } from "../../state/types.ts"
import { Inspector } from "./Inspector.tsx"
import type { ShownPage } from "./keepUp.ts"
import { keepUp, pageSize } from "./keepUp.ts"
import { Outcome } from "./Outcome.tsx"

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
        <Outcome item={item} />
        {item.status === null ? null : <span class="hint">{` ${item.status}`}</span>}
        {item.error === null ? null : <p class="hint">{item.error}</p>}
      </td>
      <td>
        <span class="clip narrow" title={item.model ?? ""}>{item.model ?? "–"}</span>
        <p class="hint nowrap">{t.styles(item.style)}</p>
      </td>
      <td>
        <code>{item.key}</code>
      </td>
      <td>
        <span class="clip narrow" title={item.account}>{item.account === "" ? "–" : item.account}</span>
      </td>
      <td class="number">
        {item.duration_ms === null ? "–" : elapsed(item.duration_ms)}
        {item.first_event_ms === null ? null : <p class="hint">{t.firstAfter(elapsed(item.first_event_ms))}</p>}
      </td>
      <td class="number">
        {item.usage === null ? "–" : `${number(item.usage.prompt_tokens)} + ${number(item.usage.completion_tokens)}`}
      </td>
    </tr>
  )
}

/** The page that is shown, kept up with events. */
const useRequests = (filter: RequestFilter, cursor: string | undefined, paused: boolean, asked: number) => {
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
  }, [filter, cursor, paused, asked, missed])
  useEffect(() => {
    if (paused) return
    const stop = onRequests((items) =>
      setPage((now) => now === undefined ? now : keepUp(now, items, filter, cursor === undefined))
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
  const texts = useTexts()
  const t = texts.requests
  const [filter, setFilter] = useState(everything)
  const [draft, setDraft] = useState(everything)
  const [cursor, setCursor] = useState<string>()
  const [paused, setPaused] = useState(false)
  const [asked, setAsked] = useState(0)
  const first = useRef(true)
  useEffect(() => {
    if (first.current) {
      first.current = false
      return
    }
    const timer = setTimeout(() => {
      setFilter(draft)
      setCursor(undefined)
    }, 250)
    return () => clearTimeout(timer)
  }, [draft])
  const { failure, page, waiting } = useRequests(filter, cursor, paused, asked)
  const text = (name: "model" | "key" | "account", label: string) => (
    <label class="field">
      <span>{label}</span>
      <input
        type="text"
        value={draft[name]}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => setDraft({ ...draft, [name]: event.currentTarget.value })}
      />
    </label>
  )
  const newest = () => {
    setCursor(undefined)
    setPaused(false)
    setAsked(asked + 1)
  }
  const older = async () => {
    if (page?.cut !== true) return setCursor(page?.next_cursor ?? undefined)
    try {
      // The cursor was made before newer requests pushed some off the page.
      const now = await listRequests(filter, pageSize, undefined, new AbortController().signal)
      return setCursor(now.next_cursor ?? undefined)
    } catch (reason) {
      return tell(failureText(reason), true)
    }
  }
  const narrowed = Object.values(filter).some((value) => value !== "")
  return (
    <>
      <Heading name={texts.common.pages.requests}>
        <button type="button" onClick={() => setPaused(!paused)}>{paused ? t.resume : t.pause}</button>
      </Heading>
      <div class="row filters">
        <Select
          label={t.status}
          value={draft.status}
          options={[["", t.any], ...statuses.map((each) => [each, t.outcomes(each)] as const)]}
          onValue={(status) => setDraft({ ...draft, status })}
        />
        <Select
          label={t.style}
          value={draft.style}
          options={[["", t.any], ...recordedStyles.map((each) => [each, t.styles(each)] as const)]}
          onValue={(style) => setDraft({ ...draft, style })}
        />
        {text("model", t.model)}
        {text("key", t.key)}
        {text("account", t.account)}
      </div>
      {paused ? <p class="notice">{t.paused}</p> : null}
      {page?.enabled === false ? <p class="notice warn">{t.switchedOff}</p> : null}
      {failure !== undefined && page === undefined
        ? <LoadFailure text={failure} onRetry={() => setAsked(asked + 1)} />
        : page === undefined
        ? <Loading />
        : (
          <>
            {failure === undefined ? null : <LoadFailure text={failure} onRetry={() => setAsked(asked + 1)} />}
            <Table
              name={texts.common.pages.requests}
              busy={waiting && !paused}
              columns={[
                { name: t.time, number: true },
                { name: t.request },
                { name: t.outcome },
                { name: t.model },
                { name: t.key },
                { name: t.account },
                { name: t.duration, number: true },
                { name: t.tokens, number: true }
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

export const Requests = ({ of }: { readonly of: string | undefined }) =>
  of === undefined ? <List /> : <Inspector key={of} id={of} />
