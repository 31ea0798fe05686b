import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import {
  makeCredentialThrottle,
  missedInTenMinutes,
  mostSources,
  mostWaiting,
  notShared,
  sourceOf,
  wrongAMinute,
  wrongInTenMinutes
} from "../../src/accounts/CredentialThrottle.ts"
import { makeWallClock } from "../support/wallClock.ts"

const wrong = Effect.succeed(false)
const right = Effect.succeed(true)
const here = "192.0.2.1"

describe("the throttle of credentials", () => {
  it.effect("checks four credentials a second after 5 wrong ones in a minute, and one a second after 200 in ten minutes", () =>
    Effect.gen(function*() {
      const throttle = makeCredentialThrottle()
      for (let i = 0; i < wrongAMinute; i++) yield* throttle.check(here, wrong)
      let done = 0
      const flood = Effect.forkChild(
        Effect.forever(Effect.tap(throttle.check(here, wrong), () => Effect.sync(() => done++)))
      )
      const flooding = yield* flood
      yield* TestClock.adjust("0 millis")
      assert.strictEqual(done, 1)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(done, 41)
      yield* TestClock.adjust("38 seconds")
      assert.isAtLeast(done, wrongInTenMinutes - wrongAMinute - 10)
      yield* TestClock.adjust("5 seconds")
      const before = done
      yield* TestClock.adjust("100 seconds")
      assert.strictEqual(done - before, 100)
      yield* Fiber.interrupt(flooding)
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(yield* throttle.slowedFor(here), 0)
      assert.isTrue(yield* throttle.check(here, right))
    }))

  it.effect("throttles concurrent checks: each counts as wrong until it finishes", () =>
    Effect.gen(function*() {
      const throttle = makeCredentialThrottle()
      let running = 0
      const slow = Effect.andThen(Effect.sync(() => running++), Effect.as(Effect.sleep("10 seconds"), false))
      for (let i = 0; i < 40; i++) yield* Effect.forkChild(Effect.exit(throttle.check(here, slow)))
      yield* TestClock.adjust("0 millis")
      assert.strictEqual(running, wrongAMinute + 1)
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(running, wrongAMinute + 5)
    }))

  it.effect("a cancelled waiter gives its place to the next one, and waiters beyond the bound are rejected", () =>
    Effect.gen(function*() {
      const throttle = makeCredentialThrottle()
      for (let i = 0; i <= wrongAMinute; i++) yield* throttle.check(here, wrong)
      const waiting = []
      for (let i = 0; i < mostWaiting; i++) waiting.push(yield* Effect.forkChild(throttle.check(here, wrong)))
      yield* TestClock.adjust("0 millis")
      assert.strictEqual((yield* Effect.flip(throttle.check(here, right))).retryAfter, mostWaiting / 4)
      yield* Effect.forEach(waiting, Fiber.interrupt)
      const last = yield* Effect.forkChild(throttle.check(here, right))
      yield* TestClock.adjust("250 millis")
      assert.isTrue(yield* Fiber.join(last))
    }))

  it.effect("uses the monotonic clock, not the wall clock", () =>
    Effect.gen(function*() {
      const clock = makeWallClock(yield* Clock.Clock)
      const throttle = makeCredentialThrottle()
      yield* Effect.gen(function*() {
        for (let i = 0; i <= wrongAMinute; i++) yield* throttle.check(here, wrong)
        for (const offset of [3_600_000, -3_600_000]) {
          clock.offset = offset
          assert.strictEqual(yield* throttle.slowedFor(here), 60_000)
        }
        yield* TestClock.adjust("60 seconds")
        assert.strictEqual(yield* throttle.slowedFor(here), 0)
      }).pipe(Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("does not delay another address", () =>
    Effect.gen(function*() {
      const throttle = makeCredentialThrottle()
      for (let i = 0; i <= wrongAMinute; i++) yield* throttle.check(here, wrong)
      yield* Effect.forkChild(throttle.check(here, wrong))
      assert.isTrue(yield* throttle.check("192.0.2.2", right))
    }))

  it.effect("remembers a bounded number of addresses", () =>
    Effect.gen(function*() {
      const throttle = makeCredentialThrottle()
      for (let i = 0; i <= wrongAMinute; i++) yield* throttle.check(here, wrong)
      for (let i = 0; i < mostSources - 1; i++) yield* throttle.check(`address ${i}`, wrong)
      assert.isAbove(yield* throttle.slowedFor(here), 0)
      yield* throttle.check("one more", wrong)
      assert.strictEqual(yield* throttle.slowedFor(here), 0)
    }))

  it.effect("does not delay a credential that was recently right from the address, and limits the rate of lookups for others", () =>
    Effect.gen(function*() {
      const remembered = new Set<string>()
      let looks = 0
      const throttle = makeCredentialThrottle({
        nameOf: (address) => address,
        wrong: () => undefined,
        onWrong: () => undefined,
        right: (name, credential) => void remembered.add(`${name} ${credential}`),
        wasRight: (name, credential) => {
          looks++
          return remembered.has(`${name} ${credential}`)
        },
        knowsRight: (name) => [...remembered].some((each) => each.startsWith(name))
      })
      let checks = 0
      const guess = Effect.sync(() => {
        checks++
        return false
      })
      const guessing = (address: string) =>
        Effect.forkChild(
          Effect.forever(Effect.suspend(() =>
            Effect.catchTag(throttle.check(address, guess, `guess ${looks}`), "QueueFull", () => Effect.sleep(1))
          ))
        )
      assert.isTrue(yield* throttle.check(here, right, "password"))
      for (let i = 0; i < 100; i++) yield* guessing(here)
      yield* TestClock.adjust("10 seconds")
      assert.isAtMost(looks, 40 * 10 + 1)
      assert.isAtMost(checks, wrongAMinute + 4 * 10 + 1)
      // All are served in order of arrival, and none is rejected.
      const login = () => Effect.forkChild(throttle.check(here, right, "password"))
      const logins = yield* Effect.all(Array.from({ length: 20 }, login))
      yield* TestClock.adjust("4 seconds")
      for (const each of logins) assert.isTrue(yield* Fiber.join(each))
      // A continued flood slows only its own lookups. The right credential still passes.
      yield* TestClock.adjust("10 minutes")
      const before = looks
      yield* TestClock.adjust("100 seconds")
      assert.isAtMost(looks - before, missedInTenMinutes + 4 * 100 + 1)
      const late = yield* login()
      yield* TestClock.adjust("30 seconds")
      assert.isTrue(yield* Fiber.join(late))
    }))

  it.effect("admits a credential that was right from the address within 25 seconds, however many wrong ones come concurrently", () =>
    Effect.gen(function*() {
      const remembered = new Set<string>()
      const throttle = makeCredentialThrottle({
        ...notShared,
        right: (name, credential) => void remembered.add(`${name} ${credential}`),
        wasRight: (name, credential) => remembered.has(`${name} ${credential}`),
        knowsRight: () => true
      })
      assert.isTrue(yield* throttle.check(here, right, "password"))
      const guess = Effect.ignore(throttle.check(here, wrong, "guess"))
      const flood = (times: number) =>
        Effect.forEach(Array.from({ length: times }), () => Effect.forkChild(guess, { startImmediately: true }))
      const login = () => Effect.forkChild(throttle.check(here, right, "password"), { startImmediately: true })
      yield* flood(500)
      const first = yield* login()
      yield* TestClock.adjust("2500 millis")
      assert.isTrue(yield* Fiber.join(first))
      // After 2,000 misses lookups are ten times as slow.
      yield* flood(missedInTenMinutes)
      const late = yield* login()
      yield* TestClock.adjust("25 seconds")
      assert.isTrue(yield* Fiber.join(late))
    }))

  it.effect("looks up no credential for an address that never had a right one", () =>
    Effect.gen(function*() {
      const throttle = makeCredentialThrottle({
        nameOf: (address) => address,
        wrong: () => undefined,
        onWrong: () => undefined,
        right: () => undefined,
        wasRight: () => assert.fail("looked"),
        knowsRight: () => false
      })
      for (let i = 0; i <= wrongAMinute; i++) yield* throttle.check(here, wrong, `guess ${i}`)
      const guesses = yield* Effect.forkChild(throttle.check(here, wrong, "guess"))
      yield* TestClock.adjust("1 seconds")
      assert.isFalse(yield* Fiber.join(guesses))
    }))

  it("counts an IPv6 address by its /64", () => {
    const group = fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16))
    fc.assert(fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), group, (groups, other) => {
      const sibling = [...groups.slice(0, 7), other].join(":")
      assert.strictEqual(sourceOf(groups.join(":")), sourceOf(sibling))
      const stranger = [...groups.slice(0, 3), other, ...groups.slice(4)].join(":")
      assert.strictEqual(sourceOf(groups.join(":")) === sourceOf(stranger), groups[3] === other)
    }))
    assert.strictEqual(sourceOf("2001:db8::1"), sourceOf("2001:0db8:0:0:ffff::2"))
    assert.notStrictEqual(sourceOf("2001:db8::1"), sourceOf("2001:db8:0:1::1"))
    assert.strictEqual(sourceOf("::ffff:192.0.2.1"), here)
    assert.strictEqual(sourceOf("fe80::1%eth0"), sourceOf("fe80::2"))
    assert.strictEqual(sourceOf("unknown"), "unknown")
  })
})
