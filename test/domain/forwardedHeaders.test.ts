import { assert, describe, it } from "@effect/vitest"
import { ForwardedHeaders, forwardRule } from "../../src/domain/forwardedHeaders.ts"

describe("headers that a pattern forwards", () => {
  const forwarded = new ForwardedHeaders(["x-*", "trace"])

  it("have none that the connection names, and no credential", () => {
    const secrets = [
      "x-auth-token",
      "x-amz-security-token",
      "x-csrf-token",
      "x-xsrf-token",
      "x-api-key",
      "x-gateway-key"
    ]
    assert.deepStrictEqual(
      forwarded.of({
        connection: "Keep-Alive, X-Hop ,trace",
        trace: "1",
        "x-hop": "2",
        "x-team": "3",
        ...Object.fromEntries(secrets.map((name) => [name, "secret"]))
      }),
      { "x-team": "3" }
    )
    assert.deepStrictEqual(forwarded.of({ trace: "1", "x-hop": "2" }), { trace: "1", "x-hop": "2" })
    for (const name of secrets) assert.match(forwardRule(name) ?? "", /never go to a server/)
  })
})
