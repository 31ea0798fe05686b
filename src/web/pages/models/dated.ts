/**
 * Prices by their dates.
 */

/** What is of prices here: a day in UTC or a time, from which one counts. */
export interface Dated {
  readonly from?: string
}

/** When a price begins; one without a date has always counted. */
const beginOf = ({ from }: Dated): number => from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(from)

/** The price that counts at a time: of those that have begun, the latest one; `undefined` before the first. */
export const currentOf = <Price extends Dated>(entry: ReadonlyArray<Price>, now: number): Price | undefined =>
  entry.filter((each) => beginOf(each) <= now).toSorted((a, b) => beginOf(b) - beginOf(a))[0]

/** The price that counts next; `undefined` without one. */
export const nextOf = <Price extends Dated>(entry: ReadonlyArray<Price>, now: number): Price | undefined =>
  entry.filter((each) => beginOf(each) > now).toSorted((a, b) => beginOf(a) - beginOf(b))[0]
