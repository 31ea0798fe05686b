/** Records of requests over HTTP: lists, one request with both sides, and the absence of credentials. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { account, admin, chat, emailOf, hold, send, type Site, startSite, times } from "../gateway/support.ts"
import { adminKey, businessKey } from "../support/gateway.ts"
import { caller } from "./support.ts"

interface Frame {
  readonly at_ms: number
  readonly data: string
}

interface Assembled {
  readonly text: string | null
  readonly reasoning: string | null
  readonly calls: ReadonlyArray<{ readonly name: string; readonly arguments: string }>
  readonly finish: string | null
}

interface Detail extends Record<string, unknown> {
  readonly id: string
  readonly request_id: string
  readonly request: { readonly method: string; readonly path: string; readonly headers: object; readonly body: string }
  readonly upstream: ReadonlyArray<
    { readonly frames: ReadonlyArray<Frame>; readonly request_body: string } & Record<string, unknown>
  >
  readonly reply: Assembled & {
    readonly status: number
    readonly frames: ReadonlyArray<Frame>
    readonly headers: Record<string, string>
  }
  readonly upstream_reply: Assembled | null
  readonly tries: ReadonlyArray<Record<string, unknown>>
  readonly tool_calls: ReadonlyArray<{ readonly at_ms: number } & Record<string, unknown>>
}

let site: Site
const call = caller(() => site.gateway)

beforeAll(async () => {
  site = await startSite({
    accounts: [account("a")],
    embeddings: { provider: "builtin" },
    runtime: { account_max_inflight: 4, account_max_queue: 50 }
  })
})
afterAll(() => site.stop())

const list = async (query = "") => {
  const answer = await call("GET", `/admin/requests${query}`)
  assert.strictEqual(answer.status, 200, answer.text)
  return answer.json as
    & { readonly items: ReadonlyArray<Detail>; readonly next_cursor: string | null }
    & Record<string, unknown>
}
const detail = async (id: string) => await admin(site.url, "GET", `/admin/requests/${id}`) as unknown as Detail
/** Waits for the end of the request: the caller has read the whole reply a moment earlier. */
const settled = async () => {
  while ((await list("?status=open")).items.length > 0) await new Promise(setImmediate)
}
const newest = async () => {
  await settled()
  return detail((await list("?limit=1")).items[0]!.id)
}
const clear = () => call("DELETE", "/admin/requests")
const textOf = (frames: ReadonlyArray<Frame>) => frames.map(({ data }) => data).join("")

const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${site.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body)
  })

const ask = "!say hello"

describe("the list of requests", () => {
  it("contains each request for a reply, an embedding or a token count, and no other", async () => {
    await clear()
    await (await fetch(`${site.url}/v1/models`)).arrayBuffer()
    await (await post("/v1/chat/completions", {}, { authorization: "Bearer " })).arrayBuffer()
    const asked: ReadonlyArray<readonly [path: string, body: unknown, style: string]> = [
      ["/v1/chat/completions", { model: "upstream-chat", messages: [{ role: "user", content: ask }] }, "chat"],
      ["/v1/responses", { model: "upstream-chat", input: ask, stream: true }, "responses"],
      ["/v1/embeddings", { model: "upstream-chat", input: ask }, "embeddings"],
      [
        "/v1/messages",
        { model: "upstream-chat", max_tokens: 9, messages: [{ role: "user", content: ask }] },
        "messages"
      ],
      ["/v1/messages/count_tokens", { model: "upstream-chat", messages: [{ role: "user", content: ask }] }, "messages"],
      [
        "/v1beta/models/upstream-chat:generateContent",
        { contents: [{ role: "user", parts: [{ text: ask }] }] },
        "generate"
      ],
      ["/v1/chat/completions", { model: "no-such-model", messages: [{ role: "user", content: ask }] }, "chat"]
    ]
    for (const [path, body] of asked) await (await post(path, body)).arrayBuffer()
    await settled()
    const { items, ...head } = await list()
    assert.deepInclude(head, {
      enabled: true,
      limit: 1_000,
      kept: asked.length,
      max_total_bytes: 64 * 1024 * 1024,
      next_cursor: null
    })
    assert.isAbove(Number(head["bytes"]), 0)
    assert.deepStrictEqual(items.map(({ style }) => style), asked.map(([, , style]) => style).reverse())
    const last = items.at(-1)!
    assert.deepInclude(last, {
      model: "upstream-chat",
      native_model: "upstream-chat",
      stream: false,
      account: emailOf("a"),
      state: "done",
      outcome: "ok",
      status: 200,
      error: null,
      finish: "stop",
      attempts: 1,
      failovers: 0,
      calls: 0,
      bodies_kept: true
    })
    assert.match(String(last["key"]), /^[0-9a-f]{16}$/)
    assert.deepStrictEqual(Object.keys(last["usage"] as object), [
      "prompt_tokens",
      "completion_tokens",
      "reasoning_tokens"
    ])
    assert.isAtLeast(Number(last["duration_ms"]), Number(last["first_event_ms"]))
    assert.deepInclude(items[0], {
      outcome: "failed",
      status: 400,
      error: "model_not_found",
      native_model: null,
      account: ""
    })
    assert.deepInclude(items[1], { style: "generate", usage: last["usage"] })
  })

  it("is narrowed by filters, all of which must match", async () => {
    const count = async (query: string) => (await list(query)).items.length
    const all = await count("")
    const key = String((await list()).items[0]!["key"])
    assert.strictEqual(await count("?status=failed"), 1)
    assert.strictEqual(await count("?status=400"), 1)
    assert.strictEqual(await count("?status=4xx"), 1)
    assert.strictEqual(await count("?status=5xx"), 0)
    assert.strictEqual(await count("?status=ok"), all - 1)
    assert.strictEqual(await count("?status=cancelled"), 0)
    assert.strictEqual(await count("?style=messages"), 2)
    assert.strictEqual(await count("?model=upstream-chat&style=chat"), 1)
    assert.strictEqual(await count("?model=no-such-model"), 1)
    assert.strictEqual(await count(`?key=${key}`), all)
    assert.strictEqual(await count("?key=direct"), 0)
    assert.strictEqual(await count(`?account=${emailOf("a")}&status=ok`), 4)
    assert.strictEqual(await count("?model=CHAT&outcome=ok"), all - 1)
    assert.strictEqual(await count(`?model=${encodeURIComponent("\"chat\"")}`), 0)
    assert.strictEqual(await count(`?model=${encodeURIComponent("\"upstream-chat\"")}&style=chat`), 1)
    assert.strictEqual(await count("?account=A@X&code=&upstream=default"), 4)
    assert.strictEqual(await count("?code=not_found"), 1)
    assert.strictEqual(await count("?text=SAY%20hello"), all)
    assert.strictEqual(await count("?text=SAY%20hello&style=embeddings"), 1)
    assert.strictEqual(await count("?text=something%20else"), 0)
    assert.strictEqual(await count("?min_ms=3600000"), 0)
    const oldest = Number((await list()).items.at(-1)!["started_at"])
    assert.strictEqual(await count(`?from=${oldest}`), all)
    assert.strictEqual(await count(`?to=${oldest}`), 0)
    assert.strictEqual(await count("?from=2000-01-01T00:00:00Z&to=2000-01-02"), 0)
    await site.change({ key_records: { [key]: { name: "Mobile app" } } })
    assert.deepStrictEqual((await list()).items.map((item) => item["key_name"]), times(all, () => "Mobile app"))
    assert.strictEqual(await count("?key=mobile"), all)
    assert.strictEqual(await count("?key=desktop"), 0)
    const malformed = [
      "status=lost",
      "style=poetry",
      "outcome=4xx",
      "min_ms=soon",
      "min_ms=1.5",
      "from=yesterday",
      "to=2026-02-30",
      "cursor=nonsense",
      "limit=many"
    ]
    for (const query of malformed) {
      const refused = await call("GET", `/admin/requests?${query}`)
      assert.strictEqual(refused.status, 400, query)
      assert.include(refused.detail, query.split("=")[0]!)
    }
  })

  it("has facets with the counts of the list under each filter", async () => {
    const facets = async (query: string) => {
      const { json, status, text } = await call("GET", `/admin/requests/facets${query}`)
      assert.strictEqual(status, 200, text)
      return json as {
        readonly facets: {
          readonly [name: string]: ReadonlyArray<{ value: string; name: string | null; count: number }>
        }
      } & Record<string, unknown>
    }
    const { items } = await list()
    const key = String(items[0]!["key"])
    const all = await facets("")
    assert.deepInclude(all, { total: items.length, kept: items.length, complete: true })
    assert.deepStrictEqual(all.facets["key"], [{ value: key, name: "Mobile app", count: items.length }])
    assert.deepStrictEqual(all.facets["outcome"]!.map(({ count, value }) => [value, count]), [
      ["ok", items.length - 1],
      ["failed", 1]
    ])
    const failed = await facets("?outcome=failed")
    assert.strictEqual(failed["total"], 1)
    assert.deepStrictEqual(failed.facets["outcome"], all.facets["outcome"])
    assert.deepStrictEqual(failed.facets["code"], [{ value: "model_not_found", name: null, count: 1 }])
    for (const name of ["key", "model", "style", "upstream", "account", "code"]) {
      for (const { count, value } of all.facets[name]!) {
        const text = ["style", "upstream"].includes(name) ? value : `"${value}"`
        assert.strictEqual((await list(`?${name}=${encodeURIComponent(text)}`)).items.length, count, `${name} ${value}`)
      }
    }
    assert.strictEqual((await call("GET", "/admin/requests/facets?from=yesterday")).status, 400)
  })

  it("is sorted by a value over pages, and counted by time", async () => {
    await clear()
    for (const words of [3, 1, 4, 1, 5]) await chat(site.url, `!say ${"word ".repeat(words)}`)
    await chat(site.url, "!say hello", { model: "no-such-model" })
    await settled()
    const tokensOf = (item: Detail) => {
      const { completion_tokens, prompt_tokens } = (item["usage"] ?? {}) as Record<string, number>
      return completion_tokens === undefined ? undefined : prompt_tokens! + completion_tokens
    }
    const pages = async (query: string) => {
      const found: Array<Detail> = []
      for (let cursor: string | null = ""; cursor !== null;) {
        const page = await list(`?limit=2&${query}&cursor=${encodeURIComponent(cursor)}`)
        found.push(...page.items)
        cursor = page.next_cursor
      }
      return found
    }
    const up = (await pages("sort=total_tokens&order=asc")).map(tokensOf)
    const known = up.flatMap((tokens) => tokens ?? [])
    assert.deepStrictEqual(up, [...known.toSorted((a, b) => a - b), undefined])
    assert.deepStrictEqual((await pages("sort=total_tokens")).map(tokensOf), [...known.toReversed(), undefined])
    const oldest = (await list("?sort=started_at&order=asc")).items.map(({ id }) => id)
    assert.deepStrictEqual(oldest, (await list()).items.map(({ id }) => id).reverse())
    const cursor = (await list("?limit=2&sort=total_tokens")).next_cursor!
    for (const query of [`sort=cost&cursor=${cursor}`, `cursor=${cursor}`, "sort=price", "sort=cost&text=word"]) {
      assert.strictEqual((await call("GET", `/admin/requests?${query}`)).status, 400, query)
    }
    const histogram = async (query: string) =>
      await admin(site.url, "GET", `/admin/requests/histogram${query}`) as unknown as {
        readonly kept_from: number
        readonly bucket_ms: number
        readonly buckets: ReadonlyArray<Readonly<Record<"at" | "ok" | "failed" | "cancelled", number>>>
      }
    const { bucket_ms, buckets, kept_from } = await histogram("")
    assert.strictEqual(kept_from, Number((await list("?sort=started_at&order=asc")).items[0]!["started_at"]))
    assert.isAtMost(buckets.length, 120)
    assert.isAtMost(buckets[0]!.at, kept_from)
    assert.isBelow(kept_from, buckets[0]!.at + bucket_ms)
    const sums = (
      all: typeof buckets
    ) => [all.reduce((n, { ok }) => n + ok, 0), all.reduce((n, { failed }) => n + failed, 0)]
    assert.deepStrictEqual(sums(buckets), [5, 1])
    assert.deepStrictEqual(sums((await histogram("?outcome=failed")).buckets), [0, 1])
    assert.strictEqual((await call("GET", "/admin/requests/histogram?to=yesterday")).status, 400)
  })

  it("has stable pages while new requests arrive", async () => {
    await clear()
    for (const i of times(5, (i) => i)) await chat(site.url, `!say ${i}`)
    const first = await list("?limit=2")
    for (const i of times(3, (i) => i)) await chat(site.url, `!say later ${i}`)
    const second = await list(`?limit=2&cursor=${first.next_cursor}`)
    const third = await list(`?limit=2&cursor=${second.next_cursor}`)
    assert.isNull(third.next_cursor)
    const ids = [first, second, third].flatMap(({ items }) => items.map(({ id }) => id))
    assert.strictEqual(new Set(ids).size, 5)
    assert.strictEqual((await list("?limit=0")).items.length, 1)
    assert.strictEqual((await list("?limit=9999")).items.length, 8)
  })
})

describe("a recorded request", () => {
  it("has both sides byte for byte: the reply to the caller, and the upstream's", async () => {
    const response = await send(site.url, "!think hm\n!say one two three\n!cut 2", {
      stream: true,
      model: "upstream-reasoner"
    })
    const heard = await response.text()
    const record = await newest()
    assert.strictEqual(record.request_id, response.headers.get("x-request-id"))
    assert.strictEqual(textOf(record.reply.frames), heard)
    assert.isAbove(record.reply.frames.length, 3)
    for (const { data } of record.reply.frames) assert.match(data, /^(?:data: .*|: .*)\n\n$/)
    const captured = (await admin(site.url, "GET", "/admin/dev/captures"))["items"] as ReadonlyArray<
      Record<string, unknown>
    >
    const rounds = captured.filter(({ chain_key }) => chain_key === captured[0]!["chain_key"]).reverse()
    assert.strictEqual(record.upstream.length, 2)
    record.upstream.forEach((round, index) => {
      const capture = rounds[index]!
      const { request_body } = round
      assert.strictEqual(request_body, capture["request_body"])
      assert.deepInclude(round as Record<string, unknown>, {
        capture_id: capture["id"],
        label: capture["label"],
        attempt: 1,
        url: capture["url"],
        account: emailOf("a"),
        status: 200,
        truncated: false
      })
      assert.strictEqual(textOf(round.frames), capture["response_body"])
    })
    for (const frames of [record.reply.frames, ...record.upstream.map(({ frames }) => frames)]) {
      for (const [index, { at_ms }] of frames.entries()) assert.isAtLeast(at_ms, frames[index - 1]?.at_ms ?? 0)
    }
    assert.deepInclude(record.request, { method: "POST", path: "/v1/chat/completions" })
    assert.include(record.request.body, "!think hm")
    assert.deepStrictEqual(record["conversation"], [
      { role: "user", text: "!think hm\n!say one two three\n!cut 2", calls: [], call_id: null }
    ])
    assert.strictEqual(record["server_timing"], response.headers.get("server-timing"))
    assert.strictEqual((await detail(record.request_id)).id, record.id)
    assert.strictEqual((await call("GET", "/admin/requests/rec_zzz")).status, 404)
    assert.strictEqual((await call("GET", "/admin/requests/rec_zzz", { bearer: null })).status, 401)
  })

  it("has the reply put together from both sides, in every style, whole and streamed", async () => {
    const said = "!think hm\n!say one two \"three\""
    const model = "upstream-reasoner"
    const asked: ReadonlyArray<readonly [path: string, body: Record<string, unknown>, finish: string]> = [
      ["/v1/chat/completions", { model, messages: [{ role: "user", content: said }] }, "stop"],
      ["/v1/responses", { model, input: said }, "completed"],
      ["/v1/messages", { model, max_tokens: 99, messages: [{ role: "user", content: said }] }, "end_turn"],
      [`/v1beta/models/${model}:generateContent`, { contents: [{ role: "user", parts: [{ text: said }] }] }, "STOP"]
    ]
    const words = { text: "one two \"three\"", reasoning: "hm", calls: [] }
    for (const [path, body, finish] of asked) {
      for (const stream of [false, true]) {
        const generate = path.includes("generateContent")
        const where = stream && generate ? path.replace(":generateContent", ":streamGenerateContent?alt=sse") : path
        await (await post(where, generate ? body : { ...body, stream })).arrayBuffer()
        const { reply, upstream_reply } = await newest()
        assert.deepInclude(reply, { ...words, finish }, `${where} ${stream}`)
        assert.deepStrictEqual(upstream_reply, { ...words, finish: "stop" }, `${where} ${stream}`)
      }
    }
    await (await post("/v1/embeddings", { model: "upstream-chat", input: said })).arrayBuffer()
    const vectors = await newest()
    assert.deepInclude(vectors.reply, { text: null, reasoning: null, calls: [], finish: null })
    assert.isNull(vectors.upstream_reply)
  })

  it("has its tries with one upstream too, and who is at fault for its error", async () => {
    await chat(site.url, ask)
    const answered = await newest()
    assert.deepStrictEqual(answered.tries.map(({ began_ms: _, queued_ms: __, took_ms: ___, ...rest }) => rest), [
      { upstream: "default", model: "upstream-chat", account: emailOf("a"), cause: null, status: null, cost: null }
    ])
    for (const name of ["began_ms", "queued_ms", "took_ms"]) assert.isAtLeast(Number(answered.tries[0]![name]), 0)
    assert.deepInclude(answered, { error_message: null, fault: null })
    assert.notProperty(answered, "target")
    const refused = await post("/v1/chat/completions", {
      model: "no-such-model",
      messages: [{ role: "user", content: ask }]
    })
    const { error } = await refused.json() as { readonly error: { readonly message: string } }
    assert.deepInclude(await newest(), { error_message: error.message, fault: "caller", tries: [] })
  })

  it("has its tool calls, in every style, whole and streamed", async () => {
    const parameters = { type: "object", properties: { city: { type: "string" } } }
    const content = "!call weather {\"city\":\"Rome\"}"
    const tool = { name: "weather", description: "Tells the weather" }
    const asked: ReadonlyArray<readonly [path: string, body: Record<string, unknown>]> = [
      ["/v1/chat/completions", {
        model: "upstream-chat",
        messages: [{ role: "user", content }],
        tools: [{ type: "function", function: { ...tool, parameters } }]
      }],
      ["/v1/responses", { model: "upstream-chat", input: content, tools: [{ type: "function", ...tool, parameters }] }],
      ["/v1/messages", {
        model: "upstream-chat",
        max_tokens: 99,
        messages: [{ role: "user", content }],
        tools: [{ ...tool, input_schema: parameters }]
      }],
      ["/v1beta/models/upstream-chat:generateContent", {
        contents: [{ role: "user", parts: [{ text: content }] }],
        tools: [{ functionDeclarations: [{ ...tool, parametersJsonSchema: parameters }] }]
      }]
    ]
    for (const [path, body] of asked) {
      for (const stream of [false, true]) {
        const generate = path.includes("generateContent")
        const where = stream && generate
          ? path.replace(":generateContent", ":streamGenerateContent?alt=sse&key=x")
          : path
        const response = await post(where, generate ? body : { ...body, stream })
        const text = await response.text()
        const record = await newest()
        assert.strictEqual(textOf(record.reply.frames), text)
        assert.strictEqual(record.tool_calls.length, 1, `${where} ${stream}: ${text}`)
        assert.deepInclude(record.tool_calls[0], { name: "weather" })
        assert.deepStrictEqual(JSON.parse(String(record.tool_calls[0]!["arguments"])), { city: "Rome" })
        assert.isAtLeast(record.tool_calls[0]!.at_ms, 0)
        const { at_ms: _, ...call } = record.tool_calls[0]!
        assert.deepStrictEqual<ReadonlyArray<unknown>>(record.reply.calls, [call])
        if (stream && generate) {
          assert.strictEqual(record.request.path, "/v1beta/models/upstream-chat:streamGenerateContent?alt=sse")
        }
        assert.deepInclude(record, { calls: 1, stream })
      }
    }
  })

  it("grows while it runs, and ends as cancelled if the caller disconnects", async () => {
    const { end, response } = await hold(site)
    const reader = response.body!.getReader()
    await reader.read()
    const [running] = (await list("?status=open")).items
    assert.deepInclude(running, { state: "streaming", outcome: "open", status: 200, duration_ms: null, finish: null })
    assert.include(textOf((await detail(running!.id)).reply.frames), "one")
    await reader.cancel()
    end()
    while ((await detail(running!.id))["outcome"] === "open") await new Promise(setImmediate)
    assert.deepInclude(await detail(running!.id), { state: "done", outcome: "cancelled" })
    assert.strictEqual((await list("?status=cancelled")).items.length, 1)
  })

  it("never shows a credential, neither in headers and URLs nor repeated in a body", async () => {
    const token = "direct-token-of-a-caller"
    const { password } = account("a")
    const secrets = [businessKey, adminKey, password, token]
    const said = `!say ${secrets.join(" and ")}`
    const asked = [
      [businessKey, { "x-api-key": "another-secret-key" }],
      [token, { cookie: "session=a-secret-cookie", "x-goog-api-key": "one-more-secret" }]
    ] as const
    for (const [key, headers] of asked) {
      for (const stream of [true, false]) {
        const response = await post(
          `/v1/chat/completions?key=${key}&api_key=${key}&other=kept`,
          { model: "upstream-chat", stream, messages: [{ role: "user", content: said }] },
          { authorization: `Bearer ${key}`, ...headers }
        )
        await response.arrayBuffer()
        const shown = await call("GET", `/admin/requests/${response.headers.get("x-request-id")}`)
        assert.strictEqual(shown.status, 200)
        const own = key === token ? [token, adminKey] : [businessKey, adminKey, password]
        for (const secret of own) assert.notInclude(shown.text, secret)
        assert.notMatch(shown.text, /another-secret-key|a-secret-cookie|one-more-secret|reference-token-/)
        assert.include(shown.text, "/v1/chat/completions?other=kept")
        assert.deepInclude(shown.json, { key: key === token ? "direct" : shown.json["key"] })
      }
    }
  })

  it("is deleted with all completed requests", async () => {
    assert.deepStrictEqual((await clear()).json, { success: true })
    assert.deepInclude(await list(), { kept: 0, bytes: 0, items: [] })
  })

  it("does not exist while recording is off", async () => {
    await site.change({ requests: { enabled: false } })
    await chat(site.url, ask)
    assert.deepInclude(await list(), { enabled: false, kept: 0 })
    await site.change({ requests: {} })
  })
})
