import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import type { ResponseInput, ResponseInputItem } from "openai/resources/responses/responses"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { parseFrames } from "../../support/sse.ts"

let gateway: RunningGateway
let client: OpenAI

beforeAll(async () => {
  // One slot: whatever a request leaves behind would make the next one wait.
  gateway = await startGateway({ runtime: { account_max_inflight: 1 } })
  client = clientWith(businessKey)
})
afterAll(() => gateway.stop())

const clientWith = (apiKey: string) => new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 })

const model = "gpt-5"
const ask = (input: string | ResponseInput) => ({ model, input })

const failure = async (attempt: PromiseLike<unknown>) => {
  const caught: unknown = await attempt.then(() => undefined, (reason: unknown) => reason)
  assert(caught instanceof OpenAI.APIError, `expected an API error, got ${String(caught)}`)
  return caught
}

const tools = [
  {
    type: "function" as const,
    name: "get_weather",
    description: "The weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    strict: false
  },
  { type: "custom" as const, name: "apply_patch", description: "Edits files" }
]

/** What a caller reads of a response, apart from what is another one each time. */
const read = (response: OpenAI.Responses.Response) => ({
  status: response.status,
  text: response.output_text,
  usage: response.usage,
  incomplete: response.incomplete_details,
  output: response.output.map((item) => {
    switch (item.type) {
      case "message":
        return item.content.map((part) => part.type === "output_text" ? part.text : part.refusal)
      case "reasoning":
        return { reasoning: item.summary.map((part) => part.text) }
      case "function_call":
        return { call: item.name, arguments: item.arguments }
      case "custom_tool_call":
        return { call: item.name, input: item.input }
      default:
        return item.type
    }
  })
})

const ways = {
  whole: (request: OpenAI.Responses.ResponseCreateParamsNonStreaming) => client.responses.create(request),
  streamed: (request: OpenAI.Responses.ResponseCreateParamsNonStreaming) =>
    client.responses.stream({ ...request, stream: true }).finalResponse()
}

describe.each(Object.entries(ways))("the official client, %s", (_, send) => {
  it("gets text and usage", async () => {
    const response = await send(ask("!say Hello there"))
    assert.strictEqual(response.output_text, "Hello there")
    assert.strictEqual(response.status, "completed")
    assert.strictEqual(response.model, model)
    assert.match(response.id, /^resp_[0-9a-f]{32}$/)
    const { input_tokens = 0, output_tokens = 0, total_tokens } = response.usage ?? {}
    assert.isAbove(input_tokens, 0)
    assert.isAbove(output_tokens, 0)
    assert.strictEqual(total_tokens, input_tokens + output_tokens)
  })

  it("gets reasoning as an item of its own", async () => {
    const response = await send({ ...ask("!think Let me see.\n!say 42"), model: "upstream-reasoner" })
    assert.deepStrictEqual(read(response).output, [{ reasoning: ["Let me see."] }, ["42"]])
    assert.isAbove(response.usage!.output_tokens_details.reasoning_tokens, 0)
  })

  it("gets calls between text, in order", async () => {
    const input = [
      "!say Looking.",
      "!call get_weather {\"city\":\"Oslo\"}",
      "!call apply_patch {\"input\":\"*** a\\n+b\"}",
      "!say Done."
    ].join("\n")
    const response = await send({ ...ask(input), tools })
    assert.deepStrictEqual(read(response).output, [
      ["Looking."],
      { call: "get_weather", arguments: "{\"city\":\"Oslo\"}" },
      { call: "apply_patch", input: "*** a\n+b" },
      ["Done."]
    ])
  })

  it("sees a reply that was withdrawn as incomplete", async () => {
    const withdrawn = await send(ask("!count 5\n!fault content-filter after=3"))
    assert.strictEqual(withdrawn.status, "incomplete")
    assert.deepStrictEqual(withdrawn.incomplete_details, { reason: "content_filter" })
  })

  it("reads its stored response, which other callers cannot read", async () => {
    const response = await send(ask("!say Keep this"))
    const again = await client.responses.retrieve(response.id)
    assert.deepStrictEqual(read(again), read(response))
    assert.strictEqual(again.id, response.id)
    const other = await failure(clientWith("somebody-elses-token").responses.retrieve(response.id))
    assert.instanceOf(other, OpenAI.NotFoundError)
    assert.strictEqual(other.code, "not_found")
    await client.responses.delete(response.id)
    assert.instanceOf(await failure(client.responses.retrieve(response.id)), OpenAI.NotFoundError)
  })

  it("leaves nothing behind when it does not want its response stored", async () => {
    const response = await send({ ...ask("!say Forget this"), store: false })
    assert.instanceOf(await failure(client.responses.retrieve(response.id)), OpenAI.NotFoundError)
  })

  it("runs a tool loop of three turns by sending everything back", async () => {
    const input: ResponseInput = [{
      role: "user",
      content:
        "!call get_weather {\"city\":\"Oslo\"}\n!next\n!call apply_patch {\"input\":\"+sunny\"}\n!next\n!say All done."
    }]
    const first = await send({ ...ask(input), tools, store: false })
    const [call] = first.output
    assert(call?.type === "function_call")
    input.push(...(first.output as Array<ResponseInputItem>))
    input.push({ type: "function_call_output", call_id: call.call_id, output: "sunny" })
    const second = await send({ ...ask(input), tools, store: false })
    const [patch] = second.output
    assert(patch?.type === "custom_tool_call", JSON.stringify(second.output))
    assert.strictEqual(patch.input, "+sunny")
    input.push(...(second.output as Array<ResponseInputItem>))
    input.push({
      type: "custom_tool_call_output",
      call_id: patch.call_id,
      output: [{ type: "input_text", text: "ok" }]
    })
    const third = await send({ ...ask(input), tools, store: false })
    assert.strictEqual(third.output_text, "All done.")
  })

  it("runs the same loop by naming the response before", async () => {
    const script = "!call get_weather {\"city\":\"Oslo\"}\n!next\n!say It is sunny.\n!next\n!say Never."
    const first = await send({ ...ask(script), tools, instructions: "Be brief." })
    const [call] = first.output
    assert(call?.type === "function_call")
    const second = await send({
      ...ask([{ type: "function_call_output", call_id: call.call_id, output: "sunny" }]),
      tools,
      previous_response_id: first.id
    })
    assert.strictEqual(second.output_text, "It is sunny.")
    assert.strictEqual(second.previous_response_id, first.id)
    const third = await send({ ...ask("!echo-prompt"), previous_response_id: second.id })
    for (const part of ["get_weather", "Oslo", "sunny", "It is sunny."]) assert.include(third.output_text, part)
    assert.notInclude(third.output_text, "Be brief.", "instructions hold for one response")
  })

  it("may refer to an item of an earlier response", async () => {
    const first = await send(ask("!say The word is plover."))
    const id = first.output[0]!.id!
    const second = await send(ask([{ type: "item_reference", id }, { role: "user", content: "!echo-prompt" }]))
    assert.include(second.output_text, "The word is plover.")
  })

  it("gets typed errors before anything is shown", async () => {
    const unknown = await failure(send({ ...ask("hi"), model: "no-such-model" }))
    assert.instanceOf(unknown, OpenAI.BadRequestError)
    assert.strictEqual(unknown.code, "model_not_found")
    const reference = await failure(send({ ...ask("hi"), previous_response_id: "resp_none" }))
    assert.strictEqual(reference.code, "previous_response_not_found")
    assert.strictEqual(reference.param, "previous_response_id")
    const undeclared = await failure(send({ ...ask("hi"), tools, tool_choice: { type: "function", name: "other" } }))
    assert.strictEqual(undeclared.status, 400)
    assert.strictEqual(undeclared.param, "tool_choice")
    const filtered = await failure(send(ask("!fault content-filter")))
    assert.strictEqual(filtered.code, "content_filter")
    const tooLong = await failure(send(ask("!fault too-long")))
    assert.strictEqual(tooLong.code, "context_length_exceeded")
  })

  it("has its tool_choice kept", async () => {
    const script = "!call get_weather {\"city\":\"Oslo\"}"
    const none = await send({ ...ask(script), tools, tool_choice: "none" })
    assert.include(none.output_text, "<tool_call>")
    const required = await send({ ...ask(script), tools, tool_choice: "required" })
    assert.strictEqual(required.output[0]?.type, "function_call")
    const forced = await send({ ...ask(script), tools, tool_choice: { type: "function", name: "get_weather" } })
    assert.strictEqual(forced.output[0]?.type, "function_call")
    const one = await send({ ...ask(`${script}\n${script}`), tools, parallel_tool_calls: false })
    assert.strictEqual(one.output.length, 1)
  })

  it("sees stop sequences end the reply, however they are split", async () => {
    const request = { ...ask("!say [\"one E\",\"N\",\"D two\"]"), stop: "END" }
    assert.strictEqual((await send(request)).output_text, "one ")
  })
})

describe("the official client", () => {
  it("gets the same streamed and not", async () => {
    for (
      const input of [
        "!say Hello there",
        "!think Hm.\n!say Yes.",
        "!say A.\n!call get_weather {\"city\":\"Rome\"}\n!say B.",
        "!count 40",
        "!cut 3 empty\n!count 8"
      ]
    ) {
      const request = { ...ask(input), model: "upstream-reasoner", tools }
      assert.deepStrictEqual(read(await ways.streamed(request)), read(await ways.whole(request)), input)
    }
  })

  it("receives a missing call as 422, and in a stream as response.failed", async () => {
    const request = { ...ask("!say no calls here"), tools, tool_choice: "required" as const }
    const missing = await failure(client.responses.create(request))
    assert.strictEqual(missing.status, 422)
    assert.strictEqual(missing.code, "tool_choice_violation")

    const events = []
    for await (const event of await client.responses.create({ ...request, stream: true })) events.push(event)
    assert.deepStrictEqual(events.map((event) => event.type), [
      "response.created",
      "response.in_progress",
      "response.failed"
    ])
    const last = events.at(-1)
    assert(last?.type === "response.failed")
    assert.strictEqual(String(last.response.error?.code), "tool_choice_violation")
    assert.strictEqual((await client.responses.retrieve(last.response.id)).status, "failed")
  })

  it("receives a failure in the stream and finds it stored", async () => {
    const response = await ways.streamed(ask("!count 5\n!fault error-status after=3"))
    assert.strictEqual(response.status, "failed")
    assert.strictEqual(response.output_text, "1 2 3")
    assert.strictEqual(String(response.error?.code), "upstream_error")
    const stored = await client.responses.retrieve(response.id)
    assert.strictEqual(stored.status, "failed")
    assert.strictEqual(stored.output_text, "1 2 3")
  })

  it("finds a response in progress while it streams, and cancelled once it has left", async () => {
    const stream = await client.responses.create({ ...ask("!count 3\n!fault hang-mid-stream"), stream: true })
    let id = ""
    for await (const event of stream) {
      if (event.type === "response.created") id = event.response.id
      if (event.type !== "response.output_text.delta") continue
      const { output, status } = await client.responses.retrieve(id)
      assert.strictEqual(status, "in_progress")
      assert.deepStrictEqual(output, [])
      const early = await failure(client.responses.create({ ...ask("hi"), previous_response_id: id }))
      assert.strictEqual(early.param, "previous_response_id")
      break
    }
    // The one slot is free again only after the gateway has noticed, and the response is settled before.
    assert.strictEqual((await client.responses.create(ask("!say next"))).output_text, "next")
    const left = await client.responses.retrieve(id)
    assert.strictEqual(left.status, "cancelled")
    assert.isNotEmpty(left.output_text)
  })

  it("has structured output asked for in the prompt", async () => {
    const { output_text } = await client.responses.create({
      ...ask("!echo-prompt"),
      text: { format: { type: "json_schema", name: "city", schema: { properties: { city: { type: "string" } } } } }
    })
    assert.include(output_text, "\"city\"")
  })

  it("lists what a response was made from", async () => {
    const input: ResponseInput = [
      { role: "user", content: "Weather in Oslo?" },
      { type: "function_call", call_id: "c1", name: "get_weather", arguments: "{\"city\":\"Oslo\"}" },
      { type: "function_call_output", call_id: "c1", output: "sunny" },
      { role: "user", content: "!say It is sunny." }
    ]
    const { id } = await client.responses.create(ask(input))
    const kinds = []
    for await (const item of client.responses.inputItems.list(id, { order: "asc", limit: 3 })) {
      assert.isNotEmpty(item.id)
      kinds.push(item.type)
    }
    assert.deepStrictEqual(kinds, ["message", "function_call", "function_call_output", "message"])
    const page = await client.responses.inputItems.list(id, { limit: 1 })
    assert.isTrue(page.has_more)
    const [newest] = page.data
    assert(newest?.type === "message")
    assert.deepStrictEqual(newest.content, [{ type: "input_text", text: "!say It is sunny." }])
    const bad = await fetch(`${gateway.url}/v1/responses/${id}/input_items?limit=0`, {
      headers: { authorization: `Bearer ${businessKey}` }
    })
    assert.strictEqual(bad.status, 400)
    const after = await failure(client.responses.inputItems.list(id, { after: "msg_of_another_response" }))
    assert.strictEqual(after.status, 400)
    assert.strictEqual(after.param, "after")
    const last = page.data[0]!.id!
    assert.isEmpty((await client.responses.inputItems.list(id, { after: last, order: "asc" })).data)
  })

  it("gets an error when it streams a stored response", async () => {
    const { id } = await client.responses.create(ask("!say once"))
    const error = await failure(client.responses.retrieve(id, { stream: true }))
    assert.strictEqual(error.status, 400)
    assert.strictEqual(error.param, "stream")
  })

  it("must send messages while wide input is off", async () => {
    const narrow = await startGateway({ compat: { wide_input_strict_output: false } })
    const post = (body: object) =>
      fetch(`${narrow.url}/v1/responses`, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}` },
        body: JSON.stringify({ model, ...body })
      })
    const refused = await post({ input: "!say Hi" })
    assert.strictEqual(refused.status, 400)
    assert.strictEqual((await refused.json() as { error: { param: string } }).error.param, "input")
    const taken = await post({ messages: [{ role: "user", content: "!say Hi" }] })
    assert.strictEqual((await taken.json() as { output_text: string }).output_text, "Hi")
    await narrow.stop()
  })
})

describe("the frames of a Responses stream", () => {
  it("are an event and a data line each, numbered without a gap, and end with [DONE]", async () => {
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
      body: JSON.stringify({ ...ask("!say Looking.\n!call get_weather {\"city\":\"Oslo\"}"), tools, stream: true })
    })
    assert.include(response.headers.get("content-type"), "text/event-stream")
    const frames = parseFrames(await response.text())
    assert.deepStrictEqual(frames.at(-1), { event: undefined, data: "[DONE]" })
    const events = frames.slice(0, -1).map(({ data, event }) => {
      const value: { readonly type: string; readonly [field: string]: unknown } = JSON.parse(data)
      assert.strictEqual(value.type, event)
      return value
    })
    events.forEach((event, i) => assert.strictEqual(event["sequence_number"], i))
    const names = events.map((event) => event.type)
    assert.deepStrictEqual(names.filter((name, i) => name !== names[i - 1]), [
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "response.completed"
    ])
    const id = events[0]!["id"]
    for (const event of events.slice(2, -1)) assert.strictEqual(event["response_id"], id)
    for (const name of ["response.function_call_arguments.delta", "response.function_call_arguments.done"]) {
      assert.property(events.find((event) => event.type === name), "call_id")
    }
  })
})
