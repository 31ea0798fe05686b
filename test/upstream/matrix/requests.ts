/**
 * The same requests in every style. Each driver says what arrives of them at its server.
 */
import { citySchema } from "../../styles/support.ts"
import type { StyleName } from "../../support/styleClients.ts"

export const picture = "data:image/png;base64,aGk="
export const pdf = "data:application/pdf;base64,aGk="
const args = `{"city":"Oslo"}`

const tool = {
  chat: [{ type: "function", function: { name: "get_weather", description: "W", parameters: citySchema } }],
  responses: [{ type: "function", name: "get_weather", description: "W", parameters: citySchema, strict: null }],
  messages: [{ name: "get_weather", description: "W", input_schema: citySchema }],
  generate: [{ functionDeclarations: [{ name: "get_weather", description: "W", parametersJsonSchema: citySchema }] }]
}

const turns = [
  { role: "user", content: "A" },
  { role: "user", content: "B" },
  { role: "assistant", content: "C" },
  { role: "user", content: "D" }
]

export const sharedRequests = {
  "instructions and a conversation": {
    chat: { messages: [{ role: "system", content: "Be brief." }, ...turns] },
    responses: { instructions: "Be brief.", input: turns },
    messages: { system: "Be brief.", messages: turns },
    generate: {
      systemInstruction: { parts: [{ text: "Be brief." }] },
      contents: [
        { role: "user", parts: [{ text: "A" }] },
        { role: "user", parts: [{ text: "B" }] },
        { role: "model", parts: [{ text: "C" }] },
        { role: "user", parts: [{ text: "D" }] }
      ]
    }
  },
  "a loop of tools": {
    chat: {
      tools: tool.chat,
      messages: [
        { role: "user", content: "Go" },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c1", type: "function", function: { name: "get_weather", arguments: args } }]
        },
        { role: "tool", tool_call_id: "c1", content: "Rain" }
      ]
    },
    responses: {
      tools: tool.responses,
      input: [
        { role: "user", content: "Go" },
        { type: "function_call", call_id: "c1", name: "get_weather", arguments: args },
        { type: "function_call_output", call_id: "c1", output: "Rain" }
      ]
    },
    messages: {
      tools: tool.messages,
      messages: [
        { role: "user", content: "Go" },
        { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "get_weather", input: { city: "Oslo" } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "Rain" }] }
      ]
    },
    generate: {
      tools: tool.generate,
      contents: [
        { role: "user", parts: [{ text: "Go" }] },
        { role: "model", parts: [{ functionCall: { id: "c1", name: "get_weather", args: { city: "Oslo" } } }] },
        {
          role: "user",
          parts: [{ functionResponse: { id: "c1", name: "get_weather", response: { output: "Rain" } } }]
        }
      ]
    }
  },
  "tools that must not be called": {
    chat: { tools: tool.chat, tool_choice: "none", messages: [{ role: "user", content: "Go" }] },
    responses: { tools: tool.responses, tool_choice: "none", input: "Go" },
    messages: {
      tools: tool.messages,
      tool_choice: { type: "none" },
      messages: [{ role: "user", content: "Go" }]
    },
    generate: {
      tools: tool.generate,
      toolConfig: { functionCallingConfig: { mode: "NONE" } },
      contents: [{ role: "user", parts: [{ text: "Go" }] }]
    }
  },
  "pictures and a document": {
    chat: {
      messages: [{
        role: "user",
        content: [
          { type: "image_url", image_url: { url: picture } },
          { type: "file", file: { file_data: pdf } },
          { type: "image_url", image_url: { url: "https://x.test/a.png" } }
        ]
      }]
    },
    responses: {
      input: [{
        role: "user",
        content: [
          { type: "input_image", image_url: picture },
          { type: "input_file", file_data: pdf },
          { type: "input_image", image_url: "https://x.test/a.png" }
        ]
      }]
    },
    messages: {
      messages: [{
        role: "user",
        content: [
          { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
          { type: "document", source: { type: "base64", media_type: "application/pdf", data: "aGk=" } },
          { type: "image", source: { type: "url", url: "https://x.test/a.png" } }
        ]
      }]
    },
    generate: {
      contents: [{
        role: "user",
        parts: [
          { inlineData: { mimeType: "image/png", data: "aGk=" } },
          { inlineData: { mimeType: "application/pdf", data: "aGk=" } },
          { fileData: { fileUri: "https://x.test/a.png", mimeType: "image/png" } }
        ]
      }]
    }
  }
} as const satisfies Record<string, Record<StyleName, object>>

export type RequestName = keyof typeof sharedRequests
