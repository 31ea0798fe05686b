/** Tries of accounts that are out: an account is never left to a try that nobody makes. */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { readFileSync } from "node:fs"
import { poolScript, type Script, scripts } from "../../src/store/scripts.ts"
import { connect, type RedisClient, redisServer } from "../support/redisServer.ts"

const oracle = poolScript("oracle", readFileSync(new URL("./oracle.lua", import.meta.url), "utf8"))

describe("an account that is out", () => {
  let scope: Scope.Closeable
  let client: RedisClient
  let now = 0
  let revision = 0

  const run = async (script: Script, node: string, ...args: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
    const reply: unknown = await client.sendCommand(["EVAL", script.lua, "0", String(now), node, node, ...args])
    return (reply as ReadonlyArray<unknown>).map(String)
  }
  const attach = (node: string, starts = "1") => run(scripts.attach, node, starts, "e", "e", "test", "0", "[]", "[]")
  const configure = (disabled: ReadonlyArray<string>, node = "one") =>
    run(
      scripts.configure,
      node,
      String(revision++),
      String(revision),
      "document",
      "1",
      "1",
      "1",
      "1",
      "0",
      "[]",
      JSON.stringify(["a"]),
      JSON.stringify(disabled)
    )
  /** What a node that has heard so many lines is to try. */
  const triesAt = async (node: string, heard: number) =>
    (await run(scripts.beat, node, String(heard), "up", "0")).filter((line) => line.startsWith("due "))

  beforeAll(async () => {
    scope = Effect.runSync(Scope.make())
    const server = await Effect.runPromise(Scope.provide(redisServer(), scope))
    client = await connect(server.socket)
  })
  afterAll(async () => {
    client.destroy()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })
  beforeEach(async () => {
    await client.sendCommand(["FLUSHALL"])
    await client.sendCommand(["SET", "gw:{main}:epoch", "e"])
    now = 0
    revision = 0
    for (const node of ["one", "other"]) await attach(node)
    await configure([])
    await run(oracle, "one", "suspend", "a", "out", "10")
    now = 10
  })

  it("is its node's to try until the node has heard so", async () => {
    assert.deepStrictEqual(await triesAt("one", 0), ["due a"])
    // The reply was lost.
    assert.deepStrictEqual(await triesAt("one", 0), ["due a"])
    assert.deepStrictEqual(await triesAt("other", 0), [])
    assert.deepStrictEqual(await triesAt("one", 1), [])
  })

  it("is its node's to try when that comes back to the store", async () => {
    assert.deepStrictEqual(await triesAt("one", 0), ["due a"])
    assert.include(await attach("one", "0"), "due a")
    assert.notInclude(await attach("other", "0"), "due a")
  })

  it("is another's to try when it was disabled meanwhile and its node has died", async () => {
    assert.deepStrictEqual(await triesAt("one", 0), ["due a"])
    await configure(["a"])
    now = 1_900
    assert.deepStrictEqual(await triesAt("other", 0), [])
    // Nobody listens for the first one, which has shown no life for two seconds.
    now = 2_100
    await configure([], "other")
    assert.deepStrictEqual(await triesAt("other", 0), ["due a"])
  })
})
