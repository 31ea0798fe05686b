/** Calls as servers send them against the book, in the midst of text too: the same in every style, streamed and not. */
import { afterAll, beforeAll, describe, it } from "@effect/vitest"
import { cutOff, oslo, reasoning, rome, text } from "../../styles/replies.ts"
import { tools } from "../../styles/support.ts"
import { type RunningGateway, startGateway } from "../../support/gateway.ts"
import { chunk, frames, type OpenAiServer, startOpenAiServer, usage } from "../../support/openaiServer.ts"
import { assertSame, type Clients, type Written } from "../../support/sameReply.ts"
import { styleClients } from "../../support/styleClients.ts"

let server: OpenAiServer
let gateway: RunningGateway
let clients: Clients
beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({ upstream: { driver: "openai", base_url: server.baseUrl } })
  clients = styleClients(gateway.url)
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const list = (...tool_calls: ReadonlyArray<object>) => ({ tool_calls })
const header = (index: number, name: string) => ({ index, id: `id${index}`, function: { name, arguments: "" } })
const piece = (index: number, args: string) => ({ index, function: { arguments: args } })
const nameless = (name: string, args: string) => ({ index: 0, id: "", function: { name, arguments: args } })
const inOslo = `{"city":"Oslo"}`
const inRome = `{"city":"Rome"}`
const nativeRome = { index: 0, id: "a", function: { name: "get_time", arguments: inRome } }
const content = (content: string) => ({ content })

type Case = Written & { readonly name: string; readonly deltas: ReadonlyArray<object> }

const cases: ReadonlyArray<Case> = [
  {
    name: "all named before the first one's arguments",
    deltas: [
      list(header(0, "get_weather"), header(1, "get_time")),
      list(piece(1, `{"city"`)),
      list(piece(0, inOslo)),
      list(piece(1, `:"Rome"}`))
    ],
    pieces: [oslo, rome],
    finish: "tool_calls"
  },
  {
    name: "all numbered 0, without ids, one by one",
    deltas: [list(nameless("get_weather", inOslo)), list(nameless("get_time", inRome))],
    pieces: [oslo, rome],
    finish: "tool_calls"
  },
  {
    name: "all numbered 0, without ids, in one list",
    deltas: [list(nameless("get_weather", inOslo), nameless("get_weather", inOslo))],
    pieces: [oslo, oslo],
    finish: "tool_calls"
  },
  {
    name: "where the text may begin one",
    deltas: [content("See <tool"), list(nativeRome), content("s>.")],
    pieces: [text("See <tool"), rome, text("s>.")],
    finish: "tool_calls"
  },
  {
    name: "where one in the text is open",
    deltas: [
      content(`Look: <tool_call>{"name":"get_weather","arguments":{"city":"Os`),
      list(nativeRome),
      content("Done.")
    ],
    pieces: [text("Look: "), cutOff("get_weather", `{"city":"Os`), rome, text("Done.")],
    finish: "length"
  },
  {
    name: "in the text, with reasoning in their midst",
    deltas: [
      content(`<tool_call>{"name":"get_weather","arguments":{"city":"Os`),
      { reasoning_content: "Hm." },
      content(`lo"}}</tool_call>Done.`)
    ],
    pieces: [oslo, reasoning("Hm."), text("Done.")],
    finish: "tool_calls"
  },
  {
    name: "with arguments that none has",
    deltas: [content("So."), list(piece(0, inOslo))],
    pieces: [text("So.")],
    finish: "length"
  }
]

describe("calls", () => {
  it.each(cases)("$name", async ({ deltas, finish, pieces }) => {
    server.answer(() => ({
      pieces: [
        frames(
          ...deltas.map((delta) => chunk(delta)),
          chunk({}, "tool_calls"),
          { ...chunk({}), choices: [], usage },
          "[DONE]"
        )
      ]
    }))
    await assertSame(clients, { content: "Go", tools, reasoner: true }, { pieces, finish })
  })
})
