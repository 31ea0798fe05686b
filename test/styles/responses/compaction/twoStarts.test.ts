/** A compaction lives as long as its client's session: on other nodes, and after a restart. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { ConfigStore } from "../../../../src/config/ConfigStore.ts"
import { Environment } from "../../../../src/config/Environment.ts"
import { LastingEncryption } from "../../../../src/config/LastingEncryption.ts"
import { settledServer, storeLayer } from "../../../cluster/support.ts"
import { collectLogs, configFile, failing, NodeServices, startStore, withVariables } from "../../../config/support.ts"
import { startGateway } from "../../../support/gateway.ts"

type Sealed = { readonly output: ReadonlyArray<object> }

const ask = async (url: string, path: string, key: string, body: object) => {
  const response = await fetch(`${url}/v1/responses${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-5", ...body })
  })
  return {
    status: response.status,
    ignored: response.headers.get("x-gateway-ignored"),
    body: await response.json() as Sealed
  }
}

/** The encryption of a start. */
const startOf = (...start: Parameters<typeof startStore>) =>
  Effect.map(startStore(...start), ({ encryption }) => encryption)

/** Whether each start reads what the first one seals. */
const readBy = Effect.fnUntraced(function*<R>(
  first: Effect.Effect<LastingEncryption["Service"], unknown, R>,
  ...others: ReadonlyArray<Effect.Effect<LastingEncryption["Service"], unknown, R>>
) {
  const sealed = yield* (yield* first).seal("purpose", "text")
  return yield* Effect.forEach(others, (other) =>
    Effect.map(other, ({ open }) => {
      assert.isUndefined(open("another purpose", sealed))
      return open("purpose", sealed) === "text"
    }))
})

const quiet = Layer.merge(NodeServices.layer, collectLogs([]))

describe("a compaction", () => {
  it("is read by another start of the gateway, with another key", async () => {
    const first = await startGateway({ keys: ["one"] })
    const { body, status } = await ask(first.url, "/compact", "one", { input: "Remember 42" })
    await first.stop()
    assert.strictEqual(status, 200)
    const second = await startGateway({ keys: ["two"] })
    const next = await ask(second.url, "", "two", { input: [...body.output, { role: "user", content: "Now?" }] })
    await second.stop()
    assert.deepStrictEqual([next.status, next.ignored], [200, null])
  })

  it.live("is read by the other nodes of a store", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const node = (id: string, key: string): Effect.Effect<LastingEncryption["Service"], unknown, Scope.Scope> =>
        Effect.map(
          Layer.build(
            Layer.fresh(ConfigStore.layerShared).pipe(
              Layer.provide(storeLayer(server, id)),
              Layer.provide(Environment.layer),
              Layer.provide(withVariables({ GATEWAY_CONFIG_JSON: "{}", GATEWAY_ADMIN_KEY: key })),
              Layer.provide(NodeServices.layer)
            )
          ),
          (context) => Context.get(context, LastingEncryption)
        )
      const read = yield* readBy(node("one", "admin-key-of-one"), node("other", "admin-key-of-other"))
      assert.deepStrictEqual(read, [true])
    }).pipe(Effect.provide(collectLogs([]))))

  it.effect("is read by later starts with the same file, whose secret the first compaction creates", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* configFile({ keys: ["k"] })
      const start = startOf({ GATEWAY_CONFIG_PATH: path })
      const first = yield* start
      assert.isFalse(yield* fs.exists(`${path}.jwt-secret`))
      assert.deepStrictEqual(yield* readBy(Effect.succeed(first), start, Effect.succeed(first)), [true, true])
      assert.strictEqual((yield* fs.stat(`${path}.jwt-secret`)).mode & 0o777, 0o600)
      const elsewhere = startOf({ GATEWAY_CONFIG_PATH: yield* configFile({ keys: ["k"] }) })
      assert.deepStrictEqual(yield* readBy(start, elsewhere), [false])
    }).pipe(Effect.provide(quiet)))

  it.effect("is read by starts with the same admin key where no secret can be kept", () =>
    Effect.gen(function*() {
      const backed = (key: string, previous = "") =>
        startOf({
          GATEWAY_CONFIG_JSON: "{}",
          GATEWAY_ADMIN_KEY: key,
          GATEWAY_ADMIN_KEY_PREVIOUS: previous
        })
      const same = backed("the-admin-key")
      const rolled = backed("the-next-admin-key", "the-admin-key")
      assert.deepStrictEqual(yield* readBy(same, same, rolled, backed("another-admin-key")), [true, true, false])

      const path = yield* configFile({ keys: ["k"] })
      const readOnly = startOf(
        { GATEWAY_CONFIG_PATH: path, GATEWAY_ADMIN_KEY: "the-admin-key" },
        failing("writeFileString", "EROFS")
      )
      assert.deepStrictEqual(yield* readBy(readOnly, readOnly, same), [true, true])
    }).pipe(Effect.provide(quiet)))

  it.effect("ends with the process without any secret", () =>
    Effect.gen(function*() {
      const start = startOf({ GATEWAY_CONFIG_JSON: "{}" })
      assert.deepStrictEqual(yield* readBy(start, start), [false])
    }).pipe(Effect.provide(quiet)))
})
