/**
 * Usage of finished requests: what counts against the limits of the key, and the entry in the usage history.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { Pricing } from "../config/prices.ts"
import { billOf } from "../domain/bill.ts"
import { withInputImages } from "../domain/inputImages.ts"
import { hasNoNames, noNames } from "../domain/nameTable.ts"
import { priceOf, type PriceTable } from "../domain/prices.ts"
import type { Usage } from "../domain/ReplyEvent.ts"
import { monotonicMillis } from "../domain/time.ts"
import { upstreamNamed } from "../domain/upstreamNames.ts"
import { none } from "../domain/usageNames.ts"
import type { Used } from "../usage/Admission.ts"
import { RequestMinutes } from "../usage/RequestMinutes.ts"
import type { CostElsewhere, Outcome, UsageEntry, UsageTarget } from "../usage/UsageEntry.ts"
import { UsageStore } from "../usage/UsageStore.ts"
import {
  addBilled,
  type AnsweringTarget,
  faultOfRequest,
  outcomeOf,
  type RequestStats,
  targetOf
} from "./RequestStats.ts"

const unpriced = { currency: undefined, prices: noNames, upstreams: new Map<string, never>() }

const noTokens = { promptTokens: 0, completionTokens: 0, reasoningTokens: 0, cachedTokens: 0 }

const outcome = (stats: RequestStats): Outcome =>
  stats.error !== undefined ? "failed" : outcomeOf(stats) === "client_left" ? "left" : "succeeded"

/** A request counts if it succeeded or called the upstream. */
const counts = ({ admittedAt, status = 0, upstreamCalled }: RequestStats): boolean =>
  admittedAt !== undefined && ((status >= 200 && status < 300) || upstreamCalled)

const sumOf = (one: Usage, other: Usage): Usage => ({
  promptTokens: one.promptTokens + other.promptTokens,
  completionTokens: one.completionTokens + other.completionTokens,
  reasoningTokens: one.reasoningTokens + other.reasoningTokens,
  cachedTokens: one.cachedTokens + other.cachedTokens,
  cacheWriteTokens: (one.cacheWriteTokens ?? 0) + (other.cacheWriteTokens ?? 0)
})

/** The tokens of a finished request; those so far for one that was interrupted, or that the upstream did not answer. */
const tokensOf = (stats: RequestStats): Usage => {
  const usage = (stats.usage ??= stats.soFar?.usage()) ?? noTokens
  const { usageBefore: before } = stats
  if (before === undefined) return usage
  stats.usageBefore = undefined
  return stats.usage = sumOf(before, usage)
}

/** It was answered 2xx, or the upstream got it and did not refuse it. */
const isServed = ({ status = 0 }: RequestStats, usage: Usage | undefined): boolean =>
  (status >= 200 && status < 300) || usage !== undefined

/** Adds what the last try used to the tries that are charged, unless they have it. */
const addLast = (stats: RequestStats): void => {
  const { soFar } = stats
  if (stats.usage === undefined && soFar?.isBilled === true) return
  const usage = stats.usage ?? soFar?.usage()
  if (isServed(stats, usage)) addBilled(stats, usage ?? noTokens, stats.upstreamCalled && !stats.answered)
}

/**
 * The cost of a finished request: the sum over the tries that are charged, each with the price of its target; `undefined` without a price.
 * Limits and history both ask, and get the same cost. A request that no upstream served costs nothing.
 */
const settledCost = (stats: RequestStats, { currency, now, prices, upstreams }: Pricing): bigint | undefined => {
  if (stats.cost === undefined) {
    addLast(stats)
    const { billed = [], model = none, target } = stats
    let cost: bigint | null = billed.length > 0 || priceOfLast(prices, now, target, model) !== undefined ? 0n : null
    for (const each of billed) {
      const price = priceOf(prices, now, each.upstream, each.model, stats.model)
      const preferred = upstreams.get(each.upstream)?.bill
      each.usage = withInputImages(each.usage, price, stats.sent)
      each.bill = billOf(price, each.usage, { currency, preferred, isUnpriced: hasNoNames(prices) })
      cost = cost === null || each.bill.cost === undefined ? null : cost + each.bill.cost
    }
    stats.cost = cost
  }
  return stats.cost ?? undefined
}

const priceOfLast = (prices: PriceTable, now: number, target: AnsweringTarget | undefined, model: string) =>
  priceOf(prices, now, target?.upstream ?? upstreamNamed(undefined), target?.model ?? model, model)

/** What a finished request has used of its key's limits. */
export const usedBy = (stats: RequestStats, pricing: Pricing): Used => {
  const counted = counts(stats)
  const cost = counted ? settledCost(stats, pricing) : undefined
  const { completionTokens, promptTokens } = tokensOf(stats)
  return { counted, tokens: promptTokens + completionTokens, cost }
}

/** The costs that another account or target than the last one charges, and what of the rest the caller saw nothing of. */
const costsElsewhere = (stats: RequestStats, answerer: UsageTarget | undefined) => {
  const elsewhere: Array<CostElsewhere> = []
  let wasted = 0n
  for (const { account = none, bill, isWasted, model, upstream } of stats.billed ?? []) {
    const cost = bill?.cost ?? 0n
    const target = `${upstream}/${model}`
    const isHere = account === (stats.accountHash ?? none) && (answerer === undefined || answerer.target === target)
    if (isHere) wasted += isWasted ? cost : 0n
    else if (cost > 0n) {
      elsewhere.push({
        account,
        answerer: answerer && { upstream, target },
        cost,
        wasted: isWasted ? cost : 0n
      })
    }
  }
  return { elsewhere, wasted }
}

/** The history entry of a finished request; `at` is its start in Unix milliseconds, `duration` is in milliseconds. */
const usageEntry = (
  stats: RequestStats,
  at: number,
  duration: number,
  showsUpstreams: boolean,
  pricing: Pricing
): UsageEntry => {
  const counted = counts(stats)
  const cost = counted ? settledCost(stats, pricing) : undefined
  const usage = tokensOf(stats)
  const answerer = showsUpstreams
    ? { upstream: stats.target?.upstream ?? none, target: targetOf(stats) ?? none }
    : undefined
  return {
    at: stats.admittedAt ?? at,
    key: stats.key,
    model: stats.model ?? none,
    account: stats.accountHash ?? none,
    style: stats.style ?? none,
    app: none,
    session: none,
    agent: none,
    parent: none,
    ...stats.identity?.shown,
    answerer,
    outcome: outcome(stats),
    counted,
    promptTokens: usage.promptTokens,
    completionTokens: usage.completionTokens,
    reasoningTokens: usage.reasoningTokens,
    cachedTokens: usage.cachedTokens,
    cacheWriteTokens: usage.cacheWriteTokens ?? 0,
    predictedTokens: stats.promptCache?.predicted ?? 0,
    isCacheMiss: stats.promptCache?.result === "miss",
    cost,
    ...(cost === undefined || cost === 0n ? { elsewhere: [], wasted: 0n } : costsElsewhere(stats, answerer)),
    estimated: stats.soFar?.estimated() ?? true,
    toolCalls: stats.calls,
    attempts: stats.attempts - (stats.rehearsed ?? 0),
    queued: Math.round(stats.queued),
    upstream: Math.round(stats.upstream ?? 0),
    duration: Math.round(duration),
    firstEvent: stats.firstEventAt === undefined ? undefined : Math.round(stats.firstEventAt - stats.startedAt),
    error: stats.error
  }
}

/** Records the usage of finished requests. */
export class UsageRecorder extends Context.Service<UsageRecorder, {
  /**
   * Completes the stats of a finished request with its tokens, and adds it to history and minutes. Must be called once, before the stats
   * are read.
   */
  readonly ended: (stats: RequestStats) => void
  /** The requests of the last hour in this process. */
  readonly minutes: Pick<RequestMinutes, "view" | "written">
}>()("model-gateway/completion/UsageRecorder") {
  static readonly layer: Layer.Layer<UsageRecorder, never, UsageStore> = Layer.effect(
    UsageRecorder,
    Effect.gen(function*() {
      const store = yield* UsageStore
      const config = Option.getOrUndefined(yield* Effect.serviceOption(ConfigStore))
      const clock = yield* Clock.Clock
      const minutes = new RequestMinutes(clock.currentTimeMillisUnsafe())
      return UsageRecorder.of({
        minutes,
        ended: (stats) => {
          const duration = Math.max(0, monotonicMillis(clock) - stats.startedAt)
          const current = config?.now()
          const showsUpstreams = stats.target !== undefined || current?.route_table.showsUpstreams === true
          const now = clock.currentTimeMillisUnsafe()
          const pricing = current === undefined ? { ...unpriced, now } : {
            currency: current.currency,
            prices: current.prices,
            upstreams: current.upstreams,
            now
          }
          const entry = usageEntry(stats, now - duration, duration, showsUpstreams, pricing)
          store.add(entry)
          minutes.add(entry, stats, now, faultOfRequest(stats))
          // A recording may keep the stats for long: they must not reference the reply's machines, or the prompt.
          stats.soFar = undefined
          stats.sent = undefined
        }
      })
    })
  )
}
