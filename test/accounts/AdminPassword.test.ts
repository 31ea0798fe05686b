import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer } from "effect"
import { AdminPassword, hashPassword } from "../../src/accounts/AdminPassword.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"

const withPassword = Effect.fnUntraced(function*(password: string) {
  const hash = yield* hashPassword(password)
  const config = ConfigStore.layerJson({ keys: ["k"], admin: { password_hash: hash } }, { adminKey: "the-admin-key" })
  return { hash, layer: Layer.provide(AdminPassword.layer, config) }
})

describe("the scrypt check of a password", () => {
  it.effect("holds its permit until scrypt has finished, even if the caller is interrupted", () =>
    Effect.gen(function*() {
      const { hash, layer } = yield* withPassword("the password")
      yield* Effect.gen(function*() {
        const { verify } = yield* AdminPassword
        const fiber = yield* Effect.forkChild(verify("a guess", hash, true), { startImmediately: true })
        fiber.interruptUnsafe()
        // The interrupted check still runs in node's threads, so that another one would exceed the limit.
        assert.isUndefined(fiber.pollUnsafe())
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
        assert.isTrue(yield* verify("the password", hash, true))
      }).pipe(Effect.provide(layer))
    }))

  it.effect("joins the waiting checks only when its effect runs", () =>
    Effect.gen(function*() {
      const { layer } = yield* withPassword("the password")
      yield* Effect.gen(function*() {
        const { isPassword } = yield* AdminPassword
        const left = Array.from({ length: 100 }, (_, i) => isPassword(`token ${i}`))
        assert.lengthOf(left, 100)
        assert.isTrue(yield* isPassword("the password"))
      }).pipe(Effect.provide(layer))
    }))
})
