/** The driver for OpenAI-compatible servers in the matrix. */
import { cutOff, oslo, reasoning, rome, text } from "../../styles/replies.ts"
import { citySchema, tools } from "../../styles/support.ts"
import { type Answer, chunk, frames, json, startOpenAiServer, usage } from "../../support/openaiServer.ts"
import type { Block } from "../../support/styleClients.ts"
import type { MatrixDriver, ReplyRow } from "./driver.ts"
import { told, word } from "./failures.ts"
import { pdf, picture } from "./requests.ts"

const error = (fields: object) => ({ error: { message: word, ...fields } })

/** A piece as a delta, or as fields of a whole message. */
const deltaOf = (block: Block, index: number): object => {
  switch (block._tag) {
    case "Text":
      return { content: block.text }
    case "Reasoning":
      return { reasoning_content: block.text }
    case "Call":
      return {
        tool_calls: [{
          index,
          id: `call_${index}`,
          type: "function",
          function: { name: block.name, arguments: JSON.stringify(block.arguments) }
        }]
      }
  }
}

const finishReasons = {
  stop: "stop",
  stop_sequence: "stop",
  tool_calls: "tool_calls",
  length: "length",
  content_filter: "content_filter"
}

/** A streamed reply of deltas that the server ends with a reason. */
const stream = (finish: string, ...deltas: ReadonlyArray<object>): Answer => ({
  pieces: [
    frames(
      chunk({ role: "assistant", content: "" }),
      ...deltas.map((delta) => chunk(delta)),
      chunk({}, finish),
      { ...chunk({}), choices: [], usage },
      "[DONE]"
    )
  ]
})

const whole = (pieces: ReadonlyArray<Block>, finish_reason: string): Answer => {
  const of = (tag: Block["_tag"]) => pieces.flatMap((block, index) => block._tag === tag ? [deltaOf(block, index)] : [])
  const tool_calls = of("Call").flatMap((delta) => "tool_calls" in delta ? delta.tool_calls : [])
  const message = {
    role: "assistant",
    content: null,
    ...Object.assign({}, ...of("Reasoning"), ...of("Text")) as object,
    ...(tool_calls.length === 0 ? {} : { tool_calls })
  }
  return json(200, {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message, finish_reason }],
    usage
  })
}

const list = (...tool_calls: ReadonlyArray<object>) => ({ tool_calls })
const header = (index: number, name: string) => ({ index, id: `id${index}`, function: { name, arguments: "" } })
const piece = (index: number, args: string) => ({ index, function: { arguments: args } })
const nameless = (name: string, args: string) => ({ index: 0, id: "", function: { name, arguments: args } })
const inOslo = `{"city":"Oslo"}`
const inRome = `{"city":"Rome"}`
const nativeRome = { index: 0, id: "a", function: { name: "get_time", arguments: inRome } }
const content = (content: string) => ({ content })

/** Calls as servers send them against the book, in the midst of text too. */
const calls = (
  name: string,
  deltas: ReadonlyArray<object>,
  pieces: ReplyRow["pieces"],
  finish: ReplyRow["finish"] = "tool_calls"
): ReplyRow => ({
  name: `calls ${name}`,
  answer: stream("tool_calls", ...deltas),
  pieces,
  finish,
  ask: { tools, reasoner: true }
})

const weather = [{ type: "function", function: { name: "get_weather", description: "W", parameters: citySchema } }]

export const openai: MatrixDriver = {
  name: "openai",
  keyHeader: "authorization",
  start: async () => {
    const server = await startOpenAiServer()
    return { server, address: server.baseUrl }
  },
  models: {},
  write: (pieces, finish, isStream) =>
    isStream ? stream(finishReasons[finish], ...pieces.map(deltaOf)) : whole(pieces, finishReasons[finish]),
  hello: frames(chunk({ role: "assistant", content: "" }), chunk({ content: "Hello" })),
  watches: ["tools", "tool_choice", "temperature", "reasoning_effort"],
  arrives: {
    "instructions and a conversation": {
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "A" },
        { role: "user", content: "B" },
        { role: "assistant", content: "C" },
        { role: "user", content: "D" }
      ]
    },
    "a loop of tools": {
      tools: weather,
      messages: [
        { role: "user", content: "Go" },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c1", type: "function", function: { name: "get_weather", arguments: inOslo } }]
        },
        { role: "tool", tool_call_id: "c1", content: "Rain" }
      ]
    },
    // Nothing of them, since some servers call them all the same.
    "tools that must not be called": { messages: [{ role: "user", content: "Go" }] },
    "pictures and a document": {
      messages: [{
        role: "user",
        content: [
          { type: "image_url", image_url: { url: picture } },
          { type: "file", file: { file_data: pdf, filename: "file.pdf" } },
          { type: "image_url", image_url: { url: "https://x.test/a.png" } }
        ]
      }]
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
    "an empty reply": { pieces: [frames(chunk({}, "stop"), "[DONE]")] },
    "a broken whole reply": json(200, "{\"choices\":[{\"me")
  },
  streamFaults: {
    "an error": { pieces: [frames(error({ type: "server_error" }))] },
    "a rate limit": { pieces: [frames(error({ code: 429 }))] },
    "an early end": { pieces: [] },
    "a broken connection": { after: "reset" },
    "silence": { after: "hang" },
    "broken JSON": { pieces: [frames("{oops")] }
  },
  furtherFailures: [
    ["a filtered prompt", json(400, error({ code: "content_filter" })), told(400, "content_filter", /filter/)],
    ["too large a body", json(413, error({})), told(413, "request_too_large", /too large/)],
    ["an unknown path", json(404, { detail: "Not Found" }), told(503, "upstream_error", /no such endpoint/)],
    ["a page that says 200", { headers: { "content-type": "text/html" } }, told(503, "upstream_error", /failed/, 3)],
    [
      "a reply that is withdrawn whole",
      { pieces: [frames(chunk({}, "content_filter"))] },
      told(400, "content_filter", /filter/)
    ],
    ["an error that says 200", json(200, error({})), told(503, "upstream_error", /word of the server/, 3)],
    ...([
      [1_002, told(429, "upstream_rate_limited", /limits the rate/, 3)],
      [1_013, told(503, "upstream_error", /word of the server/, 3)]
    ] as const).flatMap(([status_code, told]) => {
      const body = { choices: null, base_resp: { status_code, status_msg: word } }
      return ([["whole", json(200, body)], ["streamed", { pieces: [frames(body, "[DONE]")] }]] as const).map(
        ([way, answer]) => [`the code ${status_code} beside a reply, ${way}`, answer, told] as const
      )
    })
  ],
  furtherStreamFaults: [
    [
      "a reply that is given up",
      { pieces: [frames(chunk({}, "error"), "[DONE]")] },
      told(503, "upstream_error", /failed/, 3),
      told(503, "upstream_error", /failed/)
    ],
    ...["insufficient_system_resource", "MALFORMED_FUNCTION_CALL", "upstream_timeout"].map((word) =>
      [
        `an end with the word ${word}`,
        { pieces: [frames(chunk({}, word), "[DONE]")] },
        told(503, "upstream_error", new RegExp(`ended the reply with .?"${word}`), 3),
        told(503, "upstream_error", new RegExp(word))
      ] as const
    ),
    [
      "a sentinel without a finish reason",
      { pieces: [frames("[DONE]")] },
      told(503, "upstream_empty_output", /empty/, 3),
      told(503, "upstream_error", /cut off/)
    ]
  ],
  replies: [
    calls("that are all named before the first one's arguments", [
      list(header(0, "get_weather"), header(1, "get_time")),
      list(piece(1, `{"city"`)),
      list(piece(0, inOslo)),
      list(piece(1, `:"Rome"}`))
    ], [oslo, rome]),
    calls("all numbered 0, without ids, one by one", [
      list(nameless("get_weather", inOslo)),
      list(nameless("get_time", inRome))
    ], [oslo, rome]),
    calls("all numbered 0, without ids, in one list", [
      list(nameless("get_weather", inOslo), nameless("get_weather", inOslo))
    ], [oslo, oslo]),
    calls("whose arguments have a number that none has", [
      list(header(0, "get_weather")),
      list(piece(0, inOslo)),
      list({ index: 0, id: "second", function: { name: "get_time", arguments: "" } }),
      list(piece(1, `{"city"`)),
      list(piece(1, `:"Rome"}`))
    ], [oslo, rome]),
    {
      name: "a null among the chunks",
      answer: {
        pieces: [
          frames(chunk({ content: "Hel" }), "null", chunk({ content: "lo" }), chunk({}, "stop"), {
            ...chunk({}),
            choices: [],
            usage
          }, "[DONE]")
        ]
      },
      pieces: [text("Hello")],
      finish: "stop"
    },
    calls("where the text may begin one", [content("See <tool"), list(nativeRome), content("s>.")], [
      text("See <tool"),
      rome,
      text("s>.")
    ]),
    calls(
      "where one in the text is open",
      [
        content(`Look: <tool_call>{"name":"get_weather","arguments":{"city":"Os`),
        list(nativeRome),
        content("Done.")
      ],
      [text("Look: "), cutOff("get_weather", `{"city":"Os`), rome, text("Done.")],
      "length"
    ),
    calls("in the text, with reasoning in their midst", [
      content(`<tool_call>{"name":"get_weather","arguments":{"city":"Os`),
      { reasoning_content: "Hm." },
      content(`lo"}}</tool_call>Done.`)
    ], [oslo, reasoning("Hm."), text("Done.")]),
    calls("with arguments that none has", [content("So."), list(piece(0, inOslo))], [text("So.")], "length"),
    ...[true, false].map((isStream) => ({
      name: `an end with a word that no table has, ${isStream ? "streamed" : "whole"}`,
      answer: isStream ? stream("word_of_the_future", content("So")) : whole([text("So")], "word_of_the_future"),
      pieces: [text("So")],
      finish: "length" as const
    })),
    ...[{ delta: null }, { delta: {} }, {}].map((delta) => ({
      name: `a last chunk with the whole message beside ${JSON.stringify(delta)}`,
      answer: {
        pieces: [
          frames(
            chunk({ role: "assistant", reasoning_content: "Hm." }),
            chunk({ content: "Hel" }),
            chunk({ content: "lo" }),
            {
              ...chunk({}),
              choices: [{
                index: 0,
                ...delta,
                message: {
                  role: "assistant",
                  content: "Hello",
                  reasoning: "Hm.",
                  tool_calls: list(nativeRome).tool_calls
                },
                finish_reason: "tool_calls"
              }],
              usage
            },
            "[DONE]"
          )
        ]
      },
      pieces: [reasoning("Hm."), text("Hello"), rome],
      finish: "tool_calls" as const,
      ask: { tools, reasoner: true }
    })),
    {
      name: "a message in one chunk, without deltas",
      answer: {
        pieces: [frames({
          ...chunk({}),
          choices: [{ index: 0, delta: null, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
          usage
        })]
      },
      pieces: [text("Hello")],
      finish: "stop"
    },
    {
      name: "text that a filter ends",
      answer: stream("content_filter", content("Hello")),
      pieces: [text("Hello")],
      finish: "content_filter"
    },
    {
      name: "nothing before a stop sequence",
      answer: stream("stop"),
      pieces: [],
      finish: "stop",
      ask: { stop: ["END"] },
      styles: ["chat", "messages", "generate"]
    }
  ]
}
