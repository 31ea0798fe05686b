/**
 * The last 60 minutes: the figures of the hour, and a strip with a column for each minute.
 */
import { useRef, useState } from "preact/hooks"
import { Figure } from "../../parts/Card.tsx"
import { compact, duration, minuteOfDay, number, percent, when, zoneName } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Spark } from "../../parts/Spark.tsx"
import { Count, Money } from "../../parts/Values.tsx"
import { useReread } from "../../state/live.ts"
import { useTexts } from "../../state/preferences.ts"
import { readOf } from "../../state/reads.ts"
import { useValue } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { heightOf, type Hour, isUnknown, latencyScale, type Minute, mostOf, totalsOf } from "./hour.ts"
import { moveInStrip } from "./strip.ts"
import { readTodayEvery, useToday } from "./today.ts"

export const hourAtom = readOf("admin-minutes", "list", { reactivityKeys: ["minutes"] })

const minuteMillis = 60_000

/** Everything of the last hour, and of the running minute. */
export const lastHour = { range: "1h" } as const

const time = (milliseconds: number | null): string => milliseconds === null ? "–" : duration(milliseconds)

/** The share of failures that is a warning, and the share that is trouble. */
const failureSteps = [0.05, 0.2] as const

/** The cost of today, or its tokens where there are no prices. */
const Today = ({ minutes }: Pick<Hour, "minutes">) => {
  const { common, overview: t } = useTexts()
  const usage = useToday("key")
  useReread(usage, readTodayEvery)
  const today = useValue(usage)
  const currency = today?.currency
  const hasCost = currency !== null && currency !== undefined
  return (
    <Figure
      name={hasCost ? t.costToday : t.tokensToday}
      link={linkTo("usage", undefined, {
        ...today === undefined ? {} : { from: today.from, to: today.to },
        measure: hasCost ? "cost" : "tokens"
      })}
      of={today === undefined
        ? "–"
        : today.totals.unpriced_requests > 0 && hasCost
        ? common.unpriced(today.totals.unpriced_requests)
        : t.requestsOf(today.totals.requests)}
      spark={<Spark bars={minutes.map(({ cost, tokens }) => ({ all: hasCost ? Number(cost) : tokens }))} />}
    >
      {today === undefined
        ? "–"
        : hasCost
        ? <Money amount={today.totals.cost} currency={currency} />
        : <Count value={today.totals.total_tokens} />}
    </Figure>
  )
}

const Figures = ({ hour }: { readonly hour: Hour }) => {
  const t = useTexts().overview
  const { minutes } = hour
  const { failed, ok, refused, requestRate, requests } = totalsOf(hour)
  const share = failed / Math.max(1, ok + failed)
  const { heightAt } = latencyScale(mostOf(minutes.map(({ first_event_p95_ms: p95 }) => p95 ?? 0)))
  return (
    <div class="figures">
      <Figure
        name={t.requestRate}
        link={linkTo("requests", undefined, lastHour)}
        of={t.inHour(requests)}
        spark={<Spark bars={minutes.map((each) => ({ all: each.requests }))} />}
      >
        {number(requestRate)}
      </Figure>
      <Figure
        name={t.succeeded}
        link={linkTo("requests", undefined, { ...lastHour, outcome: failed === 0 ? "ok" : "failed" })}
        of={refused === 0 ? t.failedInHour(failed) : `${t.failedInHour(failed)} · ${t.refusedInHour(refused)}`}
        tone={share >= failureSteps[1] ? "bad" : share >= failureSteps[0] ? "warn" : ""}
        spark={
          <Spark
            bars={minutes.map((each) => {
              const bad = each.failed - each.refused
              return each.ok + bad === 0 ? { all: 0 } : { all: 1, failed: bad / (each.ok + bad) }
            })}
          />
        }
      >
        {percent(ok, ok + failed)}
      </Figure>
      <Figure
        name={t.firstEvents}
        link={linkTo("requests", undefined, { ...lastHour, sort: "first_event_ms", order: "desc" })}
        of={t.onLogScale}
        spark={
          <Spark
            most={100}
            bars={minutes.map(({ first_event_p95_ms: p95 }) => ({ all: p95 === null ? 0 : heightAt(p95) }))}
          />
        }
      >
        {time(hour.first_event_p50_ms)} <small>· {time(hour.first_event_p95_ms)}</small>
      </Figure>
      <Today minutes={minutes} />
    </div>
  )
}

/** The values of a minute, or how to see them. */
const Readout = ({ minute, since }: { readonly minute: Minute | undefined; readonly since: number }) => {
  const t = useTexts().overview
  if (minute === undefined) return <p class="readout hint">{t.minuteHint}</p>
  const { at, failed, left, ok, requests, tokens } = minute
  if (isUnknown(minute, since)) return <p class="readout hint">{t.unknownMinute(when(since))}</p>
  return (
    <p class="readout">
      <strong>{`${minuteOfDay(at)}–${minuteOfDay(at + minuteMillis)}`}</strong>
      <span>{t.requestsOf(requests)}</span>
      <span class="badge good">{t.okOf(ok)}</span>
      <span class={failed > 0 ? "badge bad" : "badge"}>{t.failedOf(failed)}</span>
      {left > 0 && <span class="badge muted">{t.leftOf(left)}</span>}
      <span>{t.firstEventOf(time(minute.first_event_p50_ms), time(minute.first_event_p95_ms))}</span>
      <span>{t.tokensOf(tokens)}</span>
    </p>
  )
}

const Bar = ({ kind, of, value }: { readonly kind: string; readonly value: number; readonly of: number }) =>
  value === 0 ? null : <span class={kind} style={{ height: `${heightOf(value, of)}%` }} />

/** Latencies of a minute: from p50 to p95 a band, and p50 a line. */
const Times = ({ heightAt, minute: { first_event_p50_ms: p50, first_event_p95_ms: p95 } }: {
  readonly heightAt: (ms: number) => number
  readonly minute: Minute
}) => {
  if (p50 === null || p95 === null) return null
  const [from, to] = [heightAt(p50), heightAt(p95)]
  return <span class="p95 p50" style={{ bottom: `${from}%`, height: `${to - from}%` }} />
}

/** Every tenth minute has a label, and the last ones have no room for one. */
const labelStep = 10
const unlabelled = 6

const Strip = ({ minutes, onShow, shown, since }: {
  readonly minutes: ReadonlyArray<Minute>
  readonly since: number
  readonly shown: number | undefined
  readonly onShow: (at: number | undefined) => void
}) => {
  const t = useTexts().overview
  const most = mostOf(minutes.map(({ requests }) => requests))
  const latencies = latencyScale(mostOf(minutes.map(({ first_event_p95_ms: p95 }) => p95 ?? 0)))
  const mostTokens = mostOf(minutes.map(({ tokens }) => tokens))
  const stop = minutes.some(({ at }) => at === shown) ? shown : minutes.at(-1)?.at
  return (
    <div class="hour live">
      <div class="scales" aria-hidden="true">
        <p>
          {t.requests} <span>{compact(most)}</span>
        </p>
        <p>
          {t.firstEvent}
        </p>
        <p>
          {t.tokens} <span>{compact(mostTokens)}</span>
        </p>
      </div>
      <div
        class="minutes"
        role="group"
        aria-label={t.minutes}
        onKeyDown={moveInStrip}
        onMouseLeave={() => onShow(undefined)}
        onFocusOut={() => onShow(undefined)}
      >
        <span class="levels" aria-hidden="true">
          {latencies.lines.map(({ height, ms }) => <span key={ms} style={{ bottom: `${height}%` }}>{duration(ms)}
          </span>)}
        </span>
        {minutes.map((minute) => {
          const isEmpty = isUnknown(minute, since)
          const { at, failed, first_event_p50_ms: p50, first_event_p95_ms: p95, left, ok, requests, tokens } = minute
          return (
            <a
              key={at}
              class={`minute ${at === shown ? "shown" : ""} ${isEmpty ? "unknown" : ""}`}
              href={linkTo("requests", undefined, {
                from: new Date(at).toISOString(),
                to: new Date(at + minuteMillis).toISOString()
              })}
              tabIndex={at === stop ? 0 : -1}
              aria-label={isEmpty
                ? t.unknownMinute(when(since))
                : t.minute(minuteOfDay(at), requests, failed, left, time(p50), time(p95), tokens)}
              onMouseEnter={() => onShow(at)}
              onFocus={() => onShow(at)}
            >
              <span class="stacked">
                <Bar kind="failed" value={failed} of={most} />
                <Bar kind="left" value={left} of={most} />
                <Bar kind="ok" value={ok} of={most} />
              </span>
              <span class="times">
                <Times minute={minute} heightAt={latencies.heightAt} />
              </span>
              <span class="amount">
                <Bar kind="tokens" value={tokens} of={mostTokens} />
              </span>
            </a>
          )
        })}
      </div>
      <div class="ticks" aria-hidden="true">
        {minutes.map(({ at }, index) =>
          Math.floor(at / minuteMillis) % labelStep === 0 && index < minutes.length - unlabelled
            ? <span key={at} style={{ gridColumn: index + 1 }}>{minuteOfDay(at)}</span>
            : null
        )}
      </div>
    </div>
  )
}

export const Minutes = () => {
  const t = useTexts().overview
  const [shown, setShown] = useState<number>()
  const held = useRef<ReadonlyArray<Minute>>([])
  useReread(hourAtom)
  return (
    <Section
      name={t.lastHour}
      actions={
        <p class="legend hint" aria-hidden="true">
          <span class="ok">{t.ok}</span>
          <span class="left">{t.left}</span>
          <span class="failed">{t.failed}</span>
          <span class="p50">p50</span>
          <span class="p95">p95</span>
          <span class="zone">{zoneName()}</span>
        </p>
      }
    >
      <Loaded atom={hourAtom}>
        {(hour) => {
          // A new minute moves all columns: not while somebody points at one.
          const now = new Map(hour.minutes.map((minute) => [minute.at, minute]))
          held.current = shown === undefined || held.current.length === 0
            ? hour.minutes
            : held.current.map((minute) => now.get(minute.at) ?? minute)
          return (
            <div class="card hour-card">
              <Figures hour={hour} />
              <Readout minute={held.current.find(({ at }) => at === shown)} since={hour.since} />
              <Strip minutes={held.current} since={hour.since} shown={shown} onShow={setShown} />
            </div>
          )
        }}
      </Loaded>
    </Section>
  )
}
