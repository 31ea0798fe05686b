/**
 * The measures of usage, the dimensions of its buckets, and the entry of one request.
 */
import { formatDecimal, joinAmount, mostSum, nanosInUnit, splitAmount } from "../domain/decimal.ts"
import { upstreamNamed } from "../domain/upstreamNames.ts"
import { none } from "../domain/usageNames.ts"
import { addMeasured, addTimes, type Times } from "./Times.ts"

/** The sums of a bucket, in the order of display and storage. */
export const measureNames = [
  "requests",
  "succeeded",
  "failed",
  "left",
  "counted_requests",
  "prompt_tokens",
  "completion_tokens",
  "reasoning_tokens",
  "cached_tokens",
  "total_tokens",
  "estimated_requests",
  "tool_calls",
  "attempts",
  "queue_ms",
  "upstream_ms",
  "duration_ms"
] as const

/**
 * The sums of costs, stored after those of `measureNames`: requests with a price, and their cost in whole units and nanos
 * (`domain/decimal.ts`).
 */
export const costNames = ["priced_requests", "cost_units", "cost_nanos"] as const

/** The sums that histories have later than those, stored after them: tokens written to caches, and the part of the cost that is wasted. */
export const laterNames = ["cache_write_tokens", "wasted_units", "wasted_nanos"] as const

/** The sums of prompt caches, stored after those: tokens that should have come from a cache, and turns of which none came. */
export const cacheNames = ["predicted_tokens", "prompt_cache_misses"] as const

/** All sums of a bucket, in the order of storage. */
export const sumNames = [...measureNames, ...costNames, ...laterNames, ...cacheNames] as const

type MeasureName = (typeof measureNames)[number]

/** Integers by name. */
export type Measures = { readonly [Name in MeasureName]: number }

/** The dimensions of the history, beside the hour. */
export const historyNames = ["key", "model", "account", "style", "upstream", "target", "app"] as const
/** The dimensions of the usage of sessions, beside the hour. */
export const sessionNames = ["key", "app", "session", "agent", "parent"] as const
/** All dimensions of a bucket, beside its hour. Those of the other table are empty. */
export const dimensionNames = [...historyNames, "session", "agent", "parent"] as const

export type DimensionName = (typeof dimensionNames)[number]

/** A value for each dimension. */
export type Dimensions = { readonly [Name in DimensionName]: string }

/** Makes the dimensions from their values. */
export const dimensionsBy = (valueOf: (name: DimensionName, index: number) => string): Dimensions =>
  Object.fromEntries(dimensionNames.map((name, i) => [name, valueOf(name, i)] as const)) as Dimensions

/** The upstream that answered a request, or the last one tried, and its model as `upstream/model`; `none` without a try. */
export interface UsageTarget {
  readonly upstream: string
  readonly target: string
}

/** The target of a model in a configuration of one upstream, and in histories that know no other. */
export const onlyTarget = (model: string): UsageTarget => {
  const upstream = upstreamNamed(undefined)
  return { upstream, target: model === none ? none : `${upstream}/${model}` }
}

/** How a request ended. */
export type Outcome = "succeeded" | "failed" | "left"

/** A part of a request's cost that another account or target than the last one charges. Amounts are of 10^-9. */
export interface CostElsewhere {
  readonly account: string
  /** `undefined` for `onlyTarget`. */
  readonly answerer: UsageTarget | undefined
  readonly cost: bigint
  /** The part of it that the caller saw nothing of. */
  readonly wasted: bigint
}

/** One finished request. Times are milliseconds. */
export interface UsageEntry {
  /** The beginning: Unix time. */
  readonly at: number
  /** A key id, or one of `directKey`, `embeddedKey` and `none`. */
  readonly key: string
  readonly model: string
  readonly account: string
  readonly style: string
  /** The program that calls, or `none`. */
  readonly app: string
  /** What is kept of its session, or `none`. */
  readonly session: string
  /** The agent of the session, or `none`. */
  readonly agent: string
  /** The agent that started it, or `none`. */
  readonly parent: string
  /** `undefined` for `onlyTarget`. */
  readonly answerer: UsageTarget | undefined
  readonly outcome: Outcome
  /** Whether the request counts for the limits of its key. */
  readonly counted: boolean
  readonly promptTokens: number
  readonly completionTokens: number
  readonly reasoningTokens: number
  readonly cachedTokens: number
  /** Tokens of the prompt that were written to a cache. */
  readonly cacheWriteTokens: number
  /** Tokens of the prompt that should have come from a cache. */
  readonly predictedTokens: number
  /** None of them came. */
  readonly isCacheMiss: boolean
  /** An amount of 10^-9; `undefined` for a request whose model has no price. */
  readonly cost: bigint | undefined
  /** The parts of `cost` that others charge. */
  readonly elsewhere: ReadonlyArray<CostElsewhere>
  /** The part of the rest of `cost` that the caller saw nothing of. */
  readonly wasted: bigint
  /** Whether the tokens are estimates and not the upstream's numbers. */
  readonly estimated: boolean
  readonly toolCalls: number
  readonly attempts: number
  readonly queued: number
  readonly upstream: number
  readonly duration: number
  /** Up to the first event of the reply; `undefined` without one. */
  readonly firstEvent: number | undefined
  /** The code of the error that the caller received. */
  readonly error: string | undefined
}

/** Sums, in the order of `sumNames`, errors by code, and how long requests took. */
export interface Sums {
  readonly values: Array<number>
  errors: Map<string, number> | undefined
  /** `undefined` where no request was measured. */
  times: Times | undefined
}

/** The dimensions of a request in the history. */
export const dimensionsOf = ({ account, answerer, app, key, model, style }: UsageEntry): Dimensions => ({
  key,
  model,
  account,
  style,
  ...(answerer ?? onlyTarget(model)),
  app,
  session: "",
  agent: "",
  parent: ""
})

/** The dimensions of a request in the usage of sessions. */
export const sessionDimensionsOf = (
  { agent, app, key, parent, session }: UsageEntry
): Dimensions => ({ key, model: "", account: "", style: "", upstream: "", target: "", app, session, agent, parent })

/** Sums of zero. */
export const zero = (): Sums => ({ values: sumNames.map(() => 0), errors: undefined, times: undefined })

/** Adds a number of errors of one code. */
export const addErrors = (into: Sums, code: string, count: number): void => {
  into.errors ??= new Map()
  into.errors.set(code, (into.errors.get(code) ?? 0) + count)
}

/** The places of the units of cost and of wasted cost; the nanos follow each. */
const [costUnits, wastedUnits] = [sumNames.indexOf("cost_units"), sumNames.indexOf("wasted_units")]
const cacheWrites = sumNames.indexOf("cache_write_tokens")
const [predicted, misses] = [sumNames.indexOf("predicted_tokens"), sumNames.indexOf("prompt_cache_misses")]

/** Moves whole units out of the nanos, which stay small enough to be exact. */
const carryOver = (values: Array<number>): void => {
  for (const units of [costUnits, wastedUnits]) {
    const nanos = values[units + 1]!
    if (nanos < nanosInUnit) continue
    values[units]! += Math.floor(nanos / nanosInUnit)
    values[units + 1] = nanos % nanosInUnit
  }
}

const addAmount = (values: Array<number>, at: number, amount: bigint): void => {
  const [units, nanos] = splitAmount(amount)
  values[at]! += units
  values[at + 1]! += nanos
}

/** Adds a cost that another account or target charges. */
export const addElsewhere = ({ values }: Sums, { cost, wasted }: CostElsewhere): void => {
  addAmount(values, costUnits, cost)
  addAmount(values, wastedUnits, wasted)
  carryOver(values)
}

/** Adds `from` to `into`. */
export const addSums = (into: Sums, from: Sums): void => {
  for (let i = 0; i < sumNames.length; i++) into.values[i] = Math.min(mostSum, into.values[i]! + from.values[i]!)
  carryOver(into.values)
  from.errors?.forEach((count, code) => addErrors(into, code, count))
  if (from.times !== undefined) addTimes(into.times ??= new Map(), from.times)
}

/** Adds a request, without what `elsewhere` says. */
export const addEntry = (into: Sums, entry: UsageEntry): void => {
  const { values } = into
  const total = entry.promptTokens + entry.completionTokens
  values[0]! += 1
  values[entry.outcome === "succeeded" ? 1 : entry.outcome === "failed" ? 2 : 3]! += 1
  if (entry.counted) values[4]! += 1
  values[5]! += entry.promptTokens
  values[6]! += entry.completionTokens
  values[7]! += entry.reasoningTokens
  values[8]! += entry.cachedTokens
  values[9]! += total
  if (entry.estimated && total > 0) values[10]! += 1
  values[11]! += entry.toolCalls
  values[12]! += entry.attempts
  values[13]! += entry.queued
  values[14]! += entry.upstream
  values[15]! += entry.duration
  if (entry.cost !== undefined && entry.counted) {
    values[16]! += 1
    addAmount(values, costUnits, entry.elsewhere.reduce((rest, { cost }) => rest - cost, entry.cost))
    addAmount(values, wastedUnits, entry.wasted)
    carryOver(values)
  }
  values[cacheWrites]! += entry.cacheWriteTokens
  values[predicted]! += entry.predictedTokens
  if (entry.isCacheMiss) values[misses]! += 1
  if (entry.error !== undefined) addErrors(into, entry.error, 1)
  addMeasured(into.times ??= new Map(), entry)
}

/** Sums by the names of their measures. */
export const measuresOf = ({ values }: Sums): Measures =>
  Object.fromEntries(measureNames.map((name, i) => [name, values[i]])) as Measures

/** The cost of requests, and the part of it that is wasted, as amounts of 10^-9. */
export const amountsOf = ({ values }: Sums): { readonly cost: bigint; readonly wasted_cost: bigint } => ({
  cost: joinAmount(values[costUnits]!, values[costUnits + 1]!),
  wasted_cost: joinAmount(values[wastedUnits]!, values[wastedUnits + 1]!)
})

/** The cost of requests as a decimal number, and the number of those that count without a price. */
export const costsOf = (sums: Sums): { readonly cost: string; readonly unpriced_requests: number } => ({
  cost: formatDecimal(amountsOf(sums).cost),
  unpriced_requests: sums.values[4]! - sums.values[16]!
})

/** The measures that follow those of `measureNames` and the costs: tokens, and a decimal number. */
export const laterMeasuresOf = (sums: Sums): {
  readonly cache_write_tokens: number
  readonly predicted_tokens: number
  readonly prompt_cache_misses: number
  readonly wasted_cost: string
} => ({
  cache_write_tokens: sums.values[cacheWrites]!,
  predicted_tokens: sums.values[predicted]!,
  prompt_cache_misses: sums.values[misses]!,
  wasted_cost: formatDecimal(amountsOf(sums).wasted_cost)
})

/** The share of the prompts' tokens that caches had, from 0 to 1; `null` without a prompt. */
export const hitRateOf = ({ values }: Sums): number | null => values[5] === 0 ? null : values[8]! / values[5]!
