import { afterEach, assert, describe, it } from "@effect/vitest"
import { ApiError, FunctionCallingConfigMode, GoogleGenAI, Type } from "@google/genai"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { generateErrors } from "../../../src/contracts/generate/clientErrors.ts"
import { GenerateResponse, TokenCount } from "../../../src/contracts/generate/schema.ts"
import { Text } from "../../../src/domain/Conversation.ts"
import { type ErrorCode, gatewayError } from "../../../src/domain/GatewayError.ts"
import type { ReplyEvent } from "../../../src/domain/ReplyEvent.ts"
import * as Reply from "../../../src/domain/ReplyEvent.ts"
import { always, businessKey, type Script, scriptedStyles } from "../../support/scriptedStyles.ts"
import { parseFrames } from "../../support/sse.ts"

const base = "http://gateway"
const usage = Reply.UsageReported({ promptTokens: 12, completionTokens: 9, reasoningTokens: 4, cachedTokens: 0 })
const hello: ReadonlyArray<ReplyEvent> = [
  Reply.ReasoningDelta("Hm."),
  Reply.TextDelta("Hel"),
  Reply.TextDelta("lo"),
  usage,
  Reply.Finish("stop")
]
const weather: ReadonlyArray<ReplyEvent> = [
  Reply.CallStarted(0, "call_1", "get_weather"),
  Reply.CallArguments(0, "{\"city\":\"Paris\"}"),
  Reply.CallFinished(0, "call_1", "get_weather", "{\"city\":\"Paris\"}"),
  usage,
  Reply.Finish("tool_calls")
]
const body = { contents: [{ role: "user", parts: [{ text: "Hi" }] }] }

let styles: ReturnType<typeof scriptedStyles> | undefined
afterEach(() => styles?.dispose())

const serve = (script: Script) => {
  styles = scriptedStyles(script)
  return styles
}

/** Model lists of the style stand under one prefix only: the other one's are of the chat-completions family. */
const clientOf = ({ fetch }: ReturnType<typeof scriptedStyles>, apiVersion = "v1") =>
  new GoogleGenAI({ apiKey: businessKey, httpOptions: { baseUrl: base, apiVersion, fetch } }).models

const post = (
  { fetch }: ReturnType<typeof scriptedStyles>,
  path: string,
  sent: unknown = body,
  headers: Record<string, string> = { "x-gen-api-key": businessKey }
) => fetch(`${base}${path}`, { method: "POST", headers, body: JSON.stringify(sent) })

const errorOf = async (response: Response) =>
  Schema.decodeUnknownSync(generateErrors.body)(await response.json(), { onExcessProperty: "error" }).error

const rejected = async (promise: Promise<unknown>) => {
  const error: unknown = await promise.catch((error: unknown) => error)
  assert.instanceOf(error, ApiError)
  return error
}

describe("the content-generation endpoints", () => {
  it.each(["/v1beta/models", "/v1/models"])("generate under %s", async (prefix) => {
    const running = serve(always(hello))
    const response = await post(running, `${prefix}/gemini-2.5-pro:generateContent`)
    assert.strictEqual(response.status, 200)
    assert.deepStrictEqual(Schema.decodeUnknownSync(GenerateResponse)(await response.json()), {
      candidates: [{
        content: { role: "model", parts: [{ text: "Hm.", thought: true }, { text: "Hello" }] },
        finishReason: "STOP",
        index: 0
      }],
      usageMetadata: {
        promptTokenCount: 12,
        candidatesTokenCount: 5,
        thoughtsTokenCount: 4,
        totalTokenCount: 21,
        cachedContentTokenCount: 0
      },
      modelVersion: "gemini-2.5-pro",
      responseId: "session-1"
    })
    assert.strictEqual(running.inputs[0]?.model.id, "upstream-chat")
  })

  it.each(["", "?alt=sse"])("stream under both prefixes with the query %j, without an end mark", async (query) => {
    for (const prefix of ["/v1beta/models", "/v1/models"]) {
      const response = await post(serve(always(hello)), `${prefix}/upstream-reasoner:streamGenerateContent${query}`)
      assert.strictEqual(response.headers.get("content-type"), "text/event-stream")
      const frames = parseFrames(await response.text())
      assert.strictEqual(frames.length, 4)
      assert.include(frames.at(-1)?.data, "\"finishReason\":\"STOP\"")
    }
  })

  it.each(["/v1beta/models", "/v1/models"])("count tokens under %s, without a completion", async (prefix) => {
    const running = serve(always(hello))
    const response = await post(running, `${prefix}/gemini-2.5-pro:countTokens`)
    const counted = Schema.decodeUnknownSync(TokenCount)(await response.json(), { onExcessProperty: "error" })
    assert.isAbove(counted.totalTokens, 0)
    assert.isEmpty(running.inputs)
  })

  it.each<readonly [string, Record<string, string>]>([
    ["", { authorization: `Bearer ${businessKey}` }],
    ["", { "x-api-key": businessKey }],
    ["", { "x-gen-api-key": businessKey }],
    ["", { "x-goog-api-key": businessKey }],
    ["", { "x-goog-api-key": "other", "x-gen-api-key": businessKey }],
    [`?key=${businessKey}`, {}],
    [`?api_key=${businessKey}`, {}]
  ])("take the credential of the query %j and the headers %j", async (query, headers) => {
    const running = serve(always(hello))
    const response = await post(running, `/v1beta/models/upstream-chat:generateContent${query}`, body, headers)
    assert.strictEqual(response.status, 200)
    assert.strictEqual(running.inputs[0]?.caller._tag, "Managed")
  })

  it("serve the vendor's SDK, streamed and not", async () => {
    const models = clientOf(serve(always(hello)))
    const request = { model: "gemini-2.5-pro", contents: "Hi" }
    const whole = await models.generateContent(request)
    assert.strictEqual(whole.text, "Hello")
    const texts: Array<string> = []
    for await (const chunk of await models.generateContentStream(request)) {
      if (chunk.text !== undefined) texts.push(chunk.text)
    }
    assert.deepStrictEqual(texts, ["Hel", "lo", ""])
    const counted = await models.countTokens(request)
    assert.isAbove(counted.totalTokens ?? 0, 0)
  })

  it("decode what the vendor's SDK makes of a request", async () => {
    const running = serve(always(weather))
    const response = await clientOf(running).generateContent({
      model: "gemini-2.5-pro",
      contents: ["Weather?", { inlineData: { data: "aGk=", mimeType: "image/png" } }],
      config: {
        systemInstruction: "Be brief.",
        temperature: 0.5,
        stopSequences: ["END"],
        responseMimeType: "application/json",
        responseSchema: { type: Type.OBJECT, properties: { a: { type: Type.STRING } } },
        toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } },
        tools: [{
          functionDeclarations: [{
            name: "get_weather",
            parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } } }
          }]
        }]
      }
    })
    assert.deepStrictEqual(response.functionCalls, [{ id: "call_1", name: "get_weather", args: { city: "Paris" } }])
    assert.deepInclude(running.inputs[0]?.conversation, {
      turns: [
        { role: "system", parts: [Text("Be brief.")] },
        {
          role: "user",
          parts: [
            Text("Weather?"),
            {
              _tag: "Image",
              url: undefined,
              data: "aGk=",
              mediaType: "image/png",
              detail: undefined,
              vendorFields: undefined
            }
          ]
        }
      ],
      tools: [{
        name: "get_weather",
        description: undefined,
        parameters: { type: "object", properties: { city: { type: "string" } } },
        strict: undefined
      }],
      toolChoice: { _tag: "Required" },
      stop: ["END"]
    })
  })

  const failures = [
    ["invalid_request", 400, "INVALID_ARGUMENT"],
    ["content_filter", 400, "INVALID_ARGUMENT"],
    ["authentication_failed", 401, "UNAUTHENTICATED"],
    ["rate_limit_exceeded", 429, "RESOURCE_EXHAUSTED"],
    ["internal_error", 500, "INTERNAL"],
    ["upstream_error", 503, "UNAVAILABLE"]
  ] as const satisfies ReadonlyArray<readonly [ErrorCode, number, string]>

  it.each(failures)("fail with %s as the SDK's own error, streamed or not", async (code, status, word) => {
    const running = serve(() => Effect.fail(gatewayError(code, "It failed")))
    const request = { model: "upstream-chat", contents: "Hi" }
    const errors = [
      await rejected(clientOf(running).generateContent(request)),
      await rejected(clientOf(running).generateContentStream(request))
    ]
    for (const error of errors) {
      assert.strictEqual(error.status, status)
      assert.deepStrictEqual(JSON.parse(error.message), { error: { code: status, message: "It failed", status: word } })
    }
  })

  it("report a failure after the first chunk in the stream", async () => {
    const models = clientOf(serve(() =>
      Effect.succeed(
        Stream.concat(Stream.fromIterable(hello.slice(1, 2)), Stream.fail(gatewayError("upstream_timeout", "Silent")))
      )
    ))
    const texts: Array<string | undefined> = []
    const read = async () => {
      for await (const chunk of await models.generateContentStream({ model: "upstream-chat", contents: "Hi" })) {
        texts.push(chunk.text)
      }
    }
    const error = await rejected(read())
    assert.deepStrictEqual(texts, ["Hel"])
    assert.strictEqual(error.status, 503)
  })

  it("stop the completion when the client goes away", async () => {
    const left = Deferred.makeUnsafe<void>()
    const models = clientOf(serve(() =>
      Effect.as(
        Effect.addFinalizer(() => Deferred.succeed(left, undefined)),
        Stream.concat(Stream.fromIterable(hello.slice(0, 2)), Stream.never)
      )
    ))
    const controller = new AbortController()
    const config = { abortSignal: controller.signal }
    const read = async () => {
      for await (const _ of await models.generateContentStream({ model: "upstream-chat", contents: "Hi", config })) {
        controller.abort()
      }
    }
    await read().catch(() => undefined)
    await Effect.runPromise(Deferred.await(left))
  })

  it("refuse callers without a credential, and name what is wrong with a request", async () => {
    const running = serve(always(hello))
    const path = "/v1beta/models/upstream-chat:generateContent"
    assert.deepInclude(await errorOf(await post(running, path, body, {})), { code: 401, status: "UNAUTHENTICATED" })
    const faulty = await errorOf(await post(running, path, { ...body, generationConfig: { temperature: "hot" } }))
    assert.strictEqual(faulty.status, "INVALID_ARGUMENT")
    assert.include(faulty.message, "generationConfig.temperature")
    const malformed = await running.fetch(`${base}${path}`, {
      method: "POST",
      headers: { "x-gen-api-key": businessKey, "content-type": "application/json" },
      body: "{"
    })
    assert.deepInclude(await errorOf(malformed), { code: 400, status: "INVALID_ARGUMENT" })
    const unknown = await errorOf(await post(running, "/v1beta/models/zork:generateContent"))
    assert.deepInclude(unknown, { code: 400, status: "INVALID_ARGUMENT" })
    assert.include(unknown.message, "zork")
  })
})

describe("the content-generation models", () => {
  it("are listed and found by the vendor's SDK", async () => {
    const models = clientOf(serve(always(hello)), "v1beta")
    const names: Array<string | undefined> = []
    for await (const model of await models.list()) names.push(model.name)
    assert.deepStrictEqual(names, [
      "models/upstream-chat",
      "models/upstream-reasoner",
      "models/upstream-chat-search",
      "models/upstream-reasoner-search"
    ])
    const model = await models.get({ model: "gemini-2.5-pro-thinking" })
    assert.deepInclude(model, { name: "models/upstream-reasoner", displayName: "Upstream Reasoner", thinking: true })
    assert.deepStrictEqual(model.supportedActions, ["generateContent", "streamGenerateContent", "countTokens"])
  })

  it("need no credential, and are not found by a name that nothing matches", async () => {
    const { fetch } = serve(always(hello))
    assert.strictEqual((await fetch(`${base}/v1beta/models`)).status, 200)
    assert.deepInclude(await errorOf(await fetch(`${base}/v1beta/models/zork`)), { code: 404, status: "NOT_FOUND" })
  })
})
