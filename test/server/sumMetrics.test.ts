/** The sum of the metrics of workers. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import fc from "fast-check"
import { gaugeRule } from "../../src/server/workers/gaugeRules.ts"
import { countersOf, sumMetrics } from "../../src/server/workers/sumMetrics.ts"

/** What a worker counts, as it writes it. */
const textOf = (requests: Readonly<Record<string, number>>, durations: ReadonlyArray<number>, gauge: number) =>
  Effect.runSync(
    Effect.gen(function*() {
      for (const [model, count] of Object.entries(requests)) {
        yield* Metric.update(
          Metric.counter("requests_total", { description: "Requests", attributes: { model } }),
          count
        )
      }
      const histogram = Metric.histogram("seconds", { description: "Durations", boundaries: [1, 2, 4] })
      for (const duration of durations) yield* Metric.update(histogram, duration)
      for (const name of ["process_memory_bytes", "gateway_store_up", "gateway_nodes"]) {
        yield* Metric.update(Metric.gauge(name, { description: "A gauge" }), gauge)
      }
      return yield* PrometheusMetrics.format()
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

const worker = fc.record({
  requests: fc.dictionary(fc.constantFrom("a model", "b", "c\"d"), fc.nat(1_000)),
  durations: fc.array(fc.integer({ min: 0, max: 8 }), { maxLength: 20 }),
  gauge: fc.nat(9)
})

/** The values by name and labels. */
const samples = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).map((line) => {
      const at = line.lastIndexOf(" ")
      return [line.slice(0, at), Number(line.slice(at + 1))] as const
    })
  )

const valueAt = (text: string, key: string): number => samples(text).get(key) ?? 0

describe("the metrics of a machine", () => {
  it("have the counters and histograms of one worker with all the work", () => {
    fc.assert(fc.property(fc.array(worker, { minLength: 1, maxLength: 5 }), (workers) => {
      const requests: Record<string, number> = {}
      for (const each of workers) {
        for (const [model, count] of Object.entries(each.requests)) requests[model] = (requests[model] ?? 0) + count
      }
      const one = textOf(requests, workers.flatMap(({ durations }) => durations), 0)
      const sum = sumMetrics(workers.map((each) => textOf(each.requests, each.durations, each.gauge)), gaugeRule)
      for (const [key, value] of samples(countersOf([one]))) {
        // The smallest and the largest value of a histogram do not add; Prometheus has none.
        assert.strictEqual(valueAt(sum, key), value, key)
      }
    }))
  })

  it("combine a gauge by its rule, which its HELP line names", () => {
    fc.assert(fc.property(fc.array(fc.nat(9), { minLength: 1, maxLength: 5 }), (values) => {
      const sum = sumMetrics(values.map((value) => textOf({}, [], value)), gaugeRule)
      assert.strictEqual(valueAt(sum, "process_memory_bytes"), values.reduce((a, b) => a + b))
      assert.strictEqual(valueAt(sum, "gateway_store_up"), Math.min(...values))
      assert.strictEqual(valueAt(sum, "gateway_nodes"), Math.max(...values))
      assert.include(sum, "# HELP process_memory_bytes A gauge (sum of the workers)\n")
      assert.include(sum, "# HELP gateway_nodes A gauge (largest value of the workers)\n")
    }))
  })

  it("keep the counters of ended workers, and drop their gauges", () => {
    fc.assert(fc.property(worker, worker, (living, ended) => {
      const texts = [living, ended].map((each) => textOf(each.requests, each.durations, each.gauge))
      const sum = sumMetrics(texts.slice(0, 1), gaugeRule, countersOf(texts.slice(1)))
      for (const [key, value] of samples(countersOf(texts))) assert.strictEqual(valueAt(sum, key), value, key)
      assert.strictEqual(valueAt(sum, "process_memory_bytes"), living.gauge)
    }))
  })
})
