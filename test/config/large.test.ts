import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { CurrentSliceWatch } from "../../src/config/clock/cooperative.ts"
import { sliceChars, sliceItems, type SliceSize } from "../../src/domain/stream/cooperative.ts"
import { sized } from "../support/effort.ts"
import { configFile, NodeServices, readJson, startStore } from "./support.ts"

/** A hundred thousand in a whole run. */
const count = sized(100_000)

const account = (index: number) =>
  index % 3 === 0
    ? { email: `user${index}@example.test`, password: `password-${index}` }
    : index % 3 === 1
    ? { mobile: `138${String(index).padStart(8, "0")}`, password: `password-${index}` }
    : { token: `token-${index}-${"x".repeat(40)}` }

/** Runs `self` and returns its result and how often the accounts were processed in slices of bounded size. */
const sliced = <A, E, R>(self: Effect.Effect<A, E, R>) => {
  const slices: Array<SliceSize> = []
  return self.pipe(
    Effect.provideService(CurrentSliceWatch, (size) => void slices.push(size)),
    Effect.map((value) => {
      for (const { chars, items } of slices) {
        assert.isAtMost(items, 2 * sliceItems)
        assert.isAtMost(chars, 2 * sliceChars)
      }
      return { value, passes: Math.round(slices.reduce((sum, { items }) => sum + items, 0) / count) }
    })
  )
}

describe("a configuration with many accounts", () => {
  it.live("is imported, hashed and loaded in slices", () =>
    Effect.gen(function*() {
      const path = yield* configFile({ keys: ["k"] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      const accounts = Array.from({ length: count }, (_, index) => account(index))
      const imported = yield* sliced(store.importConfig({ accounts }, "merge"))
      assert.strictEqual(imported.value.imported_accounts, count)
      assert.isAtLeast(imported.passes, 3)

      const more = yield* sliced(store.importConfig({ accounts: [{ email: "one@more.test" }], keys: ["l"] }, "merge"))
      assert.strictEqual(more.value.config.accounts.length, count + 1)
      assert.isAtLeast(more.passes, 3)
      const hashed = yield* sliced(store.configHash)
      assert.isAtLeast(hashed.passes, 1)

      const again = yield* sliced(startStore({ GATEWAY_CONFIG_PATH: path }))
      assert.isAtLeast(again.passes, 1)
      assert.strictEqual((yield* again.value.current).accounts.length, count + 1)
      assert.strictEqual(yield* again.value.configHash, hashed.value)
    }).pipe(Effect.provide(NodeServices.layer)))

  it.live("is rejected as a whole for one invalid account", () =>
    Effect.gen(function*() {
      const path = yield* configFile({ keys: ["k"] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      const accounts = Array.from({ length: count }, (_, index) => index === count - 1 ? { email: 1 } : account(index))
      const refused = yield* sliced(Effect.flip(store.importConfig({ accounts }, "replace")))
      assert.strictEqual(refused.value.message, `accounts[${count - 1}].email must be a string`)
      assert.isAtLeast(refused.passes, 1)
      assert.deepStrictEqual(yield* readJson(path), { keys: ["k"] })
    }).pipe(Effect.provide(NodeServices.layer)))
})
