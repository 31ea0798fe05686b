import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema, Scope } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { CurrentBufferedBytes, CurrentLimits } from "../../src/config/limits.ts"
import { fieldName } from "../../src/domain/GatewayError.ts"
import { defaultLimits } from "../../src/domain/limits.ts"
import { runSync, sliceChars } from "../../src/domain/stream/cooperative.ts"
import * as Limits from "../../src/http/bodyLimits.ts"
import { openaiErrors } from "../../src/http/errorShapes.ts"
import { jsonBody } from "../../src/http/jsonBody.ts"
import { errorResponse } from "../../src/http/reply.ts"

const depthLimit = defaultLimits.depth
const nestsTooDeep = (text: string) => runSync(Limits.nestsTooDeep(text, depthLimit))

const depth = (value: unknown): number =>
  typeof value !== "object" || value === null ? 0 : 1 + Math.max(0, ...Object.values(value).map(depth))

describe("the check of a body's depth", () => {
  it("refuses a body one level above the limit", () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels)
    assert.isFalse(nestsTooDeep(nested(depthLimit)))
    assert.isTrue(nestsTooDeep(nested(depthLimit + 1)))
    assert.isTrue(nestsTooDeep("{\"a\":".repeat(depthLimit + 1)))
  })

  it("ignores brackets in strings", () => {
    fc.assert(fc.property(fc.json(), fc.string({ unit: fc.constantFrom("[", "{", "\\", "\"", "a") }), (json, text) => {
      const body = JSON.stringify([text.repeat(300), JSON.parse(json)])
      assert.strictEqual(nestsTooDeep(body), depth(JSON.parse(body)) > depthLimit)
    }))
  })

  it("reads invalid JSON in one pass too", () => {
    assert.isFalse(nestsTooDeep("\"" + "\\\"".repeat(100_000)))
    assert.isFalse(nestsTooDeep("\"unterminated [[["))
  })

  it("runs in slices", () => {
    for (
      const body of [
        "[1,2,3],".repeat(1_000_000),
        "[[]],\"\\\"\",".repeat(800_000)
      ]
    ) {
      let slices = 0
      for (const { chars } of Limits.nestsTooDeep(body, depthLimit)) {
        assert.isBelow(chars, sliceChars + 110_000)
        slices++
      }
      assert.isAtLeast(slices, Math.floor(body.length / (sliceChars + 110_000)))
    }
  })
})

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
