/**
 * Fields that the gateway does not model: those that reach the server, and those that `x-gateway-ignored` names. Over the running gateway, in
 * every style, whole and streamed.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { plainRequests, question } from "../support/plainRequests.ts"

let server: OpenAiServer
const gateways = new Map<string, RunningGateway>()

const configs = {
  pass: { upstream: {} },
  drop: { upstream: { fields: "drop" } },
  prompt: { upstream: { tools: "prompt" } },
  list: { upstream: { fields: ["min_p", "input_type", "messages"] } },
  embedded: { upstream: { driver: "embedded" } }
}

beforeAll(async () => {
  server = await startOpenAiServer()
  for (const [name, { upstream, ...rest }] of Object.entries(configs)) {
    const raw = {
      embeddings: { provider: "upstream" },
      ...rest,
      upstream: { driver: "openai", base_url: server.baseUrl, ...upstream }
    }
    gateways.set(name, await startGateway(JSON.parse(JSON.stringify(raw))))
  }
})
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.stop()
  await server.stop()
})

type StyleName = keyof typeof plainRequests
const styleNames = Object.keys(plainRequests) as ReadonlyArray<StyleName>

const post = (gateway: string, path: string, body: object) =>
  fetch(gateways.get(gateway)!.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })

/** Sends a request in a style. Returns the response, the ignored fields that it names, and the body that reached the server. */
const ask = async (
  style: StyleName,
  fields: object,
  { gateway = "pass", stream = false }: { readonly gateway?: string; readonly stream?: boolean } = {}
) => {
  server.answer(() => streamed({ content: "Hello" }))
  const { body, path } = plainRequests[style]
  const response = await post(gateway, path(stream), { ...body(stream), ...fields })
  return {
    status: response.status,
    ignored: response.headers.get("x-gateway-ignored"),
    text: await response.text(),
    headers: response.headers,
    sent: server.requests.at(-1)?.body ?? {}
  }
}

/** The error's message of a reply in any style. */
const messageOf = (text: string): string => JSON.parse(text).error.message

const serverFields = {
  min_p: 0.05,
  chat_template_kwargs: { enable_thinking: false, depth_of_it: [1, { a_b: 2 }] },
  structured_outputs: { regex: "\\d+" },
  provider: { order: ["a"] },
  options: { num_ctx: 4096 }
}

describe.each(styleNames)("a field that the vendor of the %s style does not have", (style) => {
  for (const stream of [false, true]) {
    const how = stream ? "streamed" : "whole"

    it(`reaches the server as it stands, ${how}`, async () => {
      const { ignored, sent, status } = await ask(style, serverFields, { stream })
      assert.strictEqual(status, 200)
      assert.isNull(ignored)
      assert.deepInclude(sent, serverFields)
    })

    it(`is reported as ignored if the server does not get it, ${how}`, async () => {
      const dropped = await ask(style, serverFields, { stream, gateway: "drop" })
      assert.sameMembers(dropped.ignored?.split(",") ?? [], Object.keys(serverFields))
      assert.doesNotHaveAnyKeys(dropped.sent, Object.keys(serverFields))
      const listed = await ask(style, serverFields, { stream, gateway: "list" })
      assert.strictEqual(listed.ignored, "chat_template_kwargs,structured_outputs,provider,options")
      assert.strictEqual(listed.sent["min_p"], 0.05)
      assert.doesNotHaveAnyKeys(listed.sent, ["provider", "options"])
      const embedded = await ask(style, { min_p: 0.05 }, { stream, gateway: "embedded" })
      assert.deepStrictEqual([embedded.status, embedded.ignored], [200, "min_p"])
    })
  }

  it("never replaces what the gateway sends itself", async () => {
    const { ignored, sent, status } = await ask(style, {
      n: style === "chat" ? 1 : 3,
      functions: [{ name: "f" }],
      ...(style === "chat" ? {} : { stream_options: { include_usage: false } }),
      ...(style === "generate" ? { messages: [{ role: "user", content: "other" }], model: "other", stream: false } : {})
    })
    assert.strictEqual(status, 200)
    assert.deepStrictEqual(sent["messages"], question)
    assert.strictEqual(sent["model"], "upstream-chat")
    assert.isFalse(sent["stream"])
    assert.doesNotHaveAnyKeys(sent, ["n", "functions", "stream_options"])
    assert.include(ignored, "functions")
  })

  it("is reported as ignored if the request itself says something else by its name", async () => {
    const limits = {
      chat: { max_tokens: 5 },
      responses: { max_output_tokens: 5 },
      messages: { max_tokens: 5 },
      generate: { generationConfig: { maxOutputTokens: 5 } }
    }[style]
    const { ignored, sent } = await ask(style, { ...limits, ...(style === "chat" ? {} : { max_tokens: 7 }), min_p: 1 })
    assert.strictEqual(ignored, style === "responses" || style === "generate" ? "max_tokens" : null)
    assert.deepInclude(sent, { max_tokens: style === "messages" ? 7 : 5, min_p: 1 })
    if (style === "chat" || style === "messages") return
    const same = await ask(style, { ...limits, max_tokens: 5 })
    assert.isNull(same.ignored)
  })

  it("counts as absent if it is null", async () => {
    const { ignored, sent } = await ask(style, { min_p: null }, { gateway: "drop" })
    assert.isNull(ignored)
    assert.doesNotHaveAnyKeys(sent, ["min_p"])
  })

  it("is among a hundred that are sent; the others are counted", async () => {
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`field_${i}`, i]))
    const { ignored, sent } = await ask(style, many)
    assert.strictEqual(Object.keys(sent).filter((name) => name.startsWith("field_")).length, 100)
    assert.isAtMost(ignored!.length, 1_000)
    const named = ignored!.split(",").slice(0, -1)
    assert.match(ignored!, new RegExp(`^field_100,field_101,.*,\\.\\.\\.\\+${4_900 - named.length}$`))
  })

  it("is named in characters of a header", async () => {
    const name = "näme, with\r\nx-evil: 1"
    const { headers, ignored } = await ask(style, { [name]: 1, ["x".repeat(500)]: 1 }, { gateway: "drop" })
    assert.strictEqual(ignored, `n?me? with??x-evil: 1,${"x".repeat(100)}`)
    assert.isNull(headers.get("x-evil"))
  })

  it("does not reach the server by the name of the prototype", async () => {
    server.answer(() => streamed({ content: "Hello" }))
    const { body, path } = plainRequests[style]
    const text = JSON.stringify(body(false)).replace(/}$/, ",\"__proto__\":{\"min_p\":1}}")
    const response = await fetch(gateways.get("pass")!.url + path(false), {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
      body: text
    })
    assert.strictEqual(response.headers.get("x-gateway-ignored"), "__proto__")
    await response.text()
    assert.doesNotHaveAnyKeys(server.requests.at(-1)!.body, ["min_p"])
  })
})

describe("a field of the vendor that the gateway does not model", () => {
  const chatFields = {
    logprobs: true,
    top_logprobs: 3,
    service_tier: "flex",
    verbosity: "low",
    prediction: { type: "content", content: "x" },
    modalities: ["text", "audio"],
    audio: { voice: "alloy", format: "wav" },
    user: "u",
    metadata: { a: "b" },
    store: true,
    prompt_cache_key: "k"
  }

  it("reaches the server in the chat style", async () => {
    for (const stream of [false, true]) {
      const { ignored, sent, status } = await ask("chat", chatFields, { stream })
      assert.deepStrictEqual([status, ignored], [200, null])
      assert.deepInclude(sent, chatFields)
    }
  })

  it("is reported as ignored if the server does not get it, unless it is a hint", async () => {
    const { modalities: _, ...rest } = chatFields
    const { ignored, status } = await ask("chat", rest, { gateway: "drop" })
    assert.deepStrictEqual([status, ignored], [200, "logprobs,top_logprobs,service_tier,verbosity,prediction,audio"])
  })

  it("is refused where the reply would be of another kind without it", async () => {
    const refusedAt = await ask("chat", chatFields, { gateway: "drop" })
    assert.strictEqual(refusedAt.status, 400)
    assert.match(messageOf(refusedAt.text), /^modalities: /)
    assert.strictEqual((await ask("chat", { modalities: ["text"] }, { gateway: "drop" })).status, 200)
    for (
      const [style, fields, named] of [
        ["chat", { n: 0 }, "n"],
        ["responses", { background: true }, "background"],
        ["generate", { cachedContent: "cachedContents/a" }, "cachedContent"],
        ["generate", { cached_content: "cachedContents/a" }, "cachedContent"],
        [
          "generate",
          { generationConfig: { responseModalities: ["TEXT", "IMAGE"] } },
          "generationConfig.responseModalities[1]"
        ],
        ["generate", { generationConfig: { responseMimeType: "text/x.enum" } }, "generationConfig.responseMimeType"]
      ] as const
    ) {
      const { status, text } = await ask(style, fields)
      assert.strictEqual(status, 400, named)
      assert.isTrue(messageOf(text).startsWith(`${named}: `), messageOf(text))
    }
  })

  it("becomes the server's own where it has one", async () => {
    const { ignored, sent } = await ask("responses", { text: { verbosity: "low" }, service_tier: "flex" })
    assert.isNull(ignored)
    assert.deepInclude(sent, { verbosity: "low", service_tier: "flex" })
  })

  it("is reported by the caller's own name for it", async () => {
    const fields = { text: { verbosity: "low" }, include: ["message.output_text.logprobs"], top_logprobs: 3 }
    const { ignored, sent } = await ask("responses", fields)
    assert.isNull(ignored)
    assert.deepInclude(sent, { verbosity: "low", logprobs: true, top_logprobs: 3 })
    const embedded = await ask("responses", fields, { gateway: "embedded" })
    assert.strictEqual(embedded.ignored, "include,text.verbosity,top_logprobs")
    const others = await ask("responses", { include: [...fields.include, "reasoning.encrypted_content"] })
    assert.strictEqual(others.ignored, "include")
    assert.deepInclude(others.sent, { logprobs: true })
  })

  it("is not echoed by a Responses reply if no server gets it", async () => {
    const fields = {
      max_tool_calls: 3,
      truncation: "auto",
      user: "u",
      service_tier: "flex",
      max_output_tokens: 9
    }
    const { text } = await ask("responses", fields)
    assert.deepInclude(JSON.parse(text), {
      max_tool_calls: null,
      truncation: "disabled",
      top_logprobs: 0,
      service_tier: "flex",
      max_output_tokens: 9
    })
    assert.doesNotHaveAnyKeys(JSON.parse(text), ["user"])
  })

  it("is otherwise reported as ignored, by its path", async () => {
    const told = async (style: StyleName, fields: object) => (await ask(style, fields)).ignored
    assert.strictEqual(
      await told("responses", { moderation: {}, include: ["x"], truncation: "auto" }),
      "moderation,include,truncation"
    )
    assert.strictEqual(
      await told("messages", { mcp_servers: [{}], container: "c", output_config: { task_budget: { total: 1 } } }),
      "mcp_servers,container,output_config.task_budget"
    )
    assert.strictEqual(
      await told("generate", {
        safety_settings: [{}],
        generation_config: { audio_timestamp: true, min_p: 1, temperature: 1 }
      }),
      "safetySettings,generationConfig.audioTimestamp,generationConfig.minP"
    )
    assert.strictEqual(
      await told("chat", { functions: [{ name: "f" }], function_call: { name: "f" } }),
      "functions,function_call"
    )
  })

  it("is no news where it asks for nothing or changes no reply", async () => {
    const told = async (style: StyleName, fields: object) => (await ask(style, fields)).ignored
    assert.isNull(
      await told("responses", {
        background: false,
        truncation: "disabled",
        include: [],
        top_logprobs: 0,
        service_tier: "auto",
        user: "u",
        prompt_cache_key: "k",
        stream_options: { include_obfuscation: false }
      })
    )
    assert.isNull(await told("messages", { metadata: { user_id: "u" }, service_tier: "auto", speed: "standard" }))
    assert.isNull(await told("generate", { labels: { a: "b" }, generationConfig: { responseModalities: ["TEXT"] } }))
  })
})

describe("what a chat request says of single elements", () => {
  const mark = { cache_control: { type: "ephemeral" } }
  const tool = {
    type: "function",
    function: { name: "f", parameters: { type: "object", properties: {} }, cost: 2 },
    ...mark
  }
  const messages = [
    { role: "system", content: "Be kind.", ...mark },
    {
      role: "user",
      content: [
        { type: "text", text: "Look", ...mark },
        { type: "image_url", image_url: { url: "https://example.com/a.png", fps: 2 }, max_pixels: 9 },
        { type: "hologram", data: "x", text: "A hologram" }
      ]
    },
    {
      role: "assistant",
      content: null,
      audio: { id: "a" },
      tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" }, weight: 1 }]
    },
    { role: "tool", tool_call_id: "c1", content: [{ type: "text", text: "ok", ...mark }], trust: "high" },
    { role: "user", content: "Hi", prefix: true }
  ]
  const fields = {
    messages,
    tools: [tool],
    stream_options: { include_usage: true, continuous_usage_stats: true },
    response_format: { type: "json_schema", json_schema: { name: "a", schema: { type: "object" }, dialect: "b" } }
  }
  const paths = [
    "messages[1].content[1].image_url.fps",
    "messages[1].content[1].max_pixels",
    "messages[1].content[2]",
    "messages[2].audio",
    "messages[2].tool_calls[0].weight",
    "messages[3].trust",
    "messages[4].prefix",
    "tools[0].function.cost",
    "stream_options.continuous_usage_stats",
    "response_format.json_schema.dialect"
  ]

  for (const stream of [false, true]) {
    it(`reaches the server as it stands, ${stream ? "streamed" : "whole"}`, async () => {
      const { ignored, sent, status } = await ask("chat", fields, { stream })
      assert.deepStrictEqual([status, ignored], [200, null])
      assert.deepStrictEqual(sent["messages"], messages)
      assert.deepStrictEqual(sent["tools"], [tool])
      assert.deepStrictEqual(sent["stream_options"], stream ? fields.stream_options : undefined)
      assert.deepStrictEqual(sent["response_format"], fields.response_format)
    })
  }

  it("is reported as ignored by its path where no server gets it, unless it is a hint", async () => {
    for (const gateway of ["embedded", "drop"]) {
      const { ignored, status } = await ask("chat", fields, { gateway })
      assert.deepStrictEqual([status, ignored], [200, paths.join(",")])
    }
  })

  it("does not reach the server if upstream.fields drops it", async () => {
    const { sent } = await ask("chat", fields, { gateway: "drop" })
    const text = JSON.stringify(sent)
    for (const name of ["cache_control", "max_pixels", "fps", "weight", "trust", "cost", "dialect", "continuous"]) {
      assert.notInclude(text, name)
    }
    assert.include(text, "A hologram")
  })

  it("reaches the server if upstream.fields lists its name", async () => {
    const { ignored, sent } = await ask("chat", { messages: [{ role: "user", content: "Hi", min_p: 1, other: 2 }] }, {
      gateway: "list"
    })
    assert.strictEqual(ignored, "messages[0].other")
    assert.deepStrictEqual(sent["messages"], [{ role: "user", content: "Hi", min_p: 1 }])
  })

  it("is reported as ignored where tools are declared as text, but for the request's own", async () => {
    const { ignored, sent } = await ask("chat", fields, { gateway: "prompt" })
    assert.strictEqual(ignored, paths.slice(0, -2).join(","))
    assert.deepInclude(sent, { stream: false, model: "upstream-chat" })
    assert.doesNotHaveAnyKeys(sent, ["tools", "stream_options"])
  })

  it("includes tools that the server runs, in their places", async () => {
    const search = { type: "web_search", web_search: { enable: true } }
    for (const tools of [[search], [tool, search], [search, tool]]) {
      const { ignored, sent, status } = await ask("chat", { tools })
      assert.deepStrictEqual([status, ignored, sent["tools"]], [200, null, tools])
      const told = await ask("chat", { tools: [search] }, { gateway: "embedded" })
      assert.deepStrictEqual([told.status, told.ignored], [200, "tools[0]"])
    }
    const dropped = await ask("chat", { tools: [search, tool] }, { gateway: "drop" })
    assert.strictEqual(dropped.ignored, "tools[0],tools[1].function.cost")
    assert.lengthOf(dropped.sent["tools"] as ReadonlyArray<unknown>, 1)
    for (const type of ["custom", 7]) assert.strictEqual((await ask("chat", { tools: [{ type }] })).status, 400)
  })

  it("never replaces what the gateway reads", async () => {
    const sneaky = { role: "user", content: [{ type: "text", text: "a", mark: 1 }], extra: { a: 1 } }
    const { sent } = await ask("chat", { messages: [sneaky] })
    assert.deepStrictEqual(sent["messages"], [sneaky])
  })
})

describe("what a Responses request says of single elements", () => {
  const breakpoint = { prompt_cache_breakpoint: { mode: "explicit" } }
  const agentsNote = { internal_chat_message_metadata_passthrough: { turn_id: "t" } }
  const input = [
    {
      role: "user",
      content: [
        { type: "input_text", text: "Look", ...breakpoint },
        { type: "input_image", image_url: "https://example.com/a.png", detail: "low" },
        { type: "input_file", file_data: "data:text/plain;base64,QQ==", detail: "high" },
        { type: "input_hologram", data: "x" }
      ]
    },
    { type: "message", role: "assistant", content: "Hm", phase: "commentary", status: "completed", tone: "dry" },
    { type: "reasoning", summary: [{ type: "summary_text", text: "So" }], encrypted_content: "x", ...agentsNote },
    { type: "function_call", call_id: "c1", name: "f", arguments: "{}", async: true, ...agentsNote },
    { type: "function_call_output", call_id: "c1", output: [{ type: "input_text", text: "ok", ...breakpoint }] },
    { type: "web_search_call", id: "ws", status: "completed", action: { type: "search", query: "x" } },
    { type: "new_item", data: "x" }
  ]
  const tools = [
    { type: "function", name: "f", parameters: { type: "object" }, strict: true, defer_loading: true },
    { type: "web_search", search_context_size: "low" },
    { type: "local_shell" },
    { type: "namespace", name: "n", description: "N", tools: [{ type: "custom", name: "g", output_schema: {} }] }
  ]

  for (const stream of [false, true]) {
    it(`reaches the server where it has a place, and is reported as ignored elsewhere, ${stream ? "streamed" : "whole"}`, async () => {
      const { ignored, sent, status } = await ask("responses", { input, tools }, { stream })
      assert.strictEqual(status, 200)
      assert.deepStrictEqual(ignored?.split(",").toSorted(), [
        "input[0].content[2].detail",
        "input[0].content[3]",
        "input[1].tone",
        "input[2].encrypted_content",
        "input[3].async",
        "input[6]",
        "tools[0].defer_loading",
        "tools[1]",
        "tools[3].tools[0].output_schema"
      ])
      const [look, , , result] = sent["messages"] as ReadonlyArray<{ readonly content: unknown }>
      const parts: ReadonlyArray<unknown> = Array.isArray(look?.content) ? look.content : []
      assert.deepStrictEqual(parts.slice(0, 2), [
        { type: "text", text: "Look", ...breakpoint },
        { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } }
      ])
      assert.deepStrictEqual(result?.content, [{ type: "text", text: "ok", ...breakpoint }])
    })
  }
})

describe("a count of tokens", () => {
  const count = async (path: string, body: object) => {
    const response = await post("pass", path, body)
    return { status: response.status, ignored: response.headers.get("x-gateway-ignored"), text: await response.text() }
  }

  it("reports what had no effect, as its request does", async () => {
    const messages = { model: "upstream-chat", messages: question, context_management: { edits: [] } }
    assert.deepInclude(await count("/v1/messages/count_tokens", messages), {
      status: 200,
      ignored: "context_management"
    })
    const path = "/v1beta/models/upstream-chat:countTokens"
    const generate = { contents: [{ role: "user", parts: [{ text: "Hi" }] }], safetySettings: [{}] }
    for (const body of [generate, { generateContentRequest: generate }]) {
      assert.deepInclude(await count(path, body), { status: 200, ignored: "safetySettings" })
    }
    const { status, text } = await count(path, { ...generate, cachedContent: "cachedContents/a" })
    assert.strictEqual(status, 400)
    assert.match(messageOf(text), /^cachedContent: /)
  })
})

describe("a sampling parameter", () => {
  const sampling = { temperature: 0.5, top_p: 0.9, seed: 7 }

  it("reaches a server that applies it", async () => {
    const { ignored, sent } = await ask("chat", sampling)
    assert.isNull(ignored)
    assert.deepInclude(sent, sampling)
  })

  it("is reported as ignored if the upstream samples by itself", async () => {
    const told = async (style: StyleName, fields: object) => (await ask(style, fields, { gateway: "embedded" })).ignored
    assert.strictEqual(await told("chat", sampling), "temperature,top_p,seed")
    assert.strictEqual(await told("messages", { temperature: 0.5, top_k: 5 }), "temperature,top_k")
    assert.strictEqual(
      await told("generate", { generationConfig: { topP: 0.9, maxOutputTokens: 9 } }),
      "generationConfig.topP"
    )
    assert.isNull(await told("responses", { max_output_tokens: 100 }))
  })
})

describe("what had no effect", () => {
  it("is exposed to browsers", async () => {
    const { headers } = await ask("chat", { min_p: 1 }, { gateway: "drop" })
    assert.include(headers.get("access-control-expose-headers")!.toLowerCase().split(","), "x-gateway-ignored")
  })

  it("is in the request's record", async () => {
    const { headers } = await ask("chat", { min_p: 1, functions: [{}] }, { gateway: "drop" })
    const response = await fetch(`${gateways.get("drop")!.url}/admin/requests/${headers.get("x-request-id")}`, {
      headers: { authorization: `Bearer ${adminKey}` }
    })
    const record = await response.json() as { readonly ignored: unknown; readonly ignored_more: unknown }
    assert.deepStrictEqual([record.ignored, record.ignored_more], [["functions", "min_p"], 0])
  })

  it("is reported as ignored with an error too", async () => {
    server.answer(() => json(400, { error: { message: "no", code: "bad" } }))
    const response = await post("drop", plainRequests.chat.path(), { ...plainRequests.chat.body(false), min_p: 1 })
    assert.deepStrictEqual([response.status, response.headers.get("x-gateway-ignored")], [400, "min_p"])
  })
})

describe("a field of embeddings", () => {
  const answer = () =>
    server.answer(() =>
      json(200, { object: "list", data: [{ object: "embedding", index: 0, embedding: [1] }], model: "m" })
    )
  const embed = async (gateway: string, path: string, body: object) => {
    answer()
    const response = await post(gateway, path, body)
    await response.text()
    const ignored = response.headers.get("x-gateway-ignored")
    return { status: response.status, ignored, sent: server.requests.at(-1)?.body ?? {} }
  }
  const fields = { input_type: "query", task: "retrieval.query", prompt_name: "query", truncate: "END" }
  const vendor = { dimensions: 3, encoding_format: "base64", user: "u" }
  const content = { parts: [{ text: "Hi" }] }
  const path = "/v1beta/models/text-embedding-3-small:embedContent"

  it("reaches the server", async () => {
    const { ignored, sent, status } = await embed("pass", "/v1/embeddings", {
      model: "upstream-chat",
      input: "Hi",
      ...fields,
      ...vendor
    })
    assert.deepStrictEqual([status, ignored], [200, null])
    // The gateway writes vectors in the caller's encoding itself.
    const model = "upstream-chat"
    assert.deepStrictEqual(sent, {
      ...fields,
      user: "u",
      model,
      input: ["Hi"],
      encoding_format: "float",
      dimensions: 3
    })
  })

  it("is reported as ignored if the server does not get it", async () => {
    const body = { model: "upstream-chat", input: "Hi", ...fields, ...vendor }
    const { ignored, sent } = await embed("drop", "/v1/embeddings", body)
    assert.strictEqual(ignored, "input_type,task,prompt_name,truncate")
    assert.hasAllKeys(sent, ["model", "input", "encoding_format", "dimensions"])
  })

  it("is the server's in content generation too", async () => {
    const { ignored, sent } = await embed("pass", path, { content, ...fields })
    assert.isNull(ignored)
    assert.deepInclude(sent, fields)
  })

  it("taskType is the input_type of a server that is known to have it, else told", async () => {
    const asked = { content, taskType: "RETRIEVAL_QUERY", title: "A" }
    const listed = await embed("list", path, asked)
    assert.deepStrictEqual([listed.ignored, listed.sent["input_type"]], ["title", "query"])
    const passed = await embed("pass", path, asked)
    assert.strictEqual(passed.ignored, "taskType,title")
    assert.doesNotHaveAnyKeys(passed.sent, ["input_type", "taskType"])
    const batch = await embed("list", path.replace(":embedContent", ":batchEmbedContents"), {
      requests: [{ content, taskType: "CLUSTERING" }]
    })
    assert.strictEqual(batch.ignored, "requests[0].taskType")
    assert.isNull((await embed("pass", path, { content, taskType: "TASK_TYPE_UNSPECIFIED" })).ignored)
  })
})
