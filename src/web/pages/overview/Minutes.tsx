/**
 * The last 60 minutes: the figures of the hour, and a strip with a column for each minute.
 */
import type { ComponentChildren } from "preact"
import { useRef, useState } from "preact/hooks"
import { compact, elapsed, minuteOfDay, number, percent, zoneName } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Admin } from "../../state/client.ts"
import { useReread } from "../../state/live.ts"
import { useTexts } from "../../state/preferences.ts"
import { linkTo } from "../../state/route.ts"
import { heightOf, type Hour, type Minute, mostOf, totalsOf } from "./hour.ts"
import { moveInStrip } from "./strip.ts"

export const hourAtom = Admin.query("admin-minutes", "list", { reactivityKeys: ["minutes"] })

const minuteMillis = 60_000

/** Everything of the last hour, and of the running minute. */
export const lastHour = { range: "1h" } as const

const Figure = ({ children, link, name, of, tone = "" }: {
  readonly name: string
  readonly link: string
  readonly children: ComponentChildren
  readonly of: string
  readonly tone?: string
}) => (
  <a class={`figure ${tone}`} href={link}>
    <span class="name">{name}</span>
    <strong>{children}</strong>
    <span class="of">{of}</span>
  </a>
)

const time = (milliseconds: number | null): string => milliseconds === null ? "–" : elapsed(milliseconds)

/** The share of failures that is a warning, and the share that is trouble. */
const failureSteps = [0.05, 0.2] as const

const Figures = ({ hour }: { readonly hour: Hour }) => {
  const t = useTexts().overview
  const { failed, ok, requestRate, requests, tokenRate, tokens } = totalsOf(hour.minutes)
  const share = failed / Math.max(1, ok + failed)
  return (
    <div class="figures four">
      <Figure name={t.requestRate} link={linkTo("requests", undefined, lastHour)} of={t.inHour(requests)}>
        {number(requestRate)}
      </Figure>
      <Figure
        name={t.succeeded}
        link={linkTo("requests", undefined, { ...lastHour, outcome: failed === 0 ? "ok" : "failed" })}
        of={t.failedInHour(failed)}
        tone={share >= failureSteps[1] ? "bad" : share >= failureSteps[0] ? "warn" : ""}
      >
        {percent(ok, ok + failed)}
      </Figure>
      <Figure
        name={t.median}
        link={linkTo("requests", undefined, lastHour)}
        of={t.p95(time(hour.first_event_p95_ms))}
      >
        {time(hour.first_event_p50_ms)}
      </Figure>
      <Figure name={t.tokenRate} link={linkTo("usage")} of={t.tokensInHour(number(tokens))}>
        {compact(tokenRate)}
      </Figure>
    </div>
  )
}

/** The values of a minute, or how to see them. */
const Readout = ({ minute }: { readonly minute: Minute | undefined }) => {
  const t = useTexts().overview
  if (minute === undefined) return <p class="readout hint">{t.minuteHint}</p>
  const { at, failed, left, ok, requests, tokens } = minute
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

/** Every tenth minute has a label. */
const labelStep = 10

const Strip = ({ minutes, onShow, shown }: {
  readonly minutes: ReadonlyArray<Minute>
  readonly shown: number | undefined
  readonly onShow: (at: number | undefined) => void
}) => {
  const t = useTexts().overview
  const most = mostOf(minutes.map(({ requests }) => requests))
  const slowest = mostOf(minutes.map(({ first_event_p95_ms: p95 }) => p95 ?? 0))
  const mostTokens = mostOf(minutes.map(({ tokens }) => tokens))
  const stop = minutes.some(({ at }) => at === shown) ? shown : minutes.at(-1)?.at
  return (
    <div class="hour live">
      <div class="scales" aria-hidden="true">
        <p>
          {t.requests} <span>{compact(most)}</span>
        </p>
        <p>
          {t.firstEvent} <span>{elapsed(slowest)}</span>
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
        {minutes.map((minute) => {
          const { at, failed, first_event_p50_ms: p50, first_event_p95_ms: p95, left, ok, requests, tokens } = minute
          return (
            <a
              key={at}
              class={`minute ${at === shown ? "shown" : ""}`}
              href={linkTo("requests", undefined, {
                from: new Date(at).toISOString(),
                to: new Date(at + minuteMillis).toISOString()
              })}
              tabIndex={at === stop ? 0 : -1}
              aria-label={t.minute(
                minuteOfDay(at),
                requests,
                failed,
                left,
                time(p50),
                time(p95),
                tokens
              )}
              onMouseEnter={() => onShow(at)}
              onFocus={() => onShow(at)}
            >
              <span class="stacked">
                <Bar kind="failed" value={failed} of={most} />
                <Bar kind="left" value={left} of={most} />
                <Bar kind="ok" value={ok} of={most} />
              </span>
              <span class="times">
                <Bar kind="p95" value={p95 ?? 0} of={slowest} />
                <Bar kind="p50" value={p50 ?? 0} of={slowest} />
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
          Math.floor(at / minuteMillis) % labelStep === 0 && index < minutes.length - 2
            ? <span key={at} style={{ gridColumn: index + 1 }}>{minuteOfDay(at)}</span>
            : null
        )}
        <span class="zone">{zoneName()}</span>
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
              <Readout minute={held.current.find(({ at }) => at === shown)} />
              <Strip minutes={held.current} shown={shown} onShow={setShown} />
            </div>
          )
        }}
      </Loaded>
    </Section>
  )
}
