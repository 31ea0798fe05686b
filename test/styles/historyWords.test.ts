/** What a history says arrives at the server in the role that it belongs to, in every style, whole and streamed. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({ upstream: { driver: "openai", base_url: server.baseUrl } })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const styles = {
  chat: (messages: unknown, stream: boolean) => ["/v1/chat/completions", { model: "gpt-5", messages, stream }],
  responses: (input: unknown, stream: boolean) => ["/v1/responses", { model: "gpt-5", input, stream }],
  messages: (messages: unknown, stream: boolean) => ["/v1/messages", { model: "gpt-5", messages, stream }],
  generate: (contents: unknown, stream: boolean) => [
    `/v1beta/models/gpt-5:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    { contents }
  ]
} as const

interface Message {
  readonly role: string
  readonly name?: string
  readonly content: unknown
  readonly tool_call_id?: string
  readonly tool_calls?: ReadonlyArray<{
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }>
}

/** The messages of the last request in a short form, after a history was sent. */
const arrived = async (style: keyof typeof styles, history: unknown, stream: boolean) => {
  server.answer(() => streamed({ content: "Hi" }))
  const [path, body] = styles[style](history, stream)
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  const text = await response.text()
  assert.strictEqual(response.status, 200, text)
  return (server.requests[0]!.body["messages"] as ReadonlyArray<Message>).map((message) => {
    const { content, name, role, tool_call_id: id, tool_calls: calls } = message
    if (calls !== undefined) {
      return [role, content, ...calls.map((call) => [call.id, call.function.name, JSON.parse(call.function.arguments)])]
    }
    return [name === undefined ? role : `${role} ${name}`, ...(id === undefined ? [] : [id]), content]
  })
}

const go = { role: "user", content: "Go" }
const picture = "https://example.org/a.png"
const shown = ["user", [{ type: "image_url", image_url: { url: picture } }]]
const called = (id: string, name: string, args: object, content: string | null = null) => [
  "assistant",
  content,
  [id, name, args]
]

type Row = readonly [name: string, style: keyof typeof styles, history: unknown, expected: ReadonlyArray<unknown>]

const rows: ReadonlyArray<Row> = [
  ["names of participants", "chat", [
    { role: "system", name: "rules", content: "Be brief." },
    { role: "user", name: "ann", content: "Hi" },
    { role: "user", name: "bob", content: [{ type: "text", text: "Ho" }] },
    { role: "assistant", name: "bot", content: "Hello" },
    go
  ], [["system rules", "Be brief."], ["user ann", "Hi"], ["user bob", "Ho"], ["assistant bot", "Hello"], [
    "user",
    "Go"
  ]]],
  ["names of participants", "responses", [
    { role: "developer", name: "rules", content: "Be brief." },
    { role: "user", name: "ann", content: "Hi" },
    { role: "assistant", name: "bot", content: "Hello" },
    go
  ], [["system rules", "Be brief."], ["user ann", "Hi"], ["assistant bot", "Hello"], ["user", "Go"]]],
  ["audio, video and parts of other types", "chat", [{
    role: "user",
    content: [
      { type: "video_url", video_url: { url: "https://example.org/a.mp4" } },
      { type: "audio_url", audio_url: { url: "https://example.org/a.mp3" } },
      { type: "caption", text: "A caption" }
    ]
  }], [[
    "user",
    [
      { type: "video_url", video_url: { url: "https://example.org/a.mp4" } },
      { type: "audio_url", audio_url: { url: "https://example.org/a.mp3" } },
      { type: "caption", text: "A caption" }
    ]
  ]]],
  ["a call of MCP at the vendor", "responses", [
    { type: "mcp_call", id: "m1", server_label: "s", name: "find", arguments: "{\"a\":1}", output: "found" },
    { type: "mcp_call", id: "m2", server_label: "s", name: "find", arguments: "{}", error: "down" }
  ], [
    called("m1", "find", { a: 1 }),
    ["tool", "m1", "found"],
    called("m2", "find", {}),
    ["tool", "m2", "Error: down"]
  ]],
  ["code at the vendor", "responses", [
    {
      type: "code_interpreter_call",
      id: "k1",
      code: "1+1",
      container_id: "c",
      outputs: [{ type: "logs", logs: "2" }, { type: "image", url: picture }]
    },
    { role: "user", content: "Go" }
  ], [called("k1", "code_interpreter", { code: "1+1" }), ["tool", "k1", "2"], shown, ["user", "Go"]]],
  ["searches at the vendor", "responses", [
    { role: "assistant", content: "Wait." },
    {
      type: "web_search_call",
      id: "w1",
      status: "completed",
      action: { type: "search", query: "x", sources: [{ type: "url", url: "https://example.org" }] }
    },
    { type: "file_search_call", id: "f1", queries: ["y"], results: [{ filename: "a.txt", text: "words" }] }
  ], [
    called("w1", "web_search", { query: "x" }, "Wait."),
    ["tool", "w1", "https://example.org"],
    called("f1", "file_search", { queries: ["y"] }),
    ["tool", "f1", "a.txt\nwords"]
  ]],
  ["pictures that the vendor made", "responses", [
    { type: "image_generation_call", id: "i1", status: "completed", revised_prompt: "a cat", result: "AA==" },
    { role: "user", content: "Go" }
  ], [
    called("i1", "image_generation", { prompt: "a cat" }),
    ["tool", "i1", ""],
    ["user", [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }]],
    ["user", "Go"]
  ]],
  ["approvals and summaries", "responses", [
    { type: "mcp_approval_request", id: "a1", server_label: "s", name: "drop", arguments: "{}" },
    { type: "mcp_approval_response", approval_request_id: "a1", approve: false, reason: "no" },
    { type: "compaction_summary", summary: "We met." }
  ], [["assistant", "[approval asked for drop with {}]"], ["user", "[denied: no]"], ["assistant", "We met."]]],
  ["results of unknown kinds", "responses", [
    { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
    { type: "moon_call_output", call_id: "c1", output: { dark: true } }
  ], [called("c1", "f", {}), ["tool", "c1", "{\"dark\":true}"]]],
  ["searches and code at the vendor", "messages", [go, {
    role: "assistant",
    content: [
      { type: "text", text: "Wait." },
      { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "x" } },
      {
        type: "web_search_tool_result",
        tool_use_id: "s1",
        content: [{ type: "web_search_result", title: "T", url: "https://example.org", encrypted_content: "sealed" }]
      },
      { type: "server_tool_use", id: "s2", name: "bash_code_execution", input: { command: "ls" } },
      {
        type: "bash_code_execution_tool_result",
        tool_use_id: "s2",
        content: { type: "bash_code_execution_result", stdout: "a\n", stderr: "b", return_code: 1, content: [] }
      },
      { type: "text", text: "So." }
    ]
  }, go], [
    ["user", "Go"],
    called("s1", "web_search", { query: "x" }, "Wait."),
    ["tool", "s1", "T\nhttps://example.org"],
    called("s2", "bash_code_execution", { command: "ls" }),
    ["tool", "s2", "a\nb\n[exit code 1]"],
    ["assistant", "So."],
    ["user", "Go"]
  ]],
  ["MCP at the vendor, errors and summaries", "messages", [go, {
    role: "assistant",
    content: [
      { type: "compaction", content: "We met." },
      { type: "mcp_tool_use", id: "m1", name: "find", server_name: "s", input: { a: 1 } },
      { type: "mcp_tool_result", tool_use_id: "m1", is_error: true, content: [{ type: "text", text: "down" }] }
    ]
  }, go], [
    ["user", "Go"],
    called("m1", "find", { a: 1 }, "We met."),
    ["tool", "m1", "Error: down"],
    ["user", "Go"]
  ]],
  ["code at the vendor", "generate", [{
    role: "model",
    parts: [
      { text: "Wait." },
      { executableCode: { language: "PYTHON", code: "1+1" } },
      { codeExecutionResult: { outcome: "OUTCOME_OK", output: "2" } },
      { text: "Two." },
      { executableCode: { language: "PYTHON", code: "3" } }
    ]
  }, { role: "user", parts: [{ text: "Go" }] }], [
    called("call_history_0", "code_execution", { language: "python", code: "1+1" }, "Wait."),
    ["tool", "call_history_0", "2"],
    ["assistant", "Two.\n\n```python\n3\n```"],
    ["user", "Go"]
  ]],
  ["the whole of a function's response", "generate", [
    { role: "model", parts: [{ functionCall: { id: "c1", name: "f", args: {} } }] },
    {
      role: "user",
      parts: [{ functionResponse: { id: "c1", name: "f", response: { output: "done", exitCode: 1 } } }]
    }
  ], [called("c1", "f", {}), ["tool", "c1", "{\"output\":\"done\",\"exitCode\":1}"]]],
  ["a failed function", "generate", [
    { role: "model", parts: [{ functionCall: { id: "c1", name: "f", args: {} } }] },
    { role: "user", parts: [{ functionResponse: { id: "c1", name: "f", response: { error: "no file" } } }] }
  ], [called("c1", "f", {}), ["tool", "c1", "Error: no file"]]]
]

describe.each([["whole", false], ["streamed", true]] as const)("a history, %s", (_, stream) => {
  it.each(rows)("has %s (%s)", async (_, style, history, expected) => {
    assert.deepStrictEqual(await arrived(style, history, stream), expected)
  })
})
