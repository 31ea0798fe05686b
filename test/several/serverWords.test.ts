/**
 * What of a server's answers reaches its caller, over sockets: errors of the caller's own protocol word for word, times to come back and
 * rate-limit headers; and which of the caller's headers reach the server.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { admin } from "../gateway/support.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { parseFrames } from "../support/sse.ts"
import { untilHolds } from "../support/until.ts"
import {
  drivers,
  type Farm,
  held,
  json,
  post,
  said,
  send,
  type SendOptions,
  startFarm,
  type Told,
  type Way
} from "./support.ts"

/** The style whose protocol each driver speaks. */
const own = { openai: "chat", responses: "responses", messages: "messages", generate: "generate" } as const
type Driver = keyof typeof own

let farm: Farm
let gateway: RunningGateway

/** Upstreams whose one model goes by the upstream's name; `accounts` of each, by default one. */
const upstream = (name: string, driver: Driver, rest: RawConfig = {}) =>
  [
    name,
    farm.upstream(name, {
      driver,
      models: [name],
      ...rest
    })
  ] as const
const account = (upstream: string, token: string): RawConfig => ({ upstream, token })

const limitedKey = "sk-limited-key"

const configuration = (): RawConfig => {
  const ones = drivers.map((driver) => upstream(`${driver}-one`, driver))
  const twos = drivers.map((driver) => upstream(`${driver}-two`, driver))
  const refusing = ["s401", "s402", "s403", "s500", "s502", "s503", "key", "big", "plain", "bare"]
  const others = [
    ...refusing.map((name) => upstream(name, name === "key" ? "generate" : "messages")),
    upstream("own", "messages", { errors: "own" }),
    upstream("always", "messages", { rate_limit_headers: "always" }),
    upstream("never", "messages", { rate_limit_headers: "never" }),
    upstream("secret", "messages", { headers: { "x-portal": "Bearer portal-secret" }, proxy: "direct" }),
    upstream("forward", "messages", {
      forward_headers: ["X-Trace-Id", "x-team-*", "x-*"],
      headers: { "anthropic-beta": "configured", "x-team-a": "configured" }
    }),
    upstream("named", "messages", { credential_header: "anthropic-key" })
  ]
  return {
    upstream: {
      driver: "openai",
      base_url: farm.server.baseUrl.replace(/\/v1$/, "/direct/v1"),
      models: { direct: "direct" }
    },
    upstreams: Object.fromEntries([...ones, ...twos, ...others]),
    keys: ["sk-plain-key", limitedKey],
    auth: { direct_tokens: true },
    embeddings: { provider: "upstream" },
    key_records: { [keyId(limitedKey, sha256Hex)]: { limits: [{ window: "hour", requests: 1_000 }] } },
    accounts: [
      ...[...ones, ...others].map(([name]) => account(name, `key-of-${name}`)),
      ...[...twos.map(([name]) => name), "always", "secret"].map((name) => account(name, `second-key-of-${name}`)),
      ...twos.map(([name]) => account(name, `first-key-of-${name}`))
    ],
    routes: { both: ["messages-one/messages-one", "s500/s500"] }
  }
}

beforeAll(async () => {
  farm = await startFarm()
  gateway = await startGateway(configuration())
})
afterAll(async () => {
  await gateway.stop()
  await farm.stop()
})

const key = "sk-plain-key"
const ask = (model: string, way: Way, options: SendOptions = {}): Promise<Told> =>
  send(gateway, way, model, { key, ...options })
const askOne = (model: string, options?: SendOptions) => ask(model, { style: "messages", stream: false }, options)

const longId = "req-0123456789abcdefABCDEF0123456789abcdef"

/** An error as each vendor writes it, with fields that the gateway does not know. */
const errorOf = (driver: Driver, message = `Field ${longId} is wrong, and ${"very ".repeat(80)}long`) =>
  driver === "messages"
    ? { type: "error", error: { type: "invalid_request_error", message, details: { a: [1] } }, request_id: longId }
    : driver === "generate"
    ? { error: { code: 400, message, status: "INVALID_ARGUMENT", details: [{ field: longId }] } }
    : { error: { message, type: "invalid_request_error", param: null, code: null, more: { a: [1] } }, hint: longId }

/** The error as its caller gets it: with the `code` and `param` that the server lacks. */
const filled = (driver: Driver, code: string, message?: string) => {
  const body = errorOf(driver, message)
  return driver === "generate" ? body : { ...body, error: { param: null, ...body.error, code } }
}

describe.each(drivers.flatMap((driver) => [false, true].map((stream) => ({ driver, stream }))))(
  "a caller of the protocol of $driver, streamed $stream",
  ({ driver, stream }) => {
    const way = { style: own[driver], stream } as const

    it("gets the server's refusal of the request whole, with its ids, from several accounts too", async () => {
      for (const name of [`${driver}-one`, `${driver}-two`]) {
        farm.answer(name, () => json(400, errorOf(driver), { "request-id": "the-server's" }))
        const told = await ask(name, way)
        assert.strictEqual(told.status, 400, told.body)
        assert.deepStrictEqual(JSON.parse(told.body), filled(driver, "invalid_request"))
        assert.strictEqual(told.headers.get("x-upstream-request-id"), "the-server's")
        assert.notStrictEqual(told.headers.get("x-request-id"), "the-server's")
      }
    })

    it("gets the server's error within a stream whole", async () => {
      const event = driver === "responses"
        ? { type: "error", sequence_number: 1, error: errorOf(driver).error }
        : errorOf(driver)
      const data = `${driver === "generate" || driver === "openai" ? "" : "event: error\n"}data: ${
        JSON.stringify(event)
      }\n\n`
      farm.answer(`${driver}-one`, (request) => {
        const [...pieces] = said("Hello", request).pieces ?? []
        const text = pieces.join("")
        // The reply breaks before its end.
        const from = text.indexOf("\n\n", text.indexOf("Hell")) + 2
        return { headers: { "content-type": "text/event-stream" }, pieces: [text.slice(0, from), data] }
      })
      const told = await ask(`${driver}-one`, { ...way, stream: true })
      assert.strictEqual(told.status, 200)
      const last = parseFrames(told.body).map(({ data }) => data === "[DONE]" ? {} : JSON.parse(data))
        .findLast((frame) => frame.error !== undefined || frame.response?.error !== undefined)
      const error = last?.error ?? last?.response.error
      const { code = undefined, ...stated } = filled(driver, "").error as { code?: unknown }
      assert.deepInclude(error, stated, told.body)
      if (driver !== "generate") assert.isString(error.code)
      else assert.strictEqual(error.code, code)
    })
  }
)

describe("a refusal", () => {
  it("in a reply that began well has the status that its type means", async () => {
    farm.answer("messages-one", () => json(200, errorOf("messages")))
    const told = await askOne("messages-one")
    assert.deepStrictEqual([told.status, JSON.parse(told.body).request_id], [400, longId])
  })

  it.each([
    ["/v1/embeddings", { input: "Hi" }],
    ["/v1/rerank", { query: "Hi", documents: ["Hello"] }]
  ])("of another endpoint has every field too: %s", async (path, body) => {
    farm.answer("openai-one", () => json(422, errorOf("openai")))
    const told = await post(gateway, path, { model: "openai-one", ...body }, { key })
    assert.deepStrictEqual([told.status, JSON.parse(told.body)], [422, filled("openai", "invalid_request")])
  })

  it.each([400, 404, 405, 409, 413, 415, 422])("of the request with %i has the server's status", async (status) => {
    farm.answer("messages-two", () => json(status, errorOf("messages")))
    const told = await askOne("messages-two")
    assert.deepInclude(JSON.parse(told.body), { request_id: longId })
    assert.strictEqual(told.status, status)
  })

  it.each([401, 402, 403, 500, 502, 503])("with %i is the gateway's own error", async (status) => {
    farm.answer(`s${status}`, () => json(status, errorOf("messages"), { "retry-after": "3600" }))
    const told = await askOne(`s${status}`)
    assert.notInclude(told.body, longId)
    assert.include([429, 503], told.status)
  })

  it("of a key by Google's 400 is the gateway's own error", async () => {
    const error = { code: 400, message: "no", status: "INVALID_ARGUMENT", details: [{ reason: "API_KEY_INVALID" }] }
    farm.answer("key", () => json(400, { error }))
    const told = await ask("key", { style: "generate", stream: false })
    assert.notInclude(told.body, "API_KEY_INVALID")
    assert.strictEqual(told.status, 503)
  })

  it.each([
    ["without JSON", "plain", "Bad request"],
    ["without an error object", "bare", JSON.stringify({ message: longId })],
    ["of more than 64 KiB", "big", JSON.stringify({ error: { type: "x", message: longId.padEnd(65 * 1024, ".") } })]
  ])("%s is the gateway's own error", async (_, name, body) => {
    farm.answer(name, () => ({ status: 400, headers: { "content-type": "application/json" }, pieces: [body] }))
    const told = await askOne(name)
    const { error } = JSON.parse(told.body)
    assert.strictEqual(told.status, 400)
    assert.match(error.message, /^The upstream "\w+" refused the request/)
    assert.notInclude(told.body, longId)
  })

  it("is the gateway's own error where the configuration says so", async () => {
    farm.answer("own", () => json(400, errorOf("messages")))
    const told = await askOne("own")
    assert.match(JSON.parse(told.body).error.message, /^The upstream "[\w-]+" refused the request: /)
    assert.notInclude(told.body, longId)
  })

  it("is the gateway's own error for a caller of another protocol", async () => {
    farm.answer("messages-one", () => json(400, errorOf("messages")))
    const told = await ask("messages-one", { style: "chat", stream: false })
    assert.match(JSON.parse(told.body).error.message, /^The upstream "[\w-]+" refused the request: /)
    assert.notInclude(told.body, longId)
  })

  it("comes from the last try over several targets", async () => {
    farm.answer("messages-one", () => json(404, errorOf("messages", "the model is gone")))
    farm.answer("s500", () => json(409, errorOf("messages")))
    const told = await askOne("both")
    assert.deepStrictEqual([told.status, JSON.parse(told.body).error.message], [
      409,
      errorOf("messages").error.message
    ])
  })

  it("has no advice for operators, which is in the request's record", async () => {
    farm.answer("messages-one", () => json(404, errorOf("messages", "the model is gone")))
    const told = await askOne("messages-one")
    assert.strictEqual(JSON.parse(told.body).error.message, "the model is gone")
    const record = await admin(gateway.url, "GET", `/admin/requests/${told.headers.get("x-request-id")}`)
    assert.strictEqual(
      record["error_message"],
      "The upstream \"messages-one\" does not have the model: the model is gone. Ask the gateway's operator. " +
        "(upstreams.messages-one.models.messages-one says which model of the server is meant)"
    )
  })

  it("has no secret of the upstream, and everything else", async () => {
    const address = new URL(farm.server.baseUrl).origin
    const secrets = ["key-of-secret", "second-key-of-secret", "portal-secret", address]
    const body = errorOf("messages", `${longId} ${secrets.join(" ")} sk-not-a-secret-of-mine a@b.example`)
    farm.answer("secret", () => json(400, { ...body, [`at ${address}`]: secrets }, { "request-id": "key-of-secret" }))
    const told = await askOne("secret")
    for (const secret of secrets) assert.notInclude(told.body, secret)
    assert.strictEqual(
      JSON.parse(told.body).error.message,
      `${longId} [hidden] [hidden] [hidden] [hidden] sk-not-a-secret-of-mine a@b.example`
    )
    assert.strictEqual(told.headers.get("x-upstream-request-id"), "[hidden]")
  })

  it("reaches the caller of a token of its own with every status", async () => {
    farm.answer("direct", () => json(401, errorOf("openai")))
    const told = await send(gateway, { style: "chat", stream: false }, "direct", { key: "token-of-the-caller" })
    assert.deepStrictEqual([told.status, JSON.parse(told.body)], [401, filled("openai", "authentication_failed")])
  })
})

describe("a limit", () => {
  const overload = { type: "error", error: { type: "overloaded_error", message: longId }, request_id: longId }
  const hours = { "retry-after": "287441", "retry-after-ms": "287440500", "x-should-retry": "false" }

  it.each([429, 503, 529])("of the only account arrives word for word: %i", async (status) => {
    const name = status === 503 ? "generate-one" : status === 429 ? "messages-one" : "never"
    const driver = status === 503 ? "generate" : "messages"
    const body = status === 503
      ? { error: { code: 503, message: `The model is overloaded ${longId}`, status: "UNAVAILABLE" } }
      : overload
    farm.answer(name, () => json(status, body, status === 429 ? hours : {}))
    const told = await ask(name, { style: own[driver], stream: true })
    assert.strictEqual(told.status, status, told.body)
    assert.deepInclude(JSON.parse(told.body).error, body.error)
    if (status !== 429) return
    assert.deepStrictEqual(["retry-after", "retry-after-ms", "x-should-retry"].map((name) => told.headers.get(name)), [
      "287441",
      "287440500",
      "false"
    ])
  })

  it("within a stream is the server's where one account alone could answer", async () => {
    for (const [name, isServers] of [["forward", true], ["always", false]] as const) {
      farm.answer(name, (request) => {
        const text = (said("Hello", request).pieces ?? []).join("")
        const from = text.indexOf("\n\n", text.indexOf("Hell")) + 2
        const event = `event: error\ndata: ${JSON.stringify(overload)}\n\n`
        return { headers: { "content-type": "text/event-stream" }, pieces: [text.slice(0, from), event] }
      })
      const told = await ask(name, { style: "messages", stream: true })
      assert.strictEqual(told.body.includes(longId), isServers, told.body)
    }
  })

  it("of several accounts is the gateway's own error, with the time of the first account", async () => {
    farm.answer("messages-two", ({ key }) => {
      const wait = key?.startsWith("first") === true ? { "retry-after": "7200" } : hours
      return json(429, overload, wait)
    })
    const told = await askOne("messages-two")
    assert.notInclude(told.body, longId)
    assert.deepStrictEqual([told.status, told.headers.get("retry-after")], [429, "7200"])
  })

  it("until a date arrives in seconds", async () => {
    const seconds = 40 * 24 * 3_600
    const date = new Date(Date.now() + seconds * 1_000).toUTCString()
    farm.answer("openai-one", () => json(429, errorOf("openai"), { "retry-after": date, "x-should-retry": "true" }))
    const told = await ask("openai-one", { style: "chat", stream: false })
    assert.strictEqual(told.headers.get("retry-after"), String(30 * 24 * 3_600))
    assert.strictEqual(told.headers.get("x-should-retry"), "true")
  })
})

describe("rate-limit headers", () => {
  const sent = {
    "anthropic-ratelimit-unified-status": "allowed",
    "x-ratelimit-remaining-requests": "9",
    "x-codex-primary-used-percent": "12",
    "x-codex-credits-balance": "3",
    "x-codex-turn-state": "sealed",
    "x-other": "1"
  }
  const limits = Object.keys(sent).slice(0, 4)
  const seen = (told: Told) => Object.keys(sent).filter((name) => told.headers.has(name))
  const withLimits = (names: ReadonlyArray<string>) => {
    for (const name of names) {
      farm.answer(name, (request) => {
        const answer = said("Hello", request)
        return { ...answer, headers: { "content-type": "text/event-stream", ...answer.headers, ...sent } }
      })
    }
  }

  it("arrive with the replies of the only account, of a pinned account, and where the configuration says so", async () => {
    withLimits(["named", "always", "secret"])
    for (const stream of [false, true]) {
      assert.deepStrictEqual(seen(await ask("named", { style: "messages", stream })), limits)
      assert.deepStrictEqual(seen(await ask("named", { style: "chat", stream })), limits)
      assert.deepStrictEqual(seen(await ask("always", { style: "messages", stream })), limits)
    }
    const pinned = {
      headers: { "x-gateway-target-account": `secret/token:${sha256Hex("key-of-secret").slice(0, 16)}` }
    }
    const told = await askOne("secret", pinned)
    assert.strictEqual(told.status, 200, told.body)
    assert.deepStrictEqual(seen(told), limits)
  })

  it("arrive with errors", async () => {
    farm.answer("named", () => json(400, errorOf("messages"), sent))
    assert.deepStrictEqual(seen(await askOne("named")), limits)
  })

  it("stay here where several accounts could answer, and where the configuration says so", async () => {
    withLimits(["secret", "never"])
    assert.isEmpty(seen(await askOne("secret")))
    assert.isEmpty(seen(await askOne("never")))
  })

  it("stay here where the reply's head leaves before the server replies", async () => {
    const clock = makeMovedClock({ still: true })
    const late = await startGateway({ upstreams: { late: farm.upstream("late", { driver: "messages" }) } }, { clock })
    const gate = held((request) => ({ ...said("Hello", request), headers: sent }))
    farm.answer("late", gate.behaviour)
    const asking = fetch(`${late.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({ model: "m", max_tokens: 9, stream: true, messages: [{ role: "user", content: "Hi" }] })
    })
    await untilHolds(async () => farm.seen("late").length === 1)
    clock.move(10_000)
    const response = await asking
    gate.release()
    assert.include(await response.text(), "message_stop")
    await late.stop()
    assert.isEmpty(Object.keys(sent).filter((name) => response.headers.has(name)))
  })

  it("are the key's own where the key has limits", async () => {
    withLimits(["named"])
    const told = await askOne("named", { key: limitedKey })
    assert.strictEqual(told.headers.get("x-ratelimit-limit-requests"), "1000")
    assert.strictEqual(told.headers.get("x-ratelimit-remaining-requests"), "999")
    assert.strictEqual(told.headers.get("anthropic-ratelimit-unified-status"), "allowed")
  })
})

describe("the caller's headers", () => {
  const headers = {
    "anthropic-version": "2099-01-01",
    "anthropic-beta": "a,b",
    "anthropic-next-year": "yes",
    "anthropic-key": "of the caller",
    "x-trace-id": "t",
    "x-team-a": "a",
    "x-team-b": "b",
    "x-other": "o",
    "x-api-key": "of-the-caller",
    "x-forwarded-for": "10.1.1.1",
    "x-gateway-session": "s",
    "cookie": "c=1"
  }
  const arrived = (name: string) => {
    const seen = farm.seen(name).at(-1)!.headers
    return Object.fromEntries(
      Object.keys(headers).flatMap((name) => seen[name] === undefined ? [] : [[name, seen[name]]])
    )
  }
  const anthropic = { "anthropic-version": "2099-01-01", "anthropic-beta": "a,b", "anthropic-next-year": "yes" }

  it("of the protocol reach a server of it as they came, with counts of tokens too", async () => {
    farm.answer("plain", (request) => said("Hello", request))
    for (const path of ["/v1/messages", "/v1/messages/count_tokens"]) {
      await post(gateway, path, { model: "plain", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] }, {
        key,
        headers
      })
      assert.deepStrictEqual(arrived("plain"), {
        ...anthropic,
        "anthropic-key": "of the caller",
        "x-api-key": "key-of-plain"
      }, path)
    }
  })

  it("of the protocol never take the place of an account's key", async () => {
    farm.answer("named", (request) => said("Hello", request))
    await askOne("named", { headers })
    assert.deepStrictEqual(arrived("named"), { ...anthropic, "anthropic-key": "key-of-named" })
  })

  it("reach no server of another protocol, and servers get the version of the gateway from other callers", async () => {
    farm.answer("openai-two", (request) => said("Hello", request))
    await askOne("openai-two", { headers })
    assert.deepStrictEqual(arrived("openai-two"), {})
    farm.answer("named", (request) => said("Hello", request))
    await ask("named", { style: "chat", stream: false }, { headers })
    assert.deepStrictEqual(arrived("named"), { "anthropic-version": "2023-06-01", "anthropic-key": "key-of-named" })
  })

  it("go to a server as configured, and the configured values win", async () => {
    farm.answer("forward", (request) => said("Hello", request))
    await askOne("forward", { headers })
    assert.deepStrictEqual(arrived("forward"), {
      ...anthropic,
      "anthropic-beta": "configured",
      "anthropic-key": "of the caller",
      "x-trace-id": "t",
      "x-team-a": "configured",
      "x-team-b": "b",
      "x-other": "o",
      "x-api-key": "key-of-forward"
    })
  })
})

describe("a caller of messages", () => {
  it("gets 404 for a model without a server", async () => {
    const told = await askOne("without-a-server")
    assert.strictEqual(told.status, 404)
    assert.deepInclude(JSON.parse(told.body).error, {
      type: "not_found_error",
      code: "model_not_found",
      param: "model"
    })
    assert.strictEqual((await ask("without-a-server", { style: "chat", stream: false })).status, 400)
  })

  it("reads that the prompt is too long, as its protocol says it", async () => {
    farm.answer("openai-two", () => json(400, { error: { message: "too big", code: "context_length_exceeded" } }))
    const told = await askOne("openai-two")
    assert.strictEqual(told.status, 400)
    assert.include(JSON.parse(told.body).error.message, "prompt is too long")
  })
})
