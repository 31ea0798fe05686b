/** The driver for content generation in the matrix. */
import { oslo, reasoning, rome, text } from "../../styles/replies.ts"
import { citySchema, tools } from "../../styles/support.ts"
import { chunk, frames, json, refused, startGenerateServer, streamed } from "../../support/generateServer.ts"
import type { Block } from "../../support/styleClients.ts"
import type { MatrixDriver } from "./driver.ts"
import { told, word } from "./failures.ts"

const thought = (text: string, more: object = {}) => ({ text, thought: true, ...more })
const called = (name: string, city: string, more: object = {}) => ({ functionCall: { name, args: { city } }, ...more })
const stop = (parts: ReadonlyArray<object> = [], more: object = {}) => chunk(parts, { finishReason: "STOP" }, more)
const user = (...parts: ReadonlyArray<object>) => ({ role: "user", parts })
const model = (...parts: ReadonlyArray<object>) => ({ role: "model", parts })

const weather = { functionCall: { id: "c1", name: "get_weather", args: { city: "Oslo" } } }
const signed = { ...weather, thoughtSignature: "skip_thought_signature_validator" }
const answered = { functionResponse: { id: "c1", name: "get_weather", response: { output: "Rain" } } }
const declared = [{
  functionDeclarations: [{ name: "get_weather", description: "W", parametersJsonSchema: citySchema }]
}]

const partOf = (block: Block): object => {
  switch (block._tag) {
    case "Text":
      return { text: block.text }
    case "Reasoning":
      return thought(block.text)
    case "Call":
      return { functionCall: { name: block.name, args: block.arguments } }
  }
}

const finishReasons = {
  stop: "STOP",
  stop_sequence: "STOP",
  tool_calls: "STOP",
  length: "MAX_TOKENS",
  content_filter: "SAFETY"
}

const reason = (reason: string) => ({ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason })
const perDay = { "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations: [{ quotaId: "RequestsPerDay" }] }
const retry = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "17.2s" }

export const generate: MatrixDriver = {
  name: "generate",
  keyHeader: "x-goog-api-key",
  own: "generate",
  start: async () => {
    const server = await startGenerateServer()
    return { server, address: server.baseUrl }
  },
  models: { "upstream-reasoner": "gemini-3-pro", "upstream-chat": "gemini-2.5-flash" },
  write: (pieces, finish, stream) => {
    const parts = pieces.map(partOf)
    const last = chunk(stream ? parts.slice(-1) : parts, { finishReason: finishReasons[finish] })
    return stream ? streamed(...parts.slice(0, -1).map((part) => chunk([part])), last) : json(200, last)
  },
  hello: frames(chunk([{ text: "Hello" }])),
  watches: ["systemInstruction", "contents", "tools", "toolConfig"],
  arrives: {
    "instructions and a conversation": {
      systemInstruction: { parts: [{ text: "Be brief." }] },
      contents: [user({ text: "A" }, { text: "B" }), model({ text: "C" }), user({ text: "D" })]
    },
    "a loop of tools": { contents: [user({ text: "Go" }), model(signed), user(answered)], tools: declared },
    "tools that must not be called": {
      contents: [user({ text: "Go" })],
      tools: declared,
      toolConfig: { functionCallingConfig: { mode: "NONE" } }
    },
    "pictures and a document": {
      contents: [user(
        { inlineData: { mimeType: "image/png", data: "aGk=" } },
        { inlineData: { mimeType: "application/pdf", data: "aGk=" } },
        { fileData: { fileUri: "https://x.test/a.png" } }
      )]
    }
  },
  failures: {
    "a bad request": refused(400, "INVALID_ARGUMENT", word),
    "a long prompt": refused(
      400,
      "INVALID_ARGUMENT",
      "The input token count (9) exceeds the maximum number of tokens allowed (8)."
    ),
    "an unknown model": refused(404, "NOT_FOUND", word),
    "a refused key": refused(400, "INVALID_ARGUMENT", word, [reason("API_KEY_INVALID")]),
    "a missing right": refused(403, "PERMISSION_DENIED", word),
    "a rate limit": refused(429, "RESOURCE_EXHAUSTED", word, [retry]),
    "no quota": refused(429, "RESOURCE_EXHAUSTED", word, [perDay, retry]),
    "an overload": refused(503, "UNAVAILABLE", word),
    "trouble": refused(500, "INTERNAL", word),
    "its own time-out": refused(504, "DEADLINE_EXCEEDED", word),
    "a page": { status: 502, headers: { "content-type": "text/html" }, pieces: ["<html>Bad gateway</html>"] },
    "no answer": { headless: true, after: "hang" },
    "a connection that breaks": { headless: true, after: "reset" },
    "an empty reply": streamed(stop()),
    "a broken whole reply": json(200, "{\"candidates\":[{")
  },
  streamFaults: {
    "an error": streamed({ error: { code: 500, message: word, status: "INTERNAL" } }),
    "a rate limit": { pieces: [frames([{ error: { code: 429, message: word, status: "RESOURCE_EXHAUSTED" } }])] },
    "an early end": { pieces: [] },
    "a broken connection": { after: "reset" },
    "silence": { after: "hang" },
    "broken JSON": { pieces: [frames("{oops")] }
  },
  furtherFailures: [
    [
      "a list with an error",
      json(400, [{ error: { code: 400, message: word, status: "INVALID_ARGUMENT" } }]),
      told(400, "invalid_request", /word of the server/)
    ]
  ],
  furtherStreamFaults: ["MALFORMED_FUNCTION_CALL", "OTHER"].map((finishReason) =>
    [
      `the end ${finishReason}, for clients of other vendors`,
      streamed(chunk([], { finishReason, finishMessage: word })),
      told(503, "upstream_error", /word of the server/, 3),
      told(503, "upstream_error", /word of the server/),
      ["chat", "responses", "messages"]
    ] as const
  ),
  replies: [
    ...[streamed, (reply: object) => json(200, reply)].map((write) => ({
      name: `an end with a word that no table has, ${write === streamed ? "streamed" : "whole"}`,
      answer: write(chunk([{ text: "So" }], { finishReason: "WORD_OF_THE_FUTURE" })),
      pieces: [text("So")],
      finish: "length" as const,
      styles: ["chat", "responses", "messages"] as const
    })),
    {
      name: "a null among the chunks",
      answer: { pieces: [frames(chunk([{ text: "Hel" }]), "null", stop([{ text: "lo" }]))] },
      pieces: [text("Hello")],
      finish: "stop"
    },
    {
      name: "the arguments of a call as text",
      answer: streamed(stop([{ functionCall: { name: "get_weather", args: `{"city":"Oslo"}` } }])),
      pieces: [oslo],
      finish: "tool_calls",
      ask: { tools }
    },
    {
      name: "nothing before a stop sequence",
      answer: streamed(stop([])),
      pieces: [],
      finish: "stop",
      ask: { stop: ["END"] },
      styles: ["chat", "messages", "generate"]
    },
    {
      name: "a character that is cut",
      answer: streamed(chunk([{ text: "a\ud83c" }]), stop([{ text: "\udf0d" }])),
      pieces: [text("a🌍")],
      finish: "stop"
    },
    {
      name: "thoughts with a signature",
      answer: streamed(
        chunk([thought("H")]),
        chunk([thought("m.", { thoughtSignature: "c2ln" })]),
        stop([{ text: "Four." }])
      ),
      pieces: [reasoning("Hm."), text("Four.")],
      finish: "stop",
      ask: { reasoner: true }
    },
    {
      name: "calls with signatures and without ids",
      answer: streamed(
        chunk([thought("Hm."), called("get_weather", "Oslo", { thoughtSignature: "c2ln" })]),
        stop([called("get_time", "Rome")])
      ),
      pieces: [reasoning("Hm."), oslo, rome],
      finish: "tool_calls",
      ask: { tools, reasoner: true }
    },
    {
      name: "a call between text",
      answer: streamed(chunk([{ text: "See. " }, called("get_weather", "Oslo")]), stop([{ text: "Done." }])),
      pieces: [text("See. "), oslo, text("Done.")],
      finish: "tool_calls",
      ask: { tools }
    },
    {
      name: "text that a filter ends",
      answer: streamed(chunk([{ text: "Hello" }]), chunk([], { finishReason: "SAFETY" })),
      pieces: [text("Hello")],
      finish: "content_filter"
    },
    {
      name: "reasons to stop in every chunk",
      answer: streamed(stop([{ text: "Hel" }]), stop([{ text: "lo" }])),
      pieces: [text("Hello")],
      finish: "stop"
    },
    {
      name: "a list of chunks",
      answer: json(200, [chunk([{ text: "Hel" }]), stop([{ text: "lo" }])]),
      pieces: [text("Hello")],
      finish: "stop"
    }
  ],
  requests: [
    {
      name: "a failed call",
      in: {
        chat: {
          messages: [
            {
              role: "assistant",
              content: null,
              tool_calls: [{ id: "c1", type: "function", function: { name: "get_weather", arguments: "Oslo" } }]
            },
            { role: "tool", tool_call_id: "c1", content: "Rain" },
            { role: "user", content: "So?" }
          ]
        },
        responses: {
          input: [
            { type: "function_call", call_id: "c1", name: "get_weather", arguments: "Oslo" },
            { type: "function_call_output", call_id: "c1", output: "Rain" },
            { role: "user", content: "So?" }
          ]
        },
        messages: {
          messages: [
            {
              role: "assistant",
              content: [{ type: "tool_use", id: "c1", name: "get_weather", input: { arguments: "Oslo" } }]
            },
            {
              role: "user",
              content: [{ type: "tool_result", tool_use_id: "c1", content: "Rain" }, { type: "text", text: "So?" }]
            }
          ]
        }
      },
      arrives: {
        contents: [
          user({ text: "[The beginning of this conversation is missing.]" }),
          model({ ...signed, functionCall: { ...weather.functionCall, args: { arguments: "Oslo" } } }),
          user(answered, { text: "So?" })
        ]
      },
      ignored: {
        chat: "messages[0]: the user's first turn is missing",
        responses: "input[0]: the user's first turn is missing",
        messages: "messages[0]: the user's first turn is missing"
      }
    }
  ]
}
