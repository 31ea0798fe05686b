/** The rules that keep the tests from the clock: what they find, and that they find nothing here. */
import { assert, describe, it } from "@effect/vitest"
import path from "node:path"
import { ruleViolations, testRuleViolations } from "../../scripts/testRules.ts"

const timeout = "setTimeout(f, 10)"
const live = `it.live("a", () =>\n  Effect.sleep(10))`

describe("the rules of the tests", () => {
  it.each([timeout, "timeouts: { silence: 0.2 }", "performance.now()", "process.memoryUsage()", "{ retry: 2 }"])(
    "find %s",
    (text) => {
      const [found, ...more] = ruleViolations("a/b.test.ts", `\n${text}\n`)
      assert.match(found ?? "", /^test\/a\/b\.test\.ts:2: /)
      assert.lengthOf(more, 0)
    }
  )

  it("let a gateway have a limit that a clock is moved to", () => {
    assert.lengthOf(ruleViolations("a.test.ts", "timeouts: { silence: 2 }"), 0)
  })

  it("let a test sleep by a clock that is moved, and none by the machine's", () => {
    assert.lengthOf(ruleViolations("a.test.ts", live), 1)
    assert.lengthOf(ruleViolations("a.test.ts", live.replace(".live", ".effect")), 0)
  })

  it("are kept, but for what is named with its reason", () => {
    assert.lengthOf(ruleViolations("support/until.ts", timeout), 0)
    assert.deepStrictEqual(testRuleViolations(path.join(import.meta.dirname, "../..")), [])
  })
})
