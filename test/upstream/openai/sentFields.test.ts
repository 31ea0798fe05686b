/** Fields of requests that an OpenAI-compatible server gets by a name of its own, in every style. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { type OpenAiServer, startOpenAiServer, streamed } from "../../support/openaiServer.ts"
import { plainRequests } from "../../support/plainRequests.ts"

let server: OpenAiServer
const gateways = new Map<string, RunningGateway>()

beforeAll(async () => {
  server = await startOpenAiServer()
  const upstream = { driver: "openai", base_url: server.baseUrl }
  gateways.set("pass", await startGateway({ upstream }))
  gateways.set("drop", await startGateway({ upstream: { ...upstream, fields: "drop" } }))
  gateways.set("prompt", await startGateway({ upstream: { ...upstream, tools: "prompt" } }))
})
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.stop()
  await server.stop()
})

/** Sends the shortest request of a style with further fields. Returns what reached the server. */
const ask = async (
  style: keyof typeof plainRequests,
  fields: object,
  { gateway = "pass", stream = false }: { readonly gateway?: string; readonly stream?: boolean } = {}
) => {
  server.answer(() => streamed({ content: "Hello" }))
  const { body, path } = plainRequests[style]
  const response = await fetch(gateways.get(gateway)!.url + path(stream), {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ ...body(stream), ...fields })
  })
  const text = await response.text()
  assert.strictEqual(response.status, 200, text)
  return { ignored: response.headers.get("x-gateway-ignored"), text, sent: server.requests.at(-1)?.body ?? {} }
}

describe("the name of a tool's message", () => {
  const call = { id: "c1", type: "function", function: { name: "get_time", arguments: "{}" } }
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", name: "get_time", tool_call_id: "c1", content: "12:00" }
  ]

  it.each(["pass", "drop"])("reaches the server (upstream.fields %s)", async (gateway) => {
    for (const stream of [false, true]) {
      const { ignored, sent } = await ask("chat", { messages }, { gateway, stream })
      assert.isNull(ignored)
      assert.deepStrictEqual(sent["messages"], messages)
    }
  })

  it("reaches the server from the messages of a Responses request", async () => {
    const { sent } = await ask("responses", { messages, input: null })
    assert.deepStrictEqual(sent["messages"], messages)
  })

  it("is absent where the caller wrote none", async () => {
    const unnamed = messages.map((message) => ({ ...message, name: undefined }))
    const { sent } = await ask("chat", { messages: unnamed })
    assert.doesNotHaveAnyKeys((sent["messages"] as ReadonlyArray<object>).at(-1), ["name"])
  })

  it("comes from the result alone where tools are declared as text", async () => {
    const { sent } = await ask("chat", { messages }, { gateway: "prompt" })
    assert.strictEqual(JSON.stringify(sent["messages"]).split("get_time").length - 1, 2)
  })
})

describe("what a Responses request says to the vendor of its cache and its caller", () => {
  const fields = {
    prompt_cache_key: "k",
    prompt_cache_options: { ttl: "1h" },
    prompt_cache_retention: "24h",
    safety_identifier: "s",
    user: "u"
  }

  it("reaches the server, and the reply repeats it", async () => {
    for (const stream of [false, true]) {
      const { ignored, sent, text } = await ask("responses", fields, { stream })
      assert.isNull(ignored)
      assert.deepInclude(sent, fields)
      assert.include(text, "\"prompt_cache_key\":\"k\"")
      assert.include(text, "\"safety_identifier\":\"s\"")
    }
  })

  it("does not reach the server if upstream.fields drops it", async () => {
    const { ignored, sent } = await ask("responses", fields, { gateway: "drop" })
    assert.isNull(ignored)
    assert.doesNotHaveAnyKeys(sent, Object.keys(fields))
  })
})

describe("a limit of calls of the vendor's tools", () => {
  it("is reported as ignored, and the reply does not repeat it", async () => {
    for (const stream of [false, true]) {
      const { ignored, text } = await ask("responses", { max_tool_calls: 3 }, { stream })
      assert.strictEqual(ignored, "max_tool_calls")
      assert.include(text, "\"max_tool_calls\":null")
    }
  })
})

describe("functionCallingConfig.mode", () => {
  const asked = (functionCallingConfig: object, functionDeclarations = [{ name: "f" }, { name: "g" }]) => ({
    tools: [{ functionDeclarations }],
    toolConfig: { functionCallingConfig }
  })
  const path = "toolConfig.functionCallingConfig.mode"

  it("VALIDATED is reported as ignored: the server chooses by itself, and checks no arguments", async () => {
    for (const stream of [false, true]) {
      const { ignored, sent } = await ask("generate", asked({ mode: "VALIDATED" }), { stream })
      assert.strictEqual(ignored, path)
      assert.lengthOf(sent["tools"] as ReadonlyArray<unknown>, 2)
      assert.doesNotHaveAnyKeys(sent, ["tool_choice"])
    }
    const spelled = { tool_config: { function_calling_config: { mode: "VALIDATED" } } }
    assert.strictEqual((await ask("generate", spelled)).ignored, path)
  })

  it.each(["AUTO", "NONE", "MODE_UNSPECIFIED"])("%s is what the server does", async (mode) => {
    assert.isNull((await ask("generate", asked({ mode }))).ignored)
  })
})
