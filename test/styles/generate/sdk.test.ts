import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Content, FunctionCall, GenerateContentParameters, GenerateContentResponse } from "@google/genai"
import { ApiError, FunctionCallingConfigMode, GoogleGenAI, Type } from "@google/genai"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"

let gateway: RunningGateway
beforeAll(async () => {
  // One slot: whatever a request leaves behind would make the next one wait.
  gateway = await startGateway({ runtime: { account_max_inflight: 1 } })
})
afterAll(() => gateway.stop())

const clientOf = (apiVersion: string) =>
  new GoogleGenAI({ apiKey: businessKey, httpOptions: { baseUrl: gateway.url, apiVersion } })

const tools = [{
  functionDeclarations: ["get_weather", "get_time"].map((name) => ({
    name,
    parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } } }
  }))
}]

/** What a caller reads of a reply. */
const read = (responses: ReadonlyArray<GenerateContentResponse>) => {
  const parts = responses.flatMap((response) => response.candidates?.[0]?.content?.parts ?? [])
  const last = responses.at(-1)
  return {
    text: parts.flatMap((part) => part.thought === true ? [] : [part.text ?? ""]).join(""),
    thoughts: parts.flatMap((part) => part.thought === true ? [part.text ?? ""] : []).join(""),
    calls: parts.flatMap((part): Array<FunctionCall> => part.functionCall === undefined ? [] : [part.functionCall]),
    finish: String(last?.candidates?.[0]?.finishReason),
    usage: last?.usageMetadata
  }
}

const ways = {
  whole: async (apiVersion: string, request: GenerateContentParameters) =>
    read([await clientOf(apiVersion).models.generateContent(request)]),
  streamed: async (apiVersion: string, request: GenerateContentParameters) => {
    const chunks: Array<GenerateContentResponse> = []
    for await (const chunk of await clientOf(apiVersion).models.generateContentStream(request)) chunks.push(chunk)
    return read(chunks)
  }
}

const asks = (contents: string, model = "gemini-2.5-pro"): GenerateContentParameters => ({ model, contents })

describe.each(
  Object.entries(ways).flatMap(([name, way]) => ["v1", "v1beta"].map((version) => [name, version, way] as const))
)("the content-generation SDK against the gateway, %s, %s", (_, version, way) => {
  const send = (request: GenerateContentParameters) => way(version, request)
  const fails = async (request: GenerateContentParameters) => {
    const error: unknown = await send(request).catch((error: unknown) => error)
    assert.instanceOf(error, ApiError)
    return error
  }

  it("gets text and usage", async () => {
    const { finish, text, usage } = await send(asks("!say Hello there"))
    assert.strictEqual(text, "Hello there")
    assert.strictEqual(finish, "STOP")
    const { candidatesTokenCount = 0, promptTokenCount = 0, thoughtsTokenCount = 0, totalTokenCount } = usage ?? {}
    assert.isAbove(promptTokenCount, 0)
    assert.isAbove(candidatesTokenCount, 0)
    assert.strictEqual(totalTokenCount, promptTokenCount + candidatesTokenCount + thoughtsTokenCount)
  })

  it("gets thoughts unless it disables them", async () => {
    const request = asks("!think Let me see.\n!say 42", "upstream-reasoner")
    const shown = await send(request)
    assert.strictEqual(shown.thoughts, "Let me see.")
    assert.strictEqual(shown.text, "42")
    const hidden = await send({ ...request, config: { thinkingConfig: { includeThoughts: false } } })
    assert.strictEqual(hidden.thoughts, "")
    assert.strictEqual(hidden.text, "42")
  })

  it("stops before a stop sequence", async () => {
    const { text } = await send({ ...asks("!say one two three four"), config: { stopSequences: ["three"] } })
    assert.strictEqual(text, "one two ")
  })

  it("gets several calls around text", async () => {
    const script = `!say Looking.\n!call get_weather {"city":"Paris"}\n!call get_time {"city":"Rome"}`
    const { calls, finish, text } = await send({ ...asks(script), config: { tools } })
    assert.deepStrictEqual(calls.map((call) => [call.name, call.args]), [
      ["get_weather", { city: "Paris" }],
      ["get_time", { city: "Rome" }]
    ])
    assert.strictEqual(new Set(calls.map((call) => call.id)).size, 2)
    assert.include(text, "Looking.")
    assert.notInclude(text, "get_weather")
    assert.strictEqual(finish, "STOP")
  })

  it("goes through a function-calling loop of three turns", async () => {
    const contents: Array<Content> = [{
      role: "user",
      parts: [{ text: `!call get_weather {"city":"Paris"}\n!next\n!call get_time {}\n!next\n!say Sunny at noon` }]
    }]
    const called: Array<string | undefined> = []
    for (;;) {
      const { calls, text } = await send({ model: "gemini-2.5-pro", contents, config: { tools } })
      if (calls.length === 0) {
        assert.strictEqual(text, "Sunny at noon")
        break
      }
      called.push(...calls.map((call) => call.name))
      contents.push(
        { role: "model", parts: calls.map((functionCall) => ({ functionCall })) },
        {
          role: "user",
          parts: calls.map(({ name }) => ({ functionResponse: { name: name ?? "", response: { output: "fine" } } }))
        }
      )
    }
    assert.deepStrictEqual(called, ["get_weather", "get_time"])
  })

  it("makes the model call the function that is asked for", async () => {
    const toolConfig = {
      functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ["get_time"] }
    }
    const { calls } = await send({ ...asks("!call get_time {}"), config: { tools, toolConfig } })
    assert.deepStrictEqual(calls.map((call) => call.name), ["get_time"])
    assert.strictEqual((await fails({ ...asks("!say no"), config: { tools, toolConfig } })).status, 422)
  })

  it("receives the error of a reply that the upstream withdrew", async () => {
    const { finish } = await send(asks("!say Well, \n!fault content-filter"))
    assert.strictEqual(finish, "SAFETY")
    assert.strictEqual((await fails(asks("!fault content-filter"))).status, 400)
  })

  it("receives the error of a request that the upstream refused", async () => {
    const error = await fails(asks("!fault too-long"))
    assert.strictEqual(error.status, 400)
    assert.include(error.message, "INVALID_ARGUMENT")
  })
})

describe("the content-generation SDK against the gateway", () => {
  it("receives in the stream the error of a failure after its first chunk", async () => {
    const texts: Array<string | undefined> = []
    const reading = async () => {
      const request = asks("!pace 0\n!say [\"a\",\"b\"]\n!fault error-status")
      for await (const chunk of await clientOf("v1").models.generateContentStream(request)) texts.push(chunk.text)
    }
    const error: unknown = await reading().catch((error: unknown) => error)
    assert.strictEqual(texts.join(""), "ab")
    assert.instanceOf(error, ApiError)
    assert.strictEqual(error.status, 503)
  })

  it("frees the account when it leaves", async () => {
    const controller = new AbortController()
    const reading = async () => {
      const request = { ...asks("!say a\n!wait 60s\n!say b"), config: { abortSignal: controller.signal } }
      for await (const _ of await clientOf("v1").models.generateContentStream(request)) controller.abort()
    }
    const error: unknown = await reading().catch((error: unknown) => error)
    assert.instanceOf(error, Error)
    assert.strictEqual((await ways.whole("v1", asks("!say Next"))).text, "Next")
  })

  it("keeps a chat's history", async () => {
    const chat = clientOf("v1beta").chats.create({ model: "gemini-2.5-pro" })
    await chat.sendMessage({ message: "!say One" })
    for await (const _ of await chat.sendMessageStream({ message: "!say Two" }));
    const answer = await chat.sendMessage({ message: "!echo-prompt" })
    assert.include(answer.text, "One")
    assert.include(answer.text, "Two")
  })

  it("counts tokens and finds models", async () => {
    const { models } = clientOf("v1beta")
    const counted = await models.countTokens({ model: "gemini-2.5-pro", contents: "How many tokens are these?" })
    assert.isAbove(counted.totalTokens ?? 0, 4)
    assert.strictEqual((await models.get({ model: "gemini-2.5-flash" })).name, "models/upstream-chat")
  })
})
