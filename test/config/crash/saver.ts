/**
 * A process that only saves: it adds one key after another to the file of `GATEWAY_CONFIG_PATH`, and prints each one after
 * its change was acknowledged.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { writeSync } from "node:fs"
import { ConfigStore } from "../../../src/config/ConfigStore.ts"
import { Environment } from "../../../src/config/Environment.ts"
import { addKey } from "../support.ts"

const save = Effect.gen(function*() {
  const store = yield* ConfigStore
  const first = (yield* store.current).configured_keys.length
  for (let index = first;; index++) {
    yield* addKey(store, `key-${index}`)
    writeSync(1, `key-${index}\n`)
  }
})

await Effect.runPromise(
  Effect.provide(save, ConfigStore.layer.pipe(Layer.provide(Environment.layer), Layer.provide(NodeServices.layer)))
)
