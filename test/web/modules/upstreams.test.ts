/**
 * Which target of a route takes the next request.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { runSync } from "../../../src/domain/stream/cooperative.ts"
import { nothingTried, place } from "../../../src/placement/place.ts"
import { Pools } from "../../../src/placement/Pools.ts"
import { answersOf, moved, type Reason, routeNow } from "../../../src/web/pages/routes/choice.ts"
import type { Route, UpstreamItem } from "../../../src/web/state/upstreams.ts"
import { runs } from "../../support/effort.ts"

const upstream = (name: string, change: Partial<UpstreamItem> = {}): UpstreamItem => ({
  name,
  driver: "openai",
  base_url: "",
  enabled: true,
  models: ["m"],
  needs_accounts: true,
  accounts: { ready: 1, cooling: 0, out: 0, disabled: 0 },
  in_use: 0,
  max_inflight: 4,
  waiting: 0,
  state: "ready",
  cooled_until: null,
  reason: null,
  findings: [],
  refusals: [],
  proxy: null,
  budgets: [],
  last_5m: { requests: 0, errors: 0, p50_ms: null, p95_ms: null },
  last_hour: [],
  away: null,
  config: {},
  ...change
})

const route: Route = {
  targets: ["a", "b", "c/m"],
  wait: 0,
  also_on: [],
  spread: "order",
  schemas: "preferred",
  sticky: false
}
const full = { in_use: 4 }
const cooled = { state: "cooled" } as const
const over = { ...cooled, cooled_until: "2026-01-01T00:00:00Z" }
const disabled = { state: "disabled", enabled: false } as const
const out = { accounts: { ready: 0, cooling: 0, out: 1, disabled: 0 } }

describe("what would be taken now", () => {
  const cases: ReadonlyArray<
    readonly [
      why: string,
      states: readonly [Partial<UpstreamItem>, Partial<UpstreamItem>, Partial<UpstreamItem>],
      route: Partial<Route>,
      taken: number | undefined,
      reason: Reason
    ]
  > = [
    ["the first with a free slot", [{}, {}, {}], {}, 0, "first"],
    ["the next one after full, cooled and disabled ones", [full, cooled, {}], {}, 2, "first"],
    [
      "the one with the largest share of free slots",
      [{ in_use: 2 }, { in_use: 1 }, { in_use: 3 }],
      {
        spread: "even"
      },
      1,
      "even"
    ],
    ["the first of equal shares", [{ in_use: 2, max_inflight: 8 }, { in_use: 1 }, full], { spread: "even" }, 0, "even"],
    [
      "each in its turn, by weights",
      [full, {}, {}],
      { spread: "weighted", targets: [{ target: "a", weight: 3 }, "b"] },
      undefined,
      "weighted"
    ],
    ["a full first target holds for its wait", [full, {}, {}], { wait: 2 }, 0, "holds"],
    ["a disabled first target does not hold", [disabled, full, {}], { wait: 2 }, 1, "holds"],
    ["a first target that is out does not hold", [out, {}, {}], { wait: 2 }, 1, "first"],
    ["a cooled first target does not hold", [cooled, full, {}], { wait: 2 }, 2, "first"],
    ["a full one is waited for rather than a cooled one taken", [cooled, full, out], {}, undefined, "waits"],
    ["one whose cooling time is over is tried", [over, {}, {}], {}, 0, "probe"],
    ["a cooled one is tried without any other", [disabled, cooled, out], {}, 1, "cooled"],
    ["nothing", [disabled, out, disabled], {}, undefined, "none"]
  ]
  it.each(cases)("%s", (_why, [a, b, c], change, taken, reason) => {
    const upstreams = [upstream("a", a), upstream("b", b), upstream("c", c)]
    const now = routeNow("m", { ...route, ...change }, upstreams)
    assert.deepStrictEqual([now.taken, now.reason], [taken, reason])
  })

  it("is what the placement of requests does, on generated states of the upstreams", () => {
    const names = ["a", "b", "c"]
    const state = fc.record({
      kind: fc.constantFrom("ready", "cooled", "probe", "disabled", "out"),
      inUse: fc.nat(2)
    })
    const states = fc.tuple(state, state, state)
    const spreads = fc.constantFrom("order" as const, "even" as const)
    fc.assert(
      fc.property(states, spreads, fc.boolean(), (all, spread, isHeld) => {
        const limits = { perAccount: 2, global: 2, queue: 9, direct: 0 }
        const pools = new Pools<string>()
        runSync(pools.configure(
          new Map(names.map((name, index) => [name, {
            accounts: new Map([[name, name]]),
            limits,
            disabled: new Set<string>(),
            enabled: all[index]!.kind !== "disabled",
            choice: undefined
          }])),
          9
        ))
        const ask = (to: ReadonlyArray<string>) =>
          pools.request({
            pools: to,
            request: { _tag: "Any", avoid: new Set() },
            now: 0,
            patience: 1_000,
            about: "",
            spread,
            hold: isHeld,
            preferred: undefined,
            needs: undefined
          }, () => {})
        const used = all.map(({ inUse, kind }) => kind === "disabled" ? 0 : inUse)
        names.forEach((name, index) => {
          const { kind } = all[index]!
          for (let taken = 0; taken < used[index]!; taken++) ask([name])
          if (kind === "cooled") pools.skip(name, "yes")
          if (kind === "probe") pools.skip(name, "probe")
          const pool = pools.get(name)!
          if (kind === "out") pool.suspend([...pool.slots()][0]!, "out", 1_000)
        })
        const { order } = place(
          {
            targets: names.map((upstream, index) => ({
              upstream,
              right: "account",
              isEnabled: all[index]!.kind !== "disabled",
              canServe: true,
              binds: true,
              window: undefined
            })),
            turn: undefined,
            size: undefined,
            alsoOn: [],
            mustBind: false,
            isPinned: false,
            accounts: []
          },
          nothingTried,
          undefined
        )
        const waiter = ask(order.map((index) => names[index]!))
        const does = "_tag" in waiter ? "none" : waiter.granted === undefined ? "waits" : `to ${waiter.granted.name}`
        const now = routeNow(
          "m",
          { ...route, targets: names, spread, wait: isHeld ? 2 : 0 },
          names.map((name, index) => {
            const { kind } = all[index]!
            return upstream(name, {
              ...kind === "cooled" ? cooled : kind === "probe" ? over : kind === "disabled" ? disabled : {},
              ...kind === "out" ? out : {},
              models: ["m"],
              in_use: used[index]!,
              max_inflight: 2
            })
          })
        )
        const says = now.reason === "none"
          ? "none"
          : now.reason === "holds" || now.reason === "waits"
          ? "waits"
          : `to ${names[now.taken!]}`
        assert.strictEqual(says, does)
      }),
      { numRuns: runs(300) }
    )
  })

  it("a short target means the model with the route's name", () => {
    const upstreams = [upstream("a", { models: ["other"] }), upstream("b", { models: ["M"] })]
    const { targets } = routeNow("m", route, upstreams)
    assert.deepStrictEqual(targets.map(({ hindrance }) => hindrance), ["noModel", undefined, "unknown"])
  })
})

describe("the last hour of a route", () => {
  it("is shared by its targets, however they are written; requests of other routes, and of targets that have left it, are not theirs", () => {
    const answered = [
      { model: "qwen3", target: "a/qwen3", requests: 6 },
      { model: "qwen3", target: "b/Big", requests: 3 },
      { model: "qwen3", target: "gone/m", requests: 1 },
      { model: "other", target: "a/qwen3", requests: 50 }
    ]
    assert.deepStrictEqual(answersOf("Qwen3", ["a", "B/big", "c"], answered), { all: 10, counts: [6, 3, 0] })
    assert.deepStrictEqual(answersOf("new", ["a"], answered), { all: 0, counts: [0] })
  })
})

describe("the order of targets", () => {
  it("a move keeps the others in order", () => {
    const list = fc.uniqueArray(fc.nat(), { minLength: 1, maxLength: 16 })
    fc.assert(fc.property(list, fc.nat(), fc.integer({ min: -2, max: 18 }), (targets, from, to) => {
      const at = from % targets.length
      const next = moved(targets, at, to)
      if (to < 0 || to >= targets.length) return assert.deepStrictEqual(next, targets)
      assert.strictEqual(next[to], targets[at])
      return assert.deepStrictEqual(
        next.filter((each) => each !== targets[at]),
        targets.filter((each) => each !== targets[at])
      )
    }))
  })
})
