/**
 * What the errors of the hour are for.
 */
import { assert, describe, it } from "@effect/vitest"
import { mostlyFor } from "../../../src/web/pages/overview/errors.ts"

const error = (
  fault: "caller" | "upstream",
  counts: { readonly key?: number; readonly model?: number; readonly upstream?: number }
) => {
  const most = (noun: keyof typeof counts) =>
    counts[noun] === undefined ? null : { value: `a ${noun}`, name: null, count: counts[noun] }
  return {
    code: "c",
    fault,
    count: 10,
    last_at: 0,
    last_request_id: "r",
    key: most("key"),
    model: most("model"),
    upstream: most("upstream")
  }
}

describe("what most errors are for", () => {
  it("is the key, model or upstream with the greatest share", () => {
    assert.deepInclude(mostlyFor(error("upstream", { key: 8, model: 5, upstream: 6 })), { noun: "key", count: 8 })
    assert.deepInclude(mostlyFor(error("caller", { key: 3, model: 9 })), { noun: "model", value: "a model" })
    assert.isUndefined(mostlyFor(error("caller", {})))
  })

  it("is the key of callers' errors, and the upstream of others, where all have the same share", () => {
    const all = { key: 10, model: 10, upstream: 10 }
    assert.strictEqual(mostlyFor(error("caller", all))?.noun, "key")
    assert.strictEqual(mostlyFor(error("upstream", all))?.noun, "upstream")
  })
})
