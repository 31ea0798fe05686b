/** What an account has done lately. */
import { assert, describe, it } from "@effect/vitest"
import { AccountWork, addWork, noWork } from "../../src/accounts/AccountWork.ts"
import { messageLimit } from "../../src/domain/redact.ts"

const minute = 60_000

describe("the work of an account", () => {
  const at = (time: number) => {
    let now = time
    const work = new AccountWork(() => now)
    return {
      work,
      pass: (millis: number) => {
        now += millis
      }
    }
  }

  it("counts attempts and failures of the last hour, also after the clock was set back", () => {
    const begun = 1_000_000 * 60 * minute
    const { pass, work } = at(begun)
    assert.deepStrictEqual(work.facts(), noWork)
    for (let i = 0; i < 12; i++) {
      work.began()
      if (i % 3 === 0) work.failed("unreachable", `failure ${i}`)
      pass(5 * minute)
    }
    assert.deepStrictEqual(work.facts(), {
      lastUsedAt: begun + 55 * minute,
      requestsHour: 11,
      failedHour: 3,
      lastError: { code: "unreachable", message: "failure 9", at: begun + 45 * minute },
      lastTest: null,
      heldBackSince: null
    })
    // The first two steps, and an attempt in the second one; later steps are ahead of the clock.
    pass(-55 * minute)
    work.began()
    assert.strictEqual(work.facts().requestsHour, 3)
    pass(1_000 * minute)
    assert.deepInclude(work.facts(), { requestsHour: 0, failedHour: 0 })
  })

  it("has the last test, with a message of bounded length", () => {
    const { work } = at(7 * minute)
    work.tested(true, "fine")
    work.tested(false, "x".repeat(10_000))
    const { lastTest } = work.facts()
    assert.deepInclude(lastTest, { success: false, at: 7 * minute })
    assert.lengthOf(lastTest!.message, messageLimit)
  })

  it("of two nodes is the sum of their counts and the latest of each fact", () => {
    const [one, other] = [at(1_000 * minute), at(1_001 * minute)]
    one.work.began()
    one.work.failed("overloaded", "first")
    one.work.tested(true, "works")
    other.work.began()
    other.work.failed("unreachable", "second")
    const sum = {
      lastUsedAt: 1_001 * minute,
      requestsHour: 2,
      failedHour: 2,
      lastError: { code: "unreachable", message: "second", at: 1_001 * minute },
      lastTest: { success: true, message: "works", at: 1_000 * minute },
      heldBackSince: null
    }
    assert.deepStrictEqual(addWork(one.work.facts(), other.work.facts()), sum)
    assert.deepStrictEqual(addWork(other.work.facts(), one.work.facts()), sum)
    assert.deepStrictEqual(addWork(noWork, sum), sum)
    // The node that saw it leave first knows since when it is out.
    const since = (heldBackSince: number | null) => ({ ...noWork, heldBackSince })
    assert.strictEqual(addWork(since(7), addWork(since(null), since(5))).heldBackSince, 5)
    assert.strictEqual(addWork(since(5), since(7)).heldBackSince, 5)
  })
})
