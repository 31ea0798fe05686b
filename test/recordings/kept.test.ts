/** A finished request leaves its record, and no object that served it. */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { ServerResponse } from "node:http"
import { queryObjects } from "node:v8"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

it("a request's record does not keep the connection of its response alive", async () => {
  const asked = 40
  for (let i = 0; i < asked; i++) {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({
        model: "gpt-4o",
        stream: i % 2 === 0,
        messages: [{ role: "user", content: "!say hello" }]
      })
    })
    assert.include(await response.text(), "hello")
  }
  // Each of the few connections keeps its last response.
  assert.isBelow(queryObjects(ServerResponse, { format: "count" }), asked / 2)
})
