/** Histories as agents leave them, written by each contract, and the servers that they are sent to. */
import { Effect, type Scope } from "effect"
import * as fc from "fast-check"
import type { Json } from "../../../src/domain/json.ts"
import { startStand } from "../../golden/stand.ts"
import { text } from "../../styles/replies.ts"
import { businessKey } from "../../support/gateway.ts"
import { plainRequests } from "../../support/plainRequests.ts"
import type { StyleName } from "../../support/styleClients.ts"
import type { MatrixDriver } from "../matrix/driver.ts"
import { generate } from "../matrix/generate.ts"
import { messages } from "../matrix/messages.ts"
import { openai } from "../matrix/openai.ts"
import { responses } from "../matrix/responses.ts"

type Fields = { readonly [field: string]: unknown }

/** The drivers by the styles of the same contracts. */
export const drivers: Readonly<Record<StyleName, MatrixDriver>> = { chat: openai, responses, messages, generate }

/** One step of a history. */
export type Step =
  | { readonly by: "user" | "system"; readonly text: string }
  | { readonly by: "assistant"; readonly text: string; readonly calls: ReadonlyArray<string> }
  | { readonly by: "tool"; readonly id: string; readonly text: string }

const words = fc.constantFrom("", " ", "Go", "And?")

/** Ids of the forms of several vendors; some are used twice. */
const ids = fc.constantFrom("c1", "c2", "call:3", "toolu.4", "x".repeat(46), "y".repeat(86))

/** Any steps in any order. */
export const histories: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ by: fc.constantFrom("user" as const, "user" as const, "system" as const), text: words })
    },
    {
      weight: 4,
      arbitrary: fc.record({
        by: fc.constant("assistant" as const),
        text: words,
        calls: fc.uniqueArray(ids, { maxLength: 3 })
      })
    },
    { weight: 5, arbitrary: fc.record({ by: fc.constant("tool" as const), id: ids, text: words }) }
  ),
  { maxLength: 12 }
)

const name = "get_weather"

const chatMessage = (step: Step): Json => {
  switch (step.by) {
    case "tool":
      return { role: "tool", tool_call_id: step.id, content: step.text }
    case "assistant":
      return {
        role: "assistant",
        content: step.text,
        ...(step.calls.length === 0
          ? {}
          : { tool_calls: step.calls.map((id) => ({ id, type: "function", function: { name, arguments: "{}" } })) })
      }
    default:
      return { role: step.by, content: step.text }
  }
}

const responsesItems = (step: Step): ReadonlyArray<Json> => {
  switch (step.by) {
    case "tool":
      return [{ type: "function_call_output", call_id: step.id, output: step.text }]
    case "assistant":
      return [
        { type: "message", role: "assistant", content: [{ type: "output_text", text: step.text, annotations: [] }] },
        ...step.calls.map((id): Json => ({ type: "function_call", call_id: id, name, arguments: "{}" }))
      ]
    default:
      return [{ type: "message", role: step.by, content: step.text }]
  }
}

const messagesMessage = (step: Step): Json => {
  switch (step.by) {
    case "tool":
      return {
        role: "user",
        content: [
          ...(step.text === "Go" ? [{ type: "text", text: "Before the result" }] : []),
          { type: "tool_result", tool_use_id: step.id, content: step.text },
          ...(step.text === "And?" ? [{ type: "text", text: "After it" }] : [])
        ]
      }
    case "assistant":
      return {
        role: "assistant",
        content: [
          { type: "text", text: step.text },
          ...step.calls.map((id) => ({ type: "tool_use", id, name, input: {} }))
        ]
      }
    default:
      return { role: "user", content: step.text }
  }
}

const generateContent = (step: Step): Json => {
  switch (step.by) {
    case "tool":
      return { role: "user", parts: [{ functionResponse: { id: step.id, name, response: { output: step.text } } }] }
    case "assistant":
      return {
        role: "model",
        parts: [{ text: step.text }, ...step.calls.map((id) => ({ functionCall: { id, name, args: {} } }))]
      }
    default:
      return { role: "user", parts: [{ text: step.text }] }
  }
}

/** The fields of a request with a history. */
export const written: Readonly<Record<StyleName, (steps: ReadonlyArray<Step>) => Fields>> = {
  chat: (steps) => ({ messages: steps.map(chatMessage) }),
  responses: (steps) => ({ input: steps.flatMap(responsesItems) }),
  messages: (steps) => ({ messages: steps.map(messagesMessage) }),
  generate: (steps) => ({ contents: steps.map(generateContent) })
}

/** What a client got, and what its server received. */
export interface Exchanged {
  readonly status: number
  readonly ignored: string | null
  readonly text: string
  readonly received: ReadonlyArray<Fields>
}

export type Ask = (style: StyleName, fields: Fields, stream?: boolean) => Promise<Exchanged>

/** Starts a gateway before a server of a driver, in the current scope. `answer` is what the server writes, whole or streamed. */
export const startAsking = (
  driver: MatrixDriver,
  upstream: { readonly [field: string]: Json } = {},
  answer = (stream: boolean) => driver.write([text("Hi")], "stop", stream)
): Effect.Effect<Ask, unknown, Scope.Scope> =>
  Effect.map(
    startStand({ upstream: { driver: driver.name, models: driver.models, ...upstream } }),
    (stand): Ask => async (style, fields, stream = false) => {
      stand.answer(() => answer(stream))
      const { body, path } = plainRequests[style]
      const response = await stand.fetch(`http://gateway.test${path(stream)}`, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
        body: JSON.stringify({ ...body(stream), ...fields })
      })
      return {
        status: response.status,
        ignored: response.headers.get("x-gateway-ignored"),
        text: await response.text(),
        received: stand.received.map(({ body }) => JSON.parse(body) as Fields)
      }
    }
  )
