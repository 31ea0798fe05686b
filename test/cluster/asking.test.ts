/**
 * Queries between nodes over a store.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { makePeers } from "../../src/admin/nodes/peers.ts"
import { answerQuery, askAll, askOne } from "../../src/admin/nodes/Query.ts"
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

  it.live("are understood by their forms, and count as unanswered in another form", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const fork = (effect: Effect.Effect<void>) => void Effect.runFork(effect)
      const [one, other] = yield* Effect.all([storeNode(server, "one"), storeNode(server, "other")])
      const peers = makePeers(one.store, fork)
      const query = {
        name: "count",
        question: Schema.fromJsonString(Schema.Struct({ of: Schema.String })),
        answer: Schema.fromJsonString(Schema.Struct({ count: Schema.Int }))
      }
      const [all, single] = [askAll(peers, query), askOne(peers, query)]
      const asked: Array<string> = []
      const answering = makePeers(other.store, fork)
      answerQuery(answering, query, (question) => {
        asked.push(question.of)
        return Effect.succeed({ count: question.of.length })
      })
      const { answers, missing } = yield* all({ of: "four" })
      assert.deepStrictEqual([answers.get("other"), missing], [{ count: 4 }, []])
      assert.deepStrictEqual(yield* single("other", { of: "three" }), { count: 5 })
      // A question of another version.
      const unknown = yield* peers.queryAll("count", JSON.stringify({ within: "all" }))
      assert.deepStrictEqual([unknown.answers.size, unknown.missing], [0, ["other"]])
      assert.deepStrictEqual(asked, ["four", "three"])
      // Answers of another version.
      for (const text of ["", "many", JSON.stringify({ count: "many" }), JSON.stringify([4])]) {
        answering.answers("count", () => Effect.succeed(text))
        const refused = yield* all({ of: "four" })
        assert.deepStrictEqual([refused.answers.size, refused.missing], [0, ["other"]], text)
      }
      const error = yield* Effect.flip(single("other", { of: "four" }))
      assert.strictEqual(error.message, "The node other does not answer")
    }))
})
