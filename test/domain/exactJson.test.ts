import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { exactJson } from "../../src/domain/exactJson.ts"
import { runs } from "../support/effort.ts"

describe("JSON that is read to be written again", () => {
  it("keeps every digit of its integers", () => {
    const integers = fc.array(fc.bigInt(-(10n ** 30n), 10n ** 30n), { minLength: 1 })
    fc.assert(
      fc.property(integers, (ids) => {
        const text = `{"ids":[${ids.join(",")}],"of":{"id":${ids[0]!}}}`
        assert.strictEqual(JSON.stringify(exactJson(text)), text)
      }),
      { numRuns: runs(200) }
    )
  })

  it("is what it is, of any other form", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        assert.strictEqual(JSON.stringify(exactJson(text)), JSON.stringify(JSON.parse(text)))
      }),
      { numRuns: runs(200) }
    )
  })

  it("has no other digits in a string", () => {
    const text = `{"id":"12345678901234567890","n":5}`
    assert.deepStrictEqual(exactJson(text), { id: "12345678901234567890", n: 5 })
  })
})
