/**
 * Probes and clean-ups of accounts are always assigned to a node that performs them.
 */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { readFileSync } from "node:fs"
import { accountReport, type LeaseEnd } from "../../src/accounts/shared/poolScripts.ts"
import { poolScript, type Script, scripts } from "../../src/cluster/store/scripts.ts"
import { connect, type RedisClient, redisServer } from "../support/redisServer.ts"
import { claimOf, configOf, endOf, poolOf } from "./scripts.ts"

const oracle = poolScript("oracle", readFileSync(new URL("./oracle.lua", import.meta.url), "utf8"))

describe("an account in a cluster", () => {
  let scope: Scope.Closeable
  let client: RedisClient
  let now = 0
  let revision = 0

  const run = async (script: Script, node: string, ...args: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
    const reply: unknown = await client.sendCommand(["EVAL", script.lua, "0", String(now), node, node, ...args])
    return (reply as ReadonlyArray<unknown>).map(String)
  }
  const attach = (node: string, starts = "1") => run(scripts.attach, node, starts, "e", "e", "test", "0", "[]", "[]")
  const configure = (disabled: ReadonlyArray<string>, node = "one", per = 1) =>
    run(
      scripts.configure,
      node,
      configOf(++revision, { pools: [poolOf("default", ["a"], { per, global: 2, disabled })] })
    )
  const anyAccount = JSON.stringify(claimOf([{ pool: "default", request: "A" }]))
  /** The probes assigned to a node that has received so many lines. */
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

  it("that is out stays assigned to a node until that node has received the request for a probe", async () => {
    assert.deepStrictEqual(await triesAt("one", 0), ["due a"])
    // The reply was lost.
    assert.deepStrictEqual(await triesAt("one", 0), ["due a"])
    assert.deepStrictEqual(await triesAt("other", 0), [])
    assert.deepStrictEqual(await triesAt("one", 1), [])
  })

  it("that is out is assigned again to a node that reattaches", async () => {
    assert.deepStrictEqual(await triesAt("one", 0), ["due a"])
    assert.include(await attach("one", "0"), "due a")
    assert.notInclude(await attach("other", "0"), "due a")
  })

  it("that is out is assigned to another node after it was disabled and its node has died", async () => {
    assert.deepStrictEqual(await triesAt("one", 0), ["due a"])
    await configure(["a"])
    now = 1_900
    assert.deepStrictEqual(await triesAt("other", 0), [])
    // The first node has no subscription and no heartbeat for two seconds.
    now = 2_100
    await configure([], "other")
    assert.deepStrictEqual(await triesAt("other", 0), ["due a"])
  })

  it("with sessions to delete is not assigned to a node that cannot delete them", async () => {
    await run(oracle, "one", "restore", "a")
    await configure([], "one", 2)
    const ask = async (ticket: string) => {
      const [outcome] = await run(scripts.acquire, "one", ticket, anyAccount, "[]")
      assert.strictEqual(outcome, "granted")
    }
    /** The outcome, and the account whose sessions this node must delete. */
    const release = async (ticket: string, facts: Partial<LeaseEnd>) =>
      (await run(scripts.release, "one", ticket, endOf(facts))).slice(0, 2)
    await ask("used")
    await ask("left")
    assert.deepStrictEqual(await release("used", { unclean: true }), ["granted", ""])
    // The caller disconnected before the lease.
    assert.deepStrictEqual(await release("left", { cleans: false }), ["granted", ""])
    await ask("next")
    assert.deepStrictEqual(await release("next", {}), ["granted", "a"])
  })

  it("with sessions to delete stays assigned to its node after a lost reply", async () => {
    await run(oracle, "one", "restore", "a")
    assert.strictEqual((await run(scripts.acquire, "one", "used", anyAccount, "[]"))[0], "granted")
    const seen = accountReport("a", "0", { health: undefined, retryAfter: undefined }, 0)
    const release = async () => (await run(scripts.release, "one", "used", endOf({ seen, unclean: true }))).slice(0, 2)
    assert.deepStrictEqual(await release(), ["granted", "a"])
    assert.deepStrictEqual(await release(), ["unknown", "a"])
    await run(scripts.cleaned, "one", "a")
    assert.deepStrictEqual(await release(), ["unknown", ""])
  })
})
