import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { type FaultName, faultNames, faultTable } from "../../src/testing/provider/faults.ts"
import { make } from "../../src/testing/Reference.ts"
import { ask, completeIn, createSession, envelopeOf, eventsOf, type Exchange, goOn, send } from "./client.ts"

const setUp = Effect.gen(function*() {
  const reference = yield* make()
  return { reference, url: yield* reference.listen() }
})

const said = "!say one twö three"

const text = (exchange: Exchange): string => exchange.body.toString()

const envelope = (code: number, bizCode?: number) => (exchange: Exchange) => {
  assert.strictEqual(exchange.status, 200)
  assert.match(String(exchange.headers["content-type"]), /^application\/json/)
  assert.strictEqual(envelopeOf(exchange).code, code)
  assert.strictEqual(bizCode, envelopeOf(exchange).data?.biz_code)
}

/** The reply is the one without a fault but for how it is written. */
const sameEvents = (undo: (body: string) => string, mark: RegExp) => (exchange: Exchange, plain: Exchange) => {
  assert.match(text(exchange), mark)
  assert.strictEqual(undo(text(exchange)), text(plain))
  assert.strictEqual(exchange.ended, "whole")
}

const names = (exchange: Exchange) => eventsOf(exchange).map(({ event }) => event)

const isEmptyStream = (exchange: Exchange) => {
  assert.strictEqual(exchange.status, 200)
  assert.match(String(exchange.headers["content-type"]), /^text\/event-stream/)
  assert.strictEqual(exchange.body.length, 0)
}

const givesUp = (event: string) => (exchange: Exchange) => {
  const seen = eventsOf(exchange)
  assert.deepStrictEqual(seen.map((each) => each.event), ["ready", event, "close"])
  assert.deepInclude(JSON.parse(seen[1]!.data), { type: "error", finish_reason: "rate_limit_reached" })
}

const endsWith = (status: string) => (exchange: Exchange) => {
  const seen = eventsOf(exchange)
  assert.deepStrictEqual(JSON.parse(seen.at(-2)!.data), { p: "response/status", o: "SET", v: status })
  assert.notInclude(text(exchange), "\"one\"")
}

const stopsAfter = (ended: Exchange["ended"]) => (exchange: Exchange) => {
  assert.include(text(exchange), "\"one\"")
  assert.notInclude(text(exchange), "two")
  assert.notInclude(text(exchange), "FINISHED")
  assert.strictEqual(exchange.ended, ended)
}

/** What each fault does to a completion that would say "one twö three"; those that hang end when this side leaves. */
const expected: Readonly<Record<FaultName, (exchange: Exchange, plain: Exchange) => void>> = {
  "no-token": envelope(40001),
  "token-invalid": envelope(40002),
  "token-expired": envelope(40003),
  "rate-limited": envelope(42900),
  "trouble": envelope(50000),
  "wrong-credentials": envelope(0, 2),
  "suspended": envelope(0, 5),
  "no-session": envelope(0, 3),
  "busy": envelope(0, 6),
  "too-long": envelope(0, 9),
  "refused": envelope(0, 1),
  "no-data": envelope(0),
  "not-a-stream": envelope(0, 0),
  "html": (exchange) => {
    assert.strictEqual(exchange.status, 502)
    assert.match(String(exchange.headers["content-type"]), /^text\/html/)
    assert.match(text(exchange), /^<!doctype html>/)
  },
  "empty": (exchange) => {
    assert.strictEqual(exchange.status, 200)
    assert.strictEqual(exchange.body.length, 0)
  },
  "broken-json": (exchange) => {
    assert.throws(() => JSON.parse(text(exchange)))
    assert.strictEqual(exchange.ended, "whole")
  },
  "reset-before-headers": (exchange) => {
    assert.strictEqual(exchange.status, undefined)
    assert.strictEqual(exchange.ended, "broken")
  },
  "hang-before-headers": (exchange) => {
    assert.strictEqual(exchange.status, undefined)
    assert.strictEqual(exchange.ended, "left")
  },
  "slow": (exchange, plain) => assert.strictEqual(text(exchange), text(plain)),
  "wrong-content-type": (exchange, plain) => {
    assert.strictEqual(exchange.headers["content-type"], "text/plain")
    assert.strictEqual(text(exchange), text(plain))
  },
  "long-line": (exchange) => {
    const longest = Math.max(...text(exchange).split("\n").map((line) => line.length))
    assert.isAtLeast(longest, 8 * 1024 * 1024)
    assert.include(text(exchange), "FINISHED")
  },
  "empty-fragment": (exchange) => {
    assert.include(eventsOf(exchange)[1]!.data, "\"type\":\"RESPONSE\",\"content\":\"\"")
    assert.include(text(exchange), "{\"p\":\"response/fragments/-1/content\",\"o\":\"APPEND\",\"v\":\"one\"}")
  },
  "unknown-parts": (exchange) => {
    assert.include(text(exchange), "\"type\":\"SOMETHING_NEW\"")
    assert.include(text(exchange), "\"p\":\"response/mood\"")
  },
  "endless-incomplete": (exchange) => {
    assert.strictEqual(JSON.parse(eventsOf(exchange).at(-2)!.data).v, "INCOMPLETE")
  },
  "empty-stream": (exchange) => {
    isEmptyStream(exchange)
    assert.strictEqual(exchange.ended, "whole")
  },
  "reset-before-events": (exchange) => {
    isEmptyStream(exchange)
    assert.strictEqual(exchange.ended, "broken")
  },
  "hang-before-events": (exchange) => {
    isEmptyStream(exchange)
    assert.strictEqual(exchange.ended, "left")
  },
  "reset-mid-stream": stopsAfter("broken"),
  "hang-mid-stream": stopsAfter("left"),
  "cut-off": stopsAfter("whole"),
  "no-status": (exchange, plain) => {
    assert.isTrue(text(plain).startsWith(text(exchange)))
    assert.include(text(exchange), "three")
    assert.notInclude(text(exchange), "FINISHED")
    assert.strictEqual(exchange.ended, "whole")
  },
  "broken-line": (exchange, plain) => {
    const seen = eventsOf(exchange)
    assert.throws(() => JSON.parse(seen[2]!.data))
    assert.deepStrictEqual(seen.toSpliced(2, 1), [...eventsOf(plain)])
  },
  "hint": givesUp("hint"),
  "toast": givesUp("toast"),
  "content-filter": (exchange) => {
    endsWith("CONTENT_FILTER")(exchange)
    assert.include(text(exchange), "TEMPLATE_RESPONSE")
  },
  "timeout-status": endsWith("TIMEOUT"),
  "error-status": endsWith("ERROR"),
  "no-ready": (exchange, plain) =>
    assert.deepStrictEqual([...eventsOf(exchange)], eventsOf(plain).filter(({ event }) => event !== "ready")),
  "no-close": (exchange, plain) =>
    assert.deepStrictEqual([...eventsOf(exchange)], eventsOf(plain).filter(({ event }) => event !== "close")),
  "done": (exchange, plain) => assert.strictEqual(text(exchange), `${text(plain)}data: [DONE]\n\n`),
  "done-only": (exchange) => {
    assert.strictEqual(eventsOf(exchange).at(-1)?.data, "[DONE]")
    assert.notInclude(names(exchange), "close")
  },
  "linger": (exchange, plain) => {
    assert.strictEqual(text(exchange), text(plain))
    assert.strictEqual(exchange.ended, "left")
  },
  "crlf": sameEvents((body) => body.replaceAll("\r\n", "\n"), /^(?:[^\r\n]*\r\n)+$/),
  "cr": sameEvents((body) => body.replaceAll("\r", "\n"), /^[^\n]+$/),
  "comments": sameEvents((body) => body.replaceAll(": keep-alive\n\n", ""), /^: keep-alive\n\nevent: ready/),
  "retry-lines": sameEvents((body) => body.replaceAll(/id: \d+\nretry: 3000\n/g, ""), /^id: 0\nretry: 3000\n/),
  "multi-line-data": sameEvents((body) => body.replaceAll("data: {\ndata: ", "data: {"), /data: \{\ndata: /),
  "no-space": sameEvents((body) => body.replaceAll(/^(data|event):/gm, "$1: "), /^event:ready\ndata:\{/),
  "chatter": (exchange, plain) => {
    const known = [undefined, "ready", "close"]
    assert.includeMembers([...names(exchange)], ["title", "update_session", "something_new", "finish"])
    assert.deepStrictEqual(eventsOf(exchange).filter(({ event }) => known.includes(event)), [...eventsOf(plain)])
  },
  "trickle": (exchange, plain) => {
    assert.strictEqual(text(exchange), text(plain))
    assert.isAbove(exchange.chunks.length, text(plain).length / 4)
  },
  "split-utf8": (exchange, plain) => {
    assert.strictEqual(text(exchange), text(plain))
    assert.isTrue(exchange.chunks.some((chunk) => (chunk[0]! & 0xc0) === 0x80))
  },
  "disagree": () => {},
  "nothing-new": () => {},
  "incomplete-nothing": () => {}
}

const ofContinue: ReadonlySet<FaultName> = new Set(["disagree", "nothing-new", "incomplete-nothing"])
const atOnce = faultNames.filter((name) => !ofContinue.has(name))

const leaving = (fault: FaultName, plain: Exchange) => {
  switch (fault) {
    case "hang-before-events":
      return { leaveWhen: () => true }
    case "hang-mid-stream":
      return { leaveWhen: (body: string) => body.includes("one") && body.endsWith("\n\n") }
    case "linger":
      return { leaveWhen: (body: string) => body === plain.body.toString() }
    default:
      return {}
  }
}

/** Meets a completion with a fault that its script asks for, or that a test has ordered. */
const meet = Effect.fnUntraced(function*(
  { reference, url }: Effect.Success<typeof setUp>,
  fault: FaultName,
  ordered: boolean,
  plain: Exchange
) {
  const token = `${fault} ${ordered}`
  const session = yield* createSession(url, token)
  const soon = fault === "slow" ? { millis: 1 } : {}
  if (ordered) yield* reference.fail({ name: fault, account: token, ...soon })
  const controller = new AbortController()
  const script = ordered ? said : `!fault ${fault} ${fault === "slow" ? "ms=1" : ""}\n${said}`
  const asking = yield* completeIn(url, session, script, {
    token,
    signal: controller.signal,
    ...leaving(fault, plain)
  }).pipe(Effect.forkChild)
  if (fault === "hang-before-headers") {
    // Not even a head comes: this side leaves once the upstream has the request.
    yield* reference.until(({ requests }) =>
      requests.some(({ account, faults }) => account === token && faults.includes(fault))
    )
    controller.abort()
  }
  return yield* Fiber.join(asking)
})

describe("a fault", () => {
  it.live("does what its name says, over a real socket, whether a script or a test asks for it", () =>
    Effect.gen(function*() {
      const upstream = yield* setUp
      const plain = yield* ask(upstream.url, said)
      for (const fault of atOnce) {
        for (const ordered of [false, true]) {
          const exchange = yield* meet(upstream, fault, ordered, plain)
          const context = `${fault}, ${ordered ? "ordered" : "scripted"}`
          assert.doesNotThrow(() => expected[fault](exchange, plain), undefined, undefined, context)
        }
      }
      const report = yield* upstream.reference.until(({ open }) => open === 0)
      assert.strictEqual(report.streams, 0)
      const outcome = (name: string) =>
        new Set(report.requests.flatMap(({ faults, outcome }) => outcome === name ? faults : []))
      assert.sameMembers([...outcome("aborted")], [
        "hang-before-headers",
        "hang-before-events",
        "hang-mid-stream",
        "linger"
      ])
      assert.sameMembers([...outcome("broken")], ["reset-before-headers", "reset-before-events", "reset-mid-stream"])
    }))

  it.live("takes the numbers and words that it is given", () =>
    Effect.gen(function*() {
      const { url } = yield* setUp
      const limited = yield* ask(url, "!fault rate-limited status=429 retry_after=7 message=\"slow down\"")
      assert.strictEqual(limited.status, 429)
      assert.strictEqual(limited.headers["retry-after"], "7")
      assert.strictEqual(envelopeOf(limited).msg, "slow down")
      assert.strictEqual((yield* ask(url, "!fault token-expired status=401")).status, 401)
      assert.strictEqual(envelopeOf(yield* ask(url, "!fault trouble code=123")).code, 123)
      const refused = yield* ask(url, "!fault refused biz_code=77 status=400")
      assert.strictEqual(refused.status, 400)
      assert.strictEqual(envelopeOf(refused).data.biz_code, 77)
      const hint = yield* ask(url, `${said}\n!fault hint after=2 reason=input_exceeds_limit`)
      assert.include(text(hint), "tw")
      assert.include(text(hint), "input_exceeds_limit")
    }))

  it.live("stands where it is written in the script", () =>
    Effect.gen(function*() {
      const { url } = yield* setUp
      const exchange = yield* ask(url, "!say [\"one\",\"two\"]\n!fault cut-off\n!say [\"three\"]")
      assert.include(text(exchange), "two")
      assert.notInclude(text(exchange), "three")
    }))

  it.live("happens as often as ordered, to the ordered calls and accounts", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp
      yield* reference.fail({ name: "busy", account: "a", times: 2 })
      yield* reference.fail({ name: "trouble", call: "create", containing: "chat", account: "b" })
      const bizCodes = (token: string) =>
        Effect.map(ask(url, said, { token }), (exchange) => text(exchange).includes("\"biz_code\":6"))
      assert.isFalse(yield* bizCodes("c"))
      assert.isTrue(yield* bizCodes("a"))
      assert.isTrue(yield* bizCodes("a"))
      assert.isFalse(yield* bizCodes("a"))
      const create = () => send(url, "/api/v0/chat_session/create", { token: "b", body: { agent: "chat" } })
      assert.strictEqual(envelopeOf(yield* create()).code, 50000)
      assert.strictEqual(envelopeOf(yield* create()).code, 0)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(reference.fail({ name: "hint", call: "login" }))))
    }))

  it.live("happens to the first requests of a script where that is asked for", () =>
    Effect.gen(function*() {
      const { url } = yield* setUp
      const refusals = yield* Effect.forEach([1, 2, 3], () =>
        Effect.map(ask(url, `!fault busy times=2\n${said}`), (exchange) => !text(exchange).includes("ready")))
      assert.deepStrictEqual(refusals, [true, true, false])
    }))

  it("is explained by name", () => {
    assert.deepStrictEqual(faultTable.map(({ name }) => name), [...faultNames])
  })
})

describe("a continued stream", () => {
  const started = (url: string, script: string) =>
    Effect.gen(function*() {
      const session = yield* createSession(url)
      return { session, first: yield* completeIn(url, session, script) }
    })

  const snapshotOf = (exchange: Exchange): string => eventsOf(exchange)[1]!.data

  it.live("starts with a snapshot, an empty one or none, and continues to the end", () =>
    Effect.gen(function*() {
      const { url } = yield* setUp
      for (const kind of ["snapshot", "empty", "none"]) {
        const { first, session } = yield* started(url, `!say ["a","b","c","d","e"]\n!cut 2 ${kind}`)
        assert.include(text(first), "\"v\":\"INCOMPLETE\"")
        const second = yield* goOn(url, session)
        const third = yield* goOn(url, session)
        assert.include(text(second), "INCOMPLETE")
        assert.include(text(third), "FINISHED")
        const start = snapshotOf(second)
        if (kind === "snapshot") assert.include(start, "\"content\":\"abc\"")
        if (kind === "empty") assert.include(start, "\"fragments\":[]")
        if (kind === "none") {
          assert.strictEqual(start, "{\"p\":\"response/fragments/-1/content\",\"o\":\"APPEND\",\"v\":\"c\"}")
        }
        // What is finished can be asked for again.
        assert.include(text(yield* goOn(url, session)), "FINISHED")
      }
    }))

  it.live("holds what had left when the connection broke", () =>
    Effect.gen(function*() {
      const { url } = yield* setUp
      const { first, session } = yield* started(url, "!say [\"a\",\"b\",\"c\"]\n!fault reset-mid-stream after=2")
      assert.strictEqual(first.ended, "broken")
      const second = yield* goOn(url, session)
      assert.include(snapshotOf(second), "\"content\":\"abc\"")
      assert.include(text(second), "FINISHED")
    }))

  it.live("misbehaves on demand", () =>
    Effect.gen(function*() {
      const { url } = yield* setUp
      const continued = (fault: string) =>
        Effect.flatMap(
          started(url, `!say ["a","b","c"]\n!cut 1\n!fault ${fault}`),
          ({ session }) => goOn(url, session)
        )
      assert.include(snapshotOf(yield* continued("disagree")), "\"content\":\"No. ab\"")
      const nothing = yield* continued("nothing-new")
      assert.lengthOf(eventsOf(nothing), 2)
      assert.include(snapshotOf(nothing), "\"content\":\"a\"")
      const incomplete = yield* continued("incomplete-nothing")
      assert.include(snapshotOf(incomplete), "\"content\":\"a\"")
      assert.include(text(incomplete), "INCOMPLETE")
      assert.strictEqual(envelopeOf(yield* continued("busy call=continue")).data.biz_code, 6)
      assert.strictEqual((yield* continued("reset-before-headers call=continue")).ended, "broken")
    }))

  it.live("comes in order for as long as the reply is endless", () =>
    Effect.gen(function*() {
      const { url } = yield* setUp
      const { session } = yield* started(url, "!fault endless-incomplete")
      for (let i = 0; i < 20; i++) assert.include(text(yield* goOn(url, session)), "INCOMPLETE")
    }))
})
