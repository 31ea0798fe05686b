/** The rules for tests: the violations that they find, and that the tests have none. */
import { assert, describe, it } from "@effect/vitest"
import path from "node:path"
import { ruleViolations, testRuleViolations } from "../../scripts/testRules.ts"

const timeout = "setTimeout(f, 10)"
const live = `it.live("a test that waits", () =>\n  Effect.sleep(10))`

describe("the rules of the tests", () => {
  it.each([timeout, "timeouts: { silence: 0.2 }", "performance.now()", "process.memoryUsage()", "{ retry: 2 }"])(
    "find %s",
    (text) => {
      const [found, ...more] = ruleViolations("a/b.test.ts", `\n${text}\n`)
      assert.match(found ?? "", /^test\/a\/b\.test\.ts:2: /)
      assert.lengthOf(more, 0)
    }
  )

  it("refuse a wait for a page of more than 15 seconds", () => {
    assert.lengthOf(ruleViolations("a.test.ts", "context.setDefaultTimeout(200_000)"), 1)
    assert.lengthOf(ruleViolations("a.test.ts", "locator.waitFor({ timeout: 16000 })"), 1)
    assert.lengthOf(ruleViolations("a.test.ts", "locator.waitFor({ timeout: 15_000 })"), 0)
  })

  it("permit a time limit of whole seconds, which a test reaches by moving the clock", () => {
    assert.lengthOf(ruleViolations("a.test.ts", "timeouts: { silence: 2 }"), 0)
  })

  it("permit a sleep by the test clock, not by the machine's clock", () => {
    assert.lengthOf(ruleViolations("a.test.ts", live), 1)
    assert.lengthOf(ruleViolations("a.test.ts", live.replace(".live", ".effect")), 0)
  })

  it("refuse a title of fewer than three words, unless a row of the test fills it", () => {
    const [found, ...more] = ruleViolations("a.test.ts", `\nit("take turns", async () => {})\n`)
    assert.match(found ?? "", /^test\/a\.test\.ts:2: "take turns" is no sentence/)
    assert.lengthOf(more, 0)
    assert.lengthOf(ruleViolations("a.test.ts", `it.each(rows)("normalizes names", (row) => {})`), 1)
    const sentences = [
      `it("keys take turns", () => {})`,
      `it.each(rows)("%s", () => {})`,
      "it.effect(`${name}`, () => Effect.void)",
      `call("take turns", 1)`
    ]
    for (const text of sentences) assert.lengthOf(ruleViolations("a.test.ts", text), 0, text)
  })

  it("are followed by all tests except the listed files", () => {
    assert.lengthOf(ruleViolations("support/until.ts", timeout), 0)
    assert.deepStrictEqual(testRuleViolations(path.join(import.meta.dirname, "../..")), [])
  })
})
