/** The scripts of budgets against a plain list of what was used, over generated interleavings of several nodes. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { needsWords, usedFields } from "../../src/accounts/shared/poolScripts.ts"
import { scripts } from "../../src/cluster/store/scripts.ts"
import type { SharedPools } from "../../src/config/sharedAccounts.ts"
import { limitFields } from "../../src/config/windowLimit.ts"
import type { Used } from "../../src/usage/Admission.ts"
import { budgetCase, compareBudgets } from "../accounts/budgetModel.ts"
import { runs } from "../support/effort.ts"
import { claimOf, configOf, endOf, nodes, poolOf, ScriptNodes } from "./scripts.ts"

let cluster: ScriptNodes

beforeAll(async () => {
  cluster = await ScriptNodes.start()
})
afterAll(() => cluster.stop())

/** The pool `u` with the accounts `a0` and `a1` of 100 slots. */
const configure = (budgets: SharedPools["budgets"]) =>
  cluster.run(
    scripts.configure,
    "one",
    configOf(1, { pools: [poolOf("u", ["a0", "a1"], { per: 100, global: 100, queue: 100 })], total: 200, budgets })
  )

describe("the scripts of budgets", () => {
  it("let exactly those tries that fit, on whatever node, and count each once", async () => {
    await fc.assert(
      fc.asyncProperty(budgetCase, async (one) => {
        await cluster.open()
        let tickets = 0
        const running = new Set<string>()
        const subjects = [["a0", one.accounts[0]], ["a1", one.accounts[1]], ["@u", one.upstream]] as const
        await configure(
          subjects.flatMap(([name, limits]) => limits.length === 0 ? [] : [[name, limits.map(limitFields)]])
        )
        await compareBudgets(one, {
          take: async (now, account, share) => {
            cluster.now = now
            const ticket = String(++tickets)
            const node = nodes[tickets % nodes.length]!
            const target = { pool: "u", request: `P:a${account}${needsWords([], share, false)}` }
            const ask = () => cluster.acquire(node, ticket, claimOf([target], { patience: 0 }))
            const reply = await ask()
            const [verdict, reason, left] = reply
            if (verdict === "refused") {
              assert.strictEqual(reason, "Cooling")
              return now + Number(left)
            }
            assert.strictEqual(verdict, "granted")
            // A repeated ticket gets the same result, and counts once.
            assert.deepStrictEqual(await ask(), reply)
            const release = (now: number, used: Used) => {
              cluster.now = now
              return cluster.run(scripts.release, node, ticket, endOf({ used: usedFields(used) }))
            }
            running.add(ticket)
            return async (now, used) => {
              running.delete(ticket)
              const first = await release(now, used)
              assert.strictEqual(first[0], "granted")
              // A repeated report changes nothing.
              await release(now, { counted: true, tokens: 1_000, cost: undefined })
            }
          }
        })
        // What ended holds nothing any more.
        const held = await Promise.all(nodes.map((node) => cluster.send("HKEYS", `gw:{main}:leases:${node}`)))
        assert.includeMembers(Array.from(running), held.flat())
      }),
      { numRuns: runs(40) }
    )
  })
})
