import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Semaphore } from "effect"
import { type GatewayOptions, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { makeMovedClock } from "../../support/movedClock.ts"
import {
  type Answer,
  chunk,
  frames,
  json,
  type OpenAiServer,
  startOpenAiServer,
  streamed
} from "../../support/openaiServer.ts"
import { ask, type StyleName, styleNames } from "./callStyles.ts"

/** What a caller is told, and how often the server is asked for it. */
interface Told {
  readonly status: number
  readonly code: string
  readonly message: RegExp
  readonly asked: 1 | 3
}

const told = (status: number, code: string, message: RegExp, asked: 1 | 3 = 1): Told => ({
  status,
  code,
  message,
  asked
})

const error = (fields: object) => ({ error: { message: "word of the server", ...fields } })

/** Replies that are no completion. */
const refusals: ReadonlyArray<readonly [about: string, Answer, Told]> = [
  [
    "a bad request",
    json(400, error({ type: "invalid_request_error" })),
    told(400, "invalid_request", /word of the server/)
  ],
  [
    "a long prompt",
    json(400, error({ code: "context_length_exceeded" })),
    told(400, "context_length_exceeded", /too long/)
  ],
  ["a filtered prompt", json(400, error({ code: "content_filter" })), told(400, "content_filter", /filter/)],
  ["too large a body", json(413, error({})), told(413, "request_too_large", /too large/)],
  ["an unknown model", json(404, error({ code: "model_not_found" })), told(400, "model_not_found", /have the model/)],
  ["an unknown path", json(404, { detail: "Not Found" }), told(503, "upstream_error", /no such endpoint/)],
  ["a refused key", json(401, error({ code: "invalid_api_key" })), told(503, "no_account_available", /refused/, 3)],
  ["a key without rights", json(403, error({})), told(503, "upstream_error", /not permit/, 3)],
  [
    "a rate limit",
    json(429, error({}), { "retry-after": "9" }),
    told(429, "upstream_rate_limited", /limits the rate/, 3)
  ],
  ["no quota", json(429, error({ code: "insufficient_quota" })), told(429, "upstream_rate_limited", /quota/, 3)],
  ["trouble", json(500, error({})), told(503, "upstream_error", /word of the server/, 3)],
  ["an overload", json(503, { error: "busy" }), told(503, "upstream_error", /busy/, 3)],
  [
    "a page",
    { status: 502, headers: { "content-type": "text/html" }, pieces: ["<html>Bad gateway</html>"] },
    told(503, "upstream_error", /^The upstream failed: what answered is not a model server \(HTTP \d+\)\.$/, 3)
  ],
  ["a page that says 200", { headers: { "content-type": "text/html" } }, told(503, "upstream_error", /failed/, 3)],
  ["its own time-out", { status: 504 }, told(503, "upstream_timeout", /in time/, 3)],
  ["no answer", { headless: true, after: "hang" }, told(503, "upstream_timeout", /in time/, 3)],
  ["a connection that breaks", { headless: true, after: "reset" }, told(503, "upstream_error", /connection/, 3)],
  ["an empty reply", { pieces: [frames(chunk({}, "stop"), "[DONE]")] }, told(503, "upstream_empty_output", /empty/, 3)],
  [
    "a reply that is withdrawn whole",
    { pieces: [frames(chunk({}, "content_filter"))] },
    told(400, "content_filter", /filter/)
  ],
  ["a broken whole reply", json(200, "{\"choices\":[{\"me"), told(503, "upstream_error", /failed/, 3)],
  ["an error that says 200", json(200, error({})), told(503, "upstream_error", /word of the server/, 3)]
]

const withText = frames(chunk({ role: "assistant", content: "" }), chunk({ content: "Hello" }))

/** What may go wrong in a stream; `before` and `after` are what is told when it comes before and after the text. */
const streamFaults: ReadonlyArray<
  readonly [about: string, fault: Answer, before: Told, after: Told]
> = [
  [
    "an error object",
    { pieces: [frames(error({ type: "server_error" }))] },
    told(503, "upstream_error", /word of the server/, 3),
    told(503, "upstream_error", /word of the server/)
  ],
  [
    "a rate limit",
    { pieces: [frames(error({ code: 429 }))] },
    told(429, "upstream_rate_limited", /limits the rate/, 3),
    told(429, "upstream_rate_limited", /limits the rate/)
  ],
  [
    "an early end",
    { pieces: [] },
    told(503, "upstream_empty_output", /empty/, 3),
    told(503, "upstream_error", /cut off/)
  ],
  [
    "a broken connection",
    { after: "reset" },
    told(503, "upstream_error", /connection/, 3),
    told(503, "upstream_error", /connection/)
  ],
  [
    "silence",
    { after: "hang" },
    told(503, "upstream_timeout", /in time/, 3),
    told(503, "upstream_timeout", /in time/)
  ],
  [
    "broken JSON",
    { pieces: [frames("{oops")] },
    told(503, "upstream_error", /failed/, 3),
    told(503, "upstream_error", /failed/)
  ],
  [
    "a reply that is given up",
    { pieces: [frames(chunk({}, "error"), "[DONE]")] },
    told(503, "upstream_error", /failed/, 3),
    told(503, "upstream_error", /failed/)
  ]
]

let server: OpenAiServer
let patient: RunningGateway
let impatient: RunningGateway

/** Seconds of silence after which the gateway gives up, by a clock that stands still unless its time is let pass. */
const patience = 2
const clock = makeMovedClock({ still: true })

const startWith = (timeouts: object, options: GatewayOptions = {}) =>
  startGateway({
    // So many keys that no fault leaves a request without one.
    accounts: Array.from({ length: 900 }, (_, i) => ({ token: `sk-${i}` })),
    captures: { enabled: false },
    upstream: { driver: "openai", base_url: server.baseUrl, timeouts: { queue: 0, ...timeouts } }
  }, options)

beforeAll(async () => {
  server = await startOpenAiServer()
  patient = await startWith({})
  impatient = await startWith({ first_byte: patience, silence: patience }, { clock })
})
afterAll(async () => {
  await patient.stop()
  await impatient.stop()
  await server.stop()
})

/** Styles name some errors by words of their own; the chat style's are the gateway's. */
const check = (style: StyleName, said: Awaited<ReturnType<typeof ask>>, { code, message }: Told) => {
  assert.match(said.error?.message ?? "", message)
  assert.isTrue(said.ended)
  if (style === "chat") assert.strictEqual(said.error?.code, code)
}

/** Asks a server that falls silent: whenever it has, and what it said before is shown, the time of the gateway passes. */
const askSilent = async (style: StyleName, stream: boolean, isShown: boolean) => {
  const before = server.requests.length
  const shown = Promise.withResolvers<void>()
  let over = false
  const asking = ask(impatient.url, style, stream, undefined, shown.resolve)
  const end = asking.then(() => {
    over = true
  })
  for (let count = 1; !over; count++) {
    await Promise.race([end, server.until((requests) => requests.length >= before + count)])
    if (stream && isShown) await Promise.race([end, shown.promise])
    if (!over) clock.move(patience * 1_000)
  }
  return asking
}

/** Asks in every style, streamed and not; the server is asked `expected.asked` times for each stream. */
const inEveryStyle = async (
  expected: Told,
  askedForWhole: number,
  look: (style: StyleName, stream: boolean, said: Awaited<ReturnType<typeof ask>>) => void,
  isShown = false
) => {
  // Silences come one after another: the gateway has one clock.
  const turns = Semaphore.makeUnsafe(expected.code === "upstream_timeout" ? 1 : Infinity)
  const asked = await Promise.all(
    styleNames.flatMap((style) =>
      [false, true].map(async (stream) => {
        const said = await Effect.runPromise(turns.withPermit(Effect.promise(() =>
          expected.code === "upstream_timeout" ? askSilent(style, stream, isShown) : ask(patient.url, style, stream)
        )))
        assert.deepStrictEqual({ style, stream, retryAfter: said.retryAfter !== null }, {
          style,
          stream,
          retryAfter: said.status === 429
        })
        look(style, stream, said)
        check(style, said, expected)
      })
    )
  )
  assert.strictEqual(server.requests.length, asked.length / 2 * (expected.asked + askedForWhole))
  await server.until((requests) => requests.every(({ outcome }) => outcome !== "open"))
}

describe("in every style, streamed and not", () => {
  for (const [about, answer, expected] of refusals) {
    it(`${about} is a plain error ${expected.status} ${expected.code}`, async () => {
      server.answer(() => answer)
      await inEveryStyle(expected, expected.asked, (_, __, said) => {
        assert.strictEqual(said.status, expected.status)
        assert.strictEqual(said.text, "")
      })
    })
  }

  for (const [about, fault, before, after] of streamFaults) {
    it(`${about} before the first event is a plain error ${before.status} ${before.code}`, async () => {
      server.answer(() => fault)
      await inEveryStyle(before, before.asked, (_, __, said) => {
        assert.strictEqual(said.status, before.status)
        assert.strictEqual(said.text, "")
      })
    })

    it(`${about} after it is told in the stream; of a whole reply nothing was shown, so that it is tried again`, async () => {
      server.answer(() => ({ ...fault, pieces: [withText, ...fault.pieces ?? []] }))
      await inEveryStyle(after, before.asked, (_, stream, said) => {
        assert.strictEqual(said.status, stream ? 200 : after.status)
        assert.strictEqual(said.text, stream ? "Hello" : "")
      }, true)
    })
  }

  it("a fault of one attempt is not seen where the next one works", async () => {
    const faults = [
      ...refusals.map(([, answer, { asked }]) => ({ answer, asked })),
      ...streamFaults.map(([, answer]) => ({ answer, asked: 3 }))
    ]
      .filter(({ asked }) => asked === 3)
    for (const { answer } of faults.filter(({ answer }) => answer.after !== "hang")) {
      server.answer((_, i) => i === 0 ? answer : streamed({ content: "Hello" }))
      const said = await ask(patient.url, "chat", true)
      assert.deepStrictEqual({ ...said, asked: server.requests.length }, {
        status: 200,
        text: "Hello",
        error: undefined,
        ended: true,
        retryAfter: null,
        shouldRetry: null,
        asked: 2
      })
      assert.notStrictEqual(server.requests[0]?.key, server.requests[1]?.key)
    }
  })

  it("a reply that is cut by length, or filtered after its start, is not a failure", async () => {
    for (const reason of ["length", "content_filter"]) {
      server.answer(() => ({ pieces: [withText, frames(chunk({}, reason), "[DONE]")] }))
      for (const style of styleNames) {
        for (const stream of [false, true]) {
          const { error, status, text } = await ask(patient.url, style, stream)
          assert.deepStrictEqual({ error, status, text }, { error: undefined, status: 200, text: "Hello" }, style)
        }
      }
    }
  })
})
