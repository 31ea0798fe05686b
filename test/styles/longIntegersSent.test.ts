/** What callers send of earlier calls and results keeps its digits: the model goes on with the ids that it reads there. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import { chat } from "../../src/contracts/chat/contract.ts"
import { decodeChat } from "../../src/contracts/chat/readRequest.ts"
import { ChatRequest } from "../../src/contracts/chat/schema.ts"
import { decodeGenerate } from "../../src/contracts/generate/readRequest.ts"
import { messages } from "../../src/contracts/messages/contract.ts"
import { decodeMessages } from "../../src/contracts/messages/readRequest.ts"
import { MessagesRequest } from "../../src/contracts/messages/schema.ts"
import type { Part } from "../../src/domain/Conversation.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import { jsonRequest } from "../../src/http/jsonBody.ts"
import { readGenerateRequest } from "../../src/styles/generate/readRequest.ts"

const id = "12345678901234567890"
const object = `{"id":${id}}`

const readChat = jsonRequest(ChatRequest, { family: chat.request })
const readMessages = jsonRequest(MessagesRequest, { family: messages.request })

/** What the last part of a conversation says of a call or its result. */
const said = (part: Part | undefined): string =>
  part?._tag === "Call" ? part.arguments : part?._tag === "Result" ? JSON.stringify(part.content) : ""

const lastSaid = (
  body: string,
  read: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<string, unknown>
) => Effect.runPromise(read(HttpServerRequest.fromWeb(new Request("http://localhost/", { method: "POST", body }))))

describe("a long integer that a caller sends", () => {
  it("stands in a chat call's arguments", async () => {
    const call = `{"id":"c","type":"function","function":{"name":"f","arguments":${object}}}`
    const body = `{"model":"m","messages":[{"role":"assistant","tool_calls":[${call}]}]}`
    const text = await lastSaid(body, (request) =>
      Effect.scoped(readChat(request)).pipe(
        Effect.flatMap((value) => Effect.fromResult(runSync(decodeChat(value.body)))),
        Effect.map(({ turns }) => said(turns.at(-1)?.parts.at(-1)))
      ))
    assert.strictEqual(text, object)
  })

  it("stands in a tool_use block's input", async () => {
    const block = `{"type":"tool_use","id":"u","name":"f","input":${object}}`
    const body = `{"model":"m","max_tokens":5,"messages":[{"role":"assistant","content":[${block}]}]}`
    const text = await lastSaid(body, (request) =>
      Effect.scoped(readMessages(request)).pipe(
        Effect.flatMap((value) => Effect.fromResult(runSync(decodeMessages(value.body)))),
        Effect.map(({ turns }) => said(turns.at(-1)?.parts.at(-1)))
      ))
    assert.strictEqual(text, object)
  })

  it.each([
    `{"functionCall":{"name":"f","args":${object}}}`,
    `{"functionResponse":{"name":"f","response":${object}}}`,
    `{"function_response":{"name":"f","response":{"output":${id}}}}`
  ])("stands in %s", async (part) => {
    const role = part.includes("Call") ? "model" : "user"
    const text = await lastSaid(
      `{"contents":[{"role":"${role}","parts":[${part}]}]}`,
      (request) =>
        Effect.scoped(readGenerateRequest(request)).pipe(
          Effect.flatMap((value) => Effect.fromResult(runSync(decodeGenerate(value.body)))),
          Effect.map(({ turns }) => said(turns.at(-1)?.parts.at(-1)))
        )
    )
    assert.include(text, id)
  })

  it("stays a number in a tool's schema", async () => {
    const sent = `{"model":"m","messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":` +
      `{"name":"f","parameters":{"type":"integer","maximum":9223372036854775807}}}]}`
    const request = HttpServerRequest.fromWeb(new Request("http://localhost/", { method: "POST", body: sent }))
    const { body: { tools } } = await Effect.runPromise(Effect.scoped(readChat(request)))
    assert.nestedPropertyVal(tools?.[0], "function.parameters.maximum", Number("9223372036854775807"))
  })
})
