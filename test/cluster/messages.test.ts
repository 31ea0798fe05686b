/**
 * Messages of the store and of other nodes, of any version.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type MessageOf, readMessage } from "../../src/cluster/store/messages.ts"
import { until } from "../support/until.ts"
import { settledServer, storeNode } from "./support.ts"

const read = (line: string) => Option.getOrUndefined(readMessage(line))

describe("a message of the store", () => {
  it("is read by its kind, without the fields that a later version adds", () => {
    assert.deepStrictEqual(read("config 7 later"), { _tag: "config", revision: 7 })
    assert.deepStrictEqual(read("mark ended-logins 1700000000000 a name"), {
      _tag: "mark",
      kind: "ended-logins",
      until: 1_700_000_000_000,
      name: "a name"
    })
    const grant: MessageOf<"grant"> = {
      _tag: "grant",
      ticket: "t1",
      account: "",
      fence: 4,
      epoch: "0",
      token: "0",
      cleaning: "0",
      revision: 3,
      pool: "default",
      coolings: "0",
      probes: "0",
      quota: "",
      model: 0
    }
    assert.deepStrictEqual(read("grant t1  4 0 0 0 3 default 0 0  0"), grant)
    const full = { ...grant, account: "a", pool: "gpu", probes: "1", quota: "5h,", model: 2, memory: "m" }
    assert.deepStrictEqual(read("grant t1 a 4 0 0 0 3 gpu 0 1 5h, 2 m later"), full)
  })

  it("does not exist in another form, of another kind, or of a kind that only the node itself can notice", () => {
    const lines = [
      "",
      "hello there",
      "constructor x",
      "config",
      "config soon",
      "grant t1",
      "grant t1 a four 0 0 0 3 gpu 0 0  0",
      "grant t1 a 4 0 0 0 3",
      "refuse t1 Full never",
      "mark ended-logins tomorrow name",
      "answer id node many",
      "wrong node",
      "lost",
      "restored",
      "dropped 3"
    ]
    for (const line of lines) assert.isUndefined(read(line), line)
  })

  it.live("has no effect in another form, and the next one arrives", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const [one, two] = [yield* storeNode(server, "one"), yield* storeNode(server, "two")]
      for (const line of ["lost", "config soon", "hello there", "cleaned nothing"]) {
        yield* one.store.run("tell", "*", line)
      }
      yield* until(() => two.heard.includes("cleaned nothing"))
      assert.isTrue(two.store.isUp())
      assert.notIncludeMembers(two.heard, ["lost", "config soon", "config NaN", "hello there"])
    }))
})
