import { assert, describe, it } from "@effect/vitest"
import { parseJson, valueBytesOf } from "../../src/contracts/shared/json.ts"

describe("JSON text of a server", () => {
  const list = (values: number) => `[${"{},".repeat(values)}1]`

  it("is read up to the bound of its values, and is no JSON beyond", () => {
    assert.lengthOf(parseJson(list(40_000), 80_002) as ReadonlyArray<unknown>, 40_001)
    assert.isUndefined(parseJson(list(40_000), 80_001))
    assert.isUndefined(parseJson(list(1_000_000)))
  })

  it("takes 64 bytes of memory for each of its values", () => {
    assert.strictEqual(valueBytesOf("[1,2,[]]"), 64 * 5)
    assert.isUndefined(valueBytesOf(list(1_000_000)))
  })
})
