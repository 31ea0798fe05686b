import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Fiber, Scope, Stream } from "effect"
import { HttpClient, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { Deadlines } from "../../../src/config/clock/Deadlines.ts"
import type { CallName } from "../../../src/contracts/session/readRequest.ts"
import { defaultLimits } from "../../../src/domain/limits.ts"
import type { UpstreamFailure } from "../../../src/domain/UpstreamFailure.ts"
import { Provider } from "../../../src/testing/Provider.ts"
import { makeClient } from "../../../src/testing/provider/client.ts"
import type { Fault, FaultName } from "../../../src/testing/provider/faults.ts"
import { RequestBudget } from "../../../src/upstream/budget.ts"
import { makeSessionDriver, type SessionDriver } from "../../../src/upstream/session/driver.ts"
import { exchangesOf } from "../../../src/upstream/transports/httpClient.ts"
import type { Driver } from "../../../src/upstream/Upstream.ts"
import {
  complete,
  driverFor,
  facts,
  itOnClient,
  makeWatch,
  type Outcome,
  type ReferenceServer,
  referenceServer,
  request,
  start,
  timeLimits,
  whileTimePasses
} from "./support.ts"

/** Nothing is being answered and nothing runs. */
const isQuiet = ({ provider }: ReferenceServer) => () => {
  const { open, streams } = provider.report()
  return open === 0 && streams === 0
}

const setUp = Effect.gen(function*() {
  const server = yield* referenceServer()
  return { server, driver: yield* driverFor(server.url) }
})

/** Runs a completion whose upstream falls silent as the fault says, after a word where it is in mid-stream. */
const completeSilent = (driver: Driver, server: ReferenceServer, fault: FaultName, script: string) => {
  const { bytes, head, recorder } = makeWatch()
  const silent = fault === "hang-before-headers"
    ? server.until(() => server.provider.report().silences === 1)
    : fault === "hang-before-events"
    ? head
    : bytes("one")
  return Effect.map(whileTimePasses(complete(driver, request(script, { recorder })), silent), ({ millis, result }) => {
    assert.isAtLeast(millis, timeLimits.silence)
    assert.isBelow(millis, 2 * timeLimits.silence)
    return result
  })
}

const failureOf = <A>(effect: Effect.Effect<A, UpstreamFailure>) => Effect.map(Effect.flip(effect), facts)

describe("the session driver", () => {
  describe.concurrent("calls", () => {
    itOnClient("logs in by email and by national mobile number, and the token works", () =>
      Effect.gen(function*() {
        const server = yield* referenceServer({
          accounts: [{ email: "a@example.org", password: "p" }, { mobile: "13800138000", password: "q" }]
        })
        const driver = yield* driverFor(server.url)
        const token = yield* driver.capabilities.login({ email: "a@example.org", mobile: undefined, password: "p" })
        yield* driver.verify(token)
        yield* driver.capabilities.login({ email: undefined, mobile: "+86 138 0013 8000", password: "q" })
        const refused = yield* failureOf(
          driver.capabilities.login({ email: "a@example.org", mobile: undefined, password: "x" })
        )
        assert.strictEqual(refused.class, "login_refused")
        assert.strictEqual((yield* failureOf(driver.verify("forged"))).class, "token_refused")
        assert.strictEqual((yield* failureOf(driver.verify(undefined))).class, "token_refused")
      }))

    itOnClient("makes, lists and deletes sessions", () =>
      Effect.gen(function*() {
        const { driver } = yield* setUp
        const first = yield* driver.capabilities.sessions.create("t")
        const second = yield* driver.capabilities.sessions.create("t")
        assert.sameMembers((yield* driver.capabilities.sessions.list("t", 10)).map(({ id }) => id), [first, second])
        assert.lengthOf(yield* driver.capabilities.sessions.list("t", 1), 1)
        yield* Effect.forEach(Array.from({ length: 248 }), () => driver.capabilities.sessions.create("many"))
        assert.lengthOf(yield* driver.capabilities.sessions.list("many", 5000), 248)
        assert.lengthOf(yield* driver.capabilities.sessions.list("many", 200), 200)
        assert.lengthOf(yield* driver.capabilities.sessions.list("many", 100), 100)
        yield* driver.capabilities.sessions.delete("t", first)
        assert.deepStrictEqual((yield* driver.capabilities.sessions.list("t", 10)).map(({ id }) => id), [second])
        assert.strictEqual((yield* failureOf(driver.capabilities.sessions.delete("t", first))).class, "session_gone")
        yield* driver.capabilities.sessions.deleteAll("t")
        assert.deepStrictEqual(yield* driver.capabilities.sessions.list("t", 10), [])
      }))

    itOnClient("uses its connections again", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        for (let i = 0; i < 5; i++) {
          assert.strictEqual((yield* complete(driver, request("!say hello"))).text, "hello")
          yield* driver.verify("t")
        }
        assert.isAtMost(server.accepted(), 2)
      }))
  })

  describe.concurrent("replies", () => {
    const cases: ReadonlyArray<readonly [about: string, script: string, expected: Partial<Outcome>]> = [
      ["reasoning and text", "!think Hm.\n!say Hello there", { reasoning: "Hm.", text: "Hello there", finish: "stop" }],
      ["the older document", "!shape old\n!think Hm.\n!say Hello there", { reasoning: "Hm.", text: "Hello there" }],
      ["usage", "!say a b c\n!usage 17", { completionTokens: 17 }],
      ["usage in parts", "!say a\n!usage {\"prompt_tokens\":4,\"completion_tokens\":9}", { completionTokens: 9 }],
      ["other fragments", "!search\n!fragment TIP no\n!say yes", { text: "yes" }],
      ["cuts with a snapshot", "!chunk words\n!say one two three four\n!cut 1", { text: "one two three four" }],
      ["cuts with empty snapshots", "!say one two three four\n!cut 1 empty auto", { text: "one two three four" }],
      ["cuts without a snapshot", "!think a b\n!say one two three\n!cut 1 none", { text: "one two three" }],
      ["older cuts", "!shape old\n!say one two three four\n!cut 2", { text: "one two three four" }],
      ["16 rounds at the limit", "!repeat 17 x\n!cut 1", { text: "x".repeat(17), finish: "stop" }],
      ["more rounds than that", "!repeat 40 x\n!cut 1", { text: "x".repeat(17), finish: "length" }]
    ]
    const harmless: ReadonlyArray<FaultName> = [
      "no-ready",
      "no-close",
      "done",
      "done-only",
      "crlf",
      "cr",
      "comments",
      "retry-lines",
      "multi-line-data",
      "no-space",
      "chatter",
      "trickle",
      "split-utf8",
      "empty-fragment",
      "unknown-parts"
    ]
    for (const [about, script, expected] of cases) {
      itOnClient(about, () =>
        Effect.gen(function*() {
          const { driver, server } = yield* setUp
          const outcome = yield* complete(driver, request(script))
          assert.deepInclude(outcome, { failed: undefined, ...expected })
          yield* server.until(isQuiet(server))
          assert.strictEqual(server.provider.report().aborted, 0)
        }))
    }

    itOnClient("take no harm from what a server may do", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        for (const fault of harmless) {
          const outcome = yield* complete(driver, request(`!think Thünk 🌍\n!say Hällo 🌍 world\n!fault ${fault}`))
          assert.deepInclude(outcome, {
            failed: undefined,
            reasoning: "Thünk 🌍",
            text: "Hällo 🌍 world",
            finish: "stop"
          }, fault)
        }
        yield* server.until(isQuiet(server))
      }))

    itOnClient("end a moment after the last event where the connection stays open", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        const { bytes, recorder } = makeWatch()
        const { millis, result } = yield* whileTimePasses(
          complete(driver, request("!say hello\n!fault linger", { recorder })),
          bytes("event: close"),
          100
        )
        assert.deepInclude(result, { failed: undefined, text: "hello", finish: "stop" })
        assert.isBelow(millis, timeLimits.silence)
        yield* server.until(isQuiet(server))
      }))

    itOnClient(
      "lose no half of a character that never came whole, within the length that they may have",
      () =>
        Effect.gen(function*() {
          const { driver } = yield* setUp
          const half = yield* complete(driver, request("!say ab\ud83d"))
          assert.deepInclude(half, { failed: undefined, text: "ab\ud83d", finish: "stop" })
          const clock = yield* Clock.Clock
          const budget = new RequestBudget({ ...defaultLimits, reply_chars: 2 }, clock)
          const cut = yield* complete(driver, request("!say ab\ud83d", { budget }))
          assert.deepInclude(cut, { failed: undefined, text: "ab", finish: "length" })
        })
    )

    itOnClient("accept events up to 16 MiB, and refuse longer ones", () =>
      Effect.gen(function*() {
        const { driver } = yield* setUp
        const overhead = 1024
        const outcome = yield* complete(driver, request(`!fault long-line bytes=${16 * 1024 * 1024 - overhead}`))
        assert.deepInclude(outcome, { failed: undefined, finish: "stop" })
        assert.isAtLeast(outcome.text.length, 16 * 1024 * 1024 - overhead)
        const { failed } = yield* complete(driver, request(`!fault long-line bytes=${16 * 1024 * 1024}`))
        assert.strictEqual(failed, "upstream_trouble")
      }))
  })

  describe.concurrent("replies that are cut off", () => {
    const faults: ReadonlyArray<FaultName> = ["cut-off", "reset-mid-stream", "no-status"]
    for (const fault of faults) {
      for (const restart of ["snapshot", "empty", "none"]) {
        itOnClient(`resume without a seam after ${fault}, continued with ${restart}`, () =>
          Effect.gen(function*() {
            const { driver, server } = yield* setUp
            const script = `!cut 1000 ${restart}\n!think Hm hm.\n!say one two three\n!fault ${fault} after=2 times=1`
            assert.deepInclude(yield* complete(driver, request(script)), {
              failed: undefined,
              reasoning: "Hm hm.",
              text: "one two three",
              finish: "stop"
            })
            assert.strictEqual(server.provider.report().calls.continue, 1)
          }))
      }
    }

    itOnClient("go on as long as each resume brings something", () =>
      Effect.gen(function*() {
        const { driver } = yield* setUp
        const script = "!say 1 2 3 4 5 6 7 8\n!fault cut-off after=1\n!fault cut-off call=continue after=1 times=6"
        assert.deepInclude(yield* complete(driver, request(script)), { failed: undefined, text: "1 2 3 4 5 6 7 8" })
      }))

    itOnClient("fail after three resumes that brought nothing", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        const outcome = yield* complete(driver, request("!say one two\n!fault cut-off after=1\n!fault nothing-new"))
        assert.deepInclude(outcome, { failed: "cut_off", text: "one", finish: undefined })
        assert.strictEqual(server.provider.report().calls.continue, 3)
      }))

    itOnClient("fail with the refusal where the upstream refuses to go on", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        server.provider.fail({ call: "continue", name: "rate-limited", retryAfter: 7 })
        const outcome = yield* complete(driver, request("!say one two\n!fault cut-off after=1"))
        assert.deepInclude(outcome, { failed: "rate_limited", text: "one" })
        assert.deepInclude(outcome.failure, { phase: "resume", retryAfter: 7 })
      }))

    itOnClient("try again where the way to the upstream fails", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        server.provider.fail({ call: "continue", name: "reset-before-headers" })
        server.provider.fail({ call: "continue", name: "html" })
        const outcome = yield* complete(driver, request("!say one two\n!fault cut-off after=1 times=1"))
        assert.deepInclude(outcome, { failed: undefined, text: "one two" })
      }))

    itOnClient("fail where a continued stream disagrees", () =>
      Effect.gen(function*() {
        const { driver } = yield* setUp
        const outcome = yield* complete(driver, request("!say one two three\n!cut 1\n!fault disagree"))
        assert.deepInclude(outcome, { failed: "disagreement", text: "one" })
      }))

    itOnClient("renew an expired token once", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        const renewed: Array<string | undefined> = []
        const credential = (fresh: string) => ({
          token: Effect.succeed("token"),
          renew: (stale: string | undefined) =>
            Effect.sync(() => {
              renewed.push(stale)
              return fresh
            })
        })
        server.provider.fail({ call: "continue", name: "token-expired", status: 401 })
        const script = "!say one two\n!cut 1"
        assert.deepInclude(yield* complete(driver, request(script, { credential: credential("token") })), {
          text: "one two",
          finish: "stop"
        })
        server.provider.fail({ call: "continue", name: "token-expired", times: 2 })
        assert.deepInclude(yield* complete(driver, request(script, { credential: credential("token") })), {
          text: "one",
          failed: "token_refused"
        })
        assert.deepStrictEqual(renewed, ["token", "token"])
      }))
  })

  describe.concurrent("failures", () => {
    interface Row {
      readonly call: CallName
      readonly fault: Fault
      readonly expected: Partial<Outcome>
      readonly facts?: Partial<UpstreamFailure>
    }
    const row = (call: CallName, fault: Fault, failed: Outcome["failed"], facts?: Partial<UpstreamFailure>): Row => ({
      call,
      fault,
      expected: { failed },
      ...(facts === undefined ? {} : { facts })
    })
    const rows: ReadonlyArray<Row> = [
      row("create", { name: "no-token" }, "token_refused", { phase: "session", refusal: "token" }),
      row("create", { name: "token-expired", status: 401 }, "token_refused", { refusal: "token", status: 401 }),
      row("create", { name: "html" }, "upstream_trouble", { kind: "malformed", status: 502 }),
      row("create", { name: "no-data" }, "upstream_trouble", { kind: "malformed" }),
      row("create", { name: "reset-before-headers" }, "unreachable"),
      row("create", { name: "hang-before-headers" }, "timed_out"),
      row("completion", { name: "token-invalid" }, "token_refused", { phase: "completion", refusal: "token" }),
      row("completion", { name: "rate-limited", status: 429, retryAfter: 3 }, "rate_limited", { retryAfter: 3 }),
      row("completion", { name: "rate-limited" }, "rate_limited", { refusal: "rate" }),
      row("completion", { name: "trouble", message: "down" }, "upstream_trouble", {
        refusal: "other",
        message: "down"
      }),
      row("completion", { name: "no-session" }, "session_gone"),
      row("completion", { name: "busy" }, "account_busy"),
      row("completion", { name: "too-long", status: 400 }, "prompt_too_long"),
      row("completion", { name: "refused" }, "upstream_trouble", { refusal: "other", message: "refused" }),
      row("completion", { name: "html" }, "upstream_trouble"),
      row("completion", { name: "empty" }, "upstream_trouble", { kind: "empty", phase: "completion" }),
      row("completion", { name: "broken-json" }, "upstream_trouble", { kind: "malformed" }),
      row("completion", { name: "not-a-stream" }, "upstream_trouble", { kind: "malformed" }),
      row("completion", { name: "wrong-content-type" }, "upstream_trouble", { kind: "malformed" }),
      row("completion", { name: "reset-before-headers" }, "unreachable", { phase: "completion" }),
      row("completion", { name: "hang-before-headers" }, "timed_out", { phase: "completion" }),
      row("completion", { name: "empty-stream" }, "cut_off", { phase: "stream" }),
      row("completion", { name: "reset-before-events" }, "cut_off"),
      row("completion", { name: "hang-before-events" }, "timed_out"),
      row("completion", { name: "hint", after: 0 }, "rate_limited", { reason: "rate_limit_reached" }),
      row("completion", { name: "toast", after: 0, reason: "input_exceeds_limit" }, "prompt_too_long"),
      row("completion", { name: "hint", after: 0, reason: "other", message: "No." }, "upstream_trouble", {
        message: "No."
      }),
      row("completion", { name: "content-filter", after: 0 }, "withdrawn")
    ]
    const midStream: ReadonlyArray<readonly [FaultName, Partial<Outcome>]> = [
      ["hang-mid-stream", { failed: "timed_out" }],
      ["broken-line", { failed: "upstream_trouble" }],
      ["content-filter", { failed: undefined, finish: "content_filter" }],
      ["timeout-status", { failed: "upstream_trouble" }],
      ["error-status", { failed: "upstream_trouble" }]
    ]
    for (const { call, expected, facts, fault } of rows) {
      itOnClient(
        `${call}: ${fault.name}${fault.status === undefined ? "" : ` ${fault.status}`}`,
        () =>
          Effect.gen(function*() {
            const { driver, server } = yield* setUp
            server.provider.fail({ call, ...fault })
            const script = "!say hello"
            const outcome = yield* fault.name.startsWith("hang")
              ? completeSilent(driver, server, fault.name, script)
              : complete(driver, request(script))
            assert.deepInclude(outcome, { text: "", finish: undefined, ...expected })
            if (facts !== undefined) assert.deepInclude(outcome.failure, facts)
            yield* server.until(isQuiet(server))
          })
      )
    }
    for (const [name, expected] of midStream) {
      itOnClient(`mid-stream: ${name}`, () =>
        Effect.gen(function*() {
          const { driver, server } = yield* setUp
          const script = `!say one two three\n!fault ${name} after=1`
          const outcome = yield* name.startsWith("hang")
            ? completeSilent(driver, server, name, script)
            : complete(driver, request(script))
          assert.deepInclude(outcome, { text: "one", ...expected })
          yield* server.until(isQuiet(server))
        }))
    }

    itOnClient("a hint after text ends the reply with its reason, without a resume", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        const outcome = yield* complete(driver, request("!say one two\n!fault hint after=1"))
        assert.deepInclude(outcome, { text: "one", failed: "rate_limited" })
        yield* server.until(isQuiet(server))
        assert.strictEqual(server.provider.report().calls.continue, 0)
      }))

    itOnClient("each call reports the same failures", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        const calls: ReadonlyArray<
          readonly [CallName, (driver: SessionDriver) => Effect.Effect<unknown, UpstreamFailure>]
        > = [
          ["login", (driver) => driver.capabilities.login({ email: "a", mobile: undefined, password: "p" })],
          ["current", (driver) => driver.verify("t")],
          ["fetch_page", (driver) => driver.capabilities.sessions.list("t", 3)],
          ["delete", (driver) => driver.capabilities.sessions.delete("t", "s")],
          ["delete_all", (driver) => driver.capabilities.sessions.deleteAll("t")]
        ]
        const expected: ReadonlyArray<readonly [FaultName, ReturnType<typeof facts>["class"]]> = [
          ["html", "upstream_trouble"],
          ["empty", "upstream_trouble"],
          ["broken-json", "upstream_trouble"],
          ["rate-limited", "rate_limited"],
          ["reset-before-headers", "unreachable"]
        ]
        for (const [call, run] of calls) {
          for (const [name, failed] of expected) {
            server.provider.fail({ call, name })
            assert.strictEqual((yield* failureOf(run(driver))).class, failed, `${call} ${name}`)
          }
        }
        server.provider.fail({ call: "login", name: "suspended" })
        const suspended = yield* failureOf(driver.capabilities.login({ email: "a", mobile: undefined, password: "p" }))
        assert.strictEqual(suspended.class, "account_suspended")
        yield* server.until(isQuiet(server))
      }))
  })

  describe.concurrent("callers that leave", () => {
    /** Starts a completion, waits until the server is where the test wants it, and leaves. */
    const leave = (server: ReferenceServer, driver: Driver, script: string, arrived: () => boolean) =>
      Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(complete(driver, request(script)))
        yield* server.until(arrived)
        yield* Fiber.interrupt(fiber)
        yield* server.until(isQuiet(server))
        return server.provider.report()
      })

    itOnClient("while the session is made", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        server.provider.fail({ call: "create", name: "hang-before-headers" })
        const { aborted, calls } = yield* leave(server, driver, "hi", () => server.provider.report().calls.create === 1)
        assert.deepStrictEqual([aborted, calls.completion], [1, 0])
      }))

    itOnClient("while the completion is being sent", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        server.provider.fail({ name: "hang-before-headers" })
        const arrived = () => server.provider.report().calls.completion === 1
        assert.strictEqual((yield* leave(server, driver, "hi", arrived)).aborted, 1)
      }))

    itOnClient("before the first event", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        server.provider.fail({ name: "hang-before-events" })
        const arrived = () => server.provider.report().calls.completion === 1
        assert.strictEqual((yield* leave(server, driver, "hi", arrived)).aborted, 1)
      }))

    itOnClient("in mid-stream, and the upstream receives a stop request", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        const seen = yield* Deferred.make<void>()
        const fiber = yield* Effect.forkChild(Effect.scoped(Effect.gen(function*() {
          const reply = yield* start(driver, request("!say one two\n!fault hang-mid-stream"))
          yield* Stream.runForEach(reply.events, () => Deferred.succeed(seen, undefined))
        })))
        yield* Deferred.await(seen)
        yield* Fiber.interrupt(fiber)
        yield* server.until(isQuiet(server))
        const { calls, requests } = server.provider.report()
        assert.strictEqual(calls.stop_stream, 1)
        const stop = requests.find(({ call }) => call === "stop_stream")
        assert.deepInclude(JSON.parse(stop?.body ?? "{}"), { message_id: 2 })
      }))

    itOnClient("without having read a thing", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        yield* Effect.scoped(start(driver, request("!say one two\n!fault hang-mid-stream")))
        yield* server.until(isQuiet(server))
        assert.strictEqual(server.provider.report().streams, 0)
      }))

    itOnClient("while somebody still reads, who gets no further round", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        const scope = yield* Scope.make()
        const reply = yield* Scope.provide(start(driver, request("!say one two\n!fault hang-mid-stream")), scope)
        const seen = yield* Deferred.make<void>()
        const reader = yield* Effect.forkChild(
          Stream.runForEach(reply.events, () => Deferred.succeed(seen, undefined))
        )
        yield* Deferred.await(seen)
        yield* Scope.close(scope, Exit.void)
        assert.isTrue(Exit.isFailure(yield* Fiber.await(reader)))
        yield* server.until(isQuiet(server))
        assert.strictEqual(server.provider.report().calls.continue, 0)
      }))

    itOnClient("while a continue is being sent", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        server.provider.fail({ call: "continue", name: "hang-before-headers" })
        const arrived = () => server.provider.report().calls.continue === 1
        const { calls } = yield* leave(server, driver, "!say one two\n!cut 1", arrived)
        assert.strictEqual(calls.stop_stream, 1)
      }))

    itOnClient("a reply that the driver itself gives up is stopped", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        yield* complete(
          driver,
          request("!say one two three\n!fault broken-line after=1\n!fault hang-mid-stream after=2")
        )
        assert.strictEqual(server.provider.report().calls.stop_stream, 1)
      }))

    itOnClient("a reply that has ended is not stopped", () =>
      Effect.gen(function*() {
        const { driver, server } = yield* setUp
        yield* complete(driver, request("!say one two"))
        assert.strictEqual(server.provider.report().calls.stop_stream, 0)
      }))
  })

  itOnClient("reports its session before anything else can fail", () =>
    Effect.gen(function*() {
      const { driver, server } = yield* setUp
      server.provider.fail({ name: "html" })
      const told: Array<string> = []
      const onSession = (id: string) => Effect.sync(() => void told.push(id))
      yield* complete(driver, request("hi", { onSession }))
      assert.deepStrictEqual(told, (yield* driver.capabilities.sessions.list("token", 5)).map(({ id }) => id))
    }))

  itOnClient("hands over each round exactly, refusals too, and never a token", () =>
    Effect.gen(function*() {
      const { driver, server } = yield* setUp
      const rounds: Array<{ label: string; body: string; status: number; bytes: string; closed: number }> = []
      const recorder = {
        round: ({ label, requestBody }: { readonly label: string; readonly requestBody: string }) => {
          const round = { label, body: requestBody, status: 0, bytes: "", closed: 0 }
          rounds.push(round)
          return {
            opened: (status: number) => void (round.status = status),
            bytes: (chunk: Uint8Array) => void (round.bytes += Buffer.from(chunk).toString("latin1")),
            closed: () => void round.closed++
          }
        }
      }
      const raw = ": hi\r\n\r\nevent: ready\r\ndata: {\"response_message_id\":2}\r\n\r\n" +
        "data: {\"v\":{\"response\":{\"message_id\":2,\"status\":\"FINISHED\",\"content\":\"ok\"}}}\r\n\r\n"
      server.provider.reply({ raw })
      yield* complete(driver, request("hi", { recorder }))
      yield* complete(driver, request("!say one two\n!cut 1", { recorder }))
      server.provider.fail({ name: "busy" })
      yield* complete(driver, request("hi", { recorder }))
      assert.deepStrictEqual(rounds.map(({ closed, label, status }) => [label, status, closed]), [
        ["completion", 200, 1],
        ["completion", 200, 1],
        ["continue", 200, 1],
        ["completion", 200, 1]
      ])
      assert.strictEqual(rounds[0]?.bytes, raw)
      assert.include(rounds[3]?.bytes, "\"biz_code\":6")
      assert.deepInclude(JSON.parse(rounds[2]?.body ?? "{}"), { message_id: 2, fallback_to_resume: true })
      assert.notInclude(JSON.stringify(rounds), "Bearer")
    }))
})

/** A provider without a network, whose one stream is `body`. */
const fakeProvider = (body: Stream.Stream<string>, stop: Effect.Effect<void> = Effect.void) => {
  const accepted = { code: 0, data: { biz_code: 0, biz_data: { id: "s" } } }
  const client = HttpClient.make((request) =>
    Effect.gen(function*() {
      if (request.url.endsWith("/stop_stream")) yield* stop
      const response = request.url.endsWith("/completion")
        ? HttpServerResponse.stream(Stream.encodeText(body), { contentType: "text/event-stream" })
        : HttpServerResponse.jsonUnsafe(accepted)
      return HttpServerResponse.toClientResponse(response, { request })
    })
  )
  return Effect.gen(function*() {
    const exchanges = yield* exchangesOf(client, yield* Deadlines, () => false)
    return makeSessionDriver(exchanges, {
      baseUrl: "http://provider",
      furtherModels: [],
      limits: { firstByte: 30_000, silence: 120_000 }
    })
  })
}

const ready = "event: ready\ndata: {\"response_message_id\":\"m\"}\n\n"
const said = (text: string, status: string) =>
  `data: {"v":{"response":{"status":"${status}","content":${JSON.stringify(text)}}}}\n\n`

describe("answers", () => {
  it.effect("have tokens of up to 8 KiB, ids of up to 256 characters, and 1 MiB at most", () =>
    Effect.gen(function*() {
      const answering = (data: unknown) =>
        Effect.gen(function*() {
          const client = HttpClient.make((request) =>
            Effect.succeed(HttpServerResponse.toClientResponse(
              HttpServerResponse.text(JSON.stringify({ code: 0, data: { biz_code: 0, biz_data: data } }), {
                contentType: "application/json"
              }),
              { request }
            ))
          )
          const exchanges = yield* exchangesOf(client, yield* Deadlines, () => false)
          return makeSessionDriver(exchanges, { baseUrl: "http://provider", furtherModels: [], limits: timeLimits })
        })
      const kindOf = (data: unknown, call: (driver: SessionDriver) => Effect.Effect<unknown, UpstreamFailure>) =>
        Effect.match(Effect.flatMap(answering(data), call), {
          onSuccess: (): string => "taken",
          onFailure: ({ kind }) => kind
        })
      const login = (length: number) =>
        kindOf(
          { user: { token: "t".repeat(length) } },
          (driver) => driver.capabilities.login({ email: "a", mobile: undefined, password: "p" })
        )
      assert.deepStrictEqual([yield* login(8192), yield* login(8193)], ["taken", "malformed"])
      const create = (length: number) =>
        kindOf({ id: "i".repeat(length) }, (driver) => driver.capabilities.sessions.create("t"))
      assert.deepStrictEqual([yield* create(256), yield* create(257)], ["taken", "malformed"])
      const overhead = JSON.stringify({ code: 0, data: { biz_code: 0, biz_data: { id: "" } } }).length
      const verify = (length: number) => kindOf({ id: "i".repeat(length - overhead) }, (driver) => driver.verify("t"))
      const most = 1024 * 1024
      assert.deepStrictEqual([yield* verify(most), yield* verify(most + 1)], ["taken", "malformed"])
    }).pipe(Effect.provide(Deadlines.layer)))
})

describe("time", () => {
  const unanswered = (restart: string) =>
    Effect.gen(function*() {
      const provider = new Provider({}, Date.now)
      const exchanges = yield* exchangesOf(makeClient(provider), yield* Deadlines, () => false)
      const driver = makeSessionDriver(exchanges, { baseUrl: "http://provider", furtherModels: [], limits: timeLimits })
      provider.fail({ call: "continue", name: "hang-before-headers" })
      const fiber = yield* Effect.forkChild(complete(driver, request(`!say one two three\n!cut 1 ${restart}`)))
      yield* TestClock.adjust("20 seconds")
      return yield* Fiber.join(fiber)
    }).pipe(Effect.provide(Deadlines.layer))

  it.effect("a continue that is not answered in time is tried again where the next shows the reply so far", () =>
    Effect.gen(function*() {
      assert.deepInclude(yield* unanswered("snapshot"), { text: "one two three", finish: "stop", failed: undefined })
    }))

  for (const restart of ["empty", "none"]) {
    it.effect(`a continue that is not answered in time fails the reply where the next starts with ${restart}`, () =>
      Effect.gen(function*() {
        assert.deepInclude(yield* unanswered(restart), { text: "one", finish: undefined, failed: "cut_off" })
      }))
  }

  it.effect("comments are life", () =>
    Effect.gen(function*() {
      const comment = Stream.drain(Stream.fromEffect(Effect.sleep("100 seconds"))).pipe(
        Stream.concat(Stream.succeed(": keep-alive\n\n"))
      )
      const body = Stream.succeed(ready).pipe(
        Stream.concat(comment),
        Stream.concat(comment),
        Stream.concat(Stream.succeed(said("ok", "FINISHED")))
      )
      const fiber = yield* Effect.forkChild(complete(yield* fakeProvider(body), request("hi")))
      yield* TestClock.adjust("200 seconds")
      assert.deepInclude(yield* Fiber.join(fiber), { text: "ok", finish: "stop", failed: undefined })
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("time without a reader does not count", () =>
    Effect.gen(function*() {
      const body = Stream.make(ready, said("a", "WIP"), said("ab", "FINISHED")).pipe(Stream.rechunk(1))
      const reply = yield* start(yield* fakeProvider(body), request("hi"))
      const slow = Stream.tap(reply.events, () => Effect.sleep("1 hour"))
      const fiber = yield* Effect.forkChild(Stream.runCollect(slow))
      yield* TestClock.adjust("1 day")
      const events = yield* Fiber.join(fiber)
      assert.strictEqual(events.at(-1)?._tag, "UpstreamFinish")
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("an upstream that does not hear of a stop is waited for two seconds at most", () =>
    Effect.gen(function*() {
      let stops = 0
      const stop = Effect.andThen(Effect.sync(() => stops++), Effect.never)
      const driver = yield* fakeProvider(Stream.concat(Stream.make(ready, said("x", "WIP")), Stream.never), stop)
      const scope = yield* Scope.make()
      const reply = yield* Scope.provide(start(driver, request("hi")), scope)
      yield* Stream.runHead(reply.events)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* TestClock.adjust("1999 millis")
      assert.strictEqual(stops, 1)
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(closing)))
    }).pipe(Effect.provide(Deadlines.layer)))
})
