import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema, Scope } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { CurrentBufferedBytes, CurrentLimits } from "../../src/config/limits.ts"
import { openaiErrors } from "../../src/contracts/shared/openaiErrors.ts"
import { fieldName } from "../../src/domain/GatewayError.ts"
import { defaultLimits } from "../../src/domain/limits.ts"
import { mostObjectKeys } from "../../src/domain/stream/measureJson.ts"
import { jsonBody } from "../../src/http/jsonBody.ts"
import { errorResponse } from "../../src/http/reply.ts"

describe("the bodies held at the same time", () => {
  const KiB = 1024
  const read = jsonBody(Schema.String)

  /** A request whose body, a JSON string, has this many bytes. */
  const request = (bytes: number, headers: Record<string, string> = {}) =>
    HttpServerRequest.fromWeb(
      new Request("http://gateway.internal/", { method: "POST", headers, body: JSON.stringify("x".repeat(bytes - 2)) })
    )

  it.effect("are bounded together by the received bytes until their requests are over", () => {
    const budget = { used: 0 }
    return Effect.gen(function*() {
      const first = yield* Scope.make()
      yield* Scope.provide(read(request(700 * KiB)), first)
      assert.strictEqual(budget.used, 700 * KiB)
      const refused = yield* Effect.flip(Effect.scoped(read(request(400 * KiB))))
      assert.strictEqual(refused.code, "rate_limit_exceeded")
      assert.strictEqual(refused.retryAfter, 5)
      assert.strictEqual(budget.used, 700 * KiB)
      yield* Scope.close(first, Exit.void)
      assert.strictEqual((yield* Effect.scoped(read(request(400 * KiB)))).length, 400 * KiB - 2)
      assert.strictEqual(budget.used, 0)
    }).pipe(
      Effect.provideService(CurrentBufferedBytes, budget),
      Effect.provideService(CurrentLimits, () => ({ ...defaultLimits, buffered_bytes: 1024 * KiB }))
    )
  })

  it.effect("count only above the size that node buffers anyway", () => {
    const budget = { used: 0 }
    const declared = (bytes: number) => Effect.scoped(read(request(bytes, { "content-length": String(bytes) })))
    return Effect.gen(function*() {
      assert.strictEqual((yield* declared(64 * KiB)).length, 64 * KiB - 2)
      assert.strictEqual((yield* Effect.flip(declared(64 * KiB + 1))).code, "rate_limit_exceeded")
    }).pipe(
      Effect.provideService(CurrentBufferedBytes, budget),
      Effect.provideService(CurrentLimits, () => ({ ...defaultLimits, buffered_bytes: 0 }))
    )
  })
})

describe("the values of a body", () => {
  const read = jsonBody(Schema.Unknown)
  const sent = (body: string) =>
    Effect.scoped(read(HttpServerRequest.fromWeb(new Request("http://gateway.internal/", { method: "POST", body }))))

  it.effect("are refused above limits.values, and the error names the field that has them", () =>
    Effect.gen(function*() {
      const limits = { ...defaultLimits, values: 10_000 }
      const body = (extra: number) => `{"model":"a","x":[${"1,".repeat(9_996 + extra)}1]}`
      const refused = yield* Effect.flip(Effect.provideService(sent(body(1)), CurrentLimits, () => limits))
      assert.strictEqual(refused.status, 400)
      assert.strictEqual(refused.message, "x: has more than the 10000 JSON values that are allowed")
      assert.strictEqual(refused.param, "x")
      yield* Effect.provideService(sent(body(0)), CurrentLimits, () => limits)
    }))

  it.effect("are refused above the keys of one object", () =>
    Effect.gen(function*() {
      const keys = Array.from({ length: mostObjectKeys + 1 }, (_, i) => `"f${i}":1`)
      const refused = yield* Effect.flip(sent(`{"a":{"b":{${keys.join(",")}}}}`))
      assert.strictEqual(refused.message, `a: has an object with more than the ${mostObjectKeys} keys that are allowed`)
      yield* sent(`{"a":{"b":{${keys.slice(1).join(",")}}}}`)
    }))

  it.effect("count with 64 bytes each against limits.buffered_bytes before they are parsed", () => {
    const budget = { used: 0 }
    const body = `[${"{},".repeat(9_999)}{}]`
    return Effect.gen(function*() {
      const refused = yield* Effect.flip(sent(body))
      assert.strictEqual(refused.code, "rate_limit_exceeded")
      assert.deepEqual(refused.cause, { setting: "limits.buffered_bytes" })
      assert.strictEqual(budget.used, 0)
      yield* sent("[{}]")
    }).pipe(
      Effect.provideService(CurrentBufferedBytes, budget),
      Effect.provideService(CurrentLimits, () => ({ ...defaultLimits, buffered_bytes: 1024 * 1024 }))
    )
  })
})

describe("a body that arrives too slowly", () => {
  /** Reads a body of which a byte arrives every so many seconds; returns the seconds until the error. */
  const drip = Effect.fnUntraced(function*(every: number) {
    let more = (): void => {}
    const body = new ReadableStream({
      start(controller) {
        more = () => controller.enqueue(new TextEncoder().encode("\""))
        more()
      }
    })
    const init: RequestInit & { readonly duplex: "half" } = { method: "POST", body, duplex: "half" }
    const request = new Request("http://gateway.internal/", init)
    const reading = yield* Effect.forkChild(
      Effect.flip(Effect.scoped(jsonBody(Schema.String)(HttpServerRequest.fromWeb(request))))
    )
    const settle = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    let waited = 0
    while (reading.pollUnsafe() === undefined && waited < 100) {
      yield* settle
      yield* TestClock.adjust("1 second")
      waited++
      if (waited % every === 0) more()
      yield* settle
    }
    return { error: yield* Fiber.join(reading), waited }
  })

  it.effect("fails with 408 after body_seconds of silence", () =>
    Effect.gen(function*() {
      const { error, waited } = yield* drip(Infinity)
      assert.isAtLeast(waited, defaultLimits.body_seconds)
      assert.strictEqual(error.code, "request_timeout")
      assert.strictEqual(error.status, 408)
      assert.deepEqual(error.cause, { setting: "limits.body_seconds" })
      const response = errorResponse(openaiErrors, error)
      assert.strictEqual(response.headers["connection"], "close")
    }))

  it.effect("fails with 408 below body_bytes_per_second, also without silence", () =>
    Effect.gen(function*() {
      const { error, waited } = yield* drip(2)
      assert.isAtLeast(waited, defaultLimits.body_seconds)
      assert.isAtMost(waited, defaultLimits.body_seconds + 2)
      assert.strictEqual(error.code, "request_timeout")
      assert.deepEqual(error.cause, { setting: "limits.body_bytes_per_second" })
    }))
})

describe("the name of a field in an error", () => {
  it("is written as the caller's path", () => {
    assert.strictEqual(fieldName(["messages", 0, "content", 1, "text"]), "messages[0].content[1].text")
    assert.strictEqual(fieldName(["model"]), "model")
  })
})
