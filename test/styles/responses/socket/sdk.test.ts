/** The `ResponsesWS` of the vendor's SDK over a connection of the gateway. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import type { Response, ResponsesClientEvent, ResponsesServerEvent } from "openai/resources/responses/responses"
import { ResponsesWS, type ResponsesWSClientOptions } from "openai/resources/responses/ws"
import { businessKey, type RunningGateway, startGateway } from "../../../support/gateway.ts"
import { untilHolds, untilValue } from "../../../support/until.ts"

let gateway: RunningGateway
const open: Array<ResponsesWS> = []

beforeAll(async () => {
  gateway = await startGateway({ runtime: { account_max_inflight: 1 } })
})
afterAll(() => gateway.stop())
afterEach(() => {
  for (const socket of open.splice(0)) socket.close()
})

/** A socket of the SDK and the events that it passes on. */
const connect = (options?: ResponsesWSClientOptions) => {
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: businessKey, maxRetries: 0 })
  const socket = new ResponsesWS(client, options)
  open.push(socket)
  const events: Array<ResponsesServerEvent> = []
  const errors: Array<Error> = []
  socket.on("event", (event) => events.push(event))
  socket.on("error", (error) => errors.push(error))
  return {
    socket,
    events,
    errors,
    /** Sends a turn and waits for its response. */
    respond: async (body: Omit<ResponsesClientEvent.ResponseCreate, "type" | "model">): Promise<Response> => {
      const from = events.length
      socket.send({ type: "response.create", model: "gpt-5", ...body })
      const last = await untilValue(
        "the response is complete",
        () => events.slice(from).find(({ type }) => type === "response.completed" || type === "error"),
        (event) => event !== undefined
      )
      if (last?.type !== "response.completed") throw new Error(JSON.stringify(last))
      return last.response
    }
  }
}

const tools = [{ type: "function" as const, name: "get_weather", parameters: { type: "object" }, strict: false }]

describe("the SDK's ResponsesWS", () => {
  it("gets a text, piece by piece", async () => {
    const { errors, events, respond } = connect()
    const { output } = await respond({ input: "!say It is sunny." })
    assert.strictEqual(output[0]?.type, "message")
    const pieces = events.flatMap((event) => event.type === "response.output_text.delta" ? [event.delta] : [])
    assert.strictEqual(pieces.join(""), "It is sunny.")
    assert.isEmpty(errors)
  })

  it("runs a tool loop without a store by new items only", async () => {
    const { respond } = connect()
    const first = await respond({
      input: "!call get_weather {\"city\":\"Oslo\"}\n!next\n!say It is sunny.",
      tools,
      store: false
    })
    const [call] = first.output
    assert(call?.type === "function_call")
    const second = await respond({
      input: [{ type: "function_call_output", call_id: call.call_id, output: "sunny" }],
      previous_response_id: first.id,
      tools,
      store: false
    })
    assert.strictEqual(second.previous_response_id, first.id)
    const third = await respond({ input: "!echo-prompt", previous_response_id: second.id, store: false })
    const [message] = third.output
    assert(message?.type === "message" && message.content[0]?.type === "output_text")
    for (const part of ["get_weather", "Oslo", "sunny", "It is sunny."]) assert.include(message.content[0].text, part)
  })

  it("warms up, and continues", async () => {
    const { respond } = connect()
    const warm = await respond({ input: "The word is plover.", generate: false, store: false })
    assert.isEmpty(warm.output)
    const next = await respond({ input: "!echo-prompt", previous_response_id: warm.id, store: false })
    assert.include(JSON.stringify(next.output), "The word is plover.")
  })

  it("has a typed error, and goes on", async () => {
    const { errors, respond, socket } = connect()
    socket.send({ type: "response.create", model: "gpt-5", input: "hi", previous_response_id: "resp_none" })
    await untilHolds(() => errors.length === 1)
    assert.include(errors[0]!.message, "does not exist or has expired")
    assert.include(JSON.stringify(await respond({ input: "!say fine" })), "fine")
  })

  it("connects anew after its connection is lost, and continues a stored response", async () => {
    let connections = 0
    const { respond, socket } = connect({ reconnect: { onReconnecting: () => void connections++, initialDelay: 1 } })
    const first = await respond({ input: "!say The word is plover." })
    const reconnected = new Promise<void>((resolve) => socket.on("reconnected", () => resolve()))
    socket.socket.close(1001, "lost")
    await reconnected
    const next = await respond({ input: "!echo-prompt", previous_response_id: first.id })
    assert.include(JSON.stringify(next.output), "The word is plover.")
    assert.isAtLeast(connections, 1)
  })
})
