import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as fc from "fast-check"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import type { KeyLimit } from "../../src/config/windowLimit.ts"
import { keyId } from "../../src/domain/identity.ts"
import { resolveRoute } from "../../src/domain/routes.ts"
import { formatReset, rateLimitHeaders } from "../../src/http/rateLimitHeaders.ts"
import type { Reserved, Used } from "../../src/usage/Admission.ts"
import { KeyLimits, type Refused, refuseKey } from "../../src/usage/KeyLimits.ts"
import { UsageStore } from "../../src/usage/UsageStore.ts"
import { dayOf, windowAt } from "../../src/usage/windows.ts"
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
import { withWallClock } from "../support/wallClock.ts"
import { entry } from "./support.ts"

const keys = ["one", "two"]
const ids = keys.map((key) => keyId(key, sha256Hex))

const services = (config: RawConfig) =>
  KeyLimits.layer.pipe(
    Layer.provideMerge(UsageStore.layerMemory),
    Layer.provideMerge(ConfigStore.layerJson(config))
  )

/** Runs with services that begin at a time. */
const from =
  (time: number, config: RawConfig) =>
  <A, E>(effect: Effect.Effect<A, E, Layer.Success<ReturnType<typeof services>>>) =>
    Effect.andThen(TestClock.setTime(time), Effect.provide(effect, services(config)))

const limited = (key: string, record: RawConfig): RawConfig => ({
  keys: [...keys],
  key_records: { [keyId(key, sha256Hex)]: record }
})

/** A request of the model: reserved until it ends. */
interface Known {
  readonly key: string
  /** Until its admission. */
  entry: { readonly entered: Reserved; readonly scope: Scope.Closeable } | undefined
  readonly at: number
  readonly end: (used: Used) => Effect.Effect<void>
  /** What it has reserved of a window, or used. */
  share: InWindow
  counts: boolean
  open: boolean
}

type Act =
  | { readonly _tag: "enter"; readonly key: number }
  /** `hasEntered` admits a request that was counted while its body arrived, if there is one. */
  | {
    readonly _tag: "admit"
    readonly key: number
    readonly tokens: number
    readonly hasEntered: boolean
    readonly takesFallback: boolean
  }
  | { readonly _tag: "end"; readonly which: number } & Required<Used>
  | { readonly _tag: "leave"; readonly which: number }
  | { readonly _tag: "pass"; readonly millis: number }
  | {
    readonly _tag: "limit"
    readonly key: number
    readonly most: number | undefined
    readonly limits: ReadonlyArray<KeyLimit>
  }
  | { readonly _tag: "forget" }

const minute = 60_000
const which = fc.nat({ max: 30 })
const limit = fc.record({
  _tag: fc.constant("limit" as const),
  key: fc.nat({ max: 1 }),
  most: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
  limits
})
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("enter" as const), key: fc.nat({ max: 1 }) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      _tag: fc.constant("admit" as const),
      key: fc.nat({ max: 1 }),
      tokens: fc.nat({ max: 15 }),
      hasEntered: fc.boolean(),
      takesFallback: fc.boolean()
    })
  },
  {
    weight: 5,
    arbitrary: fc.record({
      _tag: fc.constant("end" as const),
      which,
      counted: fc.boolean(),
      tokens: fc.nat({ max: 30 }),
      cost: fc.bigInt({ min: 0n, max: 2n ** 54n })
    })
  },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("leave" as const), which }) },
  {
    weight: 3,
    arbitrary: fc.record({
      _tag: fc.constant("pass" as const),
      millis: fc.constantFrom(1, 999, 30_000, minute, 61 * minute, 25 * 60 * minute, 8 * 24 * 60 * minute)
    })
  },
  { weight: 2, arbitrary: limit },
  { weight: 1, arbitrary: fc.constant<Act>({ _tag: "forget" }) }
)

/** Near the ends of minutes, days, weeks and months, leap days among them. */
const beginnings = ["2028-02-28T23:59:58Z", "2028-02-29T23:59:59Z", "2027-12-31T23:58:00Z", "2026-11-22T23:00:00Z"]

const nothingUsed: Used = { counted: false, tokens: 0, cost: 0n }

/** Asks for the admission of a request; `end` ends it with what it has used. */
const ask = (
  keyLimits: KeyLimits["Service"],
  tokens = 1,
  key = ids[0]!,
  entry?: Known["entry"],
  takesFallback = false
) =>
  Effect.gen(function*() {
    const scope = entry?.scope ?? (yield* Scope.make())
    const model = resolveRoute((yield* ConfigStore).now().route_table, "usual", "upstream-chat")
    let used = nothingUsed
    const admitted = yield* Scope.provide(
      keyLimits.admit({
        key,
        model,
        promptTokens: () => tokens,
        bounds: boundsOf(tokens),
        takesFallback,
        used: () => used,
        entered: entry?.entered
      }),
      scope
    )
    const end = (by: Used) =>
      Effect.suspend(() => {
        used = by
        return Scope.close(scope, Exit.void)
      })
    return { at: admitted.at, rateLimits: admitted.rateLimits, fallback: admitted.fallback, end }
  })

const interleave = (beginning: string, acts: ReadonlyArray<Act>) =>
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const store = yield* UsageStore
    const keyLimits = yield* KeyLimits
    const known: Array<Known> = []
    let spare = 0

    const used = (key: string, window: KeyLimit["window"], now: number) => {
      const { end, start } = windowAt(window, now)
      const own = known.filter((one) => one.key === key && one.counts && one.at >= start && one.at < end)
      return {
        requests: own.length,
        tokens: own.reduce((sum, { share }) => sum + share(window).tokens, 0),
        cost: own.reduce((sum, { share }) => sum + share(window).cost, 0n)
      }
    }
    const inFlight = (key: string) => known.filter((one) => one.key === key && one.open).length

    const endOne = Effect.fnUntraced(function*(one: Known | undefined, { cost = 0n, counted, tokens }: Used) {
      if (one === undefined || !one.open) return
      yield* one.end({ counted, tokens, cost })
      one.open = false
      one.counts = counted && one.entry === undefined
      if (one.entry !== undefined) return
      one.share = () => ({ tokens, cost })
      store.add(entry({ at: one.at, key: one.key, counted, promptTokens: tokens, completionTokens: 0, cost }))
    })

    for (const step of acts) {
      const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
      switch (step._tag) {
        case "pass":
          yield* TestClock.adjust(step.millis)
          break
        case "end":
          yield* endOne(known[step.which], step)
          break
        case "leave":
          yield* endOne(known[step.which], nothingUsed)
          break
        case "limit": {
          const key_records = {
            [ids[step.key]!]: {
              ...(step.most === undefined ? {} : { max_inflight: step.most }),
              limits: rawLimits(step.limits)
            }
          }
          yield* config.update((raw) => Effect.succeed({ ...raw, key_records }))
          break
        }
        case "forget":
          yield* config.update((raw) => Effect.succeed({ ...raw, keys: [...keys, `spare ${spare++}`] }))
          break
        case "enter": {
          const key = ids[step.key]!
          const most = config.now().key_records.get(key)?.max_inflight
          assert.strictEqual(keyLimits.limitsRunning(key), most !== undefined)
          if (most === undefined) break
          const scope = yield* Scope.make()
          const entered = yield* Effect.exit(Scope.provide(keyLimits.enter(key), scope))
          assert.strictEqual(Exit.isSuccess(entered), inFlight(key) < most)
          if (Exit.isFailure(entered)) break
          const end = () => Scope.close(scope, Exit.void)
          const entry = { entered: entered.value, scope }
          known.push({ key, at: now, end, entry, share: nothing, counts: true, open: true })
          break
        }
        case "admit": {
          const key = ids[step.key]!
          const record = config.now().key_records.get(key)
          const before = step.hasEntered
            ? known.find((one) => one.key === key && one.open && one.entry !== undefined)
            : undefined
          if (before !== undefined) Object.assign(before, { open: false, counts: false })
          const verdict = inFlight(key) < (record?.max_inflight ?? Number.POSITIVE_INFINITY)
            ? judged({ limits: record?.limits ?? [] }, step.tokens, step.takesFallback, (window) =>
              used(key, window, now))
            : undefined
          const admitted = yield* Effect.exit(ask(keyLimits, step.tokens, key, before?.entry, step.takesFallback))
          assert.strictEqual(Exit.isSuccess(admitted), verdict !== undefined)
          if (Exit.isSuccess(admitted) && verdict !== undefined) {
            assert.strictEqual(admitted.value.fallback !== undefined, verdict.isFallback)
            known.push({
              key,
              at: now,
              end: admitted.value.end,
              entry: undefined,
              share: reservedBy(record?.limits ?? [], step.tokens, verdict.isFallback),
              counts: true,
              open: true
            })
          }
          break
        }
      }
      const after = yield* Effect.clockWith((clock) =>
        clock.currentTimeMillis
      )
      for (const key of ids) {
        const [seen] = yield* keyLimits.usageOf([key])
        assert(seen !== undefined)
        assert.strictEqual(seen.inFlight, inFlight(key))
        for (const { cost, requests, resetsAt, startedAt, tokens, window } of seen.windows) {
          assert.deepStrictEqual({ start: startedAt, end: resetsAt }, windowAt(window, after))
          assert.deepStrictEqual({ requests, tokens, cost }, used(key, window, after), window)
        }
      }
    }
    for (const one of known) {
      yield* endOne(one, nothingUsed)
    }
    for (const { inFlight } of yield* keyLimits.usageOf(ids)) {
      assert.strictEqual(inFlight, 0)
    }
  }).pipe(from(Date.parse(beginning), { keys: [...keys], prices }), Effect.provide(TestClock.layer()))

/** Why a request is refused. */
const refused = (keyLimits: KeyLimits["Service"], tokens = 1): Effect.Effect<Refused, never, ConfigStore> =>
  Effect.flip(ask(keyLimits, tokens)).pipe(Effect.catch(() => Effect.die("It was admitted")))

const noon = Date.parse("2026-11-21T12:00:00Z")

describe("the limits of keys", () => {
  it("are never exceeded and never leak under any interleaving", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...beginnings),
        fc.tuple(limit, fc.array(act, { maxLength: 40, size: "max" })).map(([first, rest]) => [first, ...rest]),
        (beginning, acts) => Effect.runPromise(interleave(beginning, acts))
      ),
      { numRuns: runs(150) }
    )
  })

  it.effect("reject requests until every exhausted window has ended, then admit again", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon + 15_000)
      const keyLimits = yield* KeyLimits
      yield* (yield* ask(keyLimits)).end({ counted: true, tokens: 5, cost: undefined })
      const { error, rateLimits } = yield* refused(keyLimits)
      assert.deepInclude(error, { code: "rate_limit_exceeded", retryAfter: 45 })
      assert.isTrue(error.shouldRetry)
      assert.strictEqual(
        error.message,
        "This API key's limit of 1 request a minute is used up until 2026-11-21T12:01:00Z"
      )
      assert.deepStrictEqual(rateLimitHeaders(rateLimits!), {
        "x-ratelimit-limit-requests": "1",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "45s",
        "x-ratelimit-limit-tokens": "20",
        "x-ratelimit-remaining-tokens": "15",
        "x-ratelimit-reset-tokens": "11h59m45s"
      })
      yield* TestClock.setTime(noon + 59_999)
      yield* refused(keyLimits)
      yield* TestClock.setTime(noon + 60_000)
      yield* ask(keyLimits, 15)
      const both = (yield* refused(keyLimits)).error
      assert.deepInclude(both, { retryAfter: 12 * 3600 - 60 })
      assert.isFalse(both.shouldRetry)
      assert.include(both.message, "20 tokens a day")
    }).pipe(from(
      noon,
      limited("one", {
        limits: [{ window: "minute", requests: 1 }, { window: "day", tokens: 20 }]
      })
    )))

  it.effect("reject a prompt that exceeds a limit by itself, without a retry", () =>
    Effect.gen(function*() {
      const keyLimits = yield* KeyLimits
      const { error } = yield* refused(keyLimits, 21)
      assert.deepInclude(error, { code: "rate_limit_exceeded" })
      assert.isUndefined(error.retryAfter)
      assert.isFalse(error.shouldRetry)
    }).pipe(from(noon, limited("one", { limits: [{ window: "day", tokens: 20 }] }))))

  it.effect("can be exceeded by the tokens of admitted requests; the remaining number is then 0", () =>
    Effect.gen(function*() {
      const keyLimits = yield* KeyLimits
      yield* (yield* ask(keyLimits)).end({ counted: true, tokens: 1000, cost: undefined })
      assert.strictEqual((yield* refused(keyLimits)).rateLimits?.tokens?.remaining, 0)
    }).pipe(from(noon, limited("one", { limits: [{ window: "day", tokens: 20 }] }))))

  it.effect("hold an amount of money: the prompt's cost is reserved, the actual cost replaces it", () =>
    Effect.gen(function*() {
      const keyLimits = yield* KeyLimits
      const [first, second] = [yield* ask(keyLimits, 1_000_000), yield* ask(keyLimits, 1_000_000)]
      const { error, rateLimits } = yield* refused(keyLimits, 1)
      assert.strictEqual(
        error.message,
        "This API key's limit of 4.5 EUR a day is used up until 2026-11-22T00:00:00Z"
      )
      assert.deepInclude(error, { code: "rate_limit_exceeded", retryAfter: 12 * 3600 })
      assert.deepStrictEqual(rateLimitHeaders(rateLimits!), {})
      yield* first.end(nothingUsed)
      yield* second.end({ counted: true, tokens: 3, cost: 2_000_000_000n })
      yield* ask(keyLimits, 1_500_000)
      assert.strictEqual((yield* keyLimits.usageOf([ids[0]!]))[0]?.windows[2]?.cost, 4_500_000_000n)
    }).pipe(from(noon, {
      ...limited("one", { limits: [{ window: "day", cost: "4.5" }] }),
      prices: { "*": { input: 2, output: 1, per_request: 0.25 }, "upstream-*": { input: "1", per_request: 1 } },
      currency: "eur"
    })))

  it.effect("reject a request whose prompt alone costs more than a limit, without a retry", () =>
    Effect.gen(function*() {
      const { error } = yield* refused(yield* KeyLimits, 1_000_000)
      assert.strictEqual(
        error.message,
        "The request costs about 2.25; this API key is limited to a cost of 2 per month"
      )
      assert.isUndefined(error.retryAfter)
      assert.isFalse(error.shouldRetry)
    }).pipe(from(noon, {
      ...limited("one", { limits: [{ window: "month", cost: 2 }] }),
      prices: { "*": { input: 2, output: 1, per_request: 0.25 } }
    })))

  it.effect("reject a request above max_inflight immediately, with a retry after one second", () =>
    Effect.gen(function*() {
      const keyLimits = yield* KeyLimits
      const first = yield* ask(keyLimits)
      assert.deepInclude((yield* refused(keyLimits)).error, { code: "rate_limit_exceeded", retryAfter: 1 })
      yield* ask(keyLimits, 1, ids[1])
      yield* first.end(nothingUsed)
      yield* first.end(nothingUsed)
      yield* ask(keyLimits)
      yield* refused(keyLimits)
    }).pipe(from(noon, { ...limited("one", {}), runtime: { key_max_inflight: 1 } })))

  it.effect("count a key's use from before it had limits, and do not affect keys without limits", () =>
    Effect.gen(function*() {
      const config = yield* ConfigStore
      const keyLimits = yield* KeyLimits
      for (let i = 0; i < 100; i++) yield* (yield* ask(keyLimits)).end({ counted: true, tokens: 10, cost: undefined })
      yield* config.update((raw) =>
        Effect.succeed({ ...raw, ...limited("one", { limits: [{ window: "day", requests: 100 }] }) })
      )
      yield* refused(keyLimits)
      for (const key of [ids[1]!, "direct", "embedded"]) {
        yield* ask(keyLimits, 10 ** 9, key)
      }
    }).pipe(from(noon, { keys: [...keys] })))

  it.effect("keep their windows when the clock steps back slightly, and load them again when it steps back far", () =>
    Effect.gen(function*() {
      const keyLimits = yield* KeyLimits
      yield* TestClock.setTime(noon)
      yield* ask(keyLimits)
      yield* TestClock.setTime(noon - 30_000)
      yield* refused(keyLimits)
      yield* TestClock.setTime(noon - 3_600_000)
      yield* ask(keyLimits)
      yield* refused(keyLimits)
    }).pipe(from(noon, limited("one", { limits: [{ window: "minute", requests: 1 }] }))))

  for (
    const [name, jump] of Object.entries({
      "two minutes": 2 * minute,
      "an hour": 61 * minute,
      "a day": 25 * 60 * minute,
      "500 days": 500 * 24 * 60 * minute
    })
  ) {
    it.effect(`keep what is reserved and used while the clock jumps back and forth by ${name}`, () =>
      withWallClock((clock) =>
        Effect.gen(function*() {
          const keyLimits = yield* KeyLimits
          const [running, ended] = [yield* ask(keyLimits), yield* ask(keyLimits)]
          yield* ended.end({ counted: true, tokens: 5, cost: undefined })
          for (const offset of [jump, 0, -jump, 0]) {
            clock.offset = offset
            if (dayOf(noon + offset) === dayOf(noon)) yield* refused(keyLimits)
            else yield* (yield* ask(keyLimits)).end(nothingUsed)
          }
          yield* running.end({ counted: true, tokens: 7, cost: undefined })
          yield* refused(keyLimits)
          const [usage] = yield* keyLimits.usageOf([ids[0]!])
          assert.deepInclude(usage?.windows.find(({ window }) => window === "day"), { requests: 2, tokens: 12 })
        }).pipe(from(noon, limited("one", { limits: [{ window: "day", requests: 2 }] })))
      ))
  }

  it("reset times are sent as durations that SDKs can read", () => {
    const cases: ReadonlyArray<readonly [number, string]> = [[17_000, "17s"], [16_001, "17s"], [360_000, "6m0s"], [
      111_840_000,
      "31h4m0s"
    ], [0, "0s"]]
    for (const [millis, text] of cases) assert.strictEqual(formatReset(millis), text)
  })
})

describe("the rights of a key", () => {
  it.effect("a list of names allows exactly the models behind these names, in any style", () =>
    Effect.gen(function*() {
      const keyLimits = yield* KeyLimits
      assert.deepStrictEqual([...keyLimits.modelsOf(ids[0]!)!.names].sort(), [
        "big",
        "upstream-chat",
        "upstream-reasoner"
      ])
      const { route_table } = (yield* ConfigStore).now()
      const model = (id: string) => resolveRoute(route_table, "usual", id)!
      assert.isUndefined(keyLimits.refuseModel(ids[0]!, model("big")))
      const error = keyLimits.refuseModel(ids[0]!, model("upstream-chat-search"))
      assert.deepInclude(error, {
        code: "model_not_allowed",
        status: 403,
        type: "permission_error",
        rpc: "PERMISSION_DENIED",
        param: "model"
      })
      assert.isFalse(error?.shouldRetry)
      assert.isUndefined(keyLimits.modelsOf(ids[1]!))
    }).pipe(from(noon, {
      ...limited("one", { models: ["gpt-4o", "claude-opus", "nobody"] }),
      upstream: { models: { big: "big-1" } },
      msgcompat_mapping: { slow: "big" }
    })))

  it.effect("a key with a cost limit may use models only that have a price at every target", () =>
    Effect.gen(function*() {
      const keyLimits = yield* KeyLimits
      const { route_table } = (yield* ConfigStore).now()
      const refusal = (model: string, key = ids[0]!) =>
        keyLimits.refuseModel(key, resolveRoute(route_table, "usual", model)!)?.code
      assert.isUndefined(refusal("upstream-chat"))
      assert.isUndefined(refusal("both"))
      assert.deepStrictEqual(["upstream-reasoner", "half"].map((model) => refusal(model)), [
        "model_not_priced",
        "model_not_priced"
      ])
      assert.isUndefined(refusal("upstream-reasoner", ids[1]))
      assert.deepInclude(keyLimits.refuseModel(ids[0]!, resolveRoute(route_table, "usual", "half")!), {
        status: 403,
        type: "permission_error",
        rpc: "PERMISSION_DENIED",
        param: "model",
        message:
          `This API key has a cost limit, and the model "half" has no price at its target "gpu/a". Ask the gateway's operator to add one.`
      })
    }).pipe(from(noon, {
      ...limited("one", { limits: [{ window: "day", cost: 1, requests: 5 }] }),
      upstreams: { gpu: { driver: "openai", base_url: "http://localhost:1", models: { a: "a", b: "b" } } },
      upstream: { driver: "embedded" },
      routes: { half: ["default/upstream-chat", "gpu/a"], both: ["gpu/b", "default/upstream-chat"] },
      prices: { "upstream-chat": { input: 1 }, "gpu/b*": { per_request: 1 } }
    })))

  it("a disabled or expired key is rejected", () => {
    const record = {
      name: undefined,
      label: undefined,
      note: undefined,
      disabled: false,
      expires_at: noon,
      models: undefined,
      max_inflight: undefined,
      limits: [],
      created_at: undefined
    }
    assert.isUndefined(refuseKey(undefined, noon))
    assert.isUndefined(refuseKey(record, noon - 1))
    assert.deepInclude(refuseKey(record, noon), {
      code: "authentication_failed",
      message: "This API key expired at 2026-11-21T12:00:00Z"
    })
    assert.strictEqual(refuseKey({ ...record, disabled: true }, noon)?.message, "This API key is disabled")
  })
})
