import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import { ResponseRequest } from "../../../src/contracts/responses/schema.ts"
import { unreadable } from "../../../src/contracts/responses/vendorItems.ts"
import { type Conversation, Reasoning, Text, type Turn } from "../../../src/domain/Conversation.ts"
import type { GatewayError } from "../../../src/domain/GatewayError.ts"
import { defaultLimits } from "../../../src/domain/limits.ts"
import { runSync } from "../../../src/domain/stream/cooperative.ts"
import { jsonBody } from "../../../src/http/jsonBody.ts"
import { type DecodedRequest, decodeResponse } from "../../../src/styles/responses/decode.ts"
import { storedReferences } from "../../../src/styles/responses/requestItems.ts"
import type { StoredResponse } from "../../../src/styles/responses/store/ResponsesStore.ts"
import { runs } from "../../support/effort.ts"
import { hostileBodies, wrongTypes } from "../../support/wrongTypes.ts"

const read = jsonBody(ResponseRequest)

interface Around {
  readonly wideInput?: boolean
  readonly isWarmUp?: boolean
  readonly stored?: ReadonlyArray<StoredResponse>
}

const send = (body: unknown, around: Around = {}): Promise<Result.Result<DecodedRequest, GatewayError>> => {
  const request = new Request("http://localhost/", { method: "POST", body: JSON.stringify(body) })
  const stored = new Map(around.stored?.map((response) => [response.id, response]))
  return read(HttpServerRequest.fromWeb(request)).pipe(
    Effect.flatMap((value) => {
      // The handler looks up no more than what the request names.
      const named = runSync(storedReferences(value))
      const known = new Map([...stored].filter(([id]) => named.responses.has(id)))
      return Effect.fromResult(
        runSync(decodeResponse(value, {
          wideInput: around.wideInput ?? true,
          isWarmUp: around.isWarmUp ?? false,
          stored: known,
          limits: defaultLimits,
          bodyVendorFields: undefined,
          sent: undefined,
          serverCompacts: false,
          betas: undefined,
          readSummary: undefined,
          compaction: undefined
        }))
      )
    }),
    Effect.scoped,
    Effect.result,
    Effect.runPromise
  )
}
const decoded = async (body: object, around?: Around): Promise<DecodedRequest> =>
  Result.getOrThrow(await send({ model: "gpt-5", ...body }, around))
const conversation = async (body: object, around?: Around): Promise<Conversation> =>
  (await decoded(body, around)).conversation
const turns = async (body: object, around?: Around): Promise<ReadonlyArray<Turn>> =>
  (await conversation(body, around)).turns
const fault = async (body: object, around?: Around): Promise<GatewayError> => {
  const result = await send({ model: "gpt-5", ...body }, around)
  assert(Result.isFailure(result))
  return result.failure
}

const seed = "0123456789abcdef0123456789abcdef"
const previous: StoredResponse = {
  id: `resp_${seed}`,
  items: [{ role: "user", content: "Weather in Oslo?" }],
  body: JSON.stringify({
    id: `resp_${seed}`,
    status: "completed",
    output: [
      {
        id: `rs_${seed}_0`,
        type: "reasoning",
        status: "completed",
        summary: [{ type: "summary_text", text: "Look." }]
      },
      {
        id: `fc_${seed}_1`,
        type: "function_call",
        status: "completed",
        call_id: "call_1",
        name: "get_weather",
        arguments: "{\"city\":\"Oslo\"}"
      }
    ]
  })
}

const user = (text: string): Turn => ({ role: "user", parts: [Text(text)] })
const oslo: Turn = {
  role: "assistant",
  parts: [
    Reasoning("Look."),
    {
      _tag: "Call",
      id: "call_1",
      name: "get_weather",
      arguments: "{\"city\":\"Oslo\"}",
      vendorFields: undefined,
      sealed: undefined
    }
  ]
}

describe("the input of a Responses request", () => {
  it.each([
    ["a string", "Hi"],
    ["one object", { role: "user", content: "Hi" }],
    ["a list", [{ role: "user", content: "Hi" }]],
    ["a typed message", [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] }]],
    ["strings in a list", ["Hi"]],
    ["a content part", [{ type: "input_text", text: "Hi" }]]
  ])("may be %s", async (_, input) => {
    assert.deepStrictEqual(await turns({ input }), [user("Hi")])
  })

  it("may be messages in the form of chat completions", async () => {
    const messages = [
      { role: "developer", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "Weather?" }] },
      {
        role: "assistant",
        content: null,
        reasoning_content: "Look.",
        tool_calls: [{ id: "call_1", type: "function", function: { name: "get_weather", arguments: "{}" } }]
      },
      { role: "tool", tool_call_id: "call_1", content: "sunny" },
      { role: "assistant", content: "It is sunny." }
    ]
    assert.deepStrictEqual(await turns({ messages }), [
      { role: "system", parts: [Text("Be brief.")] },
      user("Weather?"),
      {
        role: "assistant",
        parts: [
          Reasoning("Look."),
          {
            _tag: "Call",
            id: "call_1",
            name: "get_weather",
            arguments: "{}",
            vendorFields: undefined,
            sealed: undefined
          }
        ]
      },
      {
        role: "tool",
        parts: [{
          _tag: "Result",
          callId: "call_1",
          name: undefined,
          content: [Text("sunny")],
          isError: false,
          isNamed: undefined,
          vendorFields: undefined
        }]
      },
      { role: "assistant", parts: [Text("It is sunny.")] }
    ])
    assert.deepStrictEqual(await turns({ messages }), await turns({ messages }, { wideInput: false }))
  })

  it("has the instructions before it as a system message", async () => {
    assert.deepStrictEqual(await turns({ input: "Hi", instructions: "Be brief." }), [
      { role: "system", parts: [Text("Be brief.")] },
      user("Hi")
    ])
  })

  it("keeps what the assistant wrote in one go together, and two messages apart", async () => {
    const input = [
      { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] },
      { role: "assistant", content: "Looking." },
      { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
      { type: "custom_tool_call", call_id: "c2", name: "patch", input: "+a" },
      { role: "assistant", content: "Done." },
      { type: "function_call_output", call_id: "c1", output: "1" },
      { type: "custom_tool_call_output", call_id: "c2", output: [{ type: "input_text", text: "2" }] },
      { role: "assistant", content: "One." },
      { role: "assistant", content: "Two." }
    ]
    const result = (callId: string, text: string): Turn => ({
      role: "tool",
      parts: [{
        _tag: "Result",
        callId,
        name: undefined,
        content: [Text(text)],
        isError: false,
        isNamed: undefined,
        vendorFields: undefined
      }]
    })
    assert.deepStrictEqual(await turns({ input }), [
      {
        role: "assistant",
        parts: [
          Reasoning("Hm."),
          Text("Looking."),
          { _tag: "Call", id: "c1", name: "f", arguments: "{}", vendorFields: undefined, sealed: undefined },
          {
            _tag: "Call",
            id: "c2",
            name: "patch",
            arguments: "{\"input\":\"+a\"}",
            vendorFields: undefined,
            sealed: undefined
          },
          Text("Done.")
        ]
      },
      result("c1", "1"),
      result("c2", "2"),
      { role: "assistant", parts: [Text("One.")] },
      { role: "assistant", parts: [Text("Two.")] }
    ])
  })

  it("carries images and files", async () => {
    const content = [
      { type: "input_image", image_url: "https://example.org/a.png", detail: "low" },
      { type: "input_image", image_url: "data:image/png;base64,AA==" },
      { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,BB==" },
      { type: "input_file", file_url: "https://example.org/b.pdf" },
      { type: "input_audio", input_audio: { data: "CC==", format: "wav" } }
    ]
    const [turn] = await turns({ input: [{ role: "user", content }] })
    const image = { url: undefined, data: undefined, mediaType: undefined, detail: undefined, vendorFields: undefined }
    const file = {
      kind: "file" as const,
      name: undefined,
      url: undefined,
      id: undefined,
      data: undefined,
      mediaType: undefined,
      vendorFields: undefined
    }
    assert.deepStrictEqual(turn?.parts, [
      { _tag: "Image", ...image, url: "https://example.org/a.png", detail: "low" },
      { _tag: "Image", ...image, data: "AA==", mediaType: "image/png" },
      { _tag: "File", ...file, name: "a.pdf", data: "BB==", mediaType: "application/pdf" },
      { _tag: "File", ...file, url: "https://example.org/b.pdf" },
      { _tag: "File", ...file, kind: "audio", data: "CC==", mediaType: "audio/wav" }
    ])
  })

  it("has what the gateway cannot carry named, not dropped", async () => {
    const input = [
      { type: "compaction", id: "cmp_1", encrypted_content: "x" },
      { role: "user", content: [{ type: "video", url: "x" }] }
    ]
    const { conversation, ignored } = await decoded({ input })
    assert.deepStrictEqual(conversation.turns, [
      { role: "system", parts: [Text(unreadable)] },
      user("[video omitted]")
    ])
    assert.deepStrictEqual(ignored, ["input[0]", "input[1].content[0]"])
  })

  it("is only messages where wide input is off", async () => {
    const error = await fault({ input: "Hi" }, { wideInput: false })
    assert.strictEqual(error.param, "input")
    assert.strictEqual((await fault({}, { wideInput: false })).param, "messages")
  })

  it.each([
    ["is missing", {}, "input"],
    ["is an empty list", { input: [] }, "input"],
    ["is an empty list beside instructions", { input: [], instructions: "Be brief." }, "input"],
    ["comes twice", { input: "Hi", messages: [{ role: "user", content: "Hi" }] }, "messages"],
    ["has a message without content", { input: [{ role: "user" }] }, "input[0].content"],
    ["has a call without a name", { input: ["a", { type: "function_call", arguments: "{}" }] }, "input[1].name"],
    [
      "has a part without text",
      { input: [{ role: "user", content: [{ type: "input_text" }] }] },
      "input[0].content[0].text"
    ],
    [
      "has an image without one",
      { input: { role: "user", content: [{ type: "input_image" }] } },
      "input.content[0].image_url"
    ],
    ["names a conversation", { input: "Hi", conversation: "conv_1" }, "conversation"],
    ["names a prompt", { input: "Hi", prompt: { id: "pmpt_1" } }, "prompt"]
  ])("is refused when it %s", async (_, body, param) => {
    const error = await fault(body)
    assert.strictEqual(error.status, 400)
    assert.strictEqual(error.param, param)
  })
})

describe("references of a Responses request", () => {
  it("put the earlier conversation and its output before the input", async () => {
    const output = { type: "function_call_output", call_id: "call_1", output: "sunny" }
    const { conversation, items } = await decoded({ previous_response_id: previous.id, input: [output] }, {
      stored: [previous]
    })
    assert.deepStrictEqual(conversation.turns.map((turn) => turn.role), ["user", "assistant", "tool"])
    assert.deepStrictEqual(conversation.turns.slice(0, 2), [user("Weather in Oslo?"), oslo])
    assert.strictEqual(items.length, 4)
  })

  it.each([{}, { input: [] }, { input: null }])(
    "are the whole conversation where the request adds nothing: %j",
    async (own) => {
      for (const wideInput of "input" in own ? [true] : [true, false]) {
        const { conversation, items } = await decoded({ previous_response_id: previous.id, ...own }, {
          stored: [previous],
          wideInput
        })
        assert.deepStrictEqual(conversation.turns, [user("Weather in Oslo?"), oslo])
        assert.strictEqual(items.length, 3)
      }
    }
  )

  it("to a response without items are refused without an own one, but for a warm-up", async () => {
    const empty = { id: previous.id, items: [], body: JSON.stringify({ status: "completed", output: [] }) }
    const body = { previous_response_id: empty.id, instructions: "Be brief." }
    for (const own of [{}, { input: [] }]) {
      assert.strictEqual((await fault({ ...body, ...own }, { stored: [empty] })).param, "input")
      assert.isEmpty((await decoded({ ...body, ...own }, { stored: [empty], isWarmUp: true })).items)
    }
    assert.lengthOf((await decoded({ ...body, input: "Hi" }, { stored: [empty] })).items, 1)
  })

  it("resolve to the items of stored responses, with and without a type", async () => {
    for (const reference of [{ type: "item_reference", id: `fc_${seed}_1` }, { id: `fc_${seed}_1` }]) {
      const [first, call] = await turns({ input: ["Hi", reference] }, { stored: [previous] })
      assert.deepStrictEqual(first, user("Hi"))
      assert.deepStrictEqual(call?.parts, oslo.parts.slice(1))
    }
  })

  it.each([
    [
      "a response that is not there",
      { previous_response_id: "resp_x", input: "Hi" },
      "previous_response_id",
      "previous_response_not_found"
    ],
    [
      "an item that is not there",
      { input: [{ type: "item_reference", id: `msg_${seed}_9` }] },
      "input[0].id",
      "unknown_reference"
    ],
    [
      "an item of nobody",
      { input: ["a", { type: "item_reference", id: "msg_1" }] },
      "input[1].id",
      "unknown_reference"
    ]
  ])("fail for %s", async (_, body, param, code) => {
    const error = await fault(body, { stored: [previous] })
    assert.strictEqual(error.code, code)
    assert.strictEqual(error.status, 400)
    assert.strictEqual(error.param, param)
  })

  it("do not continue a response that is in progress", async () => {
    const body = JSON.stringify({ status: "in_progress", output: [] })
    const error = await fault({ previous_response_id: previous.id, input: "Hi" }, { stored: [{ ...previous, body }] })
    assert.strictEqual(error.code, "invalid_request")
    assert.strictEqual(error.param, "previous_response_id")
  })
})

const weather = { type: "function", name: "get_weather", parameters: { type: "object" }, strict: true }
const patch = {
  type: "custom",
  name: "patch",
  description: "Edits files.",
  format: { type: "grammar", syntax: "lark", definition: "start: LINE" }
}

describe("the tools of a Responses request", () => {
  it("are functions in either form, and custom ones as functions of one text", async () => {
    const tools = [weather, { type: "function", function: { name: "g" } }, patch, { type: "web_search" }]
    assert.deepStrictEqual((await conversation({ input: "Hi", tools })).tools, [
      { name: "get_weather", description: undefined, parameters: { type: "object" }, strict: true },
      { name: "g", description: undefined, parameters: undefined, strict: undefined },
      {
        name: "patch",
        description: "Edits files.\n\nThe input follows this lark grammar:\nstart: LINE",
        parameters: {
          type: "object",
          properties: { input: { type: "string" } },
          required: ["input"],
          additionalProperties: false
        },
        strict: undefined
      }
    ])
  })

  it("are ignored where the vendor runs them, which is noted", async () => {
    const tools = [
      { type: "web_search" },
      weather,
      { type: "shell", environment: { type: "container_auto" } },
      { type: "tool_search" },
      { type: "namespace", name: "n", tools: [{ type: "mcp" }, { type: "function", name: "f" }] }
    ]
    const { conversation, ignored } = await decoded({ input: "Hi", tools })
    assert.deepStrictEqual(conversation.tools.map(({ name }) => name), ["get_weather", "n__f"])
    assert.deepStrictEqual(ignored, ["tools[0]", "tools[2]", "tools[3]", "tools[4].tools[0]"])
  })

  it.each([
    [undefined, { _tag: "Auto" }, 2],
    [null, { _tag: "Auto" }, 2],
    ["auto", { _tag: "Auto" }, 2],
    ["none", { _tag: "None" }, 2],
    ["required", { _tag: "Required" }, 2],
    [{ type: "function", name: "get_weather" }, { _tag: "Function", name: "get_weather" }, 2],
    [{ type: "function", function: { name: "get_weather" } }, { _tag: "Function", name: "get_weather" }, 2],
    [{ type: "custom", name: "patch" }, { _tag: "Function", name: "patch" }, 2],
    [{ type: "allowed_tools", mode: "auto", tools: [weather] }, { _tag: "Auto" }, 1],
    [{ type: "allowed_tools", mode: "required", tools: [{ type: "custom", name: "patch" }] }, { _tag: "Required" }, 1]
  ])("are chosen among by %j", async (tool_choice, expected, declared) => {
    const { toolChoice, tools } = await conversation({ input: "Hi", tools: [weather, patch], tool_choice })
    assert.deepStrictEqual(toolChoice, expected)
    assert.strictEqual(tools.length, declared)
  })

  it.each([
    [{ type: "web_search" }, "tool_choice"],
    [{ type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "other" }] }, "tool_choice.tools"]
  ])("are not chosen among by %j", async (tool_choice, param) => {
    assert.strictEqual((await fault({ input: "Hi", tools: [weather], tool_choice })).param, param)
  })
})

const full = {
  model: "gpt-5",
  input: [
    {
      type: "message",
      id: "m",
      status: "completed",
      role: "user",
      content: [
        { type: "input_text", text: "Hi" },
        { type: "input_image", image_url: "https://example.org/a.png", detail: "low" },
        { type: "input_image", image_url: { url: "https://example.org/a.png", detail: "low" } },
        { type: "input_file", file_id: "f", file_url: "u", file_data: "d", filename: "n" },
        { type: "file", file: { file_data: "d", file_id: "i", filename: "n" } },
        { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
        { type: "refusal", refusal: "no" }
      ]
    },
    { role: "assistant", content: "Hello" },
    { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
    { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "1" }] },
    { type: "custom_tool_call", call_id: "d", name: "p", input: "+a" },
    { type: "custom_tool_call_output", call_id: "d", output: "ok" },
    {
      type: "reasoning",
      id: "r",
      summary: [{ type: "summary_text", text: "s" }],
      content: [{ type: "reasoning_text", text: "t" }]
    }
  ],
  instructions: "Be brief.",
  stream: false,
  store: true,
  tools: [{ type: "function", name: "f", description: "d", parameters: {}, strict: true }, patch],
  tool_choice: { type: "function", name: "f" },
  parallel_tool_calls: true,
  text: { format: { type: "json_schema", name: "n", schema: {}, strict: true }, verbosity: "low" },
  reasoning: { effort: "low", summary: "auto" },
  max_output_tokens: 10,
  stop: ["END"],
  temperature: 1,
  top_p: 0.5,
  metadata: { a: "b" },
  user: "u"
}

describe("a body that is no Responses request", () => {
  it("takes the whole of what it should take", async () => {
    assert.isTrue(Result.isSuccess(await send(full)))
  })

  it("is refused with the name of the field that is at fault", async () => {
    for (const { body, field } of wrongTypes(full, ["parameters", "schema", "metadata"])) {
      // Arguments may be an object too.
      if (field === "input[2].arguments") continue
      const result = await send(body)
      assert(Result.isFailure(result), `${field} was taken`)
      assert.strictEqual(result.failure.status, 400)
      const param = result.failure.param ?? ""
      assert.isTrue(
        param === field || field.startsWith(`${param}.`) || field.startsWith(`${param}[`) || param.startsWith(field),
        `${field} was told as ${param}: ${result.failure.message}`
      )
    }
  })

  it("never does more than be refused, whatever stands wherever", () =>
    fc.assert(
      fc.asyncProperty(hostileBodies(full), async (body) => {
        const result = await send(body, { stored: [previous] })
        if (Result.isFailure(result)) assert.strictEqual(result.failure.status, 400)
      }),
      { numRuns: runs(400) }
    ))
})
