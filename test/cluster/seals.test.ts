/** Seals and stored responses of a Responses server, whose requests meet two nodes. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey } from "../support/gateway.ts"
import { type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"
import { strictResponses, valuesOf } from "../support/strictResponses.ts"
import { type Cluster, startCluster } from "./cluster.ts"

type Fields = { readonly [field: string]: unknown }

let server: OpenAiServer
let cluster: Cluster
beforeAll(async () => {
  server = await startOpenAiServer()
  cluster = await startCluster({
    nodes: 2,
    config: {
      accounts: [
        { token: "sk-1", organization: "a" },
        { token: "sk-2", organization: "b" },
        { token: "sk-3", organization: "c" }
      ],
      upstream: { driver: "responses", base_url: server.baseUrl },
      runtime: { sticky: false }
    }
  })
})
afterAll(async () => {
  await cluster.stop()
  await server.stop()
})

const ask = async (node: number, body: object, path = "") => {
  const response = await fetch(`${cluster.nodes[node]!.url}/v1/responses${path}`, {
    method: path === "" ? "POST" : "DELETE",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    ...(path === "" ? { body: JSON.stringify({ model: "upstream-chat", ...body }) } : {})
  })
  const text = await response.text()
  assert.strictEqual(response.status, 200, text)
  return JSON.parse(text) as Fields & { readonly output: ReadonlyArray<Fields> }
}

const question = { role: "user", content: "Where?" }
const resultOf = (output: ReadonlyArray<Fields>) => ({
  type: "function_call_output",
  call_id: output.find(({ type }) => type === "function_call")!["call_id"],
  output: "there"
})

const sealedThinking = { include: ["reasoning.encrypted_content"], store: false }

describe("a Responses server behind two nodes", () => {
  it.each([0, 1, 2])("gets a seal back by the account that made it, through the other node: turn %s", async () => {
    server.answer(strictResponses().answer)
    const { output } = await ask(0, { ...sealedThinking, input: [question] })
    const second = await ask(1, { ...sealedThinking, input: [question, ...output, resultOf(output)] })
    assert.strictEqual(second["output_text"], "It is there")
    const [first, last, ...others] = server.requests
    assert.deepStrictEqual(others, [])
    assert.strictEqual(last!.key, first!.key)
    assert.strictEqual(valuesOf("encrypted_content", last!.body["input"]).length, 1)
  })

  it.each([0, 1, 2])(
    "gets a stored response continued and deleted by its account, through the other node: turn %s",
    async () => {
      const strict = strictResponses()
      server.answer(strict.answer)
      const { id, output } = await ask(0, { input: [question] })
      const second = await ask(1, { previous_response_id: id, input: [resultOf(output)] })
      assert.strictEqual(second["previous_response_id"], id)
      assert.strictEqual(server.requests[1]!.body["previous_response_id"], id)
      await ask(1, {}, `/${String(id)}`)
      assert.isFalse(strict.kept.has(String(id)))
      assert.strictEqual(new Set(server.requests.map(({ key }) => key)).size, 1)
      assert.strictEqual(server.requests.length, 3)
    }
  )
})
