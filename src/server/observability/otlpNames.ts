/**
 * Metrics of the GenAI conventions as collectors get them. `/metrics` writes names as Prometheus does, in which dots and units have become
 * underscores and endings.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { MetricsData } from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"

/** The name and the unit of a metric by its name here. */
const metrics: ReadonlyMap<string, readonly [name: string, unit: string]> = new Map([
  ["gen_ai_client_token_usage", ["gen_ai.client.token.usage", "{token}"]],
  ["gen_ai_server_request_duration_seconds", ["gen_ai.server.request.duration", "s"]],
  ["gen_ai_server_time_to_first_token_seconds", ["gen_ai.server.time_to_first_token", "s"]]
])

/** The attributes of these metrics by their labels here. */
const attributes: ReadonlyMap<string, string> = new Map([
  ["gen_ai_operation_name", "gen_ai.operation.name"],
  ["gen_ai_request_model", "gen_ai.request.model"],
  ["gen_ai_token_type", "gen_ai.token.type"]
])

type Metric = MetricsData["resourceMetrics"][number]["scopeMetrics"][number]["metrics"][number]

const renamed = (metric: Metric): Metric => {
  const own = metrics.get(metric.name)
  if (own === undefined || metric.histogram === undefined) return metric
  const [name, unit] = own
  const dataPoints = metric.histogram.dataPoints.map((point) => ({
    ...point,
    attributes: (point.attributes ?? []).map(({ key, value }) => ({ key: attributes.get(key) ?? key, value }))
  }))
  return { ...metric, name, unit, histogram: { ...metric.histogram, dataPoints } }
}

/** Writes exports as JSON, with the conventions' names of metrics. */
export const layerSerialization: Layer.Layer<OtlpSerialization.OtlpSerialization> = Layer.effect(
  OtlpSerialization.OtlpSerialization,
  Effect.map(OtlpSerialization.OtlpSerialization, (json) => ({
    ...json,
    metrics: ({ resourceMetrics }) =>
      json.metrics({
        resourceMetrics: resourceMetrics.map((resource) => ({
          ...resource,
          scopeMetrics: resource.scopeMetrics.map((scope) => ({ ...scope, metrics: scope.metrics.map(renamed) }))
        }))
      })
  }))
).pipe(Layer.provide(OtlpSerialization.layerJson))
