/**
 * Compares the scripts with `Pools` for requests that need room in budgets and a model that the server of an account takes: the same
 * operations of several nodes give the same grants and refusals, in the same order and with the same times.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Budgets, hasBudgets, type LeaseBudget } from "../../src/accounts/budgets.ts"
import type { LeaseTarget } from "../../src/accounts/Lease.ts"
import type { ModelLimits } from "../../src/accounts/ModelLimits.ts"
import { PooledAccount } from "../../src/accounts/PooledAccount.ts"
import { Quotas } from "../../src/accounts/quota.ts"
import { needsWords, usedFields } from "../../src/accounts/shared/poolScripts.ts"
import { scripts } from "../../src/cluster/store/scripts.ts"
import type { GatewayConfig } from "../../src/config/GatewayConfig.ts"
import { type KeyLimit, limitFields } from "../../src/config/windowLimit.ts"
import { GatewayError, gatewayError } from "../../src/domain/GatewayError.ts"
import { encodeWindows, type QuotaWindow } from "../../src/domain/quota.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import { RequestNeeds } from "../../src/placement/needs.ts"
import { Pools } from "../../src/placement/Pools.ts"
import type { LeaseRequest, Limits, Refusal, Waiter } from "../../src/placement/PoolState.ts"
import { notCounted } from "../../src/usage/Admission.ts"
import { runs } from "../support/effort.ts"
import {
  claimOf,
  configOf,
  endOf,
  grantsOf,
  leaseRequestText,
  nodes,
  type Outcome,
  poolOf,
  refusalsOf,
  ScriptNodes
} from "./scripts.ts"
import { storedLease } from "./support.ts"

const begin = Date.UTC(2027, 0, 4, 12)
const upstreams = ["one", "two"] as const
type Upstream = typeof upstreams[number]
const lettersOf = ["a", "b", "c"]
const keysOf = (name: string) => lettersOf.map((letter) => `${name}/${letter}`)
const keys = upstreams.flatMap(keysOf)
/** The models of each upstream; servers name classes of models by parts of their names. */
const models = [{ id: "m", model: "big-m" }, { id: "n", model: "n/small,x" }]

interface Asked {
  readonly targets: ReadonlyArray<LeaseTarget>
  /** Which of them the accounts to avoid do not serve. */
  readonly failed: number
  /** Whether it says which models it asks for, and what it may use of budgets. */
  readonly needs: boolean
  readonly leaseRequest: LeaseRequest
  readonly spread: "order" | "even"
  readonly hold: boolean
  readonly patience: number
  readonly isBackground: boolean
  readonly tokens: number
  /** Whether strict budgets can bound it. */
  readonly isBounded: boolean
}

interface Config {
  readonly limits: Limits
  readonly reserve: number
  /** By accounts, and by upstreams. */
  readonly budgets: Readonly<Record<string, ReadonlyArray<KeyLimit>>>
  readonly keys: ReadonlyArray<string>
}

type Op =
  | { readonly _tag: "Request"; readonly asked: Asked }
  | { readonly _tag: "Close"; readonly nth: number; readonly tokens: number; readonly counted: boolean }
  | { readonly _tag: "Widen" | "Late"; readonly nth: number }
  | { readonly _tag: "Learn"; readonly key: string; readonly window: Omit<QuotaWindow, "seen_at"> }
  | { readonly _tag: "Suspend"; readonly key: string; readonly state: "cooling" | "out"; readonly delay: number }
  | { readonly _tag: "Restore"; readonly key: string }
  | { readonly _tag: "Advance"; readonly by: number }
  /** The budgets stay: the store counts what a lease has used of those that came after it, and a process does not. */
  | { readonly _tag: "Configure"; readonly config: Omit<Config, "budgets"> }

const key = fc.constantFrom(...keys)
const nth = fc.nat(30)
const allTargets = upstreams.flatMap((upstream) => models.map(({ id }): LeaseTarget => ({ upstream, model: id })))

const asked: fc.Arbitrary<Asked> = fc.record({
  targets: fc.shuffledSubarray(allTargets, { minLength: 1 }),
  failed: fc.constantFrom(0, 0, 1, 9),
  needs: fc.constantFrom(true, true, true, true, false),
  leaseRequest: fc.oneof(
    { weight: 6, arbitrary: fc.constant<LeaseRequest>({ _tag: "Any", avoid: new Set() }) },
    {
      weight: 3,
      arbitrary: fc.subarray(keys, { minLength: 2 }).map((some): LeaseRequest => ({
        _tag: "Any",
        avoid: new Set(some)
      }))
    },
    { weight: 2, arbitrary: key.map((key): LeaseRequest => ({ _tag: "Pinned", key })) }
  ),
  spread: fc.constantFrom("order" as const, "even" as const),
  hold: fc.boolean(),
  patience: fc.constantFrom(0, 20_000, 200_000, 5 * 3_600_000),
  isBackground: fc.constantFrom(true, false, false),
  tokens: fc.integer({ min: 1, max: 30 }),
  isBounded: fc.constantFrom(true, true, true, false)
})

const limit: fc.Arbitrary<KeyLimit> = fc.record({
  window: fc.constantFrom("minute", "hour"),
  requests: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
  tokens: fc.option(fc.integer({ min: 5, max: 90 }), { nil: undefined, freq: 3 }),
  strict: fc.boolean()
})
const budget = fc.oneof(
  { weight: 2, arbitrary: fc.constant([]) },
  { weight: 1, arbitrary: limit.map((one) => [one]) }
)

const config: fc.Arbitrary<Config> = fc.record({
  limits: fc.record({
    perAccount: fc.integer({ min: 1, max: 2 }),
    global: fc.integer({ min: 1, max: 9 }),
    queue: fc.integer({ min: 0, max: 8 }),
    direct: fc.constant(1)
  }),
  reserve: fc.constantFrom(0, 0.2),
  budgets: fc.tuple(...[...keys, ...upstreams].map((subject) => fc.tuple(fc.constant(subject), budget))).map((all) =>
    Object.fromEntries(all)
  ),
  keys: fc.subarray(keys, { minLength: 3 })
})

/** Windows of a model, of a class of models by a part of its name, and of the whole account. Times are milliseconds from now. */
const window: fc.Arbitrary<Omit<QuotaWindow, "seen_at">> = fc.record({
  of: fc.constantFrom(
    { window: "requests", model: "m" },
    { window: "requests", model: "n" },
    { window: "7d_big", model: "big" },
    { window: "5h", model: null }
  ),
  used: fc.constantFrom(0.5, 0.85, 1),
  status: fc.constantFrom("exhausted" as const, "exhausted" as const, "ok" as const),
  resets_at: fc.constantFrom(1_000, 30_000, 90_000, 3 * 3_600_000),
  /** The share of that time after which it has room. */
  room: fc.constantFrom(0.5, 1)
}).map(({ of, resets_at, room, status, used }) => ({
  ...of,
  used,
  status,
  resets_at,
  room_at: resets_at * room,
  limit: null,
  remaining: null
}))

const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 14, arbitrary: fc.record({ _tag: fc.constant("Request" as const), asked }) },
  {
    weight: 8,
    arbitrary: fc.record({ _tag: fc.constant("Close" as const), nth, tokens: fc.nat(40), counted: fc.boolean() })
  },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Widen" as const), nth }) },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Late" as const), nth }) },
  { weight: 6, arbitrary: fc.record({ _tag: fc.constant("Learn" as const), key, window }) },
  {
    weight: 2,
    arbitrary: fc.record({
      _tag: fc.constant("Suspend" as const),
      key,
      state: fc.constantFrom("cooling" as const, "cooling" as const, "out" as const),
      delay: fc.integer({ min: 1, max: 90_000 })
    })
  },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Restore" as const), key }) },
  {
    weight: 5,
    arbitrary: fc.record({
      _tag: fc.constant("Advance" as const),
      by: fc.oneof(
        { weight: 8, arbitrary: fc.integer({ min: 1, max: 40_000 }) },
        { weight: 1, arbitrary: fc.constant(3_600_000) }
      )
    })
  },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Configure" as const), config }) }
)

const nodeOf = (id: number) => nodes[id % nodes.length]!

/** What a request reserves: its tokens, and twice as many of strict budgets. */
const budgetOf = ({ isBounded, tokens }: Asked): LeaseBudget => {
  const share = { tokens, cost: 0n, strict: undefined }
  const strict = { tokens: 2 * tokens, cost: 0n }
  return {
    shareOf: (_, limits) => {
      const windows = limits.filter((each) => each.strict && each.tokens !== undefined).map((each) => each.window)
      if (windows.length === 0) return share
      return isBounded ? { ...share, strict: { ...strict, windows } } : gatewayError("invalid_request", "unbounded")
    },
    sharesOf: () => isBounded ? { ...share, strict: { ...strict, windows: [] } } : share,
    used: () => notCounted,
    isStrict: false
  }
}

let cluster: ScriptNodes

/** `Pools` with budgets and quotas, as a process drives them. */
class Oracle {
  now = begin
  config: Config
  readonly pools = new Pools<PooledAccount>()
  readonly waiters = new Map<number, Waiter<PooledAccount>>()
  readonly needs = new Map<number, RequestNeeds>()
  live: Array<number> = []
  outcomes: Array<Outcome> = []
  /** When the servers of models take requests again, which nodes know from the beginning. */
  readonly #limited: Readonly<Record<string, number>>
  #accounts = new Map<string, PooledAccount>()
  #parsed: GatewayConfig
  #numbers = 0
  readonly quotas = new Quotas((key) => this.#accounts.get(key), () => this.#parsed, () => this.now, undefined)
  readonly budgets = new Budgets(() => this.#parsed, () => this.now)

  constructor(config: Config, limited: Readonly<Record<string, number>>) {
    this.config = config
    this.#limited = limited
    this.#parsed = this.#parse()
    this.budgets.changed = (account) => this.#spend(account)
    this.quotas.changed = (account) => this.pools.get(account.upstream)?.reconsider(this.#slotOf(account))
    this.configure(config)
  }

  #slotOf(account: PooledAccount) {
    return this.pools.get(account.upstream)?.get(account.key)
  }

  #parse(): GatewayConfig {
    const { budgets, reserve } = this.config
    const named = upstreams.map((name) => [name, { budgets: budgets[name]!, models, reserve }] as const)
    return {
      upstreams: new Map(named),
      accounts: this.config.keys.map((key) => ({ budgets: budgets[key] })),
      key_records: new Map()
    } as unknown as GatewayConfig
  }

  #spend(account: PooledAccount): void {
    const slot = this.#slotOf(account)
    const pool = this.pools.get(account.upstream)
    if (pool === undefined) return
    const [own, ofUpstream] = this.budgets.spentOf(account)
    if (slot !== undefined) pool.spend(slot, own)
    pool.spendAll(ofUpstream)
    pool.reconsider(this.config.budgets[account.upstream]!.length === 0 ? slot : undefined)
  }

  configure(config: Config): void {
    this.config = config
    const known = this.#accounts
    this.#accounts = new Map(config.keys.map((key) => {
      const account = known.get(key) ?? new PooledAccount(key.split("/")[0]!, key, key, undefined)
      account.account = { budgets: config.budgets[key] } as unknown as NonNullable<PooledAccount["account"]>
      return [key, account]
    }))
    this.#parsed = this.#parse()
    // A new configuration settles the budgets before it serves anybody.
    this.apply(0)
    for (const account of this.#accounts.values()) this.#spend(account)
    this.apply(99)
  }

  apply(limit: number): void {
    const pools = upstreams.map((name) => {
      const own = Array.from(this.#accounts).filter(([key]) => key.startsWith(name))
      const { limits } = this.config
      return [name, {
        accounts: new Map(own),
        limits,
        disabled: new Set<string>(),
        enabled: true,
        choice: undefined
      }] as const
    })
    runSync(this.pools.configure(new Map(pools), limit))
  }

  untilOf({ model, upstream }: LeaseTarget): number {
    const until = this.#limited[`${upstream}/${model}`] ?? 0
    return until > this.now ? until : 0
  }

  budgetOf(asked: Asked): LeaseBudget | undefined {
    return hasBudgets(this.#parsed) ? budgetOf(asked) : undefined
  }

  note(id: number, refusal: Refusal | undefined): void {
    if (refusal === undefined) this.outcomes.push([id, this.waiters.get(id)!.slot?.key])
    else {
      this.outcomes.push([id, undefined, refusal._tag])
      this.live.splice(this.live.indexOf(id), 1)
    }
  }

  /** Returns the refusal of a request that gets no place. */
  request(id: number, asked: Asked): Refusal | undefined {
    const { hold, isBackground, leaseRequest, patience, spread, targets } = asked
    const failed = targets[asked.failed]
    this.live.push(id)
    const known = {
      budgets: this.budgets,
      quotas: this.quotas,
      modelLimits: {
        waitFor: (target: LeaseTarget) => Math.max(0, this.untilOf(target) - this.now)
      } as unknown as ModelLimits,
      unixNow: () => this.now,
      now: () => this.now,
      newNumber: () => ++this.#numbers
    }
    const needs = asked.needs
      ? new RequestNeeds(known, { avoid: avoidOf(asked), budget: this.budgetOf(asked), failed, targets }, isBackground)
      : undefined
    if (needs !== undefined) this.needs.set(id, needs)
    const pools = poolsOf(asked)
    const waiter = this.pools.request(
      { pools, preferred: undefined, needs, spread, hold, request: leaseRequest, now: this.now, patience, about: "" },
      (refusal) => this.note(id, refusal)
    )
    if ("_tag" in waiter) {
      this.note(id, waiter)
      return waiter
    }
    this.waiters.set(id, waiter)
    // The request itself comes before the waiters that its grant serves.
    if (waiter.state === "granted") this.outcomes.unshift([id, waiter.slot?.key])
    return undefined
  }

  close(id: number, tokens: number, counted: boolean): void {
    const taken = this.needs.get(id)?.reserved
    this.live.splice(this.live.indexOf(id), 1)
    // The store serves waiters once the lease is settled and closed.
    this.apply(0)
    if (taken !== undefined && !(taken instanceof GatewayError)) taken.settle({ counted, tokens, cost: 0n })
    this.pools.close(this.waiters.get(id)!)
    this.apply(99)
  }

  learn(key: string, text: string): void {
    const account = this.#accounts.get(key)
    if (account !== undefined) this.quotas.received(account, text)
  }
}

const avoidOf = ({ leaseRequest }: Asked): ReadonlySet<string> =>
  leaseRequest._tag === "Any" ? leaseRequest.avoid : new Set()

const poolsOf = (
  { targets }: Asked
): ReadonlyArray<Upstream> => [...new Set(targets.map(({ upstream }) => upstream as Upstream))]

/** Runs the same operations on both and compares the outcomes. */
const compare = async (first: Config, limited: Readonly<Record<string, number>>, ops: ReadonlyArray<Op>) => {
  const own = new Oracle(first, limited)
  let revision = 0
  let ids = 0
  const waiting = () => own.live.filter((id) => own.waiters.get(id)?.state === "waiting")

  const configure = async ({ budgets, keys, limits, reserve }: Config) => {
    const { direct, global, perAccount: per, queue } = limits
    const pools = upstreams.map((name) =>
      poolOf(name, keys.filter((key) => key.startsWith(name)), { per, global, queue, direct, reserve })
    )
    const subjects = Object.entries(budgets).flatMap(([subject, limits]) => {
      const name = subject.includes("/") ? subject : `@${subject}`
      const isKnown = !subject.includes("/") || keys.includes(subject)
      return isKnown && limits.length > 0 ? [[name, limits.map(limitFields)] as const] : []
    })
    await cluster.run(scripts.configure, "one", configOf(++revision, { pools, total: 99, budgets: subjects }))
    return cluster.told()
  }

  /** A refusal, with the milliseconds after which the request may come again. */
  const refusalText = (refusal: Refusal) =>
    `${refusal._tag} ${refusal._tag === "Cooling" ? refusal.until - own.now : 0}`

  const request = async (id: number, asked: Asked, refusal: Refusal | undefined) => {
    const budget = own.budgetOf(asked)
    const targets = poolsOf(asked).map((pool) => {
      const named = asked.targets.filter(({ upstream }) => upstream === pool).map((target) => ({
        ...own.quotas.asked(pool, target.model),
        until: own.untilOf(target),
        isFailed: target === asked.targets[asked.failed]
      }))
      const needs = asked.needs ? needsWords(named, budget?.sharesOf(pool, own.now), asked.isBackground) : ""
      return { pool, request: leaseRequestText(asked.leaseRequest) + needs }
    })
    const claim = claimOf(targets, { spread: asked.spread, holds: asked.hold, patience: asked.patience })
    const ask = () => cluster.acquire(nodeOf(id), String(id), claim)
    const reply = await ask()
    const [verdict, second = "", third] = reply
    // A repeated ticket gets the same result.
    if (verdict !== "refused") assert.deepStrictEqual(await ask(), reply)
    const told = await cluster.told()
    if (verdict === "waiting") return told
    if (verdict === "granted") return [[id, second] as Outcome, ...told]
    if (refusal !== undefined) assert.strictEqual(`${second} ${third}`, refusalText(refusal))
    return [[id, undefined, second] as Outcome, ...told]
  }

  /** The model of a lease, by its number among those of the request at the upstream. */
  const checkModel = async (id: number, asked: Asked) => {
    const [held] = await cluster.send("HMGET", `gw:{main}:leases:${nodeOf(id)}`, String(id))
    const lease = storedLease(held)
    if (lease === null || !asked.needs) return
    const mine = asked.targets.filter(({ upstream }) => upstream === lease.pool)
    assert.deepStrictEqual(mine[lease.model - 1], own.needs.get(id)?.target)
  }

  const askedBy = new Map<number, Asked>()
  await cluster.open()
  cluster.now = own.now
  await configure(first)
  for (const op of ops) {
    own.outcomes = []
    let actual: ReadonlyArray<Outcome> = []
    switch (op._tag) {
      case "Request": {
        const id = ids++
        askedBy.set(id, op.asked)
        const refusal = own.request(id, op.asked)
        actual = await request(id, op.asked, refusal)
        break
      }
      case "Close": {
        const id = own.live[op.nth % own.live.length]
        if (id === undefined) break
        await checkModel(id, askedBy.get(id)!)
        const taken = own.needs.get(id)?.reserved
        own.close(id, op.tokens, op.counted)
        const used = { counted: op.counted, tokens: op.tokens, cost: 0n }
        const isReserved = taken !== undefined && !(taken instanceof GatewayError)
        await cluster.run(
          scripts.release,
          nodeOf(id),
          String(id),
          endOf(isReserved ? { used: usedFields(used) } : {})
        )
        actual = await cluster.told()
        break
      }
      case "Widen":
      case "Late": {
        const id = waiting()[op.nth % waiting().length]
        if (id === undefined) break
        const waiter = own.waiters.get(id)!
        if (op._tag === "Widen") {
          own.pools.widen(waiter)
          await cluster.run(scripts.places, nodeOf(id), "widen", String(id))
        } else {
          const refusal = own.pools.late(waiter)
          own.pools.close(waiter)
          own.live.splice(own.live.indexOf(id), 1)
          const [verdict, reason, left] = await cluster.run(scripts.late, nodeOf(id), String(id))
          assert.deepStrictEqual([verdict, `${reason} ${left}`], ["refused", refusalText(refusal)])
        }
        actual = await cluster.told()
        break
      }
      case "Learn": {
        const { resets_at, room_at, ...window } = op.window
        const at = { resets_at: own.now + resets_at, room_at: own.now + room_at, seen_at: own.now }
        const text = encodeWindows([{ ...window, ...at }])
        own.learn(op.key, text)
        actual = (await cluster.oracle("learn", op.key, text)).told
        break
      }
      case "Suspend":
      case "Restore": {
        const pool = own.pools.get(op.key.split("/")[0]!)
        const slot = pool?.get(op.key)
        if (op._tag === "Suspend") {
          const until = own.now + op.delay
          if (slot !== undefined) pool?.suspend(slot, op.state, until)
          actual = (await cluster.oracle("suspend", op.key, op.state, String(until), String(until))).told
        } else {
          if (slot !== undefined) pool?.restore(slot)
          actual = (await cluster.oracle("restore", op.key)).told
        }
        break
      }
      case "Advance": {
        own.now += op.by
        cluster.now = own.now
        const due = own.pools.recover(own.now).map((slot) => slot.key)
        const { reply, told } = await cluster.oracle("recover")
        assert.sameMembers(reply.slice(1), due)
        actual = told
        break
      }
      case "Configure": {
        const config = { ...op.config, budgets: first.budgets }
        own.configure(config)
        actual = await configure(config)
        break
      }
    }
    assert.deepStrictEqual(grantsOf(actual), grantsOf(own.outcomes), op._tag)
    assert.sameDeepMembers(refusalsOf(actual), refusalsOf(own.outcomes), op._tag)
    const [inUse, waiters, ...each] = (await cluster.oracle("pools")).reply
    assert.deepStrictEqual([inUse, waiters], [own.pools.inUse, own.pools.waiting].map(String), op._tag)
    const expected = upstreams.map((name) => {
      const pool = own.pools.get(name)!
      return `${name} ${[pool.inUse, pool.waiting, pool.available, "no -", pool.inUse].join(" ")} configured`
    })
    assert.deepStrictEqual(each, expected, op._tag)
  }
}

describe("the scripts of needs", () => {
  beforeAll(async () => {
    cluster = await ScriptNodes.start()
  })
  afterAll(() => cluster.stop())

  it("give the same results as Pools with budgets and pauses of models, under any interleaving", async () => {
    const limited = fc.record(Object.fromEntries(allTargets.map(({ model, upstream }) => [
      `${upstream}/${model}`,
      fc.constantFrom(0, 0, 0, begin + 45_000)
    ])))
    await fc.assert(
      fc.asyncProperty(config, limited, fc.array(op, { maxLength: 100, size: "max" }), compare),
      { numRuns: runs(60) }
    )
  })
})
