/**
 * Queries between nodes over a store.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makePeers } from "../../src/admin/nodes/peers.ts"
import { pieceBytes } from "../../src/cluster/store/encryption.ts"
import { sentDuring, settledServer, storeNode } from "./support.ts"

describe("queries between the nodes of a store", () => {
  it.live("return replies of any length, in chunks", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const fork = (effect: Effect.Effect<void>) => void Effect.runFork(effect)
      const [one, other] = yield* Effect.all([storeNode(server, "one"), storeNode(server, "other")])
      const long = "ü".repeat(500_000)
      makePeers(other.store, fork).answers("long", (question) => Effect.succeed(`${question} ${long}`))
      const asker = makePeers(one.store, fork)
      const sent = yield* sentDuring(
        server,
        Effect.gen(function*() {
          assert.strictEqual(yield* asker.queryOne("other", "long", "one"), `one ${long}`)
        })
      )
      assert.lengthOf(sent.filter(({ name }) => name === "SET"), Math.ceil((2 * long.length + 5) / pieceBytes))
      for (const { args, name } of sent) {
        const longest = name === "EVALSHA" ? 1_024 : Math.ceil((pieceBytes + 28) * 4 / 3)
        for (const arg of args) assert.isAtMost(arg.length, longest)
      }
    }))
})
