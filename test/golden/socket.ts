/** Turns over a WebSocket of the Responses style, before each driver: the messages as they came. The server and the gateway are on sockets. */
import { Effect } from "effect"
import type { RawConfig } from "../../src/config/json.ts"
import { Client } from "../styles/responses/socket/client.ts"
import { tools } from "../styles/support.ts"
import { startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import type { Answer } from "../support/openaiServer.ts"
import type { MatrixDriver } from "../upstream/matrix/driver.ts"
import type { File, Recorded } from "./lines.ts"
import { accounts, started } from "./stand.ts"

interface Turn {
  readonly name: string
  /** `before` is the id of the response before it. */
  readonly ask: (before: string) => object
  readonly answer: (driver: MatrixDriver) => Answer
}

const model = "upstream-chat"
const create = (fields: object) => () => ({ type: "response.create", model, input: "Hi", ...fields })
const hello = (driver: MatrixDriver): Answer => driver.write([{ _tag: "Text", text: "Hello" }], "stop", true)

const turns: ReadonlyArray<Turn> = [
  { name: "text", ask: create({}), answer: hello },
  {
    name: "what came before",
    ask: (before) => ({ type: "response.create", model, input: "On", previous_response_id: before }),
    answer: hello
  },
  {
    name: "thinking and calls",
    ask: create({
      model: "upstream-reasoner",
      tools: tools.map((tool) => ({ type: "function", strict: null, ...tool }))
    }),
    answer: (driver) =>
      driver.write(
        [
          { _tag: "Reasoning", text: "Hm." },
          { _tag: "Call", name: "get_weather", arguments: { city: "Oslo" } },
          { _tag: "Call", name: "get_time", arguments: { city: "Rome" } }
        ],
        "tool_calls",
        true
      )
  },
  { name: "preparation", ask: create({ generate: false }), answer: hello },
  { name: "a bad request", ask: create({}), answer: (driver) => driver.failures["a bad request"] },
  { name: "a rate limit", ask: create({}), answer: (driver) => driver.failures["a rate limit"] },
  {
    name: "an error after the first text",
    ask: create({}),
    answer: (driver) => {
      const fault = driver.streamFaults["an error"]
      return { ...fault, pieces: [driver.hello, ...fault.pieces ?? []] }
    }
  },
  { name: "a wrong field", ask: create({ temperature: "hot" }), answer: hello },
  { name: "an unknown event", ask: () => ({ type: "response.unknown" }), answer: hello }
]

/** The exchanges of one connection, a turn each. */
export const overSocket = (driver: MatrixDriver, upstream: RawConfig): File["exchanges"] =>
  Effect.gen(function*() {
    const { address, server } = yield* Effect.acquireRelease(
      Effect.promise(driver.start),
      ({ server }) => Effect.promise(server.stop)
    )
    const gateway = yield* Effect.acquireRelease(
      Effect.promise(() =>
        startGateway({
          accounts,
          upstream: { base_url: address, models: driver.models, timeouts: { queue: 0 }, ...upstream }
        }, { clock: makeMovedClock({ still: true, wall: started }) })
      ),
      ({ stop }) => Effect.promise(stop)
    )
    const client = yield* Effect.acquireRelease(
      Effect.promise(() => Client.open(gateway.url)),
      ({ socket }) => Effect.sync(() => socket.terminate())
    )
    let messages: Array<string> = []
    client.socket.on("message", (data: Buffer) => messages.push(data.toString()))
    return yield* Effect.promise(async () => {
      const recorded: Array<Recorded> = []
      let before = ""
      for (const { answer, ask, name } of turns) {
        server.answer(() => answer(driver))
        messages = []
        const body = JSON.stringify(ask(before))
        client.send(body)
        before = (await client.reply()).at(-1)?.response?.id ?? ""
        recorded.push({
          name,
          asked: { method: "SEND", path: "/v1/responses", body },
          received: server.requests.map(({ bytes, headers, method, path }) => ({
            method,
            path,
            headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
            body: bytes.toString()
          })),
          got: { status: 101, headers: [], body: messages }
        })
      }
      return recorded
    })
  })
