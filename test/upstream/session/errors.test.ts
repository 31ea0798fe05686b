import { assert, describe, it } from "@effect/vitest"
import { readRefusal } from "../../../src/contracts/session/errors.ts"
import type { FailurePhase, Refusal } from "../../../src/domain/UpstreamFailure.ts"

const all: ReadonlyArray<FailurePhase> = ["login", "session", "completion", "stream", "resume"]
const afterLogin = all.filter((phase) => phase !== "login")
const inReply = afterLogin.filter((phase) => phase !== "session")

const codes: ReadonlyArray<readonly [number, Refusal]> = [
  [40001, "token"],
  [40002, "token"],
  [40003, "token"],
  [42900, "rate"],
  [50000, "other"]
]

const bizCodes: ReadonlyArray<readonly [number, Refusal, phases: ReadonlyArray<FailurePhase>]> = [
  [1, "other", all],
  [2, "login", ["login"]],
  [3, "lost_session", afterLogin],
  [5, "suspended", ["login"]],
  [6, "busy", inReply],
  [9, "length", inReply],
  [77, "other", all]
]

describe("readRefusal", () => {
  it.each(codes)("gives the code %i one meaning in every call: %s", (code, refusal) => {
    for (const phase of all) {
      assert.deepStrictEqual(readRefusal(phase, { kind: "refused", code, message: "no" }), {
        kind: "refused",
        message: "no",
        refusal
      })
    }
  })

  it.each(bizCodes)("gives the biz_code %i the meaning %s in the calls that have it", (bizCode, refusal, phases) => {
    for (const phase of all) {
      const meaning = phases.includes(phase) ? refusal : "other"
      assert.deepStrictEqual(readRefusal(phase, { kind: "refused", bizCode }), { kind: "refused", refusal: meaning })
    }
  })

  it("states no refusal for a body that is not an envelope", () => {
    assert.deepStrictEqual(readRefusal("completion", { kind: "malformed" }), { kind: "malformed" })
  })
})
