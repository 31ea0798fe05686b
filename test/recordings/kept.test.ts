/** A finished request leaves its record, and no object that served it. */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import type { ServerResponse } from "node:http"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"

let gateway: RunningGateway
const channel = "http.server.request.start"
/** Every response of the process since the start of the test. */
const responses: Array<WeakRef<ServerResponse>> = []
const note = (message: unknown) => {
  responses.push(new WeakRef((message as { readonly response: ServerResponse }).response))
}
beforeAll(async () => {
  gateway = await startGateway()
  subscribe(channel, note)
})
afterAll(() => {
  unsubscribe(channel, note)
  return gateway.stop()
})

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

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
  collect()
  assert.isAtLeast(responses.length, asked)
  // Each of the few connections keeps its last response.
  assert.isBelow(responses.filter((each) => each.deref() !== undefined).length, asked / 2)
})
