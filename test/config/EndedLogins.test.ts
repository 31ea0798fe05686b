import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { TestClock } from "effect/testing"
import { loadEndedLogins, makeEndedLogins } from "../../src/config/EndedLogins.ts"

const login = (n: number) => ({ jti: `login-${n}`, issuedAt: 1_000 + n, expiresAt: 90_000 + n })

describe("ended logins", () => {
  it.effect("are forgotten when they have expired", () =>
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

  it.effect("are kept in memory where nothing can be written", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const file = `${yield* fs.makeTempDirectoryScoped()}/no-folder`
      yield* fs.writeFileString(file, "")
      const ended = yield* loadEndedLogins(`${file}/config.json`)
      yield* ended.end(login(1))
      assert.deepEqual([yield* ended.has(login(1)), yield* ended.has(login(2))], [true, false])
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("beyond their bound take those that are as old with them, and none comes back", () =>
    Effect.gen(function*() {
      const ended = yield* makeEndedLogins
      for (let n = 0; n < 10_050; n++) yield* ended.end(login(n))
      for (let n = 0; n < 10_050; n++) assert.isTrue(yield* ended.has(login(n)))
      assert.isFalse(yield* ended.has(login(10_050)))
      assert.isTrue(yield* ended.has({ jti: "never ended, but as old", issuedAt: 1_000, expiresAt: 95_000 }))
    }))
})
