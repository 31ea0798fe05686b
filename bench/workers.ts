/**
 * Workers on one port of a machine: replies per second and CPU time per reply with 1 and 2 workers over a real redis-server, and with 4 on a
 * machine that has four cores. The callers run on the same cores with the lowest priority; the embedded upstream runs in the workers.
 */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync, readFileSync } from "node:fs"
import { availableParallelism, constants, setPriority } from "node:os"
import path from "node:path"
import { redisServer } from "../test/support/redisServer.ts"
import { expectSoon } from "./soak/until.ts"
import { type Row, table } from "./table.ts"
import { type Ask, callers, chat, cpuSeconds, effort, median, type Target, treeOf } from "./targets.ts"

const rounds = Math.max(1, Math.round(5 * effort))
const concurrency = 32

interface Machine extends Target {
  readonly stop: () => Promise<void>
}

const startMachine = async (workers: number, store: string | undefined, folder: string): Promise<Machine> => {
  const name = store === undefined ? "1 process, no store" : `${workers} worker${workers === 1 ? "" : "s"}`
  const log = path.join(folder, `${name}.log`)
  const out = openSync(log, "w")
  const child = spawn(process.execPath, ["src/main.ts"], {
    env: {
      ...process.env,
      PORT: "0",
      GATEWAY_WORKERS: String(workers),
      GATEWAY_ADMIN_KEY: "bench-admin-key-of-many-letters",
      GATEWAY_DATA_DIR: path.join(folder, name),
      GATEWAY_CONFIG_JSON: JSON.stringify({
        keys: ["bench-key"],
        upstream: { driver: "embedded" },
        runtime: { account_max_inflight: 256 }
      }),
      ...(store === undefined ? {} : { GATEWAY_STORE_URL: store, GATEWAY_STORE_TIMEOUT_MS: "1500" })
    },
    stdio: ["ignore", out, out]
  })
  const ended = once(child, "exit")
  let url = ""
  closeSync(out)
  await expectSoon(`${name} serves`, async () => {
    const said = readFileSync(log, "utf8")
    if (child.exitCode !== null) throw new Error(said)
    url = /listens on (http:\S+)/.exec(said)?.[1] ?? ""
    return url !== "" && (workers === 1 || [...said.matchAll(/ serves \(process/g)].length === workers)
  })
  return {
    name,
    url,
    pid: child.pid!,
    stop: async () => {
      child.kill("SIGKILL")
      await ended
    }
  }
}

/** Replies per second, and CPU microseconds per reply of all processes together. */
const load = async (machine: Machine, what: Ask, count: number) => {
  const pids = await treeOf(machine.pid)
  const before = cpuSeconds(pids)
  const began = performance.now()
  let left = count
  await callers(machine, what, concurrency, () => left-- > 0)
  const seconds = (performance.now() - began) / 1000
  return { rate: count / seconds, cpu: (cpuSeconds(pids) - before) / count * 1e6 }
}

/** Runs the benchmark and prints its table. */
export const workersBench = (): Promise<void> =>
  Effect.gen(function*() {
    const single = yield* redisServer()
    const double = yield* redisServer()
    const fourfold = availableParallelism() < 4 ? undefined : yield* redisServer()
    yield* Effect.promise(async () => {
      const machines = [
        await startMachine(1, undefined, single.folder),
        await startMachine(1, single.url, single.folder),
        await startMachine(2, double.url, double.folder),
        ...(fourfold === undefined ? [] : [await startMachine(4, fourfold.url, fourfold.folder)])
      ]
      // Only the callers: the machines have started with the usual priority.
      setPriority(constants.priority.PRIORITY_LOW)
      try {
        const rows: Array<Row> = []
        for (
          const [kind, what, most] of [
            ["chat, whole", chat("a short question", false), 3_000],
            ["chat, stream", chat("a short question", true), 600]
          ] as const
        ) {
          const count = Math.max(concurrency, Math.round(most * effort))
          for (const machine of machines) await load(machine, what, count)
          const measured = machines.map(() => ({ rates: new Array<number>(), cpus: new Array<number>() }))
          // The machines alternate, so that a change of the computer's speed affects all.
          for (let round = 0; round < rounds; round++) {
            for (const [i, machine] of machines.entries()) {
              const { cpu, rate } = await load(machine, what, count)
              measured[i]!.rates.push(rate)
              measured[i]!.cpus.push(cpu)
            }
          }
          for (const [i, { name }] of machines.entries()) {
            const { cpus, rates } = measured[i]!
            rows.push([`${kind}: ${name}`, median(rates), median(cpus), median(rates) / median(measured[1]!.rates)])
          }
        }
        process.stdout.write(
          `${concurrency} callers of the lowest priority, who share the ${availableParallelism()} cores with the gateway and the store.\n\n${
            table(["", "replies/s", "CPU µs a reply", "÷ 1 worker"], rows)
          }\n`
        )
      } finally {
        for (const machine of machines) await machine.stop()
      }
    })
  }).pipe(Effect.scoped, Effect.runPromise)
