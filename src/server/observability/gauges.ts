/**
 * Gauges that are read on each request for metrics: the pool, active requests and the process.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { Accounts } from "../../accounts/Accounts.ts"
import { Nodes } from "../../admin/nodes/Nodes.ts"
import { buildInfo, currentVersion } from "../../admin/system/build.ts"
import { Lifecycle } from "../Lifecycle.ts"
import { total } from "./requestMetrics.ts"

const gauge = (name: string, description: string, attributes?: Record<string, string>) =>
  Metric.gauge(name, { description, ...(attributes === undefined ? {} : { attributes }) })

const accountGauge = (health: string) => gauge("gateway_accounts", "Accounts by health", { health })
const delayGauge = (stat: string) =>
  gauge("nodejs_eventloop_delay_seconds", "Delay of the event loop since the last reading", { stat })
const memoryGauge = (kind: string) => gauge("process_memory_bytes", "Memory of the process", { kind })
const scriptCounter = (script: string) =>
  total("gateway_store_scripts_total", "Scripts that the store has run", { script })

const gauges = {
  build: gauge("gateway_build_info", "The running build; always 1", {
    version: currentVersion,
    commit: buildInfo.commit ?? "unknown",
    form: buildInfo.form
  }),
  active: gauge("gateway_requests_active", "Requests under way, bodies included"),
  slots: gauge("gateway_slots_in_use", "Slots of accounts that are taken"),
  waiting: gauge("gateway_queue_length", "Requests that wait for an account"),
  ready: accountGauge("ready"),
  cooling: accountGauge("cooling"),
  out: accountGauge("out"),
  draining: accountGauge("draining"),
  storeUp: gauge("gateway_store_up", "Whether the shared store answers"),
  nodes: gauge("gateway_nodes", "Nodes that share the store"),
  delayMean: delayGauge("mean"),
  delayP99: delayGauge("p99"),
  delayMax: delayGauge("max"),
  resident: memoryGauge("resident"),
  heap: memoryGauge("heap_used")
}

const counters = {
  logins: total("gateway_logins_total", "Logins of accounts"),
  loginFailures: total("gateway_login_failures_total", "Logins that failed"),
  refreshes: total("gateway_token_refreshes_total", "Tokens that were refreshed"),
  stickyHits: total("gateway_sticky_hits_total", "Turns of conversations on the account of the turn before"),
  stickyMoves: total("gateway_sticky_moves_total", "Turns of conversations on another account than the turn before"),
  leasesLost: total("gateway_leases_lost_total", "Leases that the store had dropped while they ran"),
  lostWrites: total("gateway_store_lost_writes_total", "Copies of stored responses that could not be written"),
  cpu: total("process_cpu_seconds_total", "CPU time of the process, user and system")
}

/** Interval of the delay timer, in milliseconds. */
const resolution = 20
const nanoseconds = 1e9

export class Gauges extends Context.Service<Gauges, {
  readonly read: Effect.Effect<void>
}>()("model-gateway/server/Gauges") {
  static readonly layer: Layer.Layer<Gauges, never, Accounts | Lifecycle | Nodes> = Layer.effect(
    Gauges,
    Effect.gen(function*() {
      const accounts = yield* Accounts
      const lifecycle = yield* Lifecycle
      const nodes = yield* Nodes
      const registry = yield* Metric.MetricRegistry
      const delay = yield* Effect.acquireRelease(
        Effect.sync(() => {
          const histogram = monitorEventLoopDelay({ resolution })
          histogram.enable()
          return histogram
        }),
        (histogram) => Effect.sync(() => histogram.disable())
      )
      /** Totals at the last reading; counters are incremented by the difference. */
      const counted = new Map<string, number>()
      const count = (counter: Metric.Counter<number>, name: string, value: number) => {
        const since = Math.max(0, value - (counted.get(name) ?? 0))
        counted.set(name, value)
        return Metric.update(counter, since)
      }
      return Gauges.of({
        read: Effect.gen(function*() {
          const pool = yield* accounts.metrics
          const memory = process.memoryUsage()
          const cpu = process.cpuUsage()
          const values: ReadonlyArray<readonly [Metric.Gauge<number>, number]> = [
            [gauges.build, 1],
            [gauges.active, lifecycle.active()],
            [gauges.slots, pool.inUse],
            [gauges.waiting, pool.waiting],
            [gauges.ready, pool.accounts.ready],
            [gauges.cooling, pool.accounts.cooling],
            [gauges.out, pool.accounts.out],
            [gauges.draining, pool.accounts.draining],
            [gauges.delayMean, delayOf(delay.mean)],
            [gauges.delayP99, delayOf(delay.percentile(99))],
            [gauges.delayMax, delayOf(delay.max)],
            [gauges.resident, memory.rss],
            [gauges.heap, memory.heapUsed]
          ]
          // Gateways that share a registry share the process too.
          const { count: countedCpu } = yield* Metric.value(counters.cpu)
          yield* Metric.update(counters.cpu, Math.max(0, (cpu.user + cpu.system) / 1e6 - countedCpu))
          yield* count(counters.logins, "logins", pool.logins)
          yield* count(counters.loginFailures, "loginFailures", pool.loginFailures)
          yield* count(counters.refreshes, "refreshes", pool.refreshes)
          // Without sticky conversations there is nothing to count.
          if (pool.stickyHits + pool.stickyMoves > 0) {
            yield* count(counters.stickyHits, "stickyHits", pool.stickyHits)
            yield* count(counters.stickyMoves, "stickyMoves", pool.stickyMoves)
          }
          const shared = yield* nodes.metrics
          if (shared !== undefined) {
            yield* Metric.update(gauges.storeUp, shared.up ? 1 : 0)
            yield* Metric.update(gauges.nodes, shared.nodes)
            yield* count(counters.leasesLost, "leasesLost", shared.leasesLost)
            yield* count(counters.lostWrites, "lostWrites", shared.lostWrites)
            for (const [script, runs] of shared.scripts) yield* count(scriptCounter(script), `script ${script}`, runs)
          }
          for (const [metric, value] of values) yield* Metric.update(metric, value)
          delay.reset()
        }).pipe(Effect.provideService(Metric.MetricRegistry, registry))
      })
    })
  )
}

/** Delay in seconds. The histogram measures the interval between timer ticks; NaN if there was no tick. */
const delayOf = (between: number): number =>
  Number.isFinite(between) ? Math.max(0, between / nanoseconds - resolution / 1000) : 0
