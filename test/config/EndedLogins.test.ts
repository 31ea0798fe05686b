import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, PlatformError } from "effect"
import { TestClock } from "effect/testing"
import { loadEndedLogins, makeEndedLogins } from "../../src/config/EndedLogins.ts"
import { untilTrue } from "../support/until.ts"
import { collectLogs } from "./support.ts"

const quiet = Layer.merge(NodeServices.layer, collectLogs([]))

const login = (n: number) => ({ jti: `login-${n}`, issuedAt: 1_000 + n, expiresAt: 90_000 + n })

describe("ended admin logins", () => {
  it.effect("are dropped once they have expired", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const config = `${yield* fs.makeTempDirectoryScoped()}/config.json`
      const ended = yield* loadEndedLogins(config)
      yield* ended.end(login(1))
      yield* TestClock.setTime(90_001_000)
      yield* ended.end(login(2))
      const again = yield* loadEndedLogins(config)
      assert.deepEqual([yield* again.has(login(1)), yield* again.has(login(2)), yield* again.has(login(3))], [
        false,
        true,
        false
      ])
      assert.deepInclude(JSON.parse(yield* fs.readFileString(`${config}.ended-logins`)), {
        until: -1,
        ended: [["login-2", 1_002, 90_002]]
      })
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("stay in memory if the file is not writable", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const file = `${yield* fs.makeTempDirectoryScoped()}/no-folder`
      yield* fs.writeFileString(file, "")
      const ended = yield* loadEndedLogins(`${file}/config.json`)
      yield* ended.end(login(1))
      assert.deepEqual([yield* ended.has(login(1)), yield* ended.has(login(2))], [true, false])
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("report a failed write as pending and are written once the file is writable again", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const config = `${yield* fs.makeTempDirectoryScoped()}/config.json`
      let full = true
      const disk = FileSystem.FileSystem.of({
        ...fs,
        open: (path, options) =>
          full && path.endsWith(".tmp")
            ? Effect.fail(PlatformError.systemError({
              _tag: "Unknown",
              module: "FileSystem",
              method: "open",
              cause: Object.assign(new Error("full"), { code: "ENOSPC" })
            }))
            : fs.open(path, options)
      })
      const ended = yield* Effect.provideService(loadEndedLogins(config), FileSystem.FileSystem, disk)
      assert.isFalse(yield* ended.end(login(1)))
      assert.isFalse(yield* ended.end(login(2)))
      assert.deepEqual([yield* ended.has(login(1)), yield* ended.has(login(2))], [true, true])
      assert.isFalse(yield* fs.exists(`${config}.ended-logins`))
      full = false
      yield* TestClock.adjust("1 second")
      yield* untilTrue(Effect.orDie(fs.exists(`${config}.ended-logins`)))
      const again = yield* loadEndedLogins(config)
      assert.deepEqual([yield* again.has(login(1)), yield* again.has(login(2))], [true, true])
      assert.isTrue(yield* ended.end(login(3)))
    }).pipe(Effect.provide(quiet)))

  it.effect("are visible immediately to every process with the same file", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const config = `${yield* fs.makeTempDirectoryScoped()}/config.json`
      const [one, two] = [yield* loadEndedLogins(config), yield* loadEndedLogins(config)]
      yield* one.end(login(1))
      assert.isTrue(yield* two.has(login(1)))
      yield* two.end(login(2))
      assert.isTrue(yield* one.has(login(2)))
      // A removed file is written again.
      yield* fs.remove(`${config}.ended-logins`)
      assert.isTrue(yield* one.has(login(1)))
      const three = yield* loadEndedLogins(config)
      assert.deepEqual([yield* three.has(login(1)), yield* three.has(login(2)), yield* three.has(login(3))], [
        true,
        true,
        false
      ])
    }).pipe(Effect.provide(quiet)))

  it.effect("a damaged file ends all earlier logins", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const config = `${yield* fs.makeTempDirectoryScoped()}/config.json`
      yield* fs.writeFileString(`${config}.ended-logins`, "{\"until\":")
      yield* TestClock.setTime(2_000_000)
      yield* loadEndedLogins(config)
      const again = yield* loadEndedLogins(config)
      const issued = (issuedAt: number) => again.has({ jti: "any", issuedAt, expiresAt: 90_000 })
      assert.deepEqual([yield* issued(1_999), yield* issued(2_000), yield* issued(2_001)], [true, true, false])
    }).pipe(Effect.provide(quiet)))

  it.effect("above the maximum, all logins of the same age end permanently", () =>
    Effect.gen(function*() {
      const ended = yield* makeEndedLogins
      for (let n = 0; n < 10_050; n++) yield* ended.end(login(n))
      for (let n = 0; n < 10_050; n++) assert.isTrue(yield* ended.has(login(n)))
      assert.isFalse(yield* ended.has(login(10_050)))
      assert.isTrue(yield* ended.has({ jti: "never ended, but as old", issuedAt: 1_000, expiresAt: 95_000 }))
    }))
})
