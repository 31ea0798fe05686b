/** Upstreams that would go on for ever: how many calls they get, for how long, and what becomes of the reply. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Stream } from "effect"
import { HttpClient, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { Deadlines, tickMillis } from "../../src/config/clock/Deadlines.ts"
import { mostFragments } from "../../src/contracts/session/patchDocument.ts"
import { defaultLimits, type Limits } from "../../src/domain/limits.ts"
import { RequestBudget } from "../../src/upstream/budget.ts"
import { makeOpenAiDriver } from "../../src/upstream/compatible/driver.ts"
import { makeSessionDriver } from "../../src/upstream/session/driver.ts"
import { exchangesOf } from "../../src/upstream/transports/httpClient.ts"
import type { Driver } from "../../src/upstream/Upstream.ts"
import { complete, type Outcome, request } from "./session/support.ts"

const timeLimits = { firstByte: 30_000, silence: 120_000 }

interface Upstream {
  readonly driver: Driver
  /** Calls by the last part of their path. */
  readonly calls: Map<string, number>
}

/** An upstream whose n-th reply, counted from 0, is a stream of these texts. */
const upstream = Effect.fnUntraced(function*(
  body: (round: number) => Stream.Stream<string>,
  protocol: "session" | "openai"
): Effect.fn.Return<Upstream, never, Deadlines> {
  const calls = new Map<string, number>()
  let rounds = 0
  const accepted = { code: 0, data: { biz_code: 0, biz_data: { id: "s" } } }
  const client = HttpClient.make((request) =>
    Effect.sync(() => {
      const name = request.url.split("/").at(-1) ?? ""
      calls.set(name, (calls.get(name) ?? 0) + 1)
      const isStream = name === "completion" || name === "continue" || name === "completions"
      const response = isStream
        ? HttpServerResponse.stream(Stream.encodeText(body(rounds++)), { contentType: "text/event-stream" })
        : HttpServerResponse.jsonUnsafe(accepted)
      return HttpServerResponse.toClientResponse(response, { request })
    })
  )
  const options = { baseUrl: "http://provider/v1", furtherModels: [], limits: timeLimits }
  const exchanges = yield* exchangesOf(client, yield* Deadlines, () => false)
  return {
    calls,
    driver: protocol === "session"
      ? makeSessionDriver(exchanges, options)
      : makeOpenAiDriver(exchanges, { ...options, models: [], tools: "native" })
  }
})

const event = (value: unknown) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`
const ready = "event: ready\ndata: {\"response_message_id\":2}\n\n"
const opening = event({ v: { response: { message_id: 2, status: "WIP", fragments: [] } } })
const fragment = (content: string) =>
  event({ p: "response/fragments", o: "APPEND", v: [{ id: 1, type: "RESPONSE", content }] })
const tip = event({ p: "response/fragments", o: "APPEND", v: [{ id: 1, type: "TIP", content: "t" }] })
const status = (word: string) => event({ p: "response/status", o: "SET", v: word })
const hint = "event: hint\ndata: {\"type\":\"error\",\"content\":\"No\",\"finish_reason\":\"rate_limit_reached\"}\n\n"
const delta = (content: string) => event({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })

/** A text every so many milliseconds, for ever. */
const every = (millis: number, text: string) => Stream.fromEffectRepeat(Effect.as(Effect.sleep(millis), text))
/** A text without a pause, for ever. */
const always = (text: string) => Stream.fromEffectRepeat(Effect.as(Effect.yieldNow, text))

interface Endless {
  readonly about: string
  readonly protocol?: "openai"
  readonly limits?: Partial<Limits>
  readonly body: (round: number) => Stream.Stream<string>
  /** Milliseconds after which the reply is over, and not before. */
  readonly lasts: number
  readonly outcome: Partial<Outcome>
  readonly calls: Readonly<Record<string, number>>
}

const said = Stream.make(ready, opening, fragment("a"))

const cases: ReadonlyArray<Endless> = [
  {
    about: "every continue brings one more character and is cut again",
    body: () => Stream.make(ready, opening, fragment("a"), status("INCOMPLETE")),
    lasts: 0,
    outcome: { text: "a".repeat(17), finish: "length", failed: undefined },
    calls: { create: 1, completion: 1, continue: 16 }
  },
  {
    about: "every continue is cut without a character",
    body: (round) =>
      round === 0
        ? Stream.make(ready, opening, fragment("a"), status("AUTO_CONTINUE"))
        : Stream.make(opening, status("INCOMPLETE")),
    lasts: 0,
    outcome: { text: "a", finish: "length", failed: undefined },
    calls: { create: 1, completion: 1, continue: 3 }
  },
  {
    about: "nothing ever comes but INCOMPLETE",
    body: () => Stream.make(ready, opening, status("INCOMPLETE")),
    lasts: 0,
    outcome: { text: "", finish: undefined, failed: "empty_reply" },
    calls: { create: 1, completion: 1, continue: 3 }
  },
  {
    about: "every resume brings one more character and is cut off again",
    body: () => Stream.make(ready, opening, fragment("a")),
    lasts: 9_500,
    outcome: { text: "a".repeat(9), finish: undefined, failed: "cut_off" },
    calls: { create: 1, completion: 1, continue: 8 }
  },
  {
    about: "resumes bring nothing",
    body: (round) => round === 0 ? said : Stream.make(ready),
    lasts: 300,
    outcome: { text: "a", finish: undefined, failed: "cut_off" },
    calls: { create: 1, completion: 1, continue: 3 }
  },
  {
    about: "cuts of both kinds take turns",
    body: (round) => round % 2 === 0 ? said : Stream.make(opening, fragment("b"), status("INCOMPLETE")),
    lasts: 9_500,
    outcome: { finish: undefined, failed: "cut_off" },
    calls: { create: 1, completion: 1, continue: 16 }
  },
  {
    about: "a hint comes after text",
    body: () => Stream.concat(said, Stream.concat(Stream.make(hint), always(fragment("b")))),
    lasts: 0,
    outcome: { text: "a", finish: undefined, failed: "rate_limited" },
    calls: { create: 1, completion: 1 }
  },
  {
    about: "nothing but comments comes",
    body: () => Stream.concat(Stream.make(ready), every(1_000, ": still here\n\n")),
    lasts: 600_000,
    outcome: { text: "", failed: "overdue" },
    calls: { create: 1, completion: 1, stop_stream: 1 }
  },
  {
    about: "patches come that change nothing",
    body: () => Stream.concat(said, every(1_000, event({ p: "response/nowhere/else/0/x", o: "APPEND", v: "y" }))),
    lasts: 600_000,
    outcome: { text: "a", failed: "overdue" },
    calls: { create: 1, completion: 1, stop_stream: 1 }
  },
  {
    about: "pieces without a character come",
    body: () => Stream.concat(said, every(1_000, event({ p: "response/fragments/-1/content", o: "APPEND", v: "" }))),
    lasts: 600_000,
    outcome: { text: "a", failed: "overdue" },
    calls: { create: 1, completion: 1, stop_stream: 1 }
  },
  {
    about: "a character comes every minute",
    body: () => Stream.concat(said, every(60_000, event({ p: "response/fragments/-1/content", o: "APPEND", v: "b" }))),
    lasts: 3_600_000,
    outcome: { failed: "overdue" },
    calls: { create: 1, completion: 1, stop_stream: 1 }
  },
  {
    about: "comments come without a pause",
    limits: { reply_bytes: 1024 * 1024 },
    body: () => Stream.concat(said, always(`: ${"x".repeat(4096)}\n\n`)),
    lasts: 0,
    outcome: { text: "a", failed: "exhausted" },
    calls: { create: 1, completion: 1, stop_stream: 1 }
  },
  {
    about: "text comes without a pause",
    limits: { reply_chars: 64 * 1024 },
    body: () =>
      Stream.concat(said, always(event({ p: "response/fragments/-1/content", o: "APPEND", v: "b".repeat(1000) }))),
    lasts: 0,
    outcome: { text: "a" + "b".repeat(64 * 1024 - 1), finish: "length", failed: undefined },
    calls: { create: 1, completion: 1, stop_stream: 1 }
  },
  {
    about: "fragments come without a pause",
    body: () => Stream.concat(said, always(fragment("b").repeat(100))),
    lasts: 0,
    outcome: { text: "a" + "b".repeat(mostFragments - 1), finish: "length", failed: undefined },
    calls: { create: 1, completion: 1, stop_stream: 1 }
  },
  {
    about: "fragments without text come without a pause, and text too late",
    body: () => Stream.concat(Stream.make(ready, opening), always(tip.repeat(10_000) + fragment("b"))),
    lasts: 0,
    outcome: { text: "", finish: undefined, failed: "empty_reply" },
    calls: { create: 1, completion: 1, stop_stream: 1 }
  },
  {
    about: "text comes without a pause from a server that knows no rounds",
    protocol: "openai",
    limits: { reply_chars: 64 * 1024 },
    body: () => always(delta("b".repeat(1000))),
    lasts: 0,
    outcome: { text: "b".repeat(64 * 1024), finish: "length", failed: undefined },
    calls: { completions: 1 }
  },
  {
    about: "pieces without a character come from a server that knows no rounds",
    protocol: "openai",
    body: () => every(1_000, delta("")),
    lasts: 600_000,
    outcome: { text: "", failed: "overdue" },
    calls: { completions: 1 }
  },
  {
    about: "comments come without a pause from a server that knows no rounds",
    protocol: "openai",
    limits: { reply_bytes: 1024 * 1024 },
    body: () => always(`: ${"x".repeat(4096)}\n\n`),
    lasts: 0,
    outcome: { text: "", failed: "exhausted" },
    calls: { completions: 1 }
  }
]

/** A clock whose wall clock somebody sets; its monotonic time is the test's. */
const withWall = (clock: Clock.Clock, offset: () => number): Clock.Clock => ({
  ...clock,
  sleep: (duration) => clock.sleep(duration),
  currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + offset(),
  currentTimeMillis: Effect.sync(() => clock.currentTimeMillisUnsafe() + offset()),
  monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe()
})

const run = ({ body, calls: expected, lasts, limits, outcome, protocol }: Endless, steps: ReadonlyArray<number>) =>
  Effect.gen(function*() {
    const test = yield* Clock.Clock
    let offset = 0
    const clock = withWall(test, () => offset)
    const deadlines = yield* Effect.provideService(Layer.build(Deadlines.layer), Clock.Clock, clock)
    const { calls, driver } = yield* upstream(body, protocol ?? "session").pipe(
      Effect.provide(deadlines),
      Effect.provideService(Clock.Clock, clock)
    )
    const budget = new RequestBudget({ ...defaultLimits, ...limits }, clock)
    const fiber = yield* complete(driver, request("hi", { budget })).pipe(
      Effect.provideService(Clock.Clock, clock),
      Effect.forkChild
    )
    if (lasts > 0) {
      for (const step of steps) {
        yield* TestClock.adjust((lasts - 1) / (steps.length + 1))
        offset += step
      }
      yield* TestClock.adjust((lasts - 1) / (steps.length + 1))
      assert.isUndefined(fiber.pollUnsafe(), "over too early")
      yield* TestClock.adjust(1 + tickMillis)
    }
    const came = yield* Fiber.join(fiber)
    assert.deepInclude(came, outcome)
    assert.deepStrictEqual(Object.fromEntries(calls), expected)
    const sum = Object.values(expected).reduce((all, count) => all + count, 0)
    assert.isAtMost(sum, 40)
  })

describe("an upstream without end", () => {
  for (const endless of cases) {
    it.effect(`ends where ${endless.about}`, () => run(endless, []))
  }

  const hour = 3_600_000
  for (const endless of cases.filter(({ lasts }) => lasts > 0)) {
    it.effect(`ends at the same time where the wall clock jumps and ${endless.about}`, () =>
      run(endless, [hour, -2 * hour, 5 * hour]))
  }
})
