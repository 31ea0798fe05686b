/**
 * Compares the limits of keys over two nodes on a real server with a plain model; the times are script arguments.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as fc from "fast-check"
import type { StoreEvent } from "../../src/cluster/store/messages.ts"
import { scripts } from "../../src/cluster/store/scripts.ts"
import { StoreUnavailable } from "../../src/cluster/store/StoreShape.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { sha256Hex } from "../../src/config/json.ts"
import type { KeyLimit } from "../../src/config/windowLimit.ts"
import { keyId } from "../../src/domain/identity.ts"
import { resolveRoute } from "../../src/domain/routes.ts"
import type { Reserved, Used } from "../../src/usage/Admission.ts"
import type { Refused } from "../../src/usage/keyRules.ts"
import { type LimitsStore, makeSharedLimits } from "../../src/usage/sharedLimits.ts"
import { windowAt } from "../../src/usage/windows.ts"
import { runs } from "../support/effort.ts"
import {
  boundsOf,
  type InWindow,
  judged,
  limits,
  nothing,
  prices,
  rawLimits,
  reservedBy
} from "../support/keyLimitModel.ts"
import { command, connect, listOf, type RedisClient, redisServer } from "../support/redisServer.ts"

const keys = ["one", "two"]
const ids = keys.map((key) => keyId(key, sha256Hex))
const minute = 60_000

let scope: Scope.Closeable
let client: RedisClient
beforeAll(async () => {
  scope = Effect.runSync(Scope.make())
  const server = await Effect.runPromise(Scope.provide(redisServer(), scope))
  client = await connect(server.socket)
})
afterAll(async () => {
  client.destroy()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

type Act =
  | { readonly _tag: "enter"; readonly node: number; readonly key: number }
  | {
    readonly _tag: "admit"
    readonly node: number
    readonly key: number
    readonly tokens: number
    readonly lost: boolean
    /** Admits a request that was counted while its body arrived, if there is one. */
    readonly hasEntered: boolean
    readonly takesFallback: boolean
  }
  | { readonly _tag: "settle"; readonly which: number } & Required<Used>
  | { readonly _tag: "pass"; readonly millis: number }
  | {
    readonly _tag: "limit"
    readonly key: number
    readonly most: number | undefined
    readonly limits: ReadonlyArray<KeyLimit>
  }
  /** The store drops a live node, or a dead one. */
  | { readonly _tag: "drop"; readonly node: number; readonly dies: boolean }
  /** The store's data is saved; later another server has what was saved last, and requests end before it answers. */
  | { readonly _tag: "save" }
  | { readonly _tag: "replace"; readonly ends: ReadonlyArray<number> }

const node = fc.nat({ max: 1 })
const limit = fc.record({
  _tag: fc.constant("limit" as const),
  key: node,
  most: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
  limits
})
const common: Array<fc.WeightedArbitrary<Act>> = [
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("enter" as const), node, key: node }) },
  {
    weight: 9,
    arbitrary: fc.record({
      _tag: fc.constant("admit" as const),
      node,
      key: node,
      tokens: fc.nat({ max: 15 }),
      lost: fc.nat({ max: 9 }).map((n) => n === 0),
      hasEntered: fc.boolean(),
      takesFallback: fc.boolean()
    })
  },
  {
    weight: 5,
    arbitrary: fc.record({
      _tag: fc.constant("settle" as const),
      which: fc.nat({ max: 30 }),
      counted: fc.boolean(),
      tokens: fc.nat({ max: 30 }),
      cost: fc.bigInt({ min: 0n, max: 2n ** 54n })
    })
  },
  {
    weight: 3,
    arbitrary: fc.record({
      _tag: fc.constant("pass" as const),
      millis: fc.constantFrom(1, 999, 30_000, minute, 61 * minute, 25 * 60 * minute, 8 * 24 * 60 * minute)
    })
  },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("drop" as const), node, dies: fc.constant(false) }) }
]
const acts: fc.Arbitrary<ReadonlyArray<Act>> = fc.array(
  fc.oneof(
    ...common,
    { weight: 3, arbitrary: limit },
    { weight: 1, arbitrary: fc.record({ _tag: fc.constant("drop" as const), node, dies: fc.constant(true) }) }
  ),
  { maxLength: 40, size: "max" }
)
/** The first key keeps its limits, and no node dies: so the nodes know everything that counts for it. */
const actsOfServers: fc.Arbitrary<ReadonlyArray<Act>> = fc.tuple(
  limit.map((one) => ({ ...one, key: 0 })),
  fc.array(
    fc.oneof(
      ...common,
      { weight: 2, arbitrary: fc.record({ _tag: fc.constant("save" as const) }) },
      {
        weight: 2,
        arbitrary: fc.record({
          _tag: fc.constant("replace" as const),
          ends: fc.array(fc.nat({ max: 30 }), { maxLength: 3 })
        })
      }
    ),
    { maxLength: 40, size: "max" }
  )
).map(([first, rest]) => [first, ...rest])

/** Times near the ends of minutes, days, weeks and months, including leap days. */
const beginnings = ["2028-02-28T23:59:58Z", "2028-02-29T23:59:59Z", "2027-12-31T23:58:00Z", "2026-11-22T23:00:00Z"]

/** A request in the model. */
interface Known {
  readonly node: number
  readonly key: string
  /** Until its admission. */
  readonly entry: { readonly entered: Reserved; readonly scope: Scope.Closeable } | undefined
  readonly at: number
  readonly end: (used: Used) => Promise<void>
  /** What it has reserved of a window, or used. */
  share: InWindow
  counts: boolean
  open: boolean
}

const nothingUsed: Used = { counted: false, tokens: 0, cost: 0n }

const codeOf = (exit: Exit.Exit<unknown, Refused>): string | undefined => {
  const refused = Exit.findErrorOption(exit)
  return refused._tag === "Some" ? refused.value.error.code : undefined
}

const run = (
  time: number,
  script: "keys" | "attach" | "beat" | "leave",
  name: string,
  ...args: ReadonlyArray<string>
) => client.sendCommand(["EVAL", scripts[script].lua, "0", String(time), name, name, ...args]) as Promise<Array<string>>

/** Asks for a request of the first key with what it reserves. Returns the verdict. */
const admitAt = async (
  time: number,
  name: string,
  ticket: number,
  reserved: Readonly<Record<string, unknown>>,
  limits: ReadonlyArray<unknown>
) => {
  const key = ids[0]!
  const asked = { key, ticket: `t.${ticket}`, entered: "", reserved: { key, ...reserved }, limits }
  return (await run(time, "keys", name, "admit", JSON.stringify(asked)))[0]
}

/** Ends a request that has used tokens. */
const endAt = (time: number, name: string, ticket: number, tokens: number) => {
  const requests = [[`t.${ticket}`, 1, [tokens, 0, 0]]]
  const asked = { batch: `b${ticket}`, requests, used: [], held: [], limited: [] }
  return run(time, "keys", name, "tell", JSON.stringify(asked))
}

const interleave = async (beginning: string, acts: ReadonlyArray<Act>, config: ConfigStore["Service"]) => {
  let now = Date.parse(beginning)
  const under = new Set<Promise<unknown>>()
  let losesAnswers = false
  let isLost = false
  let isSaved = false
  /** Whether the counts are those of the model. What nodes bring back may contain reservations of requests that have used less. */
  let isExact = true
  const model = resolveRoute(config.now().route_table, "usual", "upstream-chat")
  await client.sendCommand(["FLUSHALL"])
  await client.sendCommand(["SET", "gw:{main}:epoch", "e"])
  await Effect.runPromise(config.update((raw) => Effect.succeed({ ...raw, keys: [...keys], key_records: {} })))

  const attach = async (name: string) => {
    const reply = await run(now, "attach", name, "0", "e", "e", "test", "0", "[]", "[]")
    await stay(name)
    return Number(reply[7])
  }
  const stay = (name: string) => client.sendCommand(["ZADD", "gw:{main}:nodes", "inf", name])

  const makeNode = (name: string) => {
    const listeners: Array<Parameters<LimitsStore["listen"]>[0]> = []
    const brings: Array<Parameters<LimitsStore["membership"]["bringsBack"]>[0]> = []
    const store: LimitsStore = {
      isUp: () => true,
      clockOffset: () => 0,
      listen: (listener) => void listeners.push(listener),
      membership: { bringsBack: (bring) => void brings.push(bring) },
      run: (script, ...args) =>
        Effect.tryPromise({
          try: async () => {
            if (isLost) throw new Error("the store is lost")
            const lost = losesAnswers
            const reply = await run(now, script as "keys", name, ...args)
            if (lost) throw new Error("the answer was lost")
            return reply.map(String)
          },
          catch: () => new StoreUnavailable({ message: "lost" })
        })
    }
    const limits = makeSharedLimits(store, config, () => now, (effect) => {
      const running = Effect.runPromise(effect)
      under.add(running)
      void running.finally(() => under.delete(running))
    })
    return {
      limits,
      say: (event: StoreEvent) => listeners.forEach((listener) => listener(event)),
      bringBack: (at: number) =>
        Effect.runPromise(Effect.forEach(brings, (bring) => bring({ isEmpty: false, at }), { discard: true }))
    }
  }
  const names = ["n1", "n2"]
  const nodes = names.map(makeNode)
  for (const name of names) await attach(name)

  const settled = async () => {
    while (under.size > 0) await Promise.all(under)
  }
  const calm = async () => {
    await settled()
    for (const { say } of nodes) say({ _tag: "beat" })
    await settled()
  }
  const copyAll = async (from: number, to: number) => {
    await client.sendCommand(["SELECT", String(to)])
    await client.sendCommand(["FLUSHDB"])
    await client.sendCommand(["SELECT", String(from)])
    for (const key of await listOf(client, "KEYS", "*")) {
      await client.sendCommand(["COPY", key, key, "DB", String(to)])
    }
    await client.sendCommand(["SELECT", "0"])
  }

  const known: Array<Known> = []
  const used = (key: string, window: KeyLimit["window"]) => {
    const { end, start } = windowAt(window, now)
    const own = known.filter((one) => one.key === key && one.counts && one.at >= start && one.at < end)
    return {
      requests: own.length,
      tokens: own.reduce((sum, { share }) => sum + share(window).tokens, 0),
      cost: own.reduce((sum, { share }) => sum + share(window).cost, 0n)
    }
  }
  const inFlight = (key: string) => known.filter((one) => one.key === key && one.open).length

  const settle = async (which: number, { cost, counted, tokens }: Required<Used>) => {
    const one = known[which]
    if (one === undefined || !one.open) return
    await one.end({ cost, counted, tokens })
    // Only the first counts.
    await one.end({ counted: !counted, tokens: 99, cost: 99n })
    Object.assign(one, {
      open: false,
      ...(one.entry === undefined ? { counts: counted, share: () => ({ tokens, cost }) } : { counts: false })
    })
  }

  for (const step of acts) {
    switch (step._tag) {
      case "pass":
        now += step.millis
        break
      case "settle":
        await settle(step.which, step)
        break
      case "save":
        await copyAll(0, 1)
        isSaved = true
        break
      case "replace":
        if (!isSaved) break
        isExact = false
        isLost = true
        for (const which of step.ends) await settle(which, { counted: true, tokens: 20, cost: 2n ** 53n })
        await settled()
        isLost = false
        await copyAll(1, 0)
        await client.sendCommand(["HSET", "gw:{main}:lim", "server", "the one before"])
        for (const [i, name] of names.entries()) {
          const at = await attach(name)
          nodes[i]!.say({ _tag: "beat" })
          await settled()
          await nodes[i]!.bringBack(at)
          await run(now, "beat", name, "0", "up", "0", "1")
          await stay(name)
        }
        now += 1_500
        break
      case "limit": {
        const record = {
          ...(step.most === undefined ? {} : { max_inflight: step.most }),
          limits: rawLimits(step.limits)
        }
        await Effect.runPromise(
          config.update((raw) =>
            Effect.succeed({ ...raw, key_records: { ...raw["key_records"] as object, [ids[step.key]!]: record } })
          )
        )
        break
      }
      case "drop": {
        const name = names[step.node]!
        await run(now, "leave", name)
        await attach(name)
        if (step.dies) {
          nodes[step.node] = makeNode(name)
          // The usage of its admitted requests stays.
          for (const one of known) if (one.node === step.node) one.open = false
        } else nodes[step.node]!.say({ _tag: "dropped", leases: 1 })
        break
      }
      case "enter": {
        const key = ids[step.key]!
        const most = config.now().key_records.get(key)?.max_inflight
        if (most === undefined) break
        const { limits } = nodes[step.node]!
        const scope = Effect.runSync(Scope.make())
        const entered = await Effect.runPromise(Effect.exit(Scope.provide(limits.enter(key), scope)))
        if (isExact || Exit.isSuccess(entered)) assert.strictEqual(Exit.isSuccess(entered), inFlight(key) < most)
        if (Exit.isFailure(entered)) break
        known.push({
          node: step.node,
          key,
          at: now,
          end: () => Effect.runPromise(Scope.close(scope, Exit.void)),
          entry: { entered: entered.value, scope },
          share: nothing,
          counts: true,
          open: true
        })
        break
      }
      case "admit": {
        const key = ids[step.key]!
        const before = step.hasEntered
          ? known.find((one) => one.node === step.node && one.key === key && one.open && one.entry !== undefined)
          : undefined
        if (before !== undefined) Object.assign(before, { open: false, counts: false })
        const record = config.now().key_records.get(key)
        const isLimited = record?.max_inflight !== undefined || (record?.limits.length ?? 0) > 0
        const verdict = inFlight(key) < (record?.max_inflight ?? Number.POSITIVE_INFINITY)
          ? judged({ limits: record?.limits ?? [] }, step.tokens, step.takesFallback, (window) => used(key, window))
          : undefined
        const own = before?.entry?.scope ?? Effect.runSync(Scope.make())
        let spent = nothingUsed
        const end = (by: Used) => {
          spent = by
          return Effect.runPromise(Scope.close(own, Exit.void))
        }
        const isUnknown = step.lost && isLimited
        losesAnswers = isUnknown
        const admitted = await Effect.runPromise(Effect.exit(Scope.provide(
          nodes[step.node]!.limits.admit({
            key,
            model,
            promptTokens: () => step.tokens,
            bounds: boundsOf(step.tokens),
            takesFallback: step.takesFallback,
            used: () => spent,
            entered: before?.entry?.entered
          }),
          own
        )))
        losesAnswers = false
        if (isUnknown) {
          // Its admission is unknown, so it is released.
          assert.strictEqual(codeOf(admitted), "store_unavailable")
          await end(nothingUsed)
          break
        }
        if (isExact || Exit.isSuccess(admitted)) assert.strictEqual(Exit.isSuccess(admitted), verdict !== undefined)
        if (Exit.isFailure(admitted)) {
          assert.strictEqual(codeOf(admitted), "rate_limit_exceeded")
          await end(nothingUsed)
          break
        }
        if (isExact) assert.strictEqual(admitted.value.fallback !== undefined, verdict?.isFallback)
        // Requests without limits are counted at their end.
        known.push({
          node: step.node,
          key,
          at: now,
          end,
          entry: undefined,
          share: reservedBy(record?.limits ?? [], step.tokens, admitted.value.fallback !== undefined),
          counts: isLimited,
          open: true
        })
        break
      }
    }
    await calm()
    for (const { limits } of nodes) {
      const seen = await Effect.runPromise(limits.usageOf(ids))
      for (const [i, key] of ids.entries()) {
        assert.strictEqual(seen[i]?.inFlight, inFlight(key))
        for (const { cost, requests, resetsAt, startedAt, tokens, window } of seen[i]?.windows ?? []) {
          assert.deepStrictEqual({ start: startedAt, end: resetsAt }, windowAt(window, now))
          const least = used(key, window)
          if (isExact) assert.deepStrictEqual({ requests, tokens, cost }, least, window)
          else if ((config.now().key_records.get(key)?.limits.length ?? 0) > 0) {
            assert.isAtLeast(requests, least.requests, window)
            assert.isAtLeast(tokens, least.tokens, window)
            assert.isTrue(cost >= least.cost, `${cost} ${least.cost} ${window}`)
          }
        }
      }
    }
  }
  for (const one of known) if (one.open) await one.end(nothingUsed)
  await calm()
  for (const { inFlight: left } of await Effect.runPromise(nodes[0]!.limits.usageOf(ids))) assert.strictEqual(left, 0)
  assert.strictEqual(await command(client, "EXISTS", "gw:{main}:usage:use", "gw:{main}:usage:adm:n1"), 0)
}

describe("the limits of keys over two nodes", () => {
  const holds = (arbitrary: fc.Arbitrary<ReadonlyArray<Act>>, tries: number) =>
    Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const config = Context.get(yield* Layer.build(ConfigStore.layerJson({ keys: [...keys], prices })), ConfigStore)
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            fc.constantFrom(...beginnings),
            arbitrary,
            (beginning, steps) => interleave(beginning, steps, config)
          ),
          { numRuns: runs(tries) }
        )
      )
    })))

  it("are never exceeded and never leak under any interleaving", () => holds(acts, 60))

  it("hold after the store's clock has jumped forth and back", async () => {
    const day = 24 * 60 * minute
    const noon = Date.parse("2026-11-21T12:00:00Z")
    await client.sendCommand(["FLUSHALL"])
    await client.sendCommand(["SET", "gw:{main}:epoch", "e"])
    await run(noon, "attach", "n1", "0", "e", "e", "test", "0", "[]", "[]")
    await client.sendCommand(["ZADD", "gw:{main}:nodes", "inf", "n1"])
    let tickets = 0
    const admit = (time: number) =>
      admitAt(time, "n1", ++tickets, { share: [10, 0, 0], letters: "", strict: [10, 0, 0] }, [["d", 2, -1, -1, 0, 0]])
    const end = (time: number, ticket: number, tokens: number) => endAt(time, "n1", ticket, tokens)
    assert.deepStrictEqual([await admit(noon), await admit(noon), await admit(noon)], ["ok", "ok", "refused"])
    for (const jump of [day, 2 * day, -day, 500 * day]) {
      assert.strictEqual(await admit(noon + jump), "ok")
      assert.strictEqual(await admit(noon), "refused", `a jump of ${jump / day} days`)
    }
    await end(noon + 500 * day, 1, 25)
    const [, , , , ...fields] = await run(noon, "keys", "n1", "look", JSON.stringify([ids[0]!]))
    const ofDay = fields.slice(2 * 4, 2 * 4 + 2)
    assert.deepStrictEqual(ofDay, ["2", "35"])
    // Of each window, it keeps the current one and two on each side.
    for (let days = 1; days < 40; days++) await admit(noon + days * day)
    const kept = await listOf(client, "HKEYS", `gw:{main}:usage:w:${ids[0]!}`)
    assert.isAtMost(kept.length, 5 * 5 * 2)
  })

  it("let exactly those of thirty concurrent strict requests pass that fit, over both nodes", async () => {
    const noon = Date.parse("2026-11-21T12:00:00Z")
    await client.sendCommand(["FLUSHALL"])
    await client.sendCommand(["SET", "gw:{main}:epoch", "e"])
    for (const name of ["n1", "n2"]) {
      await run(noon, "attach", name, "0", "e", "e", "test", "0", "[]", "[]")
      await client.sendCommand(["ZADD", "gw:{main}:nodes", "inf", name])
    }
    const reserved = { share: [2, 0, 0], letters: "dw", strict: [30, 0, 0] }
    const limits = [["d", -1, 100, -1, 0, 1], ["h", -1, 1_000, -1, 0, 0]]
    const admit = (name: string, ticket: number) => admitAt(noon, name, ticket, reserved, limits)
    const verdicts = await Promise.all(Array.from({ length: 30 }, (_, i) => admit(i % 2 === 0 ? "n1" : "n2", i)))
    assert.strictEqual(verdicts.filter((verdict) => verdict === "ok").length, 3)
    const used = async () => {
      const [, , , , ...fields] = await run(noon, "keys", "n1", "look", JSON.stringify([ids[0]!]))
      return [0, 1, 2, 3, 4].map((window) => fields[window * 4 + 1])
    }
    assert.deepStrictEqual(await used(), ["6", "6", "90", "90", "6"])
    for (const [i, verdict] of verdicts.entries()) {
      if (verdict === "ok") await endAt(noon, i % 2 === 0 ? "n1" : "n2", i, 5)
    }
    assert.deepStrictEqual(await used(), ["15", "15", "15", "15", "15"])
  })

  it("are never exceeded when another server has older data", () => holds(actsOfServers, 40))
})
