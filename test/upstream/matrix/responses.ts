/** The driver for the Responses API in the matrix. */
import { oslo, reasoning, text } from "../../styles/replies.ts"
import { citySchema, tools } from "../../styles/support.ts"
import type { Answer } from "../../support/openaiServer.ts"
import {
  callItem,
  events,
  eventsOf,
  type Fields,
  json,
  messageItem,
  opening,
  reasoningItem,
  responseOf,
  startResponsesServer,
  streamed,
  whole
} from "../../support/responsesServer.ts"
import type { Block } from "../../support/styleClients.ts"
import type { MatrixDriver } from "./driver.ts"
import { told, word } from "./failures.ts"
import { pdf, picture } from "./requests.ts"

const itemOf = (block: Block, index: number) => {
  switch (block._tag) {
    case "Text":
      return messageItem(block.text, { id: `msg_${index}` })
    case "Reasoning":
      return reasoningItem(block.text, { id: `rs_${index}` })
    case "Call":
      return callItem(block.name, block.arguments, { id: `fc_${index}`, call_id: `call_${index}` })
  }
}

const ends = {
  stop: {},
  stop_sequence: {},
  tool_calls: {},
  length: { status: "incomplete", completed_at: null, incomplete_details: { reason: "max_output_tokens" } },
  content_filter: { status: "incomplete", completed_at: null, incomplete_details: { reason: "content_filter" } }
}

const error = (fields: object) => ({
  error: { message: word, type: "server_error", param: null, code: null, ...fields }
})

const failed = (fields: object): Answer => ({
  pieces: [
    events({
      type: "response.failed",
      response: responseOf([], { status: "failed", completed_at: null, error: { message: word, ...fields } })
    })
  ]
})

const said = (fields: object): Answer => ({
  pieces: [events({ type: "error", message: word, param: null, ...fields })]
})

const user = (content: unknown) => ({ type: "message", role: "user", content })
const weather = [{ type: "function", name: "get_weather", description: "W", parameters: citySchema, strict: false }]
const hello = eventsOf(responseOf([messageItem("Hello!")])).slice(0, 5)

const twoItems = responseOf([
  reasoningItem("Think"),
  messageItem("Hello"),
  callItem("get_weather", { city: "Oslo" }, { id: "fc_two", call_id: "call_two" })
])

const objectCall = responseOf([{ ...callItem("get_weather", {}), arguments: { city: "Oslo" } }])

const keys = ({ item_id: _, output_index: __, ...rest }: Fields): Fields => rest

/** Streams without the events that begin items, and without more of what belongs together. */
const withoutBegin: ReadonlyArray<readonly [name: string, keeps: (event: Fields) => ReadonlyArray<Fields>]> = [
  ["with the ends of items", (event) => [event]],
  ["named by ids alone", ({ output_index: _, ...event }) => [event]],
  ["with no name", (event) => [keys(event)]],
  ["without ends of items", (event) => String(event["type"]).includes("item") ? [] : [event]],
  [
    "with their text and a last event alone",
    (event) => /text\.delta|completed/.test(String(event["type"])) ? [keys(event)] : []
  ]
]

export const responses: MatrixDriver = {
  name: "responses",
  keyHeader: "authorization",
  own: "responses",
  start: async () => {
    const server = await startResponsesServer()
    return { server, address: server.baseUrl }
  },
  models: {},
  write: (pieces, finish, stream) => {
    const response = responseOf(pieces.map(itemOf), ends[finish])
    return stream ? streamed(response) : whole(response)
  },
  hello: events(
    ...hello.map((event) => event["type"] === "response.output_text.delta" ? { ...event, delta: "Hello" } : event)
  ),
  watches: ["instructions", "tools", "tool_choice", "temperature"],
  arrives: {
    "instructions and a conversation": {
      instructions: "Be brief.",
      input: [
        user("A"),
        user("B"),
        {
          type: "message",
          role: "assistant",
          content: [{ type: "output_text", text: "C", annotations: [] }]
        },
        user("D")
      ]
    },
    "a loop of tools": {
      tools: weather,
      input: [
        user("Go"),
        { type: "function_call", call_id: "c1", name: "get_weather", arguments: `{"city":"Oslo"}` },
        { type: "function_call_output", call_id: "c1", output: "Rain" }
      ]
    },
    "tools that must not be called": { input: [user("Go")] },
    "pictures and a document": {
      input: [user([
        { type: "input_image", image_url: picture },
        { type: "input_file", file_data: pdf, filename: "file.pdf" },
        { type: "input_image", image_url: "https://x.test/a.png" }
      ])]
    }
  },
  failures: {
    "a bad request": json(400, error({ type: "invalid_request_error" })),
    "a long prompt": json(400, error({ code: "context_length_exceeded" })),
    "an unknown model": json(404, error({ code: "model_not_found" })),
    "a refused key": json(401, error({ code: "invalid_api_key" })),
    "a missing right": json(403, error({})),
    "a rate limit": json(429, error({}), { "retry-after": "9" }),
    "no quota": json(429, error({ code: "insufficient_quota" })),
    "an overload": json(503, { error: word }),
    "trouble": json(500, error({})),
    "its own time-out": { status: 504 },
    "a page": { status: 502, headers: { "content-type": "text/html" }, pieces: ["<html>Bad gateway</html>"] },
    "no answer": { headless: true, after: "hang" },
    "a connection that breaks": { headless: true, after: "reset" },
    "an empty reply": streamed(responseOf([])),
    "a broken whole reply": json(200, "{\"output\":[{\"me")
  },
  streamFaults: {
    "an error": failed({ code: "server_error" }),
    "a rate limit": failed({ code: "rate_limit_exceeded" }),
    "an early end": { pieces: [] },
    "a broken connection": { after: "reset" },
    "silence": { after: "hang" },
    "broken JSON": { pieces: [events("data: {oops\n\n")] }
  },
  furtherFailures: [
    ["an unknown path", json(404, { detail: "Not Found" }), told(503, "upstream_error", /no such endpoint/)],
    ["an error that says 200", json(200, error({})), told(503, "upstream_error", /word of the server/, 3)],
    [
      "a whole response that failed",
      json(200, responseOf([], { status: "failed", error: { code: "server_error", message: word } })),
      told(503, "upstream_error", /word of the server/, 3)
    ],
    [
      "a reply that ends before its first item",
      { pieces: [events(...opening(responseOf([])))] },
      told(503, "upstream_error", /cut off/, 3)
    ],
    ["a filtered prompt", failed({ code: "invalid_prompt" }), told(400, "content_filter", /filter/)],
    ["a policy", failed({ code: "cyber_policy_violation" }), told(400, "content_filter", /filter/)],
    [
      "too long a prompt",
      failed({ code: "context_length_exceeded" }),
      told(400, "context_length_exceeded", /too long/)
    ],
    ["a wrong picture", failed({ code: "image_parse_error" }), told(400, "invalid_request", /word of the server/)],
    ["a wrong field", said({ code: "invalid_value" }), told(400, "invalid_request", /word of the server/)]
  ],
  furtherStreamFaults: [
    [
      "a status that says failure",
      {
        pieces: [
          events({
            type: "response.completed",
            response: responseOf([], { status: "errored", error: { code: "server_error", message: word } })
          })
        ]
      },
      told(503, "upstream_error", /word of the server/, 3),
      told(503, "upstream_error", /word of the server/)
    ],
    [
      "an error of its own",
      said({ code: "server_is_overloaded" }),
      told(503, "upstream_error", /word of the server/, 3),
      told(503, "upstream_error", /word of the server/)
    ],
    [
      "an unknown code",
      said({ code: "word_from_the_future" }),
      told(503, "upstream_error", /word of the server/, 3),
      told(503, "upstream_error", /word of the server/)
    ],
    [
      "no quota",
      failed({ code: "usage_limit_reached" }),
      told(429, "upstream_rate_limited", /quota/, 3),
      told(429, "upstream_rate_limited", /quota/)
    ]
  ],
  replies: [
    {
      name: "thinking itself, in place of its summary",
      answer: streamed(responseOf([
        reasoningItem("", { summary: [], content: [{ type: "reasoning_text", text: "Hm." }] }),
        messageItem("Four.")
      ])),
      pieces: [reasoning("Hm."), text("Four.")],
      finish: "stop",
      ask: { reasoner: true },
      styles: ["chat", "messages", "generate"]
    },
    ...[
      { status: "word_of_the_future" },
      { status: "incomplete", incomplete_details: { reason: "word_of_the_future" } }
    ].flatMap((end) =>
      (end.incomplete_details === undefined ? [whole] : [streamed, whole]).map((write) => ({
        name: `an end with a word that no table has, by ${Object.keys(end).at(-1)}, ${write.name}`,
        answer: write(responseOf([messageItem("So")], end)),
        pieces: [text("So")],
        finish: "length" as const,
        styles: ["chat", "messages", "generate"] as const
      }))
    ),
    {
      name: "a null among the events",
      answer: { pieces: [events(...eventsOf(responseOf([messageItem("Hello")]))), "data: null\n\n"].toReversed() },
      pieces: [text("Hello")],
      finish: "stop"
    },
    {
      name: "a text that is said at its end alone",
      answer: {
        pieces: [events(
          ...eventsOf(responseOf([messageItem("Hello")])).flatMap((event) =>
            event["type"] === "response.output_text.done"
              ? [event]
              : event["type"] === "response.completed"
              ? [{ ...event, response: responseOf([]) }]
              : []
          )
        )]
      },
      pieces: [text("Hello")],
      finish: "stop",
      styles: ["chat", "messages", "generate"]
    },
    ...[
      whole(objectCall),
      {
        pieces: [
          events(...eventsOf(objectCall).filter(({ type }) => /created|output_item|completed/.test(String(type))))
        ]
      }
    ].map((answer, index) => ({
      name: `the arguments of a call as an object, ${index === 0 ? "whole" : "streamed"}`,
      answer,
      pieces: [oslo],
      finish: "tool_calls" as const,
      ask: { tools },
      styles: ["chat", "messages", "generate"] as const
    })),
    ...withoutBegin.map(([name, keeps]) => ({
      name: `items that begin with their first piece, ${name}`,
      answer: {
        pieces: [
          events(
            ...eventsOf(twoItems).flatMap((event) =>
              /added|in_progress/.test(String(event["type"])) ? [] : keeps(event)
            )
          )
        ]
      },
      pieces: [reasoning("Think"), text("Hello"), oslo],
      finish: "tool_calls" as const,
      ask: { tools, reasoner: true },
      styles: ["chat", "messages", "generate"] as const
    })),
    {
      name: "a call that a final event alone has",
      answer: {
        pieces: [
          events(...opening(responseOf([])), {
            type: "response.completed",
            response: responseOf([callItem("get_weather", { city: "Oslo" })])
          })
        ]
      },
      pieces: [oslo],
      finish: "tool_calls",
      ask: { tools }
    }
  ],
  requests: [
    {
      name: "a limit below the vendor's least",
      in: {
        chat: { messages: [{ role: "user", content: "A" }], max_tokens: 3 },
        messages: { messages: [{ role: "user", content: "A" }], max_tokens: 3 }
      },
      arrives: { max_output_tokens: 16 },
      ignored: { chat: "max_tokens", messages: "max_tokens" }
    },
    {
      name: "fields without a place",
      in: {
        chat: {
          messages: [{ role: "user", content: "A" }],
          top_k: 1,
          seed: 1,
          presence_penalty: 0.1,
          frequency_penalty: 0.1,
          logit_bias: { 1: 1 },
          temperature: 0.5,
          verbosity: "low",
          logprobs: true,
          top_logprobs: 2,
          store: true,
          metadata: { a: "b" }
        }
      },
      arrives: {
        temperature: 0.5,
        text: { verbosity: "low" },
        include: ["reasoning.encrypted_content", "message.output_text.logprobs"],
        top_logprobs: 2,
        store: true,
        metadata: { a: "b" }
      },
      ignored: { chat: "top_k,seed,presence_penalty,frequency_penalty,logit_bias" }
    },
    {
      name: "an effort, a schema and a choice",
      in: {
        chat: {
          messages: [{ role: "user", content: "A" }],
          reasoning_effort: "low",
          response_format: { type: "json_schema", json_schema: { name: "n", schema: citySchema, strict: true } },
          tools: [{ type: "function", function: { name: "f", parameters: citySchema, strict: true } }],
          tool_choice: { type: "function", function: { name: "f" } },
          parallel_tool_calls: false
        }
      },
      arrives: {
        store: false,
        include: ["reasoning.encrypted_content"],
        reasoning: { effort: "low", summary: "auto" },
        text: { format: { type: "json_schema", name: "n", schema: citySchema, strict: true } },
        tools: [{ type: "function", name: "f", parameters: citySchema, strict: true }],
        tool_choice: { type: "function", name: "f" },
        parallel_tool_calls: false
      }
    },
    {
      name: "no thinking",
      in: {
        chat: { messages: [{ role: "user", content: "A" }], reasoning_effort: "none" },
        messages: { messages: [{ role: "user", content: "A" }], thinking: { type: "disabled" } }
      },
      arrives: { reasoning: { effort: "none" } }
    },
    {
      name: "later instructions",
      in: {
        chat: { messages: [{ role: "user", content: "A" }, { role: "system", content: "Be brief." }] }
      },
      arrives: { input: [user("A"), { type: "message", role: "developer", content: "Be brief." }] }
    },
    {
      name: "a result with a picture, and one that failed",
      in: {
        messages: {
          messages: [
            { role: "user", content: "Go" },
            { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "f", input: {} }] },
            {
              role: "user",
              content: [{
                type: "tool_result",
                tool_use_id: "c1",
                is_error: true,
                content: [
                  { type: "text", text: "Look" },
                  { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } }
                ]
              }]
            }
          ]
        }
      },
      arrives: {
        input: [
          user("Go"),
          { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
          {
            type: "function_call_output",
            call_id: "c1",
            output: [
              { type: "input_text", text: "Error:" },
              { type: "input_text", text: "Look" },
              { type: "input_image", image_url: picture }
            ]
          }
        ]
      }
    }
  ]
}
