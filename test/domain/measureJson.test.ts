import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { runSync, sliceChars } from "../../src/domain/stream/cooperative.ts"
import { measureJson, mostObjectKeys } from "../../src/domain/stream/measureJson.ts"

const bounds = { depth: 200, values: 1_000_000 }
const measured = (text: string) => runSync(measureJson(text, bounds))

const isHolder = (value: unknown): value is object => typeof value === "object" && value !== null

const depthOf = (value: unknown): number => isHolder(value) ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

const valuesOf = (value: unknown): number => {
  if (!isHolder(value)) return 1
  const inner = Object.values(value)
  return 1 + Math.max(1, inner.reduce<number>((sum, each) => sum + valuesOf(each), 0))
}

describe("the measure of JSON text", () => {
  it("refuses one level above the limit", () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels)
    assert.isUndefined(measured(nested(bounds.depth)).exceeded)
    assert.strictEqual(measured(nested(bounds.depth + 1)).exceeded, "depth")
    assert.strictEqual(measured("{\"a\":".repeat(bounds.depth + 1)).exceeded, "depth")
  })

  it("counts the values of any JSON, of which an empty list or object counts as two", () => {
    fc.assert(fc.property(
      fc.json(),
      fc.string({ unit: fc.constantFrom("[", "{", ",", ":", "\\", "\"", "a") }),
      (json, text) => {
        const value: unknown = [text, JSON.parse(json), { [text]: JSON.parse(json) }]
        for (const body of [JSON.stringify(value), JSON.stringify(value, undefined, 2)]) {
          const { exceeded, values } = runSync(measureJson(body, { ...bounds, depth: depthOf(value) }))
          assert.isUndefined(exceeded)
          assert.strictEqual(values, valuesOf(value))
          assert.strictEqual(runSync(measureJson(body, { ...bounds, depth: depthOf(value) - 1 })).exceeded, "depth")
          assert.strictEqual(runSync(measureJson(body, { ...bounds, values: values - 1 })).exceeded, "values")
        }
      }
    ))
  })

  it("counts the keys of each object alone", () => {
    const object = (keys: number) => `{${Array.from({ length: keys }, (_, i) => `"${i}":0`).join(",")}}`
    assert.isUndefined(measured(`[${object(mostObjectKeys)},${object(mostObjectKeys)}]`).exceeded)
    assert.strictEqual(measured(`[${object(mostObjectKeys + 1)}]`).exceeded, "keys")
  })

  it("names the top-level field in which a bound is exceeded", () => {
    const most = { depth: 3, values: 8 }
    const field = (text: string) => runSync(measureJson(text, most)).field
    assert.strictEqual(field("{\"a\":[1],\"\\u0062\":{\"c\":[{}]}}"), "b")
    assert.strictEqual(field("{\"a\":1,\"b\":{\"c\":[1,2,3,4,5,6,7,8]}}"), "b")
    assert.isUndefined(field(`{"${"a".repeat(300)}":[[[]]]}`))
    assert.isUndefined(field("[[[[]]]]"))
    assert.isUndefined(field("{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1}"))
  })

  it("reads text that is no JSON in one pass too", () => {
    for (const text of ["\"" + "\\\"".repeat(100_000), "\"unterminated [[[", "]".repeat(100), "]:[:,".repeat(100)]) {
      assert.isUndefined(measured(text).exceeded)
    }
  })

  it("runs in slices", () => {
    for (const body of [`[${"[1,2,3],".repeat(1_000_000)}1]`, `[${"[[]],\"\\\"\",".repeat(800_000)}1]`]) {
      let slices = 0
      for (const { chars } of measureJson(body, { depth: 3, values: Infinity })) {
        assert.isBelow(chars, sliceChars + 110_000)
        slices++
      }
      assert.isAtLeast(slices, Math.floor(body.length / (sliceChars + 110_000)))
    }
  })
})
