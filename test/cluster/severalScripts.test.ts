/** Claims in several pools, in a store that loses its data or that a node of an earlier version shares. */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { scripts } from "../../src/cluster/store/scripts.ts"
import { ScriptNodes } from "./scripts.ts"

/** Limits, accounts and deadline of a configuration. */
const ofDefault = ["1", "1", "9", "1", "0", "[]", "[\"a\"]", "[]", "999999999", "", ""]
const none = ["", "", "", "", "", "", "", ""]
const atBoth = JSON.stringify(["order", 0, [["gpu", "A"], ["default", "A"]], []])
const atGpu = JSON.stringify(["order", 0, [["gpu", "A"]], []])

describe("claims in several pools", () => {
  let cluster: ScriptNodes
  let revision = 0
  beforeAll(async () => {
    cluster = await ScriptNodes.start()
  })
  afterAll(() => cluster.stop())

  const configure = (expected: string) =>
    cluster.run(
      scripts.configure,
      "one",
      expected,
      String(++revision),
      "document",
      ...ofDefault,
      JSON.stringify([9, [["default", 1], ["gpu", 1, 1, 1, 9, 0, 0, [], ["g"], []]]])
    )
  const acquire = async (node: string, ticket: string, choice: string) =>
    (await cluster.run(scripts.acquire, node, ticket, "", "60000", "", "chat", choice)).slice(0, 2)
  const release = (node: string, ticket: string) => cluster.run(scripts.release, node, ticket, "0", ...none)
  /** Slots in use and waiters, of all pools. */
  const claims = async () => (await cluster.oracle("pools")).reply.slice(0, 2)

  beforeEach(async () => {
    revision = 0
    await cluster.open()
    await configure("0")
  })

  it("are put back into a store that has lost its data, and one slot of each is held", async () => {
    assert.deepStrictEqual(await acquire("one", "1", atBoth), ["granted", "g"])
    assert.deepStrictEqual(await acquire("two", "2", atBoth), ["granted", "a"])
    assert.deepStrictEqual(await acquire("two", "3", atBoth), ["waiting", "1"])
    await cluster.send("FLUSHALL")
    await cluster.attach("one", "0", [["1", "g", 1, "gpu"]], [])
    // The accounts of a pool are restored after its claims.
    await cluster.attach("two", "0", [["2", "a", 2]], [["3", "", 1, 60_000, 5, "chat", JSON.parse(atBoth)]])
    await cluster.attach("three", "0", [], [])
    assert.deepStrictEqual(await acquire("three", "4", atGpu), ["waiting", "2"])
    await configure("")
    cluster.now = 10_000
    assert.deepStrictEqual(await claims(), ["2", "2"])
    await release("one", "1")
    assert.deepStrictEqual(await cluster.told(), [[3, "g"]])
    await release("two", "3")
    assert.deepStrictEqual(await cluster.told(), [[4, "g"]])
    for (const [node, ticket] of [["two", "2"], ["three", "4"]] as const) await release(node, ticket)
    assert.deepStrictEqual(await claims(), ["0", "0"])
  })

  it("give up their other places once a node of an earlier version has granted the one in `default`", async () => {
    await acquire("one", "1", atBoth)
    await acquire("one", "2", atBoth)
    assert.deepStrictEqual(await acquire("two", "3", atBoth), ["waiting", "1"])
    // What the earlier scripts do with the ticket and its lease.
    await release("one", "2")
    await cluster.told()
    assert.deepStrictEqual(await acquire("two", "4", atBoth), ["waiting", "2"])
    await cluster.send("HDEL", "gw:{main}:tickets:two", "4")
    await cluster.send("ZREM", "gw:{main}:line:A|two", "4")
    await cluster.send("ZREM", "gw:{main}:queue", "two|4")
    await cluster.send("HINCRBY", "gw:{main}:sum", "waiting", "-1")
    assert.deepStrictEqual(await acquire("three", "5", atGpu), ["waiting", "3"])
    await release("one", "1")
    assert.deepStrictEqual(await cluster.told(), [[5, "g"]])
    assert.deepStrictEqual(await claims(), ["2", "0"])
  })

  it("of a node that an earlier version has dropped are released", async () => {
    assert.deepStrictEqual(await acquire("two", "1", atGpu), ["granted", "g"])
    assert.deepStrictEqual(await acquire("two", "2", atGpu), ["waiting", "1"])
    assert.deepStrictEqual(await acquire("one", "3", atGpu), ["waiting", "2"])
    await cluster.send("ZREM", "gw:{main}:nodes", "two")
    await cluster.send("DEL", "gw:{main}:node:two")
    const { reply, told } = await cluster.oracle("pools")
    assert.deepStrictEqual([reply.slice(0, 2), told], [["1", "0"], [[3, "g"]]])
  })
})
