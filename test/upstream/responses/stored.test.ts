/** Responses that a server stores: continued by their id at their account, and whole from the gateway's copy elsewhere. */
import { assert, describe, it } from "@effect/vitest"
import { Client } from "../../styles/responses/socket/client.ts"
import { adminKey, businessKey } from "../../support/gateway.ts"
import { json, type SeenRequest } from "../../support/responsesServer.ts"
import { valuesOf } from "../../support/strictResponses.ts"
import { accountOf, type Fields, question, useStrictServer } from "./sealSupport.ts"

const bench = useStrictServer()
const { ask, holding, post, send, start } = bench

const accounts = [{ token: "sk-1" }, { token: "sk-2" }, { token: "sk-3" }]
const oneSlot = { runtime: { account_max_inflight: 1, sticky: false } }
const roomy = { runtime: { sticky: false } }
const asAdmin = { authorization: `Bearer ${adminKey}` }

const resultOf = (output: ReadonlyArray<Fields>): Fields => ({
  type: "function_call_output",
  call_id: output.find(({ type }) => type === "function_call")!["call_id"],
  output: "there"
})

/** The first turn, which the server stores: its id, its items, and what continues it. */
const first = async (more: object = {}) => {
  const { body, output } = await ask({ input: [question], ...more })
  const id = String(body["id"])
  const result = resultOf(output)
  return {
    id,
    key: bench.server.requests.at(-1)!.key!,
    output,
    result,
    next: { previous_response_id: id, input: [result] }
  }
}

const withoutIds = (items: ReadonlyArray<Fields>) =>
  items.filter(({ type }) => type !== "reasoning").map(({ id: _, ...item }) => item)

/** A request with the whole conversation, without anything that its server alone knows. */
const assertWhole = ({ body }: SeenRequest, output: ReadonlyArray<Fields>, result: Fields) => {
  assert.notProperty(body, "previous_response_id")
  assert.deepStrictEqual(body["input"], [question, ...withoutIds(output), result])
}

describe("a response that the server stores", () => {
  it.each([false, true])(
    "is continued by its id at its account, with the new items alone; streamed: %s",
    async (stream) => {
      await start({}, { accounts, ...roomy })
      const { id, key, next, result } = await first({ stream })
      for (let i = 0; i < 3; i++) {
        const { body, ignored } = await ask({ ...next, stream })
        assert.strictEqual(body["output_text"], "It is there")
        assert.strictEqual(body["previous_response_id"], id)
        assert.isNull(ignored)
        const last = bench.server.requests.at(-1)!
        assert.strictEqual(last.key, key)
        assert.deepStrictEqual(last.body["input"], [result])
        assert.strictEqual(last.body["previous_response_id"], id)
      }
      assert.strictEqual(bench.server.requests.length, 4)
    }
  )

  it("is continued turn by turn, also with a text", async () => {
    await start({}, { accounts, ...roomy })
    const { next } = await first()
    const { body } = await ask(next)
    await ask({ previous_response_id: body["id"], input: "Thank you" })
    const last = bench.server.requests.at(-1)!
    assert.strictEqual(last.body["previous_response_id"], body["id"])
    assert.deepStrictEqual(last.body["input"], [{ type: "message", role: "user", content: "Thank you" }])
    assert.strictEqual(new Set(bench.server.requests.map(({ key }) => key)).size, 1)
  })

  it("goes whole to another account while its own is busy, in one call, and without waiting", async () => {
    const strict = await start({}, { accounts, ...oneSlot })
    const { id, key, next, output, result } = await first()
    const release = await holding([key], strict.answer)
    const { body, ignored } = await ask(next)
    assert.strictEqual(body["output_text"], "It is there")
    assert.strictEqual(body["previous_response_id"], id)
    assert.isNull(ignored)
    const [, moved, ...others] = bench.server.requests
    assert.deepStrictEqual(others, [])
    assert.notStrictEqual(moved!.key, key)
    assertWhole(moved!, output, result)
    await release()
  })

  it("goes whole to another account once its own is out or removed", async () => {
    await start({}, { accounts, ...roomy })
    const one = await first()
    await (await send("PATCH", `/admin/accounts/${accountOf(one.key)}`, { disabled: true }, asAdmin)).text()
    await ask(one.next)
    assert.notStrictEqual(bench.server.requests.at(-1)!.key, one.key)
    assertWhole(bench.server.requests.at(-1)!, one.output, one.result)
    const two = await first()
    const removed = await send("DELETE", `/admin/accounts/${accountOf(two.key)}`, undefined, asAdmin)
    assert.strictEqual(removed.status, 200, await removed.text())
    await ask(two.next)
    assertWhole(bench.server.requests.at(-1)!, two.output, two.result)
    assert.strictEqual(bench.server.requests.length, 4)
  })

  it("goes whole to another account if its own fails", async () => {
    const strict = await start({}, { accounts, ...roomy })
    const { key, next, output, result } = await first()
    bench.server.answer((request) => request.key === key ? json(429, {}) : strict.answer(request))
    await ask(next)
    assert.strictEqual(bench.server.requests.length, 2)
    assertWhole(bench.server.requests[1]!, output, result)
  })

  for (const refusesWithin of [undefined, "failed"] as const) {
    it(`goes whole to its account in the same try once the server has forgotten it, refused: ${refusesWithin ?? "at once"}`, async () => {
      const strict = await start({ refusesWithin }, { accounts, ...roomy })
      const { id, key, next, output, result } = await first()
      strict.kept.clear()
      const { body, ignored } = await ask(next)
      assert.strictEqual(body["previous_response_id"], id)
      assert.isNull(ignored)
      const [, byId, whole, ...others] = bench.server.requests
      assert.deepStrictEqual(others, [])
      assert.deepStrictEqual([byId!.key, whole!.key], [key, key])
      assertWhole(whole!, output, result)
    })
  }

  it("goes whole where a server does not take the field at all", async () => {
    const strict = await start({}, { accounts, ...roomy })
    const { next, output, result } = await first()
    bench.server.answer((request) =>
      request.body["previous_response_id"] === undefined
        ? strict.answer(request)
        : json(400, { error: { message: "previous_response_id is not supported" } })
    )
    await ask(next)
    assert.strictEqual(bench.server.requests.length, 2)
    assertWhole(bench.server.requests[1]!, output, result)
  })

  it("names the seals of its items that another account cannot open", async () => {
    const strict = await start({}, { accounts, ...oneSlot })
    const { key, next } = await first({ include: ["reasoning.encrypted_content"] })
    const release = await holding([key], strict.answer)
    const { ignored } = await ask(next)
    assert.strictEqual(ignored, "previous_response_id.encrypted_content")
    assert.deepStrictEqual(valuesOf("encrypted_content", bench.server.requests[1]!.body["input"]), [])
    await release()
  })

  it("is continued by its id, with nothing named, although an earlier turn has seals of another account", async () => {
    const strict = await start({}, { accounts, ...oneSlot })
    const { key, next } = await first({ include: ["reasoning.encrypted_content"] })
    const release = await holding([key], strict.answer)
    const moved = await ask(next)
    await release()
    const { ignored } = await ask({ previous_response_id: moved.body["id"], input: "Thank you" })
    const [, second, third] = bench.server.requests
    assert.strictEqual(third!.key, second!.key)
    assert.strictEqual(third!.body["previous_response_id"], moved.body["id"])
    assert.isNull(ignored)
  })

  it("goes whole if a new item refers to an old one", async () => {
    await start({}, { accounts, ...roomy })
    const { next, output } = await first()
    const reference = { type: "item_reference", id: output[0]!["id"] }
    const response = await post({ ...next, input: [...next.input, reference, question] })
    assert.strictEqual(response.status, 200, await response.text())
    assert.notProperty(bench.server.requests[1]!.body, "previous_response_id")
  })

  it("goes whole if the gateway has found a call in its text, which the server does not know as one", async () => {
    const text = "<tool_call>\n{\"name\": \"look\", \"arguments\": {}}\n</tool_call>"
    await start({ output: (body, made) => [made.text(body["tools"] === undefined ? "Hello" : text)] })
    const tools = [{ type: "function", name: "look", parameters: { type: "object", properties: {} } }]
    const { body, output } = await ask({ input: [question], tools })
    await ask({ previous_response_id: body["id"], input: [resultOf(output)] })
    const last = bench.server.requests.at(-1)!
    assert.notProperty(last.body, "previous_response_id")
    assert.strictEqual(valuesOf("call_id", last.body["input"]).length, 2)
  })

  it("is continued and deleted at a server whose API is chosen for each request", async () => {
    const strict = await start({}, {
      accounts,
      ...roomy,
      upstream: { driver: "openai", api: "auto", base_url: bench.server.baseUrl, timeouts: { queue: 0 } }
    })
    const { id, next } = await first()
    await ask(next)
    assert.strictEqual(bench.server.requests[1]!.body["previous_response_id"], id)
    await (await send("DELETE", `/v1/responses/${id}`)).text()
    assert.isFalse(strict.kept.has(id))
  })

  it("is continued and deleted by the caller's own token", async () => {
    const strict = await start({}, { auth: { direct_tokens: true } })
    const own = { authorization: "Bearer sk-own" }
    const { body, output } = await ask({ input: [question] }, own)
    await ask({ previous_response_id: body["id"], input: [resultOf(output)] }, own)
    assert.strictEqual(bench.server.requests[1]!.body["previous_response_id"], body["id"])
    await (await send("DELETE", `/v1/responses/${String(body["id"])}`, undefined, own)).text()
    assert.isFalse(strict.kept.has(String(body["id"])))
    assert.deepStrictEqual(bench.server.requests.map(({ key }) => key), Array(3).fill("sk-own"))
  })

  it("is read by its caller as the server wrote it", async () => {
    await start()
    const { body } = await ask({ input: [question] })
    const read = await (await send("GET", `/v1/responses/${String(body["id"])}`)).json()
    assert.deepStrictEqual(read, body)
  })
})

describe("a response that the server does not store", () => {
  it("goes whole where the server says so, in one call", async () => {
    const strict = await start({}, { accounts, ...roomy })
    bench.server.answer((request) =>
      strict.answer({ ...request, body: { ...request.body, store: false, include: ["reasoning.encrypted_content"] } })
    )
    const { next, output, result } = await first()
    await ask(next)
    const last = bench.server.requests.at(-1)!
    assert.strictEqual(bench.server.requests.length, 2)
    assert.notProperty(last.body, "previous_response_id")
    assert.deepStrictEqual(last.body["input"], [question, ...output, result])
  })

  it("cannot be continued if its caller has asked for no storing, nor one of another caller; no server is asked", async () => {
    await start({}, { accounts, keys: [businessKey, "other-key"] })
    const { body } = await ask({ input: [question], store: false })
    const own = await first()
    bench.server.answer(() => json(500, {}))
    const refused = async (request: object, headers: Record<string, string> = {}) => {
      const response = await post(request, "/v1/responses", headers)
      const { error } = await response.json() as { readonly error: Fields }
      assert.strictEqual(response.status, 400)
      assert.deepInclude(error, { code: "previous_response_not_found", param: "previous_response_id" })
    }
    await refused({ previous_response_id: body["id"], input: "Hi" })
    await refused(own.next, { authorization: "Bearer other-key" })
    await refused({ previous_response_id: "resp_unknown", input: "Hi" })
    assert.strictEqual(bench.server.requests.length, 0)
  })
})

describe("turns of a WebSocket", () => {
  /** Asks two turns, of which the second continues the first; `between` runs between them. */
  const turns = async (more: object, between: (key: string) => Promise<void> = async () => undefined) => {
    const client = await Client.open(bench.url)
    client.create({ input: [question], ...more })
    const { id, output } = await client.response()
    const { key } = bench.server.requests.at(-1)!
    await between(key!)
    client.create({ previous_response_id: id, input: [resultOf(output)], ...more })
    const events = await client.reply()
    client.close()
    const [created, last] = [events[0]!, events.at(-1)!]
    assert.strictEqual(last.response?.output_text, "It is there")
    assert.strictEqual(last.response?.["previous_response_id"], id)
    return { id, key, output, result: resultOf(output), ignored: created.headers?.["x-gateway-ignored"] }
  }

  it("are continued by the id that the server stores", async () => {
    await start({}, { accounts, ...roomy })
    const { id, key, result } = await turns({})
    const last = bench.server.requests.at(-1)!
    assert.strictEqual(last.body["previous_response_id"], id)
    assert.deepStrictEqual(last.body["input"], [result])
    assert.strictEqual(last.key, key)
  })

  it("go with their seals to the account that made them where nothing is stored", async () => {
    await start({}, { accounts, ...roomy })
    const { ignored, key, output, result } = await turns({ include: ["reasoning.encrypted_content"], store: false })
    const last = bench.server.requests.at(-1)!
    assert.notProperty(last.body, "previous_response_id")
    assert.deepStrictEqual(last.body["input"], [question, ...output, result])
    assert.strictEqual(last.key, key)
    assert.isUndefined(ignored)
  })

  it("name the seals that are left out in the headers of their first event", async () => {
    const strict = await start({}, { accounts, ...oneSlot })
    let release = () => Promise.resolve()
    const { ignored } = await turns({ include: ["reasoning.encrypted_content"], store: false }, async (key) => {
      release = await holding([key], strict.answer)
    })
    assert.strictEqual(ignored, "previous_response_id.encrypted_content")
    await release()
  })
})

describe("the deletion of a response", () => {
  it("deletes the server's copy too, with the account that made it", async () => {
    const strict = await start({}, { accounts, ...roomy })
    const { id, key, next } = await first()
    assert.isTrue(strict.kept.has(id))
    const deleted = await send("DELETE", `/v1/responses/${id}`)
    assert.deepStrictEqual(await deleted.json(), { id, object: "response", deleted: true })
    assert.isFalse(strict.kept.has(id))
    const last = bench.server.requests.at(-1)!
    assert.deepStrictEqual([last.method, last.path, last.key], ["DELETE", `/v1/responses/${id}`, key])
    assert.strictEqual((await post(next)).status, 400)
    assert.strictEqual((await send("DELETE", `/v1/responses/${id}`)).status, 404)
    assert.strictEqual(bench.server.requests.length, 2)
  })

  it("is the same whatever the server answers, and without the account", async () => {
    await start({}, { accounts: accounts.slice(0, 2), ...roomy })
    const one = await first()
    const two = await first()
    bench.server.answer(() => json(500, { error: { message: "no" } }))
    assert.strictEqual((await send("DELETE", `/v1/responses/${one.id}`)).status, 200)
    assert.strictEqual(bench.server.requests.length, 1)
    await (await send("DELETE", `/admin/accounts/${accountOf(two.key)}`, undefined, asAdmin)).text()
    assert.strictEqual((await send("DELETE", `/v1/responses/${two.id}`)).status, 200)
    assert.strictEqual(bench.server.requests.length, 1)
  })

  it("asks no server for another caller's response, or for one that no server stores", async () => {
    await start({}, { accounts, keys: [businessKey, "other-key"] })
    const { id } = await first()
    const other = { authorization: "Bearer other-key" }
    assert.strictEqual((await send("DELETE", `/v1/responses/${id}`, undefined, other)).status, 404)
    assert.strictEqual(bench.server.requests.length, 1)
  })
})
