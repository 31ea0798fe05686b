/** The caller's own login with a vendor, beside the gateway's key: which server gets it, and that nobody else does. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { admin } from "../gateway/support.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { type Farm, json, said, type SeenRequest, startFarm } from "./support.ts"

const login = "sk-ant-oat01-login-of-the-developer"

let farm: Farm
let gateway: RunningGateway
beforeAll(async () => {
  farm = await startFarm()
  const messages = { driver: "messages" }
  gateway = await startGateway({
    upstream: { driver: "embedded" },
    embeddings: { provider: "upstream" },
    upstreams: {
      own: farm.upstream("own", { ...messages, credential: "caller" }),
      mine: farm.upstream("mine", { ...messages, credential: "either" }),
      pooled: farm.upstream("pooled", messages),
      gpt: farm.upstream("gpt", { credential: "caller" }),
      gemini: farm.upstream("gemini", { driver: "generate", credential: "caller" })
    },
    accounts: ["mine", "pooled"].flatMap((upstream) =>
      [1, 2].map((i) => ({ upstream, token: `key-${upstream}-${i}` }))
    ),
    routes: { first: ["own/m", "pooled/m"], last: ["pooled/m", "own/m"], elsewhere: ["gpt/m", "own/m"] }
  })
})
afterAll(async () => {
  await gateway.stop()
  await farm.stop()
})

const bodies = {
  "/v1/messages": { max_tokens: 9, messages: [{ role: "user", content: "Hi" }] },
  "/v1/chat/completions": { messages: [{ role: "user", content: "Hi" }] },
  "/v1/responses": { input: "Hi" },
  "/v1/embeddings": { input: "Hi" }
} as const

const saidBy = (request: SeenRequest) => said("Hello", request)

type Path = keyof typeof bodies

const ask = async (
  model: string,
  headers: Readonly<Record<string, string>>,
  path: Path = "/v1/messages"
) => {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model, ...bodies[path] })
  })
  const body = await response.json() as { readonly error?: { readonly code?: string } }
  return { status: response.status, code: body.error?.code, text: JSON.stringify(body) }
}

const key = { "x-gateway-key": businessKey }
const bearer = { authorization: `Bearer ${login}` }

const credentialsOf = (request: SeenRequest | undefined) => ({
  authorization: request?.headers.authorization,
  "x-api-key": request?.headers["x-api-key"],
  "x-gateway-key": request?.headers["x-gateway-key"]
})

const none = { authorization: undefined, "x-api-key": undefined, "x-gateway-key": undefined }

describe("a login beside the gateway's key", () => {
  it("reaches its vendor unchanged in the header that it came in, and the key does not", async () => {
    assert.strictEqual((await ask("own/m", { ...key, ...bearer })).status, 200)
    assert.deepStrictEqual(credentialsOf(farm.seen("own").at(-1)), { ...none, ...bearer })
    assert.strictEqual((await ask("mine/m", { ...key, "x-api-key": login })).status, 200)
    assert.deepStrictEqual(credentialsOf(farm.seen("mine").at(-1)), { ...none, "x-api-key": login })
    for (const path of ["/v1/chat/completions", "/v1/responses", "/v1/embeddings"] as const) {
      assert.strictEqual((await ask("gpt/m", { ...key, ...bearer }, path)).status, 200)
      assert.deepStrictEqual(credentialsOf(farm.seen("gpt").at(-1)), { ...none, ...bearer })
    }
  })

  it("reaches no upstream with accounts, and no server of another vendor", async () => {
    assert.strictEqual((await ask("pooled/m", { ...key, ...bearer })).status, 200)
    assert.strictEqual((await ask("elsewhere", { ...key, ...bearer })).status, 200)
    assert.strictEqual((await ask("mine/m", { ...key, ...bearer }, "/v1/chat/completions")).status, 200)
    for (const [name, expected] of [["pooled", /^key-pooled/], ["mine", /^key-mine/]] as const) {
      const seen = farm.seen(name).at(-1)
      assert.match(seen?.headers["x-api-key"] as string, expected)
      assert.notInclude(JSON.stringify(seen?.headers), login)
    }
    const refused = await ask("gemini/m", { ...key, ...bearer })
    assert.deepStrictEqual([refused.status, refused.code], [401, "vendor_login_required"])
    assert.isEmpty(farm.seen("gemini"))
  })

  it("is needed where the upstream takes nothing else, and an account stands in where it may", async () => {
    const refused = await ask("own/m", key)
    assert.deepStrictEqual([refused.status, refused.code], [401, "vendor_login_required"])
    assert.strictEqual((await ask("own/m", { authorization: `Bearer ${businessKey}` })).code, "vendor_login_required")
    assert.strictEqual((await ask("first", key)).status, 200)
    assert.strictEqual((await ask("mine/m", key)).status, 200)
    assert.match(farm.seen("mine").at(-1)?.headers["x-api-key"] as string, /^key-mine/)
  })

  it("that is the gateway's key or the admin key reaches no server", async () => {
    for (const secret of [businessKey, adminKey]) {
      for (const headers of [{ authorization: `Bearer ${secret}` }, { "x-api-key": secret }]) {
        const { length } = farm.seen("own")
        const refused = await ask("own/m", { ...key, ...headers })
        assert.deepStrictEqual([refused.status, refused.code], [401, "vendor_login_required"])
        assert.lengthOf(farm.seen("own"), length)
        assert.strictEqual((await ask("mine/m", { ...key, ...headers })).status, 200)
        assert.match(farm.seen("mine").at(-1)?.headers["x-api-key"] as string, /^key-mine/)
      }
    }
  })

  it("counts for nothing beside a wrong key", async () => {
    const wrong = { "x-gateway-key": "wrong" }
    for (const headers of [{ ...wrong, ...bearer }, { ...wrong, authorization: `Bearer ${businessKey}` }]) {
      assert.strictEqual((await ask("own/m", headers)).status, 401)
    }
    const empty = await ask("own/m", { "x-gateway-key": "", authorization: `Bearer ${businessKey}` })
    assert.strictEqual(empty.status, 401)
  })

  it("has one try at its target, and the next target gets its own credential", async () => {
    farm.answer("own", () => json(500, { type: "error", error: { type: "api_error", message: "Ouch" } }))
    const { length } = farm.seen("pooled")
    const moved = await ask("first", { ...key, ...bearer })
    assert.strictEqual(moved.status, 200, moved.text)
    assert.lengthOf(farm.seen("own"), 1)
    assert.lengthOf(farm.seen("pooled"), length + 1)
    assert.strictEqual((await ask("own/m", { ...key, ...bearer })).status, 500)
    assert.lengthOf(farm.seen("own"), 2)
    const limited = { type: "error", error: { type: "rate_limit_error", message: "Later" } }
    farm.answer("pooled", () => json(529, limited))
    farm.answer("own", saidBy)
    assert.strictEqual((await ask("last", { ...key, ...bearer })).status, 200)
    assert.deepStrictEqual(credentialsOf(farm.seen("own").at(-1)), { ...none, ...bearer })
  })

  it("that its vendor refuses puts no account out, and is nowhere to be read", async () => {
    const message = `The token ${login} has expired`
    farm.answer("mine", () => json(401, { type: "error", error: { type: "authentication_error", message } }))
    const { status, text } = await ask("mine/m", { ...key, ...bearer })
    assert.strictEqual(status, 401)
    assert.strictEqual(JSON.parse(text).error.message, "The token [hidden] has expired")
    const { items } = await admin(gateway.url, "GET", "/admin/requests") as { items: ReadonlyArray<{ id: string }> }
    const shown = [
      await admin(gateway.url, "GET", `/admin/requests/${items[0]?.id}`),
      await admin(gateway.url, "GET", "/admin/dev/captures"),
      await admin(gateway.url, "GET", "/admin/accounts"),
      await (await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })).text()
    ].map((value) => JSON.stringify(value)).join()
    assert.notInclude(shown, login)
    assert.notInclude(shown, businessKey)
    farm.answer("mine", saidBy)
    assert.strictEqual((await ask("mine/m", key)).status, 200)
  })
})
