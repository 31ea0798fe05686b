/**
 * The account pool: acquire and release per second of its synchronous core, and the cost of a lease through the service.
 *
 * Each column should be flat: the cost of a slot must not depend on the number of accounts or waiters.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Accounts, anywhere, type Caller, type PlacementRequest } from "../src/accounts/Accounts.ts"
import type { LeaseBudget } from "../src/accounts/budgets.ts"
import { ConfigStore } from "../src/config/ConfigStore.ts"
import { runSync } from "../src/domain/stream/cooperative.ts"
import { type LeaseRequest as Wish, PoolState, type Waiter as Ticket } from "../src/placement/PoolState.ts"
import { Upstreams } from "../src/upstream/Upstreams.ts"
import type { Share } from "../src/usage/Admission.ts"
import { idleDriver } from "./idleDriver.ts"
import { type Row, table } from "./table.ts"

const any: Wish = { _tag: "Any", avoid: new Set() }
const ignore = () => {}

const makeState = (accounts: number, perAccount: number, queue: number): PoolState<number> => {
  const state = new PoolState<number>({ perAccount, global: accounts * perAccount, queue, direct: 1 })
  runSync(state.configure(new Map(Array.from({ length: accounts }, (_, i) => [`account-${i}`, i])), state.limits))
  return state
}

const take = (state: PoolState<number>, wish: Wish): Ticket<number> => {
  const ticket = state.request(wish, 0, 60_000, ignore)
  if ("_tag" in ticket) throw new Error(`refused: ${ticket._tag}`)
  return ticket
}

/** Millions of operations per second: the best of five runs of `times` operations. */
const rate = (times: number, run: (times: number) => void): number => {
  run(Math.ceil(times / 10))
  let best = 0
  for (let i = 0; i < 5; i++) {
    const began = performance.now()
    run(times)
    best = Math.max(best, times / (performance.now() - began) / 1_000)
  }
  return best
}

/** Acquires and releases one slot of an idle pool. */
const idle = (accounts: number): number => {
  const state = makeState(accounts, 2, accounts)
  return rate(200_000, (times) => {
    for (let i = 0; i < times; i++) state.close(take(state, any))
  })
}

/** The same with nine of ten slots in use, released in another order than acquired. */
const busy = (accounts: number): number => {
  const state = makeState(accounts, 2, accounts)
  const held = Array.from({ length: Math.floor(accounts * 1.8) }, () => take(state, any))
  let place = 0
  return rate(200_000, (times) => {
    for (let i = 0; i < times; i++) {
      place = (place * 31 + 7) % held.length
      state.close(held[place]!)
      held[place] = take(state, any)
    }
  })
}

/** A full pool with a full queue: each released slot goes to the first waiter, and a new waiter joins. */
const queued = (accounts: number): number => {
  const state = makeState(accounts, 2, accounts)
  const tickets: Array<Ticket<number>> = Array.from({ length: accounts * 3 }, () => take(state, any))
  let first = 0
  return rate(200_000, (times) => {
    for (let i = 0; i < times; i++) {
      state.close(tickets[first]!)
      tickets[first] = take(state, any)
      first = (first + 1) % tickets.length
    }
  })
}

/** Like `idle`, while as many waiters as accounts wait for one busy account. */
const pinned = (accounts: number): number => {
  const state = makeState(accounts, 2, accounts)
  const wish: Wish = { _tag: "Pinned", key: "account-0" }
  for (let i = 0; i < accounts; i++) take(state, wish)
  return rate(200_000, (times) => {
    for (let i = 0; i < times; i++) state.close(take(state, any))
  })
}

const most = 1_000_000_000_000
const budgets = [{ window: "day", tokens: most }, { window: "month", cost: most, strict: true }]
const share: Share = { tokens: 100, cost: 0n, strict: { tokens: 200, cost: 5_000n, windows: ["month"] } }
/** What a try uses of budgets. */
const budget: LeaseBudget = {
  shareOf: () => share,
  sharesOf: () => share,
  used: () => ({ counted: true, tokens: 150, cost: 3_000n }),
  isStrict: false
}
/** What an answer says of a window of an account and of one of a model. */
const limits = {
  "x-codex-primary-used-percent": "40",
  "x-codex-primary-window-minutes": "300",
  "x-codex-primary-reset-after-seconds": "9000",
  "x-ratelimit-limit-requests": "1000",
  "x-ratelimit-remaining-requests": "900",
  "x-ratelimit-reset-requests": "6s"
}

/**
 * Microseconds of one lease through the service, including its scope. With `isBudgeted` the accounts and their upstream have budgets, and each
 * answer states windows of a quota.
 */
const lease = async (accounts: number, isBudgeted = false): Promise<number> => {
  const own = isBudgeted ? { budgets } : {}
  const layer = Layer.provide(Accounts.layer, [
    ConfigStore.layerJson({
      upstream: own,
      accounts: Array.from({ length: accounts }, (_, i) => ({
        email: `user${i}@example.com`,
        password: "secret",
        ...own
      }))
    }),
    Upstreams.layerOf(idleDriver)
  ])
  const caller: Caller = { _tag: "Managed", owner: "owner", target: undefined }
  const options: PlacementRequest = { ...anywhere, budget: isBudgeted ? budget : undefined }
  return Effect.runPromise(Effect.scoped(Effect.gen(function*() {
    const service = Context.get(yield* Layer.build(layer), Accounts)
    const leased = service.lease(caller, options)
    const once = Effect.scoped(
      isBudgeted
        ? Effect.tap(
          leased,
          ({ shown }) => Effect.sync(() => shown.saw(limits, undefined, undefined))
        )
        : leased
    )
    let best = Number.POSITIVE_INFINITY
    for (let run = 0; run < 6; run++) {
      const began = performance.now()
      for (let i = 0; i < 20_000; i++) yield* once
      best = Math.min(best, (performance.now() - began) / 20)
    }
    return best
  })))
}

/** Runs the benchmark and prints its table. */
export const poolBench = async (): Promise<void> => {
  const rows: Array<Row> = []
  for (const accounts of [10, 1_000, 10_000]) {
    rows.push([
      accounts.toLocaleString("en"),
      idle(accounts),
      busy(accounts),
      queued(accounts),
      pinned(accounts),
      await lease(accounts),
      await lease(accounts, true)
    ])
  }
  process.stdout.write(
    `Slots taken and given back, millions a second; a lease through the service, microseconds.\n\n${
      table(
        ["accounts", "idle", "90 % in use", "full queue", "pinned waiters", "lease", "with budgets and windows"],
        rows
      )
    }\n`
  )
}

if (import.meta.main) await poolBench()
