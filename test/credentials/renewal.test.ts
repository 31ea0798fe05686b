/** Each source of a credential at each event of its life: what a request gets, by the test's clock. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { hold, type Pool } from "../accounts/support.ts"
import { aws, bare, command, entra, file, google, makeBacking, poolOf, withWallAhead } from "./support.ts"

const factsOf = (pool: Pool, identifier: string) => Effect.map(pool.describe([identifier]), ([facts]) => facts!)

/** A pool of one account `a` whose source gives `t1`, with its lease's credential. */
const start = Effect.fnUntraced(function*(source: typeof file, refused: ReadonlySet<string> = new Set()) {
  const backing = makeBacking()
  backing.tokens.set("a", "t1")
  const { pool } = yield* poolOf(backing, [source.credential("a")], refused)
  const [identifier] = (yield* pool.status).available_accounts
  const { lease } = yield* hold(pool)
  return { ...backing, pool, identifier: identifier!, lease, credential: bare(lease.credential) }
})

/** Lets what runs in the background go on. */
const settle = Effect.forEach(Array.from({ length: 8 }), () => Effect.yieldNow, { discard: true })

describe.each([file, command, google, entra, aws])("a credential from $from", (source) => {
  it.effect("is asked for at the first request, not before", () =>
    Effect.gen(function*() {
      const { asked, credential, identifier, pool } = yield* start(source)
      assert.match(identifier, new RegExp(`^${source.from}:[0-9a-f]{16}$`))
      assert.deepStrictEqual(asked, [])
      assert.isUndefined((yield* factsOf(pool, identifier)).credential?.renewed)
      assert.strictEqual(yield* credential.token, "t1")
      assert.strictEqual(yield* credential.token, "t1")
      assert.deepStrictEqual(asked, ["a"])
    }))

  it.effect("is asked for once for all requests that wait for it", () =>
    Effect.gen(function*() {
      const { asked, credential } = yield* start(source)
      const tokens = yield* Effect.forEach(Array.from({ length: 500 }), () => credential.token, {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual([[...new Set(tokens)], asked], [["t1"], ["a"]])
    }))

  it.effect("that the upstream refuses is replaced once, however many requests report it", () =>
    Effect.gen(function*() {
      const { asked, credential, tokens } = yield* start(source)
      yield* credential.token
      tokens.set("a", "t2")
      const renewed = yield* Effect.forEach(Array.from({ length: 100 }), () => credential.renew("t1"), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual([[...new Set(renewed)], asked], [["t2"], ["a", "a"]])
    }))

  it.effect("takes the account out where the source still has the refused token, until the upstream accepts it", () =>
    Effect.gen(function*() {
      const refused = new Set(["t1"])
      const { credential, identifier, lease, pool } = yield* start(source, refused)
      yield* credential.token
      const failure = yield* Effect.flip(credential.renew("t1"))
      assert.deepInclude(failure, { refusal: "source" })
      yield* lease.report("refused_login", undefined)
      assert.deepInclude(yield* factsOf(pool, identifier), {
        health: "out",
        reason: `its credential failed: ${source.from}: it still has the token that the upstream refused`
      })
      yield* TestClock.adjust("80 seconds")
      assert.strictEqual((yield* factsOf(pool, identifier)).health, "out")
      refused.clear()
      yield* TestClock.adjust("200 seconds")
      assert.strictEqual((yield* factsOf(pool, identifier)).health, "ready")
    }))

  it.effect("takes the account out with the source and its step where there is no first token", () =>
    Effect.gen(function*() {
      const { credential, identifier, pool, tokens } = yield* start(source)
      tokens.set("a", undefined)
      yield* Effect.flip(credential.token)
      const facts = yield* factsOf(pool, identifier)
      assert.strictEqual(facts.health, "out")
      assert.match(facts.reason ?? "", source.failure)
      assert.isDefined(facts.credential?.failure)
      tokens.set("a", "t2")
      yield* TestClock.adjust("80 seconds")
      const back = yield* factsOf(pool, identifier)
      assert.deepInclude(back, { health: "ready", reason: undefined })
      assert.isUndefined(back.credential?.failure)
      assert.strictEqual(yield* credential.token, "t2")
    }))

  it.effect("is not kept over a restart", () =>
    Effect.gen(function*() {
      const { credential } = yield* start(source)
      yield* credential.token
      const again = yield* start(source)
      assert.strictEqual(yield* again.credential.token, "t1")
      assert.deepStrictEqual(again.asked, ["a"])
    }))

  it.effect("is never the other account's, while both renew", () =>
    Effect.gen(function*() {
      const backing = makeBacking()
      backing.tokens.set("a", "a1").set("b", "b1")
      const { pool } = yield* poolOf(backing, [source.credential("a"), source.credential("b")])
      const leases = yield* Effect.forEach([1, 2], () => hold(pool))
      const [one, two] = leases.map(({ lease }) => bare(lease.credential))
      const both = () => Effect.all([one!.token, two!.token], { concurrency: 2 })
      assert.sameMembers(yield* both(), ["a1", "b1"])
      const isFirst = (yield* one!.token) === "a1"
      const [a, b] = isFirst ? [one!, two!] : [two!, one!]
      for (let turn = 2; turn < 6; turn++) {
        backing.tokens.set("a", `a${turn}`).set("b", `b${turn}`)
        const renewed = yield* Effect.all([a.renew(`a${turn - 1}`), b.renew(`b${turn - 1}`)], { concurrency: 2 })
        assert.deepStrictEqual(renewed, [`a${turn}`, `b${turn}`])
      }
    }))
})

describe("a token in a file", () => {
  it.effect("is read again in the background, and replaced where the file has changed", () =>
    Effect.gen(function*() {
      const { asked, credential, identifier, pool, tokens } = yield* start(file)
      yield* credential.token
      const { renewed } = (yield* factsOf(pool, identifier)).credential!
      yield* TestClock.adjust("4 seconds")
      yield* credential.token
      yield* settle
      assert.lengthOf(asked, 1)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* credential.token, "t1")
      yield* settle
      assert.lengthOf(asked, 2)
      assert.strictEqual((yield* factsOf(pool, identifier)).credential?.renewed, renewed)
      assert.deepInclude(yield* pool.metrics, { logins: 1, refreshes: 0 })
      tokens.set("a", "t2")
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* credential.token, "t1")
      yield* settle
      assert.strictEqual(yield* credential.token, "t2")
      assert.strictEqual((yield* factsOf(pool, identifier)).credential?.renewed, (renewed ?? 0) + 10_000)
      // A file that has gone leaves the token that it had.
      tokens.set("a", undefined)
      yield* TestClock.adjust("5 seconds")
      yield* credential.token
      yield* settle
      assert.strictEqual(yield* credential.token, "t2")
      const facts = yield* factsOf(pool, identifier)
      assert.strictEqual(facts.health, "ready")
      assert.include(facts.credential?.failure?.message, "the file cannot be read: missing")
    }))

  it.effect.each(["", "two\nlines", "not a token", "tök"])(
    "is refused where it is %j",
    (text) =>
      Effect.gen(function*() {
        const { credential, tokens } = yield* start(file)
        tokens.set("a", text)
        assert.strictEqual((yield* Effect.flip(credential.token)).message, "file: the file has no token of one line")
      })
  )
})

describe.each([command, google, entra, aws])("a token with an end, from $from", (source) => {
  const life = source.life!

  it.effect("is renewed at three quarters of its life, off the path of requests", () =>
    Effect.gen(function*() {
      const { asked, credential, identifier, pool, tokens } = yield* start(source)
      yield* credential.token
      const { expires = 0, renewed = 0 } = (yield* factsOf(pool, identifier)).credential!
      assert.strictEqual(expires - renewed, life)
      tokens.set("a", "t2")
      yield* TestClock.adjust(life * 0.69)
      assert.strictEqual(yield* credential.token, "t1")
      yield* settle
      assert.lengthOf(asked, 1)
      yield* TestClock.adjust(life * 0.12)
      assert.strictEqual(yield* credential.token, "t1")
      yield* settle
      assert.strictEqual(yield* credential.token, "t2")
      assert.lengthOf(asked, 2)
      assert.deepInclude(yield* pool.metrics, { logins: 1, refreshes: 1, loginFailures: 0 })
    }))

  it.effect("serves for another life where its source gives the same token again, which is no renewal", () =>
    Effect.gen(function*() {
      const { asked, credential, identifier, pool } = yield* start(source)
      yield* credential.token
      const { expires = 0, renewed } = (yield* factsOf(pool, identifier)).credential!
      yield* TestClock.adjust(life * 0.9)
      yield* credential.token
      yield* settle
      assert.lengthOf(asked, 2)
      const after = (yield* factsOf(pool, identifier)).credential!
      assert.deepStrictEqual([after.expires, after.renewed], [expires + life * 0.9, renewed])
      yield* TestClock.adjust(life * 0.5)
      assert.strictEqual(yield* credential.token, "t1")
      assert.deepInclude(yield* pool.metrics, { logins: 1, refreshes: 0 })
    }))

  it.effect("serves until its end while its renewal fails, which is tried again; then the account is out", () =>
    Effect.gen(function*() {
      const { asked, credential, identifier, pool, tokens } = yield* start(source)
      yield* credential.token
      tokens.set("a", undefined)
      yield* TestClock.adjust(life * 0.81)
      for (let turn = 0; turn < 5; turn++) {
        assert.strictEqual(yield* credential.token, "t1")
        yield* settle
      }
      assert.lengthOf(asked, 2)
      const during = yield* factsOf(pool, identifier)
      assert.deepInclude(during, { health: "ready", reason: undefined })
      assert.isDefined(during.credential?.failure)
      yield* TestClock.adjust(life / 16)
      assert.strictEqual(yield* credential.token, "t1")
      yield* settle
      assert.lengthOf(asked, 3)
      yield* TestClock.adjust(life * 0.19)
      assert.include((yield* Effect.flip(credential.token)).message, source.from)
      const facts = yield* factsOf(pool, identifier)
      assert.deepInclude(facts, { health: "out", hasToken: false })
      assert.match(facts.reason ?? "", source.failure)
    }))

  it.effect("is renewed before the first request after a computer's sleep", () => {
    let slept = 0
    return withWallAhead(() => slept)(Effect.gen(function*() {
      const { asked, credential, tokens } = yield* start(source)
      yield* credential.token
      tokens.set("a", "t2")
      slept = life
      assert.strictEqual(yield* credential.token, "t2")
      assert.lengthOf(asked, 2)
    }))
  })

  it.effect.each([-600_000, 600_000])(
    "has the same life by a clock that is wrong by %s ms",
    (wrong) =>
      withWallAhead(() => wrong)(Effect.gen(function*() {
        const { asked, credential } = yield* start(source)
        yield* credential.token
        yield* TestClock.adjust(life * 0.69)
        yield* credential.token
        yield* settle
        assert.lengthOf(asked, 1)
        yield* TestClock.adjust(life * 0.31)
        yield* credential.token
        assert.lengthOf(asked, 2)
      }))
  )
})

it.effect("a token of a program without `for` serves until the upstream refuses it", () =>
  Effect.gen(function*() {
    const { asked, credential, tokens } = yield* start({
      ...command,
      credential: (name) => ({ from: "command", run: ["/bin/token", name] })
    })
    yield* credential.token
    tokens.set("a", "t2")
    yield* TestClock.adjust("5 hours")
    assert.strictEqual(yield* credential.token, "t1")
    assert.lengthOf(asked, 1)
    assert.strictEqual(yield* credential.renew("t1"), "t2")
  }))
