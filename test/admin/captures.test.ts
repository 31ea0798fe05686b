import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import * as Reference from "../../src/testing/Reference.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller, storeOf } from "./support.ts"

const password = "a-password-of-the-account"
const scope = Scope.makeUnsafe()
const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) => Effect.runPromise(Scope.provide(effect, scope))

let gateway: RunningGateway
let reference: Reference.Reference["Service"]
let base_url: string
const call = caller(() => gateway)

beforeAll(async () => {
  reference = await run(Reference.make())
  base_url = await run(reference.listen())
  gateway = await startGateway({
    upstream: { driver: "session", base_url },
    accounts: [{ email: "Someone@Example.com", password }],
    captures: { limit: 3, max_body_bytes: 20_000 }
  })
})
afterAll(async () => {
  await gateway.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const chat = async (content: string, key = businessKey) => {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content }] })
  })
  return { status: response.status, text: await response.text() }
}

type Item = Record<string, unknown>
const list = async () => (await call("GET", "/admin/dev/captures")).json
const items = async () => (await list())["items"] as ReadonlyArray<Item>

describe("the list of captures", () => {
  it("contains each call of the upstream, newest first", async () => {
    assert.deepStrictEqual(await list(), { enabled: true, limit: 3, max_body_bytes: 20_000, items: [] })
    const before = Math.floor(Date.now() / 1000)
    const reply = await chat("!say one two three\n!cut 2")
    assert.strictEqual(reply.status, 200)
    const [second, first] = await items()
    assert.sameMembers(Object.keys(first!), [
      "id",
      "created_at",
      "label",
      "url",
      "account_id",
      "status_code",
      "request_body",
      "response_body",
      "response_truncated",
      "chain_key"
    ])
    assert.deepInclude(first, {
      label: "completion",
      url: `${base_url}/api/v0/chat/completion`,
      account_id: "Someone@Example.com",
      status_code: 200,
      response_truncated: false
    })
    assert.isAtLeast(Number(first!["created_at"]), before)
    assert.deepInclude(second, { label: "continue", chain_key: first!["chain_key"] })
    assert.notStrictEqual(second!["id"], first!["id"])
    assert.include(String(JSON.parse(String(first!["request_body"])).prompt), "!say one two three")
    assert.match(String(first!["response_body"]), /^event: ready\ndata: /)
    assert.include(reply.text, String(first!["chain_key"]))
  })

  it("contains error replies and calls with callers' own tokens, without credentials", async () => {
    const token = "direct-token-of-a-caller"
    await run(reference.fail({ name: "trouble", call: "completion", message: `who is Bearer ${token}?` }))
    assert.strictEqual((await chat("hi", token)).status, 503)
    const shown = await call("GET", "/admin/dev/captures")
    const [refused] = shown.json["items"] as ReadonlyArray<Item>
    assert.deepInclude(refused, { account_id: "", status_code: 200 })
    assert.include(String(refused!["response_body"]), `who is Bearer ${"*".repeat(token.length)}?`)
    const logins = (await run(reference.report)).requests.filter(({ call }) => call === "login")
    assert.strictEqual(logins.length, 1)
    for (const secret of [token, password, "reference-token-", businessKey]) assert.notInclude(shown.text, secret)
  })

  it("is bounded by captures.limit, which may change at any time, and truncates long bodies", async () => {
    for (let i = 0; i < 5; i++) await chat(`!say number ${i}`)
    assert.strictEqual((await items()).length, 3)
    const captures = { enabled: true, limit: 2, max_body_bytes: 100 }
    await run(storeOf(gateway).update((raw) => Effect.succeed({ ...raw, captures })))
    const status = await list()
    assert.deepInclude(status, { enabled: true, limit: 2, max_body_bytes: 100 })
    assert.strictEqual((status["items"] as ReadonlyArray<Item>).length, 2)
    await chat("!count 50")
    const [cut] = await items()
    assert.isTrue(cut!["response_truncated"])
    assert.strictEqual(Buffer.byteLength(String(cut!["response_body"])), 100)
    assert.isAtMost(Buffer.byteLength(String(cut!["request_body"])), 100)
  })

  it("keeps its items while captures are off", async () => {
    const before = await items()
    await run(storeOf(gateway).update((raw) => Effect.succeed({ ...raw, captures: { enabled: false, limit: 2 } })))
    await chat("!say unseen")
    assert.isFalse((await list())["enabled"])
    assert.deepStrictEqual(await items(), before)
  })

  it("is empty after DELETE", async () => {
    const cleared = await call("DELETE", "/admin/dev/captures")
    assert.deepStrictEqual([cleared.status, cleared.json], [200, { success: true, detail: "capture logs cleared" }])
    assert.deepStrictEqual(await items(), [])
  })

  it("requires an operator", async () => {
    for (const method of ["GET", "DELETE"]) {
      assert.strictEqual((await call(method, "/admin/dev/captures", { bearer: null })).status, 401)
      assert.strictEqual((await call(method, "/admin/dev/captures", { bearer: businessKey })).status, 401)
    }
  })
})

describe("a capture", () => {
  it("is listed without bodies, and returned with bodies by its id", async () => {
    await run(storeOf(gateway).update((raw) => Effect.succeed({ ...raw, captures: { limit: 5 } })))
    const { text } = await chat("!say one two three")
    const summary = (await call("GET", "/admin/dev/captures?summary=true")).json
    const [short] = summary["items"] as ReadonlyArray<Item>
    const [{ request_body, response_body, ...head }] = await items() as [Item]
    const sizes = {
      request_bytes: Buffer.byteLength(String(request_body)),
      response_bytes: Buffer.byteLength(String(response_body))
    }
    assert.deepStrictEqual(short, { ...head, ...sizes, request_id: short!["request_id"], closed: true })
    assert.match(String(short!["request_id"]), /^req_/)
    assert.include(text, String(head["chain_key"]))
    const one = await call("GET", `/admin/dev/captures/${String(head["id"])}`)
    assert.deepStrictEqual(one.json, {
      ...head,
      request_body,
      response_body,
      request_id: short!["request_id"],
      closed: true
    })
    assert.strictEqual((await call("GET", "/admin/dev/captures/cap_none")).status, 404)
    assert.strictEqual((await call("GET", "/admin/dev/captures?summary=perhaps")).status, 400)
    assert.strictEqual((await call("GET", "/admin/dev/captures/cap_none", { bearer: null })).status, 401)
  })
})
