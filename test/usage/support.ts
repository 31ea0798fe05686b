/** Shared by tests of usage: entries of requests, and a plain model of the reports of a store. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as fc from "fast-check"
import { formatDecimal } from "../../src/domain/decimal.ts"
import { none } from "../../src/domain/usageNames.ts"
import { windowNames } from "../../src/domain/windowNames.ts"
import type { KeyCounters } from "../../src/usage/Batch.ts"
import type { SqliteOptions } from "../../src/usage/sqliteStore.ts"
import { addMeasured, type Times } from "../../src/usage/Times.ts"
import {
  type CostElsewhere,
  costsOf,
  dimensionNames,
  type Dimensions,
  dimensionsBy,
  dimensionsOf,
  historyNames,
  laterMeasuresOf,
  measureNames,
  measuresOf,
  sessionDimensionsOf,
  sessionNames,
  type Sums,
  type UsageEntry
} from "../../src/usage/UsageEntry.ts"
import { asksSessions, groupings, type UsageQuery, type UsageReport } from "../../src/usage/UsageQuery.ts"
import { UsageStore } from "../../src/usage/UsageStore.ts"
import { dayLength, dayOf, hourLength, hourOf, windowAt } from "../../src/usage/windows.ts"

/** Saturday, 28 February 2026, 22:00 UTC. */
export const start = Date.UTC(2026, 1, 28, 22)

export const keyA = "8879f6a4ae35c420"
export const keyB = "00000000000000bb"

/** A successful request, with changes. */
export const entry = (given: Partial<UsageEntry> = {}): UsageEntry => ({
  at: start,
  key: keyA,
  model: "upstream-chat",
  account: "a1",
  style: "chat",
  app: "none",
  session: "none",
  agent: "none",
  parent: "none",
  answerer: undefined,
  outcome: "succeeded",
  counted: true,
  promptTokens: 10,
  completionTokens: 5,
  reasoningTokens: 2,
  cachedTokens: 1,
  cacheWriteTokens: 0,
  predictedTokens: 0,
  isCacheMiss: false,
  cost: undefined,
  elsewhere: [],
  wasted: 0n,
  estimated: false,
  toolCalls: 0,
  attempts: 1,
  queued: 3,
  upstream: 4,
  duration: 9,
  firstEvent: undefined,
  error: undefined,
  ...given
})

const small = fc.integer({ min: 0, max: 1000 })

/** Costs whose sums are beyond the exact numbers. */
export const costs = fc.bigInt({ min: 0n, max: 3n * 2n ** 53n })

/** Requests that began within some days after `start`. */
export const entries = (days: number): fc.Arbitrary<UsageEntry> =>
  fc.record({
    at: fc.integer({ min: start, max: start + days * dayLength - 1 }),
    key: fc.constantFrom(keyA, keyB, "direct", "none"),
    model: fc.constantFrom("upstream-chat", "upstream-reasoner", "none"),
    account: fc.constantFrom("a1", "a2", "none"),
    style: fc.constantFrom("chat", "messages"),
    app: fc.constantFrom("none", "codex", "curl"),
    session: fc.constantFrom("none", "s1", "s2"),
    agent: fc.constantFrom("none", "g1", "g2"),
    parent: fc.constantFrom("none", "g1"),
    answerer: fc.constantFrom<UsageEntry["answerer"]>(
      undefined,
      { upstream: "gpu", target: "gpu/upstream-chat" },
      { upstream: "gpu", target: "gpu/other" },
      { upstream: "default", target: "default/upstream-chat" },
      { upstream: "none", target: "none" }
    ),
    outcome: fc.constantFrom("succeeded", "failed", "left"),
    counted: fc.boolean(),
    promptTokens: small,
    completionTokens: small,
    reasoningTokens: small,
    cachedTokens: small,
    cost: fc.option(costs, { nil: undefined }),
    wasted: costs,
    elsewhere: fc.array(
      fc.record({
        account: fc.constantFrom("a1", "a3"),
        answerer: fc.constantFrom(undefined, { upstream: "gpu", target: "gpu/other" }),
        cost: costs,
        wasted: costs
      }),
      { maxLength: 2 }
    ),
    cacheWriteTokens: small,
    predictedTokens: small,
    isCacheMiss: fc.boolean(),
    estimated: fc.boolean(),
    toolCalls: small,
    attempts: small,
    queued: small,
    upstream: small,
    duration: fc.oneof(small, fc.integer({ min: 0, max: 3_000_000 })),
    firstEvent: fc.option(small, { nil: undefined }),
    error: fc.constantFrom(undefined, "upstream_error", "rate_limit_exceeded")
  }).map(withinCost)

/** What others charge is a part of the cost. */
const withinCost = ({ cost, elsewhere, ...rest }: UsageEntry): UsageEntry =>
  cost === undefined
    ? { ...rest, cost, elsewhere: [] }
    : { ...rest, cost: partsOf({ elsewhere }).reduce((sum, { cost }) => sum + cost, cost), elsewhere }

const partsOf = ({ elsewhere }: Pick<UsageEntry, "elsewhere">): ReadonlyArray<CostElsewhere> => elsewhere

const someOf = (...values: ReadonlyArray<string>) =>
  fc.option(fc.subarray([...values], { minLength: 1 }).map((some) => new Set(some)), { nil: undefined })

export const queries = (days: number): fc.Arbitrary<UsageQuery> =>
  fc.record({
    from: fc.integer({ min: -1, max: 24 * days }).map((hours) => start + hours * hourLength),
    hours: fc.integer({ min: 1, max: 24 * days + 1 }),
    by: fc.oneof(
      fc.shuffledSubarray(groupings.filter((name) => !onlyOfSessions.includes(name))),
      fc.shuffledSubarray([...sessionNames, "label", "hour", "day"] as const)
    ),
    limit: fc.constantFrom(1, 2, 7, 1000),
    labels: fc.record({
      of: fc.constant((key: string) => key === keyA || key === keyB ? "team" : key === "direct" ? "own" : none),
      only: fc.constantFrom(undefined, new Set(["team"]), new Set(["own", none]))
    }),
    // Days of UTC, and of zones to the east and west of it.
    dayOf: fc.constantFrom(undefined, ...[5, -8].map((hours) => (hour: number) => dayOf(hour + hours * hourLength))),
    only: fc.record({
      key: someOf(keyA, keyB, "direct", "nobody"),
      model: someOf("upstream-chat", "none"),
      account: someOf("a1", "a2"),
      style: someOf("chat", "messages"),
      upstream: someOf("gpu", "default", "none"),
      target: someOf("gpu/other", "default/upstream-chat"),
      app: someOf("codex", "none"),
      session: someOf("s1", "none"),
      agent: someOf("g1", "none")
    })
  }).map(({ hours, only, ...query }) => {
    const isOfSessions = query.by.some((name) => onlyOfSessions.includes(name))
    const { account, agent, app, key, model, session, style, target, upstream } = only
    return {
      ...query,
      only: isOfSessions ? { agent, app, key, session } : { account, app, key, model, style, target, upstream },
      to: query.from + hours * hourLength
    }
  })

const onlyOfSessions: ReadonlyArray<string> = ["session", "agent", "parent"]

/** Counts of times, in the order of their places. */
const shownTimes = (times: Times | undefined) => [...times ?? []].sort(([a], [b]) => a - b)

const shown = (sums: Sums) => ({
  ...measuresOf(sums),
  times: shownTimes(sums.times),
  ...costsOf(sums),
  ...laterMeasuresOf(sums),
  errors: Object.fromEntries([...(sums.errors ?? [])].sort(([a], [b]) => a < b ? -1 : 1))
})

/** A report as plain values. */
export const plain = ({ rows, totals, truncated }: UsageReport) => ({
  rows: rows.map(({ sums, ...row }) => ({ ...row, ...shown(sums) })),
  totals: shown(totals),
  truncated
})

type Plain = ReturnType<typeof plain>

/** A report without times, where a part of the usage is of a version that kept none. */
export const untimed = ({ rows, totals: { times: _, ...totals }, ...report }: Plain) => ({
  ...report,
  rows: rows.map(({ times: _, ...row }) => row),
  totals
})
type PlainMeasures = Plain["totals"]

/** All that a key pays. */
const costOf = (requests: ReadonlyArray<UsageEntry>): bigint =>
  requests.reduce((sum, { cost = 0n, counted }) => counted ? sum + cost : sum, 0n)

/** The sums of requests, without what others charge, and of what these charge. */
const measured = (requests: ReadonlyArray<UsageEntry>, parts: ReadonlyArray<CostElsewhere> = []): PlainMeasures => {
  const amounts = (of: (part: CostElsewhere) => bigint) => parts.reduce((sum, part) => sum + of(part), 0n)
  const own = requests.map((request) => {
    const { cost = 0n, counted } = request
    return counted ? partsOf(request).reduce((rest, part) => rest - part.cost, cost) : 0n
  })
  const sum = (f: (request: UsageEntry) => number) => requests.reduce((total, request) => total + f(request), 0)
  const count = (f: (request: UsageEntry) => boolean) => requests.filter(f).length
  const codes = requests.flatMap(({ error }) => error ?? []).sort()
  const times: Times = new Map()
  for (const request of requests) addMeasured(times, request)
  return {
    times: shownTimes(times),
    requests: requests.length,
    succeeded: count(({ outcome }) => outcome === "succeeded"),
    failed: count(({ outcome }) => outcome === "failed"),
    left: count(({ outcome }) => outcome === "left"),
    counted_requests: count(({ counted }) => counted),
    prompt_tokens: sum(({ promptTokens }) => promptTokens),
    completion_tokens: sum(({ completionTokens }) => completionTokens),
    reasoning_tokens: sum(({ reasoningTokens }) => reasoningTokens),
    cached_tokens: sum(({ cachedTokens }) => cachedTokens),
    total_tokens: sum(({ completionTokens, promptTokens }) => promptTokens + completionTokens),
    estimated_requests: count((request) => request.estimated && request.promptTokens + request.completionTokens > 0),
    tool_calls: sum(({ toolCalls }) => toolCalls),
    attempts: sum(({ attempts }) => attempts),
    queue_ms: sum(({ queued }) => queued),
    upstream_ms: sum(({ upstream }) => upstream),
    duration_ms: sum(({ duration }) => duration),
    cost: formatDecimal(own.reduce((sum, cost) => sum + cost, amounts(({ cost }) => cost))),
    cache_write_tokens: sum(({ cacheWriteTokens = 0 }) => cacheWriteTokens),
    predicted_tokens: sum(({ predictedTokens = 0 }) => predictedTokens),
    prompt_cache_misses: count(({ isCacheMiss }) => isCacheMiss === true),
    wasted_cost: formatDecimal(
      requests.reduce(
        (sum, { cost, counted, wasted = 0n }) => counted && cost !== undefined ? sum + wasted : sum,
        amounts(({ wasted }) => wasted)
      )
    ),
    unpriced_requests: count(({ cost, counted }) => counted && cost === undefined),
    errors: Object.fromEntries(codes.map((code) => [code, codes.filter((each) => each === code).length]))
  }
}

/** The report that a store must return for these requests; hours before `compactedTo` are merged into days. */
export const expectedReport = (
  requests: ReadonlyArray<UsageEntry>,
  query: UsageQuery,
  compactedTo = 0
): Plain => {
  const { by, from, labels, limit, only, to } = query
  const dayIn = query.dayOf ?? dayOf
  const placed = requests.flatMap((request) => {
    const began = hourOf(request.at)
    const hour = began < compactedTo ? dayOf(began) : began
    const at = (dimensions: Dimensions, part?: CostElsewhere) => ({ dimensions, hour, request, part })
    const parts = request.counted ? partsOf(request) : []
    if (asksSessions(query)) {
      return [at(sessionDimensionsOf(request)), ...parts.map((part) => at(sessionDimensionsOf(request), part))]
    }
    return [
      at(dimensionsOf(request)),
      ...parts.map((part) =>
        at({
          ...dimensionsOf({ ...request, answerer: part.answerer }),
          account: part.account
        }, part)
      )
    ]
  })
  const asked = placed.filter(({ dimensions, hour }) =>
    hour >= from && hour < to && dimensionNames.every((name) => only[name]?.has(dimensions[name]) ?? true) &&
    (labels?.only?.has(labels.of(dimensions.key)) ?? true)
  )
  const sumsOf = (group: typeof asked) =>
    measured(
      group.flatMap(({ part, request }) => part === undefined ? [request] : []),
      group.flatMap(({ part }) => part ?? [])
    )
  const groups = new Map<string, Array<(typeof asked)[number]>>()
  const rowOf = ({ dimensions, hour }: (typeof asked)[number]) => ({
    time: by.includes("hour") ? hour : by.includes("day") ? dayIn(hour) : 0,
    ...dimensionsBy((name) => by.includes(name) ? dimensions[name] : ""),
    label: by.includes("label") ? labels!.of(dimensions.key) : ""
  })
  for (const one of by.length === 0 ? [] : asked) {
    const id = JSON.stringify(rowOf(one))
    groups.set(id, [...(groups.get(id) ?? []), one])
  }
  const rows = [...groups.values()].map((group) => ({ ...rowOf(group[0]!), ...sumsOf(group) }))
  const text = (row: (typeof rows)[number]) =>
    [...dimensionNames, "label" as const].map((name) => row[name]).join("\u0000")
  rows.sort((a, b) => a.time - b.time || b.total_tokens - a.total_tokens || (text(a) < text(b) ? -1 : 1))
  return { rows: rows.slice(0, limit), totals: sumsOf(asked), truncated: rows.length > limit }
}

/** A key's use of the windows that contain `now`, up to the day of `now`. */
export const expectedCounters = (requests: ReadonlyArray<UsageEntry>, key: string, now: number) => {
  const own = requests.filter((request) => request.counted && request.key === key)
  const used = (window: (typeof windowNames)[number]) => {
    const { end, start } = windowAt(window, now)
    const used = own.filter(({ at }) => at >= start && at < end && dayOf(at) <= dayOf(now))
    const { counted_requests, total_tokens } = measured(used)
    return { requests: counted_requests, tokens: total_tokens, cost: costOf(used) }
  }
  return {
    windows: Object.fromEntries(windowNames.map((window) => [window, used(window)])) as KeyCounters["windows"],
    lastUsedAt: own.length === 0 ? undefined : Math.max(...own.map(({ at }) => at))
  }
}

/** Every bucket, one in each row. */
export const everything: UsageQuery = {
  from: 0,
  to: start + 1000 * dayLength,
  by: [...historyNames, "hour"],
  only: {},
  limit: 1_000_000
}

/** A file in a folder that the scope removes. */
export const usageFile = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  return `${yield* fs.makeTempDirectoryScoped({ prefix: "usage-" })}/data/usage.sqlite`
})

/** A store on a file, for the lifetime of the scope. */
export const sqliteStore = (options: SqliteOptions) =>
  Effect.map(
    Layer.build(UsageStore.layerSqlite(options).pipe(Layer.provide(NodeServices.layer))),
    Context.get(UsageStore)
  )

/** Collects the log lines with their levels. */
export const collectLogs = (into: Array<string>) =>
  Logger.layer([Logger.make(({ logLevel, message }) => {
    into.push(`${logLevel} ${String(message)}`)
  })])

export { measureNames, NodeServices }
