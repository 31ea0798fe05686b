/** `limits.buffered_bytes` over all requests: a whole reply is cut at the limit, and a new one is rejected beyond it. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Context } from "effect"
import { CurrentBufferedBytes } from "../../src/config/limits.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { chat } from "./support.ts"

let gateway: RunningGateway
const most = 64 * 1024 * 1024
const letters = `!repeat 100 ${"x".repeat(1000)}`

afterEach(async () => {
  await gateway.stop()
})

describe("whole replies and limits.buffered_bytes", () => {
  it("a reply is complete up to the limit, cut at it, and rejected with 429 above it", async () => {
    gateway = await startGateway({ limits: { buffered_bytes: most } })
    const sum = Context.get(gateway.services, CurrentBufferedBytes)
    const ask = async (others: number) => {
      sum.used = others
      const said = await chat(gateway.url, letters)
      assert.strictEqual(sum.used, others)
      return said
    }
    const whole = await ask(most - 200_000)
    assert.deepInclude(whole, { status: 200, finish: "stop" })
    assert.lengthOf(whole.text, 100_000)

    const cut = await ask(most - 199_999)
    assert.deepInclude(cut, { status: 200, finish: "length" })
    assert.isAbove(cut.text.length, 90_000)
    assert.isBelow(cut.text.length, 100_000)

    const refused = await ask(most + 1)
    assert.deepInclude(refused, { status: 429, retryAfter: "5" })
    assert.strictEqual(refused.error?.code, "rate_limit_exceeded")
    assert.include(refused.error?.message, "too many large requests")
  })
})
