/** Who makes a compaction where servers of the Responses API are among the targets. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import type { OpenAiServer } from "../../support/openaiServer.ts"
import { json, responseOf, said, startResponsesServer, streamed, usage, whole } from "../../support/responsesServer.ts"

/** Upstreams without a setting; those of a team and of strangers have several accounts. */
const plain = ["one", "two", "three", "four", "refusing", "ignoring", "silent", "team", "strangers"]

let server: OpenAiServer
let gateway: RunningGateway

beforeAll(async () => {
  server = await startResponsesServer()
  const own = { driver: "responses", base_url: server.baseUrl, models: { m: "server-model" } }
  gateway = await startGateway({
    upstream: { driver: "embedded" },
    upstreams: {
      ...Object.fromEntries(plain.map((name) => [name, own])),
      forced: { ...own, compaction: "server" },
      forced2: { ...own, compaction: "server" },
      never: { ...own, compaction: "gateway" }
    },
    accounts: [
      ...[...plain, "forced", "forced2", "never"].map((upstream) => ({
        upstream,
        token: `sk-${upstream}`,
        organization: upstream
      })),
      { upstream: "team", token: "sk-1", organization: "team" },
      { upstream: "strangers", token: "sk-1" }
    ],
    routes: { alone: ["one/m"], both: ["one/m", "two/m"], forced: ["forced/m", "forced2/m"] }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

interface Told {
  readonly output: ReadonlyArray<{ readonly type: string; readonly encrypted_content: string }>
}

const post = (body: object, path = "/v1/responses") =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })

const ask = async (body: object, path?: string): Promise<Told> => {
  const response = await post(body, path)
  assert.strictEqual(response.status, 200, await response.clone().text())
  return await response.json() as Told
}

const trigger = { type: "compaction_trigger" }
const management = [{ type: "compaction", compact_threshold: 1_000 }]
const user = { type: "message", role: "user", content: "Hi" }
const long = { type: "message", role: "user", content: "word ".repeat(2_000) }
const tools = [{ type: "function", name: "f", parameters: { type: "object", properties: {} }, strict: false }]
const compaction = { id: "cmp_1", type: "compaction", encrypted_content: "servers-seal" }

const isForSummary = (body: object): boolean => JSON.stringify(body).includes("You are handing this work over")

describe("a compaction", () => {
  it("is the server's where all targets are of one upstream", async () => {
    server.answer(() => whole(responseOf([compaction])))
    for (const body of [{ input: [user, trigger] }, { input: [user], context_management: management }]) {
      const { length } = server.requests
      const { output } = await ask({ model: "alone", ...body })
      assert.deepStrictEqual(output.map(({ encrypted_content }) => encrypted_content), ["servers-seal"])
      assert.lengthOf(server.requests, length + 1)
      assert.deepInclude(server.requests.at(-1)?.body, body)
    }
    await ask({ model: "alone", input: [compaction, user] })
    assert.deepInclude(server.requests.at(-1)?.body, { input: [compaction, user] })
  })

  it("is the gateway's where a request may go to several upstreams", async () => {
    server.answer(() => said("What was done."))
    const { output } = await ask({ model: "both", input: [user, trigger], context_management: management })
    assert.deepStrictEqual(output.map(({ type }) => type), ["compaction"])
    assert.match(output[0]!.encrypted_content, /^gwc1_/)
    assert.doesNotHaveAnyKeys(server.requests.at(-1)?.body, ["context_management"])
    server.answer(() => said("Hello"))
    await ask({ model: "both", input: [user], context_management: management })
    assert.doesNotHaveAnyKeys(server.requests.at(-1)?.body, ["context_management"])
  })

  it("of the gateway reaches a server as a message", async () => {
    server.answer(() => said("What was done."))
    const { output } = await ask({ model: "never/m", input: [user] }, "/v1/responses/compact")
    server.answer(() => said("Hello"))
    await ask({ model: "alone", input: [...output, { type: "message", role: "user", content: "Go on" }] })
    const sent = JSON.stringify(server.requests.at(-1)?.body["input"])
    assert.include(sent, "What was done.")
    assert.include(sent, "Go on")
    assert.notInclude(sent, "gwc1_")
    const changed = { type: "compaction", encrypted_content: "gwc1_AAAA" }
    const response = await post({ model: "alone", input: [changed, user] })
    assert.deepStrictEqual([response.status, response.headers.get("x-gateway-ignored")], [200, "input[0]"])
    assert.notInclude(JSON.stringify(server.requests.at(-1)?.body), "gwc1_")
  })

  it("is whose the upstream says: the server's, the gateway's, or the server's if one account reads what another one has sealed", async () => {
    const makers: ReadonlyArray<readonly [model: string, maker: "server" | "gateway"]> = [
      ["forced", "server"],
      ["team/m", "server"],
      ["never/m", "gateway"],
      ["strangers/m", "gateway"]
    ]
    for (const [model, maker] of makers) {
      server.answer((request) => isForSummary(request.body) ? said("What was done.") : whole(responseOf([compaction])))
      const { output } = await ask({ model, input: [user, trigger] })
      assert.lengthOf(output, 1)
      assert.strictEqual(output[0]!.encrypted_content === "servers-seal", maker === "server", model)
    }
  })

  it("by its endpoint is the server's object, without a field that asks for a stream", async () => {
    const described = {
      id: "resp_compacted",
      object: "response.compaction",
      created_at: 1_700_000_000,
      output: [
        { id: "msg_1", type: "message", role: "user", content: [{ type: "input_text", text: "<tool_call>" }] },
        compaction
      ],
      usage: { input_tokens: 11, output_tokens: 7, total_tokens: 18 },
      future: { field: 1 }
    }
    server.answer(() => whole(described))
    const { length } = server.requests
    const asked = { model: "alone", instructions: "Be brief", input: [user], tools, future: "f" }
    assert.deepEqual<object>(await ask(asked, "/v1/responses/compact"), described)
    assert.lengthOf(server.requests, length + 1)
    const { body, path } = server.requests.at(-1)!
    assert.match(path, /\/responses\/compact$/)
    assert.deepStrictEqual(body, { ...asked, model: "server-model" })
  })

  it.each(
    [
      ["three", "refuses its endpoint", () => json(404, { error: { message: "Not Found" } })],
      ["four", "answers without one", () => said("I do not know what you mean.")]
    ] as const
  )(
    "of the server %s, which %s, is the gateway's in the same request, and then for ten minutes",
    async (name, _, answer) => {
      server.answer((request) => isForSummary(request.body) ? said("What was done.") : answer())
      for (const [calls, stream] of [[2, false], [1, true]] as const) {
        const { length } = server.requests
        const response = await post({ model: `${name}/m`, input: [user, trigger], stream })
        const text = await response.text()
        assert.strictEqual(response.status, 200, text)
        assert.include(text, "gwc1_")
        assert.notInclude(text, "I do not know")
        assert.lengthOf(server.requests, length + calls)
      }
      const { length } = server.requests
      const { output } = await ask({ model: `${name}/m`, input: [user] }, "/v1/responses/compact")
      assert.match(output.at(-1)!.encrypted_content, /^gwc1_/)
      assert.lengthOf(server.requests, length + 1)
    }
  )

  it("of which a server refuses the field is the gateway's in the same request; other refusals are the caller's", async () => {
    const ofField = { error: { message: "Unknown parameter: 'context_management'.", param: "context_management" } }
    const other = { error: { message: "Unknown parameter: 'temper'.", param: "temper" } }
    for (const [refusal, status, calls] of [[other, 400, 1], [ofField, 200, 3], [ofField, 200, 2]] as const) {
      const refused = (fields: object) => "context_management" in fields
      server.answer(({ body }) =>
        refused(body) ? json(400, refusal) : said(isForSummary(body) ? "What was done." : "Hello")
      )
      const { length } = server.requests
      const response = await post({ model: "refusing/m", input: [long], context_management: management })
      const told = await response.json() as Told
      assert.strictEqual(response.status, status, JSON.stringify(told))
      assert.lengthOf(server.requests, length + calls)
      if (status === 200) assert.deepStrictEqual(told.output.map(({ type }) => type), ["compaction", "message"])
    }
  })

  it("that a server leaves out at a long prompt is the gateway's from the next request on", async () => {
    const message = { id: "msg_1", type: "message", status: "completed", role: "assistant", content: [] }
    const text = [{ type: "output_text", text: "Hello", annotations: [], logprobs: [] }]
    const told = (input_tokens: number) =>
      responseOf([{ ...message, content: text }], { usage: { ...usage, input_tokens } })
    for (const [name, stream] of [["ignoring", false], ["silent", true]] as const) {
      const types = async (tokens: number) => {
        server.answer(({ body }) =>
          isForSummary(body) ? said("What was done.") : stream ? streamed(told(tokens)) : whole(told(tokens))
        )
        const response = await post({ model: `${name}/m`, input: [long], context_management: management, stream })
        assert.strictEqual(response.status, 200)
        return (await response.text()).includes("gwc1_")
      }
      assert.deepStrictEqual([await types(999), await types(1_000), await types(1_000)], [false, false, true])
    }
  })
})
