/** Who makes a compaction where servers of the Responses API are among the targets. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import type { OpenAiServer } from "../../support/openaiServer.ts"
import { responseOf, said, startResponsesServer, whole } from "../../support/responsesServer.ts"

let server: OpenAiServer
let gateway: RunningGateway

beforeAll(async () => {
  server = await startResponsesServer()
  const own = { driver: "responses", base_url: server.baseUrl, models: { m: "server-model" } }
  gateway = await startGateway({
    upstream: { driver: "embedded" },
    upstreams: { one: own, two: own },
    accounts: [{ upstream: "one", token: "sk-one" }, { upstream: "two", token: "sk-two" }],
    routes: { alone: ["one/m"], both: ["one/m", "two/m"] }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

interface Told {
  readonly output: ReadonlyArray<{ readonly type: string; readonly encrypted_content: string }>
}

const post = (body: object, path = "/v1/responses") =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })

const ask = async (body: object, path?: string): Promise<Told> => {
  const response = await post(body, path)
  assert.strictEqual(response.status, 200, await response.clone().text())
  return await response.json() as Told
}

const trigger = { type: "compaction_trigger" }
const management = [{ type: "compaction", compact_threshold: 1_000 }]
const user = { type: "message", role: "user", content: "Hi" }

describe("a compaction", () => {
  it("is the server's where all targets are of one upstream", async () => {
    const compaction = { id: "cmp_1", type: "compaction", encrypted_content: "servers-seal" }
    server.answer(() => whole(responseOf([compaction])))
    for (const body of [{ input: [user, trigger] }, { input: [user], context_management: management }]) {
      const { length } = server.requests
      const { output } = await ask({ model: "alone", ...body })
      assert.deepStrictEqual(output.map(({ encrypted_content }) => encrypted_content), ["servers-seal"])
      assert.lengthOf(server.requests, length + 1)
      assert.deepInclude(server.requests.at(-1)?.body, body)
    }
    await ask({ model: "alone", input: [compaction, user] })
    assert.deepInclude(server.requests.at(-1)?.body, { input: [compaction, user] })
  })

  it("is the gateway's where a request may go to several upstreams", async () => {
    server.answer(() => said("What was done."))
    const { output } = await ask({ model: "both", input: [user, trigger], context_management: management })
    assert.deepStrictEqual(output.map(({ type }) => type), ["compaction"])
    assert.match(output[0]!.encrypted_content, /^gwc1_/)
    assert.doesNotHaveAnyKeys(server.requests.at(-1)?.body, ["context_management"])
    server.answer(() => said("Hello"))
    await ask({ model: "both", input: [user], context_management: management })
    assert.doesNotHaveAnyKeys(server.requests.at(-1)?.body, ["context_management"])
  })

  it("of the gateway reaches a server as a message", async () => {
    server.answer(() => said("What was done."))
    const { output } = await ask({ model: "alone", input: [user] }, "/v1/responses/compact")
    server.answer(() => said("Hello"))
    await ask({ model: "alone", input: [...output, { type: "message", role: "user", content: "Go on" }] })
    const sent = JSON.stringify(server.requests.at(-1)?.body["input"])
    assert.include(sent, "What was done.")
    assert.include(sent, "Go on")
    assert.notInclude(sent, "gwc1_")
    const changed = { type: "compaction", encrypted_content: "gwc1_AAAA" }
    const response = await post({ model: "alone", input: [changed, user] })
    assert.deepStrictEqual([response.status, response.headers.get("x-gateway-ignored")], [200, "input[0]"])
    assert.notInclude(JSON.stringify(server.requests.at(-1)?.body), "gwc1_")
  })
})
