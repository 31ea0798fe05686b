/**
 * The handler of `GET /metrics`, in the Prometheus text format. It requires the admin key unless `metrics.public` is true.
 * A worker answers with the metrics of all workers of its machine together.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Metric from "effect/Metric"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { type AccountFacts, Accounts, type UpstreamFacts } from "../../accounts/Accounts.ts"
import { shuttingDown } from "../../accounts/refusals.ts"
import { UpstreamActivity } from "../../accounts/UpstreamActivity.ts"
import { AdminAuth } from "../../admin/auth/AdminAuth.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { indexKeys } from "../../config/entries/keyIndex.ts"
import type { KeyRecord } from "../../config/keyRecords.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import type { QuotaWindow } from "../../domain/quota.ts"
import { clientAddress } from "../../http/clientAddress.ts"
import { apiId } from "../../http/reply.ts"
import { bearerToken } from "../../http/RequestContext.ts"
import { KeyLimits, type KeyUsage } from "../../usage/KeyLimits.ts"
import { usedRatios } from "../../usage/limitedWindows.ts"
import { MetricsGroup } from "../OperatorApi.ts"
import { CurrentMachine } from "../workers/Machine.ts"
import { Gauges } from "./gauges.ts"
import { RequestMetrics } from "./requestMetrics.ts"

/** Maximum number of accounts with their own series. */
export const mostAccounts = 1_000

/** Maximum number of keys with limits that have their own series: at most three for each window. */
const mostKeys = 1_000

/** A gauge, formatted on request: accounts and upstreams come and go, and a registry never drops a series. */
const family = (
  name: string,
  help: string,
  series: ReadonlyArray<readonly [labels: string, value: number]>,
  type: "counter" | "gauge" = "gauge"
) => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} ${type}`,
  ...series.map(([labels, value]) => `${name}{${labels}} ${value}`)
]

const text = (families: ReadonlyArray<ReadonlyArray<string>>): string => [...families.flat(), ""].join("\n")

const quoted = (text: string): string =>
  `"${text.replaceAll(/[\\"\n]/g, (sign) => sign === "\n" ? "\\n" : `\\${sign}`)}"`

/** Gauges of the quotas that the servers of accounts have stated. */
const quotaMetrics = (facts: ReadonlyArray<AccountFacts>, now: number) => {
  const series = (valueOf: (window: QuotaWindow) => number) =>
    facts.flatMap(({ hash, quota }) =>
      quota.map((window) => {
        const labels = `account="${hash}",window=${quoted(window.window)},model=${quoted(window.model ?? "")}`
        return [labels, valueOf(window)] as const
      })
    )
  const used = series((window) => window.used)
  if (used.length === 0) return []
  const resets = series(({ resets_at }) => Math.max(0, (resets_at - now) / 1_000))
  return [
    family("gateway_account_quota_used", "Used share of a window of an account's quota", used),
    family("gateway_account_quota_reset_seconds", "Seconds until a window of an account's quota resets", resets)
  ]
}

/**
 * Gauges of the first accounts by hash: whether each is in rotation, and its slots in use. `showsUpstreams` labels them with their
 * upstreams. `now` is in Unix milliseconds.
 */
export const accountMetrics = (facts: ReadonlyArray<AccountFacts>, showsUpstreams = false, now = 0): string => {
  if (facts.length === 0) return ""
  const series = (valueOf: (account: AccountFacts) => number) =>
    facts.slice(0, mostAccounts).map((account) => {
      const upstream = showsUpstreams ? `,upstream="${account.upstream}"` : ""
      return [`account="${account.hash}"${upstream}`, valueOf(account)] as const
    })
  return text([
    family(
      "gateway_account_ready",
      "Whether an account is in rotation",
      series(({ disabled, health }) => health === "ready" && !disabled ? 1 : 0)
    ),
    family("gateway_account_slots_in_use", "Slots of an account that are taken", series(({ inUse }) => inUse)),
    ...quotaMetrics(facts.slice(0, mostAccounts), now)
  ])
}

/** Amounts without a price, by unit. */
const unpricedMetrics = (amounts: Iterable<readonly [unit: string, amount: number]>): string => {
  const series = Array.from(amounts, ([unit, amount]) => [`unit="${unit}"`, amount] as const)
  return series.length === 0
    ? ""
    : text([family("gateway_unpriced_total", "Amounts of units that have no price", series, "counter")])
}

/** The use of the limits of keys, each by its id. */
export const keyMetrics = (
  keys: ReadonlyArray<{ readonly id: string; readonly record: KeyRecord; readonly usage: KeyUsage }>
): string => {
  const series = keys.flatMap(({ id, record, usage }) =>
    usedRatios(record, usage).map(({ ratio, unit, window }) =>
      [`key="${id}",window="${window}",unit="${unit}"`, ratio] as const
    )
  )
  return series.length === 0 ? "" : text([
    family("gateway_key_limit_used_ratio", "Used share of a key's limit in the current window; 1 is all of it", series)
  ])
}

/** Gauges of each upstream where there are several; the configuration bounds them. */
export const upstreamMetrics = (facts: ReadonlyArray<UpstreamFacts>): string => {
  const series = (valueOf: (upstream: UpstreamFacts) => number) =>
    facts.map((upstream) => [`upstream="${upstream.name}"`, valueOf(upstream)] as const)
  const byHealth = (["ready", "cooling", "out", "disabled"] as const).flatMap((health) =>
    facts.map(({ accounts, name }) => [`upstream="${name}",health="${health}"`, accounts[health]] as const)
  )
  return text([
    family(
      "gateway_upstream_ready",
      "Whether an upstream is enabled and not cooled",
      series(({ state }) => state === "ready" ? 1 : 0)
    ),
    family("gateway_upstream_accounts", "Accounts of an upstream by health", byHealth),
    family("gateway_upstream_slots_in_use", "Slots of an upstream that are taken", series(({ in_use }) => in_use)),
    family(
      "gateway_upstream_queue_length",
      "Requests that wait for an upstream; one that waits for several counts at each",
      series(({ waiting }) => waiting)
    )
  ])
}

const contentType = "text/plain; version=0.0.4; charset=utf-8"

const missing = gatewayError("authentication_failed", "Send Authorization: Bearer <admin key>, or set metrics.public")

export const MetricsHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(MetricsGroup),
  "metrics",
  Effect.fnUntraced(function*(handlers) {
    const auth = yield* AdminAuth
    const config = yield* ConfigStore
    const gauges = yield* Gauges
    const accounts = yield* Accounts
    const activity = yield* UpstreamActivity
    const limits = yield* KeyLimits
    const { unpriced } = yield* RequestMetrics
    /** The first keys with limits. Without the store nothing is known about them. */
    const ofKeys = Effect.gen(function*() {
      const current = config.now()
      const limited: Array<{ readonly id: string; readonly record: KeyRecord }> = []
      for (const { id } of current.key_records.size === 0 ? [] : (yield* indexKeys(current)).keys) {
        const record = current.key_records.get(id)
        if (record !== undefined && record.limits.length > 0) limited.push({ id, record })
        if (limited.length === mostKeys) break
      }
      const usages = limited.length === 0 ? [] : yield* limits.usageOf(limited.map(({ id }) => id))
      return keyMetrics(limited.map((key, i) => ({ ...key, usage: usages[i]! })))
    }).pipe(Effect.orElseSucceed(() => ""))
    const formatted = Effect.provideService(
      PrometheusMetrics.format(),
      Metric.MetricRegistry,
      yield* Metric.MetricRegistry
    )
    const own = Effect.gen(function*() {
      yield* gauges.read
      const { accounts: configured, route_table: { showsUpstreams } } = config.now()
      const described = yield* accounts.describe(
        configured.slice(0, mostAccounts).map(({ name }) => name)
      )
      const registered = (yield* formatted).replace(/\n*$/, "\n")
      const ofUpstreams = showsUpstreams ? upstreamMetrics(yield* activity.upstreams) : ""
      return registered + unpricedMetrics(unpriced) +
        accountMetrics(described, showsUpstreams, yield* Clock.currentTimeMillis) + ofUpstreams +
        (yield* ofKeys)
    })
    const machine = yield* CurrentMachine
    if (machine !== undefined) {
      machine.registerMetrics(own)
      yield* Effect.addFinalizer(() => machine.sendMetrics)
    }
    const metrics = machine === undefined
      ? own
      // The counters of one worker would look like a restart. Without an answer the parent is gone, and this worker drains.
      : Effect.flatMap(machine.metrics, (sum) => sum === undefined ? Effect.fail(shuttingDown) : Effect.succeed(sum))
    return handlers.handle(
      "metrics",
      Effect.fnUntraced(function*() {
        if (!config.now().metrics.public) {
          const request = yield* HttpServerRequest.HttpServerRequest
          const bearer = bearerToken(request.headers)
          if (bearer === undefined) return yield* missing
          yield* auth.authorize(bearer, clientAddress(request, config.now().server))
        }
        return HttpServerResponse.text(yield* metrics, { contentType })
      })
    )
  })
)
