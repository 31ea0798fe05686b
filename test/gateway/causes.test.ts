/** Why the upstream could not be reached: the caller gets the kind of failure, the operator gets the details. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Logger, References } from "effect"
import { excerptOf } from "../../src/domain/FailureCause.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { type Answer, json, type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"

interface Cause {
  readonly code?: string
  readonly address?: string
  readonly status?: number
  readonly body?: string
  /** The causes of the tries before the last one. */
  readonly earlier?: ReadonlyArray<Cause>
}

const open: Array<{ readonly stop: () => Promise<void> }> = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.stop()
})

const startServer = async (answer?: Answer): Promise<OpenAiServer> => {
  const server = await startOpenAiServer()
  open.push(server)
  if (answer !== undefined) server.answer(() => answer)
  return server
}

const healthOf = async (gateway: RunningGateway): Promise<ReadonlyArray<unknown>> => {
  const reply = await fetch(`${gateway.url}/admin/accounts`, { headers: { authorization: `Bearer ${adminKey}` } })
  const { items } = await reply.json() as { readonly items: ReadonlyArray<{ readonly health: unknown }> }
  return items.map(({ health }) => health)
}

/** Sends a request through a gateway in front of an address; returns what the caller, the log and the captures report. */
const ask = async (upstream: { readonly driver: string; readonly base_url: string; readonly errors?: string }) => {
  const logged: Array<Record<string, unknown>> = []
  const logger = Logger.make(({ fiber, message }) => {
    if (String(message) === "request") logged.push({ ...fiber.getRef(References.CurrentLogAnnotations) })
  })
  const gateway: RunningGateway = await startGateway(
    { accounts: [{ token: "sk-the-account-token" }], upstream: { ...upstream, timeouts: { attempts: 5 } } },
    { logger }
  )
  open.push(gateway)
  const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hello" }] })
  })
  const { error } = await reply.json() as { readonly error: { readonly message: string; readonly code: string } }
  const captures = await fetch(`${gateway.url}/admin/dev/captures`, {
    headers: { authorization: `Bearer ${adminKey}` }
  })
  const { items } = await captures.json() as { readonly items: ReadonlyArray<{ readonly cause?: Cause }> }
  assert.strictEqual(logged.length, 1)
  const { earlier = [], ...last } = logged[0]!["cause"] as Cause
  for (const cause of earlier) assert.deepEqual(cause, last)
  return {
    status: reply.status,
    code: error.code,
    retry: reply.headers.get("x-should-retry"),
    message: error.message,
    accounts: await healthOf(gateway),
    logged: last,
    captured: items[0]?.cause
  }
}

const retry = "Retry later, or ask the gateway's operator."

describe("a refusal that a setting of the operator causes", () => {
  it("has the name of the setting in the log, and not in the reply", async () => {
    const logged: Array<unknown> = []
    const logger = Logger.make(({ fiber, message }) => {
      if (String(message) === "request") logged.push(fiber.getRef(References.CurrentLogAnnotations)["cause"])
    })
    const gateway = await startGateway({ embeddings: { provider: "openai" } }, { logger })
    open.push(gateway)
    const reply = await fetch(`${gateway.url}/v1/embeddings`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({ model: "any", input: "Hello" })
    })
    assert.strictEqual(reply.status, 501)
    assert.notInclude(await reply.text(), "embeddings.provider")
    assert.deepStrictEqual(logged, [{ setting: "embeddings.provider" }])
  })
})

describe("the cause of an upstream failure, in the error, the log and the captures", () => {
  it("refused connection: ECONNREFUSED and the address without its path", async () => {
    const server = await startOpenAiServer()
    await server.stop()
    const { captured, logged, message, status } = await ask({ driver: "openai", base_url: server.baseUrl })
    assert.strictEqual(status, 503)
    assert.strictEqual(message, `The connection to the upstream "default" failed: the connection was refused. ${retry}`)
    assert.deepEqual(logged, { code: "ECONNREFUSED", address: new URL(server.baseUrl).origin })
    assert.deepEqual(captured, logged)
  })

  it("reset connection: ECONNRESET or UND_ERR_SOCKET", async () => {
    const server = await startServer({ headless: true, after: "reset" })
    const { captured, logged, message } = await ask({ driver: "openai", base_url: server.baseUrl })
    assert.strictEqual(message, `The connection to the upstream "default" failed: the connection was reset. ${retry}`)
    assert.match(logged.code ?? "", /^(?:ECONNRESET|UND_ERR_SOCKET)$/)
    assert.deepEqual(captured, logged)
  })

  it("unknown host: the logged address has no credentials", async () => {
    const { logged, message } = await ask({ driver: "openai", base_url: "http://me:secret@no-such-host.invalid/v1" })
    assert.strictEqual(message, `The connection to the upstream "default" failed: there is no such host. ${retry}`)
    assert.match(logged.code ?? "", /^(?:ENOTFOUND|EAI_\w+)$/)
    assert.strictEqual(logged.address, "http://no-such-host.invalid")
  })

  it("failed TLS handshake", async () => {
    const server = await startServer()
    const { logged, message } = await ask({ driver: "openai", base_url: server.baseUrl.replace("http:", "https:") })
    assert.strictEqual(message, `The connection to the upstream "default" failed: TLS failed. ${retry}`)
    assert.match(logged.code ?? "", /SSL|TLS|EPROTO/)
  })

  it.each(["openai", "session"])("HTML page of a proxy (%s): an excerpt without the token", async (driver) => {
    const page = `<!doctype html><html><head><title>502 Bad Gateway</title></head><body>
      nginx: sk-the-account-token ${"words ".repeat(100)}</body></html>`
    const server = await startServer(json(502, page, { "content-type": "text/html" }))
    const { captured, logged, message } = await ask({ driver, base_url: server.baseUrl })
    assert.strictEqual(message, "The upstream failed: what answered is not a model server (HTTP 502).")
    assert.strictEqual(logged.status, 502)
    assert.strictEqual(logged.address, new URL(server.baseUrl).origin)
    assert.match(logged.body ?? "", /^502 Bad Gateway nginx: \[\w+\] words words/)
    assert.strictEqual(logged.body?.length, 200)
    if (driver === "openai") assert.deepEqual(captured, logged)
  })

  it("timeout: the caller reads that the upstream did not answer in time", async () => {
    const server = await startServer({ headless: true, after: "hang" })
    const clock = makeMovedClock({ still: true })
    const gateway = await startGateway({
      upstream: { driver: "openai", base_url: server.baseUrl, timeouts: { first_byte: 5 }, whole_replies: "streamed" }
    }, { clock })
    open.push(gateway)
    const asking = fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hello" }] })
    })
    await server.until(({ length }) => length === 1)
    clock.move(6_000)
    const { error } = await (await asking).json() as { readonly error: { readonly message: string } }
    assert.strictEqual(error.message, "The upstream did not answer in time.")
  })
})

describe("an error reply of an OpenAI-compatible server", () => {
  it("unknown model: the log names the setting upstream.models, and the message does not", async () => {
    const server = await startServer(
      json(404, { error: { message: "The model `upstream-chat` does not exist.", code: "model_not_found" } })
    )
    const { message } = await ask({ driver: "openai", base_url: server.baseUrl, errors: "own" })
    assert.strictEqual(
      message,
      "The upstream does not have the model: The model `upstream-chat` does not exist. Ask the gateway's operator."
    )
  })

  it("unknown model in any server's form: 400 without retry, and the account stays ready", async () => {
    const bodies: ReadonlyArray<readonly [status: number, body: object]> = [
      [404, {
        object: "error",
        message: "The model `upstream-chat` does not exist.",
        type: "NotFoundError",
        param: null,
        code: 404
      }],
      [404, { error: { message: "The model `upstream-chat` does not exist.", type: "NotFoundError", code: 404 } }],
      [404, { error: { message: "model \"upstream-chat\" not found, try pulling it first", type: "api_error" } }],
      [404, { error: { message: "No.", type: "invalid_request_error", param: "model", code: "model_not_found" } }],
      [404, [{ error: { code: 404, message: "models/upstream-chat is not found", status: "NOT_FOUND" } }]],
      [400, { object: "error", message: "Invalid model: upstream-chat", type: "invalid_model", code: "1500" }]
    ]
    const server = await startServer()
    for (const [status, body] of bodies) {
      server.answer(() => json(status, body))
      const told = await ask({ driver: "openai", base_url: server.baseUrl, errors: "own" })
      const { accounts, code, message, retry } = told
      assert.deepStrictEqual(
        { status: told.status, code, retry, accounts, asked: server.requests.map(({ body }) => body["model"]) },
        { status: 400, code: "model_not_found", retry: "false", accounts: ["ready"], asked: ["upstream-chat"] }
      )
      assert.match(message, /[^.]\. Ask the gateway's operator\.$/)
    }
  })
})

describe("excerptOf", () => {
  it("returns one line of text without tags, tokens and secrets, even for a malformed page", () => {
    assert.strictEqual(excerptOf("<html><style>a{}</style><b>Hi</b>\n there"), "Hi there")
    assert.strictEqual(excerptOf("<".repeat(100_000)).length, 200)
    assert.notInclude(excerptOf("key hunter2-hunter2 and Bearer abcdefghijkl", ["hunter2-hunter2"]), "hunter2")
  })
})
