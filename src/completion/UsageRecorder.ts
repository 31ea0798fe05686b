/**
 * The end of a request's record, as far as usage goes: what its key's limits settle, and its entry in the history.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Usage } from "../domain/ReplyEvent.ts"
import { monotonicMillis } from "../domain/time.ts"
import type { Used } from "../usage/Admission.ts"
import { none, type Outcome, type UsageEntry } from "../usage/UsageEntry.ts"
import { UsageStore } from "../usage/UsageStore.ts"
import { outcomeOf, type RequestStats } from "./RequestStats.ts"

const noTokens = { promptTokens: 0, completionTokens: 0, reasoningTokens: 0, cachedTokens: 0 }

const outcome = (stats: RequestStats): Outcome =>
  stats.error !== undefined ? "failed" : outcomeOf(stats) === "client_left" ? "left" : "succeeded"

/** A request counts when it was answered, or when the upstream was called for it. */
const counts = ({ admittedAt, status = 0, upstreamCalled }: RequestStats): boolean =>
  admittedAt !== undefined && ((status >= 200 && status < 300) || upstreamCalled)

/** The tokens of a request that is over: those of a reply that broke off as far as it came. */
const tokensOf = (stats: RequestStats): Usage => (stats.usage ??= stats.soFar?.usage()) ?? noTokens

/** What a request that is over has used of its key's limits. */
export const usedBy = (stats: RequestStats): Used => {
  const { completionTokens, promptTokens } = tokensOf(stats)
  return { counted: counts(stats), tokens: promptTokens + completionTokens }
}

/** What a request that is over comes to; `at` is when it began, `duration` how long it took, in milliseconds. */
export const usageEntry = (stats: RequestStats, at: number, duration: number): UsageEntry => {
  const usage = tokensOf(stats)
  return {
    at: stats.admittedAt ?? at,
    key: stats.key,
    model: stats.model ?? none,
    account: stats.accountHash ?? none,
    style: stats.style ?? none,
    outcome: outcome(stats),
    counted: counts(stats),
    promptTokens: usage.promptTokens,
    completionTokens: usage.completionTokens,
    reasoningTokens: usage.reasoningTokens,
    cachedTokens: usage.cachedTokens,
    estimated: stats.soFar?.estimated() ?? true,
    toolCalls: stats.calls,
    attempts: stats.attempts,
    queued: Math.round(stats.queued),
    upstream: Math.round(stats.upstream ?? 0),
    duration: Math.round(duration),
    error: stats.error
  }
}

/** Takes the records of requests that are over. */
export class UsageRecorder extends Context.Service<UsageRecorder, {
  /**
   * Completes the record of a request of a style, its tokens among it, gives back the bytes that it holds, and adds it to the
   * history. To be called once, before anybody else reads the record.
   */
  readonly ended: (stats: RequestStats) => void
}>()("model-gateway/completion/UsageRecorder") {
  static readonly layer: Layer.Layer<UsageRecorder, never, UsageStore> = Layer.effect(
    UsageRecorder,
    Effect.gen(function*() {
      const store = yield* UsageStore
      const clock = yield* Clock.Clock
      return UsageRecorder.of({
        ended: (stats) => {
          const duration = Math.max(0, monotonicMillis(clock) - stats.startedAt)
          const entry = usageEntry(stats, clock.currentTimeMillisUnsafe() - duration, duration)
          store.add(entry)
          // The record may be kept for long: it must not keep the reply's machinery, nor all that hangs on it.
          stats.soFar = undefined
          stats.held?.release()
          stats.held = undefined
        }
      })
    })
  )
}
