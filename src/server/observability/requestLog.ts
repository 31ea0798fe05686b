/**
 * One structured log line for each finished request. A disconnected caller is not an error.
 */
import * as Effect from "effect/Effect"
import * as LogLevel from "effect/LogLevel"
import { outcomeOf, type RequestStats, targetOf } from "../../completion/RequestStats.ts"
import { none } from "../../domain/usageNames.ts"

/** Removes absent fields. */
const present = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const kept: Record<string, unknown> = {}
  for (const name of Object.keys(fields)) {
    const value = fields[name]
    if (value !== undefined) kept[name] = value
  }
  return kept
}

/** `Info` for requests of the styles, internal errors and unknown routes; `Debug` for probes, lists and admin reads. */
const levelOf = (stats: RequestStats): "Info" | "Debug" =>
  stats.requestedModel === undefined && stats.path === undefined && (stats.status ?? 0) < 500 ? "Debug" : "Info"

/** The cause of the last failed try, with those of the tries before it in `earlier`. */
const causeOf = ({ cause, failures }: RequestStats) => {
  const last = failures?.at(-1)
  if (failures === undefined || last === undefined) return cause
  return failures.length === 1 ? last : { ...last, earlier: failures.slice(0, -1) }
}

/** Writes the line. Does nothing below the `minimum` level. */
export const logRequest = (stats: RequestStats, now: number, minimum: LogLevel.LogLevel): Effect.Effect<void> => {
  const level = levelOf(stats)
  if (!LogLevel.isGreaterThanOrEqualTo(level, minimum)) return Effect.void
  const fields = present({
    request_id: stats.id,
    client: stats.client,
    style: stats.style,
    ...stats.identity?.shown,
    key: stats.key === none ? undefined : stats.key,
    path: stats.path?.slice(0, 100),
    model: stats.model,
    requested_model: stats.requestedModel?.slice(0, 100),
    stream: stats.stream || undefined,
    status: stats.status,
    outcome: outcomeOf(stats),
    cause: causeOf(stats),
    account: stats.accountHash,
    upstream: stats.target?.upstream,
    target: targetOf(stats),
    attempts: stats.attempts || undefined,
    rehearsal: stats.rehearsed === undefined ? undefined : true,
    failovers: stats.failovers || undefined,
    retries: stats.retries || undefined,
    continues: stats.continues || undefined,
    tool_calls: stats.calls || undefined,
    input_tokens: stats.usage?.promptTokens,
    output_tokens: stats.usage?.completionTokens,
    queue_ms: stats.attempts === 0 ? undefined : Math.round(stats.queued),
    first_event_ms: stats.firstEventAt === undefined ? undefined : Math.round(stats.firstEventAt - stats.startedAt),
    duration_ms: Math.round(now - stats.startedAt)
  })
  return Effect.annotateLogs(Effect.logWithLevel(level)("request"), fields)
}
