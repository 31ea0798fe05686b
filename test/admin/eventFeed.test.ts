/** Admin events by a clock that the test moves: their rate, what is sent again, and when the feed ends. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Accounts, anywhere } from "../../src/accounts/Accounts.ts"
import { eventFeed, type Topic, topics } from "../../src/admin/events/EventFeed.ts"
import { makeRequestStats } from "../../src/completion/RequestStats.ts"
import { Deadlines } from "../../src/config/clock/Deadlines.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { ConfigTransfer } from "../../src/config/ConfigTransfer.ts"
import type { RawConfig } from "../../src/config/json.ts"
import type { Role } from "../../src/config/schema.ts"
import { type GatewayError, gatewayError } from "../../src/domain/GatewayError.ts"
import { Draining } from "../../src/http/Draining.ts"
import { fixedUpstream } from "../../src/inProcess/driver.ts"
import { Requests } from "../../src/recordings/Requests.ts"
import { makeDriver } from "../../src/upstream/makeDriver.ts"
import { transferJson } from "../support/configServices.ts"

const source = { boot: "b00t", startedAt: 1_000, node: () => undefined }

const services = (config: RawConfig = {}) =>
  Layer.mergeAll(Accounts.layer, Requests.layer).pipe(
    Layer.provide(fixedUpstream(makeDriver({ complete: () => Effect.never }))),
    Layer.provide(Deadlines.layer),
    Layer.provideMerge(transferJson({
      accounts: [{ email: "a@x.org", password: "p" }, { email: "b@x.org", password: "p" }],
      runtime: { account_max_inflight: 1, account_max_queue: 5 },
      ...config
    }))
  )

/** The events of a text, without comments. */
const parse = (text: string) =>
  text.split("\n\n").filter((frame) => frame !== "" && !frame.startsWith(":")).map((frame) => {
    const [, id, event, data] = /^id: (\S+)\nevent: (\w+)\ndata: (.*)$/.exec(frame)!
    return { id: id!, event: event!, data: JSON.parse(data!) as Record<string, unknown> }
  })

interface Reading {
  readonly topics?: ReadonlyArray<Topic>
  readonly lastEventId?: string
  readonly role?: Role
  readonly holds?: () => boolean
  /** The id of the node; without one there is no shared store. */
  readonly node?: string
}

/** Opens a feed that the test pulls. */
const openFeed = Effect.fnUntraced(
  function*({ holds = () => true, lastEventId, node, role = "admin", topics: wanted = topics }: Reading = {}) {
    const scope = yield* Effect.scope
    const feed = yield* eventFeed(node === undefined ? source : { ...source, node: () => node }, {
      topics: new Set(wanted),
      lastEventId,
      operator: { holds: Effect.sync(holds), role }
    })
    const pull = yield* Stream.toPull(feed).pipe(Scope.provide(scope))
    return Effect.map(pull, (texts) => texts.join(""))
  }
)

interface Told {
  readonly event: string
  readonly data: Record<string, unknown>
}

/** Reads a feed continuously; `take` returns the events since its last call. */
const listen = Effect.fnUntraced(function*(reading: Reading = {}) {
  let text = ""
  let over = false
  const read = Effect.flatMap(openFeed(reading), (pull) =>
    Effect.forever(Effect.map(pull, (piece) => {
      text += piece
    })))
  yield* Effect.forkScoped(
    Effect.scoped(read).pipe(Effect.ensuring(Effect.sync(() => {
      over = true
    })))
  )
  yield* Effect.yieldNow
  return {
    isOver: () => over,
    lastId: () => parse(text).at(-1)?.id,
    all: () => text,
    take: Effect.gen(function*() {
      yield* TestClock.adjust(0)
      const told = parse(text).map(({ data, event }): Told => ({ event, data }))
      text = ""
      return told
    })
  }
})

const names = (told: ReadonlyArray<Told>) => told.map(({ event }) => event)

const lease = Effect.gen(function*() {
  const accounts = yield* Accounts
  const scope = yield* Scope.make()
  yield* accounts.lease({ _tag: "Managed", owner: "o", key: "k", target: undefined }, {
    ...anywhere,
    style: "chat"
  }).pipe(Scope.provide(scope))
  return Scope.close(scope, Exit.void)
})

const beginRequest = Effect.map(Requests, (requests) => {
  const stats = makeRequestStats(`request ${requests.changes()}`, 0)
  return requests.begin({
    facts: stats,
    key: "direct",
    head: () => ({ method: "POST", path: "/v1/chat/completions", headers: {} }),
    secret: "a-secret-of-a-caller"
  })!
})

describe("the feed of admin events", () => {
  it.effect("begins with hello and the state of pool, queue and configuration", () =>
    Effect.gen(function*() {
      const { take } = yield* listen()
      const told = yield* take
      assert.deepStrictEqual(names(told), ["hello", "pool", "queue", "config"])
      const [hello, pool, queue, config] = told.map(({ data }) => data)
      assert.deepInclude(hello, { started_at: 1_000, revision: config!["revision"] })
      assert.match(String(hello!["version"]), /^\d+\.\d+\.\d+/)
      assert.deepStrictEqual(pool, {
        total: 2,
        available: 2,
        in_use: 0,
        cooling: 0,
        out: 0,
        disabled: 0,
        failed_tests: 0,
        max_inflight_per_account: 1,
        global_max_inflight: 2,
        changed: [],
        more: false
      })
      assert.deepStrictEqual(queue, { waiting: 0, max_queue_size: 5, oldest_wait_ms: null, waiters: [] })
      const few = yield* listen({ topics: ["queue"] })
      assert.deepStrictEqual(names(yield* few.take), ["hello", "queue"])
    }).pipe(Effect.provide(services())))

  it.effect("begins with up to 100 accounts that are in use or out of rotation", () =>
    Effect.gen(function*() {
      const accounts = yield* Accounts
      const suspend = (identifier: string) =>
        Effect.flatMap(accounts.access(identifier), (access) => access.report("rate_limited", 3600))
      const firstPool = Effect.gen(function*() {
        const { take } = yield* listen({ topics: ["pool"] })
        const { data } = (yield* take).find(({ event }) => event === "pool")!
        const changed = data["changed"] as ReadonlyArray<Record<string, unknown>>
        const { cooling, more } = data
        return {
          cooling,
          more,
          named: changed.map((item) => `${item["identifier"]} ${item["health"]} ${item["in_use"]}`)
        }
      })
      // One account of each slice that is processed at once, and a disabled one.
      for (const number of [7, 1_150]) yield* suspend(`${number}@x.org`)
      yield* suspend("disabled@x.org")
      const release = yield* lease
      assert.deepInclude(yield* firstPool, {
        cooling: 2,
        named: ["0@x.org ready 1", "7@x.org cooling 0", "1150@x.org cooling 0"],
        more: false
      })
      for (let number = 100; number < 197; number++) yield* suspend(`${number}@x.org`)
      const full = yield* firstPool
      assert.lengthOf(full.named, 100)
      assert.deepInclude(full, { cooling: 99, more: false })
      yield* suspend("1000@x.org")
      const beyond = yield* firstPool
      assert.lengthOf(beyond.named, 100)
      assert.deepInclude(beyond, { cooling: 100, more: true })
      yield* release
    }).pipe(Effect.provide(services({
      accounts: [
        ...Array.from({ length: 1_200 }, (_, number) => ({ email: `${number}@x.org`, password: "p" })),
        { email: "disabled@x.org", password: "p", disabled: true }
      ]
    }))))

  it.effect("begins with accounts whose test failed, and says what accounts have done unless nodes share a store", () =>
    Effect.gen(function*() {
      const accounts = yield* Accounts
      yield* accounts.setTestStatus("b@x.org", "failed", "the reply was empty")
      const firstPool = Effect.fnUntraced(function*(reading: Reading) {
        const { take } = yield* listen({ ...reading, topics: ["pool"] })
        const { data } = (yield* take).find(({ event }) => event === "pool")!
        assert.strictEqual(data["failed_tests"], 1)
        const [item, ...others] = data["changed"] as ReadonlyArray<Record<string, unknown>>
        assert.deepStrictEqual(others, [])
        assert.deepInclude(item, { identifier: "b@x.org", test_status: "failed" })
        return item!
      })
      const alone = yield* firstPool({})
      assert.deepInclude(alone["last_test"], { success: false, message: "the reply was empty" })
      assert.strictEqual(alone["requests_hour"], 0)
      assert.deepInclude((yield* firstPool({ role: "viewer" }))["last_test"], { success: false, message: null })
      const shared = yield* firstPool({ node: "n1" })
      for (const name of ["last_test", "requests_hour", "last_used_at"]) assert.notProperty(shared, name)
    }).pipe(Effect.provide(services())))

  it.effect("sends changes in their newest state, at most four times a second", () =>
    Effect.gen(function*() {
      const { take } = yield* listen({ topics: ["pool"] })
      yield* take
      const release = yield* lease
      assert.deepStrictEqual(yield* take, [])
      for (let i = 0; i < 20; i++) yield* yield* lease
      yield* TestClock.adjust(249)
      assert.deepStrictEqual(yield* take, [])
      yield* TestClock.adjust(1)
      const [event, ...rest] = yield* take
      assert.deepStrictEqual(rest, [])
      assert.deepInclude(event?.data, { in_use: 1, available: 1, more: false })
      const changed = event!.data["changed"] as ReadonlyArray<Record<string, unknown>>
      assert.sameDeepMembers(changed.map(({ identifier, in_use }) => [identifier, in_use]), [["a@x.org", 1], [
        "b@x.org",
        0
      ]])
      yield* TestClock.adjust(1_000)
      assert.deepStrictEqual(yield* take, [])
      // After a pause a change is sent at once.
      yield* release
      const [freed] = yield* take
      assert.deepInclude(freed?.data, { in_use: 0 })
      const counts: Array<number> = []
      for (let second = 0; second < 3; second++) {
        for (let i = 0; i < 100; i++) {
          yield* yield* lease
          yield* TestClock.adjust(10)
        }
        counts.push((yield* take).length)
      }
      for (const count of counts) assert.isAtMost(count, 4)
    }).pipe(Effect.provide(services())))

  it.effect("sends changes of the queue and of the configuration", () =>
    Effect.gen(function*() {
      const store = yield* ConfigStore
      const { take } = yield* listen({ topics: ["queue", "config"] })
      yield* take
      const releases = [yield* lease, yield* lease]
      yield* TestClock.adjust(300)
      yield* Effect.forkScoped(lease)
      yield* Effect.yieldNow
      const [waiting] = yield* take
      assert.deepInclude(waiting, { event: "queue" })
      assert.deepInclude(waiting!.data, { waiting: 1, waiters: [{ age_ms: 0, style: "chat", account: null }] })
      yield* releases[0]!
      yield* TestClock.adjust(250)
      const [served] = yield* take
      assert.deepInclude(served!.data, { waiting: 0, oldest_wait_ms: null })
      yield* store.update((raw) => Effect.succeed({ ...raw, captures: { limit: 7 } }))
      const [config] = yield* take
      assert.deepStrictEqual(config, { event: "config", data: { revision: yield* (yield* ConfigTransfer).configHash } })
    }).pipe(Effect.provide(services())))

  it.effect("sends a comment after five seconds of silence", () =>
    Effect.gen(function*() {
      const { all, take } = yield* listen({ topics: ["requests"] })
      yield* take
      yield* TestClock.adjust(4_999)
      assert.strictEqual(all(), "")
      yield* TestClock.adjust(1)
      assert.strictEqual(all(), ": \n\n")
      yield* TestClock.adjust(5_000)
      assert.strictEqual(all(), ": \n\n: \n\n")
    }).pipe(Effect.provide(services())))

  it.effect("sends missed changes to a reader that reconnects, or a reset", () =>
    Effect.gen(function*() {
      const first = yield* listen({ topics: ["requests"] })
      const [a, b] = [yield* beginRequest, yield* beginRequest]
      yield* TestClock.adjust(0)
      const lastEventId = first.lastId()!
      assert.match(lastEventId, /^b00t\.\d+$/)
      a.ended()
      const c = yield* beginRequest
      const again = yield* listen({ topics: ["requests"], lastEventId })
      const [hello, missed, ...rest] = yield* again.take
      assert.deepEqual([hello?.event, missed?.event, rest], ["hello", "requests", []])
      const items = missed!.data["items"] as ReadonlyArray<Record<string, unknown>>
      assert.deepStrictEqual(items.map(({ outcome, request_id }) => [request_id, outcome]), [
        [c.facts.id, "open"],
        [a.facts.id, "cancelled"]
      ])
      const nothing = yield* listen({
        topics: ["requests"],
        lastEventId: again.lastId() ?? `b00t.${(yield* Requests).changes()}`
      })
      assert.deepStrictEqual(names(yield* nothing.take), ["hello"])
      for (const foreign of ["other.3", "nonsense", "b00t.x"]) {
        const { take } = yield* listen({ lastEventId: foreign })
        assert.deepStrictEqual(names(yield* take), ["hello", "reset", "pool", "queue", "config"])
      }
      b.ended()
      c.ended()
      ;(yield* Requests).clear()
      const gap = yield* listen({ topics: ["requests"], lastEventId })
      assert.deepStrictEqual(names(yield* gap.take), ["hello", "reset"])
    }).pipe(Effect.provide(services())))

  it.effect("keeps at most one round of events for a reader that stops reading", () =>
    Effect.gen(function*() {
      const pull = yield* openFeed({ topics: ["requests", "pool"] })
      yield* pull
      for (let i = 0; i < 1_000; i++) {
        const record = yield* beginRequest
        yield* yield* lease
        record.ended()
        yield* TestClock.adjust(100)
      }
      const text = yield* pull
      const told = parse(text)
      assert.sameMembers(told.map(({ event }) => event), ["requests", "pool"])
      const requests = told.find(({ event }) => event === "requests")!.data
      assert.lengthOf(requests["items"] as ReadonlyArray<unknown>, 200)
      assert.isTrue(requests["more"])
    }).pipe(Effect.provide(services())))

  it.effect("ends with session_ended within ten seconds after the credential expires", () =>
    Effect.gen(function*() {
      let holds = true
      const { isOver, take } = yield* listen({ topics: ["queue"], holds: () => holds })
      yield* take
      yield* TestClock.adjust(60_000)
      assert.isFalse(isOver())
      yield* take
      holds = false
      yield* TestClock.adjust(10_000)
      assert.deepStrictEqual((yield* take).at(-1), { event: "session_ended", data: {} })
      assert.isTrue(isOver())
    }).pipe(Effect.provide(services())))

  it.effect("ends immediately when the gateway drains, and when a change of the configuration ends the credential", () =>
    Effect.gen(function*() {
      const draining = yield* Deferred.make<GatewayError>()
      const drained = yield* listen({ topics: ["queue"] }).pipe(
        Effect.provideService(Draining, Deferred.await(draining))
      )
      let holds = true
      const ended = yield* listen({ topics: ["queue"], holds: () => holds })
      yield* TestClock.adjust(0)
      yield* Deferred.succeed(draining, gatewayError("shutting_down", "The gateway is shutting down"))
      yield* TestClock.adjust(0)
      assert.deepEqual([drained.isOver(), ended.isOver()], [true, false])
      holds = false
      yield* (yield* ConfigStore).update((raw) => Effect.succeed({ ...raw, captures: { limit: 9 } }))
      assert.deepStrictEqual((yield* ended.take).at(-1), { event: "session_ended", data: {} })
      assert.isTrue(ended.isOver())
    }).pipe(Effect.provide(services())))

  it.effect("disconnects a reader that stops reading once the credential has expired", () =>
    Effect.gen(function*() {
      let holds = true
      const reader = yield* Effect.forkScoped(
        Effect.scoped(Effect.andThen(openFeed({ holds: () => holds }), Effect.never))
      )
      yield* TestClock.adjust(5_000)
      assert.isUndefined(reader.pollUnsafe())
      holds = false
      yield* TestClock.adjust(6_000)
      assert.isDefined(reader.pollUnsafe())
    }).pipe(Effect.provide(services())))
})
