import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { UsageStore } from "../../src/usage/UsageStore.ts"
import { type Made, storeSuite } from "./storeSuite.ts"
import { sqliteStore, usageFile } from "./support.ts"

const inMemory: Made = Effect.gen(function*() {
  const store = Context.get(yield* Layer.build(UsageStore.layerMemory), UsageStore)
  return { store, restarted: Effect.succeed(store) }
})

const inFile: Made = Effect.gen(function*() {
  const file = yield* usageFile
  const first = yield* Scope.make()
  return {
    store: yield* Scope.provide(sqliteStore({ file }), first),
    restarted: Effect.andThen(Scope.close(first, Exit.void), sqliteStore({ file }))
  }
}).pipe(Effect.orDie)

storeSuite("memory", inMemory, { counts: true })
storeSuite("sqlite", inFile, { counts: true })
