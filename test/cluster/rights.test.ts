/** A credential that one node has accepted skips the queue of wrong ones on every node. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AdminSecrets } from "../../src/accounts/AdminSecrets.ts"
import { Store } from "../../src/cluster/store/Store.ts"
import { command, connect, listOf, type RedisServer } from "../support/redisServer.ts"
import { until, untilTrue } from "../support/until.ts"
import { settledServer, storeLayer } from "./support.ts"

const place = "gw:{main}:marks:right-logins"

const nodeOf = (server: RedisServer, name: string) =>
  Effect.map(
    Layer.build(Layer.provideMerge(AdminSecrets.layerShared, storeLayer(server, name))),
    (context) => ({ secrets: Context.get(context, AdminSecrets), store: Context.get(context, Store) })
  )

describe("a credential that one node has accepted", () => {
  it.live("is recognized by the other nodes for its address only, and restored to a store that has lost its data", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const client = yield* Effect.promise(() => connect(server.socket))
      const [one, two] = [yield* nodeOf(server, "one"), yield* nodeOf(server, "two")]
      const heard: Array<string> = []
      two.store.listen(({ _tag }) => heard.push(_tag))
      const name = one.secrets.nameOf("192.0.2.1")
      one.secrets.right(name, "password")
      yield* until(() => two.secrets.wasRight(two.secrets.nameOf("192.0.2.1"), "password"))
      assert.isFalse(two.secrets.wasRight(name, "another"))
      assert.isFalse(two.secrets.knowsRight(two.secrets.nameOf("192.0.2.2")))
      const [kept = ""] = yield* Effect.promise(() => listOf(client, "ZRANGE", place, "0", "-1"))
      assert.match(kept, /^[0-9a-f]{16} [0-9a-f]{16}$/)
      yield* Effect.promise(() => command(client, "FLUSHALL"))
      yield* until(() => heard.includes("restored"))
      yield* untilTrue(Effect.promise(async () => await command(client, "ZCARD", place) === 1))
      const three = yield* nodeOf(server, "three")
      assert.isTrue(three.secrets.wasRight(name, "password"))
      client.destroy()
    }))
})

describe("a wrong credential at one node", () => {
  it.live("counts at the other nodes for its address, business keys apart from logins", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const [one, two] = [yield* nodeOf(server, "one"), yield* nodeOf(server, "two")]
      const name = one.secrets.nameOf("192.0.2.1")
      const heard: Array<string> = []
      two.secrets.onWrong((wrong) => heard.push(`login ${wrong}`))
      two.secrets.keys.onWrong((wrong) => heard.push(`key ${wrong}`))
      one.secrets.keys.onWrong((wrong) => heard.push(`own ${wrong}`))
      one.secrets.keys.wrong(name)
      yield* until(() => heard.length === 1)
      one.secrets.wrong(name)
      yield* until(() => heard.length === 2)
      assert.deepStrictEqual(heard, [`key ${two.secrets.keys.nameOf("192.0.2.1")}`, `login ${name}`])
    }))
})
