/** A reply that the caller gets as a whole is asked for as a whole, and read by one parse. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { adminKey, businessKey, type GatewayOptions, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { type Answer, json, type SeenRequest } from "../support/openaiServer.ts"
import { assertSame } from "../support/sameReply.ts"
import { styleClients, type StyleName, styleNames } from "../support/styleClients.ts"
import type { MatrixDriver, MatrixServer } from "./matrix/driver.ts"
import { generate } from "./matrix/generate.ts"
import { messages } from "./matrix/messages.ts"
import { openai } from "./matrix/openai.ts"
import { sharedReplies } from "./matrix/replies.ts"
import { responses } from "./matrix/responses.ts"

const drivers: ReadonlyArray<MatrixDriver> = [openai, responses, messages, generate]

let stops: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const stop of stops.reverse()) await stop()
  stops = []
})

const start = async (
  driver: MatrixDriver,
  upstream: RawConfig = {},
  rest: RawConfig = {},
  options: GatewayOptions = {}
) => {
  const matrix = await driver.start()
  stops.push(matrix.server.stop)
  const gateway = await startGateway({
    accounts: [{ token: "sk-1" }, { token: "sk-2" }],
    upstream: { driver: driver.name, base_url: matrix.address, models: driver.models, ...upstream },
    ...rest
  }, options)
  stops.push(gateway.stop)
  return { ...matrix, gateway }
}

const isAskedWhole = ({ body, path }: SeenRequest): boolean =>
  path.includes("enerateContent") ? path.includes(":generateContent") : body["stream"] === false

/** Answers as it is asked. */
const answering = ({ server }: MatrixServer, driver: MatrixDriver, text = "Hello") =>
  server.answer((request) => driver.write([{ _tag: "Text", text }], "stop", !isAskedWhole(request)))

const forms = ({ server }: MatrixServer) =>
  server.requests.map((request) => isAskedWhole(request) ? "whole" : "streamed")

/** The same request in each style, with the most tokens of output and with thinking. */
const requests: Readonly<Record<StyleName, (most: number | undefined, thinks: boolean) => readonly [string, object]>> =
  {
    chat: (most, thinks) => ["/v1/chat/completions", {
      model: "upstream-chat",
      messages: [{ role: "user", content: "Hi" }],
      ...(most === undefined ? {} : { max_completion_tokens: most }),
      ...(thinks ? { reasoning_effort: "high" } : {})
    }],
    responses: (most, thinks) => ["/v1/responses", {
      model: "upstream-chat",
      input: "Hi",
      ...(most === undefined ? {} : { max_output_tokens: most }),
      ...(thinks ? { reasoning: { effort: "high" } } : {})
    }],
    messages: (most = 100, thinks) => ["/v1/messages", {
      model: "upstream-chat",
      messages: [{ role: "user", content: "Hi" }],
      max_tokens: most,
      ...(thinks ? { thinking: { type: "enabled", budget_tokens: 1_024 } } : {})
    }],
    generate: (most, thinks) => ["/v1beta/models/upstream-chat:generateContent", {
      contents: [{ role: "user", parts: [{ text: "Hi" }] }],
      generationConfig: {
        ...(most === undefined ? {} : { maxOutputTokens: most }),
        ...(thinks ? { thinkingConfig: { thinkingBudget: 1_024 } } : {})
      }
    }]
  }

const post = (gateway: RunningGateway, [path, body]: readonly [string, object], signal?: AbortSignal) =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal })
  })

const ask = async (gateway: RunningGateway, request: readonly [string, object] = requests.chat(undefined, false)) => {
  const response = await post(gateway, request)
  const text = await response.text()
  assert.strictEqual(response.status, 200, text)
  return text
}

describe.each(drivers.map((driver) => [driver.name, driver] as const))("of a server of the driver %s", (_, driver) => {
  it.each(styleNames)(
    "is asked for as a whole for a caller of the style %s, and a streamed one as a stream",
    async (style) => {
      const matrix = await start(driver)
      const clients = styleClients(matrix.gateway.url)
      for (const { ask, ends, name, shown, written } of sharedReplies) {
        matrix.server.answer((request) => driver.write(written, ends, !isAskedWhole(request)))
        await assertSame(clients, { content: "Go", ...ask }, shown ?? { pieces: written, finish: ends }, [style])
        // One of these requests has thinking, which is asked for as a stream.
        const expected = new Set(forms(matrix))
        assert.isTrue(expected.has("streamed"), name)
        if (ask?.reasoner !== true) assert.isTrue(expected.has("whole"), name)
      }
    }
  )

  it("is asked for as a stream where the caller allows much output, or thinking", async () => {
    const matrix = await start(driver)
    answering(matrix, driver)
    for (const style of styleNames) {
      const { length } = matrix.server.requests
      await ask(matrix.gateway, requests[style](8_192, false))
      await ask(matrix.gateway, requests[style](8_193, false))
      await ask(matrix.gateway, requests[style](16_000, true))
      assert.deepStrictEqual(forms(matrix).slice(length), ["whole", "streamed", "streamed"], style)
    }
  })

  it("is asked for as a stream with that setting", async () => {
    const matrix = await start(driver, { whole_replies: "streamed" })
    answering(matrix, driver)
    assert.include(await ask(matrix.gateway), "Hello")
    assert.deepStrictEqual(forms(matrix), ["streamed"])
  })

  it("is recorded as it came", async () => {
    const matrix = await start(driver)
    answering(matrix, driver, "Kept as it came")
    await ask(matrix.gateway)
    const admin = async (path: string) =>
      (await fetch(matrix.gateway.url + path, { headers: { authorization: `Bearer ${adminKey}` } })).json()
    const { items } = await admin("/admin/requests") as { readonly items: ReadonlyArray<{ readonly id: string }> }
    assert.include(JSON.stringify(await admin(`/admin/requests/${items[0]!.id}`)), "Kept as it came")
    assert.include(JSON.stringify(await admin("/admin/dev/captures")), "Kept as it came")
  })

  it("stops when the caller leaves", async () => {
    const matrix = await start(driver)
    matrix.server.answer(() => ({ headless: true, after: "hang" }))
    const leaving = new AbortController()
    const left = post(matrix.gateway, requests.chat(undefined, false), leaving.signal).then(
      () => "answered",
      () => "left"
    )
    await matrix.server.until(({ length }) => length === 1)
    leaving.abort()
    assert.strictEqual(await left, "left")
    await matrix.server.until(([request]) => request?.outcome === "aborted")
  })
})

describe("a server that is slow", () => {
  const clock = makeMovedClock({ still: true })
  const patience = 10
  const timeouts = { first_byte: patience, attempts: 8 * patience }
  const one = { accounts: [{ token: "sk-1" }] }

  it("is asked for whole replies after long streams", async () => {
    const matrix = await start(openai, { timeouts }, one, { clock })
    const held = Promise.withResolvers<void>()
    const streamed = openai.write([{ _tag: "Text", text: "Hello" }], "stop", true)
    matrix.server.answer((_, index): Answer =>
      index === 0
        ? { ...streamed, pieces: [held.promise, ...streamed.pieces ?? []] }
        : openai.write([{ _tag: "Text", text: "Hello" }], "stop", false)
    )
    const [path, body] = requests.chat(undefined, false)
    const first = ask(matrix.gateway, [path, { ...body, stream: true }])
    await matrix.server.until(({ length }) => length === 1)
    clock.move(0.6 * patience * 1_000)
    held.resolve()
    await first
    await ask(matrix.gateway)
    assert.deepStrictEqual(forms(matrix), ["streamed", "whole"])
  })

  it("is asked for streams for an hour after a long whole reply", async () => {
    const matrix = await start(openai, { timeouts }, one, { clock })
    const held = Promise.withResolvers<void>()
    const whole = openai.write([{ _tag: "Text", text: "Hello" }], "stop", false)
    matrix.server.answer((request, index): Answer =>
      index === 0
        ? { ...whole, pieces: [held.promise, ...whole.pieces ?? []] }
        : openai.write([{ _tag: "Text", text: "Hello" }], "stop", !isAskedWhole(request))
    )
    const first = ask(matrix.gateway)
    await matrix.server.until(({ length }) => length === 1)
    clock.move(0.6 * patience * 1_000)
    held.resolve()
    await first
    await ask(matrix.gateway)
    clock.move(3_600_000)
    await ask(matrix.gateway)
    assert.deepStrictEqual(forms(matrix), ["whole", "streamed", "whole"])
  })

  it("is given up when it has to have begun, and the next attempt asks for a stream", async () => {
    const matrix = await start(openai, { timeouts }, one, { clock })
    matrix.server.answer((request): Answer =>
      isAskedWhole(request)
        ? { headless: true, after: "hang" }
        : openai.write([{ _tag: "Text", text: "Hello" }], "stop", true)
    )
    const asking = ask(matrix.gateway)
    await matrix.server.until(({ length }) => length === 1)
    clock.move(patience * 1_000)
    assert.include(await asking, "Hello")
    assert.deepStrictEqual(forms(matrix), ["whole", "streamed"])
  })
})

describe("a proxy that ends silent connections", () => {
  it("gets the next attempt as a stream", async () => {
    const matrix = await start(openai, {}, { accounts: [{ token: "sk-1" }] })
    matrix.server.answer((request): Answer =>
      isAskedWhole(request)
        ? { status: 504, headers: { "content-type": "text/html" }, pieces: ["<html>Gateway Time-out</html>"] }
        : openai.write([{ _tag: "Text", text: "Hello" }], "stop", true)
    )
    assert.include(await ask(matrix.gateway), "Hello")
    assert.deepStrictEqual(forms(matrix), ["whole", "streamed"])
  })
})

describe("a large whole reply", () => {
  it("ends by length at the limit of a reply's characters", async () => {
    const matrix = await start(openai, {}, { limits: { reply_chars: 64 * 1024 } })
    answering(matrix, openai, "x".repeat(80_000))
    const { choices } = JSON.parse(await ask(matrix.gateway)) as {
      readonly choices: ReadonlyArray<
        { readonly finish_reason: string; readonly message: { readonly content: string } }
      >
    }
    assert.strictEqual(choices[0]?.finish_reason, "length")
    assert.lengthOf(choices[0]?.message.content ?? "", 64 * 1024)
  })

  it("counts towards the memory of all requests while it arrives", async () => {
    const MiB = 1024 * 1024
    const matrix = await start(openai, {}, { limits: { buffered_bytes: 64 * MiB } })
    // Two of them are more than the gateway may keep of all replies. Neither ends.
    const piece = "x".repeat(4 * MiB)
    matrix.server.answer(() => ({
      ...json(200, ""),
      pieces: [`{"choices":[{"message":{"content":"`, ...Array.from({ length: 10 }, () => piece)],
      after: "hang"
    }))
    const leaving = new AbortController()
    const asking = [1, 2].map(() => post(matrix.gateway, requests.chat(undefined, false), leaving.signal))
    const refused = await Promise.race(asking)
    assert.strictEqual(refused.status, 503)
    assert.include(await refused.text(), "keeps of all replies")
    leaving.abort()
    await Promise.allSettled(asking)
    answering(matrix, openai)
    assert.include(await ask(matrix.gateway), "Hello")
  })
})

describe("fields that only a whole reply has", () => {
  it("reach a caller of the same contract", async () => {
    const matrix = await start(openai)
    const message = {
      role: "assistant",
      content: "Hello",
      refusal: null,
      annotations: [{
        type: "url_citation",
        url_citation: { start_index: 0, end_index: 5, title: "T", url: "https://x.test" }
      }],
      audio: { id: "audio_1", data: "aGk=", expires_at: 9, transcript: "Hello" },
      provider_note: { kept: true }
    }
    const logprobs = { content: [{ token: "Hello", logprob: -0.1, bytes: [72], top_logprobs: [] }], refusal: null }
    matrix.server.answer(() =>
      json(200, {
        id: "chatcmpl-1",
        object: "chat.completion",
        created: 1,
        model: "m",
        service_tier: "default",
        system_fingerprint: "fp_1",
        choices: [{
          index: 0,
          message,
          logprobs,
          finish_reason: "stop",
          content_filter_results: { hate: { filtered: false } }
        }],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, prompt_tokens_details: { cached_tokens: 1 } },
        prompt_filter_results: [{ prompt_index: 0 }]
      })
    )
    const reply = JSON.parse(await ask(matrix.gateway)) as {
      readonly choices: ReadonlyArray<Readonly<Record<string, unknown>>>
      readonly [field: string]: unknown
    }
    assert.deepInclude(reply, {
      service_tier: "default",
      system_fingerprint: "fp_1",
      prompt_filter_results: [{ prompt_index: 0 }]
    })
    assert.deepInclude(reply.choices[0], { logprobs, content_filter_results: { hate: { filtered: false } } })
    const { annotations, audio, content, provider_note } = message
    assert.deepInclude(reply.choices[0]?.["message"], { annotations, audio, content, provider_note })
  })
})
