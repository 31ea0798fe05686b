/** Compactions that the gateway makes, over real sockets, with every driver of a server. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { OpenAI } from "openai"
import type { RawConfig } from "../../../../src/config/json.ts"
import { sha256Hex } from "../../../../src/config/json.ts"
import { keyId } from "../../../../src/domain/identity.ts"
import { KeyLimits } from "../../../../src/usage/KeyLimits.ts"
import { accounts, admin, startSite } from "../../../gateway/support.ts"
import { type Answer, type Farm, held, json, said, type SeenRequest, startFarm } from "../../../several/support.ts"
import { businessKey, type RunningGateway, startGateway } from "../../../support/gateway.ts"
import { parseFrames } from "../../../support/sse.ts"
import { untilHolds } from "../../../support/until.ts"

const limited = "sk-limited"
const limitedId = keyId(limited, sha256Hex)

const upstreamsByDriver = [["openai", "openai"], ["messages", "claude"], ["generate", "gemini"]] as const

let farm: Farm
let gateway: RunningGateway
beforeAll(async () => {
  farm = await startFarm()
  const upstreams: RawConfig = {
    openai: farm.upstream("openai"),
    claude: farm.upstream("claude", { driver: "messages" }),
    gemini: farm.upstream("gemini", { driver: "generate" })
  }
  gateway = await startGateway({
    keys: [businessKey, limited],
    key_records: { [limitedId]: { limits: [{ window: "day", requests: 100 }], max_inflight: 1 } },
    upstream: { driver: "embedded" },
    upstreams,
    accounts: Object.keys(upstreams).map((upstream) => ({ upstream, token: `key-${upstream}` }))
  })
})
afterAll(async () => {
  await gateway.stop()
  await farm.stop()
})

/** The item of a compaction. */
interface Item {
  readonly id: string
  readonly type: string
  readonly encrypted_content: string
  readonly role?: string
  readonly content?: ReadonlyArray<{ readonly type: string; readonly text: string }>
}

interface Told {
  readonly id: string
  readonly object: string
  readonly status: string
  readonly output: ReadonlyArray<Item>
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number; readonly total_tokens: number }
  readonly error: { readonly code: string; readonly param: string | null; readonly message: string }
}

const ask = (path: string, body: object, key = businessKey) =>
  fetch(`${gateway.url}/v1/responses${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })

const told = async (path: string, body: object, key = businessKey) => {
  const response = await ask(path, body, key)
  return {
    status: response.status,
    ignored: response.headers.get("x-gateway-ignored"),
    body: await response.json() as Told
  }
}

const streamed = async (body: object) => {
  const response = await ask("", { ...body, stream: true })
  const text = await response.text()
  const frames = parseFrames(text).map(({ data }) => data)
  const events = frames.slice(0, -1).map((data) =>
    JSON.parse(data) as { type: string; item?: Item; response?: Told; output_index?: number }
  )
  return { status: response.status, text, last: frames.at(-1), events }
}

/** What a server got, as text. */
const sent = (request: SeenRequest | undefined): string => JSON.stringify(request?.body ?? {})

const tools = [{ type: "function", name: "read_file", parameters: { type: "object", properties: {} } }]

/** A conversation of three kinds of items after the first question. */
const history = [
  { role: "user", content: "Fix the parser in lexer.c" },
  { type: "function_call", call_id: "c1", name: "read_file", arguments: "{\"path\":\"lexer.c\"}" },
  { type: "function_call_output", call_id: "c1", output: `int main; ${"code ".repeat(1_000)}` },
  { role: "assistant", content: [{ type: "output_text", text: "The loop never ends." }] },
  { role: "user", content: [{ type: "input_text", text: "Go on" }] }
]

const trigger = { type: "compaction_trigger" }

/** Answers the request for a summary with a text, and others with another one. */
const summarizing = (name: string, summary = "The loop in lexer.c was found.", answer = "Done.") =>
  farm.answer(
    name,
    (request) => said(sent(request).includes("You are handing this work over") ? summary : answer, request)
  )

const compacted = async (name: string) => {
  summarizing(name)
  const { body, status } = await told("/compact", { model: `${name}/m`, input: history, tools })
  assert.strictEqual(status, 200, JSON.stringify(body))
  return body
}

describe.each(upstreamsByDriver)("a compaction with the driver %s", (_, name) => {
  it("is asked for alone: the user's messages, the compaction and its usage", async () => {
    const { id, object, output, usage } = await compacted(name)
    assert.match(id, /^resp_/)
    assert.strictEqual(object, "response.compaction")
    assert.deepStrictEqual(output.map(({ content, role, type }) => [type, role, content?.[0]?.text]), [
      ["message", "user", "Fix the parser in lexer.c"],
      ["message", "user", "Go on"],
      ["compaction", undefined, undefined]
    ])
    assert.match(output[2]!.id, /^cmp_/)
    assert.match(output[2]!.encrypted_content, /^gwc1_[\w-]+$/)
    assert.strictEqual(usage.total_tokens, usage.input_tokens + usage.output_tokens)
    assert.isAbove(usage.output_tokens, 0)

    const [request, ...more] = farm.seen(name)
    assert.isEmpty(more)
    const text = sent(request)
    assert.include(text, "The loop never ends.")
    assert.include(text, "and the next steps in order. Leave out what no longer matters.")
    assert.include(text, "8192")
  })

  it("carries its summary to every driver, with another key, and nothing of what was compacted", async () => {
    const { output } = await compacted(name)
    for (const [, other] of upstreamsByDriver) {
      summarizing(other)
      const input = [...output, { role: "user", content: "What next?" }]
      const { body, ignored, status } = await told("", { model: `${other}/m`, input }, limited)
      assert.strictEqual(status, 200, JSON.stringify(body))
      assert.isNull(ignored)
      const text = sent(farm.seen(other).at(-1))
      assert.include(
        text,
        "Summary of the earlier conversation, written by a model:\\n\\nThe loop in lexer.c was found."
      )
      assert.include(text, "What next?")
      assert.notInclude(text, "gwc1_")
    }
  })

  it("is the whole reply where it is triggered", async () => {
    summarizing(name)
    const { body, ignored, status } = await told("", { model: `${name}/m`, input: [...history, trigger], tools })
    assert.strictEqual(status, 200, JSON.stringify(body))
    assert.isNull(ignored)
    assert.strictEqual(body.status, "completed")
    assert.deepStrictEqual(body.output.map(({ type }) => type), ["compaction"])
    assert.isAbove(body.usage.output_tokens, 0)
    assert.lengthOf(farm.seen(name), 1)
  })

  it("is the whole stream where it is triggered", async () => {
    summarizing(name)
    const { events, last } = await streamed({ model: `${name}/m`, input: [...history, trigger], tools })
    assert.deepStrictEqual(events.map(({ type }) => type), [
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.output_item.done",
      "response.completed"
    ])
    assert.strictEqual(last, "[DONE]")
    const { output } = events[4]!.response!
    assert.lengthOf(output, 1)
    assert.deepStrictEqual(events[3]!.item, output[0])
    assert.match(output[0]!.encrypted_content, /^gwc1_/)
  })

  it("comes before the reply once the input is long enough, and not before", async () => {
    summarizing(name)
    const body = (threshold: number) => ({
      model: `${name}/m`,
      input: history,
      tools,
      context_management: [{ type: "compaction", compact_threshold: threshold }]
    })
    const short = await told("", body(1_000_000))
    assert.deepStrictEqual(short.body.output.map(({ type }) => type), ["message"])
    assert.isNull(short.ignored)
    assert.lengthOf(farm.seen(name), 1)

    summarizing(name)
    const long = await told("", body(500))
    assert.strictEqual(long.status, 200)
    assert.deepStrictEqual(long.body.output.map(({ type }) => type), ["compaction", "message"])
    const [first, second, ...more] = farm.seen(name).map(sent)
    assert.isEmpty(more)
    assert.include(first!, "code code")
    assert.notInclude(second!, "code code")
    for (const kept of ["Fix the parser in lexer.c", "Go on", "The loop in lexer.c was found.", "read_file"]) {
      assert.include(second!, kept)
    }

    summarizing(name)
    const { events } = await streamed(body(500))
    const added = events.filter(({ type }) => type === "response.output_item.added")
    assert.deepStrictEqual(added.map(({ item, output_index }) => [output_index, item?.type]), [
      [0, "compaction"],
      [1, "message"]
    ])
    const final = events.at(-1)?.response
    assert.deepStrictEqual(final?.output.map(({ type }) => type), ["compaction", "message"])
  })
})

describe("a compaction", () => {
  it("is made by the embedded upstream too, and continued by the id of its response", async () => {
    const first = await told("", { model: "gpt-5", input: history.slice(0, 1) })
    const { body, status } = await told("", { model: "gpt-5", input: [trigger], previous_response_id: first.body.id })
    assert.strictEqual(status, 200, JSON.stringify(body))
    assert.deepStrictEqual(body.output.map(({ type }) => type), ["compaction"])
    summarizing("openai")
    const next = await told("", { model: "openai/m", input: "And now?", previous_response_id: body.id })
    assert.strictEqual(next.status, 200, JSON.stringify(next.body))
    const { messages } = farm.seen("openai")[0]!.body as { messages: ReadonlyArray<{ role: string; content: string }> }
    assert.deepStrictEqual(messages.map(({ role }) => role), ["user", "user", "user"])
    assert.include(messages[1]!.content, "Summary of the earlier conversation")
    const again = await told("/compact", { model: "openai/m", previous_response_id: next.body.id })
    assert.strictEqual(again.status, 200, JSON.stringify(again.body))
  })

  it("is made by a provider with accounts that log in", async () => {
    const site = await startSite({ accounts: accounts("a") })
    const response = await fetch(`${site.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "upstream-chat", input: [...history, trigger] })
    })
    const { output } = await response.json() as Told
    await site.stop()
    assert.deepStrictEqual(output.map(({ type }) => type), ["compaction"])
  })

  it("is found by its id within a stored response", async () => {
    summarizing("openai")
    const { body } = await told("", { model: "openai/m", input: [...history, trigger] })
    summarizing("openai")
    const input = [{ type: "item_reference", id: body.output[0]!.id }, { role: "user", content: "Now?" }]
    const { status } = await told("", { model: "openai/m", input })
    assert.strictEqual(status, 200)
    assert.include(sent(farm.seen("openai")[0]), "The loop in lexer.c was found.")
  })

  it("ends at its server when the caller leaves", async () => {
    const management = [{ type: "compaction", compact_threshold: 1 }]
    for (const body of [{ input: ["Hi", trigger] }, { input: "Hi", context_management: management }]) {
      for (const stream of [false, true]) {
        const waits = held()
        farm.answer("openai", waits.behaviour)
        const leaving = new AbortController()
        const left = fetch(`${gateway.url}/v1/responses`, {
          method: "POST",
          headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "openai/m", stream, ...body }),
          signal: leaving.signal
        }).then(() => "answered", () => "left")
        await untilHolds(() => farm.seen("openai").length === 1)
        leaving.abort()
        assert.strictEqual(await left, "left")
        await untilHolds(() => farm.seen("openai")[0]!.outcome === "aborted")
        waits.releaseAll()
        assert.lengthOf(farm.seen("openai"), 1)
      }
    }
  })

  it("is read by the vendor's SDK", async () => {
    summarizing("openai")
    const client = new OpenAI({ apiKey: businessKey, baseURL: `${gateway.url}/v1` })
    const { output } = await client.responses.compact({ model: "openai/m" as "gpt-5", input: "Remember 42" })
    assert.deepStrictEqual(output.map(({ type }) => type), ["message", "compaction"])
    const stream = client.responses.stream({
      model: "openai/m",
      input: [{ role: "user", content: "Hi" }, trigger as never]
    })
    const final = await stream.finalResponse()
    assert.deepStrictEqual(final.output.map(({ type }) => type), ["compaction"])
  })

  it("stands for what was compacted where the client has kept it", async () => {
    const { output } = await compacted("openai")
    summarizing("openai")
    const developer = { role: "developer", content: "Be brief" }
    const input = [developer, ...history, output.at(-1), { role: "user", content: "Now?" }]
    await told("", { model: "openai/m", input, tools })
    const { messages } = farm.seen("openai")[0]!.body as { messages: ReadonlyArray<{ role: string; content: string }> }
    assert.deepStrictEqual(messages.map(({ role }) => role), ["system", "user", "user", "user", "user"])
    assert.include(messages[3]!.content, "The loop in lexer.c was found.")
    assert.strictEqual(messages[4]!.content, "Now?")
  })

  it("keeps the newest of the user's messages, without pictures", async () => {
    summarizing("openai")
    const input = [
      { role: "user", content: `first ${"a".repeat(50_000)}` },
      { role: "user", content: `second ${"b".repeat(50_000)}` },
      {
        role: "user",
        content: [{ type: "input_text", text: "Look" }, {
          type: "input_image",
          image_url: "data:image/png;base64,AAAA"
        }]
      }
    ]
    const { body } = await told("/compact", { model: "openai/m", input })
    const texts = body.output.flatMap(({ content }) => content?.map(({ text }) => text) ?? [])
    assert.lengthOf(texts, 3)
    assert.isAtMost(texts.join("").length, 80_000)
    assert.match(texts[0]!, /^first a+\n\[The rest was cut\.\]$/)
    assert.strictEqual(texts[1], `second ${"b".repeat(50_000)}`)
    assert.strictEqual(texts[2], "Look\n[input_image omitted]")
  })

  it("that was changed, or that a vendor made, is a message that it cannot be read, and is named", async () => {
    const { output } = await compacted("openai")
    const own = output.at(-1)!
    const changed = { ...own, encrypted_content: `${own.encrypted_content.slice(0, -9)}${"A".repeat(9)}` }
    for (const item of [changed, { type: "compaction", encrypted_content: "gAAAAA" }]) {
      summarizing("openai")
      const { ignored, status } = await told("", { model: "openai/m", input: ["Hi", item, "Go on"] })
      assert.strictEqual(status, 200)
      assert.strictEqual(ignored, "input[1]")
      const { messages } = farm.seen("openai")[0]!.body as {
        messages: ReadonlyArray<{ role: string; content: string }>
      }
      assert.deepStrictEqual(messages.map(({ role }) => role), ["user", "system", "user"])
      assert.include(messages[1]!.content, "cannot be read here")
    }
  })

  it("counts as one request of its key, with the tokens of both replies", async () => {
    const limits = Context.get(gateway.services, KeyLimits)
    const usedBy = async () => {
      const [usage] = await Effect.runPromise(limits.usageOf([limitedId]))
      return {
        inFlight: usage!.inFlight,
        used: usage!.windows.map(({ requests, tokens }) => ({ requests, tokens }))[0]!
      }
    }
    summarizing("openai")
    const before = await usedBy()
    const context_management = [{ type: "compaction", compact_threshold: 1 }]
    const { body, status } = await told("", { model: "openai/m", input: "Hi", context_management }, limited)
    assert.strictEqual(status, 200, JSON.stringify(body))
    await untilHolds(async () => (await usedBy()).inFlight === 0)
    const after = await usedBy()
    assert.strictEqual(after.used.requests - before.used.requests, 1)
    // The scripted server says 18 tokens a reply.
    assert.strictEqual(after.used.tokens - before.used.tokens, 36)
    assert.strictEqual(body.usage.total_tokens, 18)
    const { items } = await admin(gateway.url, "GET", "/admin/requests?limit=1")
    const [record] = items as ReadonlyArray<{ id: string; attempts: number; usage: object }>
    assert.deepInclude(record, {
      attempts: 2,
      usage: { prompt_tokens: 22, completion_tokens: 14, reasoning_tokens: 0 }
    })
    const { tries } = await admin(gateway.url, "GET", `/admin/requests/${record!.id}`)
    assert.lengthOf(tries as ReadonlyArray<object>, 2)
  })
})

const tooLong = json(400, {
  error: { code: "context_length_exceeded", message: "too long", type: "invalid_request_error" }
})

/** How a compaction fails: what the server answers, and the status and code of the caller's error. */
const failures: ReadonlyArray<readonly [about: string, answer: Answer | undefined, status: number, code: string]> = [
  ["says nothing", undefined, 503, "upstream_empty_output"],
  ["fails", json(500, { error: { message: "broken" } }), 503, "upstream_error"],
  ["finds it too long", tooLong, 400, "context_length_exceeded"]
]

describe.each(failures)("a compaction whose model %s", (_, answer, status, code) => {
  it("is an error in the style's form, and no empty compaction", async () => {
    farm.answer("openai", (request) => answer ?? said("", request))
    const management = [{ type: "compaction", compact_threshold: 1 }]
    const requests: ReadonlyArray<readonly [path: string, body: object]> = [
      ["/compact", { input: "Hi" }],
      ["", { input: ["Hi", trigger] }],
      ["", { input: ["Hi", trigger], stream: true }],
      ["", { input: "Hi", context_management: management }],
      ["", { input: "Hi", context_management: management, stream: true }]
    ]
    for (const [path, body] of requests) {
      const failed = await told(path, { model: "openai/m", ...body })
      assert.deepStrictEqual([failed.status, failed.body.error.code], [status, code], JSON.stringify(failed.body))
    }
  })
})

describe("a conversation that is too long for its model", () => {
  it("is asked about once more, with the beginnings of long results", async () => {
    farm.answer("openai", (request, index) => index === 0 ? tooLong : said("Shorter", request))
    const { body, status } = await told("/compact", { model: "openai/m", input: history, tools })
    assert.strictEqual(status, 200, JSON.stringify(body))
    const [whole, cut, ...more] = farm.seen("openai").map(sent)
    assert.isEmpty(more)
    assert.include(whole!, "code ".repeat(900))
    assert.notInclude(cut!, "code ".repeat(400))
    assert.include(cut!, "[The rest was cut.]")
  })
})

describe("a summary that was cut at its limit", () => {
  it("is used, and says so", async () => {
    const cut = {
      id: "c",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "Half of" }, finish_reason: "length" }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    }
    farm.answer("openai", () => json(200, cut))
    const { body } = await told("", { model: "openai/m", input: ["Hi", trigger] })
    summarizing("openai")
    await told("", { model: "openai/m", input: [...body.output, "Go on"] })
    assert.include(sent(farm.seen("openai")[0]), "Half of\\n[The rest was cut.]")
  })
})

describe("a request for a compaction", () => {
  it.each([
    ["that is followed by more", "", { input: [trigger, { role: "user", content: "Hi" }] }, "input[0]"],
    ["of nothing", "", { input: [trigger] }, "input"],
    ["alone, as a stream", "/compact", { input: "Hi", stream: true }, "stream"],
    ["without input", "/compact", {}, "input"],
    [
      "from no tokens on",
      "",
      { input: "Hi", context_management: [{ type: "compaction", compact_threshold: 0 }] },
      "context_management[0].compact_threshold"
    ]
  ])("%s is refused by the name of the field", async (_, path, body, param) => {
    const refused = await told(path, { model: "openai/m", ...body })
    assert.deepStrictEqual([refused.status, refused.body.error.param], [400, param])
  })

  it("in another way than by tokens is named as ignored", async () => {
    summarizing("openai")
    const context_management = [{ type: "compaction" }, { type: "clear_thinking", compact_threshold: 1 }]
    const { ignored, status } = await told("", { model: "openai/m", input: "Hi", context_management })
    assert.deepStrictEqual([status, ignored], [200, "context_management[0],context_management[1]"])
  })
})
