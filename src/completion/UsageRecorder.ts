/**
 * Usage of finished requests: what counts against the limits of the key, and the entry in the usage history.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { ConfigStore } from "../config/ConfigStore.ts"
import { costOf, noPrices, priceOf, type PriceTable } from "../domain/prices.ts"
import type { Usage } from "../domain/ReplyEvent.ts"
import { monotonicMillis } from "../domain/time.ts"
import { upstreamNamed } from "../domain/upstreamNames.ts"
import type { Used } from "../usage/Admission.ts"
import { RequestMinutes } from "../usage/RequestMinutes.ts"
import { none, type Outcome, type UsageEntry } from "../usage/UsageEntry.ts"
import { UsageStore } from "../usage/UsageStore.ts"
import { outcomeOf, type RequestStats, targetOf } from "./RequestStats.ts"

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
const isServed = ({ status = 0, usage }: RequestStats): boolean =>
  (status >= 200 && status < 300) || usage !== undefined

/**
 * The cost of a finished request with the prices of the target that served it; `undefined` without a price. Limits and history both
 * ask, and get the same cost. A request that no upstream served costs nothing.
 */
const settledCost = (stats: RequestStats, prices: PriceTable): bigint | undefined => {
  if (stats.cost === undefined) {
    const usage = tokensOf(stats)
    const { model = none, soFar } = stats
    const target = soFar?.target ?? stats.target ?? { upstream: upstreamNamed(undefined), model }
    const price = priceOf(prices, target.upstream, target.model, stats.model)
    stats.cost = price === undefined ? null : isServed(stats) ? costOf(price, usage) : 0n
  }
  return stats.cost ?? undefined
}

/** What a finished request has used of its key's limits. */
export const usedBy = (stats: RequestStats, prices: PriceTable): Used => {
  const { completionTokens, promptTokens } = tokensOf(stats)
  const counted = counts(stats)
  return { counted, tokens: promptTokens + completionTokens, cost: counted ? settledCost(stats, prices) : undefined }
}

/** The history entry of a finished request; `at` is its start in Unix milliseconds, `duration` is in milliseconds. */
const usageEntry = (
  stats: RequestStats,
  at: number,
  duration: number,
  showsUpstreams: boolean,
  prices: PriceTable
): UsageEntry => {
  const usage = tokensOf(stats)
  const counted = counts(stats)
  return {
    at: stats.admittedAt ?? at,
    key: stats.key,
    model: stats.model ?? none,
    account: stats.accountHash ?? none,
    style: stats.style ?? none,
    answerer: showsUpstreams
      ? { upstream: stats.target?.upstream ?? none, target: targetOf(stats) ?? none }
      : undefined,
    outcome: outcome(stats),
    counted,
    promptTokens: usage.promptTokens,
    completionTokens: usage.completionTokens,
    reasoningTokens: usage.reasoningTokens,
    cachedTokens: usage.cachedTokens,
    cost: counted ? settledCost(stats, prices) : undefined,
    estimated: stats.soFar?.estimated() ?? true,
    toolCalls: stats.calls,
    attempts: stats.attempts,
    queued: Math.round(stats.queued),
    upstream: Math.round(stats.upstream ?? 0),
    duration: Math.round(duration),
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
      const minutes = new RequestMinutes()
      return UsageRecorder.of({
        minutes,
        ended: (stats) => {
          const duration = Math.max(0, monotonicMillis(clock) - stats.startedAt)
          const current = config?.now()
          const showsUpstreams = stats.target !== undefined || current?.route_table.showsUpstreams === true
          const now = clock.currentTimeMillisUnsafe()
          const entry = usageEntry(stats, now - duration, duration, showsUpstreams, current?.prices ?? noPrices)
          store.add(entry)
          minutes.add(entry, stats, now)
          // A recording may keep the stats for long: they must not reference the reply's machines.
          stats.soFar = undefined
        }
      })
    })
  )
}
