/**
 * The cost of metrics, log lines and traces: CPU time of gateways with more and more of them for the same requests. The embedded upstream
 * answers, and a collector process receives the exports.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { Agent, createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { createInterface } from "node:readline"
import { type Row, table } from "./table.ts"

const ticksPerSecond = 100
const requests = 3000
const concurrency = 20
const rounds = 3

/** CPU seconds of a process so far, user and system. */
const cpuSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

const agent = new Agent({ keepAlive: true, maxSockets: concurrency })
const body = JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "!say short" }] })

const ask = (port: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const outgoing = request({
      port,
      path: "/v1/chat/completions",
      method: "POST",
      agent,
      headers: { authorization: "Bearer bench", "content-length": Buffer.byteLength(body) }
    }, (response) => {
      response.resume().on("end", resolve).on("error", reject)
    })
    outgoing.on("error", reject)
    outgoing.end(body)
  })

const load = async (port: string): Promise<void> => {
  let left = requests
  const worker = async () => {
    while (left-- > 0) await ask(port)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}

const start = async (env: Record<string, string>) => {
  const child = spawn(process.execPath, ["src/main.ts"], {
    env: {
      ...process.env,
      PORT: "0",
      GATEWAY_ADMIN_KEY: "bench",
      GATEWAY_CONFIG_JSON: JSON.stringify({
        keys: ["bench"],
        captures: { enabled: false },
        runtime: { account_max_inflight: 256, global_max_inflight: 256 }
      }),
      ...env
    },
    stdio: ["ignore", "inherit", "pipe"]
  })
  for await (const line of createInterface({ input: child.stderr })) {
    const found = /listens on http:\/\/[^:]+:(\d+)/.exec(line)
    if (found === null) continue
    child.stderr.resume()
    return { child, port: found[1]!, pid: child.pid! }
  }
  throw new Error("the gateway ended before it listened")
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
  const running = await Promise.all(targets.map(async ({ env, name }) => ({ name, ...(await start(env)) })))
  try {
    for (const { port } of running) await load(port)
    const samples = new Map<string, Array<number>>(running.map(({ name }) => [name, []]))
    for (let round = 0; round < rounds; round++) {
      for (const { name, pid, port } of running) {
        const before = cpuSeconds(pid)
        await load(port)
        samples.get(name)!.push((cpuSeconds(pid) - before) / requests * 1e6)
      }
    }
    const median = (values: ReadonlyArray<number>) => values.toSorted((a, b) => a - b)[values.length >> 1]!
    const base = median(samples.get(targets[0]!.name)!)
    const rows = targets.map(({ name }): Row => {
      const cpu = median(samples.get(name)!)
      return [name, cpu, cpu - base]
    })
    process.stdout.write(`${table(["", "CPU µs/request", "more than metrics alone"], rows)}\n`)
  } finally {
    agent.destroy()
    collector.close()
    collector.closeAllConnections()
    for (const { child } of running) {
      child.kill("SIGKILL")
      await once(child, "exit")
    }
  }
}
