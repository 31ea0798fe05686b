/**
 * The table of usage: the rows of the chosen groups with their measures, in pages, sorted by any measure.
 */
import type { ComponentChildren } from "preact"
import { dateTime, dayStart, number, percent, utcDate } from "../../parts/format.ts"
import { useLayout } from "../../parts/layout.ts"
import { RowMenu } from "../../parts/Menu.tsx"
import { type Column, Pager, Row, Table } from "../../parts/Table.tsx"
import { Count, Money, Took } from "../../parts/Values.tsx"
import { useAtom } from "../../state/registry.ts"
import { choose, linkTo, routeAtom } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { isoHour } from "../nouns/hours.ts"
import { CacheShare } from "./CacheCell.tsx"
import { type Choice, hour, orderFor } from "./choice.ts"
import {
  type Grouping,
  isLine,
  type LineName,
  measureOf,
  type Measures,
  type SortName,
  sortOf,
  type Usage as UsageReply,
  type UsageRow,
  valueOf
} from "./rows.ts"

const pageSize = 100

const follow = (link: string): void => {
  location.hash = link
}

/** The name of a row in a group, in words for requests that reached none of it. */
export const useNames = () => {
  const t = useTexts()
  return (row: UsageRow, by: Grouping): string => {
    if (by === "hour") return row.hour === undefined ? "" : dateTime(Date.parse(row.hour)).replace(/:00(?=$| )/, "")
    if (by === "day") return row.day === undefined ? "" : utcDate(Date.parse(row.day))
    if (by === "key") return row.key_name ?? t.usage.specialKeys(row.key ?? "") ?? row.key ?? ""
    if (by === "style") return row.style === undefined ? "" : t.requests.styles(row.style)
    if (by === "app" || by === "label") return row[by] === "none" ? "–" : row[by] ?? ""
    const value = by === "account" ? row.account_identifier ?? row.account : row[by]
    return value === undefined || value === "none" ? t.usage.notReached : value
  }
}

const quoted = (text: string | null | undefined): string => text === undefined || text === null ? "" : `"${text}"`

/** What the records of a choice are filtered by. Records know no target and no label, and accounts by their names alone. */
export const recordFilter = ({ from, only: { app, key, model, style, upstream }, to }: Choice) => ({
  ...key === undefined ? {} : { key: quoted(key) },
  ...model === undefined ? {} : { model: quoted(model) },
  ...style === undefined ? {} : { style },
  ...app === undefined ? {} : { app },
  ...upstream === undefined ? {} : { upstream },
  from: isoHour(from),
  to: isoHour(to)
})

/** The hour or the day of a row, as the API takes it; the whole time of a row without one. */
const timesOf = (row: UsageRow, choice: Choice) => {
  const { from, to } = row.hour !== undefined
    ? { from: Date.parse(row.hour), to: Date.parse(row.hour) + hour }
    : row.day !== undefined
    ? { from: dayStart(Date.parse(row.day)), to: dayStart(Date.parse(row.day) + 24 * hour) }
    : choice
  return { from: isoHour(from), to: isoHour(to) }
}

/** The requests of a row: what the records are filtered by. */
const requestsOf = (row: UsageRow, groups: ReadonlyArray<Grouping>, choice: Choice): string => {
  const filters: Record<string, string> = {}
  for (const name of groups) {
    if (name === "key") filters["key"] = quoted(row.key)
    if (name === "model") filters["model"] = quoted(row.model)
    if (name === "account") filters["account"] = quoted(row.account_identifier)
    if (name === "style") filters["style"] = row.style ?? ""
    if (name === "upstream") filters["upstream"] = row.upstream ?? ""
    if (name === "app") filters["app"] = row.app === "none" ? "" : row.app ?? ""
  }
  return linkTo("requests", undefined, {
    ...recordFilter(choice),
    ...filters,
    ...timesOf(row, choice)
  })
}

/** Values of dimensions that have no page. */
const pageless: ReadonlySet<string> = new Set(["", "none", "direct", "embedded"])

/** The address of the page of what a row is named by; `undefined` without one. */
const pageOf = (row: UsageRow, first: Grouping): string | undefined => {
  const value = first === "hour" || first === "day" ? "" : valueOf(row, first)
  if (pageless.has(value)) return undefined
  return first === "key" || first === "model" || first === "upstream" ? linkTo(`${first}s`, value) : undefined
}

/** The part of a row in what all rows have, as a bar behind its number. */
const Part = ({ all, children, value }: {
  readonly value: number
  readonly all: number
  readonly children: ComponentChildren
}) => (
  <>
    <span class="of-all" style={{ width: `${all === 0 ? 0 : (value / all) * 100}%` }} />
    <span>{children}</span>
  </>
)

/** A count with its share of the requests. */
const Share = ({ of, value }: { readonly value: number; readonly of: number }) => (
  <>
    <Count value={value} />
    {value > 0 && <span class="hint">{" "}{percent(value, of)}</span>}
  </>
)

/** A column of the table: what it is sorted by, and its cells. */
interface Measure extends Column {
  readonly sort: SortName
  readonly cell: (row: Measures) => ComponentChildren
}

/** The columns of measures. */
const useMeasures = ({ measure }: Choice, { currency, totals }: UsageReply): ReadonlyArray<Measure> => {
  const { common, usage: t } = useTexts()
  const hasCost = currency !== null || Number(totals.cost) > 0
  const percentile = (name: LineName, show: (value: number) => ComponentChildren) => (row: Measures) =>
    row[name] !== null
      ? show(row[name])
      : name === "duration_p95_ms" && row.requests > 0
      ? <span class="hint">{t.timesNotKept}</span>
      : "–"
  const took = (name: LineName) => percentile(name, (value) => <Took ms={value} />)
  const columns: ReadonlyArray<Measure | false> = [
    hasCost && {
      name: currency === null ? t.cost : t.costIn(currency),
      sort: "cost",
      rank: 2,
      cell: ({ cost, unpriced_requests }) => (
        <span title={unpriced_requests === 0 ? undefined : common.unpriced(unpriced_requests)}>
          <Money amount={cost} currency={currency} inTable />
          {unpriced_requests > 0 && " *"}
        </span>
      )
    },
    { name: t.requests, sort: "requests", rank: 2, cell: ({ requests }) => <Count value={requests} /> },
    {
      name: t.failed,
      sort: "failed",
      rank: 2,
      cell: ({ errors, failed, requests }) => (
        <span
          class={failed > 0 && failed * 20 >= requests ? "bad" : ""}
          title={t.failedOf(number(failed), Object.entries(errors).map(([code, n]) => `${code} ${number(n)}`))}
        >
          <Share value={failed} of={requests} />
        </span>
      )
    },
    { name: t.left, sort: "left", rank: 3, cell: ({ left }) => <Count value={left} /> },
    measure === "tokens" &&
    { name: t.tokens, sort: "total_tokens", rank: 3, cell: ({ total_tokens }) => <Count value={total_tokens} /> },
    {
      name: t.prompt,
      sort: "prompt_tokens",
      rank: 3,
      cell: ({ cached_tokens, prompt_tokens }) => (
        <span title={t.cachedOf(number(cached_tokens))}>
          <Count value={prompt_tokens} />
        </span>
      )
    },
    {
      name: t.completion,
      sort: "completion_tokens",
      rank: 3,
      cell: ({ completion_tokens, reasoning_tokens }) => (
        <span title={t.reasoningOf(number(reasoning_tokens))}>
          <Count value={completion_tokens} />
        </span>
      )
    },
    {
      name: t.fromCache,
      sort: "prompt_cache_hit_rate",
      rank: 2,
      cell: (row) => <CacheShare row={row} />
    },
    { name: t.percentiles.first_event_p50_ms, sort: "first_event_p50_ms", rank: 3, cell: took("first_event_p50_ms") },
    { name: t.percentiles.first_event_p95_ms, sort: "first_event_p95_ms", rank: 2, cell: took("first_event_p95_ms") },
    { name: t.percentiles.duration_p95_ms, sort: "duration_p95_ms", rank: 2, cell: took("duration_p95_ms") },
    { name: t.percentiles.queue_p95_ms, sort: "queue_p95_ms", rank: 3, cell: took("queue_p95_ms") },
    {
      name: t.speed,
      sort: "tokens_per_second_p50",
      rank: 3,
      cell: percentile("tokens_per_second_p50", number)
    },
    {
      name: t.attempts,
      sort: "attempts",
      rank: 3,
      cell: ({ attempts, requests }) => (
        <span title={requests === 0 ? undefined : t.attemptsEach((attempts / requests).toFixed(2))}>
          <Count value={attempts} />
        </span>
      )
    }
  ]
  return columns.flatMap((column): ReadonlyArray<Measure> => {
    if (column === false) return []
    if (column.sort !== sortOf(measure)) return [{ ...column, number: true }]
    // What the bars show is in sight in every window, with each row's part of all.
    const cell = (row: Measures) =>
      isLine(measure) ?
        column.cell(row) :
        <Part value={measureOf(row, measure)} all={measureOf(totals, measure)}>{column.cell(row)}</Part>
    return [{ ...column, number: true, rank: 2, class: "part-of", cell }]
  })
}

/** What a card shows. */
const onCards: ReadonlySet<SortName> = new Set(["cost", "requests", "failed", "prompt_cache_hit_rate"])

/** The rows of a time: those of the first groups in the chosen order, and the sums of all. */
export const UsageTable = ({ choice, reply }: { readonly choice: Choice; readonly reply: UsageReply }) => {
  const { common, usage: t } = useTexts()
  const nameOf = useNames()
  const groups = reply.by
  const first = groups[0] ?? "model"
  const isTimed = first === "hour" || first === "day"
  const { currency, totals } = reply
  const { asked, measure, page } = choice
  // Of the reply, which may still be one of an earlier choice.
  const order = orderFor(asked, first, measure)
  const isCards = useLayout() === "cards"
  // A card has room for two lines, the first one with the cost; by the others it can be sorted.
  const measures = useMeasures(choice, reply).map((each): Measure =>
    !isCards
      ? each
      : each.sort === "cost"
      ? { ...each, rank: 1 }
      : onCards.has(each.sort) || each.class === "part-of"
      ? each
      : { ...each, rank: 4 }
  )
  // Without an order of its own, the newest time is first.
  const rows = order === undefined ? reply.rows.toReversed() : reply.rows
  const pages = Math.max(1, Math.ceil(rows.length / pageSize))
  const hasUnpriced = totals.unpriced_requests > 0 && (currency !== null || Number(totals.cost) > 0)
  /** The page with this row alone. */
  const onlyOf = (row: UsageRow) =>
    isTimed
      ? { ...timesOf(row, choice), by: "" }
      : { [first]: valueOf(row, first), by: "" }
  const { query } = useAtom(routeAtom)
  return (
    <>
      <Table
        name={common.pages.usage}
        columns={[
          ...groups.map((name, index) => ({
            name: t.groups[name],
            rank: index === 0 ? 1 as const : 2 as const,
            class: "text"
          })),
          ...measures,
          { name: common.actions, hidden: true, class: "tools" }
        ]}
        rows={rows.length}
        empty={t.empty}
        {...order === undefined ? {} : { order }}
      >
        {rows.slice((page - 1) * pageSize, page * pageSize).map((row) => {
          const link = pageOf(row, first)
          return (
            <Row
              key={groups.map((name) => name === "hour" || name === "day" ? row[name] : valueOf(row, name)).join("\n")}
              cells={[
                ...groups.map((name, index) =>
                  index === 0
                    ? (
                      <a
                        key={name}
                        href={linkTo("usage", undefined, { ...query, page: "", ...onlyOf(row) })}
                        title={name === "key" ? `${t.only}: ${row.key}` : t.only}
                      >
                        {nameOf(row, name)}
                      </a>
                    )
                    : nameOf(row, name)
                ),
                ...measures.map(({ cell }) => cell(row)),
                <RowMenu
                  key="menu"
                  of={nameOf(row, first)}
                  items={[
                    { id: "requests", text: t.itsRequests, onClick: () => follow(requestsOf(row, groups, choice)) },
                    ...link === undefined ? [] : [{ id: "page", text: t.itsPage, onClick: () => follow(link) }]
                  ]}
                />
              ]}
            />
          )
        })}
        <Row
          // No row of groups: each of theirs has one line less.
          key={"\n".repeat(groups.length)}
          class="totals"
          cells={[
            ...groups.map((_, index) => index === 0 ? t.all : ""),
            ...measures.map(({ cell }) => cell(totals)),
            ""
          ]}
        />
      </Table>
      {pages > 1 && (
        <Pager
          page={page}
          shown={page}
          pages={pages}
          total={t.rows(rows.length)}
          onPage={(next) => choose({ page: next === 1 ? "" : String(next) })}
        />
      )}
      {reply.truncated && <p class="hint">{t.cut(rows.length)}</p>}
      {hasUnpriced && <p class="hint">* {common.unpriced(totals.unpriced_requests)}</p>}
    </>
  )
}
