import { assert, describe, it } from "@effect/vitest"
import { type Envelope, type EnvelopeFacts, readEnvelope } from "../../../src/contracts/session/envelope.ts"

const refused = (facts: EnvelopeFacts): Envelope => ({ _tag: "Refused", facts })
const body = (value: unknown) => JSON.stringify(value)

describe("readEnvelope", () => {
  it("gives the data of an accepted call", () => {
    assert.deepStrictEqual(
      readEnvelope(200, body({ code: 0, msg: "", data: { biz_code: 0, biz_msg: "", biz_data: { id: 1 } } })),
      { _tag: "Accepted", data: { id: 1 } }
    )
    assert.deepStrictEqual(readEnvelope(200, body({ code: 0, data: { biz_code: 0, biz_data: null } })), {
      _tag: "Accepted",
      data: {}
    })
  })

  it("reads refusals under every HTTP status", () => {
    for (const status of [200, 401, 500]) {
      assert.deepStrictEqual(
        readEnvelope(status, body({ code: 40003, msg: "expired", data: null })),
        refused({ kind: "refused", code: 40003, message: "expired" })
      )
      assert.deepStrictEqual(
        readEnvelope(status, body({ code: 0, msg: "outer", data: { biz_code: 6, biz_msg: "busy" } })),
        refused({ kind: "refused", bizCode: 6, message: "busy" })
      )
    }
    assert.deepStrictEqual(readEnvelope(200, body({ code: 42900 })), refused({ kind: "refused", code: 42900 }))
    assert.deepStrictEqual(readEnvelope(200, body({ code: "40001" })), refused({ kind: "refused", code: 40001 }))
  })

  it("recognizes bodies that are not envelopes", () => {
    const malformed = [
      "<html></html>",
      "{\"code\":0",
      "null",
      "[]",
      "{}",
      body({ code: 0, data: null }),
      body({ code: 0 }),
      body({ code: 0, data: {} }),
      body({ code: "x", data: { biz_code: 0 } }),
      body({ error: "no" })
    ]
    for (const text of malformed) assert.deepStrictEqual(readEnvelope(200, text), refused({ kind: "malformed" }), text)
    assert.deepStrictEqual(readEnvelope(200, " \n"), refused({ kind: "empty" }))
  })

  it("does not take success from a reply whose status denies it", () => {
    assert.deepStrictEqual(
      readEnvelope(502, body({ code: 0, data: { biz_code: 0, biz_data: {} } })),
      refused({ kind: "malformed" })
    )
  })
})
