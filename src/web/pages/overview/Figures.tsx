/**
 * The four figures of the last hour, each with its change to the hour before.
 */
import { Figure } from "../../parts/Card.tsx"
import { change, duration, number, percent, points } from "../../parts/format.ts"
import { Loaded } from "../../parts/Loaded.tsx"
import { Count, Money } from "../../parts/Values.tsx"
import { useReread } from "../../state/live.ts"
import { useValue } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { changeOf, type Hour, totalsOf } from "./hour.ts"
import { hourAtom, lastHour } from "./reads.ts"
import { readTodayEvery, useToday } from "./today.ts"

const time = (milliseconds: number | null): string => milliseconds === null ? "–" : duration(milliseconds)

/** The share of failures that is a warning, and the share that is trouble. */
const failureSteps = [0.05, 0.2] as const

/** A change to the hour before in a few characters; nothing without an hour to compare. */
const Change = ({ text }: { readonly text: string | undefined }) => {
  const t = useTexts().overview
  return text === undefined ? null : (
    <span class="change" title={`${text} ${t.toHourBefore}`}>
      {text} <span class="hint than">{t.toHourBefore}</span>
    </span>
  )
}

const changeText = (share: number | undefined): string | undefined => share === undefined ? undefined : change(share)

/** The cost of today, or its tokens where there are no prices. */
const Today = ({ hour }: { readonly hour: Hour }) => {
  const { common, overview: t } = useTexts()
  const usage = useToday("key")
  useReread(usage, readTodayEvery)
  const today = useValue(usage)
  const currency = today?.currency
  const hasCost = currency !== null && currency !== undefined
  const totals = totalsOf(hour)
  const changed = hasCost
    ? changeOf(hour, totals.cost, Number(hour.before.cost))
    : changeOf(hour, totals.tokens, hour.before.tokens)
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
        : (
          <>
            {t.requestsOf(today.totals.requests)} <Change text={changeText(changed)} />
          </>
        )}
    >
      {today === undefined
        ? "–"
        : hasCost
        ? <Money amount={today.totals.cost} currency={currency} />
        : <Count value={today.totals.total_tokens} />}
    </Figure>
  )
}

const OfHour = ({ hour }: { readonly hour: Hour }) => {
  const t = useTexts().overview
  const { before } = hour
  const { failed, ok, refused, requestRate, requests } = totalsOf(hour)
  const failedBefore = before.failed - before.refused
  const share = failed / Math.max(1, ok + failed)
  const shareBefore = failedBefore / Math.max(1, before.ok + failedBefore)
  const isCompared = changeOf(hour, ok + failed, before.ok + failedBefore) !== undefined && ok + failed > 0
  const [p95, p95Before] = [hour.first_event_p95_ms, before.first_event_p95_ms]
  return (
    <div class="figures">
      <Figure
        name={t.requestRate}
        link={linkTo("requests", undefined, lastHour)}
        of={
          <>
            {t.inHour(requests)} <Change text={changeText(changeOf(hour, requests, before.requests))} />
          </>
        }
      >
        {number(requestRate)}
      </Figure>
      <Figure
        name={t.succeeded}
        link={linkTo("requests", undefined, { ...lastHour, outcome: failed === 0 ? "ok" : "failed" })}
        of={
          <>
            {refused === 0 ? t.failedInHour(failed) : `${t.failedInHour(failed)} · ${t.refusedInHour(refused)}`}{" "}
            <Change text={isCompared ? t.points(points(shareBefore - share)) : undefined} />
          </>
        }
        tone={share >= failureSteps[1] ? "bad" : share >= failureSteps[0] ? "warn" : ""}
      >
        {percent(ok, ok + failed)}
      </Figure>
      <Figure
        name={t.firstEvents}
        link={linkTo("requests", undefined, { ...lastHour, sort: "first_event_ms", order: "desc" })}
        of={
          <>
            {t.ofP95}{" "}
            <Change
              text={p95 === null || p95Before === null ? undefined : changeText(changeOf(hour, p95, p95Before))}
            />
          </>
        }
      >
        {time(hour.first_event_p50_ms)} <small>· {time(p95)}</small>
      </Figure>
      <Today hour={hour} />
    </div>
  )
}

export const Figures = () => {
  const t = useTexts().overview
  useReread(hourAtom)
  return (
    <section aria-label={t.figures} class="card">
      <Loaded atom={hourAtom}>{(hour) => <OfHour hour={hour} />}</Loaded>
    </section>
  )
}
