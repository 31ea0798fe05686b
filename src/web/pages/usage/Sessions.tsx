/**
 * Sessions of clients: what each one asked for, with the agents that it started.
 */
import { useMemo } from "preact/hooks"
import { Select } from "../../parts/Form.tsx"
import { number } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import { Money } from "../../parts/Values.tsx"
import { isMissing } from "../../state/failure.ts"
import { useTexts } from "../../state/preferences.ts"
import { readOf } from "../../state/reads.ts"
import { choose, linkTo, useQuery } from "../../state/route.ts"
import { CacheCell } from "./CacheCell.tsx"
import type { UsageRow } from "./rows.ts"
import { treeOf } from "./tree.ts"

const hour = 3_600_000
const ranges = { day: 24, week: 7 * 24, month: 30 * 24 } as const
type Range = keyof typeof ranges

/** Rows that are read at most: sessions, and their agents. */
const mostRows = 200
const mostAgents = 1_000

const isRange = (name: string | undefined): name is Range => name !== undefined && Object.hasOwn(ranges, name)

const idOf = ({ app, key, session }: UsageRow): string => [key, app, session].join("\u0000")

const useRows = (by: string, limit: number, from: string) =>
  useMemo(() => readOf("admin-usage", "query", { query: { from, by, limit: String(limit) } }), [by, limit, from])

const Rows = ({ agents, currency, rows }: {
  readonly rows: ReadonlyArray<UsageRow>
  readonly agents: ReadonlyArray<UsageRow>
  readonly currency: string | null
}) => {
  const t = useTexts().usage
  const byId = Map.groupBy(agents, idOf)
  const measures = (row: UsageRow) => (
    <>
      <td class="number">{number(row.requests)}</td>
      <td class="number">{number(row.total_tokens)}</td>
      <CacheCell row={row} />
      {currency !== null && (
        <td class="number">
          <Money amount={row.cost} currency={currency} inTable />
        </td>
      )}
    </>
  )
  return (
    <Table
      name={t.sessions}
      columns={[
        t.session,
        t.groups.app,
        t.groups.key,
        ...numbers(t.requests, t.tokens, t.fromCache, ...currency === null ? [] : [t.measures.cost])
      ]}
      rows={rows.length}
      empty={t.noSessions}
    >
      {rows.flatMap((row) => {
        const { app, key, key_name: name, session = "" } = row
        const tree = treeOf(byId.get(idOf(row)) ?? []).filter(({ row }) => row.agent !== "none")
        return [
          <tr key={idOf(row)}>
            <th scope="row">
              <a href={linkTo("requests", undefined, { session })}>
                <code>{session}</code>
              </a>
            </th>
            <td>{app}</td>
            <td>{name ?? t.specialKeys(key ?? "") ?? <code>{key}</code>}</td>
            {measures(row)}
          </tr>,
          ...tree.map(({ depth, row: agent }) => (
            <tr key={`${idOf(row)}\u0000${agent.agent}\u0000${agent.parent}`}>
              <th scope="row">
                <span class="indent" style={{ width: `${1 + 1.5 * depth}rem` }} />
                <code>{agent.agent}</code>
              </th>
              <td colSpan={2} class="hint">{t.agent}</td>
              {measures(agent)}
            </tr>
          ))
        ]
      })}
      {rows.length >= mostRows && (
        <tr>
          <td colSpan={7} class="hint">{t.cut(mostRows)}</td>
        </tr>
      )}
    </Table>
  )
}

export const Sessions = () => {
  const t = useTexts().usage
  const { range: chosen } = useQuery()
  const range = isRange(chosen) ? chosen : "day"
  const end = Math.ceil(Date.now() / hour) * hour
  const from = new Date(end - ranges[range] * hour).toISOString().replace(".000", "")
  const sessions = useRows("key,app,session", mostRows, from)
  const agents = useRows("key,app,session,agent,parent", mostAgents, from)
  return (
    <>
      <Heading name={t.sessions}>
        <a class="button" href={linkTo("usage")}>{t.allUsage}</a>
      </Heading>
      <p class="lead">{t.aboutSessions}</p>
      <div class="row">
        <Select
          label={t.range}
          value={range}
          options={(Object.keys(ranges) as ReadonlyArray<Range>).map((each) => [each, t.ranges[each]] as const)}
          onValue={(value: string) => choose({ range: value === "day" ? "" : value })}
        />
      </div>
      <Loaded
        atom={sessions}
        failed={(failure) => isMissing(failure) ? <p class="notice">{t.unavailable}</p> : undefined}
      >
        {({ currency, rows }) => (
          <Loaded atom={agents}>
            {(reply) => (
              <Rows
                rows={rows.filter(({ session }) => session !== "none")}
                agents={reply.rows}
                currency={currency}
              />
            )}
          </Loaded>
        )}
      </Loaded>
    </>
  )
}
