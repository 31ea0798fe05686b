/**
 * Amounts and durations as people read them, with their exact values on hover.
 */
import { compact, duration, exactMoney, milliseconds, money, mostPlaces, number, placesShown } from "./format.ts"

/**
 * An amount of money; `–` without one. `inTable`: the head of the column has the currency, and the points of the column stand below
 * one another.
 */
export const Money = ({ amount, currency, inTable = false }: {
  readonly amount: string | null | undefined
  readonly currency: string | null | undefined
  readonly inTable?: boolean
}) => {
  if (amount === null || amount === undefined) return <>–</>
  const missing = mostPlaces - placesShown(amount)
  return (
    <span
      title={exactMoney(amount, currency)}
      style={inTable && missing > 0 ? { paddingInlineEnd: `${missing}ch` } : {}}
    >
      {money(amount, inTable ? null : currency)}
    </span>
  )
}

/** A count: in full below 10,000. */
export const Count = ({ value }: { readonly value: number }) => {
  const [short, full] = [compact(value), number(value)]
  return short === full ? <>{full}</> : <span title={full}>{short}</span>
}

/** A duration in milliseconds; `–` without one. */
export const Took = ({ ms }: { readonly ms: number | null | undefined }) =>
  ms === null || ms === undefined ? <>–</> : <span title={milliseconds(Math.round(ms))}>{duration(ms)}</span>
