import { assert, describe, it } from "@effect/vitest"
import { BodyPace } from "../../src/http/BodyPace.ts"

const limits = { body_seconds: 30, body_bytes_per_second: 1000, body_total_seconds: 600 }

/** Sends so many bytes every so many milliseconds; returns the waited milliseconds and the error. */
const sends = (bytes: number, millis: number) => {
  const pace = new BodyPace(limits)
  let waited = 0
  while (millis < pace.patience) {
    pace.arrived(bytes, millis)
    waited += millis
  }
  const { code, message } = pace.fault
  assert.strictEqual(code, "request_timeout")
  return { failsAt: waited + pace.patience, message }
}

describe("the pace of a request body", () => {
  it("fails after body_seconds of silence", () => {
    assert.deepStrictEqual(sends(1_000_000, 30_000), {
      failsAt: 30_000,
      message: "The request body did not arrive: nothing came for 30 seconds"
    })
  })

  it("fails below body_bytes_per_second after body_seconds, each 1000 bytes later by a second", () => {
    const message = "The request body arrived with less than 1000 bytes a second"
    assert.deepStrictEqual(sends(1, 2000), { failsAt: 30_015, message })
    assert.deepStrictEqual(sends(500, 1000), { failsAt: 59_000, message })
  })

  it("fails after body_total_seconds however fast it arrives", () => {
    assert.deepStrictEqual(sends(1000, 1000), {
      failsAt: 600_000,
      message: "The request body did not arrive within 600 seconds"
    })
  })
})
