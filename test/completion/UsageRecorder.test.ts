import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeRequestStats } from "../../src/completion/RequestStats.ts"
import { UsageRecorder } from "../../src/completion/UsageRecorder.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { usageInMemory } from "../support/usage.ts"

const usage = {
  promptTokens: 3,
  cachedTokens: 0,
  completionTokens: 2,
  reasoningTokens: 0
}

describe("the usage recorder", () => {
  it.effect("stores the reply's tokens in the stats, and drops the machine that counted them", () =>
    Effect.gen(function*() {
      const { ended } = yield* UsageRecorder
      const stats = makeRequestStats("req_a", 0)
      stats.soFar = { usage: () => usage, estimated: () => false }
      ended(stats)
      assert.deepStrictEqual(stats.usage, usage)
      assert.isUndefined(stats.soFar)
    }).pipe(Effect.provide(Layer.provide(usageInMemory, ConfigStore.layerJson()))))
})
