/** The vendor's own tools that the caller runs, with a server that knows functions only, by the official client. */
import Anthropic from "@anthropic-ai/sdk"
import type { BetaToolUnion } from "@anthropic-ai/sdk/resources/beta/messages/messages"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { type OpenAiServer, startOpenAiServer, streamed } from "../../support/openaiServer.ts"

let server: OpenAiServer
let gateway: RunningGateway
let client: Anthropic
beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({ upstream: { driver: "openai", base_url: server.baseUrl } })
  client = new Anthropic({ baseURL: gateway.url, apiKey: businessKey, maxRetries: 0 })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

type Request = Anthropic.Beta.Messages.MessageCreateParamsNonStreaming

const ways = {
  whole: (request: Request) => client.beta.messages.create(request),
  streamed: (request: Request) => client.beta.messages.stream(request).finalMessage()
}

interface SentFunction {
  readonly name: string
  readonly description: string
  readonly parameters: { readonly properties: { readonly [name: string]: { readonly enum?: ReadonlyArray<string> } } }
}

const functions = (): ReadonlyArray<SentFunction> =>
  (server.requests[0]!.body["tools"] as ReadonlyArray<{ readonly function: SentFunction }>).map((tool) => tool.function)

const calling = (name: string, args: object) =>
  streamed({
    tool_calls: [{ index: 0, id: "c1", type: "function", function: { name, arguments: JSON.stringify(args) } }]
  })

const display = { display_width_px: 800, display_height_px: 600 }

const cases: ReadonlyArray<readonly [BetaToolUnion, object, ReadonlyArray<string>]> = [
  [{ type: "bash_20250124", name: "bash" }, { command: "ls" }, ["command", "restart"]],
  [
    { type: "text_editor_20250728", name: "str_replace_based_edit_tool", max_characters: 100 },
    { command: "view", path: "/a" },
    ["command", "path", "file_text", "old_str", "new_str", "insert_line", "insert_text", "view_range"]
  ],
  [
    { type: "text_editor_20250124", name: "str_replace_editor" },
    { command: "undo_edit", path: "/a" },
    ["command", "path", "file_text", "old_str", "new_str", "insert_line", "view_range"]
  ],
  [
    { type: "memory_20250818", name: "memory" },
    { command: "rename", old_path: "/memories/a", new_path: "/memories/b" },
    [
      "command",
      "path",
      "view_range",
      "file_text",
      "old_str",
      "new_str",
      "insert_line",
      "insert_text",
      "old_path",
      "new_path"
    ]
  ],
  [
    { type: "computer_20241022", name: "computer", ...display },
    { action: "left_click", coordinate: [1, 2] },
    ["action", "coordinate", "text"]
  ],
  [
    { type: "computer_20251124", name: "computer", ...display },
    { action: "zoom", region: [0, 0, 1, 1] },
    [
      "action",
      "coordinate",
      "text",
      "start_coordinate",
      "scroll_direction",
      "scroll_amount",
      "duration",
      "region"
    ]
  ]
]

describe.each(Object.entries(ways))("a loop, %s", (_, send) => {
  it.each(cases)("of %j", async (tool, args, properties) => {
    assert("name" in tool)
    const request: Request = {
      model: "msgcompat-sonnet-4-5",
      max_tokens: 100,
      messages: [{ role: "user", content: "Go" }],
      tools: [tool],
      tool_choice: { type: "tool", name: tool.name }
    }
    server.answer(() => calling(tool.name, args))
    const message = await send(request)
    const [declared] = functions()
    assert.strictEqual(declared?.name, tool.name)
    assert.deepStrictEqual(Object.keys(declared!.parameters.properties), properties)
    assert.include(declared!.parameters.properties[properties[0]!]?.enum ?? Object.values(args), Object.values(args)[0])
    if (tool.name === "computer") assert.include(declared!.description, "800 × 600")
    const [block] = message.content
    assert(block?.type === "tool_use")
    assert.deepStrictEqual([block.name, block.input], [tool.name, args])

    server.answer(() => streamed({ content: "Done" }))
    await send({
      ...request,
      tool_choice: { type: "auto" },
      messages: [
        ...request.messages,
        { role: "assistant", content: message.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "no such file", is_error: true }] }
      ]
    })
    const [, call, result] = server.requests[0]!.body["messages"] as ReadonlyArray<{
      readonly content: unknown
      readonly tool_calls?: ReadonlyArray<{ readonly function: { readonly name: string; readonly arguments: string } }>
    }>
    assert.strictEqual(call?.tool_calls?.[0]?.function.name, tool.name)
    assert.deepStrictEqual(JSON.parse(call!.tool_calls![0]!.function.arguments), args)
    assert.strictEqual(result?.content, "Error: no such file")
  })

  it("declares nothing for a tool that the vendor runs", async () => {
    server.answer(() => streamed({ content: "Hi" }))
    const messages = [{ role: "user" as const, content: "Go" }]
    const tools = [{ type: "web_search_20250305" as const, name: "web_search" as const }]
    await send({ model: "msgcompat-sonnet-4-5", max_tokens: 100, messages, tools })
    assert.isUndefined(server.requests[0]?.body["tools"])
  })
})
