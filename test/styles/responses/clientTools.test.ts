/** The vendor's own tools that the caller runs, with a server that knows functions only, by the official client. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import OpenAI from "openai"
import type { Response, ResponseInput, Tool } from "openai/resources/responses/responses"
import { ResponseEvent } from "../../../src/contracts/responses/events.ts"
import { ResponseObject } from "../../../src/contracts/responses/ResponseObject.ts"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { type OpenAiServer, startOpenAiServer, streamed } from "../../support/openaiServer.ts"
import { parseFrames } from "../../support/sse.ts"

let server: OpenAiServer
let gateway: RunningGateway
let client: OpenAI
beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({ upstream: { driver: "openai", base_url: server.baseUrl } })
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: businessKey, maxRetries: 0 })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

type Request = OpenAI.Responses.ResponseCreateParamsNonStreaming

const ways = {
  whole: (request: Request) => client.responses.create(request),
  streamed: (request: Request) => client.responses.stream({ ...request, stream: true }).finalResponse()
}

const calling = (name: string, args: object) =>
  streamed({
    tool_calls: [{ index: 0, id: "c1", type: "function", function: { name, arguments: JSON.stringify(args) } }]
  })

interface SentFunction {
  readonly name: string
  readonly description: string
  readonly parameters: { readonly properties: object; readonly required: ReadonlyArray<string> }
}

const functions = (): ReadonlyArray<SentFunction> =>
  (server.requests[0]!.body["tools"] as ReadonlyArray<{ readonly function: SentFunction }>).map((tool) => tool.function)

interface SentMessage {
  readonly role: string
  readonly content: unknown
  readonly tool_call_id?: string
  readonly tool_calls?: ReadonlyArray<{
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }>
}

const messages = () => server.requests[0]!.body["messages"] as ReadonlyArray<SentMessage>

const shown = (response: Response) =>
  response.output.map((item) => JSON.parse(JSON.stringify({ ...item, id: undefined })) as object)

interface Case {
  readonly tool: object
  /** The function's name, and the arguments that the model writes. */
  readonly name: string
  readonly args: object
  readonly properties: ReadonlyArray<string>
  /** The item that the caller gets. */
  readonly item: object
  /** What the caller answers, and what the model reads of it. */
  readonly output: object
  readonly read: string
  /** The arguments in the history, where they are not the model's own. */
  readonly sent?: object
}

const cases: ReadonlyArray<readonly [string, Case]> = [
  ["local_shell", {
    tool: { type: "local_shell" },
    name: "local_shell",
    args: { command: ["ls", "-a"], working_directory: "/tmp", timeout_ms: 5 },
    properties: ["command", "env", "timeout_ms", "user", "working_directory"],
    item: {
      type: "local_shell_call",
      action: { type: "exec", command: ["ls", "-a"], env: {}, timeout_ms: 5, working_directory: "/tmp" }
    },
    output: { type: "local_shell_call_output", id: "c1", output: "a\nb" },
    read: "a\nb",
    sent: { command: ["ls", "-a"], env: {}, timeout_ms: 5, working_directory: "/tmp" }
  }],
  ["shell", {
    tool: { type: "shell", environment: { type: "local" } },
    name: "shell",
    args: { commands: ["ls", "pwd"], timeout_ms: 7 },
    properties: ["commands", "timeout_ms", "max_output_length"],
    item: {
      type: "shell_call",
      action: { commands: ["ls", "pwd"], timeout_ms: 7, max_output_length: null },
      environment: { type: "local" }
    },
    output: {
      type: "shell_call_output",
      call_id: "c1",
      output: [
        { stdout: "a\n", stderr: "", outcome: { type: "exit", exit_code: 0 } },
        { stdout: "", stderr: "late", outcome: { type: "timeout" } }
      ]
    },
    read: "a\n[exit code 0]\n\nlate\n[timed out]"
  }],
  ["apply_patch", {
    tool: { type: "apply_patch" },
    name: "apply_patch",
    args: { type: "update_file", path: "a.ts", diff: "@@\n-a\n+b" },
    properties: ["type", "path", "diff"],
    item: { type: "apply_patch_call", operation: { type: "update_file", path: "a.ts", diff: "@@\n-a\n+b" } },
    output: { type: "apply_patch_call_output", call_id: "c1", status: "failed", output: "no such line" },
    read: "Error: no such line"
  }],
  ["a deletion by apply_patch", {
    tool: { type: "apply_patch" },
    name: "apply_patch",
    args: { type: "delete_file", path: "a.ts" },
    properties: ["type", "path", "diff"],
    item: { type: "apply_patch_call", operation: { type: "delete_file", path: "a.ts" } },
    output: { type: "apply_patch_call_output", call_id: "c1", status: "completed" },
    read: "completed"
  }],
  ["computer", {
    tool: { type: "computer_use_preview", display_width: 800, display_height: 600, environment: "linux" },
    name: "computer",
    args: { actions: [{ type: "click", x: 1, y: 2, button: "left" }] },
    properties: ["actions"],
    item: {
      type: "computer_call",
      action: { type: "click", x: 1, y: 2, button: "left" },
      actions: [{ type: "click", x: 1, y: 2, button: "left" }],
      pending_safety_checks: []
    },
    output: {
      type: "computer_call_output",
      call_id: "c1",
      output: { type: "computer_screenshot", image_url: "https://example.org/a.png" }
    },
    read: ""
  }],
  ["tool_search", {
    tool: {
      type: "tool_search",
      execution: "client",
      description: "Finds tools.",
      parameters: { type: "object", properties: { query: { type: "string" } }, required: ["query"] }
    },
    name: "tool_search",
    args: { query: "issues" },
    properties: ["query"],
    item: { type: "tool_search_call", arguments: { query: "issues" }, execution: "client" },
    output: {
      type: "tool_search_output",
      call_id: "c1",
      execution: "client",
      status: "completed",
      tools: [{ type: "namespace", name: "tracker", description: "", tools: [{ type: "function", name: "create" }] }]
    },
    read: "Tools found: tracker"
  }]
]

describe.each(Object.entries(ways))("a loop, %s", (_, send) => {
  it.each(cases)("of %s", async (_, { args, item, name, output, properties, read, sent = args, tool }) => {
    const tools = [tool as Tool]
    server.answer(() => calling(name, args))
    const first = await send({ model: "gpt-5", input: "Go", tools })
    assert.deepStrictEqual(functions().map((each) => [each.name, Object.keys(each.parameters.properties)]), [
      [name, properties]
    ])
    assert.isNotEmpty(functions()[0]!.description)
    assert.deepStrictEqual(shown(first), [{ status: "completed", call_id: "c1", ...item }])
    Schema.decodeUnknownSync(ResponseObject)(JSON.parse(JSON.stringify(first)))

    server.answer(() => calling(name, args))
    const input = [{ role: "user", content: "Go" }, ...first.output, output] as ResponseInput
    const second = await send({ model: "gpt-5", input, tools })
    const [, call, result] = messages()
    assert.strictEqual(call?.tool_calls?.[0]?.id, "c1")
    assert.strictEqual(call?.tool_calls?.[0]?.function.name, name)
    assert.deepStrictEqual(JSON.parse(call!.tool_calls![0]!.function.arguments), sent)
    assert.deepStrictEqual([result?.role, result?.tool_call_id, result?.content], ["tool", "c1", read])
    assert.deepStrictEqual(shown(second), shown(first))

    // By reference to the stored response.
    server.answer(() => streamed({ content: "Done" }))
    await send({ model: "gpt-5", previous_response_id: second.id, input: [output] as ResponseInput, tools })
    assert.strictEqual(messages().at(-1)?.role, name === "computer" ? "user" : "tool")
  })

  it("declares what a search for tools found", async () => {
    server.answer(() => calling("tracker__create", {}))
    const [, search] = cases.find(([name]) => name === "tool_search")!
    const input = [
      { type: "tool_search_call", call_id: "c1", execution: "client", arguments: {} },
      search.output
    ] as ResponseInput
    const response = await send({ model: "gpt-5", input, tools: [search.tool as Tool] })
    assert.deepStrictEqual(functions().map((each) => each.name), ["tool_search", "tracker__create"])
    assert.deepInclude(shown(response)[0], { type: "function_call", name: "create", namespace: "tracker" })
  })

  it("leaves a function of the caller's own its name", async () => {
    server.answer(() => calling("shell_2", { commands: ["ls"] }))
    const own: Tool = { type: "function", name: "shell", parameters: {}, strict: false }
    const response = await send({ model: "gpt-5", input: "Go", tools: [{ type: "shell" }, own] })
    assert.deepStrictEqual(functions().map((each) => each.name), ["shell_2", "shell"])
    assert.deepInclude(shown(response)[0], { type: "shell_call" })
  })

  it("is chosen by the tool's type", async () => {
    server.answer(() => calling("apply_patch", { type: "delete_file", path: "a" }))
    const tools: Array<Tool> = [{ type: "shell" }, { type: "apply_patch" }]
    await send({ model: "gpt-5", input: "Go", tools, tool_choice: { type: "apply_patch" } })
    assert.deepStrictEqual(server.requests[0]?.body["tool_choice"], {
      type: "function",
      function: { name: "apply_patch" }
    })
    server.answer(() => calling("shell", { commands: [] }))
    await send({
      model: "gpt-5",
      input: "Go",
      tools,
      tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "shell" }] }
    })
    assert.deepStrictEqual(functions().map((each) => each.name), ["shell"])
  })

  it("has an item of the vendor's form for arguments of another form", async () => {
    server.answer(() => calling("local_shell", { command: "ls", env: { A: 1 }, timeout_ms: "long" }))
    const response = await send({ model: "gpt-5", input: "Go", tools: [{ type: "local_shell" }] })
    assert.deepInclude(shown(response)[0], {
      action: { type: "exec", command: ["bash", "-lc", "ls"], env: { A: "1" } }
    })
  })
})

describe("calls of the vendor's tools", () => {
  const post = (body: object) =>
    fetch(`${gateway.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-5", ...body })
    })

  it("stream as the vendor's events", async () => {
    server.answer(() => calling("shell", { commands: ["ls", "pwd"] }))
    const response = await post({ input: "Go", stream: true, tools: [{ type: "shell" }] })
    const decode = Schema.decodeUnknownSync(ResponseEvent, { onExcessProperty: "error" })
    const events = parseFrames(await response.text()).slice(0, -1).map(({ data }) => decode(JSON.parse(data)))
    assert.deepStrictEqual(events.map(({ type }) => type), [
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.shell_call_command.added",
      "response.shell_call_command.delta",
      "response.shell_call_command.done",
      "response.shell_call_command.added",
      "response.shell_call_command.delta",
      "response.shell_call_command.done",
      "response.output_item.done",
      "response.completed"
    ])
  })

  it("are left out when they are cut off", async () => {
    const broken = { index: 0, id: "c1", type: "function", function: { name: "shell", arguments: "{\"comm" } }
    server.answer(() => streamed({ content: "Now: " }, { tool_calls: [broken] }))
    const response = await post({ input: "Go", tools: [{ type: "shell" }] })
    const { output } = await response.json() as Response
    assert.deepStrictEqual(output.map(({ type }) => type), ["message"])
  })

  it.each<readonly [string, object, string]>([
    ["local_shell_call", {}, "input[0].action"],
    ["apply_patch_call", { operation: "x" }, "input[0].operation"],
    ["tool_search_output", {}, "input[0].tools"],
    ["tool_search_output", { tools: [{ type: "function" }] }, "input[0].tools[0]"]
  ])("of a faulty %s are refused", async (type, fields, param) => {
    const response = await post({ input: [{ type, call_id: "c1", ...fields }] })
    assert.strictEqual(response.status, 400)
    const { error } = await response.json() as { readonly error: { readonly param: string } }
    assert.strictEqual(error.param, param)
  })
})
