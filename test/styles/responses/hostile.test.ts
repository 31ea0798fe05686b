import { assert, describe, it } from "@effect/vitest"
import { businessKey } from "../../support/gateway.ts"
import { brokenBodies } from "../../support/hostile.ts"
import { base, useGateway } from "../support.ts"

const fetch = useGateway({ embeddings: { provider: "mock" } })

describe.each(["/v1/responses", "/v1/embeddings"])("%s", (path) => {
  it.each(brokenBodies)("refuses a body that is $name", async ({ body }) => {
    const response = await fetch(`${base}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
      body
    })
    assert.strictEqual(response.status, 400)
    const { error } = await response.json() as { error: Record<string, unknown> }
    assert.deepStrictEqual(Object.keys(error), ["message", "type", "code", "param"])
    assert.strictEqual(error["type"], "invalid_request_error")
  })

  it("takes a body whatever its content type says, as long as it is JSON", async () => {
    const response = await fetch(`${base}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "text/plain" },
      body: JSON.stringify({ model: "gpt-5", input: "Hi" })
    })
    assert.strictEqual(response.status, 200)
    await response.text()
  })
})
