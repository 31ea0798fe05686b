/** Who has to act on an error. */
import { assert, describe, it } from "@effect/vitest"
import { rules } from "../../src/domain/failureRules.ts"
import { faultOf } from "../../src/domain/fault.ts"
import { errorTable } from "../../src/domain/GatewayError.ts"

const failed = { cause: undefined, direct: false, admitted: true }

describe("the fault of an error", () => {
  it("is known for every error code and every class of upstream failures", () => {
    for (const error of Object.keys(errorTable)) assert.isDefined(faultOf({ ...failed, error }), error)
    for (const rule of rules) {
      assert.isDefined(faultOf({ ...failed, error: rule.code, cause: rule.class }), rule.class)
    }
    assert.isUndefined(faultOf({ ...failed, error: "unheard_of" }))
  })

  it("comes from the failed try, which says more than the code", () => {
    assert.strictEqual(faultOf({ ...failed, error: "upstream_rate_limited", cause: "overloaded" }), "upstream")
    assert.strictEqual(faultOf({ ...failed, error: "upstream_rate_limited", cause: "quota_exhausted" }), "account")
    assert.strictEqual(faultOf({ ...failed, error: "model_not_found" }), "caller")
    assert.strictEqual(faultOf({ ...failed, error: "model_not_found", cause: "model_unavailable" }), "upstream")
    assert.strictEqual(faultOf({ ...failed, error: "upstream_error", cause: "endpoint_missing" }), "gateway")
  })

  it("of a limit is the caller's at the key, and the gateway's in the queue", () => {
    assert.strictEqual(faultOf({ ...failed, error: "rate_limit_exceeded", admitted: false }), "caller")
    assert.strictEqual(faultOf({ ...failed, error: "rate_limit_exceeded" }), "gateway")
  })

  it("of a caller's own token is the caller's", () => {
    assert.strictEqual(
      faultOf({ ...failed, error: "authentication_failed", cause: "token_refused", direct: true }),
      "caller"
    )
    assert.strictEqual(
      faultOf({ ...failed, error: "upstream_rate_limited", cause: "rate_limited", direct: true }),
      "caller"
    )
  })
})
