/** Filters, pages and facets over generated records, against a plain reading of the same rules. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as fc from "fast-check"
import { Nodes } from "../../src/admin/nodes/Nodes.ts"
import { noPeers, type QueryHandler } from "../../src/admin/nodes/peers.ts"
import { makeFacets } from "../../src/admin/requests/facets.ts"
import { makeRequestStats } from "../../src/completion/RequestStats.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { ShownIdentity } from "../../src/domain/clientIdentity.ts"
import { plainConversation, Text } from "../../src/domain/Conversation.ts"
import { parseDecimal } from "../../src/domain/decimal.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import type { PromptCache } from "../../src/domain/warmth.ts"
import { countHistogram, joinHistograms, partWidth } from "../../src/recordings/histogram.ts"
import type { RequestRecord } from "../../src/recordings/RequestRecord.ts"
import { Requests } from "../../src/recordings/Requests.ts"
import { type RequestSort, requestSorts } from "../../src/recordings/requestSorts.ts"
import {
  addFacets,
  countFacets,
  type FacetName,
  facetNames,
  pageOf,
  type RequestFilter,
  sortedPageOf,
  type SortedPlace
} from "../../src/recordings/search.ts"
import { runs } from "../support/effort.ts"

/** What a generated request is about. */
interface Asked {
  readonly key: string
  readonly asked: string
  readonly vendorFields: string | undefined
  readonly style: string
  readonly identity: ShownIdentity | undefined
  readonly account: string
  readonly error: string | undefined
  readonly upstream: string | undefined
  readonly duration: number
  readonly ended: boolean
  readonly prompt: string
  readonly reply: string
  readonly cache?: Pick<PromptCache, "reason" | "result"> | undefined
}

const noCounts = { prompt: 0, read: 0, written: 0, predicted: 0, at: undefined, because: undefined, age: undefined }

const words = fc.constantFrom("Hello", "say \"hi\"", "back\\slash", "Ümlaut", "two\nlines", "plain")

const asked: fc.Arbitrary<Asked> = fc.record({
  key: fc.constantFrom("aa01", "bb02", "direct"),
  asked: fc.constantFrom("gpt-4o", "gpt-4o-mini", "Fast"),
  vendorFields: fc.constantFrom("gpt-4o", "gpt-4o-mini", undefined),
  style: fc.constantFrom("chat", "embeddings"),
  identity: fc.constantFrom({ app: "codex", session: "s1" }, { app: "curl" }, undefined),
  account: fc.constantFrom("ann@x.org", "bob@x.org", ""),
  error: fc.constantFrom("upstream_error", "upstream_timeout", undefined),
  upstream: fc.constantFrom("gpu", "hosted", undefined),
  duration: fc.constantFrom(10, 1_000, 5_000, 40_000),
  ended: fc.boolean(),
  prompt: words,
  reply: words,
  cache: fc.constantFrom<Asked["cache"]>(
    undefined,
    { result: "hit", reason: undefined },
    { result: "none", reason: "moved" },
    { result: "miss", reason: "not_kept" }
  )
})

const plain: Asked = {
  key: "aa01",
  asked: "gpt-4o",
  vendorFields: "gpt-4o",
  style: "chat",
  identity: undefined,
  account: "ann@x.org",
  error: undefined,
  upstream: "gpu",
  duration: 2_000,
  ended: true,
  prompt: "Hello",
  reply: "Hi"
}

const names: Readonly<Record<string, string>> = { aa01: "Mobile app", bb02: "Batch" }
const context = { keyName: (id: string) => names[id], secrets: [] }

const makeRing = () =>
  Effect.runSync(Effect.provide(Requests, Layer.provide(Requests.layer, ConfigStore.layerJson({}))))

const add = (ring: Requests["Service"], one: Asked, id = "r") => {
  const stats = makeRequestStats(id, 0)
  const record = ring.begin({
    facts: stats,
    key: one.key,
    head: () => ({ method: "POST", path: "/", headers: {} }),
    secret: "a-caller-token"
  })!
  stats.style = one.style
  stats.identity = one.identity && { shown: one.identity }
  stats.requestedModel = one.asked
  stats.model = one.vendorFields
  stats.error = one.error
  stats.finish = "stop"
  stats.promptCache = one.cache && { ...noCounts, ...one.cache }
  if (one.upstream !== undefined) {
    stats.attempts = 1
    stats.target = { upstream: one.upstream, model: "m" }
    record.leased(one.account)
  }
  const text = (said: string) => JSON.stringify({ choices: [{ message: { content: said } }] })
  record.received(JSON.stringify({ messages: [{ role: "user", content: one.prompt }] }))
  if (one.style === "chat") {
    record.decoded({
      ...plainConversation,
      turns: [{ role: "user", parts: [Text(one.prompt)] }]
    })
  }
  stats.status = one.error === undefined ? 200 : 503
  record.answered(stats.status, { "content-type": "application/json" }, Buffer.from(text(one.reply)))
  if (one.ended) {
    record.ended()
    record.endedAt = one.duration
  }
  return record
}

const filter: fc.Arbitrary<RequestFilter> = fc.record({
  key: fc.constantFrom("mobile", "02", "\"direct\"", "\"Batch\"", "\"bat\""),
  model: fc.constantFrom("GPT-4o", "\"gpt-4o\"", "fast", "\"fast\""),
  account: fc.constantFrom("ann", "X.ORG", "\"bob@x.org\""),
  code: fc.constantFrom("timeout", "upstream", "\"upstream_error\""),
  prompt_cache: fc.constantFrom("hit", "none", "miss", "moved", "not_kept"),
  style: fc.constantFrom("chat", "embeddings"),
  app: fc.constantFrom("codex", "curl"),
  session: fc.constantFrom("s1", "s"),
  outcome: fc.constantFrom("open", "ok", "failed"),
  upstream: fc.constantFrom("gpu", "hosted"),
  min_ms: fc.constantFrom("1000", "5000"),
  status: fc.constantFrom("ok", "5xx", "503"),
  text: fc.constantFrom("hello", "SAY \"HI\"", "k\\s", "ümlaut", "two\nlines", "absent")
}, { requiredKeys: [] })

const part = (wanted: string, value: string | undefined) =>
  value !== undefined &&
  (wanted.startsWith("\"") ? value === wanted.slice(1, -1) : value.toLowerCase().includes(wanted.toLowerCase()))

/** True if a record matches, read plainly. Running requests have run for a long time. */
const fits = (wanted: RequestFilter, one: Asked): boolean => {
  const outcome = one.ended ? one.error === undefined ? "ok" : "failed" : "open"
  const status = one.error === undefined ? 200 : 503
  const rules: Readonly<{ [name: string]: (text: string) => boolean }> = {
    key: (text) => part(text, one.key) || part(text, names[one.key]),
    model: (text) => part(text, one.asked) || part(text, one.vendorFields),
    account: (text) => part(text, one.upstream === undefined ? "" : one.account),
    code: (text) => part(text, one.error),
    prompt_cache: (text) => one.cache?.result === text || one.cache?.reason === text,
    style: (text) => one.style === text,
    app: (text) => one.identity?.app === text,
    session: (text) => one.identity?.session === text,
    outcome: (text) => outcome === text,
    upstream: (text) => one.upstream === text,
    min_ms: (text) => !one.ended || one.duration >= Number(text),
    status: (text) => text === outcome || text === String(status) || (text === "5xx" && status >= 500),
    text: (text) => [one.prompt, one.reply].some((said) => said.toLowerCase().includes(text.toLowerCase()))
  }
  return Object.entries(wanted).every(([name, text]) => rules[name]!(text!))
}

/** The bytes that one call may search. */
const bound = fc.constantFrom(1, 60, undefined)

const listed = (ring: Requests["Service"], wanted: RequestFilter) =>
  runSync(pageOf(ring.older(undefined), 10_000, wanted, context)).records

const filterOf: { readonly [Name in FacetName]: (value: string) => RequestFilter } = {
  key: (value) => ({ key: `"${value}"` }),
  model: (value) => ({ model: `"${value}"` }),
  account: (value) => ({ account: `"${value}"` }),
  code: (value) => ({ code: `"${value}"` }),
  prompt_cache: (prompt_cache) => ({ prompt_cache }),
  style: (style) => ({ style }),
  app: (app) => ({ app }),
  session: (session) => ({ session }),
  upstream: (upstream) => ({ upstream }),
  outcome: (outcome) => ({ outcome }),
  slow: (min_ms) => ({ min_ms })
}

describe("a search of records", () => {
  it("lists the records that match, in pages of any size without a skip or a repeat", () => {
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 20 }), filter, fc.nat(3), bound, (all, wanted, more, mostBytes) => {
        const size = 1 + more
        const ring = makeRing()
        const expected = all.map((one) => [add(ring, one), one] as const)
          .filter(([, one]) => fits(wanted, one)).map(([{ number }]) => number).reverse()
        const seen: Array<number> = []
        let before: number | undefined
        do {
          const page = runSync(pageOf(ring.older(before), size, wanted, { ...context, mostBytes }))
          assert.isAtMost(page.records.length, size)
          seen.push(...page.records.map(({ number }) => number))
          before = page.next
        } while (before !== undefined)
        assert.deepStrictEqual(seen, expected)
      }),
      { numRuns: runs(80) }
    )
  })

  it("sorts by each value in both directions, in pages of any size without a skip or a repeat", () => {
    const valueOf: { readonly [Name in RequestSort]: (record: RequestRecord) => number | undefined } = {
      started_at: ({ startedAt }) => startedAt,
      duration_ms: ({ endedAt }) => endedAt,
      first_event_ms: ({ facts }) => facts.firstEventAt,
      cost: ({ facts }) => facts.cost === undefined || facts.cost === null ? undefined : Number(facts.cost),
      total_tokens: ({ facts }) => facts.usage && facts.usage.promptTokens + facts.usage.completionTokens
    }
    const small = fc.option(fc.constantFrom(0, 1, 2, 30), { nil: undefined })
    const one = fc.record({ asked, first: small, cost: fc.option(small, { nil: null }), tokens: small })
    fc.assert(
      fc.property(
        fc.array(one, { maxLength: 20 }),
        fc.constantFrom(...requestSorts),
        fc.constantFrom("asc", "desc"),
        fc.option(fc.constantFrom("0.000000002", "0", "1")),
        fc.integer({ min: 1, max: 4 }),
        (all, sort, order, leastCost, size) => {
          const ring = makeRing()
          const records = all.map(({ asked, cost, first, tokens }) => {
            const record = add(ring, asked)
            Object.assign(record.facts, {
              firstEventAt: first,
              cost: cost === undefined || cost === null ? cost : BigInt(cost),
              usage: tokens === undefined
                ? undefined
                : { promptTokens: tokens, completionTokens: 1, reasoningTokens: 0 }
            })
            return record
          })
          const sign = order === "desc" ? 1 : -1
          const [cost] = leastCost === null ? [undefined] : [parseDecimal(leastCost)!]
          const expected = records
            .filter(({ facts }) => cost === undefined || (facts.cost ?? undefined) !== undefined && facts.cost! >= cost)
            .toSorted((a, b) => {
              const [x, y] = [valueOf[sort](a), valueOf[sort](b)]
              if (x === undefined || y === undefined) {
                return x === y ? b.number - a.number : x === undefined ? 1 : -1
              }
              return sign * (y - x) || b.number - a.number
            })
            .map(({ number }) => number)
          const wanted = leastCost === null ? {} : { cost_from: leastCost }
          const seen: Array<number> = []
          let after: SortedPlace | undefined
          do {
            const page = runSync(sortedPageOf(ring.older(undefined), size, wanted, { sort, order }, after, context))
            assert.isAtMost(page.records.length, size)
            seen.push(...page.records.map(({ record }) => record.number))
            after = page.next
          } while (after !== undefined)
          assert.deepStrictEqual(seen, expected)
        }
      ),
      { numRuns: runs(80) }
    )
  })

  it("counts by time what the list has, in 120 parts at most, over several nodes with parts of different widths", () => {
    const times = fc.array(fc.tuple(asked, fc.nat(10 * 24 * 3_600_000)), { maxLength: 12 })
    fc.assert(
      fc.property(fc.array(times, { minLength: 1, maxLength: 3 }), filter, (nodes, wanted) => {
        const rings = nodes.map((all) => {
          const ring = makeRing()
          for (const [one, startedAt] of all) Object.assign(add(ring, one), { startedAt })
          return ring
        })
        const records = rings.flatMap((ring) => listed(ring, wanted))
        const starts = records.map(({ startedAt }) => startedAt)
        const [from, to] = [Math.min(0, ...starts), Math.max(1, ...starts) + 1]
        const width = partWidth(from, to)
        const parts = rings.flatMap((ring, i) => {
          // A node with fewer records counts in narrower parts.
          const counted = runSync(countHistogram(ring.older(undefined), wanted, i === 0 ? width : 1_000, context))
          assert.isTrue(counted.complete)
          return counted.parts
        })
        const joined = joinHistograms(parts, from, to, width)
        assert.isAtMost(joined.length, 120)
        for (const { at, p95_ms, ...counts } of joined) {
          const here = records.filter(({ startedAt }) => startedAt >= at && startedAt < at + width)
          const count = (outcome: string) => here.filter((record) => record.outcome === outcome).length
          const expected = { ok: count("ok"), failed: count("failed"), cancelled: 0, open: count("open") }
          assert.deepStrictEqual(counts, expected)
          const durations = here.flatMap(({ endedAt }) => endedAt ?? []).toSorted((a, b) => a - b)
          const exact = durations[Math.ceil(0.95 * durations.length) - 1]
          if (exact === undefined) assert.isNull(p95_ms)
          else assert.closeTo(p95_ms!, exact, Math.max(1, exact * 0.05))
        }
        assert.strictEqual(joined.reduce((sum, { failed, ok, open }) => sum + failed + ok + open, 0), records.length)
      }),
      { numRuns: runs(50) }
    )
  })

  it("counts in each facet what the list has under that filter, most frequent first", () => {
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 20 }), filter, (all, wanted) => {
        const ring = makeRing()
        for (const one of all) add(ring, one)
        const { complete, counts, total } = runSync(countFacets(ring.older(undefined), wanted, context))
        assert.isTrue(complete)
        assert.strictEqual(total, listed(ring, wanted).length)
        for (const name of facetNames) {
          const rest = Object.fromEntries(
            Object.entries(wanted).filter(([filter]) => !(filter in filterOf[name]("1")))
          )
          const matching = listed(ring, rest)
          for (const [value, count] of counts[name]) {
            assert.strictEqual(listed(ring, { ...rest, ...filterOf[name](value) }).length, count, `${name} ${value}`)
          }
          const sizes = counts[name].map(([, count]) => count)
          assert.deepStrictEqual(sizes, sizes.toSorted((a, b) => b - a))
          if (name === "outcome") assert.strictEqual(sizes.reduce((a, b) => a + b, 0), matching.length)
        }
      }),
      { numRuns: runs(50) }
    )
  })

  it("shows the 50 most frequent values of a facet", () => {
    const of = (counts: ReadonlyArray<readonly [string, number]>) => ({
      ...runSync(countFacets([], {}, context)),
      counts: { ...runSync(countFacets([], {}, context)).counts, model: counts }
    })
    const many = Array.from({ length: 60 }, (_, i) => [`m${i}`, i] as const)
    const { counts } = addFacets([of(many), of([["m3", 100]])])
    assert.lengthOf(counts.model, 50)
    assert.deepStrictEqual(counts.model.slice(0, 2), [["m3", 103], ["m59", 59]])
  })

  it("searches bodies up to its bound in one call, and says so", () => {
    const ring = makeRing()
    const first = add(ring, { ...plain, prompt: "the needle" })
    for (let i = 0; i < 9; i++) add(ring, plain)
    const bounded = { ...context, mostBytes: 1 }
    const page = runSync(pageOf(ring.older(undefined), 10, { text: "needle" }, bounded))
    assert.deepStrictEqual([page.records, page.next], [[], 10])
    assert.deepStrictEqual(runSync(pageOf(ring.older(2), 10, { text: "needle" }, bounded)).records, [first])
    const counted = runSync(countFacets(ring.older(undefined), { text: "hello" }, bounded))
    assert.deepStrictEqual([counted.complete, counted.total], [false, 1])
    assert.isTrue(runSync(countFacets(ring.older(undefined), {}, bounded)).complete)
  })

  it("does not find a credential", () => {
    const ring = makeRing()
    const one = add(ring, {
      ...plain,
      prompt: "my token is a-caller-token",
      reply: "the admin's is an-admin-key"
    })
    const found = (text: string) =>
      runSync(pageOf(ring.older(undefined), 1, { text }, { ...context, secrets: ["an-admin-key"] })).records
    assert.deepStrictEqual(found("my token is"), [one])
    assert.deepStrictEqual(found("caller-tok"), [])
    assert.deepStrictEqual(found("an-admin-key"), [])
  })
})

describe("the facets of several nodes", () => {
  it.effect("are added up, with the nodes that did not answer", () => {
    const handlers = new Map<string, QueryHandler>()
    const layerOf = (id: "one" | "other") =>
      Requests.layer.pipe(
        Layer.provideMerge(ConfigStore.layerJson({})),
        Layer.provideMerge(Layer.succeed(Nodes, {
          id,
          store: () => ({ state: "up", url: "", version: "", revision: 1, round_trip_ms: 0, since: 0 }),
          isReady: () => true,
          list: Effect.succeed([]),
          watchDraining: () => undefined,
          metrics: Effect.undefined,
          peers: {
            ...noPeers,
            answers: (kind, handler) => {
              if (id === "other") handlers.set(kind, handler)
            },
            queryAll: (kind, question) =>
              Effect.map(handlers.get(kind)!(question), (text) => ({
                answers: new Map([["other", text]]),
                missing: ["third"]
              })).pipe(Effect.orDie)
          }
        }))
      )
    const node = (id: "one" | "other") =>
      Effect.gen(function*() {
        return { ring: yield* Requests, facets: yield* makeFacets }
      }).pipe(Effect.provide(layerOf(id)))
    return Effect.gen(function*() {
      const other = yield* node("other")
      const one = yield* node("one")
      add(one.ring, plain)
      add(other.ring, plain)
      add(other.ring, { ...plain, error: "upstream_error", prompt: "other" })
      const all = yield* one.facets({})
      assert.deepStrictEqual([all.total, all.kept, all.complete, all.missing], [3, 3, true, ["third"]])
      assert.deepStrictEqual(all.facets.outcome, [
        { value: "ok", name: null, count: 2 },
        { value: "failed", name: null, count: 1 }
      ])
      const found = yield* one.facets({ text: "HELLO", outcome: "ok" })
      assert.strictEqual(found.total, 2)
      assert.deepStrictEqual(found.facets.model, [{ value: "gpt-4o", name: null, count: 2 }])
    })
  })
})
