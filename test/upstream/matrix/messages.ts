/** The driver for messages in the matrix. */
import { oslo, reasoning, rome, text } from "../../styles/replies.ts"
import { citySchema, tools } from "../../styles/support.ts"
import {
  events,
  failed,
  json,
  messageEvents,
  startMessagesServer,
  streamedMessage,
  textBlock,
  wholeMessage
} from "../../support/messagesServer.ts"
import type { Block } from "../../support/styleClients.ts"
import type { MatrixDriver, RequestRow } from "./driver.ts"
import { told, word } from "./failures.ts"
import { pdf } from "./requests.ts"

const blockOf = (block: Block, index: number) => {
  switch (block._tag) {
    case "Text":
      return textBlock(block.text)
    case "Reasoning":
      return { type: "thinking", thinking: block.text, signature: "c2ln" }
    case "Call":
      return { type: "tool_use", id: `toolu_${index}`, name: block.name, input: block.arguments }
  }
}

const stopReasons = {
  stop: "end_turn",
  stop_sequence: "stop_sequence",
  tool_calls: "tool_use",
  length: "max_tokens",
  content_filter: "refusal"
}

/** Counts that every style has a place for. */
const counts = {
  input_tokens: 14,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 5,
  output_tokens: 7,
  output_tokens_details: { thinking_tokens: 2 }
}

const png = "aGk="
const schema = { type: "object", properties: { city: { type: "string" } } }
const chatTool = { type: "function", function: { name: "f", parameters: schema } }
const arrivingTools = [{ name: "f", input_schema: schema }]
const weatherTool = [{ name: "get_weather", description: "W", input_schema: citySchema }]

/** A message of two calls, of which the first one's arguments end last. */
const alternating = (isEnded: boolean) => {
  const input = (index: number, partial_json: string) => ({
    type: "content_block_delta",
    index,
    delta: { type: "input_json_delta", partial_json }
  })
  const begin = (index: number, name: string) => ({
    type: "content_block_start",
    index,
    content_block: { type: "tool_use", id: `toolu_${index}`, name, input: {} }
  })
  const end = (index: number) => ({ type: "content_block_stop", index })
  const [first, ...others] = messageEvents([], { stop: { stop_reason: "tool_use" }, usage: counts })
  return [
    first!,
    begin(0, "get_weather"),
    ...(isEnded ? [input(0, `{"city"`), end(0)] : []),
    begin(1, "get_time"),
    ...(isEnded
      ? [input(1, `{"city":`), input(0, `:"Oslo"}`)]
      : [input(0, `{"city":"Oslo"}`), end(0), input(1, `{"city":`)]),
    input(1, `"Rome"`),
    input(1, "}"),
    end(1),
    ...others
  ]
}

const requests: ReadonlyArray<RequestRow> = [
  {
    name: "the name of a document",
    in: {
      chat: {
        messages: [{ role: "user", content: [{ type: "file", file: { filename: "a.pdf", file_data: pdf } }] }]
      },
      responses: {
        input: [{ role: "user", content: [{ type: "input_file", filename: "a.pdf", file_data: pdf }] }]
      }
    },
    arrives: {
      messages: [{
        role: "user",
        content: [
          { type: "document", source: { type: "base64", media_type: "application/pdf", data: png }, title: "a.pdf" }
        ]
      }]
    }
  },
  {
    name: "no blank text, and no message without words",
    in: {
      chat: {
        messages: [
          { role: "user", content: "A" },
          { role: "assistant", content: "" },
          { role: "user", content: [{ type: "text", text: "  " }, { type: "text", text: "B" }] }
        ]
      }
    },
    arrives: { messages: [{ role: "user", content: [textBlock("A"), textBlock("B")] }] },
    ignored: { chat: "messages[1]: empty turn" }
  },
  {
    name: "a system message in the midst",
    in: {
      chat: {
        messages: [
          { role: "user", content: "A" },
          { role: "assistant", content: "B" },
          { role: "system", content: "Be brief." }
        ]
      }
    },
    arrives: {
      messages: [
        { role: "user", content: "A" },
        { role: "assistant", content: "B" },
        { role: "user", content: "Be brief." }
      ]
    }
  },
  {
    name: "a tool loop, with results first",
    in: {
      chat: {
        tools: [chatTool],
        messages: [
          { role: "user", content: "Hi" },
          {
            role: "assistant",
            content: null,
            tool_calls: [
              { id: "call_1", type: "function", function: { name: "f", arguments: `{"city":"Oslo"}` } },
              { id: "call:2", type: "function", function: { name: "f", arguments: "{}" } }
            ]
          },
          { role: "tool", tool_call_id: "call_1", content: "sunny" },
          { role: "user", content: "Go on." },
          { role: "tool", tool_call_id: "call:2", content: "rain" }
        ]
      }
    },
    arrives: {
      tools: arrivingTools,
      messages: [
        { role: "user", content: "Hi" },
        {
          role: "assistant",
          content: [
            { type: "tool_use", id: "call_1", name: "f", input: { city: "Oslo" } },
            { type: "tool_use", id: "call_2_b4635841ce1a1a7d", name: "f", input: {} }
          ]
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "call_1", content: "sunny" },
            { type: "tool_result", tool_use_id: "call_2_b4635841ce1a1a7d", content: "rain" },
            textBlock("Go on.")
          ]
        }
      ]
    },
    ignored: { chat: "messages[4]: result apart from its call" }
  },
  {
    name: "a forced tool, one at a time",
    in: {
      chat: {
        messages: [{ role: "user", content: "Hi" }],
        tools: [chatTool],
        tool_choice: { type: "function", function: { name: "f" } },
        parallel_tool_calls: false
      },
      responses: {
        input: "Hi",
        tools: [{ type: "function", name: "f", parameters: schema }],
        tool_choice: { type: "function", name: "f" },
        parallel_tool_calls: false
      }
    },
    arrives: { tools: arrivingTools, tool_choice: { type: "tool", name: "f", disable_parallel_tool_use: true } }
  },
  {
    name: "sampling within the vendor's range, and what the vendor lacks",
    in: {
      chat: {
        messages: [{ role: "user", content: "Hi" }],
        temperature: 1.7,
        top_p: 0.5,
        seed: 3,
        frequency_penalty: 0.1,
        max_tokens: 9
      },
      generate: {
        contents: [{ role: "user", parts: [{ text: "Hi" }] }],
        generationConfig: { temperature: 1.7, topP: 0.5, seed: 3, frequencyPenalty: 0.1, maxOutputTokens: 9 }
      }
    },
    arrives: { temperature: 1, max_tokens: 9 },
    ignored: {
      chat: "top_p,seed,frequency_penalty",
      generate: "generationConfig.topP,generationConfig.seed,generationConfig.frequencyPenalty"
    }
  },
  {
    name: "the limit of the model's entry, with thinking beside it",
    in: {
      chat: { messages: [{ role: "user", content: "Hi" }], reasoning_effort: "low", temperature: 0.3 },
      responses: { input: "Hi", reasoning: { effort: "low" }, temperature: 0.3 },
      generate: {
        contents: [{ role: "user", parts: [{ text: "Hi" }] }],
        generationConfig: { thinkingConfig: { thinkingBudget: 2048 }, temperature: 0.3 }
      }
    },
    arrives: { max_tokens: 18_048, thinking: { type: "enabled", budget_tokens: 2048 } },
    ignored: { chat: "temperature", responses: "temperature", generate: "generationConfig.temperature" }
  },
  {
    name: "a budget below the limit of the caller",
    in: {
      chat: { messages: [{ role: "user", content: "Hi" }], reasoning_effort: "high", max_completion_tokens: 3000 }
    },
    arrives: { max_tokens: 3000, thinking: { type: "enabled", budget_tokens: 2999 } }
  },
  {
    name: "no budget where the limit leaves no room",
    in: {
      chat: { messages: [{ role: "user", content: "Hi" }], reasoning_effort: "high", max_completion_tokens: 1000 }
    },
    arrives: { max_tokens: 1000 },
    ignored: { chat: "reasoning_effort" }
  },
  {
    name: "no budget with a forced tool",
    in: {
      chat: {
        messages: [{ role: "user", content: "Hi" }],
        reasoning_effort: "high",
        tools: [chatTool],
        tool_choice: "required"
      }
    },
    arrives: { max_tokens: 16_000, tools: arrivingTools, tool_choice: { type: "any" } },
    ignored: { chat: "reasoning_effort" }
  },
  {
    name: "no budget in a tool loop that began without thinking",
    in: {
      chat: {
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", tool_calls: [{ id: "t", type: "function", function: { name: "f", arguments: "{}" } }] },
          { role: "tool", tool_call_id: "t", content: "done" }
        ],
        reasoning_effort: "high",
        temperature: 0.5,
        tools: [chatTool]
      }
    },
    arrives: { max_tokens: 16_000, tools: arrivingTools, temperature: 0.5 },
    ignored: { chat: "reasoning_effort" }
  },
  {
    name: "no temperature beside thinking",
    in: {
      chat: { messages: [{ role: "user", content: "Hi" }], reasoning_effort: "low", temperature: 0.5, top_p: 0.5 }
    },
    arrives: { thinking: { type: "enabled", budget_tokens: 2048 } },
    ignored: { chat: "temperature,top_p" }
  },
  {
    name: "no thinking",
    in: {
      chat: { messages: [{ role: "user", content: "Hi" }], reasoning_effort: "none" },
      generate: {
        contents: [{ role: "user", parts: [{ text: "Hi" }] }],
        generationConfig: { thinkingConfig: { thinkingBudget: 0 } }
      }
    },
    arrives: { max_tokens: 16_000, thinking: { type: "disabled" } }
  }
]

export const messages: MatrixDriver = {
  name: "messages",
  keyHeader: "x-api-key",
  own: "messages",
  start: async () => {
    const server = await startMessagesServer()
    return { server, address: server.url }
  },
  models: { "upstream-chat": "server-chat", "upstream-reasoner": { model: "server-thinker", max_tokens: 16_000 } },
  write: (pieces, finish, stream) =>
    (stream ? streamedMessage : wholeMessage)(pieces.map(blockOf), {
      stop: { stop_reason: stopReasons[finish] },
      usage: counts
    }),
  hello: events(...messageEvents([textBlock("Hello")]).slice(0, 5)),
  watches: [
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "temperature",
    "seed",
    "frequency_penalty",
    "reasoning_effort"
  ],
  arrives: {
    "instructions and a conversation": {
      system: "Be brief.",
      messages: [
        { role: "user", content: [textBlock("A"), textBlock("B")] },
        { role: "assistant", content: "C" },
        { role: "user", content: "D" }
      ]
    },
    "a loop of tools": {
      tools: weatherTool,
      messages: [
        { role: "user", content: "Go" },
        { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "get_weather", input: { city: "Oslo" } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "Rain" }] }
      ]
    },
    "tools that must not be called": {
      tools: weatherTool,
      tool_choice: { type: "none" },
      messages: [{ role: "user", content: "Go" }]
    },
    "pictures and a document": {
      messages: [{
        role: "user",
        content: [
          { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
          { type: "document", source: { type: "base64", media_type: "application/pdf", data: png } },
          { type: "image", source: { type: "url", url: "https://x.test/a.png" } }
        ]
      }]
    }
  },
  failures: {
    "a bad request": failed(400, "invalid_request_error", word),
    "a long prompt": failed(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
    "an unknown model": failed(404, "not_found_error", "model: server-chat"),
    "a refused key": failed(401, "authentication_error", word),
    "a missing right": failed(403, "permission_error", word),
    "a rate limit": failed(429, "rate_limit_error", word, { "retry-after": "9" }),
    "no quota": failed(402, "billing_error", word),
    "an overload": failed(529, "overloaded_error", word),
    "trouble": failed(500, "api_error", word),
    "its own time-out": failed(504, "timeout_error", word),
    "a page": { status: 502, headers: { "content-type": "text/html" }, pieces: ["<html>Bad gateway</html>"] },
    "no answer": { headless: true, after: "hang" },
    "a connection that breaks": { headless: true, after: "reset" },
    "an empty reply": streamedMessage([]),
    "a broken whole reply": json(200, "{\"type\":\"message\",\"content\":[{")
  },
  streamFaults: {
    "an error": { pieces: [events({ type: "error", error: { type: "api_error", message: word } })] },
    "a rate limit": { pieces: [events({ type: "error", error: { type: "rate_limit_error", message: word } })] },
    "an early end": { pieces: [] },
    "a broken connection": { after: "reset" },
    "silence": { after: "hang" },
    "broken JSON": { pieces: [events("data: {oops\n\n")] }
  },
  furtherFailures: [
    [
      "a request that is too large",
      failed(413, "request_too_large", "32 MB at most"),
      told(413, "request_too_large", /32 MB/)
    ]
  ],
  furtherStreamFaults: [
    [
      "an end with a word for failure",
      { pieces: [events({ type: "message_delta", delta: { stop_reason: "model_error" } }, { type: "message_stop" })] },
      told(503, "upstream_error", /model_error/, 3),
      told(503, "upstream_error", /model_error/)
    ]
  ],
  told: { "an overload": told(429, "upstream_rate_limited", /overloaded|limits/i, 3) },
  replies: [
    {
      name: "a stop sequence",
      answer: streamedMessage([textBlock("So far")], {
        stop: { stop_reason: "stop_sequence", stop_sequence: "END" },
        usage: counts
      }),
      pieces: [text("So far")],
      finish: "stop_sequence",
      ask: { stop: ["END"] }
    },
    {
      name: "a pause",
      answer: streamedMessage([textBlock("Wait")], { stop: { stop_reason: "pause_turn" }, usage: counts }),
      pieces: [text("Wait")],
      finish: "length",
      // The messages style has the server's own word.
      styles: ["chat", "responses", "generate"]
    },
    {
      name: "a null among the events",
      answer: {
        pieces: [events(
          ...messageEvents([textBlock("Hello")], { usage: counts }).flatMap((event) => [event, "data: null\n\n"])
        )]
      },
      pieces: [text("Hello")],
      finish: "stop"
    },
    {
      name: "pieces of blocks that nothing begins or ends",
      answer: {
        pieces: [events(
          ...messageEvents([{ type: "thinking", thinking: "Hm.", signature: "c2ln" }, textBlock("Hello")], {
            usage: counts
          }).filter(({ type }) => !String(type).startsWith("content_block_st"))
        )]
      },
      pieces: [reasoning("Hm."), text("Hello")],
      finish: "stop",
      ask: { reasoner: true },
      styles: ["chat", "responses", "generate"]
    },
    ...[false, true].map((isEnded) => ({
      name: `calls whose pieces alternate, ${isEnded ? "after the end of a block" : "before the end of a block"}`,
      answer: {
        pieces: [events(...alternating(isEnded))]
      },
      pieces: [oslo, rome],
      finish: "tool_calls" as const,
      ask: { tools },
      styles: ["chat", "responses", "generate"] as const
    })),
    {
      name: "the input of a call as text",
      answer: wholeMessage([{ type: "tool_use", id: "toolu_0", name: "get_weather", input: `{"city":"Oslo"}` }], {
        stop: { stop_reason: "tool_use" },
        usage: counts
      }),
      pieces: [oslo],
      finish: "tool_calls",
      ask: { tools }
    },
    ...[streamedMessage, wholeMessage].map((write) => ({
      name: `an end with a word that no table has, by ${write.name}`,
      answer: write([textBlock("So")], { stop: { stop_reason: "word_of_the_future" }, usage: counts }),
      pieces: [text("So")],
      finish: "length" as const,
      styles: ["chat", "responses", "generate"] as const
    }))
  ],
  requests
}
