/**
 * Replies of each server with what only its contract has, beside those of the matrix: probabilities, sources, refusals, sealed reasoning, parts of
 * the vendor's tools, further counts, and forms that were not asked for.
 */
import { tools } from "../../styles/support.ts"
import * as generate from "../../support/generateServer.ts"
import * as messages from "../../support/messagesServer.ts"
import * as openai from "../../support/openaiServer.ts"
import type { Answer } from "../../support/openaiServer.ts"
import * as responses from "../../support/responsesServer.ts"
import type { Ask } from "../../support/styleClients.ts"
import type { MatrixDriver } from "../../upstream/matrix/driver.ts"

/** A reply of a server, and what is asked for it. */
export interface Reply {
  readonly name: string
  readonly answer: Answer
  readonly ask?: Partial<Ask>
}

const { chunk, frames } = openai

/** A chat stream of these deltas with further counts. */
const chatStream = (...chunks: ReadonlyArray<object>): Answer => ({
  headers: {
    "x-ratelimit-limit-requests": "100",
    "x-ratelimit-remaining-requests": "99",
    "x-ratelimit-reset-requests": "6m0s",
    "x-ratelimit-remaining-tokens": "4000",
    "x-request-id": "req-server"
  },
  pieces: [frames(...chunks, "[DONE]")]
})

const furtherUsage = {
  prompt_tokens: 20,
  completion_tokens: 9,
  total_tokens: 29,
  prompt_tokens_details: { cached_tokens: 8, audio_tokens: 1, cache_write_tokens: 2 },
  completion_tokens_details: {
    reasoning_tokens: 3,
    audio_tokens: 1,
    accepted_prediction_tokens: 1,
    rejected_prediction_tokens: 2
  },
  cost: 0.01
}

const probability = {
  token: "Hi",
  logprob: -0.1,
  bytes: [72, 105],
  top_logprobs: [{ token: "Hi", logprob: -0.1, bytes: [72, 105] }]
}
const source = {
  type: "url_citation",
  url_citation: { start_index: 0, end_index: 2, url: "https://x.test", title: "X" }
}

const chatMessage = (message: object, rest: object = {}) =>
  openai.json(200, {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{
      index: 0,
      message: { role: "assistant", content: null, ...message },
      finish_reason: "stop",
      logprobs: null
    }],
    usage: furtherUsage,
    system_fingerprint: "fp_1",
    service_tier: "default",
    ...rest
  })

const ofChat: ReadonlyArray<Reply> = [
  {
    name: "further counts, probabilities and sources",
    answer: chatStream(
      chunk({ role: "assistant", content: "" }, null, { system_fingerprint: "fp_1", service_tier: "default" }),
      {
        ...chunk({}),
        choices: [{ index: 0, delta: { content: "Hi" }, logprobs: { content: [probability] }, finish_reason: null }]
      },
      chunk({ annotations: [source] }),
      chunk({}, "stop"),
      { ...chunk({}), choices: [], usage: furtherUsage }
    )
  },
  {
    name: "a refusal",
    answer: chatStream(
      chunk({ role: "assistant", refusal: "" }),
      chunk({ refusal: "I cannot" }),
      chunk({ refusal: " help." }),
      chunk({}, "stop")
    )
  },
  {
    name: "reasoning by its other names",
    answer: chatStream(
      chunk({ reasoning: "H" }),
      chunk({
        reasoning: "m.",
        reasoning_details: [{ type: "reasoning.text", text: "Hm.", signature: "c2ln", index: 0 }]
      }),
      chunk({ content: "Four." }),
      chunk({}, "stop", { usage: openai.usage })
    ),
    ask: { reasoner: true }
  },
  {
    name: "reasoning in the text",
    answer: openai.streamed({ content: "<think>Hm" }, { content: ".</think>Fo" }, { content: "ur." }),
    ask: { reasoner: true }
  },
  { name: "no counts", answer: chatStream(chunk({ content: "Hello" }), chunk({}, "stop")) },
  {
    name: "calls in pieces, with a signature",
    answer: chatStream(
      chunk({
        tool_calls: [{
          index: 0,
          id: "call_a",
          type: "function",
          function: { name: "get_weather", arguments: "" },
          extra_content: { google: { thought_signature: "c2ln" } }
        }]
      }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: "{\"city\":" } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: "\"Oslo\"}" } }] }),
      chunk({
        tool_calls: [{ index: 1, id: "call_b", type: "function", function: { name: "get_time", arguments: "{}" } }]
      }),
      chunk({}, "tool_calls")
    ),
    ask: { tools }
  },
  {
    name: "a whole message with all that one has",
    answer: chatMessage({
      content: "Hi",
      refusal: null,
      annotations: [source],
      reasoning_content: "Hm.",
      audio: { id: "audio_1", data: "aGk=", expires_at: 1, transcript: "Hi" }
    })
  },
  { name: "a whole refusal", answer: chatMessage({ refusal: "I cannot help." }) },
  {
    name: "several choices where one was asked for",
    answer: chatStream(
      {
        ...chunk({}),
        choices: [0, 1].map((index) => ({ index, delta: { content: `c${index}` }, finish_reason: null }))
      },
      { ...chunk({}), choices: [0, 1].map((index) => ({ index, delta: {}, finish_reason: "stop" })) }
    )
  },
  {
    name: "frames with other line ends, comments and names",
    answer: {
      pieces: [
        `: hello\r\n\r\nevent: message\r\nid: 1\r\ndata:${JSON.stringify(chunk({ content: "Hel" }))}\r\n\r\n`,
        frames(chunk({ content: "lo" })).slice(0, 40),
        frames(chunk({ content: "lo" })).slice(40) + frames(chunk({}, "stop"), "[DONE]")
      ]
    }
  }
]

const responsesUsage = {
  input_tokens: 20,
  input_tokens_details: { cached_tokens: 8, cache_write_tokens: 2 },
  output_tokens: 9,
  output_tokens_details: { reasoning_tokens: 3 },
  total_tokens: 29
}

const { callItem, messageItem, reasoningItem, responseOf } = responses
const text = (words: string, part: object) =>
  messageItem(words, { content: [{ type: "output_text", text: words, ...part }] })

const rich = responseOf([
  reasoningItem("Hm.", { id: "rs_1", encrypted_content: "ZW5j" }),
  text("Hello there", {
    annotations: [{ type: "url_citation", start_index: 0, end_index: 2, url: "https://x.test", title: "X" }],
    logprobs: [{ token: "Hello", logprob: -0.1, bytes: [72], top_logprobs: [] }]
  })
], { usage: responsesUsage, service_tier: "default", metadata: { a: "b" } })

const ofResponses: ReadonlyArray<Reply> = [
  {
    name: "sealed reasoning, sources, probabilities and further counts",
    answer: responses.streamed(rich),
    ask: { reasoner: true }
  },
  { name: "all of that whole", answer: responses.whole(rich), ask: { reasoner: true } },
  {
    name: "a refusal",
    answer: responses.streamed(
      responseOf([messageItem("", { content: [{ type: "refusal", refusal: "I cannot help." }] })])
    )
  },
  {
    name: "items of the vendor's tools",
    answer: responses.streamed(responseOf([
      { id: "ws_1", type: "web_search_call", status: "completed", action: { type: "search", query: "q" } },
      { id: "ci_1", type: "code_interpreter_call", status: "completed", code: "1", container_id: "c", outputs: [] },
      messageItem("Found.")
    ]))
  },
  {
    name: "a call of a custom tool",
    answer: responses.streamed(responseOf([
      {
        id: "ctc_1",
        type: "custom_tool_call",
        status: "completed",
        call_id: "call_1",
        name: "get_weather",
        input: "Oslo"
      }
    ])),
    ask: { tools }
  },
  {
    name: "calls between messages",
    answer: responses.streamed(responseOf([
      messageItem("See. ", { id: "msg_1" }),
      callItem("get_weather", { city: "Oslo" }, { id: "fc_1", call_id: "call_1" }),
      callItem("get_time", { city: "Rome" }, { id: "fc_2", call_id: "call_2" }),
      messageItem("Done.", { id: "msg_2" })
    ])),
    ask: { tools }
  },
  { name: "no counts", answer: responses.streamed(responseOf([messageItem("Hello")], { usage: null })) },
  {
    name: "limits of the rate in headers and an event of them",
    answer: {
      ...responses.streamed(responseOf([messageItem("Hello")])),
      headers: {
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "900",
        "openai-organization": "org"
      }
    }
  }
]

const furtherCounts = {
  ...messages.usage,
  output_tokens_details: { thinking_tokens: 2 },
  server_tool_use: { web_search_requests: 1 },
  inference_geo: "eu"
}

const ofMessages: ReadonlyArray<Reply> = [
  {
    name: "signed thinking, sources and further counts",
    answer: {
      ...messages.streamedMessage([
        { type: "thinking", thinking: "Hm.", signature: "c2ln" },
        { type: "redacted_thinking", data: "ZW5j" },
        {
          type: "text",
          text: "Four.",
          citations: [{
            type: "char_location",
            cited_text: "a",
            document_index: 0,
            document_title: "A",
            start_char_index: 0,
            end_char_index: 1
          }]
        }
      ], { usage: furtherCounts }),
      headers: {
        "anthropic-ratelimit-requests-limit": "100",
        "anthropic-ratelimit-requests-remaining": "99",
        "anthropic-ratelimit-requests-reset": "2026-01-02T03:05:05Z",
        "anthropic-ratelimit-unified-5h-utilization": "0.5",
        "request-id": "req_server"
      }
    },
    ask: { reasoner: true }
  },
  {
    name: "all of that whole",
    answer: messages.wholeMessage([
      { type: "thinking", thinking: "Hm.", signature: "c2ln" },
      { type: "redacted_thinking", data: "ZW5j" },
      messages.textBlock("Four.")
    ], { usage: furtherCounts }),
    ask: { reasoner: true }
  },
  {
    name: "blocks of the vendor's tools",
    answer: messages.streamedMessage([
      { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } },
      {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: [{
          type: "web_search_result",
          url: "https://x.test",
          title: "X",
          encrypted_content: "ZW5j",
          page_age: null
        }]
      },
      messages.textBlock("Found.")
    ], { usage: furtherCounts })
  },
  {
    name: "a refusal",
    answer: messages.streamedMessage([messages.textBlock("I cannot")], {
      stop: { stop_reason: "refusal", stop_details: { type: "refusal", category: "cyber", explanation: "No." } }
    })
  },
  {
    name: "calls between text",
    answer: messages.streamedMessage([
      messages.textBlock("See. "),
      { type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Oslo" } },
      { type: "tool_use", id: "toolu_2", name: "get_time", input: { city: "Rome" } }
    ], { stop: { stop_reason: "tool_use" } }),
    ask: { tools }
  },
  {
    name: "too long a context",
    answer: messages.streamedMessage([messages.textBlock("So")], {
      stop: { stop_reason: "model_context_window_exceeded" }
    })
  }
]

const meta = {
  ...generate.usageMetadata,
  thoughtsTokenCount: 3,
  cachedContentTokenCount: 8,
  toolUsePromptTokenCount: 1,
  promptTokensDetails: [{ modality: "TEXT", tokenCount: 11 }]
}
const stop = { finishReason: "STOP" }

const ofGenerate: ReadonlyArray<Reply> = [
  {
    name: "signed thoughts, sources, ratings and further counts",
    answer: generate.streamed(
      generate.chunk([{ text: "Hm.", thought: true, thoughtSignature: "c2ln" }]),
      generate.chunk([{ text: "Four." }], {
        ...stop,
        safetyRatings: [{ category: "HARM_CATEGORY_HARASSMENT", probability: "NEGLIGIBLE" }],
        groundingMetadata: {
          webSearchQueries: ["q"],
          groundingChunks: [{ web: { uri: "https://x.test", title: "X" } }]
        },
        citationMetadata: { citationSources: [{ startIndex: 0, endIndex: 1, uri: "https://x.test" }] },
        avgLogprobs: -0.1
      }, { usageMetadata: meta })
    ),
    ask: { reasoner: true }
  },
  {
    name: "all of that whole",
    answer: generate.json(
      200,
      generate.chunk(
        [{ text: "Hm.", thought: true, thoughtSignature: "c2ln" }, { text: "Four.", thoughtSignature: "c2ln" }],
        stop,
        {
          usageMetadata: meta
        }
      )
    ),
    ask: { reasoner: true }
  },
  {
    name: "code that the vendor ran",
    answer: generate.streamed(
      generate.chunk([{ executableCode: { language: "PYTHON", code: "print(1)" } }]),
      generate.chunk([{ codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } }]),
      generate.chunk([{ text: "One." }], stop)
    )
  },
  {
    name: "a picture",
    answer: generate.streamed(
      generate.chunk([{ text: "Look" }, { inlineData: { mimeType: "image/png", data: "aGk=" } }], stop)
    )
  },
  {
    name: "a prompt that is blocked",
    answer: generate.streamed({
      promptFeedback: { blockReason: "SAFETY", safetyRatings: [] },
      usageMetadata: meta,
      modelVersion: "m"
    })
  },
  {
    name: "a call that is no call",
    answer: generate.streamed(generate.chunk([], { finishReason: "MALFORMED_FUNCTION_CALL", finishMessage: "f(" }))
  },
  { name: "an unknown end", answer: generate.streamed(generate.chunk([{ text: "So" }], { finishReason: "LANGUAGE" })) },
  {
    name: "calls with ids",
    answer: generate.streamed(
      generate.chunk([{
        functionCall: { id: "c1", name: "get_weather", args: { city: "Oslo" } },
        thoughtSignature: "c2ln"
      }]),
      generate.chunk([{ functionCall: { id: "c2", name: "get_time", args: {} } }], stop)
    ),
    ask: { tools }
  }
]

export const replies: { readonly [Name in MatrixDriver["name"]]: ReadonlyArray<Reply> } = {
  openai: ofChat,
  responses: ofResponses,
  messages: ofMessages,
  generate: ofGenerate
}
