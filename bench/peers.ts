/**
 * Other gateways side by side with a plain relay and this one: `servers/versions.ts` has their versions, and the cache of `npm run test:servers`
 * keeps them. Each runs as its documents advise for production. What this gateway does by default and they do not, is said beside the table.
 */
import { once } from "node:events"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { cpus } from "node:os"
import path from "node:path"
import { install } from "../servers/install.ts"
import { type ProgramName, versionOf } from "../servers/versions.ts"
import { load, spans, type Starter, warmUp } from "./compare.ts"
import { startersOf, steadily } from "./gateway.ts"
import { rows as allRows, type Scenario } from "./rows.ts"
import { type Row, table } from "./table.ts"
import {
  type Ask,
  effort,
  endProcess,
  reply,
  residentMb,
  type Start,
  startProcess,
  type Target,
  type Targets,
  treeOf,
  withTargets
} from "./targets.ts"

/** Where a program is installed and runs. */
interface Place {
  readonly folder: string
  readonly port: number
  /** The address of the upstream's chat completions, and its base. */
  readonly chat: string
  readonly base: string
}

export interface Peer {
  readonly name: ProgramName
  /** The name of its package. */
  readonly package: string
  /** How it runs here, for readers of the table. */
  readonly runs: string
  /** Prepares its files. Returns its start; without a command it is a program of Node. */
  readonly prepare: (place: Place) => Pick<Start, "args" | "command" | "cwd" | "env">
  readonly target?: (place: Place) => Pick<Target, "headers" | "model">
}

const providerOf = ({ chat }: Place) => ({ name: "bench", api_base_url: chat, api_key: "sk-bench", models: ["bench"] })

/** In front of the upstream as provider and model, as both packages of this vendor name it. */
const model = "bench,bench"

export const peers: ReadonlyArray<Peer> = [
  {
    name: "LiteLLM",
    package: "LiteLLM",
    runs:
      "as its page about production advises: one worker a core, `LITELLM_MODE=PRODUCTION`, JSON logs of errors. Without its " +
      "database: it keeps no usage",
    prepare: ({ base, folder, port }) => {
      const config = path.join(folder, `bench-${port}.yaml`)
      const served = { model: "openai/bench", api_base: base, api_key: "sk-bench" }
      // JSON is YAML.
      writeFileSync(
        config,
        JSON.stringify({
          model_list: [{ model_name: "bench", litellm_params: served }],
          general_settings: { master_key: "sk-bench-key" },
          litellm_settings: { request_timeout: 600, set_verbose: false, json_logs: true }
        })
      )
      return {
        command: path.join(folder, "bin/litellm"),
        args: ["--config", config, "--host", "127.0.0.1", "--port", String(port), "--num_workers", "1"],
        // It imports modules of the folder two levels above the current one.
        cwd: path.join(folder, "bin"),
        env: { LITELLM_MODE: "PRODUCTION", LITELLM_LOG: "ERROR", LITELLM_LOCAL_MODEL_COST_MAP: "True" }
      }
    },
    target: () => ({ model: "bench", headers: { authorization: "Bearer sk-bench-key" } })
  },
  {
    name: "llms",
    package: "@musistudio/llms",
    runs: "with its defaults. It keeps no records and no usage",
    // It has no command. Its README and `src/server.ts` describe the class and its configuration.
    prepare: (place) => {
      const config = { HOST: "127.0.0.1", PORT: String(place.port), providers: [providerOf(place)] }
      const file = path.join(place.folder, "start.cjs")
      const options = JSON.stringify({ initialConfig: config })
      writeFileSync(file, `void new (require("@musistudio/llms").default)(${options}).start()\n`)
      return { args: [file] }
    },
    target: () => ({ model })
  },
  {
    name: "Portkey",
    package: "@portkey-ai/gateway",
    runs: "with its defaults. It keeps no records and no usage",
    // Headers name the provider and its address.
    prepare: ({ folder, port }) => ({
      args: [path.join(folder, "node_modules/@portkey-ai/gateway/build/start-server.js"), `--port=${port}`]
    }),
    target: ({ base }) => ({ headers: { "x-portkey-provider": "openai", "x-portkey-custom-host": base } })
  },
  {
    name: "claude-code-router",
    package: "@musistudio/claude-code-router",
    runs: "with its defaults. It keeps no records and no usage",
    prepare: (place) => {
      const own = path.join(place.folder, ".claude-code-router")
      mkdirSync(own, { recursive: true })
      const config = {
        APIKEY: "bench-key",
        PORT: place.port,
        Providers: [providerOf(place)],
        Router: { default: model }
      }
      writeFileSync(path.join(own, "config.json"), JSON.stringify(config))
      return { args: [path.join(place.folder, "node_modules/@musistudio/claude-code-router/dist/cli.js"), "start"] }
    },
    target: () => ({ model })
  },
  {
    name: "smg",
    package: "smg",
    runs:
      "with its defaults, in front of an OpenAI-compatible server. It is written in Rust, and keeps no records and no usage",
    prepare: ({ base, folder, port }) => ({
      command: path.join(folder, "bin/smg"),
      args: [
        "launch",
        "--backend",
        "openai",
        "--worker-urls",
        base.replace(/\/v1$/, ""),
        "--host",
        "127.0.0.1",
        "--port",
        String(port),
        "--prometheus-port",
        String(port + 1)
      ]
    })
  }
]

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, "close")
  return port
}

/** Installs a peer. Rejects with the installer's last words. */
const starterOf = async ({ folder: within, serverUrl }: Targets, { name, prepare, target }: Peer): Promise<Starter> => {
  const folder = await install(name)
  return {
    name,
    mayFail: true,
    start: async () => {
      const port = await freePort()
      const place = { folder, port, base: `${serverUrl}/v1`, chat: `${serverUrl}/v1/chat/completions` }
      const { env, ...how } = prepare(place)
      const log = path.join(within, `${name}-${port}.log`)
      const { pid } = await startProcess({ ...how, env: { HOME: folder, ...env }, ready: port, log })
      return { name, url: `http://127.0.0.1:${port}`, pid, ...target?.(place) }
    }
  }
}

/** Requests a second at which the time to the first event is measured. */
const rate = 200

/** Replies of each row that are compared with what the upstream sends: at least `leastChecked`, and others for `checkMillis`. */
const mostChecked = Math.max(5, Math.round(100 * effort))
const leastChecked = Math.min(10, mostChecked)
const checkMillis = 30_000 * effort

/** Whether the tokens of a reply are those that the upstream counts: ten, and one for each of its events. */
const hasUsage = (text: string, output: number): boolean => {
  const last = (name: string) => Number([...text.matchAll(new RegExp(`"${name}":\\s*(\\d+)`, "g"))].at(-1)?.[1])
  return text.includes("prompt_tokens")
    ? last("prompt_tokens") === 10 && last("completion_tokens") === output
    : last("input_tokens") === 10 && last("output_tokens") === output
}

/** A request that asks for the usage of its stream, where the API does not send it unasked. */
const withUsage = (what: Ask): Ask => {
  const body = JSON.parse(what.body) as { stream?: boolean }
  const isAsked = body.stream === true && what.path === "/v1/chat/completions"
  return isAsked ? { ...what, body: JSON.stringify({ ...body, stream_options: { include_usage: true } }) } : what
}

interface Measured {
  readonly cost: number
  readonly rate: number
  readonly first: { readonly p50: number; readonly p99: number } | undefined
  readonly memory: number
  readonly checked: number
  readonly right: number
  readonly billed: number
}

/** Measures a row of a new process: the load in the steady state, then a steady rate, and then its replies one by one. */
const measure = async (row: Scenario, { start }: Starter): Promise<Measured> => {
  const target = await start(row)
  const named = (what: Ask): Ask =>
    target.model === undefined
      ? what
      : { ...what, body: what.body.replace(/"model":"[^"]*"/, `"model":"${target.model}"`) }
  const what = named(row.what)
  try {
    const { costs, rates } = await load(target, { ...row, what }, warmUp, spans[2])
    if (rates.at(-1) === 0) {
      throw new Error(`no reply ended within ${spans[2]} seconds of ${row.concurrency} concurrent requests`)
    }
    const memory = (await treeOf(target.pid)).reduce((sum, pid) => sum + residentMb(pid), 0)
    // A target that answers fewer has a queue that only grows.
    const first = rates.at(-1)! < rate ? undefined : await steadily(target, what, rate, 5 * effort)
    let checked = 0
    let right = 0
    let billed = 0
    const end = performance.now() + checkMillis
    for (; checked < mostChecked && (checked < leastChecked || performance.now() < end); checked++) {
      const { text } = await reply(target, withUsage(what))
      if (row.what.isReply(text.of)) right++
      if (row.output === undefined || hasUsage(text.whole, row.output)) billed++
    }
    return { cost: costs.at(-1)!, rate: rates.at(-1)!, first, memory, checked, right, billed }
  } finally {
    await endProcess(target.pid)
  }
}

const share = (part: number, all: number): string => part === all ? "all" : `${part} of ${all}`

/** Writes the table in place of the one in the page, if the page has a place for it. */
const writePage = (text: string): void => {
  const page = path.join(import.meta.dirname, "../docs/operate/capacity.md")
  if (!existsSync(page)) return
  const before = readFileSync(page, "utf8")
  const block = /(<!-- made by `npm run bench -- peers` -->\n)[^]*?(<!-- end -->)/
  writeFileSync(page, before.replace(block, (_, start: string, end: string) => `${start}\n${text}\n\n${end}`))
}

/**
 * Prints what each gateway costs, row by row, and whether its replies are right. A peer that cannot do a row is named below. A run of all rows
 * with all effort also writes `docs/operate/capacity.md`.
 */
export const peersBench = (rows: ReadonlyArray<Scenario>): Promise<void> =>
  withTargets(async (targets) => {
    const failures = new Map<string, Array<string>>()
    const failed = (name: string, row: string, error: unknown) => {
      // The first line says what happened; others have paths of this machine.
      const [said = ""] = String(error).split(/\\n|\n/)
      const reason = `${name}: ${said.replaceAll(/\s+/g, " ").slice(0, 200)}`
      failures.set(reason, [...failures.get(reason) ?? [], row])
    }
    const starters: Array<Starter> = [...startersOf(targets, ["as shipped"])]
    for (const peer of peers) {
      try {
        starters.push(await starterOf(targets, peer))
      } catch (error) {
        failed(peer.name, "all rows", error)
      }
    }
    const lines: Array<Row> = []
    for (const row of rows) {
      const upstream = { name: "upstream", url: targets.serverUrl, pid: process.pid }
      const direct = await steadily(upstream, row.what, rate, 5 * effort).catch(() => undefined)
      const measured = new Map<string, Measured>()
      for (const starter of starters) {
        try {
          measured.set(starter.name, await measure(row, starter))
          process.stderr.write(`measured: ${row.name}, ${starter.name}\n`)
        } catch (error) {
          if (starter.mayFail !== true) process.exitCode = 1
          failed(starter.name, row.name, error)
        }
      }
      const own = measured.get("gateway")
      for (const [name, { billed, checked, cost, first, memory, rate: a, right }] of measured) {
        const added = (which: "p50" | "p99") =>
          first === undefined || direct === undefined ? "—" : Math.max(0, first[which] - direct[which])
        const usage = name === "relay" || row.output === undefined ? "—" : share(billed, checked)
        lines.push([
          row.name,
          name,
          cost,
          own === undefined ? "—" : cost / own.cost,
          a,
          added("p50"),
          added("p99"),
          memory,
          share(right, checked),
          usage
        ])
      }
    }
    const head = [
      "",
      "gateway",
      "CPU µs a reply",
      "÷ this gateway",
      "replies a second",
      `added ms to the first event at ${rate} a second, p50`,
      "p99",
      "MB afterwards",
      "right replies",
      "right usages"
    ]
    const notes = [
      "`gateway` is this one as shipped, with log, records, captures and usage on; `relay` is a plain program of Node, which counts no " +
      "tokens. Each has one core in the steady state.",
      ...peers.map(({ name, package: of, runs }) => `\`${name}\` is ${of} ${versionOf(name)}, ${runs}.`),
      ...[...failures].map(([reason, names]) => `Left out: ${names.join("; ")}. ${reason}`)
    ]
    const [{ model: processor = "" } = {}] = cpus()
    const when =
      `On ${
        new Date().toISOString().slice(0, 10)
      }, ${cpus().length} cores (${processor.trim()}), ${process.platform} ` +
      `${process.arch}, Node ${process.version}:`
    const text = `${when}\n\n${table(head, lines)}\n\n${notes.map((note) => `- ${note}`).join("\n")}`
    process.stdout.write(`${text}\n`)
    if (effort >= 1 && allRows.every(({ kind, name }) => kind !== "openai" || rows.some((row) => row.name === name))) {
      writePage(text)
    }
  })
