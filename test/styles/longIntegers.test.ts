/** Arguments of a call reach the caller as the model wrote them, also with integers that are more than a number holds. */
import { assert, describe, it } from "@effect/vitest"
import { businessKey } from "../support/gateway.ts"
import { base, useGateway } from "./support.ts"

const fetch = useGateway()

const id = "12345678901234567890"
const content =
  `!say "\\u003ctool_call\\u003e{\\"name\\":\\"get\\",\\"arguments\\":{\\"id\\":${id}}}\\u003c/tool_call\\u003e"`
const messages = [{ role: "user", content }]
const chatTools = [{ type: "function", function: { name: "get" } }]
const messagesTools = [{ name: "get", input_schema: { type: "object" } }]
const generate = { contents: content, tools: [{ functionDeclarations: [{ name: "get" }] }] }
const model = "upstream-chat"

const asks: ReadonlyArray<readonly [path: string, body: object]> = [
  ["/v1/chat/completions", { model, messages, tools: chatTools }],
  ["/v1/responses", { model, messages, tools: chatTools }],
  ["/v1/messages", { model, messages, tools: messagesTools }],
  ["/v1/messages", { model, messages, tools: messagesTools, stream: true }],
  [`/v1beta/models/${model}:generateContent`, generate],
  [`/v1beta/models/${model}:streamGenerateContent`, generate]
]

describe("a long integer in a call's arguments", () => {
  it.each(asks)("%s %o", async (path, body) => {
    const response = await fetch(`${base}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify(body)
    })
    // Most have the arguments in a string; the pieces of a stream belong together.
    const text = (await response.text()).replaceAll("\\", "")
    const pieces = Array.from(text.matchAll(/"partial_json":"(.*)"\}\}/g), ([, piece]) => piece).join("")
    assert.include(pieces + text, `"id":${id}}`)
  })
})
