/**
 * Usage: requests, tokens and costs by key, model, account, style, upstream, target, app, label or time.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useEffect, useMemo } from "preact/hooks"
import { Chip } from "../../parts/Card.tsx"
import { Select } from "../../parts/Form.tsx"
import { date, dayIn, minuteOfDay, number, percent, sentence, timeOfDay, zoneName } from "../../parts/format.ts"
import { Heading, Section } from "../../parts/Heading.tsx"
import { useLayout } from "../../parts/layout.ts"
import { Loaded, Loading } from "../../parts/Loaded.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import { at } from "../../state/client.ts"
import { isMissing } from "../../state/failure.ts"
import { readOf } from "../../state/reads.ts"
import { registry, useAtom, useValue } from "../../state/registry.ts"
import { countsAtom } from "../../state/requests.ts"
import { linkTo, type Query } from "../../state/route.ts"
import { sessionAtom } from "../../state/session.ts"
import { useTexts } from "../../state/texts.ts"
import { isoHour } from "../nouns/hours.ts"
import { sumBefore, timeBefore, valuesBefore } from "./before.ts"
import { Chart } from "./Chart.tsx"
import { type Choice, pick, queryOf, type Range, ranges, rereadAfter, useChoice } from "./choice.ts"
import { Headline } from "./Headline.tsx"
import { MissReasons } from "./MissReasons.tsx"
import {
  type CachePart,
  cacheStackOf,
  type Dimension,
  errorsOf,
  type Grouping,
  isLine,
  linesOf,
  type MeasureName,
  measureNames,
  stackOf,
  type Usage as UsageReply,
  valueOf
} from "./rows.ts"
import { recordFilter, UsageTable, useNames } from "./UsageTable.tsx"

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
  if (["target", "account", "label"].some((name) => choice.only[name] !== undefined)) return null
  return (
    <Loaded atom={counts} failed={() => <span />}>
      {(counted) => <MissReasons counted={counted} query={query} />}
    </Loaded>
  )
}

/** The name of the range of a choice. */
const rangeOf = ({ isCustom, range }: Choice) => isCustom ? "custom" as const : range

/** The headline of a choice; its place while the reply of the table is read. */
const Summary = ({ before, choice, table }: {
  readonly before: UsageReply | undefined
  readonly choice: Choice
  readonly table: UsageReply | undefined
}) => {
  const nameOf = useNames()
  if (table === undefined) return <p class="headline">{"\u00a0"}</p>
  const { measure, unit } = choice
  const [first] = table.by
  return (
    <Headline
      reply={table}
      measure={measure}
      range={rangeOf(choice)}
      before={before === undefined
        ? undefined
        : isLine(measure)
        ? before.totals[measure] ?? undefined
        : sumBefore(before, unit, measure, choice, Date.now(), dayIn)}
      nameOf={first === undefined || first === "hour" || first === "day" ? undefined : (row) => nameOf(row, first)}
    />
  )
}

const UsageChart = ({ before, choice, reply, table }: {
  /** The reply of the time before; `undefined` until it is read. */
  readonly before: UsageReply | undefined
  readonly choice: Choice
  readonly reply: UsageReply
  /** The reply of the table: it has the percentiles of the whole time. */
  readonly table: UsageReply | undefined
}) => {
  const t = useTexts().usage
  const nameOf = useNames()
  // Of the reply, which may still be one of an earlier choice.
  const [time, split] = reply.by as readonly ["hour" | "day", Dimension | undefined]
  const { measure } = choice
  const stack = useMemo(() => {
    if (measure === "cache") return cacheStackOf(reply, time, dayIn)
    if (!isLine(measure)) return stackOf(reply, time, split, measure, dayIn)
    const of = (value: string) =>
      split === undefined
        ? table?.totals
        : table?.by.length === 1 && table.by[0] === split
        ? table.rows.find((row) => valueOf(row, split) === value)
        : undefined
    return linesOf(reply, time, split, measure, (value) => of(value)?.[measure] ?? undefined, dayIn)
  }, [reply, table, time, split, measure])
  const values = useMemo(
    () => before === undefined ? undefined : valuesBefore(before, time, measure, stack.times.length, dayIn),
    [before, time, measure, stack]
  )
  // Lines of several parts are compared with each other.
  const isCompared = values !== undefined && values.length > 0 && !(isLine(measure) && split !== undefined)
  return (
    <Chart
      stack={stack}
      before={isCompared ? { name: t.before[rangeOf(choice)], values } : undefined}
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
      onRange={(from, to) => pick({ from: isoHour(from), to: isoHour(to) })}
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
          onClick={() => pick({ [name]: "" })}
        >
          {t.groups[name as Dimension]}: {value} <span aria-hidden="true">×</span>
        </Chip>
      ))}
    </>
  )
}

export const Usage = () => {
  const { common, usage: t } = useTexts()
  const choice = useChoice()
  const { by, from, isCustom, measure, only, order, range, shownDimensions, second, split, to, unit } = choice
  const query = useMemo(() => ({ ...queryOf(choice, [by, second], by === "hour" ? 10_000 : 1_000), ...order }), [
    choice
  ])
  const usage = useMemo(() => readOf("admin-usage", "query", { query }), [query])
  const series = useMemo(
    () => readOf("admin-usage", "query", { query: queryOf(choice, [unit, split], 10_000) }),
    [choice]
  )
  const earlier = useMemo(
    () => readOf("admin-usage", "query", { query: queryOf({ ...choice, ...timeBefore(choice) }, [unit], 10_000) }),
    [choice]
  )
  const beforeReply = useValue(earlier)
  const result = useAtom(usage)
  const table = Option.getOrUndefined(AsyncResult.value(result))
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
  const { currency = null, utc_days_before: utcBefore = null } = table ?? {}
  const names = (all: ReadonlyArray<Grouping>) => all.map((each) => [each, t.groups[each]] as const)
  // Folded on a phone, where the table is to be in sight.
  const isCards = useLayout() === "cards"
  const thenBy = (
    <Select
      label={t.thenBy}
      value={second ?? ""}
      options={[["", "–"], ...names(shownDimensions.filter((name) => name !== by))]}
      onValue={(value: string) => pick({ second: value })}
    />
  )
  const splitBy = measure !== "cache" && (
    <Select
      label={t.splitBy}
      value={split ?? "none"}
      options={[["none", "–"], ...names(shownDimensions)]}
      onValue={(value: string) => pick({ split: value })}
    />
  )
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
        <button type="button" onClick={reload}>{t.reload}</button>
      </Heading>
      {!isFailed && <Summary choice={choice} table={table} before={beforeReply} />}
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
            value === "custom" ? undefined : pick({ range: value === "day" ? "" : value, from: "", to: "" })}
        />
        <Select
          label={t.groupBy}
          value={by}
          options={names([...shownDimensions, "hour", "day"])}
          onValue={(value: string) => pick({ by: value })}
        />
        {!isCards && thenBy}
        <Select
          label={t.bars}
          value={measure}
          options={measureNames.filter((name) => name !== "cost" || name === measure || currency !== null).map((
            each
          ): readonly [MeasureName, string] => [
            each,
            t.measures[each]
          ])}
          onValue={(value) => pick({ measure: value, sort: "", order: "" })}
        />
        {!isCards && splitBy}
      </div>
      {isCards && (
        <details>
          <summary>{t.finer}</summary>
          <div class="row inner">
            {thenBy}
            {splitBy}
          </div>
        </details>
      )}
      <div class="actions">
        <Chips only={only} />
        <span class="hint">
          {!isCards && t.zone(zoneName())}
          {utcBefore === null || Date.parse(utcBefore) <= from ? "" : ` ${t.utcDays(date(Date.parse(utcBefore)))}`}{" "}
          {!isCards && t.drag}
        </span>
      </div>
      <Loaded atom={series} failed={() => <span />}>
        {(reply) => {
          if (reply.rows.length === 0) return null
          // Lines have their order and colours by the table's figures of the whole time.
          if (isLine(measure) && table === undefined && !isFailed) return <Loading />
          return <UsageChart before={beforeReply} choice={choice} reply={reply} table={table} />
        }}
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
            <div class="usage">
              <UsageTable choice={choice} reply={reply} />
            </div>
            <Errors choice={choice} reply={reply} />
            {measure === "cache" && <Misses choice={choice} />}
          </>
        )}
      </Loaded>
    </>
  )
}
