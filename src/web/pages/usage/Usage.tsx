/**
 * Usage: requests and tokens by key, model, account, style, upstream, target or time.
 */
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useMemo, useState } from "preact/hooks"
import { Select } from "../../parts/Form.tsx"
import { duration, number } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import { Admin, at } from "../../state/client.ts"
import { isMissing } from "../../state/failure.ts"
import { useTexts } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { sessionAtom } from "../../state/session.ts"
import { useSeveralUpstreams } from "../../state/upstreams.ts"
import { Chart } from "./Chart.tsx"
import type { Measures, Usage as UsageReply, UsageRow } from "./rows.ts"

const ranges = { day: 1, week: 7, month: 30, quarter: 90, year: 365 } as const
type Range = keyof typeof ranges

const groups = ["hour", "day", "key", "model", "account", "style"] as const
const severalGroups = [...groups, "upstream", "target"] as const
type Group = (typeof severalGroups)[number]

const rowsAtMost = 200

const day = 24 * 3600 * 1000

/** The query of a range, with the limit of the API's reply for this group. */
const queryOf = (range: Range, group: Group) => {
  const from = new Date(Date.now() - ranges[range] * day).toISOString()
  return { from, by: group, limit: group === "hour" ? "10000" : "1000" }
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

/** The group of a reply's rows. It differs from the chosen group until the next reply arrives. */
const groupOf = (reply: UsageReply): Group => reply.by[0] ?? "hour"

const UsageTable = ({ busy, reply }: { readonly reply: UsageReply; readonly busy: boolean }) => {
  const group = groupOf(reply)
  const { common, usage: t } = useTexts()
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
        name={common.pages.usage}
        busy={busy}
        columns={[
          t.groups[group],
          ...numbers(t.requests, t.failed, t.left, t.prompt, t.completion, t.total, t.mean)
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
      {(reply.truncated || rows.length > rowsAtMost) && <p class="hint">{t.cut(rowsAtMost)}</p>}
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
  const { common, usage: t } = useTexts()
  const [range, setRange] = useState<Range>("day")
  const [group, setGroup] = useState<Group>("hour")
  const [tries, setTries] = useState(0)
  const query = useMemo(() => queryOf(range, group), [range, group, tries])
  const usage = useMemo(() => Admin.query("admin-usage", "query", { query }), [query])
  const isFailed = AsyncResult.isFailure(useAtom(usage))
  const session = useAtom(sessionAtom)
  const several = useSeveralUpstreams().length > 0
  return (
    <>
      <Heading name={common.pages.usage}>
        {!isFailed && !session.inMemory && (
          <a
            class="button"
            href={at(`/admin/usage.csv?${new URLSearchParams({ ...query, limit: "100000" })}`)}
            download="usage.csv"
          >
            {t.csv}
          </a>
        )}
        <button type="button" onClick={() => setTries(tries + 1)}>{t.reload}</button>
      </Heading>
      <div class="row">
        <Select
          label={t.range}
          value={range}
          options={(Object.keys(ranges) as ReadonlyArray<Range>).map((each) => [each, t.ranges[each]] as const)}
          onValue={setRange}
        />
        <Select
          label={t.groupBy}
          value={group}
          options={(several ? severalGroups : groups).map((each) => [each, t.groups[each]] as const)}
          onValue={setGroup}
        />
      </div>
      <Loaded
        atom={usage}
        failed={(failure) => isMissing(failure) ? <p class="notice">{t.unavailable}</p> : undefined}
      >
        {(reply, waiting) => (
          <>
            {!reply.store.persistent && (
              <p class="notice warn">{t.notKept}{reply.store.detail ? ` ${reply.store.detail}` : ""}</p>
            )}
            <UsageChart reply={reply} />
            <UsageTable reply={reply} busy={waiting} />
          </>
        )}
      </Loaded>
    </>
  )
}
