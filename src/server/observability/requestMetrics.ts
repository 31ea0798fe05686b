/**
 * Metrics of requests, with GenAI semantic names where they exist. Labels are bounded: styles, configured models and
 * upstreams, and statuses, never keys, identities or caller text.
 *
 * The metrics of each label combination are created once, so that a request costs one lookup.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { overran, type RequestStats } from "../../completion/RequestStats.ts"
import { CurrentNotices, type Notices } from "../../config/Notices.ts"
import type { App } from "../../domain/clientIdentity.ts"
import { toUnits } from "../../domain/decimal.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { upstreamNamed } from "../../domain/upstreamNames.ts"
import type { PromptCache } from "../../domain/warmth.ts"
import type { Operation } from "../../styles/Style.ts"
import { styles } from "../../styles/styles.ts"

/** A counter that only increases. */
export const total = (name: string, description: string, attributes?: Record<string, string>) =>
  Metric.counter(name, { description, incremental: true, ...(attributes === undefined ? {} : { attributes }) })

/** Bucket boundaries in seconds, from the GenAI conventions. */
const seconds = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84]
const tokens = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576]

/** The status label; `left` if the caller disconnected before the reply. */
const statusOf = (stats: RequestStats): string => stats.status === undefined ? "left" : String(stats.status)

const operations = new Map<string | undefined, Operation>(
  styles.map(({ group, operation }) => [group.identifier, operation])
)

/** The GenAI operation name of a request. Of the requests that generate content those for embeddings say how far they are. */
export const operationOf = ({ progress, style }: RequestStats): Operation => {
  const operation = operations.get(style) ?? "chat"
  return operation === "generate_content" && progress !== undefined ? "embeddings" : operation
}

const labels = (model: string, operation: Operation) => ({
  gen_ai_operation_name: operation,
  gen_ai_request_model: model
})

/** The label of an upstream; none in a configuration of one upstream, and for requests that reached no upstream. */
const of = (upstream: string): Record<string, string> => upstream === "" ? {} : { upstream }

interface Series {
  readonly requests: Metric.Counter<number>
  readonly duration: Metric.Histogram<number>
  readonly firstToken: Metric.Histogram<number>
  readonly inputTokens: Metric.Histogram<number>
  readonly outputTokens: Metric.Histogram<number>
}

const tokenUsage = (model: string, type: string, operation: Operation, upstream: string) =>
  Metric.histogram("gen_ai_client_token_usage", {
    description: "Tokens of a request by type",
    boundaries: tokens,
    attributes: { ...labels(model, operation), gen_ai_token_type: type, ...of(upstream) }
  })

const makeSeries = (
  style: string,
  model: string,
  operation: Operation,
  status: string,
  upstream: string
): Series => ({
  requests: total("gateway_requests_total", "Requests by style, model and HTTP status", {
    style,
    model,
    status,
    ...of(upstream)
  }),
  duration: Metric.histogram("gen_ai_server_request_duration_seconds", {
    description: "Time from the head of a request to a model to the end of its reply",
    boundaries: seconds,
    attributes: { ...labels(model, operation), style, ...of(upstream) }
  }),
  firstToken: Metric.histogram("gen_ai_server_time_to_first_token_seconds", {
    description: "Time from a request's head to the first event of its reply",
    boundaries: seconds,
    attributes: { ...labels(model, operation), ...of(upstream) }
  }),
  inputTokens: tokenUsage(model, "input", operation, upstream),
  outputTokens: tokenUsage(model, "output", operation, upstream)
})

/** Makes metrics once for their labels, as a metric takes long to write its key in the registry; bounded by the label values. */
const kept = <Labels extends ReadonlyArray<string>, A>(make: (...labels: Labels) => A) => {
  const made = new Map<string, A>()
  return (...labels: Labels): A => {
    const key = labels.join("\u0000")
    let metric = made.get(key)
    if (metric === undefined) {
      metric = make(...labels)
      made.set(key, metric)
    }
    return metric
  }
}

const seriesOf = kept(makeSeries)

const streamErrors = kept((style: string, code: string, upstream: string) =>
  total("gateway_errors_total", "Errors sent to clients, within streams too, by code", {
    style,
    code,
    ...of(upstream)
  })
)

const costs = kept((model: string, upstream: string) =>
  total("gateway_cost_total", "Cost of requests in the configured currency", { model, upstream })
)

const cacheTokens = kept((kind: string, upstream: string, model: string) =>
  total("gateway_prompt_cache_tokens_total", "Tokens of prompts by what the caches of servers had of them", {
    kind,
    upstream,
    model
  })
)

const cacheMisses = kept((reason: string, upstream: string) =>
  total("gateway_prompt_cache_misses_total", "Turns that were no hit in the cache of their server, by reason", {
    reason,
    upstream
  })
)

const countCache = (
  { model = "none", target }: RequestStats,
  { predicted, prompt, read, reason, written }: PromptCache,
  context: Context.Context<never>
): void => {
  const upstream = upstreamNamed(target?.upstream)
  for (
    const [kind, count] of [["prompt", prompt], ["read", read], ["write", written], ["predicted", predicted]] as const
  ) {
    if (count > 0) cacheTokens(kind, upstream, model).updateUnsafe(count, context)
  }
  if (reason !== undefined) cacheMisses(reason, upstream).updateUnsafe(1, context)
}

const ofApp = kept((app: App) =>
  total("gateway_app_requests_total", "Requests to models by the program that called", { app })
)

/** Amounts by the unit that has no price. Tools and tiers, which servers name, count together. */
type UnpricedAmounts = Map<string, number>

const addUnpriced = (amounts: UnpricedAmounts, unit: string, amount: number): void => {
  const name = unit.replace(/\..*/, "")
  amounts.set(name, (amounts.get(name) ?? 0) + amount)
}

const queueWait = Metric.histogram("gateway_queue_wait_seconds", {
  description: "Time that requests waited for an account",
  boundaries: seconds
})

const attempts = kept((upstream: string) => total("gateway_attempts_total", "Attempts at the upstream", of(upstream)))

const counters = {
  attempts: attempts(""),
  failovers: total("gateway_failovers_total", "Attempts that were made on another account or target after a failure"),
  retries: total(
    "gateway_retries_total",
    "Attempts that were made again at the same server, since there is no other account"
  ),
  continues: total("gateway_continues_total", "Rounds that continued or resumed a reply"),
  calls: total("gateway_tool_calls_total", "Tool calls in replies"),
  overruns: total(
    "gateway_budget_overrun_total",
    "Requests that used more than the strict limits of their key had reserved"
  ),
  refusedCosts: total(
    "gateway_server_costs_refused_total",
    "Costs of servers that no reply has: the prices count in their place"
  ),
  brokenCalls: total("gateway_tool_calls_cut_off_total", "Tool calls that broke off or could not be repaired")
}

/** Units that an event about missing prices names: servers name tools. */
const mostUnits = 16

/** Counts a finished request. `now` is in milliseconds. One pass, without an Effect per metric. */
const countRequest = (
  stats: RequestStats,
  now: number,
  unpriced: UnpricedAmounts,
  notices: Notices,
  context: Context.Context<never>
): void => {
  const style = stats.style ?? "none"
  const { target } = stats
  const made = stats.attempts - (stats.rehearsed ?? 0)
  const tries = target === undefined ? [] : (stats.tries ?? []).filter(({ isRehearsed }) => !isRehearsed)
  const series = seriesOf(style, stats.model ?? "none", operationOf(stats), statusOf(stats), target?.upstream ?? "")
  series.requests.updateUnsafe(1, context)
  // Health checks, lists and the admin API use no model.
  if (stats.requestedModel !== undefined) series.duration.updateUnsafe((now - stats.startedAt) / 1000, context)
  if (stats.requestedModel !== undefined && stats.identity !== undefined) {
    ofApp(stats.identity.shown.app).updateUnsafe(1, context)
  }
  if (stats.error !== undefined) streamErrors(style, stats.error, target?.upstream ?? "").updateUnsafe(1, context)
  if (stats.usage !== undefined) {
    series.inputTokens.updateUnsafe(stats.usage.promptTokens, context)
    series.outputTokens.updateUnsafe(stats.usage.completionTokens, context)
  }
  for (const { bill, model, upstream, usage } of stats.billed ?? []) {
    if (usage.details?.isCostRefused === true) counters.refusedCosts.updateUnsafe(1, context)
    if (bill === undefined) continue
    if (bill.unpriced.length > 0) {
      const units = bill.unpriced.slice(0, mostUnits).map(([unit]) => unit)
      notices.publish("price.missing", `${upstream}/${model}`, { upstream, model, units })
    }
    if (stats.cost && bill.cost) {
      costs(stats.model ?? "none", upstream).updateUnsafe(toUnits(bill.cost), context)
    }
    for (const [unit, amount] of bill.unpriced) addUnpriced(unpriced, unit, amount)
  }
  if (stats.promptCache !== undefined) countCache(stats, stats.promptCache, context)
  if (overran(stats)) counters.overruns.updateUnsafe(1, context)
  if (made === 0) return
  for (const { upstream } of tries) attempts(upstream).updateUnsafe(1, context)
  // An attempt that got no account reached no upstream.
  const elsewhere = made - tries.length
  if (elsewhere > 0) counters.attempts.updateUnsafe(elsewhere, context)
  // A rehearsal is no failure of a target.
  if (stats.failovers > 0 && stats.rehearsed === undefined) counters.failovers.updateUnsafe(stats.failovers, context)
  if (stats.retries > 0) counters.retries.updateUnsafe(stats.retries, context)
  if (stats.continues > 0) counters.continues.updateUnsafe(stats.continues, context)
  if (stats.calls > 0) counters.calls.updateUnsafe(stats.calls, context)
  if (stats.brokenCalls > 0) counters.brokenCalls.updateUnsafe(stats.brokenCalls, context)
  queueWait.updateUnsafe(stats.queued / 1000, context)
  if (stats.firstEventAt !== undefined) {
    series.firstToken.updateUnsafe((stats.firstEventAt - stats.startedAt) / 1000, context)
  }
}

/** The provided metric registry, such as that of an exporter, else a new one. */
export const layerRegistry: Layer.Layer<never> = Layer.effect(
  Metric.MetricRegistry,
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => Context.getOrUndefined(context, Metric.MetricRegistry) ?? new Map())
  )
)

export class RequestMetrics extends Context.Service<RequestMetrics, {
  readonly count: (stats: RequestStats) => void
  /** Amounts without a price by unit. They are outside of the registry, which takes a label `unit` for the unit of a metric. */
  readonly unpriced: Iterable<readonly [unit: string, amount: number]>
}>()("model-gateway/server/RequestMetrics") {
  static readonly layer: Layer.Layer<RequestMetrics> = Layer.effect(
    RequestMetrics,
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const context = Context.make(Metric.MetricRegistry, yield* Metric.MetricRegistry)
      const unpriced: UnpricedAmounts = new Map()
      const notices = yield* CurrentNotices
      return RequestMetrics.of({
        count: (stats) => countRequest(stats, monotonicMillis(clock), unpriced, notices, context),
        unpriced
      })
    })
  )
}
