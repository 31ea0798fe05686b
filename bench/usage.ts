/**
 * The cost of usage: CPU time per request, the write each second, the blocking time of a query over a large history, and requests per
 * second with and without it.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { admitRequest } from "../src/completion/admission.ts"
import { startRequest } from "../src/completion/Request.ts"
import type { RequestStats } from "../src/completion/RequestStats.ts"
import { UsageRecorder } from "../src/completion/UsageRecorder.ts"
import { ConfigStore } from "../src/config/ConfigStore.ts"
import { type RawConfig, sha256Hex } from "../src/config/json.ts"
import { HeldBytes } from "../src/config/limits.ts"
import { tokensAlone } from "../src/domain/bill.ts"
import { withMargin } from "../src/domain/estimateTokens.ts"
import { keyId } from "../src/domain/identity.ts"
import { defaultLimits } from "../src/domain/limits.ts"
import { resolveRoute, type Route } from "../src/domain/routes.ts"
import type { Cooperative } from "../src/domain/stream/cooperative.ts"
import { Batch } from "../src/usage/Batch.ts"
import { KeyLimits } from "../src/usage/KeyLimits.ts"
import { reportOf } from "../src/usage/memoryStore.ts"
import { openSqlite } from "../src/usage/openSqlite.ts"
import { makeRedisStore } from "../src/usage/redisStore.ts"
import { readPieces, sumNextDay, writeBatch } from "../src/usage/sqliteFile.ts"
import { historyNames, measureNames, type UsageEntry } from "../src/usage/UsageEntry.ts"
import { makeReport, type UsageQuery } from "../src/usage/UsageQuery.ts"
import { UsageStore } from "../src/usage/UsageStore.ts"
import { mostSessionsKept } from "../src/usage/UsageStoreShape.ts"
import { hourLength } from "../src/usage/windows.ts"
import { redisServer } from "../test/support/redisServer.ts"
import { node } from "./storeNode.ts"
import { type Row, table } from "./table.ts"
import { callers, chat, cpuSeconds, endProcess, median, startProcess, type Target } from "./targets.ts"

const key = "bench-key"
const id = keyId(key, sha256Hex)
const most = 1_000_000_000
const config = {
  keys: [key],
  key_records: {
    [id]: {
      limits: [{ window: "minute", requests: most, tokens: most }, { window: "day", requests: most }, {
        window: "month",
        tokens: most
      }]
    }
  },
  captures: { enabled: false },
  runtime: { account_max_inflight: 256, global_max_inflight: 256 }
}

const usage = { promptTokens: 100, completionTokens: 50, reasoningTokens: 0, cachedTokens: 0 }

/** The same with limits that reserve the most that a request can use. */
const strictConfig = {
  ...config,
  key_records: {
    [id]: {
      limits: [{ window: "minute", tokens: most, strict: true }, { window: "day", cost: most, strict: true }, {
        window: "month",
        cost: most
      }]
    }
  },
  prices: { "*": { input: 1, output: 4 } }
}

/** The most that a request of the bench uses at each target. */
const bounds = ({ targets }: Route) =>
  targets.map((target) => ({
    target,
    most: { ...tokensAlone, promptTokens: withMargin(100), completionTokens: 50 },
    tries: 1
  }))

/** CPU microseconds of one request's admission, record and settlement: the best of several rounds. */
const costOfRequest = Effect.fnUntraced(function*(identity: RequestStats["identity"]) {
  const limits = yield* KeyLimits
  const recorder = yield* UsageRecorder
  const model = resolveRoute((yield* ConfigStore).now().route_table, "usual", "upstream-chat")!
  const times = 100_000
  const held = new HeldBytes({ used: 0 }, () => defaultLimits)
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 7; round++) {
    const began = process.cpuUsage()
    for (let i = 0; i < times; i++) {
      const request = startRequest({ id: "request", startedAt: 0, client: undefined, held })
      const { stats } = request
      stats.style = "chat"
      stats.model = model.id
      stats.key = id
      stats.accountHash = `account ${i % 10}`
      stats.identity = identity
      const scope = Scope.makeUnsafe()
      const admission = admitRequest(
        limits,
        { caller: { _tag: "Managed", owner: id, target: undefined, key: id }, model, request },
        () => 100,
        () => Effect.void,
        { bounds, takesFallback: false }
      )
      const admitted = Effect.runSyncExit(Scope.provide(admission, scope))
      if (Exit.isFailure(admitted)) throw new Error("refused")
      stats.upstreamCalled = true
      stats.attempts = 1
      stats.status = 200
      stats.finish = "stop"
      stats.usage = usage
      Scope.closeUnsafe(scope, Exit.void)
      recorder.ended(stats)
    }
    const { system, user } = process.cpuUsage(began)
    best = Math.min(best, (user + system) / times)
  }
  return best
})

const requestCost = (raw: RawConfig, identity?: RequestStats["identity"]) =>
  costOfRequest(identity).pipe(
    Effect.provide(
      Layer.merge(KeyLimits.layer, UsageRecorder.layer).pipe(
        Layer.provide(UsageStore.layerMemory),
        Layer.provideMerge(ConfigStore.layerJson(raw))
      )
    )
  )

const entry = (i: number): UsageEntry => ({
  at: Date.UTC(2026, 10, 21, 20),
  key: id,
  model: `model ${i % 100}`,
  account: `account ${Math.floor(i / 100)}`,
  style: "chat",
  app: "none",
  session: "none",
  agent: "none",
  parent: "none",
  answerer: undefined,
  outcome: "succeeded",
  counted: true,
  ...usage,
  estimated: false,
  toolCalls: 0,
  attempts: 1,
  queued: 0,
  upstream: 1,
  duration: 2,
  firstEvent: undefined,
  cacheWriteTokens: 0,
  predictedTokens: 0,
  isCacheMiss: false,
  cost: undefined,
  elsewhere: [],
  wasted: 0n,
  error: undefined
})

/** CPU milliseconds of this process so far. */
const cpuMillis = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

/** Runs sliced work. Returns CPU milliseconds: in total, of the 99th percentile of slices, and of the longest slice. */
const slices = (work: Cooperative<unknown>) => {
  const each: Array<number> = []
  for (;;) {
    const from = cpuMillis()
    const { done } = work.next()
    each.push(cpuMillis() - from)
    if (done === true) break
  }
  const sorted = each.toSorted((a, b) => a - b)
  return {
    all: each.reduce((sum, one) => sum + one, 0),
    usual: sorted[Math.floor(sorted.length * 0.99)]!,
    longest: sorted.at(-1)!
  }
}

const rows = 1_000_000
const perHour = 500
const end = Date.UTC(2026, 10, 21)

/** Figures of a file: a flush of a thousand buckets, and a query over a million. */
const fileCost = Effect.gen(function*() {
  const folder = mkdtempSync(path.join(tmpdir(), "bench-usage-"))
  const { close, writer } = yield* openSqlite(path.join(folder, "usage.sqlite"))
  const flushes = Array.from({ length: 7 }, () => {
    const batch = new Batch()
    for (let i = 0; i < 1000; i++) {
      batch.addBucket(entry(i))
      batch.addCounts(entry(i))
    }
    return slices(writeBatch(writer, batch, mostSessionsKept)).all
  })
  writer.exec(`
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows - 1})
    INSERT INTO usage (hour, ${[...historyNames, ...measureNames].join(", ")})
      SELECT ${end - (rows / perHour) * hourLength} + (i / ${perHour}) * ${hourLength}, 'key ' || (i % 50), 'model',
      'account ' || (i % ${perHour}), 'chat', 'default', 'default/model', 'none', 1, 1, 0, 0, 1, 10, 5, 0, 0, 15, 0, 0, 1, 0, 0, 9
      FROM n
  `)
  const query: UsageQuery = { from: 0, to: end, by: ["day", "key"], only: {}, limit: 10_000 }
  const read = slices(makeReport(query, readPieces(writer, query)))
  close()
  rmSync(folder, { recursive: true })
  return { flush: Math.min(...flushes), read }
}).pipe(Effect.provide(NodeServices.layer))

const monthHours = 30 * 24
const monthRows = 100_000

const monthFirst = end - monthHours * hourLength
const monthQuery: UsageQuery = { from: monthFirst, to: end, by: ["model"], only: {}, limit: 10_000 }

/** The requests of a month of hourly rows, some of each row with different times. */
function* monthEntries(): Generator<UsageEntry> {
  for (let i = 0; i < monthRows; i++) {
    const one = { ...entry(i), at: monthFirst + (i % monthHours) * hourLength, account: `account ${i % 139}` }
    for (let request = 0; request < 3; request++) {
      yield { ...one, duration: 500 + (i % 5000) * (request + 1), firstEvent: 100 + (i % 300) }
    }
  }
}

/** The month in memory, and its query by model there. */
const memoryMonthCost = () => {
  const batch = new Batch()
  for (const one of monthEntries()) batch.addBucket(one)
  return median(Array.from({ length: 5 }, () => slices(reportOf(monthQuery, batch)).all))
}

/** The month in the store that nodes share: milliseconds of its query by model, before and after its days are summed. */
const sharedMonthCost = Effect.gen(function*() {
  const { store } = yield* node((yield* redisServer()).url, "one", 1)
  const usage = yield* makeRedisStore(store)
  for (const one of monthEntries()) usage.add(one)
  const timed = Effect.gen(function*() {
    const began = performance.now()
    yield* usage.query(monthQuery)
    return performance.now() - began
  })
  yield* timed
  const hours = yield* timed
  yield* usage.compact
  return { hours, days: yield* timed }
}).pipe(Effect.scoped)

/** The month in a file, whose days are summed: its query by model. */
const monthCost = Effect.gen(function*() {
  const folder = mkdtempSync(path.join(tmpdir(), "bench-usage-"))
  const { close, writer } = yield* openSqlite(path.join(folder, "usage.sqlite"))
  const batch = new Batch()
  for (const one of monthEntries()) batch.addBucket(one)
  slices(writeBatch(writer, batch, mostSessionsKept))
  const query = monthQuery
  const first = monthFirst
  const read = () => slices(makeReport(query, readPieces(writer, query)))
  const hours = read()
  let sums = 0
  for (let day: number | undefined = first; day !== undefined;) {
    const work = sumNextDay(writer, first, end)
    const began = cpuMillis()
    let step = work.next()
    while (step.done !== true) step = work.next()
    sums += cpuMillis() - began
    day = step.value
  }
  const days = read()
  close()
  rmSync(folder, { recursive: true })
  return { hours, days, sum: sums / (monthHours / 24) }
}).pipe(Effect.provide(NodeServices.layer))

const requests = 2000
const concurrency = 20
const rounds = 5

const start = async (enabled: boolean, folder: string): Promise<Target> => {
  const { pid, port } = await startProcess({
    args: ["src/main.ts"],
    env: {
      PORT: "0",
      GATEWAY_ADMIN_KEY: "bench",
      GATEWAY_LOG_LEVEL: "none",
      GATEWAY_DATA_DIR: path.join(folder, String(enabled)),
      GATEWAY_CONFIG_JSON: JSON.stringify({ ...config, usage: { enabled } })
    },
    ready: /listens on http:\/\/[^:]+:(\d+)/
  })
  return { name: `usage ${enabled ? "on" : "off"}`, url: `http://127.0.0.1:${port}`, pid }
}

const what = chat("short", false)

/** Seconds and CPU seconds of a load. */
const load = async (target: Target) => {
  const [began, cpu] = [performance.now(), cpuSeconds([target.pid])]
  let left = requests
  await callers(target, what, concurrency, () => left-- > 0)
  return { seconds: (performance.now() - began) / 1000, cpu: cpuSeconds([target.pid]) - cpu }
}

/** Requests per second and CPU of gateways with usage relative to gateways without. */
const gatewayCost = async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "bench-usage-"))
  const gateways = await Promise.all([start(true, folder), start(false, folder)])
  try {
    for (const gateway of gateways) await load(gateway)
    const measured: Array<{ readonly rate: number; readonly cpu: number }> = []
    for (let round = 0; round < rounds; round++) {
      const [on, off] = [await load(gateways[0]), await load(gateways[1])]
      measured.push({ rate: off.seconds / on.seconds, cpu: on.cpu / off.cpu })
    }
    return { rate: median(measured.map(({ rate }) => rate)), cpu: median(measured.map(({ cpu }) => cpu)) }
  } finally {
    for (const { pid } of gateways) await endProcess(pid)
    rmSync(folder, { recursive: true })
  }
}

/** Prints the table. */
export const usageBench = async (): Promise<void> => {
  const own = await Effect.runPromise(requestCost(config))
  const strict = await Effect.runPromise(requestCost(strictConfig))
  const shown = { app: "codex", session: "session", agent: "agent", parent: "parent" } as const
  const inSession = await Effect.runPromise(requestCost(config, { shown }))
  const { flush, read } = await Effect.runPromise(fileCost)
  const month = await Effect.runPromise(monthCost)
  const inMemory = memoryMonthCost()
  const inStore = await Effect.runPromise(sharedMonthCost)
  const { cpu, rate } = await gatewayCost()
  const figures: ReadonlyArray<Row> = [
    ["a request: admitted, recorded, settled, three windows", own, "CPU µs, at most 10"],
    ["the same with two strict limits, of tokens and of cost", strict, "CPU µs"],
    ["the first of these in a session of an agent", inSession, "CPU µs"],
    ["a flush of 1,000 buckets", flush, "CPU ms, at most 10"],
    ["a query over 1,000,000 buckets", read.all, "CPU ms"],
    ["a slice of it, 99 of 100", read.usual, "CPU ms, at most 10"],
    ["its longest slice, including garbage collection", read.longest, "CPU ms"],
    ["30 days by model, 100,000 hourly rows", month.days.all, "CPU ms, at most 200"],
    ["the same before the days are summed", month.hours.all, "CPU ms"],
    ["to sum a day of them", month.sum, "CPU ms"],
    ["the 30 days in memory", inMemory, "CPU ms, at most 200"],
    ["the 30 days in the store that nodes share", inStore.days, "ms, at most 200"],
    ["the same before the days are summed", inStore.hours, "ms"],
    ["requests a second, usage on over off", rate, "at least 0.98"],
    ["CPU a request, usage on over off", cpu, ""]
  ]
  process.stdout.write(`${table(["", "value", "unit"], figures)}\n`)
}
