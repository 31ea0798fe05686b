/**
 * What the tests over all styles share: a gateway for a file of tests, and the requests that they make of it.
 */
import { afterAll, beforeAll } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { RawConfig } from "../../src/config/json.ts"
import type { JsonSchema } from "../../src/domain/Conversation.ts"
import type { AskTool } from "../support/styleClients.ts"
import { webGateway } from "../support/webGateway.ts"

export const base = "http://gateway"

/** A gateway without a socket that stands while the file's tests run. All styles may ask it both ways at once. */
export const useGateway = (config: RawConfig = {}): typeof globalThis.fetch => {
  const scope = Scope.makeUnsafe()
  let fetch: typeof globalThis.fetch
  beforeAll(async () => {
    fetch = await Effect.runPromise(
      Scope.provide(webGateway({ runtime: { account_max_inflight: 8 }, ...config }), scope)
    )
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return (input, init) => fetch(input, init)
}

/** Lets the test's clock run until a fiber is done: a second at a time, so that what each brings can be sent and read. */
export const letTimePass = Effect.fnUntraced(function*<A>(fiber: Fiber.Fiber<A>) {
  for (let seconds = 0; fiber.pollUnsafe() === undefined && seconds < 300; seconds++) {
    yield* TestClock.adjust("1 second")
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
  return yield* Fiber.join(fiber)
})

export const citySchema: JsonSchema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false
}

export const tools: ReadonlyArray<AskTool> = ["get_weather", "get_time"].map((name) => ({
  name,
  description: `Knows: ${name}`,
  parameters: citySchema
}))

export const lines = (...all: ReadonlyArray<string>) => all.join("\n")
export const callOslo = `!call get_weather {"city":"Oslo"}`
export const callRome = `!call get_time {"city":"Rome"}`
