/**
 * What is counted of requests, by GenAI semantic names where they exist. Labels are bounded: styles, configured models,
 * statuses; never a key, an identity or a caller's words.
 *
 * Every labelled metric is made once and kept, so that a request costs a few look-ups.
 */
import type * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { RequestStats } from "../../completion/RequestStats.ts"
import type { Operation } from "../../styles/Style.ts"
import { styles } from "../../styles/styles.ts"

/** Seconds: the buckets that the GenAI conventions name for durations. */
const seconds = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84]
const tokens = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576]

/** The outcome of a request as the labels say it: a status, or that the caller left before there was one. */
const statusOf = (stats: RequestStats): string => stats.status === undefined ? "left" : String(stats.status)

const kept = <A>(make: (...labels: ReadonlyArray<string>) => A) => {
  const made = new Map<string, A>()
  return (...labels: ReadonlyArray<string>): A => {
    const key = labels.join("\u0000")
    let metric = made.get(key)
    if (metric === undefined) {
      metric = make(...labels)
      made.set(key, metric)
    }
    return metric
  }
}

const operations = new Map<string | undefined, Operation>(
  styles.map(({ group, operation }) => [group.identifier, operation])
)

/** What the GenAI conventions call the operation of a request. */
export const operationOf = ({ embedding, style }: RequestStats): Operation =>
  embedding === undefined ? operations.get(style) ?? "chat" : "embeddings"

const labels = (model: string, operation = "chat") => ({
  gen_ai_operation_name: operation,
  gen_ai_request_model: model
})

const requests = kept((style, model, status) =>
  Metric.counter("gateway_requests_total", {
    description: "Requests by style, model and HTTP status",
    incremental: true,
    attributes: { style: style!, model: model!, status: status! }
  })
)

const streamErrors = kept((style, code) =>
  Metric.counter("gateway_errors_total", {
    description: "Errors that callers were told, within streams too, by code",
    incremental: true,
    attributes: { style: style!, code: code! }
  })
)

const durations = kept((style, model, operation) =>
  Metric.histogram("gen_ai_server_request_duration_seconds", {
    description: "Time from a request's head to the end of its reply",
    boundaries: seconds,
    attributes: { ...labels(model!, operation), style: style! }
  })
)

const firstTokens = kept((model, operation) =>
  Metric.histogram("gen_ai_server_time_to_first_token_seconds", {
    description: "Time from a request's head to the first event of its reply",
    boundaries: seconds,
    attributes: labels(model!, operation)
  })
)

const tokenUsage = kept((model, type, operation) =>
  Metric.histogram("gen_ai_client_token_usage", {
    description: "Tokens of a request by type",
    boundaries: tokens,
    attributes: { ...labels(model!, operation), gen_ai_token_type: type! }
  })
)

const queueWait = Metric.histogram("gateway_queue_wait_seconds", {
  description: "Time that requests waited for an account",
  boundaries: seconds
})

const counters = {
  attempts: Metric.counter("gateway_attempts_total", { description: "Attempts at the upstream", incremental: true }),
  failovers: Metric.counter("gateway_failovers_total", {
    description: "Attempts that were made on another account after a failure",
    incremental: true
  }),
  retries: Metric.counter("gateway_retries_total", {
    description: "Attempts that were made again at the same server, since there is no other account",
    incremental: true
  }),
  continues: Metric.counter("gateway_continues_total", {
    description: "Rounds that continued or resumed a reply",
    incremental: true
  }),
  calls: Metric.counter("gateway_tool_calls_total", { description: "Tool calls in replies", incremental: true }),
  brokenCalls: Metric.counter("gateway_tool_calls_cut_off_total", {
    description: "Tool calls that broke off or could not be repaired",
    incremental: true
  })
}

/** Counts a request that is over; `now` is the clock's milliseconds. One pass without an Effect per metric. */
export const countRequest = (stats: RequestStats, now: number, context: Context.Context<never>): void => {
  const update = (metric: Metric.Metric<number, unknown>, value: number) => metric.updateUnsafe(value, context)
  const add = (counter: Metric.Counter<number>, count: number) => {
    if (count > 0) update(counter, count)
  }
  const style = stats.style ?? "none"
  const model = stats.model ?? "none"
  const operation = operationOf(stats)
  update(requests(style, model, statusOf(stats)), 1)
  update(durations(style, model, operation), (now - stats.startedAt) / 1000)
  if (stats.error !== undefined) update(streamErrors(style, stats.error), 1)
  if (stats.usage !== undefined) {
    update(tokenUsage(model, "input", operation), stats.usage.promptTokens)
    update(tokenUsage(model, "output", operation), stats.usage.completionTokens)
  }
  if (stats.attempts === 0) return
  add(counters.attempts, stats.attempts)
  add(counters.failovers, stats.failovers)
  add(counters.retries, stats.retries)
  add(counters.continues, stats.continues)
  add(counters.calls, stats.calls)
  add(counters.brokenCalls, stats.brokenCalls)
  update(queueWait, stats.queued / 1000)
  if (stats.firstEventAt !== undefined) {
    update(firstTokens(model, operation), (stats.firstEventAt - stats.startedAt) / 1000)
  }
}
