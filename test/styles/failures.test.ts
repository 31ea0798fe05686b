/**
 * A failure of the upstream in all four styles, streamed and not, as the errors of the vendors' SDKs.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type ErrorCode, errorTable } from "../../src/domain/GatewayError.ts"
import { type Clients, everywhere, type Way } from "../support/sameReply.ts"
import { type Ask, type Failed, styleClients, type StyleName, styleNames } from "../support/styleClients.ts"
import { webGateway } from "../support/webGateway.ts"
import { base, callOslo, letTimePass, lines, tools, useGateway } from "./support.ts"

/** Callers with a token of their own: what fails them neither harms an account nor is tried again. */
const apiKey = "a-token"
const direct = styleClients(base, { apiKey, fetch: useGateway() })

/** The error that an SDK throws for a plain HTTP error. */
const classOf = (style: StyleName, status: number): string => {
  if (style === "generate") return "ApiError"
  if (status === 503 && style === "messages") return "ServiceUnavailableError"
  const classes: Readonly<Record<number, string>> = {
    400: "BadRequestError",
    401: "AuthenticationError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
    503: "InternalServerError"
  }
  return String(classes[status])
}

/** A failure before anything was shown. */
const plainly = (style: StyleName, code: ErrorCode): Omit<Failed, "message"> => {
  const { rpc, status } = errorTable[code]
  return { _tag: "Failed", type: classOf(style, status), status, code: style === "generate" ? rpc : code, shown: "" }
}

/** A failure that the stream tells, which only content generation gives a status there. */
const within = (style: StyleName, code: ErrorCode, shown: string): Omit<Failed, "message"> => {
  const { rpc, status } = errorTable[code]
  switch (style) {
    case "generate":
      return { _tag: "Failed", type: "ApiError", status, code: rpc, shown }
    case "responses":
      return { _tag: "Failed", type: "failed", status: undefined, code, shown }
    case "chat":
    case "messages":
      return { _tag: "Failed", type: "APIError", status: undefined, code, shown }
  }
}

type Results = Awaited<ReturnType<typeof everywhere>>

/** Asserts that all of them are failures with the same words. */
const assertFailures = (results: Results, failure: (style: StyleName, way: Way) => Omit<Failed, "message">) => {
  const words = new Set<string>()
  for (const { result, style, way } of results) {
    const where = `${style}, ${way}`
    if (result._tag === "Got") assert.fail(`${where}: ${JSON.stringify(result)}`)
    const { message, ...rest } = result
    assert.deepStrictEqual(rest, failure(style, way), where)
    words.add(message)
  }
  assert.strictEqual(words.size, 1, [...words].join("\n"))
}

/** Asserts that a request fails everywhere, with the same words. */
const assertFails = async (
  clients: Clients,
  ask: Ask,
  failure: (style: StyleName, way: Way) => Omit<Failed, "message">
) => assertFailures(await everywhere(clients, ask), failure)

/** The same of an upstream that falls silent, whose time is let pass. */
const assertFailsInSilence = (content: string, failure: (style: StyleName, way: Way) => Omit<Failed, "message">) =>
  Effect.gen(function*() {
    const gateway = yield* webGateway({
      runtime: { account_max_inflight: 8 },
      auth: { direct_max_inflight: 8 },
      upstream: { timeouts: { first_byte: 5, silence: 5 } }
    })
    const clients = styleClients(base, { apiKey, fetch: gateway })
    const asking = yield* Effect.forkScoped(Effect.promise(() => everywhere(clients, { content })))
    assertFailures(yield* letTimePass(asking), failure)
  })

/** Failures of the upstream, by the lines that ask for them behind what it has said, and what becomes of them. */
const faults: ReadonlyArray<readonly [fault: string, code: ErrorCode]> = [
  ["token-expired", "authentication_failed"],
  ["trouble message=Sorry", "upstream_error"],
  ["rate-limited", "upstream_rate_limited"],
  ["busy", "upstream_rate_limited"],
  ["too-long", "context_length_exceeded"],
  ["refused", "upstream_error"],
  ["no-session", "upstream_error"],
  ["html", "upstream_error"],
  ["empty", "upstream_error"],
  ["broken-json", "upstream_error"],
  ["no-data", "upstream_error"],
  ["not-a-stream", "upstream_error"],
  ["wrong-content-type", "upstream_error"],
  ["reset-before-headers", "upstream_error"],
  ["empty-stream", "upstream_error"],
  ["reset-before-events", "upstream_error"],
  ["hint after=0", "upstream_rate_limited"],
  ["toast after=0", "upstream_rate_limited"],
  ["hint after=0 reason=input_exceeds_limit", "context_length_exceeded"],
  ["content-filter after=0", "content_filter"],
  ["timeout-status after=0", "upstream_error"],
  ["error-status after=0", "upstream_error"],
  ["broken-line after=0", "upstream_error"]
]

const silences = ["hang-before-headers", "hang-before-events", "hang-mid-stream after=0"]

const laterFaults: ReadonlyArray<readonly [fault: string, code: ErrorCode]> = [
  ["timeout-status after=3", "upstream_error"],
  ["error-status after=3", "upstream_error"],
  ["broken-line after=3", "upstream_error"]
]

describe("a failure is the same in every style, streamed and not", () => {
  it.each(faults)(
    "before anything was shown: %s",
    (fault, code) => assertFails(direct, { content: `!count 5\n!fault ${fault}` }, (style) => plainly(style, code))
  )

  it.effect.each(silences)("silence before anything was shown: %s", (fault) =>
    assertFailsInSilence(
      `!count 5\n!fault ${fault}`,
      (style) => plainly(style, "upstream_timeout")
    ))

  it.each(laterFaults)("in the reply: %s", (fault, code) =>
    assertFails(
      direct,
      { content: `!count 5\n!fault ${fault}` },
      (style, way) => way === "whole" ? plainly(style, code) : within(style, code, "1 2 3")
    ))

  it.effect("silence in the reply", () =>
    assertFailsInSilence(
      "!count 5\n!fault hang-mid-stream after=3",
      (style, way) => way === "whole" ? plainly(style, "upstream_timeout") : within(style, "upstream_timeout", "1 2 3")
    ))

  it("in the reply, behind a call", async () => {
    const content = lines("!say Looking. ", callOslo, "!fault error-status")
    await assertFails(
      direct,
      { content, tools },
      (style, way) => way === "whole" ? plainly(style, "upstream_error") : within(style, "upstream_error", "Looking.")
    )
  })

  it("a missing call, which Responses report in the stream", () =>
    assertFails(
      direct,
      { content: "!say No.", tools, toolChoice: "required" },
      (style, way) =>
        style === "responses" && way === "streamed"
          ? within(style, "tool_choice_violation", "")
          : plainly(style, "tool_choice_violation")
    ))

  it("a missing call of the one function that was demanded", () =>
    assertFails(
      direct,
      { content: callOslo, tools, toolChoice: { name: "get_time" } },
      (style, way) =>
        style === "responses" && way === "streamed"
          ? within(style, "tool_choice_violation", "")
          : plainly(style, "tool_choice_violation")
    ))

  it("a missing call behind reasoning that was shown", () =>
    assertFails(
      direct,
      { content: "!think Hm.\n!say No.", tools, toolChoice: "required", reasoner: true },
      (style, way) =>
        way === "streamed" ? within(style, "tool_choice_violation", "") : plainly(style, "tool_choice_violation")
    ))

  it.effect.each(styleNames)(
    "in a stream whose headers are out, before its first frame: %s",
    (style) =>
      Effect.gen(function*() {
        const client = styleClients(base, { apiKey, fetch: yield* webGateway() })[style]
        const asking = yield* Effect.forkScoped(
          Effect.promise(() =>
            client.streamed({ content: "!count 5\n!fault slow ms=12000\n!fault error-status after=0" })
          )
        )
        const result = yield* letTimePass(asking)
        assert(result._tag === "Failed")
        const { message, ...rest } = result
        assert.deepStrictEqual(rest, within(style, "upstream_error", ""))
        assert.strictEqual(message, "The upstream failed.")
      })
  )
})
