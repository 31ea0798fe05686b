/** Histories in the form that chat completions had before `tool_calls`, which its SDK still has. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { decodeChat } from "../../src/contracts/chat/readRequest.ts"
import { ChatRequest } from "../../src/contracts/chat/schema.ts"
import { ResponseRequest } from "../../src/contracts/responses/schema.ts"
import type { Turn } from "../../src/domain/Conversation.ts"
import { defaultLimits } from "../../src/domain/limits.ts"
import { linkCalls } from "../../src/domain/linkCalls.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import { decodeResponse } from "../../src/styles/responses/decode.ts"

const body = {
  model: "m",
  messages: [
    { role: "user", content: "Weather?" },
    { role: "assistant", content: null, function_call: { name: "get_weather", arguments: `{"city":"Oslo"}` } },
    { role: "function", name: "get_weather", content: "Rain." }
  ]
}

const assertCalled = (turns: ReadonlyArray<Turn>) => {
  const [, called, answered] = turns
  const [call] = called?.parts ?? []
  const [result] = answered?.parts ?? []
  assert(call?._tag === "Call" && result?._tag === "Result")
  assert.deepInclude(call, { name: "get_weather", arguments: `{"city":"Oslo"}` })
  assert.strictEqual(result.callId, call.id)
}

describe("function_call of an assistant's message", () => {
  it("is its call in chat completions", () => {
    const conversation = Result.getOrThrow(runSync(decodeChat(Schema.decodeUnknownSync(ChatRequest)(body))))
    assertCalled(linkCalls(conversation).turns)
  })

  it("is its call in the messages of Responses", () => {
    const options = {
      bodyVendorFields: undefined,
      wideInput: true,
      sent: undefined,
      serverCompacts: false,
      betas: undefined,
      stored: new Map(),
      limits: defaultLimits,
      readSummary: undefined,
      compaction: undefined,
      isWarmUp: false
    }
    const decoded = runSync(decodeResponse(Schema.decodeUnknownSync(ResponseRequest)(body), options))
    assertCalled(linkCalls(Result.getOrThrow(decoded).conversation).turns)
  })
})
