/** A request in the generate style to a generate server, and its reply: both arrive as they were sent, but for the model's name. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import {
  type Content,
  FunctionCallingConfigMode,
  type GenerateContentParameters,
  GoogleGenAI,
  HarmBlockThreshold,
  HarmCategory,
  ThinkingLevel,
  Type
} from "@google/genai"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { chunk, type GenerateServer, json, said, startGenerateServer, streamed } from "../../support/generateServer.ts"
import { startOpenAiServer } from "../../support/openaiServer.ts"
import { parseFrames } from "../../support/sse.ts"

let server: GenerateServer
let gateway: RunningGateway

beforeAll(async () => {
  server = await startGenerateServer()
  gateway = await startGateway({
    accounts: [{ token: "server-key" }],
    upstream: {
      driver: "generate",
      base_url: server.baseUrl,
      models: { mine: "gemini-server", "gemini-server": "gemini-server" }
    }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const clientOf = (baseUrl: string) =>
  new GoogleGenAI({ apiKey: businessKey, httpOptions: { baseUrl, retryOptions: { attempts: 1 } } })

const history: Array<Content> = [
  { role: "user", parts: [{ text: "Weather?" }, { text: "In Paris." }] },
  { role: "user", parts: [{ text: "And here." }] },
  {
    role: "model",
    parts: [
      { text: "I think.", thought: true, thoughtSignature: "dGhvdWdodA==" },
      { text: "Let me see.", thoughtSignature: "dGV4dA==" },
      {
        functionCall: { name: "get_weather", args: { zone: 2, city: "Paris", at: { b: 1, a: [3, 1] } } },
        thoughtSignature: "Y2FsbA=="
      },
      { functionCall: { id: "c2", name: "get_time", args: {} } }
    ]
  },
  {
    role: "user",
    parts: [
      { functionResponse: { name: "get_weather", response: { result: { z: 1, a: [2] } } } },
      { functionResponse: { id: "c2", name: "get_time", response: { error: "no clock", code: 5 } } }
    ]
  },
  {
    role: "model",
    parts: [
      { executableCode: { language: "PYTHON" as never, code: "print(1)" } },
      { codeExecutionResult: { outcome: "OUTCOME_OK" as never, output: "1\n" } },
      { text: "", thoughtSignature: "ZW5k" }
    ]
  },
  {
    role: "user",
    parts: [
      { inlineData: { mimeType: "image/png", data: "aGk=" }, videoMetadata: { fps: 2 } },
      { inlineData: { mimeType: "application/pdf", data: "aGk=", displayName: "a.pdf" } },
      { fileData: { fileUri: "https://x.test/v.mp4", mimeType: "video/mp4" }, videoMetadata: { startOffset: "1s" } },
      { text: "Now?" }
    ]
  }
]

const schema = {
  type: Type.OBJECT,
  properties: { z: { type: Type.STRING }, a: { type: Type.INTEGER } },
  required: ["z"]
}

const requests: { readonly [kind: string]: Omit<GenerateContentParameters, "model"> } = {
  "text": { contents: "Hi" },
  "a history with thoughts, calls, results, code and media": { contents: history },
  "tools of every kind": {
    contents: "Hi",
    config: {
      tools: [
        { functionDeclarations: [{ name: "f", description: "F", parameters: schema, response: schema }] },
        { googleSearch: {} },
        {
          functionDeclarations: [{ name: "g", parametersJsonSchema: { type: "object", properties: { z: {}, a: {} } } }]
        },
        { codeExecution: {} },
        { urlContext: {} }
      ],
      toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.VALIDATED, allowedFunctionNames: ["g"] } }
    }
  },
  "every setting": {
    contents: [{ role: "user", parts: [{ text: "Hi" }] }],
    config: {
      systemInstruction: "Be brief.",
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      seed: 7,
      maxOutputTokens: 100,
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      stopSequences: ["END", "STOP"],
      responseMimeType: "application/json",
      responseSchema: schema,
      responseLogprobs: true,
      logprobs: 3,
      safetySettings: [
        { category: HarmCategory.HARM_CATEGORY_HARASSMENT, threshold: HarmBlockThreshold.BLOCK_NONE },
        { category: HarmCategory.HARM_CATEGORY_DANGEROUS_CONTENT, threshold: HarmBlockThreshold.BLOCK_ONLY_HIGH }
      ],
      cachedContent: "cachedContents/abc",
      thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.LOW }
    }
  },
  "pictures and speech as output": {
    contents: "Draw",
    config: {
      responseModalities: ["TEXT", "IMAGE"],
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: "Kore" } } },
      imageConfig: { aspectRatio: "16:9" }
    }
  }
}

const seenBody = async (send: () => Promise<unknown>) => {
  server.answer(() => json(200, chunk([{ text: "Hello" }], { finishReason: "STOP" })))
  await send()
  assert.strictEqual(server.requests.length, 1)
  return server.requests[0]!
}

describe("a request by the official client", () => {
  it.each(Object.entries(requests))("arrives as the caller sent it: %s", async (_, request) => {
    const direct = await seenBody(() =>
      clientOf(server.baseUrl).models.generateContent({ model: "gemini-server", ...request })
    )
    const through = await seenBody(() => clientOf(gateway.url).models.generateContent({ model: "mine", ...request }))
    // The client sends settings that are empty.
    assert.deepStrictEqual({ generationConfig: {}, ...through.body }, { generationConfig: {}, ...direct.body })
    // Thinking is asked for as a stream.
    const method = request.config?.thinkingConfig === undefined ? "generateContent" : "streamGenerateContent?alt=sse"
    assert.match(through.path, /^\/v1(?:beta)?\/models\//)
    assert.strictEqual(through.path.replace(/^.*:/, ""), method)
    // Objects within schemas and arguments keep the order of their keys.
    const ordered = ({ body }: typeof direct) =>
      JSON.stringify([body["contents"], body["tools"], body["generationConfig"]])
        .match(/"(?:z|a|b|zone|city|at)":/g)
    assert.deepStrictEqual(ordered(through), ordered(direct))
  })

  it("is reported nothing of", async () => {
    server.answer(() => said("Hello"))
    const response = await fetch(`${gateway.url}/v1beta/models/mine:generateContent`, {
      method: "POST",
      headers: { "x-goog-api-key": businessKey, "content-type": "application/json" },
      body: JSON.stringify({
        contents: history,
        labels: { a: "b" },
        safetySettings: [],
        cached_content: "cachedContents/a",
        unheard: 1
      })
    })
    assert.strictEqual(response.status, 200)
    assert.isNull(response.headers.get("x-gateway-ignored"))
    assert.deepInclude(server.requests[0]?.body, { labels: { a: "b" }, cached_content: "cachedContents/a", unheard: 1 })
  })
})

const counts = {
  promptTokenCount: 5,
  candidatesTokenCount: 6,
  totalTokenCount: 21,
  thoughtsTokenCount: 7,
  toolUsePromptTokenCount: 3,
  cachedContentTokenCount: 2,
  promptTokensDetails: [{ modality: "TEXT", tokenCount: 5 }],
  trafficType: "ON_DEMAND"
}

const reply = streamed(
  chunk([{ text: "Hm", thought: true }], {}, { responseId: "server-1", createTime: "2026-01-01T00:00:00Z" }),
  chunk([{ text: "m.", thought: true, thoughtSignature: "c2ln" }], {}, { responseId: "server-1" }),
  chunk([{ text: "Look: " }], {}, { responseId: "server-1" }),
  chunk(
    [{ executableCode: { language: "PYTHON", code: "print(1)" } }, {
      codeExecutionResult: { outcome: "OUTCOME_OK", output: "1\n" }
    }],
    {},
    { responseId: "server-1" }
  ),
  chunk([{ inlineData: { mimeType: "image/png", data: "aGk=" } }, { text: "Done." }], {}, { responseId: "server-1" }),
  chunk([{
    functionCall: { id: "s1", name: "f", args: { z: 12345678901234567890n.toString(), a: 1 } },
    thoughtSignature: "Zm4="
  }], {
    safetyRatings: [{ category: "HARM_CATEGORY_HARASSMENT", probability: "NEGLIGIBLE" }]
  }, { responseId: "server-1" }),
  chunk([{ text: "", thoughtSignature: "ZW5k" }], {
    finishReason: "STOP",
    avgLogprobs: -0.5,
    safetyRatings: [{ category: "HARM_CATEGORY_HARASSMENT", probability: "NEGLIGIBLE" }],
    groundingMetadata: { webSearchQueries: ["q"], groundingChunks: [{ web: { uri: "https://x.test", title: "X" } }] }
  }, { responseId: "server-1", usageMetadata: counts })
)

const post = async (call: string, fields: object = {}) => {
  const response = await fetch(`${gateway.url}/v1beta/models/mine:${call}`, {
    method: "POST",
    headers: { "x-goog-api-key": businessKey, "content-type": "application/json" },
    body: JSON.stringify({ contents: [{ role: "user", parts: [{ text: "Hi" }] }], ...fields })
  })
  return response.text()
}

describe("the reply of a generate server", () => {
  it("comes whole as the server's", async () => {
    server.answer(() => reply)
    assert.deepStrictEqual(JSON.parse(await post("generateContent")), {
      candidates: [{
        content: {
          role: "model",
          parts: [
            { text: "Hmm.", thought: true, thoughtSignature: "c2ln" },
            { text: "Look: " },
            { executableCode: { language: "PYTHON", code: "print(1)" } },
            { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1\n" } },
            { inlineData: { mimeType: "image/png", data: "aGk=" } },
            { text: "Done." },
            {
              functionCall: { id: "s1", name: "f", args: { z: "12345678901234567890", a: 1 } },
              thoughtSignature: "Zm4="
            },
            { text: "", thoughtSignature: "ZW5k" }
          ]
        },
        finishReason: "STOP",
        index: 0,
        avgLogprobs: -0.5,
        safetyRatings: [{ category: "HARM_CATEGORY_HARASSMENT", probability: "NEGLIGIBLE" }],
        groundingMetadata: {
          webSearchQueries: ["q"],
          groundingChunks: [{ web: { uri: "https://x.test", title: "X" } }]
        }
      }],
      usageMetadata: counts,
      modelVersion: "mine",
      responseId: "server-1",
      createTime: "2026-01-01T00:00:00Z"
    })
  })

  it("comes as a stream with the server's parts, id, counts and extras", async () => {
    server.answer(() => reply)
    const frames = parseFrames(await post("streamGenerateContent?alt=sse")).map(({ data }) => JSON.parse(data))
    assert.deepStrictEqual(
      frames,
      [
        { createTime: "2026-01-01T00:00:00Z", parts: [{ text: "Hm", thought: true }] },
        { parts: [{ text: "m.", thought: true }] },
        { parts: [{ text: "", thought: true, thoughtSignature: "c2ln" }] },
        { parts: [{ text: "Look: " }] },
        { parts: [{ executableCode: { language: "PYTHON", code: "print(1)" } }] },
        { parts: [{ codeExecutionResult: { outcome: "OUTCOME_OK", output: "1\n" } }] },
        { parts: [{ inlineData: { mimeType: "image/png", data: "aGk=" } }] },
        { parts: [{ text: "Done." }] },
        {
          parts: [{
            functionCall: { id: "s1", name: "f", args: { z: "12345678901234567890", a: 1 } },
            thoughtSignature: "Zm4="
          }],
          avgLogprobs: -0.5,
          safetyRatings: [{ category: "HARM_CATEGORY_HARASSMENT", probability: "NEGLIGIBLE" }],
          groundingMetadata: {
            webSearchQueries: ["q"],
            groundingChunks: [{ web: { uri: "https://x.test", title: "X" } }]
          }
        },
        { parts: [{ text: "", thoughtSignature: "ZW5k" }] },
        { parts: [{ text: "" }], finishReason: "STOP", usageMetadata: counts }
      ].map(({ createTime, parts, usageMetadata, ...candidate }: { readonly [field: string]: unknown }) => ({
        candidates: [{ content: { role: "model", parts }, index: 0, ...candidate }],
        modelVersion: "mine",
        responseId: "server-1",
        ...(createTime === undefined ? {} : { createTime }),
        ...(usageMetadata === undefined ? {} : { usageMetadata })
      }))
    )
  })

  it("has the server's log probabilities, unless a call in its text was found", async () => {
    const logprobsResult = { chosenCandidates: [{ token: "Hi", logProbability: -1 }] }
    const leaked = `<tool_call>{"name":"f","arguments":{}}</tool_call>`
    const declared = { tools: [{ functionDeclarations: [{ name: "f" }] }] }
    for (const [text, expected] of [["Hi", logprobsResult], [leaked, undefined]] as const) {
      server.answer(() =>
        streamed(chunk([{ text }]), chunk([{ text: " So." }], { finishReason: "STOP", logprobsResult }))
      )
      const { candidates } = JSON.parse(await post("generateContent", declared))
      assert.deepStrictEqual(candidates[0].logprobsResult, expected)
    }
  })

  it("has no candidate for a blocked prompt", async () => {
    const promptFeedback = { blockReason: "PROHIBITED_CONTENT" }
    server.answer(() =>
      streamed({ promptFeedback, usageMetadata: { promptTokenCount: 4, totalTokenCount: 4 }, responseId: "b" })
    )
    const expected = {
      promptFeedback,
      usageMetadata: { promptTokenCount: 4, totalTokenCount: 4 },
      modelVersion: "mine",
      responseId: "b"
    }
    assert.deepStrictEqual(JSON.parse(await post("generateContent")), expected)
    const frames = parseFrames(await post("streamGenerateContent?alt=sse")).map(({ data }) => JSON.parse(data))
    assert.deepStrictEqual(frames, [expected])
  })

  it.each(["RECITATION", "SPII", "MALFORMED_FUNCTION_CALL", "LANGUAGE"])(
    "keeps the reason %s",
    async (finishReason) => {
      server.answer(() => streamed(chunk([{ text: "Hi" }]), chunk([], { finishReason, finishMessage: "why" })))
      const [candidate] = JSON.parse(await post("generateContent")).candidates
      assert.deepInclude(candidate, { finishReason, finishMessage: "why" })
      const frames = parseFrames(await post("streamGenerateContent?alt=sse")).map(({ data }) =>
        JSON.parse(data).candidates[0]
      )
      assert.deepInclude(frames.at(-1), { finishReason, finishMessage: "why" })
    }
  )
})

describe("what only a generate server reads of a history", () => {
  it("is no text for a server of another contract", async () => {
    const chat = await startOpenAiServer()
    const other = await startGateway({ upstream: { driver: "openai", base_url: chat.baseUrl } })
    try {
      const response = await fetch(`${other.url}/v1beta/models/upstream-chat:generateContent`, {
        method: "POST",
        headers: { "x-goog-api-key": businessKey, "content-type": "application/json" },
        body: JSON.stringify({
          contents: [
            { role: "user", parts: [{ text: "Hi" }] },
            {
              role: "model",
              parts: [{ text: "Hello", thoughtSignature: "c2ln" }, { text: "", thoughtSignature: "ZW5k" }]
            },
            { role: "model", parts: [{ thoughtSignature: "ZW5k" }] },
            { role: "user", parts: [{ text: "So?" }] }
          ]
        })
      })
      assert.strictEqual(response.status, 200)
      assert.isNull(response.headers.get("x-gateway-ignored"))
      assert.deepStrictEqual(chat.requests[0]?.body["messages"], [
        { role: "user", content: "Hi" },
        { role: "assistant", content: "Hello" },
        { role: "user", content: "So?" }
      ])
    } finally {
      await other.stop()
      await chat.stop()
    }
  })
})
