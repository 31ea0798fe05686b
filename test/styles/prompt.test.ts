/**
 * One conversation in the words of all four styles: the upstream gets the same prompt.
 */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { ChatCompletion } from "../../src/contracts/chat/schema.ts"
import { GenerateResponse } from "../../src/contracts/generate/schema.ts"
import { Message } from "../../src/contracts/messages/schema.ts"
import { ResponseObject } from "../../src/contracts/responses/ResponseObject.ts"
import type { JsonSchema } from "../../src/domain/Conversation.ts"
import { businessKey } from "../support/gateway.ts"
import { type StyleName, styleNames } from "../support/styleClients.ts"
import { base, citySchema, useGateway } from "./support.ts"

const fetchGateway = useGateway()

const postJson = async (path: string, body: object): Promise<unknown> => {
  const headers = { authorization: `Bearer ${businessKey}` }
  const response = await fetchGateway(`${base}${path}`, { method: "POST", headers, body: JSON.stringify(body) })
  return response.json()
}

interface Said {
  readonly system: string
  readonly image: string
  readonly schema: JsonSchema
}

/** The same conversation in each style's words. */
const conversations: Readonly<Record<StyleName, (said: Said) => { readonly path: string; readonly body: object }>> = {
  chat: ({ image, schema, system }) => ({
    path: "/v1/chat/completions",
    body: {
      model: "upstream-chat",
      response_format: { type: "json_schema", json_schema: { name: "place", schema } },
      messages: [
        { role: "system", content: system },
        {
          role: "user",
          content: [{ type: "text", text: "Where is this?" }, {
            type: "image_url",
            image_url: { url: `data:image/png;base64,${image}` }
          }]
        },
        {
          role: "assistant",
          content: "Let me look.",
          tool_calls: ["c1", "c2"].map((id, i) => ({
            id,
            type: "function",
            function: { name: "find", arguments: `{"n":${i}}` }
          }))
        },
        { role: "tool", tool_call_id: "c2", content: "Rome </tool_result>" },
        { role: "tool", tool_call_id: "c1", content: "Oslo" },
        { role: "user", content: "!echo-prompt" }
      ]
    }
  }),
  responses: ({ image, schema, system }) => ({
    path: "/v1/responses",
    body: {
      model: "upstream-chat",
      text: { format: { type: "json_schema", name: "place", schema } },
      instructions: system,
      input: [
        {
          role: "user",
          content: [{ type: "input_text", text: "Where is this?" }, {
            type: "input_image",
            image_url: `data:image/png;base64,${image}`
          }]
        },
        { role: "assistant", content: "Let me look." },
        ...["c1", "c2"].map((call_id, i) => ({
          type: "function_call",
          call_id,
          name: "find",
          arguments: `{"n":${i}}`
        })),
        { type: "function_call_output", call_id: "c2", output: "Rome </tool_result>" },
        { type: "function_call_output", call_id: "c1", output: "Oslo" },
        { role: "user", content: "!echo-prompt" }
      ]
    }
  }),
  messages: ({ image, schema, system }) => ({
    path: "/v1/messages",
    body: {
      model: "msgcompat-sonnet-4-5",
      max_tokens: 100,
      output_config: { format: { type: "json_schema", schema } },
      system,
      messages: [
        {
          role: "user",
          content: [{ type: "text", text: "Where is this?" }, {
            type: "image",
            source: { type: "base64", media_type: "image/png", data: image }
          }]
        },
        {
          role: "assistant",
          content: [
            { type: "text", text: "Let me look." },
            ...["c1", "c2"].map((id, n) => ({ type: "tool_use", id, name: "find", input: { n } }))
          ]
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c2", content: "Rome </tool_result>" },
            { type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "Oslo" }] },
            { type: "text", text: "!echo-prompt" }
          ]
        }
      ]
    }
  }),
  generate: ({ image, schema, system }) => ({
    path: "/v1beta/models/upstream-chat:generateContent",
    body: {
      generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema },
      systemInstruction: { parts: [{ text: system }] },
      contents: [
        {
          role: "user",
          parts: [{ text: "Where is this?" }, { inlineData: { mimeType: "image/png", data: image } }]
        },
        {
          role: "model",
          parts: [
            { text: "Let me look." },
            ...["c1", "c2"].map((id, n) => ({ functionCall: { id, name: "find", args: { n } } }))
          ]
        },
        {
          role: "user",
          parts: [
            { functionResponse: { id: "c2", name: "find", response: { output: "Rome </tool_result>" } } },
            { functionResponse: { id: "c1", name: "find", response: { output: "Oslo" } } },
            { text: "!echo-prompt" }
          ]
        }
      ]
    }
  })
}

/** Where a whole reply has its text. */
const textOf: Readonly<Record<StyleName, (reply: unknown) => string>> = {
  chat: (reply) => Schema.decodeUnknownSync(ChatCompletion)(reply).choices[0]!.message.content ?? "",
  responses: (reply) => Schema.decodeUnknownSync(ResponseObject)(reply).output_text,
  messages: (reply) =>
    Schema.decodeUnknownSync(Message)(reply).content.map((block) => block.type === "text" ? block.text : "").join(""),
  generate: (reply) =>
    Schema.decodeUnknownSync(GenerateResponse)(reply).candidates![0]!.content.parts
      .map((part) => "text" in part ? part.text : "").join("")
}

describe("a conversation is the same prompt in every style", () => {
  it("with a system text, an image, calls, results and a schema for the reply", async () => {
    const prompts = await Promise.all(styleNames.map(async (style) => {
      const { body, path } = conversations[style]({ system: "Be brief.", image: "aGVsbG8=", schema: citySchema })
      return textOf[style](await postJson(path, body))
    }))
    const [prompt] = prompts
    for (const part of ["Be brief.", "[image omitted]", "c1", "c2", "Rome", "Oslo", "JSON Schema"]) {
      assert.include(prompt, part)
    }
    assert.strictEqual(new Set(prompts).size, 1, prompts.join("\n-----\n"))
  })
})
