/** Content parts mean the same in chat completions and in Responses, in whichever of their words they come. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as fc from "fast-check"
import { decodeChat } from "../../src/contracts/chat/readRequest.ts"
import { ChatRequest } from "../../src/contracts/chat/schema.ts"
import { ResponseRequest } from "../../src/contracts/responses/schema.ts"
import { defaultLimits } from "../../src/domain/limits.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import { decodeResponse } from "../../src/styles/responses/decode.ts"
import { businessKey } from "../support/gateway.ts"
import { base, useGateway } from "./support.ts"

const fetch = useGateway()

const asChat = (content: ReadonlyArray<unknown>) => ({ model: "upstream-chat", messages: [{ role: "user", content }] })
const asResponse = (content: ReadonlyArray<unknown>) => ({ model: "upstream-chat", input: [{ role: "user", content }] })

const byChat = (part: unknown) =>
  Result.map(
    runSync(decodeChat(Schema.decodeUnknownSync(ChatRequest)(asChat([part])))),
    ({ turns }) => turns
  )
const byResponses = (part: unknown) =>
  Result.map(
    runSync(decodeResponse(Schema.decodeUnknownSync(ResponseRequest)(asResponse([part])), {
      wideInput: true,
      isWarmUp: false,
      stored: new Map(),
      limits: defaultLimits,
      bodyVendorFields: undefined,
      sent: undefined,
      serverCompacts: false,
      betas: undefined,
      readSummary: undefined,
      compaction: undefined
    })),
    ({ conversation }) => conversation.turns
  )

const texts = fc.constantFrom("", "a", "data:image/png;base64,AA==", "https://example.org/a")
const text = fc.option(texts, { nil: undefined })

/** Parts of every type with any of their fields. */
const parts = fc.record({
  type: fc.constantFrom(
    "text",
    "input_text",
    "output_text",
    "refusal",
    "image_url",
    "input_image",
    "file",
    "input_file",
    "input_audio",
    "video"
  ),
  text,
  refusal: text,
  image_url: fc.oneof(text, fc.record({ url: texts })),
  file_id: text,
  file_url: text,
  file_data: text,
  filename: text,
  file: fc.option(fc.record({ file_data: texts, file_id: texts }, { requiredKeys: [] }), { nil: undefined }),
  input_audio: fc.option(fc.record({ data: fc.constant("AA==") }), { nil: undefined })
}).map((part): unknown => JSON.parse(JSON.stringify(part)))

describe("a content part", () => {
  it("is carried, or refused, alike by both styles", () => {
    fc.assert(fc.property(parts, (part) => {
      const [chat, responses] = [byChat(part), byResponses(part)]
      assert.strictEqual(Result.isSuccess(chat), Result.isSuccess(responses))
      if (Result.isSuccess(chat) && Result.isSuccess(responses)) {
        assert.deepStrictEqual(chat.success, responses.success)
      } else if (Result.isFailure(chat) && Result.isFailure(responses)) {
        const fieldOf = (param: string | null) => param?.replace(/^(?:messages|input)\[0\]/, "")
        assert.strictEqual(fieldOf(chat.failure.param), fieldOf(responses.failure.param))
      }
    }))
  })

  const empty = [
    [{ type: "file" }, "file.file_data"],
    [{ type: "file", file: {} }, "file.file_data"],
    [{ type: "file", file: { filename: "a.txt", file_data: "" } }, "file.file_data"],
    [{ type: "input_file", filename: "a.txt" }, "file_data"],
    [{ type: "image_url", image_url: { url: "" } }, "image_url"],
    [{ type: "input_audio" }, "input_audio"],
    [{ type: "input_audio", input_audio: { data: "" } }, "input_audio.data"],
    [{ type: "text" }, "text"]
  ] as const

  it("without what it is about is refused by name in both styles", async () => {
    const styles = [["/v1/chat/completions", asChat, "messages"], ["/v1/responses", asResponse, "input"]] as const
    for (const [part, field] of empty) {
      for (const [path, body, list] of styles) {
        const response = await fetch(`${base}${path}`, {
          method: "POST",
          headers: { authorization: `Bearer ${businessKey}` },
          body: JSON.stringify(body([part]))
        })
        const { error } = await response.json() as { error: { param: string } }
        assert.deepEqual([response.status, error.param], [400, `${list}[0].content[0].${field}`], JSON.stringify(part))
      }
    }
  })

  it("without what it is about is refused by name in the other styles too", async () => {
    const message = (block: unknown) => ({
      model: "msgcompat-sonnet-4-5",
      max_tokens: 10,
      messages: [{ role: "user", content: [block] }]
    })
    const contents = (part: unknown) => ({ contents: [{ role: "user", parts: [part] }] })
    const generate = "/v1beta/models/upstream-chat:generateContent"
    const image = (source: object) => message({ type: "image", source })
    const document = (source: object) => message({ type: "document", source })
    const requests = [
      [
        "/v1/messages",
        image({ type: "base64", media_type: "image/png", data: "" }),
        "messages[0].content[0].source.data"
      ],
      ["/v1/messages", image({ type: "url", url: "" }), "messages[0].content[0].source.url"],
      ["/v1/messages", document({ type: "file", file_id: "" }), "messages[0].content[0].source.file_id"],
      [generate, contents({ inlineData: { mimeType: "image/png", data: "" } }), "contents[0].parts[0].inlineData.data"],
      [generate, contents({ fileData: { fileUri: "" } }), "contents[0].parts[0].fileData.fileUri"]
    ] as const
    for (const [path, body, field] of requests) {
      const response = await fetch(`${base}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}` },
        body: JSON.stringify(body)
      })
      const { error } = await response.json() as { error: { message: string } }
      assert.strictEqual(response.status, 400, JSON.stringify(body))
      assert.isTrue(error.message.startsWith(`${field}:`), error.message)
    }
  })
})
