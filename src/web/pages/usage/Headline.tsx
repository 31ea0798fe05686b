/**
 * What the page of usage says first: how much it was, how that has changed, who had most of it, and what caches had.
 */
import { compact, duration, money, number, percent } from "../../parts/format.ts"
import { useTexts } from "../../state/texts.ts"
import { isLine, type MeasureName, measureOf, type Usage } from "./rows.ts"

/** More than this is said in times. */
const mostPercent = 1_000

export const Headline = ({ before, measure, nameOf, range, reply: { currency, rows, totals } }: {
  /** The reply of the table. */
  readonly reply: Usage
  readonly measure: MeasureName
  readonly range: "day" | "week" | "month" | "quarter" | "year" | "custom"
  /** The value of the time before; `undefined` where it is not known. */
  readonly before: number | undefined
  /** The name of a row; `undefined` for rows of times. */
  readonly nameOf: ((row: Usage["rows"][number]) => string) | undefined
}) => {
  const t = useTexts().usage
  const now = isLine(measure) ? totals[measure] : measureOf(totals, measure)
  if (now === null || totals.requests === 0) return null
  const amount = measure === "cost"
    ? money(totals.cost, currency)
    : isLine(measure)
    ? `${t.measures[measure]} ${measure.endsWith("_ms") ? duration(now) : number(now)}`
    : t.amounts[measure](measure === "tokens" || measure === "cache" ? compact(now) : number(now))
  const share = before === undefined || before <= 0 ? undefined : ((now - before) / before) * 100
  const change = share === undefined
    ? undefined
    : share > mostPercent
    ? t.timesMore(number(Math.round(share / 100 + 1)), t.before[range])
    : t.change(number(Math.abs(Math.round(share))), Math.round(share), t.before[range])
  const top = isLine(measure) || nameOf === undefined
    ? undefined
    : rows.reduce<Usage["rows"][number] | undefined>(
      (most, row) => most === undefined || measureOf(row, measure) > measureOf(most, measure) ? row : most,
      undefined
    )
  const sentences = [
    t.sentence(t.during[range], change),
    ...top === undefined || nameOf === undefined || isLine(measure) || rows.length < 2 || now === 0
      ? []
      : [t.topShare(percent(measureOf(top, measure), now), nameOf(top))],
    ...totals.cached_tokens === 0 ? [] : [t.cachedShare(percent(totals.cached_tokens, totals.prompt_tokens))]
  ]
  return (
    <p class="headline">
      <strong>{amount}</strong> {sentences.join(" ")}
    </p>
  )
}
