/**
 * How the gauges of workers become those of the machine. Counters and histograms add.
 */
import type { GaugeRule } from "./sumMetrics.ts"

/** Gauges of a worker's own part, which add, and one that needs the smallest value. All others show the largest value. */
const rules: ReadonlyMap<string, GaugeRule> = new Map([
  ["gateway_requests_active", "sum"],
  ["gateway_websockets_open", "sum"],
  ["gateway_slots_in_use", "sum"],
  ["gateway_queue_length", "sum"],
  ["process_memory_bytes", "sum"],
  ["gateway_store_up", "smallest"]
])

export const gaugeRule = (name: string): GaugeRule => rules.get(name) ?? "largest"
