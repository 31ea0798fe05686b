import { assert, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { Deadlines } from "../../../src/config/clock/Deadlines.ts"
import type { ConnectionSettings } from "../../../src/upstream/ExchangeRequest.ts"
import { Dispatchers } from "../../../src/upstream/transports/Dispatchers.ts"

const ignore = { onResponseError: () => {} }
const environment = { http: "", https: "", all: "", no: "" }

const settingsBy = (proxy: string): ConnectionSettings => ({
  accountProxy: undefined,
  proxy: Redacted.make(proxy),
  tls: undefined,
  connect: 1_000
})

it.effect("agents are shared by equal ways, 256 at most, and unused ones go", () =>
  Effect.gen(function*() {
    const dispatchers = new Dispatchers(yield* Deadlines, environment)
    const send = (connection: ConnectionSettings) =>
      dispatchers.dispatch(
        dispatchers.routeOf(connection, "http://127.0.0.1:1"),
        { method: "GET", path: "/", headers: {} },
        ignore
      )
    send(settingsBy("http://127.0.0.1:1"))
    send(settingsBy("http://127.0.0.1:1"))
    send({ ...settingsBy("http://127.0.0.1:1"), connect: 2_000 })
    assert.strictEqual(dispatchers.size, 2)
    for (let user = 0; user < 300; user++) {
      send(settingsBy(`http://user${user}@127.0.0.1:1`))
      assert.isAtMost(dispatchers.size, 256)
    }
    assert.strictEqual(dispatchers.size, 256)
    yield* TestClock.adjust("30 seconds")
    const kept = settingsBy("http://user299@127.0.0.1:1")
    send(kept)
    yield* TestClock.adjust("40 seconds")
    send(settingsBy("direct"))
    assert.strictEqual(dispatchers.size, 2)
    send(kept)
    assert.strictEqual(dispatchers.size, 2)
    yield* Effect.promise(() => dispatchers.destroy())
    assert.strictEqual(dispatchers.size, 0)
  }).pipe(Effect.provide(Deadlines.layer)))
