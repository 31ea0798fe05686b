import { it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { makeMemoryStore } from "../../src/usage/memoryStore.ts"
import { UsageStore } from "../../src/usage/UsageStore.ts"
import { type Made, manyAgents, storeSuite } from "./storeSuite.ts"
import { sqliteStore, usageFile } from "./support.ts"

const inMemory: Made = Effect.gen(function*() {
  const store = Context.get(yield* Layer.build(UsageStore.layerMemory), UsageStore)
  return { store, restarted: Effect.succeed(store) }
})

const inFile = (mostSessions?: number): Made =>
  Effect.gen(function*() {
    const file = yield* usageFile
    const first = yield* Scope.make()
    return {
      store: yield* Scope.provide(sqliteStore({ file, mostSessions }), first),
      restarted: Effect.andThen(Scope.close(first, Exit.void), sqliteStore({ file }))
    }
  }).pipe(Effect.orDie)

const smallMemory: Made = Effect.map(makeMemoryStore({ mostSessions: 3 }), (store) => ({
  store,
  restarted: Effect.succeed(store)
}))

it.effect("the sqlite usage store bounds the agents of a session, and counts the requests of all", () =>
  manyAgents(inFile()))

storeSuite("memory", inMemory, { counts: true, small: smallMemory })
storeSuite("sqlite", inFile(), { counts: true, small: inFile(3) })
