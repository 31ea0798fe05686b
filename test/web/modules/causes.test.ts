/**
 * Accounts that need attention, by cause.
 */
import { assert, describe, it } from "@effect/vitest"
import { causesOf } from "../../../src/web/pages/overview/causes.ts"

const account = (name: string, state: string, reason: string | null, backAt?: number) => ({
  name,
  state,
  reason,
  backAt
})

describe("accounts that need attention", () => {
  it("are joined by state and reason, in the order of their first ones, with the time of the next try", () => {
    const causes = causesOf([
      account("a", "out", "suspended", 9_000),
      account("b", "out", "login refused"),
      account("c", "out", "suspended", 4_000),
      account("d", "cooling", "suspended"),
      account("e", "failed", null)
    ])
    assert.deepStrictEqual(
      causes.map(({ accounts, nextAt }) => [accounts.map(({ name }) => name).join(), nextAt]),
      [["a,c", 4_000], ["b", undefined], ["d", undefined], ["e", undefined]]
    )
    assert.strictEqual(new Set(causes.map(({ id }) => id)).size, 4)
  })
})
