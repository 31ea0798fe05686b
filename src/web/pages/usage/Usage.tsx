/**
 * Usage: requests, tokens and costs by key, model, account, style, upstream, target, app or time.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useEffect, useMemo } from "preact/hooks"
import { Chip } from "../../parts/Card.tsx"
import { Select } from "../../parts/Form.tsx"
import {
  date,
  dateTime,
  dayIn,
  dayStart,
  duration,
  minuteOfDay,
  number,
  percent,
  sentence,
  timeOfDay,
  timeZone,
  utcDate,
  zoneName
} from "../../parts/format.ts"
import { Heading, Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { numbers, RowButton, Table } from "../../parts/Table.tsx"
import { Count, Money } from "../../parts/Values.tsx"
import { Admin, at } from "../../state/client.ts"
import { isMissing } from "../../state/failure.ts"
import { useTexts, zoneAtom } from "../../state/preferences.ts"
import { registry, useAtom } from "../../state/registry.ts"
import { countsAtom } from "../../state/requests.ts"
import { choose, linkTo, type Query, useQuery } from "../../state/route.ts"
import { sessionAtom } from "../../state/session.ts"
import { useSeveralUpstreams } from "../../state/upstreams.ts"
import { CacheCell } from "./CacheCell.tsx"
import { Chart } from "./Chart.tsx"
import { MissReasons } from "./MissReasons.tsx"
import {
  type CachePart,
  cacheStackOf,
  type Dimension,
  dimensions,
  errorsOf,
  type Grouping,
  type MeasureName,
  measureNames,
  measureOf,
  type Measures,
  stackOf,
  type Usage as UsageReply,
  type UsageRow,
  valueOf
} from "./rows.ts"
import { Sessions } from "./Sessions.tsx"

const hour = 3600 * 1000
const ranges = { day: 24, week: 7 * 24, month: 30 * 24, quarter: 90 * 24, year: 365 * 24 } as const
type Range = keyof typeof ranges

const rowsAtMost = 200

/** The longest range whose bars are hours. */
const longestByHours = 8 * 24 * hour

/** How often a range up to now is read again while it is shown. */
const rereadAfter = (length: number): number => length <= 24 * hour ? 5_000 : 60_000

const oneOf = <A extends string>(all: ReadonlyArray<A>, text: string | undefined): A | undefined =>
  all.find((each) => each === text)

/** What is chosen on the page, from its address. */
const useChoice = () => {
  const query = useQuery()
  const several = useSeveralUpstreams().length > 0
  const shownDimensions = several ? dimensions : dimensions.filter((name) => name !== "upstream" && name !== "target")
  // The API counts in hours: the same hour gives the same query.
  const end = Math.ceil(Date.now() / hour) * hour
  const zone = (useAtom(zoneAtom), timeZone())
  return useMemo(() => {
    const range = oneOf(Object.keys(ranges) as ReadonlyArray<Range>, query["range"]) ?? "day"
    const [from, to] = [Date.parse(query["from"] ?? ""), Date.parse(query["to"] ?? "")]
    const isCustom = from < to
    const times = isCustom ? { from, to } : { from: end - ranges[range] * hour, to: end }
    const by: Grouping = oneOf([...shownDimensions, "hour", "day"], query["by"]) ?? "model"
    const second = oneOf(shownDimensions, query["second"])
    return {
      ...times,
      isCustom,
      range,
      zone,
      unit: times.to - times.from <= longestByHours ? "hour" as const : "day" as const,
      by,
      second: second === by ? undefined : second,
      // The bars of prompts have parts of their own.
      split: query["measure"] === "cache" || query["split"] === "none"
        ? undefined
        : oneOf(shownDimensions, query["split"]) ?? "model",
      measure: oneOf(measureNames, query["measure"]) ?? "requests",
      only: Object.fromEntries(dimensions.flatMap((name) => query[name] ? [[name, query[name]]] : [])) as Query,
      shownDimensions
    }
  }, [query, end, several, zone])
}

type Choice = ReturnType<typeof useChoice>

const isoHour = (time: number): string => new Date(time).toISOString().replace(".000", "")

/** The query of a choice, with its groups. */
const queryOf = ({ from, only, to, zone }: Choice, by: ReadonlyArray<Grouping | undefined>, limit: number) => ({
  ...only,
  zone,
  from: isoHour(from),
  to: isoHour(to),
  by: by.filter((name) => name !== undefined).join(","),
  limit: String(limit)
})

/** The name of a row in a group, in words for requests that reached none of it. */
const useNames = () => {
  const t = useTexts()
  return (row: UsageRow, by: Grouping): string => {
    if (by === "hour") return row.hour === undefined ? "" : dateTime(Date.parse(row.hour)).replace(/:00(?=$| )/, "")
    if (by === "day") return row.day === undefined ? "" : utcDate(Date.parse(row.day))
    if (by === "key") return row.key_name ?? t.usage.specialKeys(row.key ?? "") ?? row.key ?? ""
    if (by === "style") return row.style === undefined ? "" : t.requests.styles(row.style)
    if (by === "app") return row.app === "none" ? "–" : row.app ?? ""
    const value = by === "account" ? row.account_identifier ?? row.account : row[by]
    return value === undefined || value === "none" ? t.usage.notReached : value
  }
}

const quoted = (text: string | null | undefined): string => text === undefined || text === null ? "" : `"${text}"`

/** What the records of a choice are filtered by. Records know no target, and accounts by their names alone. */
const recordFilter = ({ from, only: { app, key, model, style, upstream }, to }: Choice) => ({
  ...key === undefined ? {} : { key: quoted(key) },
  ...model === undefined ? {} : { model: quoted(model) },
  ...style === undefined ? {} : { style },
  ...app === undefined ? {} : { app },
  ...upstream === undefined ? {} : { upstream },
  from: isoHour(from),
  to: isoHour(to)
})

/** The requests of a row: what the records are filtered by. */
const requestsOf = (row: UsageRow, groups: ReadonlyArray<Grouping>, choice: Choice): string => {
  const times = row.hour !== undefined
    ? { from: Date.parse(row.hour), to: Date.parse(row.hour) + hour }
    : row.day !== undefined
    ? { from: dayStart(Date.parse(row.day)), to: dayStart(Date.parse(row.day) + 24 * hour) }
    : choice
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
    from: isoHour(times.from),
    to: isoHour(times.to)
  })
}

const UsageTable = ({ choice, reply }: { readonly choice: Choice; readonly reply: UsageReply }) => {
  const { common, usage: t } = useTexts()
  const nameOf = useNames()
  const groups = reply.by
  const first = groups[0] ?? "model"
  const isTimed = first === "hour" || first === "day"
  const { currency, totals } = reply
  const { measure } = choice
  const hasCost = currency !== null || Number(totals.cost) > 0
  const rows = isTimed
    ? reply.rows.toReversed()
    : reply.rows.toSorted((a, b) =>
      measureOf(b, measure) - measureOf(a, measure) || b.requests - a.requests || b.total_tokens - a.total_tokens
    )
  const cells = (row: Measures) => (
    <>
      <td class="number part-of">
        <span
          class="of-all"
          style={{ width: `${totals.requests === 0 ? 0 : (row.requests / totals.requests) * 100}%` }}
        />
        <span>{number(row.requests)}</span>
      </td>
      <td
        class="number"
        title={t.failedOf(number(row.failed), Object.entries(row.errors).map(([code, n]) => `${code} ${number(n)}`))}
      >
        {row.failed === 0
          ? "0"
          : <span class={row.failed * 20 >= row.requests ? "bad" : ""}>{percent(row.failed, row.requests)}</span>}
      </td>
      <td class="number">{percent(row.left, row.requests)}</td>
      <td class="number" title={t.cachedOf(number(row.cached_tokens))}>
        <Count value={row.prompt_tokens} />
      </td>
      <td class="number" title={t.reasoningOf(number(row.reasoning_tokens))}>
        <Count value={row.completion_tokens} />
      </td>
      {hasCost && (
        <td class="number" title={row.unpriced_requests === 0 ? "" : t.unpriced(row.unpriced_requests)}>
          <Money amount={row.cost} currency={currency} inTable />
          {row.unpriced_requests > 0 && " *"}
        </td>
      )}
      <td class="number" title={t.queuedOf(row.requests === 0 ? "–" : duration(row.queue_ms / row.requests))}>
        {row.requests === 0 ? "–" : duration(row.duration_ms / row.requests)}
      </td>
      <td class="number">{row.requests === 0 ? "–" : (row.attempts / row.requests).toFixed(2)}</td>
      {measure === "cache" && <CacheCell row={row} />}
    </>
  )
  return (
    <>
      <Table
        name={common.pages.usage}
        columns={[
          ...groups.map((name) => t.groups[name]),
          ...numbers(
            t.requests,
            t.failed,
            t.left,
            t.prompt,
            t.completion,
            ...hasCost ? [currency === null ? t.cost : t.costIn(currency)] : [],
            t.mean,
            t.attempts,
            ...measure === "cache" ? [t.fromCache] : []
          ),
          { name: common.actions, hidden: true }
        ]}
        rows={rows.length}
        empty={t.empty}
      >
        {rows.slice(0, rowsAtMost).map((row) => (
          <tr key={groups.map((name) => name === "hour" || name === "day" ? row[name] : valueOf(row, name)).join("\n")}>
            {groups.map((name, index) =>
              index === 0
                ? (
                  <th key={name} scope="row" class={isTimed ? "nowrap" : "text"}>
                    <a href={requestsOf(row, groups, choice)} title={name === "key" ? row.key : undefined}>
                      {nameOf(row, name)}
                    </a>
                  </th>
                )
                : <td key={name} class="text">{nameOf(row, name)}</td>
            )}
            {cells(row)}
            <td class="tools">
              {!isTimed && (
                <RowButton
                  text={t.only}
                  of={nameOf(row, first)}
                  onClick={() => choose({ [first]: valueOf(row, first), by: "" })}
                />
              )}
            </td>
          </tr>
        ))}
        <tr class="totals">
          <th scope="row" colSpan={Math.max(1, groups.length)}>{t.all}</th>
          {cells(totals)}
          <td />
        </tr>
      </Table>
      {(reply.truncated || rows.length > rowsAtMost) && <p class="hint">{t.cut(rowsAtMost)}</p>}
      {totals.unpriced_requests > 0 && hasCost && <p class="hint">* {t.unpriced(totals.unpriced_requests)}</p>}
    </>
  )
}

const Errors = ({ choice: { from, to }, reply }: { readonly choice: Choice; readonly reply: UsageReply }) => {
  const t = useTexts().usage
  const errors = errorsOf(reply)
  if (errors.length === 0) return null
  return (
    <Section name={t.errors}>
      <Table name={t.errors} columns={[t.code, ...numbers(t.requests, t.share)]} rows={errors.length} empty="" compact>
        {errors.map(([code, count]) => (
          <tr key={code}>
            <th scope="row">
              <a href={linkTo("requests", undefined, { code: `"${code}"`, from: isoHour(from), to: isoHour(to) })}>
                <code>{code}</code>
              </a>
            </th>
            <td class="number">{number(count)}</td>
            <td class="number">{percent(count, reply.totals.requests)}</td>
          </tr>
        ))}
      </Table>
    </Section>
  )
}

/** Why prompts were not cached, of the kept requests; nothing where the choice is one that records do not know. */
const Misses = ({ choice }: { readonly choice: Choice }) => {
  const query = useMemo(() => recordFilter(choice), [choice])
  const counts = useMemo(() => countsAtom(query), [query])
  if (choice.only["target"] !== undefined || choice.only["account"] !== undefined) return null
  return (
    <Loaded atom={counts} failed={() => <span />}>
      {(counted) => <MissReasons counted={counted} query={query} />}
    </Loaded>
  )
}

const UsageChart = ({ choice, reply }: { readonly choice: Choice; readonly reply: UsageReply }) => {
  const t = useTexts().usage
  const nameOf = useNames()
  // Of the reply, which may still be one of an earlier choice.
  const [time, split] = reply.by as readonly ["hour" | "day", Dimension | undefined]
  const stack = useMemo(
    () =>
      choice.measure === "cache"
        ? cacheStackOf(reply, time, dayIn)
        : stackOf(reply, time, split, choice.measure, dayIn),
    [reply, time, split, choice.measure]
  )
  return (
    <Chart
      stack={stack}
      unit={time}
      measure={choice.measure}
      currency={reply.currency}
      nameOf={({ row, value }) =>
        choice.measure === "cache"
          ? t.cacheNames[value as CachePart]
          : row === undefined
          ? t.others
          : split === undefined
          ? t.measures[choice.measure]
          : nameOf(row, split)}
      onRange={(from, to) => choose({ from: isoHour(from), to: isoHour(to) })}
    />
  )
}

/** The chosen filters, each with a button that removes it. */
const Chips = ({ only }: { readonly only: Query }) => {
  const t = useTexts().usage
  return (
    <>
      {Object.entries(only).map(([name, value]) => (
        <Chip
          key={name}
          class="chosen"
          aria-label={t.remove(t.groups[name as Dimension])}
          onClick={() => choose({ [name]: "" })}
        >
          {t.groups[name as Dimension]}: {value} <span aria-hidden="true">×</span>
        </Chip>
      ))}
    </>
  )
}

/** The page: all usage, or that of sessions. */
export const Usage = ({ of }: { readonly of?: string | undefined }) => of === "sessions" ? <Sessions /> : <AllUsage />

const AllUsage = () => {
  const { common, usage: t } = useTexts()
  const choice = useChoice()
  const { by, from, isCustom, measure, only, range, shownDimensions, second, split, to, unit } = choice
  const query = useMemo(() => queryOf(choice, [by, second], by === "hour" ? 10_000 : 1_000), [choice])
  const usage = useMemo(() => Admin.query("admin-usage", "query", { query }), [query])
  const series = useMemo(
    () => Admin.query("admin-usage", "query", { query: queryOf(choice, [unit, split], 10_000) }),
    [choice]
  )
  const result = useAtom(usage)
  const isFailed = AsyncResult.isFailure(result)
  const session = useAtom(sessionAtom)
  const reload = () => {
    registry.refresh(usage)
    registry.refresh(series)
  }
  const isLive = !isCustom || to > Date.now()
  useEffect(() => {
    if (!isLive) return
    const timer = setInterval(() => {
      if (!document.hidden) reload()
    }, rereadAfter(to - from))
    return () => clearInterval(timer)
  }, [usage, series, isLive])
  const { currency = null, utc_days_before: utcBefore = null } = Option.getOrUndefined(AsyncResult.value(result)) ?? {}
  const names = (all: ReadonlyArray<Grouping>) => all.map((each) => [each, t.groups[each]] as const)
  return (
    <>
      <Heading name={common.pages.usage}>
        {AsyncResult.isSuccess(result) && <span class="hint">{t.asOf(timeOfDay(result.timestamp))}</span>}
        {!isFailed && !session.inMemory && (
          <a
            class="button"
            href={at(`/admin/usage.csv?${new URLSearchParams({ ...query, limit: "100000" })}`)}
            download="usage.csv"
          >
            {t.csv}
          </a>
        )}
        <a class="button" href={linkTo("usage", "sessions")}>{t.sessions}</a>
        <button type="button" onClick={reload}>{t.reload}</button>
      </Heading>
      <div class="row">
        <Select
          label={t.range}
          value={isCustom ? "custom" : range}
          options={[
            ...(Object.keys(ranges) as ReadonlyArray<Range>).map((each) => [each, t.ranges[each]] as const),
            ...isCustom
              ? [["custom", `${date(from)} ${minuteOfDay(from)} – ${date(to)} ${minuteOfDay(to)}`] as const]
              : []
          ]}
          onValue={(value: string) =>
            value === "custom" ? undefined : choose({ range: value === "day" ? "" : value, from: "", to: "" })}
        />
        <Select
          label={t.groupBy}
          value={by}
          options={names([...shownDimensions, "hour", "day"])}
          onValue={(value: string) => choose({ by: value })}
        />
        <Select
          label={t.thenBy}
          value={second ?? ""}
          options={[["", "–"], ...names(shownDimensions.filter((name) => name !== by))]}
          onValue={(value: string) => choose({ second: value })}
        />
        <Select
          label={t.bars}
          value={measure}
          options={measureNames.filter((name) => name !== "cost" || name === measure || currency !== null).map((
            each
          ): readonly [MeasureName, string] => [
            each,
            t.measures[each]
          ])}
          onValue={(value) => choose({ measure: value === "requests" ? "" : value })}
        />
        {measure !== "cache" && (
          <Select
            label={t.splitBy}
            value={split ?? "none"}
            options={[["none", "–"], ...names(shownDimensions)]}
            onValue={(value: string) => choose({ split: value })}
          />
        )}
      </div>
      <div class="actions">
        <Chips only={only} />
        <span class="hint">
          {t.zone(zoneName())}
          {utcBefore === null || Date.parse(utcBefore) <= from ? "" : ` ${t.utcDays(date(Date.parse(utcBefore)))}`}{" "}
          {t.drag}
        </span>
      </div>
      <Loaded atom={series} failed={() => <span />}>
        {(reply) => reply.rows.length > 0 ? <UsageChart choice={choice} reply={reply} /> : null}
      </Loaded>
      <Loaded
        atom={usage}
        failed={(failure) => isMissing(failure) ? <p class="notice">{t.unavailable}</p> : undefined}
      >
        {(reply) => (
          <>
            {!reply.store.persistent && (
              <p class="notice warn">{t.notKept}{reply.store.detail ? ` ${sentence(reply.store.detail)}` : ""}</p>
            )}
            <UsageTable choice={choice} reply={reply} />
            <Errors choice={choice} reply={reply} />
            {measure === "cache" && <Misses choice={choice} />}
          </>
        )}
      </Loaded>
    </>
  )
}
