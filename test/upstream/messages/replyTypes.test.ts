/**
 * Each field and kind of block of the vendor's reply types reaches a caller of the same contract, whole and streamed: a new one of the
 * SDK too. A stream is what the server sent, frame by frame.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import {
  events,
  messageEvents,
  type MessagesServer,
  startMessagesServer,
  streamedMessage,
  textBlock,
  usage,
  wholeMessage
} from "../../support/messagesServer.ts"
import { literalsOf, sdkType, variantsOf } from "../../support/sdkTypes.ts"
import { parseFrames } from "../../support/sse.ts"

const plain = "@anthropic-ai/sdk/resources/messages/messages.d.ts"
const beta = "@anthropic-ai/sdk/resources/beta/messages/messages.d.ts"

let server: MessagesServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startMessagesServer()
  gateway = await startGateway({
    upstream: { driver: "messages", base_url: server.url, models: { mine: "server-model" } }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

type Fields = { readonly [field: string]: unknown }

const post = async (stream: boolean): Promise<ReadonlyArray<Fields>> => {
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "mine",
      max_tokens: 9,
      stream,
      messages: [{ role: "user", content: "Hi" }],
      tools: [{ name: "f", input_schema: { type: "object" } }]
    })
  })
  const body = await response.text()
  return stream ? parseFrames(body).map(({ data }) => JSON.parse(data) as Fields) : [JSON.parse(body) as Fields]
}

const fieldsOf = (file: string, name: string, ...read: ReadonlyArray<string>): Fields => {
  const names = [...sdkType(file, name).fields.keys()]
  assert.isAbove(names.length, 1)
  return Object.fromEntries(names.filter((field) => !read.includes(field)).map((field) => [field, { kept: field }]))
}

const readOfMessage = ["type", "role", "model", "content", "id", "stop_reason", "stop_sequence", "usage"]

describe.each([[plain, ""], [beta, "Beta"]])("%s", (file, prefix) => {
  it("has fields of a message that return", async () => {
    const fields = fieldsOf(file, `${prefix}Message`, ...readOfMessage)
    server.answer(() => wholeMessage([textBlock("Hi")], { stop: fields }))
    assert.deepInclude((await post(false))[0], fields)
    const { container, stop_details, ...others } = fields
    server.answer(() => streamedMessage([textBlock("Hi")], { message: others, stop: { container, stop_details } }))
    const [start, ...frames] = await post(true)
    assert.deepInclude(start?.["message"], others)
    const end = frames.find(({ type }) => type === "message_delta")
    assert.deepInclude(end?.["delta"], { container, stop_details })
  })

  it("has fields of the end of a message that return", async () => {
    const end = fieldsOf(file, `${prefix}RawMessageDeltaEvent`, "type", "delta", "usage")
    const stop = fieldsOf(file, `${prefix}RawMessageDeltaEvent.Delta`, "stop_reason", "stop_sequence")
    server.answer(() => streamedMessage([textBlock("Hi")], { end, stop }))
    assert.deepInclude((await post(false))[0], { ...end, ...stop })
    const frame = (await post(true)).find(({ type }) => type === "message_delta")
    assert.deepInclude(frame, end)
    assert.deepInclude(frame?.["delta"], stop)
  })

  it("has token counts that return", async () => {
    const read = ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
    const counts = { ...usage, ...fieldsOf(file, `${prefix}Usage`, ...read) }
    server.answer(() => wholeMessage([textBlock("Hi")], { usage: counts }))
    assert.deepStrictEqual((await post(false))[0]?.["usage"], counts)
    server.answer(() => streamedMessage([textBlock("Hi")], { usage: counts }))
    assert.deepStrictEqual((await post(false))[0]?.["usage"], counts)
  })

  it("has kinds of blocks that return", async () => {
    const union = {
      file,
      scope: [],
      node: { type: "TSTypeReference", typeName: { type: "Identifier", name: `${prefix}ContentBlock` } }
    } as unknown as Parameters<typeof variantsOf>[0]
    const blocks = variantsOf(union).shapes.map((shape) => {
      const [type] = literalsOf(shape.fields.get("type")!)
      const fields = Object.fromEntries([...shape.fields.keys()].map((field) => [field, { kept: field }]))
      const known = {
        text: { text: "Hi", citations: [{ kept: "citation" }] },
        thinking: { thinking: "Hm", signature: "s" },
        tool_use: { id: `toolu_${shape.name}`, name: "f", input: { a: 1 }, caller: { type: "server", tool_id: "t" } }
      }[type ?? ""]
      return { ...fields, type, ...known } as Fields
    })
    assert.isAbove(blocks.length, 10)
    for (const answer of [wholeMessage, streamedMessage]) {
      server.answer(() => answer(blocks))
      assert.deepStrictEqual((await post(false))[0]?.["content"], blocks as never)
    }
  })
})

/** Frames without pings, with the model of the reply, and with pieces of one field joined. */
const comparable = (frames: ReadonlyArray<Fields>): ReadonlyArray<Fields> => {
  const out: Array<Fields> = []
  for (const sent of frames) {
    if (sent["type"] === "ping") continue
    const frame = sent["type"] === "message_start"
      ? { ...sent, message: { ...sent["message"] as Fields, model: "mine" } } as Fields
      : sent
    const delta = frame["delta"] as Fields | undefined
    const last = out.at(-1)
    const before = last?.["delta"] as Fields | undefined
    const field = { text_delta: "text", thinking_delta: "thinking", input_json_delta: "partial_json" }[
      String(delta?.["type"])
    ]
    if (field !== undefined && before?.["type"] === delta?.["type"] && last?.["index"] === frame["index"]) {
      out[out.length - 1] = {
        ...frame,
        delta: { ...delta, [field]: `${String(before?.[field])}${String(delta?.[field])}` }
      }
    } else out.push(frame)
  }
  return out
}

describe("a stream", () => {
  it("is what the server sent, frame by frame", async () => {
    const content = [
      { type: "thinking", thinking: "I should search.", signature: "c2ln" },
      { type: "redacted_thinking", data: "c2VjcmV0" },
      { type: "text", text: "Searching.", citations: null },
      { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "news" } },
      { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
      { type: "text", text: "One.", citations: null },
      { type: "text", text: " Two.", citations: null },
      { type: "tool_use", id: "toolu_1", name: "f", input: { zebra: 1, apple: 2 }, caller: { type: "direct" } }
    ]
    const sent = messageEvents(content, {
      stop: { stop_reason: "tool_use" },
      end: { context_management: { applied_edits: [] } }
    })
    server.answer(() => ({ pieces: [events(...sent)] }))
    const expected = JSON.parse(JSON.stringify(comparable(sent))) as ReadonlyArray<Fields>
    assert.deepStrictEqual(comparable(await post(true)), expected)
  })
})
