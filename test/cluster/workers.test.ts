/**
 * One machine with two workers on one port, over a real store and an upstream that reports the ground truth.
 */
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from "@effect/platform-node/Undici"
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { get } from "node:https"
import { BoundSocket } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import type { TLSSocket } from "node:tls"
import { accounts, admin, chat, send, times } from "../gateway/support.ts"
import { run } from "../server/cli/process.ts"
import { makeAuthority } from "../support/certificates.ts"
import { adminKey, businessKey } from "../support/gateway.ts"
import { freePort, redisServer } from "../support/redisServer.ts"
import { service, serviceEnvironment } from "../support/service.ts"
import { pageText, snippetsOf } from "../support/snippets.ts"
import { untilHolds } from "../support/until.ts"
import { type Cluster, type ClusterNode, startCluster, untilIdle } from "./cluster.ts"

const perAccount = 4
const names = ["a", "b", "c", "d"]
/** Whether there is a process, which its parent may not have reaped yet. */
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** The process of a worker, once it serves. */
const servesAs = async ({ running }: ClusterNode, id: string): Promise<number> =>
  Number((await running.printed(new RegExp(`Worker ${id} serves \\(process (\\d+)\\)`)))[1])

/** The processes of workers, once they serve. */
const processesOf = (machine: ClusterNode, ...ids: ReadonlyArray<string>) =>
  Promise.all(ids.map((id) => servesAs(machine, id)))

/** A machine with two workers that serve. */
const startWorkers = async (
  options: Omit<Parameters<typeof startCluster>[0], "nodes">
): Promise<{ readonly cluster: Cluster; readonly machine: ClusterNode }> => {
  const cluster = await startCluster({ nodes: 0, ...options })
  const machine = await cluster.add("m", { GATEWAY_WORKERS: "2" })
  await processesOf(machine, "m-1", "m-2")
  return { cluster, machine }
}

/** Closes the idle connections of earlier requests. A retired worker keeps one for as long as it has announced, up to 66 s. */
const closeIdle = async (): Promise<void> => {
  const used = getGlobalDispatcher()
  setGlobalDispatcher(new Agent())
  await used.close()
}

const admins = { authorization: `Bearer ${adminKey}` }

describe("two workers on one port", () => {
  let cluster: Cluster
  let machine: ClusterNode

  beforeAll(async () => {
    ;({ cluster, machine } = await startWorkers({
      config: { accounts: accounts(...names), runtime: { account_max_inflight: perAccount, account_max_queue: 100 } },
      reference: { maxRunning: perAccount, remember: 10_000 }
    }))
  })
  afterAll(() => cluster.stop())

  const nodes = async () =>
    (await admin(machine.url, "GET", "/admin/nodes"))["nodes"] as ReadonlyArray<{
      readonly id: string
      readonly in_use: number
    }>

  const untilNodes = (...ids: ReadonlyArray<string>) =>
    untilHolds(async () => (await nodes()).map(({ id }) => id).join() === ids.join())

  /** Asks one question after another until it is stopped. Returns what was not answered. */
  const load = (callers: number) => {
    let isRunning = true
    let answered = 0
    const failures: Array<string> = []
    const caller = async () => {
      while (isRunning) {
        try {
          const { error, status } = await chat(machine.url, "!pace 20ms\n!say one two three", {
            stream: answered % 2 === 0
          })
          if (status === 200 && error === undefined) answered++
          else failures.push(`${status} ${error?.code}`)
        } catch (error) {
          failures.push(String(error instanceof Error ? error.cause ?? error : error))
        }
      }
    }
    const all = Promise.all(times(callers, caller))
    return {
      answered: () => answered,
      failures,
      stop: async () => {
        isRunning = false
        await all
      }
    }
  }

  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${machine.url}/metrics`, { headers: admins })).text()
    return text.split("\n").filter((line) => line.startsWith(name)).map((line) => Number(line.split(" ").at(-1)))
      .reduce((a, b) => a + b, 0)
  }

  const asked = () => metric("gateway_requests_total{style=\"chat\"")

  it("are separate nodes, and log their names", async () => {
    await untilNodes("m-1", "m-2")
    // The system spreads connections over the sockets of a port: sooner or later each worker answers.
    let logged = 0
    for (const id of ["m-1", "m-2"]) {
      void machine.running.printed(new RegExp(`"node":"${id}","request_id"`)).then(() => logged++)
    }
    await untilHolds(async () => {
      await Promise.all(times(8, () => chat(machine.url, "!say one")))
      return logged === 2
    })
  })

  it("add their counters, including those of an ended worker", async () => {
    const before = await asked()
    assert.isAtLeast(before, 8)
    assert.strictEqual(await metric("gateway_store_up"), 1)
    assert.strictEqual(await metric("gateway_nodes"), 2)
    const ended = await servesAs(machine, "m-2")
    process.kill(ended, "SIGTERM")
    await servesAs(machine, "m-3")
    await Promise.all(times(10, () => chat(machine.url, "!say one")))
    assert.strictEqual(await asked(), before + 10)
  })

  it("serve while one is killed, and its slots become free", async () => {
    await untilNodes("m-1", "m-3")
    const abort = new AbortController()
    const streams = await Promise.all(times(12, async () => {
      const response = await send(machine.url, "!say one\n!fault hang-mid-stream after=1", {
        stream: true,
        signal: abort.signal
      })
      assert.strictEqual(response.status, 200)
      return response.body!.getReader()
    }))
    const killed = (await nodes()).find(({ in_use }) => in_use > 0)!
    const { in_use: held } = killed
    const others = load(2)
    process.kill(await servesAs(machine, killed.id), "SIGKILL")
    // Only the killed worker's own streams break.
    const before = others.answered()
    await untilHolds(async () => others.answered() > before + 10)
    await untilHolds(async () => {
      const left = await nodes()
      return left.every(({ id }) => id !== killed.id) &&
        left.reduce((sum, { in_use }) => sum + in_use, 0) <= 12 - held + 2
    })
    await servesAs(machine, "m-4")
    await others.stop()
    abort.abort()
    await Promise.allSettled(streams.map((stream) => stream.cancel()))
    // A caller may have been on the killed worker: its connection was reset, and once more if its next one was accepted there.
    assert.isAtMost(others.failures.length, 4, others.failures.join("\n"))
    const report = await untilIdle({ ...cluster, nodes: [machine] })
    for (const most of Object.values(report.mostAtOnce)) assert.isAtMost(most, perAccount)
  })

  it("are replaced at SIGHUP without a request that fails", async () => {
    const before = await nodes()
    // A connection that nobody uses keeps a retired worker for 66 s: also the one of the question above.
    await closeIdle()
    const callers = load(8)
    await untilHolds(() => callers.answered() > 20)
    machine.signal("SIGHUP")
    await machine.running.printed(/All workers are replaced/)
    const replaced = callers.answered()
    await untilHolds(async () => (await nodes()).every(({ id }) => before.every((old) => old.id !== id)))
    await untilHolds(() => callers.answered() > replaced + 20)
    await callers.stop()
    assert.deepStrictEqual(callers.failures, [])
    assert.strictEqual((await nodes()).length, 2)
  })

  it("finish their streams at SIGTERM, and the parent ends last with 0", async () => {
    const reply = await send(machine.url, "!say one two\n!fault hang-mid-stream after=1", { stream: true })
    const ids = (await nodes()).map(({ id }) => id)
    const workers = await processesOf(machine, ...ids)
    // A terminal or a service manager may signal all processes at once, in any order.
    process.kill(workers[0]!, "SIGTERM")
    machine.signal("SIGTERM")
    process.kill(workers[1]!, "SIGTERM")
    await machine.running.printed(/Draining: 1 open requests/)
    await cluster.until(({ streams }) => streams === 1)
    await Effect.runPromise(cluster.reference.cut())
    assert.match(await reply.text(), /data: \[DONE\]\n\n$/)
    const { code, signal } = await machine.running.ended
    assert.deepStrictEqual([code, signal], [0, null])
  })
})

describe("workers with drain.notice", () => {
  let cluster: Cluster
  let machine: ClusterNode

  beforeEach(async () => {
    ;({ cluster, machine } = await startWorkers({
      config: { accounts: accounts(...names), drain: { notice: 3_600 } }
    }))
  })
  afterEach(() => cluster.stop())

  it("are replaced without it, give it at SIGTERM, and end it at a second one", async () => {
    const old = await processesOf(machine, "m-1", "m-2")
    machine.signal("SIGHUP")
    await machine.running.printed(/All workers are replaced/)
    await untilHolds(() => !old.some(isAlive))
    machine.signal("SIGTERM")
    for (const id of ["m-3", "m-4"]) {
      await machine.running.printed(new RegExp(`Stopping: serving for 3600 s more.*"node":"${id}"`))
    }
    assert.strictEqual((await fetch(`${machine.url}/readyz`)).status, 503)
    assert.strictEqual((await chat(machine.url, "!say one")).text, "one")
    machine.signal("SIGTERM")
    const { code, signal } = await machine.running.ended
    assert.deepStrictEqual([code, signal], [0, null])
  })

  it("end without it when their parent is gone, so that the next parent can use the port", async () => {
    const workers = await processesOf(machine, "m-1", "m-2")
    machine.signal("SIGKILL")
    await untilHolds(() => !workers.some(isAlive))
  })
})

describe("a worker that hangs before it serves, in the place of one that has ended meanwhile", () => {
  it("receives no connections: the other workers answer all of them", async () => {
    const cluster = await startCluster({ nodes: 0, config: { accounts: accounts(...names) } })
    try {
      const told = path.join(cluster.store.folder, "workers-hang")
      const preload = path.join(import.meta.dirname, "hangIfTold.ts")
      const machine = await cluster.add("m", {
        GATEWAY_WORKERS: "2",
        NODE_OPTIONS: `--import ${preload}`,
        HANG_IF: told
      })
      const [first] = await processesOf(machine, "m-1", "m-2")
      writeFileSync(told, "")
      machine.signal("SIGHUP")
      await untilHolds(() => readFileSync(told, "utf8") !== "")
      const hanging = Number(readFileSync(told, "utf8"))
      process.kill(Number(first), "SIGKILL")
      // The system spreads connections over the sockets of the port, so that each of these could meet the hanging worker.
      await untilHolds(() => !isAlive(hanging))
      const answers = await Promise.all(
        times(40, () => fetch(`${machine.url}/healthz`, { headers: { connection: "close" } }))
      )
      assert.deepStrictEqual(answers.map(({ status }) => status), Array(40).fill(200))
      // The next worker of the place serves as soon as it can.
      rmSync(told)
      await machine.running.printed(/All workers are replaced/)
      assert.strictEqual((await chat(machine.url, "!say one")).text, "one")
    } finally {
      await cluster.stop()
    }
  })
})

describe("a worker without a parent", () => {
  const env = { PORT: "0", GATEWAY_CONFIG_JSON: "{}", GATEWAY_WORKER_ROLE: "silent" }
  const sentence = "A worker needs the descriptors of its parent: start the gateway without GATEWAY_WORKER_ROLE\n"

  for (
    const [name, variables] of Object.entries({ "no channel": {}, "a channel that is none": { NODE_CHANNEL_FD: "3" } })
  ) {
    it(`ends with one sentence if it has ${name}`, async () => {
      const { code, signal, stderr, stdout } = await run([], { env: { ...env, ...variables } })
      assert.deepStrictEqual({ code, signal, stderr, stdout }, { code: 1, signal: null, stderr: sentence, stdout: "" })
    })
  }

  it("ends with one sentence if it has a channel and no socket", async () => {
    const child = spawn(process.execPath, [service], {
      env: { ...serviceEnvironment, ...env },
      stdio: ["ignore", "pipe", "pipe", "ipc"]
    })
    let said = ""
    for (const output of [child.stdout, child.stderr]) output!.on("data", (text: Buffer) => said += String(text))
    const [code]: Array<unknown> = await once(child, "close")
    assert.deepStrictEqual([code, said], [1, sentence])
  })
})

describe("the commands of docs/operate/workers.md", () => {
  it("start two, and replace them unless the new ones cannot start", async () => {
    const scope = Scope.makeUnsafe()
    const store = await Effect.runPromise(Scope.provide(redisServer(), scope))
    const config = path.join(store.folder, "config.json")
    const port = await freePort()
    const [begin = "", replace = ""] = snippetsOf(pageText("docs/operate/workers.md"), "sh workers").map(({ text }) =>
      text
    )
    const log = path.join(store.folder, "output.log")
    const output = openSync(log, "w")
    // Added to the documented commands: prints the parent's process id, and sends SIGHUP for each line of input.
    const script = `${begin.replace("6379", String(store.port))}echo "parent $!"
      while read -r _; do ${replace}
      done; wait`
    const shell = spawn("sh", ["-euc", script], {
      cwd: path.join(import.meta.dirname, "../.."),
      env: {
        ...serviceEnvironment,
        PORT: String(port),
        GATEWAY_ADMIN_KEY: adminKey,
        GATEWAY_CONFIG_PATH: config,
        GATEWAY_NODE_ID: "m",
        GATEWAY_STORE_TIMEOUT_MS: "1500"
      },
      stdio: ["pipe", output, output]
    })
    const printed = async (pattern: RegExp): Promise<RegExpExecArray> => {
      await untilHolds(() => pattern.test(readFileSync(log, "utf8")))
      return pattern.exec(readFileSync(log, "utf8"))!
    }
    const workers = async () =>
      ((await admin(`http://127.0.0.1:${port}`, "GET", "/admin/nodes"))["nodes"] as ReadonlyArray<{ id: string }>)
        .map(({ id }) => id)
    try {
      await printed(/Worker m-2 serves/)
      shell.stdin!.write("\n")
      await printed(/All workers are replaced/)
      await untilHolds(async () => (await workers()).join() === "m-3,m-4")
      writeFileSync(config, "{")
      shell.stdin!.write("\n")
      await printed(/A new worker ended before it served/)
      assert.deepStrictEqual(await workers(), ["m-3", "m-4"])
      // Workers whose parent is gone end, so that the port is free for the next parent.
      process.kill(Number((await printed(/parent (\d+)/))[1]), "SIGKILL")
      await untilHolds(async () => await fetch(`http://127.0.0.1:${port}/healthz`).then(() => false, () => true))
    } finally {
      shell.stdin!.end()
      shell.kill("SIGKILL")
      closeSync(output)
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  })
})

/** Sends a question over a connection of its own, which any worker may accept. */
const askAnew = (url: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${businessKey}`, "content-type": "application/json" }
    const asked = request(`${url}/v1/chat/completions`, { method: "POST", agent: false, headers }, (response) => {
      response.resume().once("end", resolve)
    })
    asked.once("error", reject)
    asked.end(JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "one" }] }))
  })

describe("workers on the socket of a service manager", () => {
  it("share it with their successors", async () => {
    const scope = Scope.makeUnsafe()
    const store = await Effect.runPromise(Scope.provide(redisServer(), scope))
    const socket = new BoundSocket({ host: "127.0.0.1" })
    const url = `http://127.0.0.1:${socket.address().port}`
    const script = `LISTEN_PID=$$ LISTEN_FDS=1 exec "${process.execPath}" "${service}"`
    const parent = spawn("sh", ["-c", script], {
      env: {
        ...serviceEnvironment,
        GATEWAY_WORKERS: "2",
        GATEWAY_ADMIN_KEY: adminKey,
        GATEWAY_CONFIG_JSON: JSON.stringify({
          keys: [businessKey],
          upstream: { driver: "embedded" },
          drain: { notice: 0 }
        }),
        GATEWAY_NODE_ID: "m",
        GATEWAY_STORE_URL: store.url,
        GATEWAY_STORE_TIMEOUT_MS: "1500"
      },
      stdio: ["ignore", "pipe", "pipe", socket.fd()]
    })
    const ended = once(parent, "close")
    let said = ""
    for (const output of [parent.stdout, parent.stderr]) output!.on("data", (text: Buffer) => said += String(text))
    try {
      await untilHolds(() => said.includes("Worker m-2 serves"))
      // From here on only the workers can answer.
      socket.close()
      for (const id of ["m-1", "m-2"]) {
        await untilHolds(async () => {
          await Promise.all(times(4, () => askAnew(url)))
          return said.includes(`"node":"${id}","request_id"`)
        })
      }
      parent.kill("SIGHUP")
      await untilHolds(() => said.includes("All workers are replaced"))
      assert.include((await chat(url, "one")).text, "“one”")
      parent.kill("SIGTERM")
      const [code]: Array<unknown> = await ended
      assert.strictEqual(code, 0)
    } finally {
      parent.kill("SIGKILL")
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  })
})

describe("workers without a store", () => {
  const env = { PORT: "0", GATEWAY_CONFIG_JSON: "{}" }

  it("are refused with the lines that help", async () => {
    const { code, stderr, stdout } = await run(["serve", "--workers", "2"], { env })
    assert.deepStrictEqual([code, stdout], [1, ""])
    assert.match(stderr, /^Several workers share a store\. .*\n {2}--store redis:.*\n {2}--workers 1 .*\n$/)
  })

  it("are refused if their number is 0", async () => {
    const { code, stderr } = await run(["serve", "--workers", "0"], { env })
    assert.deepStrictEqual([code, stderr], [1, "GATEWAY_WORKERS must be a number between 1 and 256, or auto\n"])
  })
})

describe("TLS of two workers", () => {
  it("has a changed certificate in each of them, and serves on meanwhile", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "workers-tls-"))
    const authority = makeAuthority()
    const [cert, key] = [path.join(folder, "cert.pem"), path.join(folder, "key.pem")]
    const write = (name: string) => {
      const signed = authority.sign("IP:127.0.0.1", name)
      writeFileSync(cert, signed.cert)
      writeFileSync(key, signed.key)
    }
    write("DNS:first.test")
    const { cluster, machine } = await startWorkers({ config: { server: { tls: { cert, key } } } })
    try {
      const port = new URL(machine.url).port
      /** The worker that a new connection leads to, and the names in its certificate. */
      const ask = () =>
        new Promise<readonly [worker: string, names: string]>((resolve, reject) => {
          const options = { port, host: "127.0.0.1", path: "/admin/nodes", ca: authority.cert, agent: false }
          get({ ...options, headers: admins }, (response) => {
            const { subjectaltname = "" } = (response.socket as TLSSocket).getPeerCertificate()
            let text = ""
            response.on("data", (piece: Buffer) => text += piece.toString()).on("end", () => {
              const { nodes } = JSON.parse(text) as {
                readonly nodes: ReadonlyArray<{ readonly id: string; readonly self: boolean }>
              }
              resolve([nodes.find(({ self }) => self)?.id ?? "", subjectaltname])
            })
          }).on("error", reject)
        })
      const untilBoth = async (name: string) => {
        const workers = new Set<string>()
        await untilHolds(async () => {
          const [worker, names] = await ask()
          if (names.includes(name)) workers.add(worker)
          return workers.size === 2
        })
      }
      await untilBoth("first.test")
      write("DNS:second.test")
      await untilBoth("second.test")
    } finally {
      await cluster.stop()
      rmSync(folder, { recursive: true })
    }
  })
})
