/**
 * The time before a range of usage, of the same length, and what has changed since.
 */
import { dayStart } from "../../parts/format.ts"
import { type BarName, isLine, linesOf, type MeasureName, type Series, stackOf } from "./rows.ts"

interface Times {
  readonly from: number
  readonly to: number
}

/** The time before, as the API takes it. */
export const timeBefore = ({ from, to }: Times): Times => ({ from: 2 * from - to, to: from })

/** The values of the time before in the places of the bars of a range; `undefined` where nothing is known of it. */
export const valuesBefore = (
  reply: Series,
  unit: "hour" | "day",
  measure: MeasureName,
  places: number,
  dayOf: (time: number) => number
): ReadonlyArray<number | null> | undefined => {
  const { parts: [part] } = isLine(measure)
    ? linesOf(reply, unit, undefined, measure, () => undefined, dayOf)
    : stackOf(reply, unit, undefined, measure, dayOf)
  if (part === undefined) return undefined
  // Days of a zone may be one more or less.
  const skipped = part.values.length - places
  return Array.from({ length: places }, (_, place) => part.values[place + skipped] ?? null)
}

const lengths = { hour: 3_600_000, day: 24 * 3_600_000 } as const

/** The sum of the time before a range, of its bars as far as those of the range are over now. */
export const sumBefore = (
  reply: Series,
  unit: "hour" | "day",
  measure: BarName,
  { from, to }: Times,
  now: number,
  dayOf: (time: number) => number
): number => {
  const { parts: [part], times } = stackOf(reply, unit, undefined, measure, dayOf)
  return (part?.values ?? []).reduce<number>((sum, value, place) => {
    const time = times[place]! * 1_000
    const start = (unit === "day" ? dayStart(time) : time) + to - from
    const length = Math.max(1, Math.min(to, start + lengths[unit]) - start)
    return sum + (value ?? 0) * Math.max(0, Math.min(1, (now - start) / length))
  }, 0)
}
