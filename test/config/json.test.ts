import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { isJsonObject, stringifyConfig } from "../../src/config/json.ts"
import { runs } from "../support/effort.ts"

const config = fc.json().map((text): unknown => JSON.parse(text)).filter(isJsonObject)
  .filter((raw) => Object.keys(raw).length > 0)

describe("the text of a configuration", () => {
  it("is the output of JSON.stringify, indented by two in the file and compact elsewhere", () => {
    const raws = [
      { keys: ["a", "b"], accounts: [{ email: "x", tags: [{ a: [] }] }], runtime: { deep: { er: [1, {}] } }, none: [] },
      ...fc.sample(config, { numRuns: runs(100) })
    ]
    for (const raw of raws) {
      assert.strictEqual(Effect.runSync(stringifyConfig(raw, "indented")), `${JSON.stringify(raw, undefined, 2)}\n`)
      assert.strictEqual(Effect.runSync(stringifyConfig(raw, "compact")), JSON.stringify(raw))
    }
  })
})
