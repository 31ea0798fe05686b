/** Who may read the lists of models, over sockets, in every style that has one. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"

let gateway: RunningGateway
afterEach(() => gateway.stop())

const disabledKey = "a-disabled-key"
const start = async (auth: Readonly<Record<string, boolean>>) => {
  gateway = await startGateway({
    keys: [businessKey, disabledKey],
    key_records: { [keyId(disabledKey, sha256Hex)]: { disabled: true } },
    auth
  })
}

const lists = ["/v1/models", "/v1beta/models", "/msgcompat/v1/models"]
const paths = [
  ...lists,
  "/v1/models/upstream-chat",
  "/v1beta/models/upstream-chat",
  "/msgcompat/v1/models/msgcompat-opus-4-6"
]
const get = (path: string, headers: Record<string, string>) => fetch(gateway.url + path, { headers })
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const statuses = (path: string, ...tokens: ReadonlyArray<string>) =>
  Promise.all(tokens.map(async (token) => (await get(path, token === "" ? {} : bearer(token))).status))

describe("the lists of models", () => {
  it.each(paths)("need no credential by default, and take any bearer as a token of the upstream: %s", async (path) => {
    await start({})
    assert.deepStrictEqual(await statuses(path, "", businessKey, "a-token-of-its-own", disabledKey), [
      200,
      200,
      200,
      200
    ])
  })

  it.each(paths)("refuse a bearer that is no key where auth.direct_tokens is off: %s", async (path) => {
    await start({ direct_tokens: false })
    assert.deepStrictEqual(await statuses(path, "", businessKey), [200, 200])
    assert.deepStrictEqual(await statuses(path, "no-key", disabledKey, adminKey), [401, 401, 401])
    assert.strictEqual((await get(path, { "x-api-key": "no-key" })).status, 401)
    assert.strictEqual((await get(path, { "x-goog-api-key": businessKey })).status, 200)
    assert.strictEqual((await get(`${path}?key=no-key`, {})).status, 401)
  })

  it.each(paths)("need a credential where auth.public_models is off: %s", async (path) => {
    await start({ public_models: false })
    assert.deepStrictEqual(await statuses(path, "", disabledKey, adminKey), [401, 401, 401])
    assert.deepStrictEqual(await statuses(path, businessKey, "a-token-of-its-own"), [200, 200])
  })

  it("refuse in the style's own error format", async () => {
    await start({ direct_tokens: false, public_models: false })
    const bodies = await Promise.all(lists.map(async (path) => (await get(path, {})).json() as Promise<unknown>))
    const message = "No API key was sent; send Authorization: Bearer <key> or x-api-key: <key>"
    const [openai, generate, messages] = bodies
    assert.deepInclude(openai, {
      error: { message, type: "authentication_error", param: null, code: "authentication_failed" }
    })
    assert.deepNestedInclude(generate, { "error.code": 401, "error.status": "UNAUTHENTICATED" })
    assert.deepNestedInclude(messages, { type: "error", "error.type": "authentication_error" })
  })
})

/** The fields without one of which codex refuses the whole list. */
const codexFields = [
  "slug",
  "display_name",
  "description",
  "supported_reasoning_levels",
  "shell_type",
  "visibility",
  "supported_in_api",
  "priority",
  "availability_nux",
  "upgrade",
  "base_instructions",
  "supports_reasoning_summaries",
  "support_verbosity",
  "default_verbosity",
  "apply_patch_tool_type",
  "truncation_policy",
  "supports_parallel_tool_calls",
  "experimental_supported_tools"
]

interface List {
  readonly data: ReadonlyArray<{ readonly id: string }>
  readonly models?: ReadonlyArray<{ readonly [field: string]: unknown }>
}

const listOf = async (path: string) => await (await get(path, bearer(businessKey))).json() as List

describe("the list of models for codex", () => {
  it("is empty without instructions, and not there for clients that name no version", async () => {
    await start({})
    const { models, ...plain } = await listOf("/v1/models?client_version=0.171.0")
    assert.deepStrictEqual(models, [])
    assert.deepStrictEqual(await listOf("/v1/models"), plain)
  })

  it("has every field that codex needs, for the models that the key may use", async () => {
    gateway = await startGateway({
      key_records: { [keyId(businessKey, sha256Hex)]: { models: ["upstream-reasoner", "blind"] } },
      routes: { blind: ["default/upstream-chat"] },
      clients: { codex_instructions: "You are an agent." }
    })
    const { data, models = [] } = await listOf("/v1/models?client_version=0.171.0")
    assert.deepStrictEqual(data.map(({ id }) => id), ["upstream-reasoner", "blind"])
    assert.deepStrictEqual(models.map(({ slug }) => slug), ["upstream-reasoner", "blind"])
    for (const [i, model] of models.entries()) {
      assert.containsAllKeys(model, codexFields)
      assert.deepInclude(model, { base_instructions: "You are an agent.", priority: i })
      assert.notProperty(model, "use_responses_lite")
    }
    const efforts = models.map(({ supported_reasoning_levels: levels }) => (levels as ReadonlyArray<unknown>).length)
    assert.deepStrictEqual(efforts, [3, 0])
  })
})
