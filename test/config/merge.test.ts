import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import type { RawConfig } from "../../src/config/json.ts"
import { mergeConfigs } from "../../src/config/merge.ts"

const merge = (base: RawConfig, ours: RawConfig, theirs: RawConfig) => Effect.runSync(mergeConfigs(base, ours, theirs))

const names: ReadonlyArray<string> = ["a", "b", "c", "d", "e"]
const keys = fc.uniqueArray(fc.constantFrom(...names))
const account = fc.record({ email: fc.constantFrom("x", "y", "z"), password: fc.constantFrom("1", "2", "3") })
const config: fc.Arbitrary<RawConfig> = fc.record({
  keys,
  accounts: fc.uniqueArray(account, { selector: (entry) => entry.email }),
  runtime: fc.record(
    { account_max_inflight: fc.integer({ min: 1, max: 3 }), account_max_queue: fc.integer({ min: 1, max: 3 }) },
    { requiredKeys: [] }
  ),
  unknown: fc.oneof(fc.constant(1), fc.constant({ deep: [1, 2] }))
}, { requiredKeys: ["keys", "accounts"] })

const listed = (value: RawConfig[string] | undefined): ReadonlyArray<RawConfig[string]> =>
  Array.isArray(value) ? value : []

/** Equality without the order of keys and accounts, which a merge does not guarantee. */
const assertSame = (actual: RawConfig, expected: RawConfig) => {
  assert.sameDeepMembers([...listed(actual["keys"])], [...listed(expected["keys"])])
  assert.sameDeepMembers([...listed(actual["accounts"])], [...listed(expected["accounts"])])
  assert.deepStrictEqual({ ...actual, keys: [], accounts: [] }, { ...expected, keys: [], accounts: [] })
}

describe("mergeConfigs", () => {
  it("takes the side that changed when the other did not", () => {
    fc.assert(fc.property(config, config, (base, changed) => {
      assertSame(merge(base, changed, base), changed)
      assertSame(merge(base, base, changed), changed)
      assertSame(merge(base, changed, changed), changed)
    }))
  })

  it("keeps every key that a side added and drops every key that a side removed", () => {
    fc.assert(fc.property(keys, keys, keys, (base, ours, theirs) => {
      const merged = merge({ keys: base }, { keys: ours }, { keys: theirs })["keys"]
      const expected = names.filter((key) =>
        base.includes(key) ? ours.includes(key) && theirs.includes(key) : ours.includes(key) || theirs.includes(key)
      )
      assert.sameMembers([...listed(merged)], expected)
    }))
  })

  it("keeps the order of the side that changed it, with the additions of both", () => {
    const order = (base: RawConfig, ours: RawConfig, theirs: RawConfig) =>
      Object.keys(merge({ upstreams: base }, { upstreams: ours }, { upstreams: theirs })["upstreams"]!)
    const base = { a: 1, b: 2, c: 3 }
    assert.deepStrictEqual(order(base, { c: 3, a: 1, b: 2 }, base), ["c", "a", "b"])
    assert.deepStrictEqual(order(base, base, { c: 3, a: 1, b: 2 }), ["c", "a", "b"])
    assert.deepStrictEqual(order(base, { c: 3, a: 1, b: 2 }, { a: 1, b: 2, c: 4, d: 5 }), ["c", "a", "b", "d"])
    assert.deepStrictEqual(order(base, { a: 1, b: 2, c: 4, d: 5 }, { c: 3, a: 1 }), ["c", "a", "d"])
    assert.deepStrictEqual(order(base, { c: 3, b: 2, a: 1 }, { c: 3, a: 1, b: 2 }), ["c", "a", "b"])
  })

  it("tells accounts of several upstreams apart", () => {
    const [first, second] = [{ email: "x", upstream: "gpu" }, { email: "x", upstream: "hosted" }]
    const merged = merge({ accounts: [] }, { accounts: [first] }, { accounts: [second] })
    assert.sameDeepMembers([...listed(merged["accounts"])], [first, second])
  })

  it("refuses to choose between two values, or between a change and a removal", () => {
    const refusal = (base: RawConfig, ours: RawConfig, theirs: RawConfig) =>
      Effect.runSync(Effect.flip(mergeConfigs(base, ours, theirs))).message.split(": ")[1]
    assert.strictEqual(refusal({ a: { b: 1 } }, { a: { b: 2 } }, { a: { b: 3 } }), "a.b")
    assert.strictEqual(refusal({ a: [1] }, { a: [2] }, { a: [] }), "a")
    assert.strictEqual(refusal({ a: 1 }, {}, { a: 2 }), "a")
    assert.strictEqual(refusal({}, { a: { b: 1 }, c: 1 }, { a: { b: 2 }, c: 2 }), "a.b, c")
    assert.strictEqual(
      refusal(
        { accounts: [{ mobile: "13800138000", password: "1" }] },
        { accounts: [] },
        { accounts: [{ mobile: "+8613800138000", password: "2" }] }
      ),
      "accounts[+8613800138000]"
    )
  })
})
