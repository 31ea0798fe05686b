/**
 * What a request costs in primitives and fibers of Effect, over real sockets on both sides: the gateway's own node server,
 * its own pipeline, and an upstream that answers at once.
 */
import { WebSocket } from "@effect/platform-node/NodeWS"
import { afterAll, assert, beforeAll, describe, expect, it } from "@effect/vitest"
import { businessKey, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { countingTracer, type Counts } from "./counting.ts"
import { startMounted } from "./mounted.ts"
import { type CountingUpstream, startCountingUpstream } from "./upstream.ts"

const tools = [{ type: "function", function: { name: "lookup", parameters: { type: "object", properties: {} } } }]

const messages = [{ role: "user", content: "Hello" }]

interface Request {
  readonly path: string
  readonly body: object
}

const requests = {
  chat: (stream: boolean, rest: object = {}): Request => ({
    path: "/v1/chat/completions",
    body: { model: "upstream-chat", messages, stream, ...rest }
  }),
  messages: (stream: boolean): Request => ({
    path: "/v1/messages",
    body: { model: "msgcompat-haiku-4-5", max_tokens: 100, messages, stream }
  }),
  responses: (stream: boolean): Request => ({
    path: "/v1/responses",
    body: { model: "upstream-chat", input: "Hello", stream, store: false }
  }),
  generate: (stream: boolean): Request => ({
    path: `/v1beta/models/upstream-chat:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    body: { contents: [{ role: "user", parts: [{ text: "Hello" }] }] }
  })
}

const { take, tracer } = countingTracer()
/** Time stands still: on a slow machine each request would be counted with fibers that look at deadlines. */
const clock = makeMovedClock({ still: true })
let upstream: CountingUpstream
const gateways: { [name: string]: { readonly url: string; readonly stop: () => Promise<void> } } = {}

beforeAll(async () => {
  upstream = await startCountingUpstream()
  const common = { captures: { enabled: true }, accounts: [{ token: "token-a" }, { token: "token-b" }] }
  const session = { ...common, upstream: { driver: "session", base_url: upstream.url } }
  const openai = { ...common, upstream: { driver: "openai", base_url: `${upstream.url}/v1` } }
  gateways["session"] = await startGateway(session, { clock, tracer })
  gateways["openai"] = await startGateway(openai, { clock, tracer })
  const responses = { ...common, upstream: { driver: "responses", base_url: `${upstream.url}/v1` } }
  gateways["responses"] = await startGateway(responses, { clock, tracer })
  gateways["mounted session"] = await startMounted(session, tracer, clock)
  gateways["mounted openai"] = await startMounted(openai, tracer, clock)
})

afterAll(async () => {
  for (const gateway of Object.values(gateways)) await gateway.stop()
  await upstream.stop()
})

/** Sends a request whose reply comes in so many pieces, reads it piece by piece to its end and counts. */
const countOne = async (driver: string, { body, path }: Request, pieces: number): Promise<Counts> => {
  upstream.pieces = pieces
  take()
  const response = await fetch(`${gateways[driver]!.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  assert.strictEqual(response.status, 200)
  let text = ""
  let seen = 0
  if (!response.headers.get("content-type")!.startsWith("text/event-stream")) {
    for (let i = 0; i < pieces; i++) upstream.release()
    text = await response.text()
  } else {
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      text += value
      while (text.includes(`w${seen} `)) {
        seen++
        upstream.release()
      }
    }
  }
  assert.include(text, `w${pieces - 1} `)
  return take()
}

/** The least of several: the first ones open connections, and what the gateway does after a reply may fall into the next request. */
const count = async (driver: string, request: Request, pieces: number): Promise<Counts> => {
  for (let i = 0; i < 3; i++) await countOne(driver, request, pieces)
  const counts: Array<Counts> = []
  for (let i = 0; i < 5; i++) counts.push(await countOne(driver, request, pieces))
  return least(counts)
}

const least = (counts: ReadonlyArray<Counts>): Counts => ({
  primitives: Math.min(...counts.map(({ primitives }) => primitives)),
  fibers: Math.min(...counts.map(({ fibers }) => fibers))
})

/** Sends the same request as a message of a WebSocket, again and again; counts what each costs, from the message to the last event. */
const countMessages = async (driver: string, { body }: Request, pieces: number): Promise<Counts> => {
  upstream.pieces = pieces
  const socket = new WebSocket(`${gateways[driver]!.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${businessKey}` }
  })
  const counts: Array<Counts> = []
  for (let i = 0; i < 8; i++) {
    const text = await new Promise<string>((resolve) => {
      let text = ""
      let seen = 0
      const ask = () => {
        take()
        socket.send(JSON.stringify({ type: "response.create", ...body }))
      }
      socket.removeAllListeners("message").on("message", (data: Buffer) => {
        text += data.toString()
        while (text.includes(`w${seen} `)) {
          seen++
          upstream.release()
        }
        if (/"type":"(?:response.completed|error)"/.test(data.toString())) resolve(text)
      })
      if (socket.readyState === WebSocket.OPEN) ask()
      else socket.once("open", ask)
    })
    assert.include(text, `w${pieces - 1} `)
    // The request ends behind its last event.
    await new Promise(setImmediate)
    counts.push(take())
  }
  socket.close()
  return least(counts.slice(3))
}

/** The first try of each request is refused. */
const countFailover = async (request: Request): Promise<Counts> => {
  const counts: Array<Counts> = []
  for (let i = 0; i < 8; i++) {
    upstream.refuseNext = true
    counts.push(await countOne("session", request, 1))
    assert.isFalse(upstream.refuseNext)
  }
  return least(counts.slice(3))
}

/** What one network chunk more costs. */
const countChunk = async (gateway: string, request = requests.chat(true)): Promise<Counts> => {
  const few = await count(gateway, request, 10)
  const many = await count(gateway, request, 110)
  return { primitives: (many.primitives - few.primitives) / 100, fibers: many.fibers - few.fibers }
}

const atMost = (counts: Counts, primitives: number, fibers: number) => {
  if (process.env["COUNTS"] !== undefined) {
    process.stdout.write(`${expect.getState().currentTestName}: ${JSON.stringify(counts)}\n`)
  }
  assert.isAtMost(counts.primitives, primitives, "primitives")
  assert.isAtMost(counts.fibers, fibers, "fibers")
}

/** Primitives of Effect; a stream's budget has one network chunk in it. What is measured is printed with `COUNTS=1`. */
const budgets = {
  chat: { whole: { session: 108, openai: 98 }, streamed: { session: 152, openai: 142 } },
  messages: { whole: { session: 108, openai: 98 }, streamed: { session: 152, openai: 142 } },
  // A stored response is one finalizer more, which the library's scopes close by a generator.
  responses: { whole: { session: 113, openai: 103 }, streamed: { session: 172, openai: 162 } },
  generate: { whole: { session: 108, openai: 98 }, streamed: { session: 152, openai: 142 } }
}

describe.each(["session", "openai"] as const)("a request through the %s driver costs no more than", (driver) => {
  for (const [style, request] of Object.entries(requests)) {
    const { streamed, whole } = budgets[style as keyof typeof requests]
    it(`its budget, ${style}, whole`, async () => atMost(await count(driver, request(false), 1), whole[driver], 2))
    it(`its budget, ${style}, streamed in one piece`, async () =>
      atMost(await count(driver, request(true), 1), streamed[driver], 3))
  }

  it("its budget, with tools declared", async () =>
    atMost(await count(driver, requests.chat(true, { tools }), 1), budgets.chat.streamed[driver], 3))

  it("its budget, for each network chunk", async () => atMost(await countChunk(driver), 14, 0))
})

describe("a request through the responses driver costs no more than", () => {
  for (const style of ["chat", "responses"] as const) {
    const request = requests[style]
    it(`its budget, ${style}, whole`, async () =>
      atMost(await count("responses", request(false), 1), budgets[style].whole.openai, 2))
    it(`its budget, ${style}, streamed in one piece`, async () =>
      atMost(await count("responses", request(true), 1), budgets[style].streamed.openai, 3))
    it(`its budget, ${style}, for each network chunk`, async () =>
      atMost(await countChunk("responses", request(true)), 14, 0))
  }
})

describe.each(["session", "openai"] as const)("a gateway mounted in another app, through the %s driver", (driver) => {
  const mounted = `mounted ${driver}`

  it("costs no more than its budget, whole", async () => atMost(await count(mounted, requests.chat(false), 1), 108, 2))

  it("costs no more than its budget, streamed in one piece", async () =>
    atMost(await count(mounted, requests.chat(true), 1), 152, 3))

  it("costs no more than its budget, for each network chunk", async () => atMost(await countChunk(mounted), 14, 0))
})

describe.each(["session", "openai"] as const)("a message of a WebSocket, through the %s driver", (driver) => {
  it("costs at most forty primitives and one fiber more than the same request over HTTP", async () =>
    atMost(
      await countMessages(driver, requests.responses(true), 1),
      (await count(driver, requests.responses(true), 1)).primitives + 40,
      4
    ))

  it("costs at most two primitives more for each network chunk", async () => {
    const few = await countMessages(driver, requests.responses(true), 10)
    const many = await countMessages(driver, requests.responses(true), 110)
    const chunk = { primitives: (many.primitives - few.primitives) / 100, fibers: many.fibers - few.fibers }
    atMost(chunk, 14 + 2, 0)
  })
})

describe("a request that fails over once costs no more than", () => {
  it("its budget, whole", async () => atMost(await countFailover(requests.chat(false)), 173, 3))

  it("its budget, streamed in one piece", async () => atMost(await countFailover(requests.chat(true)), 216, 4))
})
