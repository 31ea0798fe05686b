/** A driver is added by its folder (`toy`) and a row in each of the two tables of protocols. Everything else follows. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type * as Support from "../support/gateway.ts"
import { replacing } from "../support/replaced.ts"

const modules = replacing({
  "src/contracts/drivers.ts": "test/upstream/toy/drivers.ts",
  "src/upstream/protocols.ts": "test/upstream/toy/protocols.ts"
})

const seen: Array<{ readonly key: unknown; readonly body: unknown }> = []
const server = createServer((request, response) => {
  let text = ""
  request.on("data", (chunk: Buffer) => text += chunk.toString())
  request.on("end", () => {
    seen.push({ key: request.headers["x-toy-key"], body: JSON.parse(text) })
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end("data: Hello\n\ndata:  toy\n\ndata: end\n\n")
  })
})
let gateway: Support.RunningGateway
let businessKey: string
let adminKey: string

beforeAll(async () => {
  const support = await modules.load<typeof Support>("test/support/gateway.ts")
  businessKey = support.businessKey
  adminKey = support.adminKey
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  gateway = await support.startGateway({
    upstream: { driver: "embedded" },
    upstreams: { box: { driver: "toy", base_url: `http://127.0.0.1:${port}`, models: { bear: "bear-1" } } },
    accounts: [{ upstream: "box", token: "toy-secret" }]
  })
})
afterAll(async () => {
  await gateway.stop()
  modules.end()
  server.close()
})

const post = (path: string, body: object) =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })

const admin = async (path: string): Promise<unknown> =>
  (await fetch(gateway.url + path, { headers: { authorization: `Bearer ${adminKey}` } })).json()

const messages = [{ role: "user", content: "Hi" }]

describe("a driver that is added by its folder and its rows", () => {
  it("answers every style, whole and streamed, with the key of its upstream", async () => {
    const chat = await (await post("/v1/chat/completions", { model: "bear", messages })).json()
    assert.nestedPropertyVal(chat, "choices[0].message.content", "Hello toy")
    const message = await (await post("/v1/messages", { model: "bear", max_tokens: 9, messages })).json()
    assert.nestedPropertyVal(message, "content[0].text", "Hello toy")
    const streamed = await (await post("/v1/responses", { model: "bear", input: "Hi", stream: true })).text()
    assert.include(streamed, "response.completed")
    assert.lengthOf(seen, 3)
    for (const { body, key } of seen) {
      assert.strictEqual(key, "toy-secret")
      assert.deepStrictEqual(body, { model: "bear-1", said: "Hi" })
    }
  })

  it("reports the fields that it does not send", async () => {
    const response = await post("/v1/chat/completions", { model: "bear", messages, temperature: 0, verbosity: "low" })
    assert.strictEqual(response.headers.get("x-gateway-ignored"), "temperature,verbosity")
  })

  it("is a choice of the settings and of the forms, and reports its accounts", async () => {
    assert.include(
      JSON.stringify(await admin("/admin/settings/fields")),
      `"embedded","session","openai","responses","messages","generate","toy"`
    )
    assert.include(JSON.stringify(await admin("/admin/upstreams")), `"driver":"toy"`)
  })

  it("has recorded replies that operators can read", async () => {
    const { items } = await admin("/admin/requests?limit=1") as {
      readonly items: ReadonlyArray<{ readonly id: string }>
    }
    const detail = JSON.stringify(await admin(`/admin/requests/${items[0]!.id}`))
    assert.include(detail, "Hello toy")
  })
})
