import Anthropic, {
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  RateLimitError,
  ServiceUnavailableError,
  UnprocessableEntityError
} from "@anthropic-ai/sdk"
import { afterEach, assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { messagesErrors } from "../../../src/contracts/messages/errors.ts"
import { Message, MessagesModel, TokenCount } from "../../../src/contracts/messages/schema.ts"
import { type ErrorCode, errorTable, gatewayError } from "../../../src/domain/GatewayError.ts"
import type { ReplyEvent } from "../../../src/domain/ReplyEvent.ts"
import * as Reply from "../../../src/domain/ReplyEvent.ts"
import { always, businessKey, type Script, scriptedStyles } from "../../support/scriptedStyles.ts"

const base = "http://gateway"
const usage = Reply.UsageReported({ promptTokens: 12, completionTokens: 9, reasoningTokens: 4, cachedTokens: 0 })
const hello: ReadonlyArray<ReplyEvent> = [
  Reply.ReasoningDelta("Hm."),
  Reply.TextDelta("Hel"),
  Reply.TextDelta("lo"),
  usage,
  Reply.Finish("stop")
]
const body = {
  model: "msgcompat-haiku-4-5",
  max_tokens: 10,
  messages: [{ role: "user" as const, content: "Hi" }]
}

let styles: ReturnType<typeof scriptedStyles> | undefined
afterEach(() => styles?.dispose())

const serve = (script: Script) => {
  styles = scriptedStyles(script)
  return styles
}

const clientOf = ({ fetch }: ReturnType<typeof scriptedStyles>, options: { readonly apiKey?: string } = {}) =>
  new Anthropic({ baseURL: base, apiKey: businessKey, maxRetries: 0, logLevel: "off", ...options, fetch })

const errorOf = async (response: Response) => Schema.decodeUnknownSync(messagesErrors.body)(await response.json())

const post = (
  { fetch }: ReturnType<typeof scriptedStyles>,
  path: string,
  sent: unknown,
  headers: Record<string, string> = { "x-api-key": businessKey }
) => fetch(`${base}${path}`, { method: "POST", headers, body: JSON.stringify(sent) })

describe("the messages endpoints", () => {
  it.each(["/msgcompat/v1/messages", "/v1/messages", "/messages"])("answer at %s", async (path) => {
    const running = serve(always(hello))
    const response = await post(running, path, body)
    assert.strictEqual(response.status, 200)
    const message = Schema.decodeUnknownSync(Message)(await response.json())
    assert.deepInclude(message, {
      id: "msg_session-1",
      type: "message",
      role: "assistant",
      model: "msgcompat-haiku-4-5",
      content: [{ type: "text", text: "Hello", citations: null }],
      stop_reason: "end_turn",
      stop_sequence: null
    })
    assert.strictEqual(running.inputs[0]?.model.id, "upstream-chat")
  })

  it.each(["/msgcompat/v1/messages/count_tokens", "/v1/messages/count_tokens", "/messages/count_tokens"])(
    "count tokens at %s, without a completion",
    async (path) => {
      const running = serve(always(hello))
      const response = await post(running, path, { model: body.model, messages: body.messages })
      const counted = Schema.decodeUnknownSync(TokenCount)(await response.json(), { onExcessProperty: "error" })
      assert.isAbove(counted.input_tokens, 0)
      assert.isEmpty(running.inputs)
    }
  )

  it.each<Record<string, string>>([
    { "x-api-key": businessKey },
    { authorization: `Bearer ${businessKey}` },
    { "x-api-key": businessKey, "msgcompat-version": "2023-06-01" },
    { "x-api-key": businessKey, "anthropic-version": "2023-06-01", "anthropic-beta": "some-beta" }
  ])("take the headers %j", async (headers) => {
    const response = await post(serve(always(hello)), "/v1/messages", body, headers)
    assert.strictEqual(response.status, 200)
  })

  it.each([
    ["msgcompat-opus-4-6", "upstream-reasoner"],
    ["claude-sonnet-9-9", "upstream-chat"],
    ["upstream-reasoner-search", "upstream-reasoner-search"]
  ])("ask for %s as %s", async (requested, vendorFields) => {
    const running = serve(always(hello))
    const message = await clientOf(running).messages.create({ ...body, model: requested })
    assert.strictEqual(message.model, requested)
    assert.strictEqual(running.inputs[0]?.model.id, vendorFields)
  })

  it("stream through the vendor's SDK what they send without a stream", async () => {
    const client = clientOf(serve(always(hello)))
    const request = { ...body, model: "msgcompat-opus-4-6" }
    const whole = await client.messages.create(request)
    const thinking: Array<string> = []
    const texts: Array<string> = []
    const stream = client.messages.stream(request)
      .on("thinking", (delta) => thinking.push(delta))
      .on("text", (delta) => texts.push(delta))
    const final = await stream.finalMessage()
    assert.deepStrictEqual(thinking, ["Hm."])
    assert.deepStrictEqual(texts, ["Hel", "lo"])
    assert.deepStrictEqual(JSON.parse(JSON.stringify(final.content)), whole.content)
    assert.deepStrictEqual(final.usage, whole.usage)
    assert.isString(stream.request_id)
  })

  it("estimate the input in message_start and give the upstream's figure at the end", async () => {
    const running = serve(always(hello))
    const counted = await clientOf(running).messages.countTokens({ model: body.model, messages: body.messages })
    const inputs: Array<number | null> = []
    for await (const event of await clientOf(running).messages.create({ ...body, stream: true })) {
      if (event.type === "message_start") inputs.push(event.message.usage.input_tokens)
      if (event.type === "message_delta") inputs.push(event.usage.input_tokens)
    }
    assert.deepStrictEqual(inputs, [counted.input_tokens, 12])
  })

  const failures = [
    ["invalid_request", BadRequestError],
    ["context_length_exceeded", BadRequestError],
    ["content_filter", BadRequestError],
    ["authentication_failed", AuthenticationError],
    ["tool_choice_violation", UnprocessableEntityError],
    ["rate_limit_exceeded", RateLimitError],
    ["upstream_error", ServiceUnavailableError],
    ["no_account_available", ServiceUnavailableError]
  ] as const satisfies ReadonlyArray<readonly [ErrorCode, unknown]>

  it.each(failures)("fail with %s as the SDK's own error, streamed or not", async (code, errorClass) => {
    const client = clientOf(serve(() => Effect.fail(gatewayError(code, "It failed", { retryAfter: 3 }))))
    const failed = async (stream: boolean) => {
      const error: unknown = await client.messages.create({ ...body, stream }).catch((error: unknown) => error)
      assert.instanceOf(error, APIError)
      return error
    }
    for (const stream of [false, true]) {
      const error = await failed(stream)
      assert.isTrue(error instanceof errorClass, error.constructor.name)
      assert.strictEqual(error.apiMessage, "It failed")
      assert.deepStrictEqual<unknown>(error.error, {
        type: "error",
        error: { type: errorTable[code].type, message: "It failed", code, param: null },
        request_id: error.requestID
      })
      assert.strictEqual(error.headers?.get("retry-after"), "3")
    }
  })

  it.each(
    [
      ["request_too_large", 413, "request_too_large"],
      ["model_not_found", 404, "not_found_error"],
      ["not_found", 404, "not_found_error"]
    ] as const
  )("have the vendor's type for %s, streamed or not", async (code, status, type) => {
    const running = serve(() => Effect.fail(gatewayError(code, "It failed")))
    for (const stream of [false, true]) {
      const reply = await post(running, "/v1/messages", { ...body, stream })
      assert.strictEqual(reply.status, status)
      assert.deepInclude((await errorOf(reply)).error, { type, code })
    }
  })

  it("report a failure after the first frame in the stream", async () => {
    const client = clientOf(serve(() =>
      Effect.succeed(
        Stream.concat(Stream.fromIterable(hello.slice(0, 2)), Stream.fail(gatewayError("upstream_timeout", "Silent")))
      )
    ))
    const seen: Array<string> = []
    const read = async () => {
      for await (const event of await client.messages.create({ ...body, stream: true })) seen.push(event.type)
    }
    const error: unknown = await read().catch((error: unknown) => error)
    assert.deepStrictEqual(seen, ["message_start", "content_block_start", "content_block_delta"])
    assert.instanceOf(error, APIError)
    assert.strictEqual(error.type, "service_unavailable_error")
  })

  it("stop the completion when the client goes away", async () => {
    const left = Deferred.makeUnsafe<void>()
    const client = clientOf(serve(() =>
      Effect.as(
        Effect.addFinalizer(() => Deferred.succeed(left, undefined)),
        Stream.concat(Stream.fromIterable(hello.slice(0, 2)), Stream.never)
      )
    ))
    const stream = client.messages.stream(body)
    stream.on("text", () => stream.abort())
    const error: unknown = await stream.finalMessage().catch((error: unknown) => error)
    assert.instanceOf(error, APIUserAbortError)
    await Effect.runPromise(Deferred.await(left))
  })

  it("refuse callers without a credential before they look at the body", async () => {
    const response = await post(serve(always(hello)), "/v1/messages", "no body", {})
    assert.strictEqual(response.status, 401)
    const failure = await errorOf(response)
    assert.deepInclude(failure.error, { type: "authentication_error", code: "authentication_failed", param: null })
    assert.strictEqual(failure.request_id, response.headers.get("request-id"))
  })

  it("name the field of a malformed body, and the model that does not exist", async () => {
    const running = serve(always(hello))
    const faulty = await errorOf(await post(running, "/v1/messages", { ...body, max_tokens: "many" }))
    assert.deepInclude(faulty.error, { type: "invalid_request_error", code: "invalid_request", param: "max_tokens" })
    const unknown = await post(running, "/v1/messages", { ...body, model: "zork" })
    assert.strictEqual(unknown.status, 404)
    assert.deepInclude((await errorOf(unknown)).error, {
      type: "not_found_error",
      code: "model_not_found",
      param: "model"
    })
    assert.strictEqual(unknown.headers.get("x-should-retry"), "false")
  })
})

describe("the messages models", () => {
  it("are listed in order, with the fields of the spec and of the vendor", async () => {
    const { fetch } = serve(always(hello))
    const client = new Anthropic({ baseURL: `${base}/msgcompat`, apiKey: "none", maxRetries: 0, fetch })
    const page = await client.models.list()
    assert.deepStrictEqual(page.data.slice(0, 3).map((model) => model.id), [
      "msgcompat-opus-4-6",
      "msgcompat-sonnet-4-5",
      "msgcompat-haiku-4-5"
    ])
    assert.strictEqual(page.data.length, 22)
    assert.deepInclude(page, {
      first_id: "msgcompat-opus-4-6",
      last_id: "msgcompat-3-haiku-20240307",
      has_more: false
    })
    assert.deepStrictEqual<unknown>(page.data[0], {
      id: "msgcompat-opus-4-6",
      object: "model",
      type: "model",
      created: 1_735_689_600,
      created_at: "2025-01-01T00:00:00Z",
      owned_by: "anthropic",
      display_name: "Msgcompat Opus 4.6",
      lifecycle: "active",
      line: "opus",
      capabilities: null,
      deprecated_at: null,
      retires_at: null,
      max_input_tokens: null,
      max_tokens: null
    })
  })

  it.each(["msgcompat-3-5-haiku-latest", "claude-opus-4-1", "upstream-chat"])("are found by name: %s", async (id) => {
    const { fetch } = serve(always(hello))
    const response = await fetch(`${base}/msgcompat/v1/models/${id}`)
    assert.strictEqual(response.status, 200)
    const model = Schema.decodeUnknownSync(MessagesModel)(await response.json())
    assert.strictEqual(model.id, id)
  })

  it("are a 404 where nothing has the name", async () => {
    const { fetch } = serve(always(hello))
    const response = await fetch(`${base}/msgcompat/v1/models/zork`)
    assert.strictEqual(response.status, 404)
    assert.deepInclude((await errorOf(response)).error, {
      type: "not_found_error",
      code: "model_not_found",
      param: "id"
    })
  })
})
