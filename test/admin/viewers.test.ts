/** What an upstream's words about a prompt show to whom: a viewer gets the cause and the code of a failure. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { json, type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"
import { caller } from "./support.ts"

const prompt = "words of the prompt"

let gateway: RunningGateway
let server: OpenAiServer
let viewer: string
let requestId: string
const call = caller(() => gateway)

beforeAll(async () => {
  server = await startOpenAiServer()
  server.answer(() => json(500, { error: { message: `cannot answer: ${prompt}`, type: "server_error" } }))
  gateway = await startGateway({
    upstream: { driver: "openai", base_url: server.baseUrl, models: { m: "m" } },
    accounts: [{ token: "sk-1" }]
  })
  viewer = String((await call("POST", "/admin/tokens", { body: { name: "dashboard", role: "viewer" } })).json["secret"])
  const asked = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: prompt }] })
  })
  assert.include(await asked.text(), prompt)
  requestId = asked.headers.get("x-request-id") ?? ""
  const { items } = (await call("GET", "/admin/accounts")).json as { items: ReadonlyArray<{ identifier: string }> }
  await call("POST", "/admin/accounts/test", {
    body: { identifier: items[0]!.identifier, model: "m", message: prompt }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

type Item = Record<string, unknown>

/** The data of the first event about the pool. */
const poolEvent = async (bearer: string): Promise<string> => {
  const abort = new AbortController()
  const response = await fetch(`${gateway.url}/admin/events?topics=pool`, {
    headers: { authorization: `Bearer ${bearer}` },
    signal: abort.signal
  })
  let text = ""
  let found: string | undefined
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    text += piece
    found = /event: pool\ndata: (.*)\n/.exec(text)?.[1]
    if (found !== undefined) break
  }
  abort.abort()
  return found ?? ""
}

const itemOf = async (bearer?: string) =>
  ((await call("GET", "/admin/accounts", bearer === undefined ? {} : { bearer })).json["items"] as ReadonlyArray<Item>)[
    0
  ]!

describe("the words of an upstream that quote a prompt", () => {
  it("are shown to an admin, and to a viewer the code alone", async () => {
    const [all, some] = [await itemOf(), await itemOf(viewer)]
    assert.include(JSON.stringify(all["last_error"]), prompt)
    assert.include(JSON.stringify(all["last_test"]), prompt)
    const { at, code } = all["last_error"] as { at: number; code: string }
    assert.deepStrictEqual(some["last_error"], { code, message: null, at })
    assert.containSubset(some["last_test"], { success: false, message: null })
    const listed = await call("GET", "/admin/accounts?sort=state", { bearer: viewer })
    assert.notInclude(listed.text, prompt)
  })

  it("are in no event of a viewer", async () => {
    assert.include(await poolEvent(adminKey), prompt)
    const data = await poolEvent(viewer)
    assert.include(data, "last_error")
    assert.notInclude(data, prompt)
  })

  it("are not in a request's record as a viewer gets it, which has the cause and the code", async () => {
    const path = `/admin/requests/${requestId}`
    const { json: whole } = await call("GET", path)
    assert.include(String(whole["error_message"]), prompt)
    const { json: record, text } = await call("GET", path, { bearer: viewer })
    assert.notInclude(text, prompt)
    assert.deepInclude(record, { error: whole["error"], error_message: null, tries: whole["tries"] })
    assert.isString((whole["tries"] as ReadonlyArray<Item>)[0]!["cause"])
  })
})
