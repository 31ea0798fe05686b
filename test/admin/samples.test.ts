import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import { playSample } from "../../src/server/replay.ts"
import type { PlayedStyle } from "../../src/styles/Style.ts"
import * as Reference from "../../src/testing/Reference.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { chunk, startGenerateServer, streamed } from "../support/generateServer.ts"
import * as Responses from "../support/responsesServer.ts"
import { parseFrames } from "../support/sse.ts"
import { caller } from "./support.ts"

const home = mkdtempSync(path.join(tmpdir(), "samples-"))
const dir = path.join(home, "samples")
let gateway: RunningGateway
const call = caller(() => gateway)

beforeAll(async () => {
  gateway = await startGateway({ samples: { dir }, captures: { limit: 50 } })
})
afterAll(async () => {
  await gateway.stop()
  rmSync(home, { recursive: true })
})

const capture = (body: unknown) => call("POST", "/admin/dev/raw-samples/capture", { body })
const save = (body: unknown) => call("POST", "/admin/dev/raw-samples/save", { body })
const query = (search: string) => call("GET", `/admin/dev/raw-samples/query${search}`)

interface Item {
  readonly id: string
  readonly label: string
  readonly status_code: number
  readonly response_body: string
  readonly chain_key: string
}

const captured = async () => (await call("GET", "/admin/dev/captures")).json["items"] as ReadonlyArray<Item>

const metaOf = (id: string) => JSON.parse(readFileSync(path.join(dir, id, "meta.json"), "utf8"))
const upstreamOf = (id: string) => readFileSync(path.join(dir, id, "upstream.stream.sse"), "utf8")

/** The reply to a sample that is replayed in a style. */
const played = (style: PlayedStyle, id: string, stream: boolean) => {
  const model = style === "messages" ? "msgcompat-opus-4-6" : "upstream-reasoner"
  return playSample({
    dir,
    id,
    style,
    model,
    stream,
    tools: [{ name: "look_up", description: undefined, parameters: undefined, strict: undefined }]
  }).pipe(
    Effect.flatMap((response) => Effect.promise(() => response.text())),
    Effect.scoped,
    Effect.provide(NodeServices.layer),
    Effect.runPromise
  )
}

/** All files, to detect any that was written elsewhere. */
const files = () => readdirSync(home, { recursive: true }).map(String).sort()

describe("capturing a sample", () => {
  it("returns the chat reply itself, and the sample's files in headers", async () => {
    const answer = await capture({ message: "!say Hello there", sample_id: "hello" })
    assert.strictEqual(answer.status, 200)
    assert.match(answer.headers.get("content-type") ?? "", /^text\/event-stream/)
    assert.strictEqual(answer.headers.get("x-gateway-sample-id"), "hello")
    assert.strictEqual(answer.headers.get("x-gateway-sample-dir"), path.join(dir, "hello"))
    assert.strictEqual(answer.headers.get("x-gateway-sample-meta"), path.join(dir, "hello", "meta.json"))
    assert.strictEqual(answer.headers.get("x-gateway-sample-upstream"), path.join(dir, "hello", "upstream.stream.sse"))
    assert.strictEqual(answer.headers.get("cache-control"), "no-store")
    const frames = parseFrames(answer.text)
    assert.strictEqual(frames.at(-1)?.data, "[DONE]")
    const text = frames.slice(0, -1).map(({ data }) => JSON.parse(data).choices[0]?.delta.content ?? "").join("")
    assert.strictEqual(text, "Hello there")
    assert.deepInclude(metaOf("hello"), {
      sample_id: "hello",
      protocol: "session",
      round_count: 1,
      request: { model: "upstream-chat", messages: [{ role: "user", content: "!say Hello there" }], stream: true }
    })
    const [newest] = await captured()
    assert.strictEqual(upstreamOf("hello"), newest?.response_body)
  })

  it("sends the given messages, model and key, and no stream if so requested", async () => {
    const answer = await capture({
      messages: [{ role: "system", content: "Be brief" }, { role: "user", content: "!think hm\n!say ok" }],
      model: "upstream-reasoner",
      stream: false,
      api_key: businessKey
    })
    assert.strictEqual(answer.status, 200)
    assert.match(answer.headers.get("x-gateway-sample-id") ?? "", /^sample-[0-9t]+-[0-9a-f]{12}$/)
    const choice = (answer.json["choices"] as ReadonlyArray<{ readonly message: Record<string, unknown> }>)[0]
    assert.deepInclude(choice?.message, { content: "ok", reasoning_content: "hm" })
  })

  it("sends 你好 to upstream-chat as a stream by default", async () => {
    const answer = await call("POST", "/admin/dev/raw-samples/capture")
    const id = answer.headers.get("x-gateway-sample-id")!
    assert.deepStrictEqual(metaOf(id).request, {
      model: "upstream-chat",
      messages: [{ role: "user", content: "你好" }],
      stream: true
    })
    assert.include(answer.text, "你好")
  })

  it("contains only its own request while others run", async () => {
    const chat = (text: string) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}` },
        body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: text }] })
      }).then((response) => response.text())
    const others = Array.from({ length: 60 }, (_, i) => chat(`!say other ${i}`))
    const mine = Array.from(
      { length: 4 },
      (_, i) => capture({ message: `!count 30\n!say mine ${i}`, sample_id: `mine${i}` })
    )
    const answers = await Promise.all(mine)
    await Promise.all(others)
    for (const [i, answer] of answers.entries()) {
      assert.strictEqual(answer.headers.get("x-gateway-sample-id"), `mine${i}`)
      assert.include(metaOf(`mine${i}`).rounds[0].request_body, `mine ${i}`)
      assert.notInclude(upstreamOf(`mine${i}`), "other")
    }
  })

  it("keeps a failed reply too, and returns its error", async () => {
    for (const stream of [false, true]) {
      const answer = await capture({ message: "!fault too-long", sample_id: `too-long-${stream}`, stream })
      assert.strictEqual(answer.status, 400)
      assert.strictEqual(answer.headers.get("x-gateway-sample-id"), `too-long-${stream}`)
      assert.deepInclude(answer.json["error"], { code: "context_length_exceeded" })
      assert.include(upstreamOf(`too-long-${stream}`), "\"biz_code\":9")
    }
    const replayed = await played("chat", "too-long-true", false)
    assert.deepInclude(JSON.parse(replayed).error, { code: "context_length_exceeded" })
  })

  it("fails with a message if no upstream capture was recorded", async () => {
    const detail = "no upstream capture was recorded"
    const unknown = await capture({ model: "no-such-model" })
    assert.deepStrictEqual([unknown.status, unknown.detail], [400, detail])
    assert.include(String(unknown.json["response"]), "model_not_found")
    const off = await startGateway({ samples: { dir }, captures: { enabled: false }, auth: { direct_tokens: false } })
    try {
      const before = files()
      const to = caller(() => off)
      const answer = await to("POST", "/admin/dev/raw-samples/capture", { body: { message: "hi" } })
      assert.deepStrictEqual([answer.status, answer.json], [409, { detail }])
      const stranger = await to("POST", "/admin/dev/raw-samples/capture", { body: { api_key: "not-a-key" } })
      assert.deepStrictEqual([stranger.status, stranger.detail], [400, detail])
      assert.deepStrictEqual(files(), before)
    } finally {
      await off.stop()
    }
  })

  it("requires an operator", async () => {
    for (const [method, to] of [["POST", "capture"], ["GET", "query"], ["POST", "save"]] as const) {
      const answer = await call(method, `/admin/dev/raw-samples/${to}`, { bearer: null })
      assert.strictEqual(answer.status, 401)
    }
  })
})

describe("querying samples", () => {
  it("groups calls by session, with a preview of both sides", async () => {
    await capture({ message: "!say find the needle\n!cut 2", sample_id: "needle" })
    const answer = await query("?q=NEEDLE%20find&limit=5")
    assert.deepInclude(answer.json, { query: "NEEDLE find", limit: 5, count: 1 })
    const [item] = answer.json["items"] as ReadonlyArray<Record<string, unknown>>
    assert.deepInclude(item, { initial_label: "completion", round_count: 2, response_preview: "find the needle" })
    assert.include(String(item?.["request_preview"]), "!say find the needle")
    assert.deepStrictEqual(item?.["capture_ids"], metaOf("needle").capture_ids)
    assert.strictEqual(item?.["chain_key"], metaOf("needle").chain_key)
  })

  it("returns 20 chains by default, and at most the requested number", async () => {
    assert.deepInclude((await query("")).json, { query: "", limit: 20, count: 20 })
    assert.deepInclude((await query("?limit=1")).json, { limit: 1, count: 1 })
    assert.deepInclude((await query("?limit=0")).json, { limit: 1 })
    assert.strictEqual((await query("?limit=many")).status, 400)
    assert.deepInclude((await query("?q=nothing-like-this")).json, { count: 0, items: [] })
  })
})

describe("saving a sample", () => {
  it("selects a chain by its key, by one of its captures, or by its text", async () => {
    const { capture_ids, chain_key } = metaOf("needle")
    const selectors = [{ chain_key }, { capture_id: capture_ids[1] }, { query: "the needle" }]
    for (const [i, selector] of selectors.entries()) {
      const answer = await save({ sample_id: `saved-${i}`, ...selector })
      const saved = path.join(dir, `saved-${i}`)
      assert.deepStrictEqual(answer.json, {
        success: true,
        sample_id: `saved-${i}`,
        dir: saved,
        sample_dir: saved,
        meta_path: path.join(saved, "meta.json"),
        upstream_path: path.join(saved, "upstream.stream.sse"),
        chain_key,
        capture_ids,
        round_count: 2
      })
      assert.strictEqual(upstreamOf(`saved-${i}`), upstreamOf("needle"))
      assert.isNull(metaOf(`saved-${i}`).request)
    }
  })

  it("appends -2, -3 and so on to a taken name, whatever occupies it", async () => {
    mkdirSync(path.join(dir, "taken"))
    writeFileSync(path.join(dir, "taken-2"), "a file")
    symlinkSync(home, path.join(dir, "taken-3"))
    symlinkSync(path.join(home, "nowhere"), path.join(dir, "taken-4"))
    const ids = []
    for (let i = 0; i < 2; i++) ids.push((await save({ sample_id: "taken", query: "needle" })).json["sample_id"])
    assert.deepStrictEqual(ids, ["taken-5", "taken-6"])
    assert.deepStrictEqual(files().filter((name) => !name.startsWith("samples")), [])
    const long = "x".repeat(64)
    assert.strictEqual((await save({ sample_id: long, query: "needle" })).json["sample_id"], long)
    const second = (await save({ sample_id: `${long}x`, query: "needle" })).json["sample_id"]
    assert.strictEqual(second, `${"x".repeat(62)}-2`)
  })

  it("concurrent saves get different names", async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => save({ sample_id: "rush", query: "needle" })))
    const ids = answers.map(({ json }) => json["sample_id"])
    assert.strictEqual(new Set(ids).size, 8)
    for (const id of ids) assert.strictEqual(metaOf(String(id)).sample_id, id)
    assert.deepStrictEqual(readdirSync(dir).filter((name) => name.startsWith(".")), [])
  })

  it("normalizes the names of samples", async () => {
    const names: ReadonlyArray<readonly [string, string]> = [
      ["My Sample: nr. 1", "my-sample-nr.-1"],
      ["..hidden", "hidden"],
      ["ends.", "ends"],
      ["naïve", "na-ve"]
    ]
    for (const [given, cleaned] of names) {
      assert.strictEqual((await save({ sample_id: given, query: "needle" })).json["sample_id"], cleaned)
    }
    const made = await save({ sample_id: " ", query: "needle" })
    assert.match(String(made.json["sample_id"]), /^sample-/)
  })

  it("rejects names that are paths or devices, and writes nothing", async () => {
    const before = files()
    const names = [
      "../escape",
      "..",
      ".",
      "a/../../b",
      "/etc/passwd",
      "\\\\host\\share",
      "C:\\windows",
      "c:",
      "a\0b",
      "line\nbreak",
      "..\\up",
      "con",
      "NUL",
      "com1.txt",
      "样本",
      "---"
    ]
    for (const name of names) {
      for (const answer of [await save({ sample_id: name, query: "needle" }), await capture({ sample_id: name })]) {
        assert.strictEqual(answer.status, 400, name)
        assert.match(answer.detail, /^sample_id /, name)
      }
    }
    assert.deepStrictEqual(files(), before)
  })

  it("requires exactly one selector with a result", async () => {
    assert.strictEqual((await save({ sample_id: "x" })).status, 400)
    assert.strictEqual((await save({ sample_id: "x", chain_key: "a", query: "b" })).status, 400)
    for (const selector of [{ chain_key: "nope" }, { capture_id: "nope" }, { query: "nothing-like-this" }]) {
      assert.strictEqual((await save({ sample_id: "x", ...selector })).status, 404)
    }
  })

  it("reports a folder that cannot be written", async () => {
    const blocked = await startGateway({ samples: { dir: path.join(dir, "taken-2", "below-a-file") } })
    try {
      const answer = await caller(() => blocked)("POST", "/admin/dev/raw-samples/capture", { body: { message: "hi" } })
      assert.strictEqual(answer.status, 500)
      assert.match(answer.detail, /could not be written/)
      assert.notInclude(answer.detail, dir)
    } finally {
      await blocked.stop()
    }
  })
})

const tools = {
  chat: [{ type: "function", function: { name: "look_up", parameters: { type: "object" } } }],
  responses: [{ type: "function", name: "look_up", parameters: { type: "object", properties: {} }, strict: false }],
  messages: [{ name: "look_up", input_schema: { type: "object" } }],
  generate: [{ functionDeclarations: [{ name: "look_up", parameters: { type: "OBJECT" } }] }]
}

type Ask = (text: string, stream: boolean) => readonly [path: string, body: unknown]

const styles: Readonly<Record<keyof typeof tools, Ask>> = {
  chat: (content, stream) => [
    "/v1/chat/completions",
    { model: "upstream-reasoner", stream, tools: tools.chat, messages: [{ role: "user", content }] }
  ],
  responses: (
    input,
    stream
  ) => ["/v1/responses", { model: "upstream-reasoner", stream, tools: tools.responses, input, store: false }],
  messages: (content, stream) => [
    "/v1/messages",
    { model: "msgcompat-opus-4-6", stream, tools: tools.messages, messages: [{ role: "user", content }] }
  ],
  generate: (text, stream) => [
    `/v1beta/models/upstream-reasoner:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    { tools: tools.generate, contents: [{ role: "user", parts: [{ text }] }] }
  ]
}

/** Fields that differ between runs, or that depend on the prompt. */
const volatile =
  /^(?:.*_?id|responseId|created.*|completed_at|input|input_tokens|prompt_tokens|total_tokens|promptTokenCount|totalTokenCount)$/

const steady = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(steady)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).filter(([key]) => !volatile.test(key)).map(([key, each]) => [key, steady(each)])
  )
}

/** All strings of a stream by their key, joined: the content, independent of its division into frames. */
const joined = (frames: ReadonlyArray<unknown>): Record<string, string> => {
  const texts: Record<string, string> = {}
  const visit = (value: unknown, key: string) => {
    if (typeof value === "string") texts[key] = (texts[key] ?? "") + value
    else if (typeof value === "object" && value !== null) {
      for (const [k, each] of Object.entries(value)) {
        visit(each, k)
      }
    }
  }
  frames.forEach((frame) => visit(frame, ""))
  for (const repeated of ["object", "type", "model", "role", "service_tier"]) delete texts[repeated]
  return texts
}

const read = (answer: string, stream: boolean) => {
  if (!stream) return steady(JSON.parse(answer))
  const frames = parseFrames(answer).flatMap(({ data }) => data === "[DONE]" ? [] : [steady(JSON.parse(data))])
  return joined(frames)
}

const ask = async (to: RunningGateway, style: keyof typeof tools, text: string, stream: boolean) => {
  const [where, body] = styles[style](text, stream)
  const response = await fetch(`${to.url}${where}`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify(body)
  })
  const answer = await response.text()
  assert.strictEqual(response.status, 200, answer)
  return read(answer, stream)
}

/** What a sample is in a style, which declares the tool. */
const replayed = async (style: keyof typeof tools, id: string, stream: boolean) =>
  read(await played(style, id, stream), stream)

describe("replaying a saved sample", () => {
  const script = [
    "!think Let me see…",
    "!say Here 是 the answer: ",
    "!cut empty",
    "!fault reset-mid-stream after=3",
    "!say more of it",
    "!call look_up {\"q\": \"x\"}",
    "!fault cut-off call=continue times=1"
  ].join("\n")

  it("gives the same reply as the upstream, in every style, including for a stream with faults", async () => {
    const first = await capture({ message: script, model: "upstream-reasoner", sample_id: "faulty" })
    assert.strictEqual(first.status, 200)
    const { chain_key, round_count } = metaOf("faulty")
    assert.isAtLeast(round_count, 3)
    const original = (await captured()).filter((item) => item.chain_key === chain_key)
    assert.strictEqual(original.toReversed().map((item) => item.response_body).join(""), upstreamOf("faulty"))

    for (const style of ["chat", "responses", "messages", "generate"] as const) {
      for (const stream of [false, true]) {
        const again = await replayed(style, "faulty", stream)
        assert.include(JSON.stringify(again), "look_up")
        assert.deepStrictEqual(again, await ask(gateway, style, script, stream), `${style} ${stream}`)
      }
    }
  })

  it("of an OpenAI-compatible server gives that server's reply", async () => {
    const chunk = (delta: unknown, finish_reason: string | null = null) =>
      `data: ${
        JSON.stringify({ id: "x", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })
      }\n\n`
    const call = { index: 0, id: "call_1", type: "function", function: { name: "look_up", arguments: "{\"q\":1}" } }
    const server = createServer((request, response) => {
      request.resume().on("end", () => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(chunk({ role: "assistant", reasoning_content: "Hm." }))
        response.write(chunk({ content: "Look: 你好" }))
        response.write(chunk({ tool_calls: [call] }))
        response.end(`${chunk({}, "tool_calls")}data: [DONE]\n\n`)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    const other = await startGateway({
      samples: { dir },
      upstream: { driver: "openai", base_url: `http://127.0.0.1:${port}/v1` },
      accounts: [{ token: "some-upstream-key" }]
    })
    try {
      const to = caller(() => other)
      const sample = await to("POST", "/admin/dev/raw-samples/capture", {
        body: { message: "hi", sample_id: "openai" }
      })
      assert.strictEqual(sample.status, 200)
      assert.strictEqual(metaOf("openai").protocol, "openai")
      for (const style of ["chat", "responses", "messages", "generate"] as const) {
        for (const stream of [false, true]) {
          assert.deepStrictEqual(
            await replayed(style, "openai", stream),
            await ask(other, style, "hi", stream),
            `${style} ${stream}`
          )
        }
      }
    } finally {
      await other.stop()
      server.close()
    }
  })

  it("of a Responses server gives that server's reply", async () => {
    const server = await Responses.startResponsesServer()
    server.answer(() =>
      Responses.streamed(Responses.responseOf([
        Responses.reasoningItem("Hm."),
        Responses.messageItem("Look: 你好"),
        Responses.callItem("look_up", { q: 1 })
      ]))
    )
    const other = await startGateway({
      samples: { dir },
      upstream: { driver: "responses", base_url: server.baseUrl },
      accounts: [{ token: "some-upstream-key" }]
    })
    try {
      const to = caller(() => other)
      const sample = await to("POST", "/admin/dev/raw-samples/capture", {
        body: { message: "hi", sample_id: "responses" }
      })
      assert.strictEqual(sample.status, 200)
      assert.strictEqual(metaOf("responses").protocol, "responses")
      for (const style of ["chat", "messages", "generate"] as const) {
        for (const stream of [false, true]) {
          assert.deepStrictEqual(
            await replayed(style, "responses", stream),
            await ask(other, style, "hi", stream),
            `${style} ${stream}`
          )
        }
      }
      const captures = await to("GET", "/admin/dev/captures")
      assert.include(JSON.stringify(captures.json), "Look: 你好")
      const { json } = await to("GET", "/admin/requests?limit=1")
      const { items } = json as { readonly items: ReadonlyArray<{ readonly id: string }> }
      const detail = await to("GET", `/admin/requests/${items[0]!.id}`)
      assert.include(JSON.stringify(detail.json), "Look: 你好")
    } finally {
      await other.stop()
      await server.stop()
    }
  })

  it("of a content-generation server gives that server's reply", async () => {
    const server = await startGenerateServer()
    server.answer(() =>
      streamed(
        chunk([{ text: "Hm.", thought: true }, { text: "Look: 你好" }]),
        chunk([{ functionCall: { id: "a", name: "look_up", args: { q: 1 } }, thoughtSignature: "c2ln" }], {
          finishReason: "STOP"
        })
      )
    )
    const other = await startGateway({
      samples: { dir },
      upstream: { driver: "generate", base_url: server.baseUrl },
      accounts: [{ token: "some-upstream-key" }]
    })
    try {
      const to = caller(() => other)
      const sample = await to("POST", "/admin/dev/raw-samples/capture", {
        body: { message: "hi", sample_id: "generate" }
      })
      assert.strictEqual(sample.status, 200)
      assert.strictEqual(metaOf("generate").protocol, "generate")
      for (const style of ["chat", "responses", "messages", "generate"] as const) {
        for (const stream of [false, true]) {
          assert.deepStrictEqual(
            await replayed(style, "generate", stream),
            await ask(other, style, "hi", stream),
            `${style} ${stream}`
          )
        }
      }
      const captures = await to("GET", "/admin/dev/captures")
      assert.include(JSON.stringify(captures.json), "Look: 你好")
    } finally {
      await other.stop()
      await server.stop()
    }
  })

  it("works through a server of the session protocol", async () => {
    const scope = Scope.makeUnsafe()
    const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) => Effect.runPromise(Scope.provide(effect, scope))
    const reference = await run(Reference.make())
    const base_url = await run(reference.listen())
    const other = await startGateway({
      upstream: { driver: "session", base_url },
      accounts: [{ email: "a@example.com", password: "p" }]
    })
    try {
      const bytes = readFileSync(path.join(dir, "faulty", "upstream.stream.sse"))
      for (const [i, { length, offset }] of metaOf("faulty").rounds.entries()) {
        const raw = bytes.subarray(offset, offset + length)
        await run(reference.reply({ call: i === 0 ? "completion" : "continue", raw, chunk: 7 }))
      }
      assert.deepStrictEqual(
        await ask(other, "chat", "anything", false),
        await replayed("chat", "faulty", false)
      )
    } finally {
      await other.stop()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  })
})
