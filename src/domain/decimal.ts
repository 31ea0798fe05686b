/**
 * Exact decimal numbers for prices and costs: integers of 10^-9, as `bigint`, so that sums of any length are exact and do not
 * depend on their order.
 *
 * Storage and scripts count in numbers, which are exact up to 2^53. There an amount is two numbers: whole units, and nanos (0 to
 * 10^9 - 1). Each of the two is summed by itself.
 */

/** Nanos of one unit. */
export const nanosInUnit = 1_000_000_000

const unit = BigInt(nanosInUnit)

/** The decimals of an amount. */
export const decimalsOfAmounts = 9

/** Bounds the digits and the exponent, and so the work of a conversion. */
const form = /^(\d{1,40})(?:\.(\d{0,40}))?(?:e([+-]?\d{1,3}))?$/i

/** A decimal number times 10^(9 + exponent): its integer part, and the remainder with its divisor. */
const scaled = (value: number | string, exponent: number) => {
  const [, whole = "", fraction = "", power = "0"] = form.exec(String(value).trim()) ?? []
  if (whole === "") return undefined
  const digits = BigInt(whole + fraction)
  const shift = decimalsOfAmounts + exponent + Number(power) - fraction.length
  if (shift >= 0) return { amount: digits * 10n ** BigInt(shift), rest: 0n, divisor: 1n }
  const divisor = 10n ** BigInt(-shift)
  return { amount: digits / divisor, rest: digits % divisor, divisor }
}

/** Reads a number of at least 0, such as `0.15`, `"12"` or `1.5e-7`; `undefined` for others and beyond 9 decimals. */
export const parseDecimal = (value: number | string): bigint | undefined => {
  const read = scaled(value, 0)
  return read?.rest === 0n ? read.amount : undefined
}

/** Like `parseDecimal`, times 10^`exponent`, and rounded half up to 9 decimals. */
export const roundDecimal = (value: number | string, exponent: number): bigint | undefined => {
  const read = scaled(value, exponent)
  return read && read.amount + (2n * read.rest >= read.divisor ? 1n : 0n)
}

/** Writes an amount, or an integer of other decimals, without exponent and without trailing zeros: `12.5`, `0`. */
export const formatDecimal = (amount: bigint, decimals = decimalsOfAmounts): string => {
  const size = amount < 0n ? -amount : amount
  const one = decimals === decimalsOfAmounts ? unit : 10n ** BigInt(decimals)
  const fraction = String(size % one).padStart(decimals, "0").replace(/0+$/, "")
  return `${amount < 0n ? "-" : ""}${size / one}${fraction === "" ? "" : `.${fraction}`}`
}

/**
 * What stored sums grow to at most: storage keeps them there, so that a sum of two is a safe integer, and every reader can show it.
 */
export const mostSum = 2 ** 52

const mostAmount = BigInt(mostSum) * unit

/** An amount of at least 0 as whole units and nanos; at most `mostSum` units. */
export const splitAmount = (amount: bigint): readonly [units: number, nanos: number] =>
  amount === 0n ? [0, 0] : amount >= mostAmount ? [mostSum, 0] : [Number(amount / unit), Number(amount % unit)]

/** The amount of whole units and any number of nanos. */
export const joinAmount = (units: number, nanos: number): bigint =>
  units === 0 && nanos === 0 ? 0n : BigInt(units) * unit + BigInt(nanos)

/** An amount as a number of units, for metrics. */
export const toUnits = (amount: bigint): number => Number(amount / unit) + Number(amount % unit) / nanosInUnit
