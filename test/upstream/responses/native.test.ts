/** A caller of the Responses style in front of a server of the same contract: what arrives there, and what comes back. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Client } from "../../styles/responses/socket/client.ts"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { type OpenAiServer, streamed as chatStreamed } from "../../support/openaiServer.ts"
import {
  callItem,
  events,
  eventsOf,
  json,
  messageItem,
  opening,
  reasoningItem,
  responseOf,
  said,
  startResponsesServer,
  streamed,
  whole
} from "../../support/responsesServer.ts"

type Fields = { readonly [field: string]: unknown }

let server: OpenAiServer
let gateway: RunningGateway

beforeAll(async () => {
  server = await startResponsesServer()
  gateway = await startGateway({
    accounts: Array.from({ length: 60 }, (_, i) => ({ token: `sk-${i}`, organization: "team" })),
    embeddings: { provider: "upstream" },
    upstream: {
      driver: "responses",
      base_url: server.baseUrl,
      models: { "upstream-chat": "server-model", "text-embedding-3-small": "embedder" },
      timeouts: { queue: 0 }
    }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const post = (body: object, path = "/v1/responses", headers: Record<string, string> = {}) =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "upstream-chat", ...body })
  })

const ask = async (body: object): Promise<Fields> => {
  const response = await post(body)
  assert.strictEqual(response.status, 200, await response.clone().text())
  return await response.json() as Fields
}

/** The events of a stream, which ends with the marker. */
const stream = async (body: object): Promise<ReadonlyArray<Fields>> => {
  const response = await post({ stream: true, ...body })
  const text = await response.text()
  assert.strictEqual(response.status, 200, text)
  assert.isTrue(text.endsWith("data: [DONE]\n\n"), text.slice(-200))
  return text.split("\n\n").slice(0, -2).filter((frame) => !frame.startsWith(":")).map((frame) => {
    const [name, data] = frame.split("\n")
    const event = JSON.parse(data!.slice("data: ".length)) as Fields
    assert.strictEqual(name, `event: ${String(event["type"])}`)
    return event
  })
}

const withoutOwn = (event: Fields): Fields =>
  Object.fromEntries(
    Object.entries(event).filter(([name]) => name !== "response_id" && name !== "output_text" && name !== "obfuscation")
  )

/** What a caller sees of an event of the server. */
const expected = (event: Fields, sequence_number: number): Fields => {
  const response = event["response"] as Fields | undefined
  return withoutOwn({
    ...event,
    sequence_number,
    ...(event["type"] === "response.created" ? { id: response?.["id"], status: "in_progress" } : {}),
    ...(response === undefined ? {} : { response: { ...response, model: "upstream-chat" } })
  })
}

const shown = (event: Fields): Fields => {
  const response = event["response"] as Fields | undefined
  const { call_id, ...rest } = event
  const isArguments = String(event["type"]).includes("arguments")
  return withoutOwn({
    ...(isArguments ? rest : { ...rest, ...(call_id === undefined ? {} : { call_id }) }),
    ...(response === undefined ? {} : { response: withoutOwn(response) })
  })
}

/** Tools that the vendor runs, and its own kinds of tools. */
const vendorTools = [
  { type: "web_search", filters: { allowed_domains: ["a.test"] } },
  { type: "file_search", vector_store_ids: ["vs_1"] },
  { type: "code_interpreter", container: { type: "auto" } },
  { type: "mcp", server_label: "m", server_url: "https://m.test", require_approval: "never" },
  { type: "image_generation", quality: "low" },
  { type: "computer_use_preview", display_width: 1, display_height: 1, environment: "browser" },
  { type: "custom", name: "grep", format: { type: "grammar", syntax: "lark", definition: "start: /a/" } },
  { type: "shell", environment: { type: "container_auto" } },
  { type: "local_shell" },
  { type: "apply_patch" },
  {
    type: "namespace",
    name: "n",
    description: "N",
    tools: [{ type: "function", name: "f", parameters: {}, later: 1 }]
  },
  { type: "tool_search", execution: "client", parameters: { type: "object" } },
  { type: "function", name: "g", parameters: { type: "object", properties: {} }, strict: true, defer_loading: true },
  { type: "from_the_future", any: [1] }
]

const vendorItems = [
  { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } },
  { type: "file_search_call", id: "fs_1", status: "completed", queries: ["q"], results: null },
  {
    type: "code_interpreter_call",
    id: "ci_1",
    status: "completed",
    code: "1",
    container_id: "c",
    outputs: [{ type: "logs", logs: "1" }]
  },
  { type: "mcp_call", id: "mcp_1", name: "t", server_label: "m", arguments: "{}", output: "ok" },
  { type: "mcp_list_tools", id: "mcpl_1", server_label: "m", tools: [] },
  { type: "mcp_approval_request", id: "mcpr_1", name: "t", server_label: "m", arguments: "{}" },
  { type: "image_generation_call", id: "ig_1", status: "completed", result: "aGk=" },
  {
    type: "computer_call",
    id: "cu_1",
    call_id: "call_cu",
    status: "completed",
    action: { type: "screenshot" },
    pending_safety_checks: []
  },
  { type: "custom_tool_call", id: "ctc_1", call_id: "call_ctc", name: "grep", input: "a" },
  { type: "custom_tool_call_output", call_id: "call_ctc", output: "a:1" },
  {
    type: "shell_call",
    id: "sh_1",
    call_id: "call_sh",
    status: "completed",
    action: { commands: ["ls"], timeout_ms: null, max_output_length: null },
    environment: { type: "local" }
  },
  {
    type: "local_shell_call",
    id: "lsh_1",
    call_id: "call_lsh",
    status: "completed",
    action: { type: "exec", command: ["ls"], env: {} }
  },
  {
    type: "apply_patch_call",
    id: "apc_1",
    call_id: "call_apc",
    status: "completed",
    operation: { type: "delete_file", path: "a" }
  },
  {
    type: "tool_search_call",
    id: "ts_1",
    call_id: "call_ts",
    status: "completed",
    execution: "client",
    arguments: { query: "q" }
  },
  { type: "compaction", id: "cmp_1", encrypted_content: "c2VhbA==" },
  { type: "item_from_the_future", id: "x_1", any: { deep: [1] } }
]

describe("a request", () => {
  const everything = {
    background: false,
    client_metadata: { session: "s" },
    context_management: [{ type: "compaction", compact_threshold: 9 }],
    include: ["reasoning.encrypted_content", "message.output_text.logprobs"],
    input: [
      { role: "user", content: [{ type: "input_image", file_id: "file_1", detail: "low" }] },
      { type: "message", role: "assistant", phase: "commentary", content: [{ type: "output_text", text: "A" }] },
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "c2VhbA==", later: true },
      { type: "function_call", id: "fc_1", call_id: "c1", name: "g", arguments: "{}", status: "completed" },
      { type: "function_call_output", call_id: "c1", output: [{ type: "input_text", text: "B" }] },
      ...vendorItems
    ],
    instructions: "Be brief.",
    max_output_tokens: 5,
    max_tool_calls: 2,
    metadata: { a: "b" },
    moderation: { type: "auto" },
    parallel_tool_calls: true,
    prompt: { id: "pmpt_1", variables: { x: "y" } },
    prompt_cache_key: "k",
    prompt_cache_retention: "24h",
    reasoning: { effort: "low", summary: "auto", later: "x" },
    safety_identifier: "s",
    service_tier: "flex",
    store: false,
    stream_options: { include_obfuscation: false },
    temperature: 0.1,
    text: { format: { type: "json_schema", name: "n", schema: {}, strict: true }, verbosity: "low" },
    tool_choice: { type: "mcp", server_label: "m" },
    tools: vendorTools,
    top_logprobs: 2,
    top_p: 0.3,
    truncation: "auto",
    user: "u",
    field_from_the_future: { any: [null, 1] }
  }

  it("arrives as its caller wrote it, but for the model and the stream, and nothing is ignored", async () => {
    for (const stream of [false, true]) {
      server.answer(() => said("Hello"))
      const response = await post({ ...everything, stream }, "/v1/responses", {
        "openai-beta": "responses=v9, responses_websockets=2026-02-06"
      })
      assert.strictEqual(response.status, 200, await response.text())
      assert.isNull(response.headers.get("x-gateway-ignored"))
      const seen = server.requests[0]!
      assert.deepStrictEqual(seen.body, { ...everything, model: "server-model", stream: true })
      assert.strictEqual(seen.path, "/v1/responses")
      assert.match(seen.headers.authorization ?? "", /^Bearer sk-\d+$/)
      assert.strictEqual(seen.headers["openai-beta"], "responses=v9")
      assert.deepStrictEqual(
        Object.keys(seen.body).filter((name) => name !== "model" && name !== "stream"),
        Object.keys(everything)
      )
    }
  })

  it("has no field that its caller did not send", async () => {
    server.answer(() => said("Hello"))
    await ask({ input: "Hi" })
    assert.deepStrictEqual(server.requests[0]?.body, { model: "server-model", input: "Hi", stream: false })
  })

  it("has the vendor's form where only the gateway reads another one", async () => {
    server.answer(() => streamed(responseOf([callItem("f", {})])))
    const parameters = { type: "object", properties: {} }
    await post({
      messages: [{ role: "user", content: "Hi" }],
      stop: ["END"],
      tools: [{ type: "function", function: { name: "f", parameters } }],
      tool_choice: { type: "function", function: { name: "f" } }
    })
    assert.deepStrictEqual(server.requests[0]?.body, {
      model: "server-model",
      input: [{ type: "message", role: "user", content: "Hi" }],
      stream: false,
      tools: [{ type: "function", name: "f", parameters }],
      tool_choice: { type: "function", name: "f" }
    })
  })

  it("has no field that the vendor does not have where upstream.fields says so", async () => {
    for (const [fields, passed] of [["drop", {}], [["min_p"], { min_p: 0.1 }]] as const) {
      const strict = await startGateway({
        accounts: [{ token: "sk-1" }],
        upstream: { driver: "responses", base_url: server.baseUrl, fields }
      })
      try {
        server.answer(() => said("Hello"))
        const response = await fetch(`${strict.url}/v1/responses`, {
          method: "POST",
          headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
          body: JSON.stringify({
            model: "upstream-chat",
            input: "Hi",
            user: "u",
            truncation: "auto",
            min_p: 0.1,
            seed: 1
          })
        })
        await response.text()
        const { model: _, stream: __, ...sent } = server.requests[0]!.body
        assert.deepStrictEqual(sent, { input: "Hi", user: "u", truncation: "auto", ...passed })
        assert.strictEqual(response.headers.get("x-gateway-ignored"), fields === "drop" ? "seed,min_p" : "seed")
      } finally {
        await strict.stop()
      }
    }
  })

  it("in the background, or of a conversation, is refused by its field", async () => {
    for (const [field, value] of [["background", true], ["conversation", "conv_1"]] as const) {
      const response = await post({ input: "Hi", [field]: value })
      assert.strictEqual(response.status, 400)
      assert.nestedPropertyVal(await response.json(), "error.param", field)
    }
  })

  it("that continues a response is sent whole, with the items as the server wrote them", async () => {
    const output = [reasoningItem("Hm.", { later: 1 }), messageItem("Hello", { phase: "final_answer" })]
    server.answer(() => streamed(responseOf(output, { id: "resp_first" })))
    const first = await ask({ input: [{ role: "user", content: "Hi", later: 2 }], instructions: "Be brief." })
    assert.strictEqual(first["id"], "resp_first")
    server.answer(() => said("Again"))
    const second = await ask({ input: "Go on", previous_response_id: "resp_first", metadata: { a: "b" } })
    assert.deepStrictEqual(server.requests[0]?.body, {
      model: "server-model",
      input: [
        { role: "user", content: "Hi", later: 2 },
        ...output,
        { type: "message", role: "user", content: "Go on" }
      ],
      metadata: { a: "b" },
      stream: false
    })
    assert.strictEqual(second["previous_response_id"], "resp_first")
    const stored = await fetch(`${gateway.url}/v1/responses/resp_first`, {
      headers: { authorization: `Bearer ${businessKey}` }
    })
    assert.deepStrictEqual(await stored.json(), first)
  })

  it.each([{}, { input: [] }])(
    "that continues a response by nothing else is its whole conversation: %j",
    async (own) => {
      server.answer(() => streamed(responseOf([messageItem("Hello")], { id: "resp_before" })))
      await ask({ input: [{ role: "user", content: "Hi" }] })
      server.answer(() => said("And so on"))
      await ask({ ...own, previous_response_id: "resp_before" })
      assert.deepStrictEqual(server.requests.at(-1)?.body, {
        model: "server-model",
        input: [{ role: "user", content: "Hi" }, messageItem("Hello")],
        stream: false
      })
    }
  )
})

describe("an item that is not what its type says", () => {
  it("goes and comes as it stands, also from an earlier reply", async () => {
    const odd = [
      { type: "function_call", id: "fc_odd", arguments: 5 },
      { type: "message", id: "msg_odd", role: "critic", content: [{ type: "from_the_future", text: 1 }] },
      { type: "reasoning", id: "rs_odd", summary: "none" }
    ]
    const response = responseOf(odd, { id: "resp_odd" })
    server.answer(() => streamed(response))
    assert.deepStrictEqual((await ask({ input: "Hi" }))["output"], odd)
    server.answer(() => streamed(response))
    assert.deepStrictEqual((await stream({ input: "Hi" })).at(-1)?.["response"], {
      ...response,
      model: "upstream-chat",
      output_text: ""
    })
    server.answer(() => said("Again"))
    await ask({ input: "Go on", previous_response_id: "resp_odd" })
    assert.deepStrictEqual(server.requests[0]?.body["input"], [
      { type: "message", role: "user", content: "Hi" },
      ...odd,
      { type: "message", role: "user", content: "Go on" }
    ])
  })
})

describe("a reference to an item", () => {
  it("of an earlier reply is sent as the item, whatever id its server gave it", async () => {
    for (const isStream of [false, true]) {
      const [first, second] = [
        reasoningItem("Hm.", { id: "rs_far" }),
        messageItem("Hello", { id: `msg_far_${isStream}` })
      ]
      server.answer(() => streamed(responseOf([first, second], { id: `resp_far_${isStream}` })))
      await (isStream ? stream : ask)({ input: "Hi" })
      server.answer(() => said("Again"))
      const input = [{ type: "item_reference", id: `msg_far_${isStream}` }, { role: "user", content: "Go on" }]
      await ask({ input })
      assert.deepStrictEqual(server.requests[0]?.body["input"], [second, input[1]])
      const refused = await post({ input: [{ type: "item_reference", id: "msg_of_others" }] })
      assert.strictEqual(refused.status, 400)
      assert.strictEqual(server.requests.length, 1)
    }
  })
})

describe("a reply", () => {
  const output = [
    reasoningItem("I think about it."),
    messageItem("Hello there", {
      phase: "final_answer",
      content: [{
        type: "output_text",
        text: "Hello there",
        annotations: [{ type: "file_citation", file_id: "f", index: 3 }],
        logprobs: []
      }]
    }),
    messageItem("", { id: "msg_2", content: [{ type: "refusal", refusal: "I will not." }] }),
    ...vendorItems,
    callItem("g", { a: 1 })
  ]
  const response = responseOf(output)
  const future = { type: "response.from_the_future", output_index: 0, any: [1], sequence_number: 7 }

  it("is the server's, whole", async () => {
    for (const answer of [streamed(response), whole(response)]) {
      server.answer(() => answer)
      const reply = await ask({ input: "Hi", tools: vendorTools })
      assert.deepStrictEqual(withoutOwn(reply), { ...response, model: "upstream-chat" })
      assert.strictEqual(reply["output_text"], "Hello there")
    }
  })

  it("is the server's, event by event, also of kinds that the gateway does not know", async () => {
    for (const tools of [undefined, vendorTools]) {
      const [first, second, ...others] = eventsOf(response)
      const sent = [first!, second!, others[0]!, future, ...others.slice(1)]
      server.answer(() => ({ pieces: [events(...sent)] }))
      const got = await stream({ input: "Hi", ...(tools === undefined ? {} : { tools }) })
      assert.deepStrictEqual(got.map(shown), sent.map(expected))
      for (const event of got) {
        if ("output_index" in event) assert.strictEqual(event["response_id"], "resp_server_1")
        if (String(event["type"]).includes("arguments")) assert.strictEqual(event["call_id"], "call_g")
      }
    }
  })

  it("is the same over a WebSocket connection, from an event with the id and the status on", async () => {
    const client = await Client.open(gateway.url)
    server.answer(() => streamed(response))
    client.create({ input: "Hi" })
    const [created, ...others] = await client.reply()
    const { headers: _, ...first } = created!
    assert.deepStrictEqual([first, ...others].map(shown), eventsOf(response).map(expected))
    client.socket.terminate()
  })

  it("is the same wherever its bytes are cut, and however its lines end", async () => {
    const sent = eventsOf(response)
    const text = events(...sent)
    const plain = sent.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")
    for (const body of [text, text.replaceAll("\n", "\r\n"), `: hello\n\n${plain}`]) {
      const bytes = Buffer.from(body)
      const pieces = Array.from({ length: Math.ceil(bytes.length / 97) }, (_, i) => bytes.subarray(i * 97, i * 97 + 97))
      server.answer(() => ({ pieces }))
      assert.deepStrictEqual((await stream({ input: "Hi" })).map(shown), sent.map(expected))
    }
  })

  it("has the items that came where its last event has none", async () => {
    const sent = eventsOf(response).map((event) =>
      event["type"] === "response.completed" ? { ...event, response: { ...response, output: [] } } : event
    )
    server.answer(() => ({ pieces: [events(...sent)] }))
    assert.deepStrictEqual((await ask({ input: "Hi" }))["output"], output)
    server.answer(() => ({ pieces: [events(...sent)] }))
    assert.deepStrictEqual((await stream({ input: "Hi" })).at(-1)?.["response"], {
      ...response,
      model: "upstream-chat",
      output_text: "Hello there"
    })
  })

  it("may have a megabyte of arguments", async () => {
    const args = JSON.stringify({ text: "x".repeat(1024 * 1024) })
    const long = responseOf([callItem("g", args)])
    const [first, second, added, ...others] = eventsOf(long)
    const last = others.filter(({ type }) => type !== "response.function_call_arguments.delta")
    const delta = { type: "response.function_call_arguments.delta", item_id: "fc_g", output_index: 0, delta: args }
    server.answer(() => ({ pieces: [events(first!, second!, added!, delta, ...last)] }))
    const reply = await ask({ input: "Hi", tools: [{ type: "function", name: "g", parameters: {} }] })
    assert.deepStrictEqual(reply["output"], long["output"])
  })

  it("has its usage counted", async () => {
    server.answer(() => streamed(response))
    assert.deepStrictEqual((await ask({ input: "Hi" }))["usage"], response["usage"])
  })

  it("that is incomplete has the server's reason", async () => {
    const cut = responseOf([messageItem("So far", { status: "incomplete" })], {
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" }
    })
    server.answer(() => streamed(cut))
    assert.deepStrictEqual(withoutOwn(await ask({ input: "Hi" })), { ...cut, model: "upstream-chat" })
    server.answer(() => streamed(cut))
    assert.deepStrictEqual((await stream({ input: "Hi" })).map(shown), eventsOf(cut).map(expected))
  })

  it("is incomplete by its status, whatever the server calls its last event", async () => {
    const cut = responseOf([messageItem("So far")], {
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" }
    })
    const called = eventsOf(cut).map((event) =>
      "response" in event && event.type === "response.incomplete"
        ? { ...event, type: "response.completed" }
        : event
    )
    assert.strictEqual(called.at(-1)?.type, "response.completed")
    server.answer(() => ({ pieces: [events(...called)] }))
    assert.deepStrictEqual((await stream({ input: "Hi" })).map(shown), eventsOf(cut).map(expected))
  })

  it("ends at the caller's stop sequence", async () => {
    server.answer(() => said("one END two"))
    const reply = await ask({ input: "Hi", stop: ["END"] })
    assert.deepInclude(reply, { status: "completed", output_text: "one " })
    server.answer(() => said("one END two"))
    const got = await stream({ input: "Hi", stop: ["END"] })
    assert.strictEqual(got.map(({ delta }) => delta ?? "").join(""), "one ")
    assert.deepInclude(got.at(-1)?.["response"], { status: "completed", output_text: "one ", id: "resp_server_1" })
  })

  it("is left by the gateway when its caller leaves", async () => {
    server.answer(() => ({ pieces: [events(...eventsOf(response).slice(0, 6))], after: "hang" }))
    const leaving = new AbortController()
    const leaves = await fetch(`${gateway.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "upstream-chat", input: "Hi", stream: true }),
      signal: leaving.signal
    })
    await leaves.body?.getReader().read()
    leaving.abort()
    await server.until(([first]) => first?.outcome === "aborted")
  })

  it("that a caller left gives its slot back", async () => {
    const narrow = await startGateway({
      accounts: [{ token: "sk-1" }],
      upstream: {
        driver: "responses",
        base_url: server.baseUrl,
        account_max_inflight: 1,
        account_max_queue: 1,
        timeouts: { queue: 60 }
      }
    })
    try {
      server.answer((_, i) =>
        i === 0 ? { pieces: [events(...eventsOf(response).slice(0, 6))], after: "hang" } : said("Hello")
      )
      const leaving = new AbortController()
      const asking = (signal?: AbortSignal) =>
        fetch(`${narrow.url}/v1/responses`, {
          method: "POST",
          headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "upstream-chat", input: "Hi", stream: true }),
          ...(signal === undefined ? {} : { signal })
        })
      const first = await asking(leaving.signal)
      await first.body?.getReader().read()
      const second = asking()
      leaving.abort()
      assert.include(await (await second).text(), "response.completed")
    } finally {
      await narrow.stop()
    }
  })
})

describe("a call in the text", () => {
  const tools = [{ type: "function", name: "get_weather", parameters: { type: "object", properties: {} } }]
  const call = `<tool_call>{"name":"get_weather","arguments":{"city":"Oslo"}}</tool_call>`
  const args = `{"city":"Oslo"}`
  const next = callItem("g", { a: 1 })
  const items = (response: Fields): ReadonlyArray<unknown> =>
    (response["output"] as ReadonlyArray<Fields>).map((item) =>
      item["type"] === "message"
        ? (item["content"] as ReadonlyArray<Fields>).map(({ text }) => text).join("")
        : [item["name"], item["arguments"]]
    )
  const cases: ReadonlyArray<readonly [about: string, text: string, shown: ReadonlyArray<unknown>]> = [
    ["alone", call, [["get_weather", args]]],
    ["after blank text", `\n\n${call}`, [["get_weather", args]]],
    ["after words", `See. ${call}`, ["See. ", ["get_weather", args]]],
    ["between words", `See. ${call}Done.`, ["See. ", ["get_weather", args], "Done."]]
  ]

  it.each(cases)("is a call, and its raw text is not shown: %s", async (_, text, shown) => {
    const response = responseOf([reasoningItem("Hm."), messageItem(text), next])
    const all = [...shown, ["g", `{"a":1}`]]
    for (const answer of [streamed(response), whole(response)]) {
      server.answer(() => answer)
      const reply = await ask({ input: "Hi", tools })
      assert.deepStrictEqual(items({ output: (reply["output"] as ReadonlyArray<Fields>).slice(1) }), all)
      assert.notInclude(JSON.stringify(reply), "tool_call>")
      server.answer(() => answer)
      const got = await stream({ input: "Hi", tools })
      assert.notInclude(JSON.stringify(got), "tool_call>")
      assert.deepStrictEqual(got.map((event) => event["sequence_number"]), got.map((_, i) => i))
      const added = got.filter(({ type }) => type === "response.output_item.added")
      const done = got.filter(({ type }) => type === "response.output_item.done")
      const indexes = Array.from({ length: all.length + 1 }, (_, i) => i)
      assert.deepStrictEqual(added.map((event) => event["output_index"]), indexes)
      assert.deepStrictEqual(done.map((event) => event["output_index"]), indexes)
      const last = got.at(-1)?.["response"] as Fields
      assert.deepStrictEqual(last["output"], done.map(({ item }) => item))
      assert.deepStrictEqual(items({ output: (last["output"] as ReadonlyArray<Fields>).slice(1) }), all)
      const texts = got.map((event) => event["type"] === "response.output_text.delta" ? event["delta"] : "").join("")
      assert.strictEqual(texts, shown.filter((each) => typeof each === "string").join(""))
    }
  })

  it("is text without declared tools", async () => {
    const response = responseOf([messageItem(call)])
    server.answer(() => streamed(response))
    assert.deepStrictEqual((await stream({ input: "Hi" })).map(shown), eventsOf(response).map(expected))
  })

  it("that only begins like one is text, piece by piece", async () => {
    const response = responseOf([messageItem("a <tool and <tool_cal b <"), next])
    server.answer(() => streamed(response))
    const got = (await stream({ input: "Hi", tools })).map(shown)
    assert.deepStrictEqual(got.at(-1), expected(eventsOf(response).at(-1)!, got.length - 1))
    const texts = got.map((event) => event["type"] === "response.output_text.delta" ? event["delta"] : "").join("")
    assert.strictEqual(texts, "a <tool and <tool_cal b <")
  })
})

describe("a failure after the first item", () => {
  const [created, progress, added, part, delta] = eventsOf(responseOf([messageItem("Hello")]))
  const shownFirst = [created!, progress!, added!, part!, delta!]
  const failed = (error: Fields) => ({
    type: "response.failed",
    response: responseOf([], { status: "failed", completed_at: null, error })
  })

  it("is the end of the stream, with the server's code", async () => {
    for (
      const event of [
        failed({ code: "server_error", message: "Ouch" }),
        { type: "error", code: "server_error", message: "Ouch", param: null, sequence_number: 9 }
      ]
    ) {
      server.answer(() => ({ pieces: [events(...shownFirst, event)] }))
      const got = await stream({ input: "Hi" })
      const last = got.at(-1)
      assert.strictEqual(last?.["type"], "response.failed")
      assert.deepNestedInclude(last, {
        "response.status": "failed",
        "response.error.code": "server_error",
        "response.error.message": "The upstream failed: Ouch",
        "response.model": "upstream-chat",
        "response.id": "resp_server_1"
      })
      // What was shown of the message is in the response, as incomplete.
      assert.deepNestedInclude(last, {
        "response.output[0].status": "incomplete",
        "response.output[0].content[0].text": "Hell"
      })
      assert.strictEqual(server.requests.length, 1)
    }
  })

  it("has the gateway's code where the server says nothing", async () => {
    for (const after of ["end", "reset"] as const) {
      server.answer(() => ({ pieces: [events(...shownFirst)], after }))
      const last = (await stream({ input: "Hi" })).at(-1)
      assert.strictEqual(last?.["type"], "response.failed")
      assert.nestedPropertyVal(last, "response.error.code", "upstream_error")
    }
  })

  it("before it is another try, and nothing of the first one is shown", async () => {
    for (const event of [failed({ code: "server_error", message: "Ouch" }), ""]) {
      server.answer((_, i) =>
        i === 0 ? { pieces: [events(...opening(responseOf([], { id: "resp_failed" })), event)] } : said("Hello")
      )
      const got = await stream({ input: "Hi" })
      assert.notInclude(JSON.stringify(got), "resp_failed")
      assert.strictEqual(server.requests.length, 2)
      assert.notStrictEqual(server.requests[0]?.key, server.requests[1]?.key)
    }
  })
})

describe("a message of the server within its stream", () => {
  it("has no key", async () => {
    const error = { code: "server_error", message: "The key sk-secret-of-mine is odd" }
    const shownFirst = eventsOf(responseOf([messageItem("Hello")])).slice(0, 5)
    server.answer(() => ({ pieces: [events(...shownFirst, { type: "error", ...error })] }))
    const last = (await stream({ input: "Hi" })).at(-1)
    assert.nestedPropertyVal(last, "response.error.message", "The upstream failed: The key [token] is odd")
  })
})

describe("a refusal", () => {
  it("has the server's code and the field that it names", async () => {
    const error = { message: "Wrong", type: "invalid_request_error", code: "invalid_value", param: "input[0].x" }
    for (
      const answer of [json(400, { error }), { pieces: [events({ ...error, type: "error" })] }]
    ) {
      server.answer(() => answer)
      const response = await post({ input: "Hi" })
      assert.strictEqual(response.status, 400)
      assert.deepNestedInclude(await response.json(), { "error.code": "invalid_value", "error.param": "input[0].x" })
      assert.strictEqual(server.requests.length, 1)
    }
    server.answer(() => json(429, { error: { message: "Gone", code: "insufficient_quota" } }))
    const response = await post({ input: "Hi" })
    assert.strictEqual(response.status, 429)
    assert.nestedPropertyVal(await response.json(), "error.code", "insufficient_quota")
    assert.strictEqual(server.requests.length, 3)
  })
})

describe("what is not a completion", () => {
  it("is asked of the same server: embeddings, and counts of tokens", async () => {
    server.answer(({ path }) =>
      path.endsWith("/embeddings")
        ? json(200, { data: [{ index: 0, embedding: [0.5] }], usage: { prompt_tokens: 3 } })
        : json(200, { object: "response.input_tokens", input_tokens: 42 })
    )
    const embedded = await post({ model: "text-embedding-3-small", input: "Hi" }, "/v1/embeddings")
    assert.deepNestedInclude(await embedded.json(), { "data[0].embedding": [0.5] })
    const counted = await post({ input: "Hi", metadata: { a: "b" } }, "/v1/responses/input_tokens")
    assert.nestedPropertyVal(await counted.json(), "input_tokens", 42)
    assert.deepStrictEqual(server.requests[1]?.body, { model: "server-model", input: "Hi" })
  })

  it("is estimated where the server counts no tokens, and the server is not asked again", async () => {
    server.answer(() => json(404, { detail: "Not Found" }))
    for (let i = 0; i < 3; i++) {
      const counted = await post({ input: "Hi" }, "/v1/responses/input_tokens")
      assert.isAbove((await counted.json() as { readonly input_tokens: number }).input_tokens, 0)
    }
    assert.strictEqual(server.requests.length, 1)
    server.answer(() => chatStreamed({ content: "Hello" }))
  })
})
