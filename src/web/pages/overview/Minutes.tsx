/**
 * The last 60 minutes: a strip with a column for each minute.
 */
import { useRef, useState } from "preact/hooks"
import { compact, duration, minuteOfDay, percent, when, zoneName } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { moveInStrip } from "../../parts/strip.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { Bar, Levels, Times } from "./bars.tsx"
import { failedShare, isUnknown, latencyScale, type Minute, mostOf, numbered } from "./hour.ts"
import { hourAtom } from "./reads.ts"

const minuteMillis = 60_000

const time = (milliseconds: number | null): string => milliseconds === null ? "–" : duration(milliseconds)

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

/** Every tenth minute has a label, and the last ones have no room for one. */
const labelStep = 10
const unlabelled = 6

/** The share that failed is drawn up to the largest one, or this one. */
const leastShare = 0.1

const Strip = ({ minutes, onShow, shown, since }: {
  readonly minutes: ReadonlyArray<Minute>
  readonly since: number
  readonly shown: number | undefined
  readonly onShow: (at: number | undefined) => void
}) => {
  const t = useTexts().overview
  const most = mostOf(minutes.map(({ requests }) => requests))
  const latencies = minutes.map(({ first_event_p95_ms }) => first_event_p95_ms)
  const scale = latencyScale(latencies)
  const numbers = scale === undefined ? [] : numbered(latencies, scale.top)
  const mostTokens = mostOf(minutes.map(({ tokens }) => tokens))
  const mostShare = Math.max(leastShare, mostOf(minutes.map(failedShare)))
  const stop = minutes.some(({ at }) => at === shown) ? shown : minutes.at(-1)?.at
  return (
    <div class="hour live">
      <div class="scales" aria-hidden="true">
        <p>
          {t.requests} <span>{compact(most)}</span>
        </p>
        <p>
          {t.failed} <span>{percent(mostShare, 1)}</span>
        </p>
        <p>{t.firstEvent}</p>
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
        <Levels scale={scale} />
        {minutes.map((minute, index) => {
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
              <span class="share">
                <Bar kind="failed" value={failedShare(minute)} of={mostShare} />
              </span>
              <span class="latency">
                <Times p50={p50} p95={p95} scale={scale} hasNumber={numbers.includes(index)} />
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
              <Readout minute={held.current.find(({ at }) => at === shown)} since={hour.since} />
              <Strip minutes={held.current} since={hour.since} shown={shown} onShow={setShown} />
            </div>
          )
        }}
      </Loaded>
    </Section>
  )
}
