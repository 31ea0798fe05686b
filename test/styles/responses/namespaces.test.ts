/** The tools of namespaces (MCP servers and sub-agents) with a server that knows functions only, by the official client. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import type { Response, ResponseInput, Tool } from "openai/resources/responses/responses"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { type OpenAiServer, startOpenAiServer, streamed } from "../../support/openaiServer.ts"

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

const parameters = { type: "object", properties: { title: { type: "string" } }, required: ["title"] }
const member = (name: string) => ({ type: "function" as const, name, parameters, strict: false })
const tracker: Tool = {
  type: "namespace",
  name: "mcp__tracker",
  description: "The issue tracker.",
  tools: [{ ...member("create"), description: "Creates an issue." }, member("find"), { type: "custom", name: "note" }]
}
const wiki: Tool = { type: "namespace", name: "wiki.eu", description: "", tools: [member("create")] }
const tools: Array<Tool> = [tracker, wiki, { ...member("mcp__tracker__find"), description: "Another one" }]

const calls = (...list: ReadonlyArray<readonly [name: string, args: object]>) =>
  streamed({
    tool_calls: list.map(([name, args], index) => ({
      index,
      id: `call_${index}`,
      type: "function",
      function: { name, arguments: JSON.stringify(args) }
    }))
  })

/** The names of the functions that the server was sent. */
const declared = () =>
  (server.requests[0]!.body["tools"] as ReadonlyArray<{ function: { name: string } }>)
    .map((tool) => tool.function)

/** An output without what differs each time. */
const shown = (response: Response) =>
  response.output.map((item) => JSON.parse(JSON.stringify({ ...item, id: "", parsed_arguments: undefined })) as object)

describe.each(Object.entries(ways))("namespaces, %s", (_, send) => {
  it("are declared tool by tool, under names that are unique in the request", async () => {
    server.answer(() => streamed({ content: "Hi" }))
    const response = await send({ model: "gpt-5", input: "Go", tools })
    assert.deepStrictEqual(declared().map(({ name }) => name), [
      "mcp__tracker__create",
      "mcp__tracker__find_2",
      "mcp__tracker__note",
      "wiki_eu__create",
      "mcp__tracker__find"
    ])
    assert.deepStrictEqual(server.requests[0]?.body["tools"], [
      {
        type: "function",
        function: {
          name: "mcp__tracker__create",
          description: "Tools of mcp__tracker: The issue tracker.\n\nCreates an issue.",
          parameters,
          strict: false
        }
      },
      ...(server.requests[0]!.body["tools"] as ReadonlyArray<unknown>).slice(1)
    ])
    assert.deepInclude(response.tools[0], { type: "namespace", name: "mcp__tracker" })
  })

  it("have their calls, results and next calls mapped exactly", async () => {
    server.answer(() =>
      calls(
        ["mcp__tracker__create", { title: "a" }],
        ["wiki_eu__create", { title: "b" }],
        ["mcp__tracker__find_2", { title: "c" }],
        ["mcp__tracker__find", { title: "d" }],
        ["mcp__tracker__note", { input: "Hm." }]
      )
    )
    const input: ResponseInput = [{ role: "user", content: "Go" }]
    const first = await send({ model: "gpt-5", input, tools })
    const call = (index: number, name: string, title: string, namespace?: string) => ({
      id: "",
      type: "function_call",
      status: "completed",
      call_id: `call_${index}`,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      arguments: JSON.stringify({ title })
    })
    assert.deepStrictEqual(shown(first), [
      call(0, "create", "a", "mcp__tracker"),
      call(1, "create", "b", "wiki.eu"),
      call(2, "find", "c", "mcp__tracker"),
      call(3, "mcp__tracker__find", "d"),
      {
        id: "",
        type: "custom_tool_call",
        status: "completed",
        call_id: "call_4",
        name: "note",
        namespace: "mcp__tracker",
        input: "Hm."
      }
    ])

    server.answer(() => calls(["mcp__tracker__create", { title: "e" }]))
    const results = [0, 1, 2, 3].map((index) => ({
      type: "function_call_output" as const,
      call_id: `call_${index}`,
      output: `done ${index}`
    }))
    const noted = { type: "custom_tool_call_output" as const, call_id: "call_4", output: "noted" }
    const history = [...input, ...first.output as ResponseInput, ...results, noted]
    const second = await send({ model: "gpt-5", input: history, tools })
    const messages = server.requests[0]?.body["messages"] as ReadonlyArray<{
      readonly role: string
      readonly content: unknown
      readonly tool_call_id?: string
      readonly tool_calls?: ReadonlyArray<{ readonly id: string; readonly function: { readonly name: string } }>
    }>
    assert.deepStrictEqual(messages[1]?.tool_calls?.map((each) => [each.id, each.function.name]), [
      ["call_0", "mcp__tracker__create"],
      ["call_1", "wiki_eu__create"],
      ["call_2", "mcp__tracker__find_2"],
      ["call_3", "mcp__tracker__find"],
      ["call_4", "mcp__tracker__note"]
    ])
    assert.deepStrictEqual(messages.slice(2).map((each) => [each.role, each.tool_call_id, each.content]), [
      ["tool", "call_0", "done 0"],
      ["tool", "call_1", "done 1"],
      ["tool", "call_2", "done 2"],
      ["tool", "call_3", "done 3"],
      ["tool", "call_4", "noted"]
    ])
    assert.deepInclude(shown(second)[0], { name: "create", namespace: "mcp__tracker" })

    // The stored response has the namespaces too.
    server.answer(() => streamed({ content: "Done" }))
    const output = { type: "function_call_output" as const, call_id: "call_0", output: "done" }
    await send({ model: "gpt-5", previous_response_id: second.id, input: [output], tools })
    const continued = server.requests[0]?.body["messages"] as typeof messages
    assert.strictEqual(continued.at(-2)?.tool_calls?.[0]?.function.name, "mcp__tracker__create")
  })

  it("keep the namespace of a call to a tool that is no longer declared", async () => {
    server.answer(() => calls(["mcp__tracker__create", {}]))
    const input = [
      { type: "function_call", call_id: "a", name: "create", namespace: "mcp__tracker", arguments: "{}" },
      { type: "function_call_output", call_id: "a", output: "" }
    ] as ResponseInput
    const response = await send({ model: "gpt-5", input, tools: [member("other")] })
    assert.deepInclude(shown(response)[0], { name: "create", namespace: "mcp__tracker" })
  })

  it("have names of at most 64 characters", async () => {
    const long = (end: string): Tool => ({
      type: "namespace",
      name: "n".repeat(60),
      description: "",
      tools: [member(`tool_${end}`), member(`tool_${end}${end}`)]
    })
    server.answer((request) => {
      const [, second] = request.body["tools"] as ReadonlyArray<{ function: { name: string } }>
      return calls([second!.function.name, {}])
    })
    const response = await send({ model: "gpt-5", input: "Go", tools: [long("x")] })
    for (const { name } of declared()) assert.match(name, /^[a-zA-Z0-9_-]{1,64}$/)
    assert.deepInclude(shown(response)[0], { name: "tool_xx", namespace: "n".repeat(60) })
  })

  it.each<readonly [object, ReadonlyArray<string>, unknown]>([
    [
      { type: "function", name: "create", namespace: "mcp__tracker" },
      ["mcp__tracker__create", "mcp__tracker__find_2", "mcp__tracker__note", "wiki_eu__create", "mcp__tracker__find"],
      { type: "function", function: { name: "mcp__tracker__create" } }
    ],
    [{ type: "namespace", name: "wiki.eu" }, ["wiki_eu__create"], "required"],
    [
      {
        type: "allowed_tools",
        mode: "auto",
        tools: [{ type: "function", name: "create", namespace: "mcp__tracker" }, { type: "namespace", name: "wiki.eu" }]
      },
      ["mcp__tracker__create", "wiki_eu__create"],
      undefined
    ]
  ])("are chosen by %j", async (choice, names, sent) => {
    server.answer(() => calls([names[0]!, {}]))
    const toolChoice = choice as Exclude<Request["tool_choice"], undefined>
    await send({ model: "gpt-5", input: "Go", tools, tool_choice: toolChoice })
    assert.deepStrictEqual(declared().map(({ name }) => name), names)
    assert.deepStrictEqual(server.requests[0]?.body["tool_choice"], sent)
  })
})

describe("a faulty namespace", () => {
  it.each<readonly [string, object, string]>([
    ["without a name", { tools: [{ type: "namespace", tools: [] }] }, "tools[0].name"],
    ["without tools", { tools: [{ type: "namespace", name: "n" }] }, "tools[0].tools"],
    ["with a nameless tool", {
      tools: [{ type: "namespace", name: "n", tools: [{ type: "function" }] }]
    }, "tools[0].tools[0].name"],
    ["with two tools of one name", {
      tools: [{ type: "namespace", name: "n", tools: [member("a"), member("a")] }]
    }, "tools[0].tools[1].name"],
    [
      "with a choice that two namespaces have",
      { tools, tool_choice: { type: "function", name: "create" } },
      "tool_choice.name"
    ]
  ])("%s is refused", async (_, fields, param) => {
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-5", input: "Go", ...fields })
    })
    assert.strictEqual(response.status, 400)
    const { error } = await response.json() as { readonly error: { readonly param: string } }
    assert.strictEqual(error.param, param)
  })
})
