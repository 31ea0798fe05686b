/**
 * The hours of a day as a strip: the requests of each, and how long 95 of 100 took.
 */
import { useState } from "preact/hooks"
import { compact, duration, minuteOfDay, number, shortWhen } from "../../parts/format.ts"
import { moveInStrip } from "../../parts/strip.ts"
import { linkTo, type Query } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { Bar, Levels, Times } from "../overview/bars.tsx"
import { latencyScale, mostOf, numbered } from "../overview/hour.ts"
import { hourLength, type hoursOf } from "./hours.ts"

/** Every so many hours have a label. */
const labelStep = 6

/** `requests` filters the records that an hour leads to. */
export const Hours = ({ hours, requests }: {
  readonly hours: ReturnType<typeof hoursOf>
  readonly requests: Query
}) => {
  const { nouns: t, usage: u } = useTexts()
  const [shown, setShown] = useState<number>()
  const most = mostOf(hours.map(({ all }) => all))
  const latencies = hours.map(({ p95 }) => p95)
  const scale = latencyScale(latencies)
  const numbers = scale === undefined ? [] : numbered(latencies, scale.top, 1)
  const stop = hours.some(({ at }) => at === shown) ? shown : hours.at(-1)?.at
  const textOf = ({ all, at, failed, p95 }: (typeof hours)[number]): string =>
    t.hour(shortWhen(at), number(all), number(failed), p95 === null ? undefined : duration(p95))
  const found = hours.find(({ at }) => at === shown)
  return (
    <div class="hour of-day">
      <div class="scales" aria-hidden="true">
        <p>
          {t.requests} <span>{compact(most)}</span>
        </p>
        <p>{u.percentiles.duration_p95_ms}</p>
      </div>
      <div
        class="minutes"
        role="group"
        aria-label={t.byHour}
        onKeyDown={moveInStrip}
        onMouseLeave={() => setShown(undefined)}
        onFocusOut={() => setShown(undefined)}
      >
        <Levels scale={scale} />
        {hours.map((hour, index) => (
          <a
            key={hour.at}
            class={`minute ${hour.at === shown ? "shown" : ""}`}
            href={linkTo("requests", undefined, {
              ...requests,
              from: new Date(hour.at).toISOString(),
              to: new Date(hour.at + hourLength).toISOString()
            })}
            tabIndex={hour.at === stop ? 0 : -1}
            aria-label={textOf(hour)}
            onMouseEnter={() => setShown(hour.at)}
            onFocus={() => setShown(hour.at)}
          >
            <span class="stacked">
              <Bar kind="failed" value={hour.failed} of={most} />
              <Bar kind="ok" value={hour.all - hour.failed} of={most} />
            </span>
            <span class="latency">
              <Times p50={null} p95={hour.p95} scale={scale} hasNumber={numbers.includes(index)} />
            </span>
          </a>
        ))}
      </div>
      <div class="ticks" aria-hidden="true">
        {hours.map(({ at }, index) =>
          index % labelStep === 0 ? <span key={at} style={{ gridColumn: index + 1 }}>{minuteOfDay(at)}</span> : null
        )}
      </div>
      <p class={`readout ${found === undefined ? "hint" : ""}`}>{found === undefined ? t.hourHint : textOf(found)}</p>
    </div>
  )
}
