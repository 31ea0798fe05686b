import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { classify } from "../../src/domain/classifyUpstreamFailure.ts"
import type { FailureClass } from "../../src/domain/FailureClass.ts"
import {
  type AccountHealth,
  type FailureContext,
  plainContext,
  type Retry,
  rules
} from "../../src/domain/failureRules.ts"
import type { ErrorCode } from "../../src/domain/GatewayError.ts"
import { UpstreamFailure } from "../../src/domain/UpstreamFailure.ts"

type Facts = ConstructorParameters<typeof UpstreamFailure>[0]

const managed: FailureContext = { ...plainContext, mayRefresh: true }
const refreshed: FailureContext = { ...managed, mayRefresh: false }
const direct: FailureContext = { ...plainContext, direct: true }

const of = (facts: Partial<Facts>): UpstreamFailure =>
  new UpstreamFailure({ phase: "completion", kind: "refused", ...facts })

type Row = readonly [
  about: string,
  facts: Partial<Facts>,
  class_: FailureClass,
  retry: Retry,
  health: AccountHealth,
  code: ErrorCode,
  status: number
]

const trouble = (about: string, facts: Partial<Facts>): Row => [
  about,
  facts,
  "upstream_trouble",
  "elsewhere",
  "none",
  "upstream_error",
  503
]
const refresh = (about: string, facts: Partial<Facts>): Row => [
  about,
  facts,
  "token_refused",
  "here_after_refresh",
  "token_expired",
  "no_account_available",
  503
]
const limited = (about: string, facts: Partial<Facts>): Row => [
  about,
  facts,
  "rate_limited",
  "elsewhere",
  "rate_limited",
  "upstream_rate_limited",
  429
]
const tooLong = (about: string, facts: Partial<Facts>): Row => [
  about,
  facts,
  "prompt_too_long",
  "no",
  "none",
  "context_length_exceeded",
  400
]
const mistake = (about: string, facts: Partial<Facts>): Row => [
  about,
  facts,
  "caller_mistake",
  "no",
  "none",
  "invalid_request",
  400
]
const badLogin = (about: string, facts: Partial<Facts>): Row => [
  about,
  { phase: "login", ...facts },
  "login_refused",
  "elsewhere",
  "refused_login",
  "no_account_available",
  503
]

const table: ReadonlyArray<Row> = [
  // The session protocol's envelope.
  refresh("no token", { refusal: "token" }),
  refresh("token invalid", { refusal: "token", phase: "session" }),
  refresh("token expired", { refusal: "token", status: 401, phase: "resume" }),
  refresh("401 without an envelope", { kind: "malformed", status: 401 }),
  limited("too many requests", { refusal: "rate" }),
  limited("429 with a page", { kind: "malformed", status: 429 }),
  limited("429 without a body", { kind: "empty", status: 429, phase: "login" }),
  trouble("another code", { refusal: "other", status: 400 }),
  trouble("another code that reads like a mistake", { refusal: "other", status: 422, message: "context length" }),
  badLogin("wrong credentials", { refusal: "login" }),
  badLogin("a source of a credential without a token", { refusal: "source" }),
  badLogin("a login that is not let in", { status: 403 }),
  badLogin("a fixed token that cannot be renewed", { refusal: "token" }),
  [
    "a suspended account",
    { phase: "login", refusal: "suspended" },
    "account_suspended",
    "elsewhere",
    "suspended",
    "no_account_available",
    503
  ],
  ["no such session", { refusal: "lost_session" }, "session_gone", "elsewhere", "none", "upstream_error", 503],
  [
    "too many completions running",
    { refusal: "busy" },
    "account_busy",
    "elsewhere",
    "busy",
    "upstream_rate_limited",
    429
  ],
  ["an overloaded server", { status: 529 }, "overloaded", "elsewhere", "busy", "upstream_rate_limited", 429],
  [
    "an overloaded server within a stream",
    { phase: "stream", reason: "overloaded_error" },
    "overloaded",
    "elsewhere",
    "busy",
    "upstream_rate_limited",
    429
  ],
  tooLong("prompt too long", { refusal: "length", status: 400 }),
  // Responses that are not replies.
  trouble("a page", { kind: "malformed", status: 502 }),
  trouble("an empty body", { kind: "empty", status: 200 }),
  trouble("a broken event", { kind: "malformed", phase: "stream" }),
  [
    "an empty reply",
    { kind: "empty", phase: "stream" },
    "empty_reply",
    "elsewhere",
    "none",
    "upstream_empty_output",
    503
  ],
  ["a time limit", { kind: "timeout", phase: "stream" }, "timed_out", "elsewhere", "none", "upstream_timeout", 503],
  [
    "a connection that takes too long",
    { kind: "timeout", cause: { code: "UND_ERR_CONNECT_TIMEOUT" } },
    "timed_out",
    "no",
    "none",
    "upstream_timeout",
    503
  ],
  [
    "the request's own time",
    { kind: "overdue", phase: "stream" },
    "overdue",
    "no",
    "none",
    "upstream_timeout",
    503
  ],
  ["too many calls", { kind: "exhausted", phase: "resume" }, "exhausted", "no", "none", "upstream_error", 503],
  ["the gateway's own stop", { kind: "shutting_down" }, "shutting_down", "no", "none", "shutting_down", 503],
  [
    "a gateway's time-out",
    { kind: "malformed", status: 504 },
    "timed_out",
    "elsewhere",
    "none",
    "upstream_timeout",
    503
  ],
  ["a broken connection", { kind: "transport" }, "unreachable", "elsewhere", "none", "upstream_error", 503],
  [
    "a failed proxy of an account",
    { kind: "transport", phase: "login", cause: { code: "UND_ERR_PRX_AUTH", proxy: { of: "account", address: "" } } },
    "proxy_failed",
    "elsewhere",
    "refused_login",
    "upstream_error",
    503
  ],
  [
    "a failed proxy of the upstream",
    { kind: "transport", cause: { code: "UND_ERR_PRX_AUTH", proxy: { of: "upstream", address: "" } } },
    "unreachable",
    "elsewhere",
    "none",
    "upstream_error",
    503
  ],
  [
    "a reply that was cut off",
    { kind: "truncated", phase: "resume" },
    "cut_off",
    "elsewhere",
    "none",
    "upstream_error",
    503
  ],
  [
    "a reply that disagrees",
    { kind: "disagrees", phase: "resume" },
    "disagreement",
    "elsewhere",
    "none",
    "upstream_error",
    503
  ],
  ["a withdrawn reply", { kind: "withdrawn", phase: "stream" }, "withdrawn", "no", "none", "content_filter", 400],
  // Hints and final statuses.
  limited("a hint of a rate limit", { kind: "gave_up", phase: "stream", reason: "rate_limit_reached" }),
  tooLong("a hint of a long prompt", { kind: "gave_up", phase: "stream", reason: "input_exceeds_limit" }),
  trouble("another hint", { kind: "gave_up", phase: "stream", reason: "other" }),
  trouble("status ERROR", { kind: "gave_up", phase: "stream", reason: "ERROR" }),
  // Servers with JSON errors instead of an envelope.
  refresh("a refused key", { status: 401, reason: "invalid_api_key" }),
  refresh("a refused key, told with 400", { status: 400, reason: "API_KEY_INVALID" }),
  limited("429", { status: 429, reason: "rate_limit_exceeded" }),
  limited("an overload told in a stream", { phase: "stream", reason: "rate_limit_error" }),
  [
    "no quota",
    { status: 429, reason: "insufficient_quota" },
    "quota_exhausted",
    "elsewhere",
    "rate_limited",
    "upstream_rate_limited",
    429
  ],
  ["payment required", { status: 402 }, "quota_exhausted", "elsewhere", "rate_limited", "upstream_rate_limited", 429],
  [
    "a closed account",
    { status: 403, reason: "account_deactivated" },
    "account_suspended",
    "elsewhere",
    "suspended",
    "no_account_available",
    503
  ],
  ["not permitted", { status: 403 }, "forbidden", "elsewhere", "none", "upstream_error", 503],
  tooLong("a long prompt by its code", { status: 400, reason: "context_length_exceeded" }),
  tooLong("a long prompt in vLLM's words", {
    status: 400,
    message: "This model's maximum context length is 4096 tokens."
  }),
  tooLong("a long prompt in llama.cpp's words", {
    status: 500,
    message: "the request exceeds the available context size, try increasing it"
  }),
  tooLong("a long prompt in Ollama's words", { status: 400, message: "input length exceeds maximum context length" }),
  ...[
    "Input is too long for requested model.",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens).",
    "The input token count (1048580) exceeds the maximum number of tokens allowed (1048575).",
    "Your input exceeds the context window of this model.",
    "`inputs` must have less than 1024 tokens. Given: 2000"
  ].map((message) => tooLong(`a long prompt in words such as: ${message}`, { status: 400, message })),
  ["a filtered prompt", { status: 400, reason: "content_filter" }, "withdrawn", "no", "none", "content_filter", 400],
  mistake("400", { status: 400, message: "temperature must be at most 2" }),
  mistake("422", { status: 422 }),
  [
    "500 for a picture that llama.cpp's model cannot see",
    {
      status: 500,
      reason: "server_error",
      message: "InternalServerError: image input is not supported - hint: you may need to provide the mmproj"
    },
    "caller_mistake",
    "no",
    "none",
    "invalid_request",
    400
  ],
  [
    "500 for a schema that Ollama cannot read",
    { status: 500, reason: "api_error", message: "invalid JSON schema in format" },
    "caller_mistake",
    "no",
    "none",
    "invalid_request",
    400
  ],
  trouble("500 that repeats such words", { status: 500, message: "failed: invalid JSON schema" }),
  ["415", { status: 415 }, "caller_mistake", "no", "none", "unsupported_media_type", 415],
  ["too large a request", { status: 413 }, "request_too_large", "no", "none", "request_too_large", 413],
  [
    "no such model",
    { status: 404, reason: "model_not_found" },
    "model_unavailable",
    "no",
    "none",
    "model_not_found",
    400
  ],
  [
    "no such model, in words",
    { status: 404, message: "The model `x` does not exist." },
    "model_unavailable",
    "no",
    "none",
    "model_not_found",
    400
  ],
  [
    "a key that is asked for where there is none",
    { status: 401, anonymous: true },
    "key_missing",
    "elsewhere",
    "refused_login",
    "no_account_available",
    503
  ],
  [
    "no such model on Azure",
    { status: 404, reason: "DeploymentNotFound" },
    "model_unavailable",
    "no",
    "none",
    "model_not_found",
    400
  ],
  [
    "no such model by vLLM's type",
    { status: 404, reason: "NotFoundError" },
    "model_unavailable",
    "no",
    "none",
    "model_not_found",
    400
  ],
  [
    "no such model, with 400",
    { status: 400, reason: "invalid_model" },
    "model_unavailable",
    "no",
    "none",
    "model_not_found",
    400
  ],
  [
    "llama.cpp's unknown path",
    { status: 404, reason: "not_found_error", message: "File Not Found" },
    "endpoint_missing",
    "no",
    "none",
    "upstream_error",
    503
  ],
  ["no such route", { status: 404, message: "Not Found" }, "endpoint_missing", "no", "none", "upstream_error", 503],
  ["another method", { status: 405 }, "endpoint_missing", "no", "none", "upstream_error", 503],
  ["a server's own time-out", { status: 408 }, "timed_out", "elsewhere", "none", "upstream_timeout", 503],
  trouble("409", { status: 409 }),
  trouble("500", { status: 500 }),
  trouble("503", { status: 503, reason: "overloaded" }),
  trouble("a page with 404", { kind: "malformed", status: 404 })
]

describe("classify", () => {
  for (const [about, facts, class_, retry, health, code, status] of table) {
    it(`${about} is ${class_}`, () => {
      const judged = classify(of(facts), managed)
      assert.deepStrictEqual(
        [judged.class, judged.retry, judged.health, judged.error.code, judged.error.status],
        [class_, retry, health, code, status]
      )
    })
  }

  it("calls a retry pointless at a wrong address, for any token", () => {
    for (const facts of [{ status: 404, message: "Not Found" }, { status: 405 }]) {
      for (const context of [managed, direct]) assert.isFalse(classify(of(facts), context).error.shouldRetry)
    }
    assert.isTrue(classify(of({ status: 500 }), managed).error.shouldRetry)
  })

  it("is tested for every rule that can apply to a managed account", () => {
    const met = new Set(table.map(([, facts]) => rules.find((rule) => rule.when(of(facts), managed))))
    const unmet = rules.filter((rule) => !met.has(rule) && rule.when.length < 2)
    assert.deepStrictEqual(unmet.filter((rule) => rule.class !== "token_refused"), [])
  })

  it("treats a token that is refused after its refresh as a failed login", () => {
    const judged = classify(of({ refusal: "token" }), refreshed)
    assert.deepStrictEqual([judged.retry, judged.health, judged.error.status], ["elsewhere", "refused_login", 503])
  })

  it("retries no timeout at a lone server: it still works on the request, or takes no connection", () => {
    const alone = { ...managed, alone: true }
    const retries = [
      { kind: "timeout" },
      { status: 504 },
      { kind: "timeout", cause: { code: "UND_ERR_CONNECT_TIMEOUT" } },
      { kind: "transport" }
    ].map((facts) => classify(of(facts as Partial<Facts>), alone).retry)
    assert.deepStrictEqual(retries, ["no", "no", "no", "elsewhere"])
  })

  it("tells callers when to retry at a server that cannot be reached, and with a refused account", () => {
    const waits = [
      { kind: "timeout", cause: { code: "UND_ERR_CONNECT_TIMEOUT" } },
      { kind: "transport", cause: { code: "ECONNREFUSED" } },
      { kind: "transport" },
      { kind: "timeout" },
      { status: 500 },
      { status: 401 },
      { status: 401, retryAfter: 7 }
    ].map((facts) => classify(of(facts as Partial<Facts>), managed).error.retryAfter)
    assert.deepStrictEqual(waits, [5, 5, 5, undefined, undefined, 5, 7])
  })

  it("answers 401 to a caller whose own token is refused", () => {
    for (const facts of [{ refusal: "token" as const }, { status: 401 }, { status: 403 }]) {
      const judged = classify(of(facts), direct)
      assert.deepStrictEqual([judged.retry, judged.error.code], ["no", "authentication_failed"])
    }
  })

  it("tells a caller with no key apart from one whose own login is refused", () => {
    const told = (hasKey: boolean) =>
      classify(of({ status: 401 }), { ...direct, hasKey, upstream: "one" }).error.message
    assert.match(told(false), /^The credential is no key of this gateway, and the upstream "one" refused it as a token/)
    assert.match(told(true), /^The upstream "one" refused your own token/)
  })

  it("names the only upstream where its connection fails, and nowhere else", () => {
    const told = (facts: Partial<Facts>) => classify(of(facts), { ...managed, only: "default" }).error.message
    assert.strictEqual(
      told({ kind: "transport" }),
      "The connection to the upstream \"default\" failed. Retry later, or ask the gateway's operator."
    )
    assert.notInclude(told({ status: 500 }), "default")
  })

  it("does not retry with a caller's own token or after a frame was shown, and reports no health of a direct token", () => {
    for (const [, facts] of table) {
      assert.strictEqual(classify(of(facts), { ...managed, shown: true }).retry, "no")
      const judged = classify(of(facts), direct)
      assert.deepStrictEqual([judged.retry, judged.health], ["no", "none"])
    }
  })

  it("reports the same account health before and after a shown frame", () => {
    for (const [, facts] of table) {
      const shown = classify(of(facts), { ...managed, shown: true })
      assert.strictEqual(shown.health, classify(of(facts), managed).health)
    }
  })

  it("derives no account health from the words of a message, at any status", () => {
    const words = [
      "Incorrect API key provided: sk-abc",
      "API key not valid. Please pass a valid API key.",
      "rate_limit_exceeded",
      "You exceeded your quota: insufficient_quota",
      "account_deactivated",
      "invalid_api_key 401 429 UNAUTHENTICATED"
    ]
    for (const message of words) {
      for (const status of [400, 404, 413, 422, 500, 503]) {
        for (const kind of ["refused", "malformed", "gave_up"] as const) {
          assert.strictEqual(classify(of({ kind, status, message }), managed).health, "none", `${status} ${message}`)
        }
      }
    }
  })

  it("passes Retry-After on in whole seconds, and sets it for every rate limit", () => {
    const told = classify(of({ status: 429, retryAfter: 2.2 }), managed)
    assert.deepStrictEqual([told.retryAfter, told.error.retryAfter], [2.2, 3])
    const long = classify(of({ status: 429, retryAfter: 1e300 }), managed)
    assert.deepStrictEqual([long.retryAfter, long.error.retryAfter], [30 * 24 * 3_600, 30 * 24 * 3_600])
    const untold = classify(of({ status: 429 }), managed)
    assert.deepStrictEqual([untold.retryAfter, untold.error.retryAfter], [undefined, 1])
    assert.strictEqual(classify(of({ status: 500 }), managed).error.retryAfter, undefined)
  })

  it("has the reset of a used-up quota if that is later, for refusals that it explains", () => {
    const waits = (status: number, retryAfter?: number) => {
      const facts = retryAfter === undefined ? { status } : { status, retryAfter, retryAfterMs: retryAfter * 1_000 }
      const { error } = classify(of(facts), { ...managed, resetsIn: 90.5 })
      return [error.retryAfter, error.retryAfterMs, error.shouldRetry]
    }
    assert.deepStrictEqual(waits(429), [91, undefined, false])
    assert.deepStrictEqual(waits(429, 30), [91, undefined, false])
    assert.deepStrictEqual(waits(429, 120), [120, 120_000, false])
    assert.deepStrictEqual(waits(503, 30), [30, 30_000, true])
    const ofModel = classify(of({ status: 429 }), { ...managed, resetsIn: 60, isModelOut: true })
    assert.deepStrictEqual([ofModel.health, ofModel.error.shouldRetry], ["none", true])
    assert.strictEqual(classify(of({ status: 401 }), { ...managed, isModelOut: true }).health, "token_expired")
  })

  describe("messages of upstream failures", () => {
    const messageOf = (message: string) => classify(of({ refusal: "other", message }), managed).error.message

    it("name the upstream where there are several, in every text about it", () => {
      const unnamed = ["shutting_down", "exhausted"]
      for (const rule of rules) {
        if (!unnamed.includes(rule.class)) assert.match(rule.message, /\b(?:the|this) upstream\b(?! account|')/i)
      }
      assert.strictEqual(
        classify(of({ status: 500 }), { ...managed, upstream: "gpu" }).error.message,
        "The upstream \"gpu\" failed with HTTP 500."
      )
    })

    it("quote the upstream", () => {
      assert.strictEqual(messageOf("maintenance until 5"), "The upstream failed: maintenance until 5")
    })

    it("never quote a page", () => {
      for (const page of ["<!DOCTYPE html><html>Bad gateway", "  <html><body>no", "text <script>x</script>"]) {
        assert.strictEqual(messageOf(page), "The upstream failed.")
      }
    })

    it("never show a token or an account's identity", () => {
      const secrets = [
        "ann.smith+x@mail.example.org",
        "13800138000",
        "+8613800138000",
        "Bearer abc.def",
        "sk-proj-12345678901234567890",
        "sk-***abcd",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "Zm9vYmFyMTIzNDU2Nzg5MDEyMzQ1Ng"
      ]
      for (const secret of secrets) {
        const shown = messageOf(`Token of ${secret} was refused`)
        assert.notInclude(shown, secret)
        assert.match(shown, /was refused$/)
      }
    })

    it("keep ordinary numbers and words", () => {
      const text = "maximum context length is 131072 tokens, you sent 200000 (see error context_length_exceeded)"
      assert.include(messageOf(text), text)
    })

    it("are one line of at most 300 characters without split surrogate pairs, for any input", () => {
      fc.assert(fc.property(fc.string({ unit: "grapheme", maxLength: 1000 }), (text) => {
        const shown = messageOf(text)
        assert.isAtMost(shown.length, 300)
        assert.notMatch(shown, /[\r\n]/)
        assert.isTrue(!text.isWellFormed() || shown.isWellFormed())
      }))
    })

    it("depend only on the beginning of a long upstream message", () => {
      for (const unit of ["a", "a@", "a-", "1", "sk-", "eyJ", "Bearer ", "<", "a.", "@a.a"]) {
        assert.strictEqual(messageOf(unit.repeat(1_000_000)), messageOf(unit.repeat(10_000)), unit)
      }
    })
  })
})
