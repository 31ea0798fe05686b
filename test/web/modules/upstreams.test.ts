/**
 * The form of an upstream, and which target of a route takes the next request.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { compact, moved, type Reason, routeNow } from "../../../src/web/pages/routes/choice.ts"
import {
  changesOf,
  draftOf,
  type Entry,
  namesIn,
  needsTest,
  withModel
} from "../../../src/web/pages/upstreams/draft.ts"
import type { Route, UpstreamItem } from "../../../src/web/state/upstreams.ts"

const entry: Entry = {
  driver: "openai",
  base_url: "http://127.0.0.1:8000/v1",
  models: { qwen3: "Qwen/Qwen3-8B", large: { model: "vendor/large", images: false, max_tokens: 4096 } },
  headers: { "X-Title": "***" },
  proxy: "http://***@127.0.0.1:3128",
  max_inflight: 4,
  timeouts: { connect: 2, silence: 30 },
  tls: { ca: "/etc/ca.pem" }
}

describe("the form of an upstream", () => {
  const before = draftOf(entry)
  const changes = (change: Partial<typeof before>) => changesOf(before, { ...before, ...change })

  it("changes nothing by itself, whatever the entry has", () => {
    assert.deepStrictEqual(changes({}), {})
    assert.deepStrictEqual(changesOf(draftOf({}), draftOf({})), {})
    const name = fc.stringMatching(/^[a-z][\w./:-]{0,12}$/)
    fc.assert(
      fc.property(
        fc.dictionary(name, name),
        fc.dictionary(name.filter((each) => each !== "model"), fc.boolean()),
        (models, fields) => {
          const draft = draftOf({ models: { ...models, last: { model: "m", ...fields } } })
          const all = changesOf(draftOf({}), draft)["models"]
          assert.deepStrictEqual(all, {
            ...models,
            last: Object.keys(fields).length === 0 ? "m" : { model: "m", ...fields }
          })
        }
      )
    )
  })

  it("sends changed fields alone, and null for emptied ones", () => {
    assert.deepStrictEqual(changes({ base_url: " http://127.0.0.1:9 ", proxy: "" }), {
      base_url: "http://127.0.0.1:9",
      proxy: null
    })
    assert.deepStrictEqual(
      changes({ numbers: { ...before.numbers, max_inflight: "8", connect: "", first_byte: "60" } }),
      { max_inflight: 8, timeouts: { connect: null, first_byte: 60 } }
    )
    assert.deepStrictEqual(changes({ tls: { ...before.tls, server_name: "gpu.example" } }), {
      tls: { server_name: "gpu.example" }
    })
    assert.deepStrictEqual(changes({ numbers: { ...before.numbers, max_inflight: "many" } }), { max_inflight: "many" })
  })

  it("sends lists as a whole, in which *** keeps a secret", () => {
    assert.deepStrictEqual(changes({ headers: "X-Title: ***\nX-Team: a:b" }), {
      headers: { "X-Title": "***", "X-Team": "a:b" }
    })
    assert.deepStrictEqual(changes({ models: "a = b = c\nplain\n\nlarge = vendor/large {\"images\":true}" }), {
      models: { a: "b = c", plain: "plain", large: { model: "vendor/large", images: true } }
    })
  })

  it("adds and removes the models of the server", () => {
    assert.deepStrictEqual([...namesIn(before.models)], ["Qwen/Qwen3-8B", "vendor/large"])
    const more = withModel(before.models, "BAAI/bge-m3", true)
    assert.deepStrictEqual([...namesIn(more)], ["Qwen/Qwen3-8B", "vendor/large", "BAAI/bge-m3"])
    assert.strictEqual(withModel(more, "BAAI/bge-m3", false), before.models)
  })

  it("needs a test for what reaches the server, and for nothing else", () => {
    assert.isTrue(needsTest(changes({ base_url: "http://127.0.0.1:9" })))
    assert.isTrue(needsTest(changes({ headers: "" })))
    assert.isFalse(needsTest(changes({ models: "", numbers: { ...before.numbers, max_inflight: "1" } })))
  })
})

const upstream = (name: string, change: Partial<UpstreamItem> = {}): UpstreamItem => ({
  name,
  driver: "openai",
  base_url: "",
  enabled: true,
  models: ["m"],
  accounts: { ready: 1, cooling: 0, out: 0, disabled: 0 },
  in_use: 0,
  max_inflight: 4,
  waiting: 0,
  state: "ready",
  cooled_until: null,
  reason: null,
  findings: [],
  proxy: null,
  last_5m: { requests: 0, errors: 0, p50_ms: null, p95_ms: null },
  config: {},
  ...change
})

const route: Route = { targets: ["a", "b", "c/m"], wait: 0, also_on: [], spread: "order", sticky: false }
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

  it("a short target means the model with the route's name", () => {
    const upstreams = [upstream("a", { models: ["other"] }), upstream("b", { models: ["M"] })]
    const { targets } = routeNow("m", route, upstreams)
    assert.deepStrictEqual(targets.map(({ hindrance }) => hindrance), ["noModel", undefined, "unknown"])
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

  it("a route is written with the fields that differ from the defaults", () => {
    assert.deepStrictEqual(compact(route), route.targets)
    assert.deepStrictEqual(compact({ ...route, wait: 2, sticky: "target" }), {
      targets: route.targets,
      wait: 2,
      sticky: "target"
    })
  })
})
