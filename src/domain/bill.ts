/**
 * What a try costs. Pure.
 *
 * A cost is the exact sum of all units, rounded once to 10^-9, half up. Sums of costs are exact.
 */
import { decimalsOfAmounts, formatDecimal, roundDecimal } from "./decimal.ts"
import { type Price, priceOf, type PriceTable, type UnitPrices } from "./prices.ts"
import type { Route, Target } from "./routes.ts"
import { eachUnit, standIns, tierUnit, toolUnit, type Usage, type UsageDetails } from "./units.ts"

const nano = 10n ** 9n
const million = 10n ** 6n

/** A unit with its price. */
interface PricedUnit {
  readonly unit: string
  readonly amount: number
  /** The place of the price in the entry; `undefined` without a price. */
  readonly place: string | undefined
  /** Its cost in parts of the pass's `scale`. */
  readonly cost: bigint
}

/** Where prices are looked for, in order, each with its place in the entry. */
type Places = ReadonlyArray<readonly [place: string, units: UnitPrices]>

const tierOf = ({ tiers }: Price, { details }: Usage) =>
  details?.tier === undefined ? undefined : tiers.get(details.tier)

/** The step of the tier, the tier, the step of the entry, the entry. */
const placesOf = (price: Price, usage: Usage): Places => {
  const tier = tierOf(price, usage)
  const places: Array<Places[number]> = []
  for (const [place, level] of [[`${tierUnit}.${usage.details?.tier}.`, tier], ["", price]] as const) {
    const step = level?.above.find(({ tokens }) => usage.promptTokens > tokens)
    if (step !== undefined) places.push([`${place}above.${step.tokens}.`, step.units])
    if (level !== undefined) places.push([place, level.units])
  }
  return places
}

/** The amount of a unit's price with its place. Its stand-ins are looked for after the unit itself. */
const lookUp = (places: Places, unit: string): readonly [place: string, amount: bigint] | undefined => {
  const others: ReadonlyArray<string> = unit in standIns ? standIns[unit as keyof typeof standIns] : []
  for (let i = -1; i < others.length; i++) {
    const name = i === -1 ? unit : others[i]!
    for (const [place, units] of places) {
      const amount = units.get(name)
      if (amount !== undefined) return [place + name, amount]
    }
  }
  return undefined
}

/** The factors of a usage: their product, how many there are, and their places. */
const factorsOf = ({ factors }: Price, { details }: Usage) => {
  let product = 1n
  let count = 0
  let place = ""
  if (factors.size > 0 && details?.words !== undefined) {
    for (const [field, values] of factors) {
      const value = details.words[field]
      const factor = value === undefined ? undefined : values.get(value)
      if (factor === undefined) continue
      product *= factor
      count++
      place += ` * factors.${field}.${value}`
    }
  }
  return { product, count, place }
}

/** Calls `visit` with each unit of a usage. Returns the number of decimals of the costs. */
const eachPriced = (price: Price, usage: Usage, visit: (priced: PricedUnit) => void): number => {
  const places = placesOf(price, usage)
  const factors = factorsOf(price, usage)
  // Pieces may be fractions, such as seconds, of which 9 decimals count.
  const isWhole = Object.values(usage.details?.pieces ?? {}).every((amount) => Number.isInteger(amount))
  const groups = Math.max(factors.count, isWhole ? 0 : 1)
  const shift = nano ** BigInt(groups - factors.count)
  eachUnit(usage, (unit, amount) => {
    const found = lookUp(places, unit)
    if (found === undefined) return visit({ unit, amount, place: undefined, cost: 0n })
    const [place, each] = found
    if (unit in standIns) {
      return visit({
        unit,
        amount,
        place: place + factors.place,
        cost: BigInt(amount) * each * factors.product * shift
      })
    }
    const cost = Number.isInteger(amount)
      ? BigInt(amount) * each * million * nano ** BigInt(groups)
      : (roundDecimal(amount, 0) ?? 0n) * each * million * nano ** BigInt(groups - 1)
    visit({ unit, amount, place, cost })
  })
  return decimalsOfAmounts + 6 + decimalsOfAmounts * groups
}

/** True for a unit that is listed if it has no price. Other pieces without a price are free. */
const isListed = (unit: string): boolean => unit in standIns || unit.startsWith(`${toolUnit}.`)

/** An amount without a price: of a unit, or one request of a service tier. */
export type Unpriced = readonly [unit: string, amount: number]

/** The cost of a try in integers of 10^-9. `missing` gets what it used that has no price. */
export const costOf = (price: Price, usage: Usage, missing?: (unit: string, amount: number) => void): bigint => {
  let sum = 0n
  const decimals = eachPriced(price, usage, ({ amount, cost, place, unit }) => {
    sum += cost
    if (place === undefined && missing !== undefined && isListed(unit)) missing(unit, amount)
  })
  const tier = usage.details?.tier
  if (tier !== undefined && !price.tiers.has(tier)) missing?.(`${tierUnit}.${tier}`, 1)
  const divisor = 10n ** BigInt(decimals - decimalsOfAmounts)
  return (sum + divisor / 2n) / divisor
}

/** A line of a bill: a unit, the place of its price in the entry, which may be that of a stand-in, and its exact cost. */
export interface BillLine {
  readonly unit: string
  readonly amount: number
  readonly price: string | null
  readonly cost: string
}

/** The lines of a bill by prices. Their costs sum up to the cost before it is rounded. */
export const linesOf = (price: Price, usage: Usage): ReadonlyArray<BillLine> => {
  const priced: Array<PricedUnit> = []
  const decimals = eachPriced(price, usage, (each) => priced.push(each))
  return priced.flatMap(({ amount, cost, place, unit }) =>
    place === undefined && !isListed(unit)
      ? []
      : [{ unit, amount, price: place ?? null, cost: formatDecimal(cost, decimals) }]
  )
}

/** Whose figure counts. */
export type BillSource = "prices" | "server"

/** What a try costs. */
export interface Bill {
  /** An amount of 10^-9; `undefined` without a price. */
  readonly cost: bigint | undefined
  readonly source: BillSource
  /** The price of its model; `undefined` without one. */
  readonly price: Price | undefined
  /** What the prices lack, if they count; without a price that is every token and call. */
  readonly unpriced: ReadonlyArray<Unpriced>
}

const nothing: ReadonlyArray<Unpriced> = []

/** The bill of a try without any configured prices, of which none is missed. */
const noBill: Bill = { cost: undefined, source: "prices", price: undefined, unpriced: nothing }

/**
 * The bill of a try. The server's own cost wins, because the server invoices it, unless `preferred` says `prices`. A currency other than that
 * of the server's cost, US dollars, makes the prices the only ones.
 */
export const billOf = (
  price: Price | undefined,
  usage: Usage,
  { currency = "USD", isUnpriced = false, preferred }: {
    readonly currency: string | undefined
    readonly preferred: BillSource | undefined
    /** There are no configured prices at all. */
    readonly isUnpriced: boolean
  }
): Bill => {
  const byServer = currency === "USD" ? usage.details?.serverCost : undefined
  if (byServer !== undefined && (price === undefined || preferred !== "prices")) {
    return { cost: byServer, source: "server", price, unpriced: nothing }
  }
  if (isUnpriced && price === undefined) return noBill
  let unpriced: Array<Unpriced> | undefined
  const missing = (unit: string, amount: number) => {
    unpriced ??= []
    unpriced.push([unit, amount])
  }
  const cost = price === undefined ? undefined : costOf(price, usage, missing)
  if (price === undefined) {
    eachUnit(usage, (unit, amount) => {
      if (isListed(unit)) missing(unit, amount)
    })
  }
  return { cost, source: "prices", price, unpriced: unpriced ?? nothing }
}

/** The most that a request uses at a target in one try. */
export interface MostUsed {
  readonly promptTokens: number
  /** The limit of output. */
  readonly completionTokens: number
  /** The most calls of the vendor's tools, each of tools that share the number. */
  readonly tools: ReadonlyArray<{ readonly names: ReadonlyArray<string>; readonly calls: number }>
  /** The service tier that it asks for, in lower case, and words of its body that may choose a factor. */
  readonly tier: string | undefined
  readonly words: UsageDetails["words"] | undefined
  readonly pieces: UsageDetails["pieces"] | undefined
}

/** What a request uses that asks for tokens alone. */
export const tokensAlone = { tools: [], tier: undefined, words: undefined, pieces: undefined }

/**
 * The most that a try costs: its prompt at the dearest of `input`, `cache_write` and `cache_write_1h`, its output at the dearer of `output` and
 * `reasoning`, and each call at the dearest of the tools that it may be of.
 */
export const dearestCost = (price: Price, most: MostUsed): bigint => {
  const { completionTokens, pieces, promptTokens, tier, tools, words } = most
  const priceOfCall = (name: string) => price.units.get(`${toolUnit}.${name}`) ?? 0n
  const toolCalls: Record<string, number> = {}
  for (const { calls, names } of tools) {
    const name = names.reduce((one, other) => priceOfCall(other) > priceOfCall(one) ? other : one)
    toolCalls[name] = (toolCalls[name] ?? 0) + calls
  }
  let dearest = 0n
  for (const [written, hour] of [[0, 0], [promptTokens, 0], [promptTokens, promptTokens]] as const) {
    for (const reasoningTokens of [0, completionTokens]) {
      for (const asked of new Set([undefined, tier])) {
        const cost = costOf(price, {
          promptTokens,
          cachedTokens: 0,
          cacheWriteTokens: written,
          completionTokens,
          reasoningTokens,
          details: { cacheWrite1hTokens: hour, pieces, tier: asked, toolCalls, words }
        })
        if (cost > dearest) dearest = cost
      }
    }
  }
  return dearest
}

/** The first target that may answer and has no price; `undefined` if all have one. */
export const unpricedTarget = (table: PriceTable, now: number, { id, targets }: Route): Target | undefined =>
  targets.find(({ enabled, model, upstream }) => enabled && priceOf(table, now, upstream, model.id, id) === undefined)

/** The most that a prompt costs at any target of a route. */
export const promptCost = (table: PriceTable, now: number, { id, targets }: Route, promptTokens: number): bigint => {
  let most = 0n
  for (const { enabled, model, upstream } of targets) {
    const price = enabled ? priceOf(table, now, upstream, model.id, id) : undefined
    if (price === undefined) continue
    const cost = costOf(price, { promptTokens, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 })
    if (cost > most) most = cost
  }
  return most
}
