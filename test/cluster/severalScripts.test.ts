/** Claims in several pools, in a store that loses its data. */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { scripts } from "../../src/cluster/store/scripts.ts"
import type { StoreClaim } from "../../src/cluster/store/StoreShape.ts"
import { claimOf, configOf, endOf, poolOf, ScriptNodes } from "./scripts.ts"

const [gpu, other] = [{ pool: "gpu", request: "A" }, { pool: "default", request: "A" }]
const atBoth = claimOf([gpu, other])
const atGpu = claimOf([gpu])

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
      configOf(++revision, { expected, total: 9, pools: [poolOf("default", ["a"]), poolOf("gpu", ["g"])] })
    )
  const acquire = async (node: string, ticket: string, claim: StoreClaim) =>
    (await cluster.acquire(node, ticket, claim)).slice(0, 2)
  const release = (node: string, ticket: string) => cluster.run(scripts.release, node, ticket, endOf({}))
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
    await cluster.attach("two", "0", [["2", "a", 2, "default"]], [["3", 1, 5, atBoth]])
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
})
