/**
 * The cost of metrics, log lines and traces: CPU time of gateways with more and more of them for the same requests. The embedded upstream
 * answers, and a collector process receives the exports.
 */
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { type Row, table } from "./table.ts"
import { callers, chat, cpuSeconds, endProcess, median, startProcess, type Target } from "./targets.ts"

const requests = 3000
const concurrency = 20
const rounds = 3
const what = chat("short", false)

/** CPU microseconds of a request. */
const load = async (target: Target): Promise<number> => {
  const before = cpuSeconds([target.pid])
  let left = requests
  await callers(target, what, concurrency, () => left-- > 0)
  return (cpuSeconds([target.pid]) - before) / requests * 1e6
}

const startGateway = async (name: string, env: Readonly<Record<string, string>>): Promise<Target> => {
  const { pid, port } = await startProcess({
    args: ["src/main.ts"],
    env: {
      PORT: "0",
      GATEWAY_ADMIN_KEY: "bench",
      GATEWAY_CONFIG_JSON: JSON.stringify({
        keys: ["bench-key"],
        captures: { enabled: false },
        runtime: { account_max_inflight: 256, global_max_inflight: 256 }
      }),
      ...env
    },
    ready: /listens on http:\/\/[^:]+:(\d+)/
  })
  return { name, url: `http://127.0.0.1:${port}`, pid }
}

/** Prints the table. */
export const observabilityBench = async (): Promise<void> => {
  const collector = createServer((incoming, response) => {
    incoming.resume().on("end", () => response.end("{}"))
  }).listen(0, "127.0.0.1")
  await once(collector, "listening")
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
  const targets = [
    { name: "metrics", env: { GATEWAY_LOG_LEVEL: "none" } },
    { name: "metrics, log lines", env: { GATEWAY_LOG_LEVEL: "info" } },
    {
      name: "metrics, log lines, traces and logs exported",
      env: { GATEWAY_LOG_LEVEL: "info", OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }
    }
  ]
  const running = await Promise.all(targets.map(({ env, name }) => startGateway(name, env)))
  try {
    for (const target of running) await load(target)
    const costs = running.map((): Array<number> => [])
    for (let round = 0; round < rounds; round++) {
      for (const [i, target] of running.entries()) costs[i]!.push(await load(target))
    }
    const [base] = costs.map(median)
    const rows = running.map(({ name }, i): Row => [name, median(costs[i]!), median(costs[i]!) - base!])
    process.stdout.write(`${table(["", "CPU µs/request", "more than metrics alone"], rows)}\n`)
  } finally {
    collector.close()
    collector.closeAllConnections()
    for (const { pid } of running) await endProcess(pid)
  }
}
