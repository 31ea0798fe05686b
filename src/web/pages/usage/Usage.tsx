/**
 * Usage: what was asked for and what it cost, by key, model, account, style or time.
 */
import { useEffect, useMemo, useState } from "preact/hooks"
import { duration, number } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { LoadFailure, Loading } from "../../parts/Loaded.tsx"
import { Select } from "../../parts/Select.tsx"
import { Table } from "../../parts/Table.tsx"
import { read } from "../../state/actions.ts"
import { at } from "../../state/client.ts"
import { failureText, isMissing } from "../../state/failure.ts"
import { useTexts } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { sessionAtom } from "../../state/session.ts"
import { Chart } from "./Chart.tsx"
import type { Measures, Usage as UsageReply, UsageRow } from "./rows.ts"

const ranges = { day: 1, week: 7, month: 30, quarter: 90, year: 365 } as const
type Range = keyof typeof ranges

const groups = ["hour", "day", "key", "model", "account", "style"] as const
type Group = (typeof groups)[number]

const rowsAtMost = 200

const day = 24 * 3600 * 1000

interface UsageQuery {
  readonly from: string
  readonly by: Group
  readonly limit: string
}

/** What the gateway is asked: the newest hours or days that fit in the table. */
const queryOf = (range: Range, group: Group): UsageQuery => {
  const from = new Date(Date.now() - ranges[range] * day).toISOString()
  return { from, by: group, limit: group === "hour" ? "10000" : "1000" }
}

type Loaded =
  | { readonly state: "loading" | "unavailable" }
  | { readonly state: "failed"; readonly text: string }
  | { readonly state: "there"; readonly reply: UsageReply }

const useUsage = (query: UsageQuery): Loaded => {
  const [loaded, setLoaded] = useState<Loaded>({ state: "loading" })
  useEffect(() => {
    const loading = new AbortController()
    read((client) => client["admin-usage"].query({ query: { ...query } }), loading.signal).then(
      (reply) => setLoaded({ state: "there", reply }),
      (failure: unknown) => {
        if (loading.signal.aborted) return
        setLoaded(isMissing(failure) ? { state: "unavailable" } : { state: "failed", text: failureText(failure) })
      }
    )
    return () => loading.abort()
  }, [query])
  return loaded
}

const nameOf = (row: UsageRow, group: Group): string => {
  switch (group) {
    case "key":
      return row.key_name ? `${row.key_name} (${row.key ?? ""})` : row.key ?? ""
    case "account":
      return row.account_identifier ?? row.account ?? ""
    case "hour":
      return row.hour?.replace("T", " ").replace(":00:00Z", ":00") ?? ""
    default:
      return row[group] ?? ""
  }
}

/** What a reply's rows are by: until the next one is there, another group may be chosen already. */
const groupOf = (reply: UsageReply): Group => reply.by[0] ?? "hour"

const UsageTable = ({ reply }: { readonly reply: UsageReply }) => {
  const group = groupOf(reply)
  const texts = useTexts()
  const t = texts.usage
  const timed = group === "hour" || group === "day"
  const rows = timed ? reply.rows.toReversed() : reply.rows
  const cells = (measures: Measures) => (
    <>
      <td class="number">{number(measures.requests)}</td>
      <td class="number">{number(measures.failed)}</td>
      <td class="number">{number(measures.left)}</td>
      <td class="number">{number(measures.prompt_tokens)}</td>
      <td class="number">{number(measures.completion_tokens)}</td>
      <td class="number">{number(measures.total_tokens)}</td>
      <td class="number">{measures.requests === 0 ? "–" : duration(measures.duration_ms / measures.requests)}</td>
    </>
  )
  return (
    <>
      <Table
        name={texts.common.pages.usage}
        columns={[
          { name: t.groups[group] },
          { name: t.requests, number: true },
          { name: t.failed, number: true },
          { name: t.left, number: true },
          { name: t.prompt, number: true },
          { name: t.completion, number: true },
          { name: t.total, number: true },
          { name: t.mean, number: true }
        ]}
        rows={rows.length}
        empty={t.empty}
      >
        {rows.slice(0, rowsAtMost).map((row) => (
          <tr key={nameOf(row, group)}>
            <th scope="row" class={timed ? "nowrap" : "text"}>{nameOf(row, group)}</th>
            {cells(row)}
          </tr>
        ))}
        <tr class="totals">
          <th scope="row">{t.all}</th>
          {cells(reply.totals)}
        </tr>
      </Table>
      {reply.truncated || rows.length > rowsAtMost ? <p class="hint">{t.cut(rowsAtMost)}</p> : null}
    </>
  )
}

const UsageChart = ({ reply }: { readonly reply: UsageReply }) => {
  const group = groupOf(reply)
  return (group === "hour" || group === "day") && reply.rows.length > 0
    ? <Chart reply={reply} group={group} />
    : null
}

export const Usage = () => {
  const texts = useTexts()
  const t = texts.usage
  const [range, setRange] = useState<Range>("day")
  const [group, setGroup] = useState<Group>("hour")
  const [asked, setAsked] = useState(0)
  const query = useMemo(() => queryOf(range, group), [range, group, asked])
  const usage = useUsage(query)
  const session = useAtom(sessionAtom)
  return (
    <>
      <Heading name={texts.common.pages.usage}>
        {usage.state === "there" && !session.inMemory
          ? (
            <a
              class="button"
              href={at(`/admin/usage.csv?${new URLSearchParams({ ...query, limit: "100000" })}`)}
              download="usage.csv"
            >
              {t.csv}
            </a>
          )
          : null}
        <button type="button" onClick={() => setAsked(asked + 1)}>{t.reload}</button>
      </Heading>
      <div class="row">
        <Select
          label={t.range}
          value={range}
          options={Object.keys(ranges).map((each) => [each, t.ranges[each as Range]] as const)}
          onValue={(value) => setRange(value as Range)}
        />
        <Select
          label={t.groupBy}
          value={group}
          options={groups.map((each) => [each, t.groups[each]] as const)}
          onValue={(value) => setGroup(value as Group)}
        />
      </div>
      {usage.state === "loading" ? <Loading /> : null}
      {usage.state === "unavailable" ? <p class="notice">{t.unavailable}</p> : null}
      {usage.state === "failed" ? <LoadFailure text={usage.text} onRetry={() => setAsked(asked + 1)} /> : null}
      {usage.state === "there"
        ? (
          <>
            {usage.reply.store.persistent
              ? null
              : <p class="notice warn">{t.notKept}{usage.reply.store.detail ? ` ${usage.reply.store.detail}` : ""}</p>}
            <UsageChart reply={usage.reply} />
            <UsageTable reply={usage.reply} />
          </>
        )
        : null}
    </>
  )
}
