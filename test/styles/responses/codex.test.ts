/** A session of codex over both transports, with its compaction, and with another start of the gateway between two of its turns. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { startGateway } from "../../support/gateway.ts"
import type { OpenAiServer } from "../../support/openaiServer.ts"
import { startResponsesServer } from "../../support/responsesServer.ts"
import { strictResponses, valuesOf } from "../../support/strictResponses.ts"
import { CodexSession, type Item, type Transport } from "./codexSession.ts"

let server: OpenAiServer

beforeAll(async () => {
  server = await startResponsesServer()
})
afterAll(() => server.stop())

const inputOf = (body: { readonly [field: string]: unknown }) => body["input"] as ReadonlyArray<Item>

const seal = `${"x".repeat(100)}org-compaction`

/** A server that compacts where it is asked, writes summaries, and calls the tool once for each prompt. */
const strict = () =>
  strictResponses({
    organizationOf: () => "org",
    output: (body, made) => {
      const last = inputOf(body).at(-1)!
      if (last.type === "compaction_trigger") return [{ id: "cmp_1", type: "compaction", encrypted_content: seal }]
      if (JSON.stringify(last).includes("handing this work over")) return [made.text("The user looks for a plover.")]
      const thinking = made.thinking(true)
      if (last.type === "function_call_output") return [thinking, made.text("It is there.")]
      return [thinking, { ...made.call(), name: "exec_command", arguments: `{"cmd":"look"}` }]
    }
  })

const rows: ReadonlyArray<readonly [Transport, "server" | "gateway"]> = [
  ["HTTP", "server"],
  ["HTTP", "gateway"],
  ["WebSocket", "server"],
  ["WebSocket", "gateway"]
]

describe("a session of codex", () => {
  it.each(rows)(
    "over %s goes on after a restart and a compaction by the %s, and no request is refused",
    async (transport, maker) => {
      const { answer } = strict()
      const refused: Array<unknown> = []
      server.answer((request) => {
        const said = answer(request)
        if (said.status !== undefined && said.status !== 200) refused.push(said.pieces)
        return said
      })
      const own = { driver: "responses", base_url: server.baseUrl, models: { m: "server-model" } }
      const start = () =>
        startGateway({
          upstream: { driver: "embedded" },
          upstreams: { one: own, two: own },
          accounts: [{ upstream: "one", token: "sk-one" }, { upstream: "two", token: "sk-two" }],
          routes: { agent: maker === "server" ? ["one/m"] : ["one/m", "two/m"] }
        })
      const session = new CodexSession("agent", transport)
      const first = await start()
      assert.include(await session.run(first.url, "Look for the plover."), "It is there.")
      await first.stop()
      const second = await start()
      assert.include(await session.run(second.url, "And again.", true), "It is there.")
      await second.stop()

      assert.isEmpty(refused)
      const [asked, result, compacting, next, last] = server.requests.map(({ body }) => inputOf(body))
      assert.lengthOf(server.requests, 5)
      // Each request has the whole conversation, with each item once and as codex sent it.
      assert.deepStrictEqual(result!.slice(0, asked!.length), asked)
      assert.deepStrictEqual(result!.slice(asked!.length).map(({ type }) => type), [
        "reasoning",
        "function_call",
        "function_call_output"
      ])
      // Over WebSocket codex sends no item of the reply.
      const sent = transport === "HTTP" ? result!.length : result!.length - 2
      assert.lengthOf(valuesOf("internal_chat_message_metadata_passthrough", result), sent)
      const end = compacting!.at(-1)!
      if (maker === "server") assert.deepStrictEqual(end, { type: "compaction_trigger" })
      else assert.include(JSON.stringify(end), "handing this work over")
      // The compaction stands for the first turn, also in the turn after it.
      for (const input of [next, last]) {
        const text = JSON.stringify(input)
        assert.strictEqual(text.includes("The user looks for a plover."), maker === "gateway")
        assert.strictEqual(text.includes(seal), maker === "server")
        for (const prompt of ["Look for the plover.", "And again."]) assert.strictEqual(text.split(prompt).length, 2)
        assert.lengthOf(input!.filter(({ type }) => type === "function_call_output"), input === last ? 1 : 0)
      }
    }
  )
})
