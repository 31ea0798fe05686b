/** The wait that a server's refusal states, in each of its places: the account pauses for so long, and the client gets it, rounded up. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { type Answer, json, type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"

let server: OpenAiServer
let gateway: RunningGateway
const clock = makeMovedClock({ wall: Date.UTC(2026, 0, 2) })
beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({
    accounts: [{ token: "sk-a" }],
    upstream: { driver: "openai", base_url: server.baseUrl, timeouts: { queue: 0 } }
  }, { clock })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const ask = async () => {
  const { headers, status } = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hi" }] })
  })
  return [status, headers.get("retry-after")]
}

const says = (message: string, fields: object = {}): Answer =>
  json(429, { error: { message, type: "tokens", code: "rate_limit_exceeded", ...fields } })
const heads = (headers: Record<string, string>): Answer => json(429, { error: { message: "Slow down." } }, headers)
const retryInfo = (retryDelay: string) => ({
  details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay }]
})
const hour = () => clock.currentTimeMillisUnsafe() / 1_000 + 3_600

/** Each place, with the server's words of it and the seconds that the client gets. */
const places: ReadonlyArray<readonly [name: string, answer: () => Answer, seconds: number]> = [
  ["retry-after with a fraction", () => heads({ "retry-after": "90.5" }), 91],
  ["retry-after as a date", () => heads({ "retry-after": new Date(hour() * 1_000).toUTCString() }), 3_600],
  ["retry-after-ms", () => heads({ "retry-after-ms": "12345.6" }), 13],
  ["x-ratelimit-reset in seconds", () => heads({ "x-ratelimit-reset": "41.2" }), 42],
  ["x-ratelimit-reset as a moment", () => heads({ "x-ratelimit-reset": String(hour()) }), 3_600],
  ["ratelimit-reset", () => heads({ "ratelimit-reset": "17" }), 17],
  ["ratelimitbysize-reset", () => heads({ "ratelimitbysize-reset": "18" }), 18],
  ["x-ratelimit-reset-after as a duration", () => heads({ "x-ratelimit-reset-after": "1m2.5s" }), 63],
  ["a retryDelay", () => says("Quota exceeded.", retryInfo("34s")), 34],
  ["a retryDelay with a fraction", () => says("Quota exceeded.", retryInfo("34.074824224s")), 35],
  ["a header that the error repeats", () =>
    says("Rate limit exceeded: free-models-per-min.", {
      metadata: { headers: { "X-RateLimit-Limit": "20", "X-RateLimit-Reset": String(hour() * 1_000) } }
    }), 3_600],
  [
    "words with minutes",
    () => says("Rate limit reached for model `m`. Please try again in 1m26.4s. Need more tokens?"),
    87
  ],
  ["words with milliseconds", () => says("Please try again in 7ms. Visit us."), 1],
  ["words with hours", () => says("Please try again in 6h30m0s."), 23_400],
  ["words with a unit in full", () => says("Please retry after 26 seconds. Please go here"), 26],
  ["words with two units in full", () => says("Try again in 1 minute 5 seconds."), 65],
  ["words of Gemini", () => says("You exceeded your current quota.\nPlease retry in 34.074824224s."), 35],
  [
    "words of GitHub Models",
    () => says("Rate limit of 1 per 0s exceeded. Please wait 51 seconds before retrying."),
    51
  ],
  [
    "words and a header, of which the later counts",
    () => ({ ...says("Try again in 2s."), headers: { "retry-after": "9" } }),
    9
  ]
]

describe("a wait that a refusal states", () => {
  it.each(places)("pauses the account and is rounded up: %s", async (_, answer, seconds) => {
    server.answer(answer)
    assert.deepStrictEqual(await ask(), [429, String(seconds)])
    const [status] = await ask()
    assert.strictEqual(status, 429)
    assert.lengthOf(server.requests, 1)
    clock.move((seconds + 1) * 1_000)
  })

  it("is not read from the words of other failures", async () => {
    server.answer(() => json(400, { error: { message: "Please try again in 1m." } }))
    assert.deepStrictEqual(await ask(), [400, null])
  })
})
