/**
 * Sessions of clients: when each one ran, what it asked for and what it cost, with the agents that it started.
 */
import type { ComponentChildren } from "preact"
import { useMemo } from "preact/hooks"
import { csvLine } from "../../domain/printed.ts"
import { Empty } from "../parts/Empty.tsx"
import { Export } from "../parts/Export.tsx"
import { Search, Select } from "../parts/Form.tsx"
import { dayOf, duration, exactTime, minuteOfDay, number } from "../parts/format.ts"
import { Heading } from "../parts/Heading.tsx"
import { useLayout } from "../parts/layout.ts"
import { Lazy, Loaded, useReads } from "../parts/Loaded.tsx"
import { type Column, type Order, Pager, Row, Table, useOrder } from "../parts/Table.tsx"
import { Count, Money } from "../parts/Values.tsx"
import type { Reply } from "../state/client.ts"
import { isMissing } from "../state/failure.ts"
import { useReread } from "../state/live.ts"
import { readOf } from "../state/reads.ts"
import { useValue } from "../state/registry.ts"
import { choose, linkTo, useQuery } from "../state/route.ts"
import { useTexts } from "../state/texts.ts"
import { CacheShare } from "./usage/CacheCell.tsx"
import type { UsageRow } from "./usage/rows.ts"
import { treeOf } from "./usage/tree.ts"

const hour = 3_600_000
const ranges = { day: 24, week: 7 * 24, month: 30 * 24 } as const
type Range = keyof typeof ranges

/** Rows that are read at most: sessions, their agents, and their hours. */
const mostRows = 1_000
const mostAgents = 1_000
const mostHours = 10_000
const pageSize = 50

/** What usage is sorted by; its own order is by falling tokens. */
const sorts = ["requests", "failed", "total_tokens", "prompt_cache_hit_rate", "cost"] as const

/** What the page itself sorts by. */
const ownSorts = ["start", "length"] as const

const nothingKept: ReadonlyArray<Recorded> = []

const isRange = (name: string | undefined): name is Range => name !== undefined && Object.hasOwn(ranges, name)

type Recorded = Reply<"admin-requests", "sessions">["sessions"][number]

const idOf = ({ app, key, session }: UsageRow): string => [key, app, session].join("\u0000")

const recordedId = ({ app, key, session }: Recorded): string => [key, app === "" ? "none" : app, session].join("\u0000")

const exactly = (from: number, to: number): string => `${exactTime(from)} – ${exactTime(to)}`

const useRows = (by: string, limit: number, from: string, order?: Order<(typeof sorts)[number]>) => {
  const read = useMemo(
    () => readOf("admin-usage", "query", { query: { from, by, limit: String(limit), ...order } }),
    [by, limit, from, order?.sort, order?.order]
  )
  useReread(read)
  return read
}

/** The first and the last hour in which each session asked for something, in Unix milliseconds. */
const hoursOf = (rows: ReadonlyArray<UsageRow>): ReadonlyMap<string, readonly [first: number, last: number]> => {
  const hours = new Map<string, readonly [number, number]>()
  for (const row of rows) {
    const at = Date.parse(row.hour ?? "")
    const [first, last] = hours.get(idOf(row)) ?? [at, at]
    hours.set(idOf(row), [Math.min(first, at), Math.max(last, at)])
  }
  return hours
}

/** A time of day, with its day where that is another than today. */
const minuteOf = (at: number): string =>
  dayOf(at) === dayOf(Date.now()) ? minuteOfDay(at) : `${dayOf(at)} ${minuteOfDay(at)}`

/** When a session was active, in Unix milliseconds: exactly as far as its requests are kept, else by the hours of usage. */
interface Span {
  readonly from: number
  readonly to: number
  readonly isExact: boolean
}

type SpanOf = (row: UsageRow) => Span | undefined

const spansOf = (hours: ReadonlyArray<UsageRow>, kept: ReadonlyMap<string, Recorded>): SpanOf => {
  const times = hoursOf(hours)
  return (row) => {
    const recorded = kept.get(idOf(row))
    if (recorded !== undefined && recorded.requests >= row.requests) {
      return { from: recorded.from, to: recorded.to, isExact: true }
    }
    const [from, to] = times.get(idOf(row)) ?? []
    return from === undefined || to === undefined ? undefined : { from, to, isExact: false }
  }
}

/** Its start, and its length as far as that is known. */
const whenOf = (span: Span | undefined): readonly [start: ComponentChildren, length: ComponentChildren] => {
  if (span === undefined) return ["–", "–"]
  const { from, isExact, to } = span
  const title = isExact ? exactly(from, to) : undefined
  return [
    <span key="start" title={title}>{minuteOf(from)}</span>,
    isExact || to > from ? <span key="length" title={title}>{duration(to - from)}</span> : "–"
  ]
}

/** Rows by their start or their length; those whose time is unknown come last. */
const sorted = (
  rows: ReadonlyArray<UsageRow>,
  spanOf: SpanOf,
  { order, sort }: Order<(typeof ownSorts)[number]>
): ReadonlyArray<UsageRow> => {
  const sign = order === "asc" ? 1 : -1
  const valueOf = (row: UsageRow): number => {
    const span = spanOf(row)
    return span === undefined ? Infinity : sign * (sort === "start" ? span.from : span.to - span.from)
  }
  const values = new Map(rows.map((row) => [row, valueOf(row)]))
  return rows.toSorted((a, b) => values.get(a)! - values.get(b)! || 0)
}

/** The models of a session: the last one, and how many others. */
const Models = ({ models }: { readonly models: ReadonlyArray<string> }) =>
  models.length === 0
    ? <>–</>
    : (
      <span title={models.join("\n")}>
        {models[0]}
        {models.length > 1 && <span class="hint">{` +${models.length - 1}`}</span>}
      </span>
    )

const Rows = ({ agents, currency, kept, page, rows, spanOf }: {
  readonly kept: ReadonlyMap<string, Recorded>
  readonly spanOf: SpanOf
  /** The sessions that are found, and which page of them is shown. */
  readonly rows: ReadonlyArray<UsageRow>
  readonly page: number
  readonly agents: ReadonlyArray<UsageRow>
  readonly currency: string | null
}) => {
  const { common, sessions: t, usage } = useTexts()
  const byId = useMemo(() => Map.groupBy(agents, idOf), [agents])
  const isNarrowed = useQuery()["q"] !== undefined
  const isCards = useLayout() === "cards"
  const columns: ReadonlyArray<Column> = [
    { name: usage.session, rank: 1, width: "10.2rem" },
    // What they are is plain without their names.
    { name: usage.groups.app, rank: 2, hidden: isCards, width: "7.6rem" },
    { name: usage.groups.key, rank: 2, hidden: isCards },
    { name: t.models, rank: 4 },
    { name: t.start, rank: isCards ? 1 : 3, sort: "start", first: "desc", width: "8rem" },
    { name: t.length, rank: 4, sort: "length", number: true, width: "7rem" },
    { name: usage.requests, rank: 2, sort: "requests", number: true, width: "5.6rem" },
    { name: usage.failed, rank: 4, sort: "failed", number: true, width: "4.4rem" },
    { name: usage.tokens, rank: 2, sort: "total_tokens", number: true, width: "5.6rem" },
    { name: usage.fromCache, rank: 4, sort: "prompt_cache_hit_rate", number: true, width: "6.2rem" },
    ...currency === null
      ? []
      : [{ name: common.costIn(currency), rank: 2, sort: "cost", number: true, width: "6.6rem" } as const]
  ]
  const measures = (row: UsageRow, query: Readonly<Record<string, string>>): ReadonlyArray<ComponentChildren> => [
    number(row.requests),
    row.failed === 0
      ? "0"
      : <a class="bad" href={linkTo("requests", undefined, { ...query, outcome: "failed" })}>{number(row.failed)}</a>,
    <Count key="tokens" value={row.total_tokens} />,
    <CacheShare key="cache" row={row} />,
    ...currency === null ? [] : [<Money key="cost" amount={row.cost} currency={currency} inTable />]
  ]
  return (
    <Table
      name={common.pages.sessions}
      columns={columns}
      order={{ sort: "total_tokens", order: "desc" }}
      rows={rows.length}
      empty={isNarrowed ? t.noneFound : <Empty>{t.empty}</Empty>}
    >
      {rows.slice((page - 1) * pageSize, page * pageSize).flatMap((row) => {
        const { app, key, key_name: name, session = "" } = row
        const tree = treeOf(byId.get(idOf(row)) ?? []).filter(({ row: { agent } }) => agent !== "none")
        const own = kept.get(idOf(row))
        return [
          <Row
            key={idOf(row)}
            cells={[
              <a href={linkTo("sessions", session, { key: key ?? "" })} title={session}>
                <code>{session}</code>
              </a>,
              app,
              name ?? usage.specialKeys(key ?? "") ?? <code>{key}</code>,
              <Models key="models" models={own?.models ?? []} />,
              ...whenOf(spanOf(row)),
              ...measures(row, { session })
            ]}
          />,
          ...tree.map(({ depth, row: agent }) => (
            <Row
              key={`${idOf(row)}\u0000${agent.agent}\u0000${agent.parent}`}
              cells={[
                <>
                  <span class="indent" style={{ width: `${1 + 1.5 * depth}rem` }} />
                  <a href={linkTo("sessions", session, { key: key ?? "", agent: agent.agent ?? "" })}>
                    <code>{agent.agent}</code>
                  </a>{" "}
                  <span class="hint">{usage.agent}</span>
                </>,
                "",
                "",
                "",
                "",
                "",
                ...measures(agent, { session })
              ]}
            />
          ))
        ]
      })}
    </Table>
  )
}

const csvHead = [
  "session",
  "app",
  "key",
  "key_name",
  "models",
  "from",
  "to",
  "requests",
  "failed",
  "duration_ms",
  "total_tokens",
  "cached_tokens",
  "cost"
] as const

/** A session as a line of CSV. Its models and times come from its requests that are kept. */
const lineOf = (row: UsageRow, recorded: ReadonlyArray<Recorded>): string => {
  const own = recorded.find((each) => recordedId(each) === idOf(row))
  const iso = (at: number | undefined) => at === undefined ? "" : new Date(at).toISOString()
  return csvLine([
    row.session ?? "",
    row.app ?? "",
    row.key ?? "",
    row.key_name ?? "",
    own?.models.join(" ") ?? "",
    iso(own?.from),
    iso(own?.to),
    ...[row.requests, row.failed, row.duration_ms, row.total_tokens, row.cached_tokens].map(String),
    row.cost
  ])
}

/** The sessions whose name, app or key has a text. */
const found = (rows: ReadonlyArray<UsageRow>, text: string): ReadonlyArray<UsageRow> =>
  rows.filter(({ app, key_name: name, session = "none" }) =>
    session !== "none" && [session, app ?? "", name ?? ""].some((each) => each.toLowerCase().includes(text))
  )

const List = () => {
  const { common, sessions: t, usage } = useTexts()
  const { page: asked = "1", q = "", range: chosen } = useQuery()
  const page = Math.max(1, Math.trunc(Number(asked)) || 1)
  const range = isRange(chosen) ? chosen : "day"
  const end = Math.ceil(Date.now() / hour) * hour
  const from = new Date(end - ranges[range] * hour).toISOString().replace(".000", "")
  const sessions = useRows("key,app,session", mostRows, from, useOrder(sorts))
  const agents = useRows("key,app,session,agent,parent", mostAgents, from)
  const hours = useRows("key,app,session,hour", mostHours, from)
  const kept = useMemo(() => readOf("admin-requests", "sessions", { query: { from } }), [from])
  useReread(kept)
  const ownOrder = useOrder(ownSorts)
  const { failure } = useReads([kept])
  const rows = useValue(sessions)?.rows ?? []
  const recorded = useValue(kept)?.sessions ?? nothingKept
  const keptById = useMemo(() => new Map(recorded.map((each) => [recordedId(each), each])), [recorded])
  return (
    <>
      <Heading name={common.pages.sessions}>
        <Export
          list="sessions"
          ending="csv"
          filter={{ range, q }}
          head={csvLine(csvHead)}
          // The rows are those that the page has read.
          read={async function*() {
            yield { lines: found(rows, q.toLowerCase()).map((row) => lineOf(row, recorded)), total: undefined }
          }}
        />
      </Heading>
      <p class="lead">{t.lead}</p>
      <div class="row">
        <Search label={t.search} value={q} onSearch={(text) => choose({ q: text, page: "" })} />
        <Select
          label={usage.range}
          value={range}
          options={(Object.keys(ranges) as ReadonlyArray<Range>).map((each) => [each, usage.ranges[each]] as const)}
          onValue={(value: string) => choose({ range: value === "day" ? "" : value, page: "" })}
        />
      </div>
      {failure}
      <Loaded
        atom={sessions}
        rows={8}
        failed={(failure) => isMissing(failure) ? <p class="notice">{usage.unavailable}</p> : undefined}
      >
        {({ currency, rows, truncated }) => (
          <Loaded atom={agents}>
            {(ofAgents) => (
              <Loaded atom={hours}>
                {(ofHours) => {
                  const spanOf = spansOf(ofHours.rows, keptById)
                  const all = found(rows, q.toLowerCase())
                  const shown = ownOrder === undefined ? all : sorted(all, spanOf, ownOrder)
                  const pages = Math.max(1, Math.ceil(shown.length / pageSize))
                  return (
                    <div class="stack sessions">
                      <Rows
                        rows={shown}
                        kept={keptById}
                        spanOf={spanOf}
                        page={Math.min(page, pages)}
                        agents={ofAgents.rows}
                        currency={currency}
                      />
                      {pages > 1 && (
                        <Pager
                          page={page}
                          shown={page}
                          pages={pages}
                          total={t.total(shown.length)}
                          onPage={(next) => choose({ page: next === 1 ? "" : String(next) })}
                        />
                      )}
                      {truncated && <p class="hint">{t.cut(mostRows)}</p>}
                    </div>
                  )
                }}
              </Loaded>
            )}
          </Loaded>
        )}
      </Loaded>
    </>
  )
}

const loadPage = () => import("./SessionPage.tsx").then((module) => module.SessionPage)

/** The list of sessions, or session `of`. */
export const Sessions = ({ of }: { readonly of: string | undefined }) =>
  of === undefined ? <List /> : <Lazy key={of} load={loadPage} of={of} />
