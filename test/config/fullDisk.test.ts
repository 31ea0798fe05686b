/** Changes and logouts while the disk is full, and waits for a lock that another process holds. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { CanLeave } from "../../src/config/clock/waiting.ts"
import { loadEndedLogins } from "../../src/config/EndedLogins.ts"
import { makeMemoryDisk } from "./memoryDisk.ts"
import { addKey, collectLogs, NodeServices, startStore } from "./support.ts"

const quiet = Layer.merge(NodeServices.layer, collectLogs([]))

const path = "/folder/config.json"
const lock = `${path}.lock`

/** A store on a disk in memory. */
const storeOnDisk = Effect.gen(function*() {
  const { disk, layer } = makeMemoryDisk({ [path]: `{"keys":[]}` })
  const store = yield* startStore({ GATEWAY_CONFIG_PATH: path }, layer)
  const keys = () => (JSON.parse(disk.files.get(path) ?? "") as { readonly keys: unknown }).keys
  return { disk, store, keys }
})

const manyKeys = Array.from({ length: 20 }, (_, n) => `key ${n}`)

describe("a full disk", () => {
  it.effect("fails changes immediately, leaves no lock, and lets the next change through as soon as there is room", () =>
    Effect.gen(function*() {
      const { disk, keys, store } = yield* storeOnDisk
      disk.isFull = true
      const failures = yield* Effect.forEach(manyKeys, (key) => Effect.flip(addKey(store, key)), {
        concurrency: "unbounded"
      })
      for (const { message } of failures) assert.include(message, "no space is left on its disk (ENOSPC)")
      assert.deepStrictEqual([...disk.files.keys()], [path])
      disk.isFull = false
      yield* addKey(store, "mine")
      assert.deepStrictEqual(keys(), ["mine"])
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  it.effect("delays the write of a logout until five seconds after there is room at most", () =>
    Effect.gen(function*() {
      const { disk, layer } = makeMemoryDisk()
      const load = Effect.provide(loadEndedLogins(path), layer)
      const ended = yield* load
      disk.isFull = true
      const login = { jti: "a login", issuedAt: 1_000, expiresAt: 90_000 }
      assert.isFalse(yield* ended.end(login))
      yield* TestClock.adjust("10 minutes")
      assert.isFalse(yield* ended.end(login))
      disk.isFull = false
      yield* TestClock.adjust("5 seconds")
      assert.isTrue(yield* (yield* load).has(login))
      assert.deepStrictEqual([...disk.files.keys()], [`${path}.ended-logins`])
    }).pipe(Effect.provide(quiet)))
})

describe("the lock of the configuration file", () => {
  it.effect("is an orphan if it stays empty", () =>
    Effect.gen(function*() {
      const { disk, keys, store } = yield* storeOnDisk
      disk.files.set(lock, "")
      const change = yield* Effect.forkChild(addKey(store, "mine"))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(change)
      assert.deepStrictEqual(keys(), ["mine"])
      assert.deepStrictEqual([...disk.files.keys()], [path])
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  it.effect("delays all changes that wait for another process by 15 seconds at most", () =>
    Effect.gen(function*() {
      const { disk, store } = yield* storeOnDisk
      disk.files.set(lock, "another process")
      // The other process keeps its lock fresh.
      disk.fresh.add(lock)
      const changes = yield* Effect.forEach(manyKeys, (key) => Effect.forkChild(Effect.flip(addKey(store, key))))
      yield* TestClock.adjust("14900 millis")
      assert.isTrue(changes.every((change) => change.pollUnsafe() === undefined))
      yield* TestClock.adjust("200 millis")
      assert.isTrue(changes.every((change) => change.pollUnsafe() !== undefined))
      for (const { message } of yield* Fiber.joinAll(changes)) {
        assert.include(message, `another process holds ${lock}`)
      }
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  it.effect("ends the wait after 15 seconds too if it is an orphan that cannot be removed", () =>
    Effect.gen(function*() {
      const { disk, store } = yield* storeOnDisk
      disk.files.set(lock, "")
      disk.stuck.add(lock)
      const change = yield* Effect.forkChild(Effect.flip(addKey(store, "mine")))
      yield* TestClock.adjust("15100 millis")
      assert.include((yield* Fiber.join(change)).message, `another process holds ${lock}`)
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  it.effect("ends the wait of a change whose client leaves, which then changes nothing", () =>
    Effect.gen(function*() {
      const { disk, keys, store } = yield* storeOnDisk
      disk.files.set(lock, "another process")
      const change = (key: string) =>
        Effect.forkChild(Effect.uninterruptible(Effect.provideService(addKey(store, key), CanLeave, true)))
      const [holder, waiter, third] = [yield* change("holder"), yield* change("waiter"), yield* change("third")]
      yield* TestClock.adjust("1 second")
      for (const fiber of [waiter, holder]) {
        yield* Fiber.interrupt(fiber)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
      }
      disk.files.delete(lock)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(third)
      assert.deepStrictEqual(keys(), ["third"])
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})
