/**
 * Logs and traces of requests, and their export to a collector.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as Layer from "effect/Layer"
import * as Otlp from "effect/observability/Otlp"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import type * as Tracer from "effect/Tracer"
import { GivenNodeId } from "../../admin/nodes/Nodes.ts"
import { currentVersion } from "../../admin/system/build.ts"
import { CurrentRequestWatch, type RequestStats, targetOf } from "../../completion/RequestStats.ts"
import { EnvironmentInvalid, textVariable } from "../../config/Environment.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { layerSerialization } from "./otlpNames.ts"
import { logRequest } from "./requestLog.ts"
import { layerRegistry, operationOf } from "./requestMetrics.ts"

/** Adds attributes to the request's span, named after the GenAI conventions where possible. */
const describe = (span: Tracer.Span, stats: RequestStats) => {
  const attributes: ReadonlyArray<readonly [string, unknown]> = [
    ["http.response.status_code", stats.status],
    ["error.type", stats.error],
    ["gateway.account", stats.accountHash],
    ["gateway.upstream", stats.target?.upstream],
    ["gateway.target", targetOf(stats)],
    ["gateway.attempts", stats.attempts === 0 ? undefined : stats.attempts],
    ["gateway.queue_ms", stats.attempts === 0 ? undefined : stats.queued],
    ["gen_ai.operation.name", stats.attempts === 0 ? undefined : operationOf(stats)],
    ["gen_ai.request.model", stats.requestedModel],
    ["gen_ai.response.model", stats.model],
    ["gen_ai.usage.input_tokens", stats.usage?.promptTokens],
    ["gen_ai.usage.output_tokens", stats.usage?.completionTokens],
    ["gen_ai.response.finish_reasons", stats.finish === undefined ? undefined : [stats.finish]]
  ]
  for (const [name, value] of attributes) if (value !== undefined) span.attribute(name, value)
}

/** Logs each finished request. With `traced`, each is also a span of the current tracer. */
export const watchRequests = (traced: boolean): Layer.Layer<never> =>
  Layer.succeed(CurrentRequestWatch, {
    traced,
    ended: (stats, span) =>
      Effect.contextWith((context: Context.Context<never>) => {
        const now = monotonicMillis(Context.get(context, Clock.Clock))
        if (span !== undefined) describe(span, stats)
        return logRequest(stats, now, Context.get(context, References.MinimumLogLevel))
      })
  })

/** Disables the library's server and client spans, which would contain addresses with queries. */
const ownSpansOnly = Layer.mergeAll(
  Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true),
  Layer.succeed(HttpClient.TracerDisabledWhen, () => true)
)

/** Avoids the cost of spans without an exporter. */
const untraced = Layer.merge(watchRequests(false), Layer.succeed(References.TracerEnabled, false))

const signals = ["TRACES", "LOGS", "METRICS"] as const

/**
 * The signals to export by the standard variables: those with an endpoint, unless `OTEL_<signal>_EXPORTER` names other
 * exporters. The default of that variable is `otlp` for OpenTelemetry, but `none` for the library.
 */
const exported = Effect.gen(function*() {
  if ((yield* textVariable("OTEL_SDK_DISABLED")).toLowerCase() === "true") return []
  const everywhere = yield* textVariable("OTEL_EXPORTER_OTLP_ENDPOINT")
  return yield* Effect.filter(signals, (signal) =>
    Effect.gen(function*() {
      const endpoint = yield* textVariable(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`)
      const exporters = yield* textVariable(`OTEL_${signal}_EXPORTER`)
      return endpoint + everywhere !== "" &&
        (exporters === "" || exporters.split(",").some((each) => each.trim() === "otlp"))
    }))
})

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

const attributes = Config.Record(
  Schema.StringFromUriComponent,
  Schema.StringFromUriComponent,
  "OTEL_RESOURCE_ATTRIBUTES",
  {
    trim: true
  }
)

/** The service name of the standard variables. The library reports unreadable variables. */
const serviceName = Effect.gen(function*() {
  const named = yield* textVariable("OTEL_SERVICE_NAME")
  if (named !== "") return named
  return (yield* Effect.orElseSucceed(attributes, () => undefined))?.["service.name"] || "model-gateway"
})

/** Converts the library's defect for an unreadable variable to an error that names the variable. */
const invalidVariable = (cause: Cause.Cause<never>): Cause.Cause<EnvironmentInvalid> => {
  const defect = Cause.squash(cause)
  if (!(defect instanceof Config.ConfigError) || !Schema.isSchemaError(defect.cause)) return cause
  const lines = formatIssue(defect.cause.issue).issues.map(({ message, path }) => `${path?.join(".")}: ${message}`)
  return Cause.fail(new EnvironmentInvalid({ message: lines.join("\n") }))
}

/**
 * Logs requests, provides the metric registry, and exports traces, logs and metrics as the standard OpenTelemetry
 * variables (`OTEL_EXPORTER_OTLP_ENDPOINT` and others) say.
 */
export const Observability: Layer.Layer<never, EnvironmentInvalid, HttpClient.HttpClient> = Layer.unwrap(
  Effect.gen(function*() {
    const instance = yield* GivenNodeId
    const sent = yield* exported
    if (sent.length === 0) return Layer.merge(untraced, ownSpansOnly)
    const variables = ConfigProvider.fromEnvRecord(
      Object.fromEntries(sent.map((signal) => [`OTEL_${signal}_EXPORTER`, "otlp"]))
    )
    const exporter = Otlp.layerFromConfig({
      resource: {
        serviceName: yield* serviceName,
        serviceVersion: currentVersion,
        ...(instance === undefined ? {} : { attributes: { "service.instance.id": instance } })
      }
    })
      .pipe(
        Layer.provide(layerSerialization),
        Layer.provide(ConfigProvider.layerAdd(variables, { asPrimary: true })),
        Layer.catchCause((cause) => Layer.effectDiscard(Effect.failCause(invalidVariable(cause))))
      )
    return Layer.mergeAll(sent.includes("TRACES") ? watchRequests(true) : untraced, ownSpansOnly, exporter)
  })
).pipe(Layer.provideMerge(layerRegistry))
