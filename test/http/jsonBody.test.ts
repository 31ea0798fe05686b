import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { depthLimit, fieldName, nestsTooDeep } from "../../src/http/jsonBody.ts"

const depth = (value: unknown): number =>
  typeof value !== "object" || value === null ? 0 : 1 + Math.max(0, ...Object.values(value).map(depth))

describe("the depth of a body", () => {
  it("is refused just past the limit", () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels)
    assert.isFalse(nestsTooDeep(nested(depthLimit)))
    assert.isTrue(nestsTooDeep(nested(depthLimit + 1)))
    assert.isTrue(nestsTooDeep("{\"a\":".repeat(depthLimit + 1)))
  })

  it("does not count brackets in strings", () => {
    fc.assert(fc.property(fc.json(), fc.string({ unit: fc.constantFrom("[", "{", "\\", "\"", "a") }), (json, text) => {
      const body = JSON.stringify([text.repeat(300), JSON.parse(json)])
      assert.strictEqual(nestsTooDeep(body), depth(JSON.parse(body)) > depthLimit)
    }))
  })

  it("is read in one pass over broken text too", () => {
    assert.isFalse(nestsTooDeep("\"" + "\\\"".repeat(100_000)))
    assert.isFalse(nestsTooDeep("\"unterminated [[["))
  })
})

describe("a field's name", () => {
  it("is written as callers write it", () => {
    assert.strictEqual(fieldName(["messages", 0, "content", 1, "text"]), "messages[0].content[1].text")
    assert.strictEqual(fieldName(["model"]), "model")
  })
})
