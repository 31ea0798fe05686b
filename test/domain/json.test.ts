import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { exactJson, readExactly } from "../../src/domain/json.ts"
import { runs } from "../support/effort.ts"

describe("exactJson", () => {
  it("keeps every digit of integers", () => {
    const integers = fc.array(fc.bigInt(-(10n ** 30n), 10n ** 30n), { minLength: 1 })
    fc.assert(
      fc.property(integers, (ids) => {
        const text = `{"ids":[${ids.join(",")}],"of":{"id":${ids[0]!}}}`
        assert.strictEqual(JSON.stringify(exactJson(text)), text)
      }),
      { numRuns: runs(200) }
    )
  })

  it("equals JSON.parse for JSON without long integers", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        assert.strictEqual(JSON.stringify(exactJson(text)), JSON.stringify(JSON.parse(text)))
      }),
      { numRuns: runs(200) }
    )
  })

  it("replaces long integers anywhere, and nothing else", () => {
    const number = fc.oneof(
      fc.bigInt(-(10n ** 30n), 10n ** 30n).map(String),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
      fc.constantFrom("1.12345678901234567890", "1e-12", "0.12345678901234567e+30", "12345678901234567.5", "1E20", "-0")
    )
    const text = fc.string({ unit: fc.constantFrom("\"", "\\", ",", ":", "1234567890123456789", "x", "\n") })
      .map((value) => JSON.stringify(value))
    const { value } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, number, text, tie("list"), tie("object")),
      list: fc.array(tie("value"), { maxLength: 4 }).map((values) => `[ ${values.join(" , ")} ]`),
      object: fc.array(fc.tuple(fc.oneof(text, fc.constant("\"__proto__\"")), tie("value")), { maxLength: 4 })
        .map((fields) => `{${fields.map(([key, value]) => `${key} : ${value}`).join(",")}}`)
    }))
    /** The same by a reviver. */
    const slow = (text: string) =>
      JSON.parse(
        text,
        (_key, value: unknown, context?: { readonly source?: string }) =>
          typeof value === "number" && /^-?\d+$/.test(context?.source ?? "") && !Number.isSafeInteger(value)
            ? (JSON as unknown as { rawJSON: (text: string) => unknown }).rawJSON(context!.source!)
            : value
      )
    fc.assert(
      fc.property(value.map((value) => `[${value}]`), (text) => {
        assert.strictEqual(JSON.stringify(exactJson(text)), JSON.stringify(slow(text)))
      }),
      { numRuns: runs(500) }
    )
  })

  it("works in slices, for any number of values and tokens", () => {
    for (const part of ["1,", "\"\",", "[],", "1234567890123456,", "12345678901234567890,", "\"\\\\\","]) {
      const text = `[${part.repeat(20_000)}12345678901234567890]`
      let items = 0
      for (const slice of readExactly(text)) {
        assert.isAtMost(slice.items, 2_000)
        items += slice.items
      }
      assert.isAtMost(items, 2 * 20_001 + 2)
    }
  })

  it("leaves digits in strings unchanged", () => {
    const text = `{"id":"12345678901234567890","n":5}`
    assert.deepStrictEqual(exactJson(text), { id: "12345678901234567890", n: 5 })
  })
})
