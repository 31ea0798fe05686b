/** The usage services in memory, for tests that compose their own services. */
import * as Layer from "effect/Layer"
import { UsageRecorder } from "../../src/completion/UsageRecorder.ts"
import { KeyLimits } from "../../src/usage/KeyLimits.ts"
import { UsageStore } from "../../src/usage/UsageStore.ts"

export const usageInMemory = Layer.merge(KeyLimits.layer, UsageRecorder.layer).pipe(
  Layer.provide(UsageStore.layerMemory)
)
