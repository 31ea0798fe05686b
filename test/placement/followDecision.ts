/** The public pool beside the lists of `naiveDecision.ts`: what happens to both, and what both say of it. */
import { assert } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import { Accounts, anywhere, type Lease, type PlacementRequest } from "../../src/accounts/Accounts.ts"
import type { LeaseBudget } from "../../src/accounts/budgets.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { GatewayConfig } from "../../src/config/GatewayConfig.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import type { GatewayError } from "../../src/domain/GatewayError.ts"
import { identityKeys } from "../../src/domain/identity.ts"
import { Upstreams } from "../../src/upstream/Upstreams.ts"
import { makeDriver, managed } from "../accounts/support.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import {
  type NaiveAsk,
  type NaiveCase,
  NaiveDecision,
  type NaiveLimit,
  type NaiveUpstream,
  type Outcome
} from "./naiveDecision.ts"

const { driver } = makeDriver({ verify: () => Effect.never }, { login: undefined, sessions: undefined })

/** A Monday at noon. */
const begin = Date.UTC(2027, 0, 4, 12)

const tokenOf = (account: number): string => `token-${account}`

/** The key of an account within the pool, by which requests name it too. */
const keyOf = (account: number): string =>
  identityKeys({ upstream: account < 3 ? "one" : "two", token: tokenOf(account) }, sha256Hex)[0]!

const copied = (limits: ReadonlyArray<NaiveLimit>) => limits.map((limit) => ({ ...limit }))

/** The configuration of a case. */
const configOf = (upstreams: ReadonlyArray<NaiveUpstream>): RawConfig => ({
  upstream: { driver: "embedded" },
  upstreams: Object.fromEntries(upstreams.map(({ budgets, name, perAccount, queue }) => [name, {
    driver: "openai",
    base_url: "http://127.0.0.1:9/v1",
    models: { a: "a", b: "b" },
    account_max_inflight: perAccount,
    account_max_queue: queue,
    budgets: copied(budgets)
  }])),
  accounts: upstreams.flatMap(({ accounts, name, own }, upstream) =>
    Array.from({ length: accounts }, (_, i) => ({
      upstream: name,
      token: tokenOf(upstream * 3 + i),
      budgets: copied(own[i]!)
    }))
  )
})

/** What a try reserves, and the tokens that it has used. */
class Spending implements LeaseBudget {
  tokensUsed = 0
  isStrict = false
  readonly #tokens: number

  constructor(tokens: number) {
    this.#tokens = tokens
  }

  shareOf: LeaseBudget["shareOf"] = (_, limits) => {
    const windows = limits.filter(({ strict }) => strict).map(({ window }) => window)
    const share = { tokens: this.#tokens, cost: 0n }
    return {
      ...share,
      strict: windows.length === 0 ? undefined : { tokens: 2 * this.#tokens, cost: 0n, windows }
    }
  }
  sharesOf: LeaseBudget["sharesOf"] = () => ({
    tokens: this.#tokens,
    cost: 0n,
    strict: { tokens: 2 * this.#tokens, cost: 0n, windows: [] }
  })
  used: LeaseBudget["used"] = () => ({ counted: true, tokens: this.tokensUsed, cost: 0n })
}

interface Asking {
  outcome: Outcome
  lease: Lease | undefined
  readonly budget: Spending
  readonly scope: Scope.Closeable
}

/** An outcome as far as it is compared with the expected one. */
const textOf = (outcome: Outcome, expected: Outcome): string => {
  if (outcome._tag === "Granted") return `granted ${outcome.account} for ${outcome.model}`
  if (outcome._tag === "Waiting") return "waiting"
  const isTimed = expected._tag === "Refused" && expected.seconds !== undefined
  return `refused: ${outcome.message} ${isTimed ? outcome.seconds : ""}`
}

/** What a case is followed with. */
export interface Followed {
  readonly layer: Layer.Layer<Accounts, never, ConfigStore | Upstreams>
  /** Begins at a time, with the configuration in effect. */
  readonly begin: (config: GatewayConfig, now: number) => Effect.Effect<void>
  /** The time has moved to another one. */
  readonly moved: (now: number) => void
  /** Lets everything happen that needs no time. */
  readonly settled: Effect.Effect<void>
  /** Whether what an attempt shows counts with the end of its lease, as it does in a pool that nodes share. */
  readonly learnsAtEnd: boolean
}

/** The pool of one process. */
export const inProcess: Followed = {
  layer: Accounts.layer,
  begin: () => Effect.void,
  moved: () => undefined,
  settled: Effect.forEach(Array.from({ length: 12 }), () => Effect.yieldNow, { discard: true }),
  learnsAtEnd: false
}

/** Follows a case; returns the number of its requests. */
export const follow = (one: NaiveCase, { begin: beginAt, layer, learnsAtEnd, moved, settled }: Followed) => {
  const { steps, upstreams } = one
  const clock = makeMovedClock({ still: true, wall: begin })
  const names = upstreams.map(({ name }) => name)
  const program = Effect.gen(function*() {
    const config = yield* Layer.build(ConfigStore.layerJson(configOf(upstreams)))
    yield* beginAt(Context.get(config, ConfigStore).now(), begin)
    const context = yield* Layer.build(
      layer.pipe(
        Layer.provide(Layer.succeedContext(config)),
        Layer.provide(Layer.succeed(Upstreams, {
          all: Effect.succeed(new Map(names.map((name) => [name, driver]))),
          make: () => Effect.succeed(driver)
        }))
      )
    )
    const pool = Context.get(context, Accounts)
    const naive = new NaiveDecision(upstreams, begin)
    const numbers = new Map(naive.accounts.map(({ id }) => [keyOf(id), id]))
    const asked: Array<Asking> = []
    let decided = 0

    const ask = Effect.fnUntraced(function*(step: NaiveAsk) {
      const budget = new Spending(step.tokens)
      const scope = yield* Scope.make()
      const asking: Asking = { outcome: { _tag: "Waiting" }, lease: undefined, budget, scope }
      asked.push(asking)
      const targets = step.targets.map(([upstream, model]) => ({ upstream: names[upstream]!, model }))
      const options: PlacementRequest = {
        ...anywhere,
        avoid: new Set(step.avoid.map(keyOf)),
        failed: targets[step.failed ?? targets.length],
        stay: step.stay === undefined ? undefined : keyOf(step.stay),
        model: "m",
        targets,
        spread: step.spread,
        wait: step.wait,
        patience: step.patience,
        sticky: step.sticky === undefined ? undefined : {
          keys: [`conversation-${step.sticky}`],
          isContinued: true,
          prefersTarget: step.prefersTarget,
          lifetimeOf: () => 3_600_000
        },
        budget
      }
      const target = step.pin === undefined ? undefined : keyOf(step.pin)
      yield* Effect.forkChild(
        Effect.matchEffect(Scope.provide(pool.lease(managed(target), options), scope), {
          onFailure: ({ message, retryAfter }: GatewayError) =>
            Effect.sync(() => {
              asking.outcome = { _tag: "Refused", message, seconds: retryAfter }
            }),
          onSuccess: (lease) =>
            Effect.sync(() => {
              asking.lease = lease
              asking.outcome = { _tag: "Granted", account: numbers.get(lease.account!.key)!, model: lease.model! }
            })
        })
      )
      yield* settled
      return asking
    })

    for (const step of steps) {
      if (step._tag === "Ask") {
        decided++
        naive.ask(step)
        yield* ask(step)
      } else if (step._tag === "Pass") {
        const until = naive.now + step.seconds * 1_000
        while (naive.now < until) {
          const before = naive.now
          const now = naive.pass(until)
          moved(now)
          clock.move(now - before)
          yield* settled
        }
      } else if (step._tag === "Test") {
        naive.test(step.account)
        yield* pool.setTestStatus(keyOf(step.account), "ok")
        yield* settled
      } else {
        const held = naive.held[step.nth % Math.max(1, naive.held.length)]
        if (held === undefined) continue
        const { budget, lease, scope } = asked[held.id]!
        // Nothing else is due at the same time.
        const apart = held.account.upstream / 4
        if (lease === undefined) assert.fail(`the request ${held.id} has no lease`)
        const end = (tokens: number) => {
          budget.tokensUsed = tokens
          naive.end(held, tokens)
          return Scope.close(scope, Exit.void)
        }
        if (step._tag === "End") {
          yield* end(step.tokens)
        } else if (step._tag === "Report") {
          const seconds = step.seconds + apart
          naive.report(held, step.health, seconds)
          yield* step.health === "ok"
            ? lease.report(undefined, undefined)
            : lease.report(step.health, step.health === "rate_limited" ? seconds : undefined)
        } else {
          const seconds = step.seconds + apart + 1 / 8
          naive.pause(held, lease.model!, seconds)
          lease.shown.paused(seconds)
        }
        yield* settled
        if (learnsAtEnd && step._tag !== "End") {
          yield* end(0)
          yield* settled
        }
      }
      const expected = asked.map((_, id) => textOf(naive.outcomes[id]!, naive.outcomes[id]!))
      const actual = asked.map(({ outcome }, id) => textOf(outcome, naive.outcomes[id]!))
      const different = expected.findIndex((text, id) => text !== actual[id])
      if (different !== -1) assert.strictEqual(actual[different], expected[different], `the request ${different}`)
    }
    for (const { scope } of asked) yield* Scope.close(scope, Exit.void)
    return decided
  })
  return Effect.runPromise(
    Effect.scoped(program).pipe(
      Effect.provideService(Clock.Clock, clock),
      Effect.provideService(References.MinimumLogLevel, "None")
    )
  )
}
