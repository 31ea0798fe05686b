/**
 * A process that counts requests in a given file: some requests, then a second of its clock, repeatedly. After each second it
 * prints the number of requests.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { UsageStore } from "../../../src/usage/UsageStore.ts"
import { entry, start } from "../support.ts"

const count = Effect.gen(function*() {
  yield* TestClock.setTime(start)
  const layer = UsageStore.layerSqlite({ file: process.argv[2]! }).pipe(Layer.provide(NodeServices.layer))
  const store = Context.get(yield* Layer.build(layer), UsageStore)
  let counted = (yield* store.counters(entry().key, start)).windows.month.requests
  for (;;) {
    for (let i = 0; i < 100; i++) store.add(entry({ model: `model ${i}` }))
    counted += 100
    yield* TestClock.adjust("1 second")
    // A full pipe is waited for.
    yield* Effect.callback<void>((resume) => {
      process.stdout.write(`${counted}\n`, () => resume(Effect.void))
    })
  }
})

await Effect.runPromise(count.pipe(Effect.scoped, Effect.provide(TestClock.layer())))
