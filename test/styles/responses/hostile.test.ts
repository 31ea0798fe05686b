import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { brokenBodies } from "../../support/hostile.ts"

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({ embeddings: { provider: "mock" } })
})
afterAll(() => gateway.stop())

describe.each(["/v1/responses", "/v1/embeddings"])("%s", (path) => {
  it.each(brokenBodies)("refuses a body that is $name", async ({ body }) => {
    const response = await fetch(`${gateway.url}${path}`, {
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
    const response = await fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "text/plain" },
      body: JSON.stringify({ model: "gpt-5", input: "Hi" })
    })
    assert.strictEqual(response.status, 200)
    await response.text()
  })
})
