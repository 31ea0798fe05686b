/** One catalogue of models, over sockets: what each form of the list tells, to whom, and when it changes. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { untilHolds } from "../support/until.ts"

const limitedKey = "a-limited-key"
const instructions = "You are an agent."

interface Entry {
  readonly id: string
  readonly [field: string]: unknown
}

interface List {
  readonly data: ReadonlyArray<Entry>
  readonly models: ReadonlyArray<{ readonly [field: string]: unknown }>
  readonly has_more: boolean
  readonly first_id: string | null
  readonly last_id: string | null
}

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
  server.answer(({ body }) => streamed({ content: `I am ${String(body["model"])}.` }))
  server.list(() =>
    json(200, {
      data: [{ id: "wide", context_window: 64_000, max_completion_tokens: 4096 }, { id: "claude-x" }, { id: "plain" }]
    })
  )
  gateway = await startGateway({
    keys: [businessKey, limitedKey],
    key_records: { [keyId(limitedKey, sha256Hex)]: { models: ["wide", "near/plain"] } },
    upstream: {
      driver: "openai",
      base_url: server.baseUrl,
      models: {
        full: {
          model: "wide",
          display_name: "Full",
          description: "Does all.",
          input: ["text", "image", "pdf"],
          output: ["text"],
          efforts: ["low", "high", "max"],
          tools: true
        },
        secret: { model: "plain", hidden: true }
      }
    },
    upstreams: { near: { driver: "openai", base_url: `${server.baseUrl}/near`, models: { plain: "plain" } } },
    routes: { both: { targets: ["default/full", "near/plain"], display_name: "Both" } },
    prices: { full: { input: 0.15, cached_input: "0.075", output: 3, per_request: 0.001 } },
    clients: { codex_instructions: instructions }
  })
  await untilHolds(async () => (await get("/v1/models/wide")).status === 200)
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const get = (path: string, headers: Record<string, string> = {}) => fetch(gateway.url + path, { headers })
const bearer = (key = businessKey) => ({ authorization: `Bearer ${key}` })
const anthropic = { "anthropic-version": "2023-06-01" }
const listOf = async (path: string, headers: Record<string, string> = {}) =>
  await (await get(path, headers)).json() as List
const idsIn = ({ data }: List) => data.map(({ id }) => id)
const entryOf = async (id: string, headers: Record<string, string> = {}) =>
  (await listOf("/v1/models", headers)).data.find((entry) => entry.id === id)

const ids = ["upstream-chat", "full", "plain", "both", "wide", "claude-x"]

describe("the list in OpenAI's form", () => {
  it("has what is known with the names of OpenRouter, and no hidden model", async () => {
    const list = await listOf("/v1/models")
    assert.sameMembers(idsIn(list).filter((id) => !id.startsWith("upstream-")), ids.slice(1))
    assert.deepStrictEqual(await entryOf("full"), {
      id: "full",
      object: "model",
      created: 1_735_689_600,
      owned_by: "upstream",
      permission: [],
      name: "Full",
      description: "Does all.",
      context_length: 64_000,
      max_model_len: 64_000,
      architecture: { input_modalities: ["text", "image", "file"], output_modalities: ["text"] },
      top_provider: { context_length: 64_000, max_completion_tokens: 4096 },
      supported_parameters: ["tools", "tool_choice", "reasoning", "reasoning_effort"],
      efforts: ["low", "high", "max"]
    })
    assert.deepStrictEqual(Object.keys((await entryOf("plain"))!), [
      "id",
      "object",
      "created",
      "owned_by",
      "permission"
    ])
    assert.strictEqual((await get("/v1/models/secret")).status, 200)
  })

  it("has of a route what all its targets have, and the name of the route", async () => {
    const { name, ...rest } = (await entryOf("both"))!
    assert.strictEqual(name, "Both")
    assert.deepStrictEqual(Object.keys(rest), ["id", "object", "created", "owned_by", "permission"])
  })

  it("tells prices of a token to callers with a valid key alone", async () => {
    assert.notProperty(await entryOf("full"), "pricing")
    const pricing = { prompt: "0.00000015", completion: "0.000003", input_cache_read: "0.000000075", request: "0.001" }
    assert.deepStrictEqual((await entryOf("full", bearer()))?.["pricing"], pricing)
    const one = await (await get("/v1/models/full", bearer())).json() as Entry
    assert.deepStrictEqual(one, await entryOf("full", bearer()))
    assert.notProperty(await entryOf("both", bearer()), "pricing")
  })

  it("has the models of the caller's key", async () => {
    assert.deepStrictEqual(idsIn(await listOf("/v1/models", bearer(limitedKey))), ["full", "wide", "near/plain"])
  })
})

describe("the list in Anthropic's form", () => {
  it("answers a version, or a key in the header of that vendor alone", async () => {
    for (const headers of [anthropic, { "x-api-key": businessKey }, { ...anthropic, ...bearer() }]) {
      assert.notProperty(await listOf("/v1/models", headers), "object")
    }
    assert.property(await listOf("/v1/models", { "x-api-key": businessKey, ...bearer() }), "object")
    assert.property(await listOf("/v1/models", bearer()), "object")
  })

  it("has what is known, and null for unknown numbers", async () => {
    const { data } = await listOf("/v1/models", anthropic)
    const supported = (is: boolean) => ({ supported: is })
    const created_at = "2025-01-01T00:00:00Z"
    assert.deepStrictEqual(data.find(({ id }) => id === "full"), {
      id: "full",
      type: "model",
      display_name: "Full",
      created_at,
      max_input_tokens: 64_000,
      max_tokens: 4096,
      capabilities: {
        effort: {
          supported: true,
          low: supported(true),
          medium: supported(false),
          high: supported(true),
          xhigh: supported(false),
          max: supported(true)
        },
        thinking: supported(true),
        image_input: supported(true),
        pdf_input: supported(true)
      }
    })
    const plain = {
      id: "plain",
      type: "model",
      display_name: "plain",
      created_at,
      max_input_tokens: null,
      max_tokens: null,
      capabilities: null
    }
    assert.deepStrictEqual(data.find(({ id }) => id === "plain"), plain)
    assert.deepStrictEqual(await (await get("/v1/models/plain", anthropic)).json(), plain)
  })

  it("is paged forwards and backwards without a gap", async () => {
    const whole = idsIn(await listOf("/v1/models?limit=1000", anthropic))
    assert.deepStrictEqual(idsIn(await listOf("/v1/models", anthropic)), whole)
    for (const limit of [1, 3, whole.length]) {
      for (const [cursor, edge] of [["after_id", "last_id"], ["before_id", "first_id"]] as const) {
        const pages: Array<ReadonlyArray<string>> = []
        let from = cursor === "after_id" ? "" : `&before_id=${whole.at(-1)!}`
        for (let more = true; more;) {
          const page = await listOf(`/v1/models?limit=${limit}${from}`, anthropic)
          pages.push(idsIn(page))
          more = page.has_more
          from = `&${cursor}=${page[edge]}`
        }
        const joined = cursor === "after_id" ? pages.flat() : [...pages.reverse().flat(), whole.at(-1)]
        assert.deepStrictEqual(joined, whole, `${cursor} ${limit}`)
      }
    }
  })

  it("refuses a wrong page with the field's name, in the error format of that vendor", async () => {
    const wrong = {
      "limit=0": "limit must be a number from 1 to 1000",
      "limit=1001": "limit must be a number from 1 to 1000",
      "limit=x": "limit must be a number from 1 to 1000",
      "after_id=none": "after_id must be the id of a model of the list",
      "after_id=full&before_id=full": "before_id must be unset beside after_id"
    }
    for (const [query, message] of Object.entries(wrong)) {
      const response = await get(`/v1/models?${query}`, anthropic)
      assert.strictEqual(response.status, 400, query)
      assert.deepNestedInclude(await response.json(), { type: "error", "error.message": message })
    }
    const refused = await get("/v1/models", { "x-api-key": "no-key" })
    assert.deepStrictEqual([refused.status, (await refused.json() as { type: string }).type], [401, "error"])
  })

  it("gives Claude Code ids that it lists, which every caller may ask for", async () => {
    const claudeCode = { ...anthropic, "user-agent": "claude-cli/2.1.330 (external, cli)" }
    const named = idsIn(await listOf("/v1/models?limit=1000", claudeCode))
    assert.isTrue(named.every((id) => /claude|anthropic/.test(id)))
    assert.includeMembers(named, ["claude:full", "claude-x", "claude:both"])
    const names = (await listOf("/v1/models", claudeCode)).data.map(({ display_name }) => display_name)
    assert.includeMembers(names, ["Full", "plain", "Both"])
    assert.isFalse(idsIn(await listOf("/v1/models", anthropic)).some((id) => id.startsWith("claude:")))
    assert.deepInclude(await (await get("/v1/models/claude:full", claudeCode)).json(), { id: "claude:full" })
    for (const id of ["claude:full", "claude:wide"]) {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { ...bearer(), "content-type": "application/json" },
        body: JSON.stringify({ model: id, messages: [{ role: "user", content: "Hi" }] })
      })
      assert.include(await response.text(), "I am wide.")
    }
  })
})

describe("the lists of the other styles", () => {
  it("have what is known, and nominal numbers else, in Google's form", async () => {
    const { models } = await listOf("/v1beta/models")
    const find = (name: string) => models.find((each) => each["name"] === name)
    assert.deepInclude(find("models/full"), {
      displayName: "Full",
      description: "Does all.",
      inputTokenLimit: 64_000,
      outputTokenLimit: 4096,
      thinking: true
    })
    assert.deepInclude(find("models/plain"), { displayName: "Plain", inputTokenLimit: 131_072, outputTokenLimit: 8192 })
    assert.isUndefined(find("models/secret"))
  })

  it("have the models with what is known in the messages style's", async () => {
    const { data } = await listOf("/msgcompat/v1/models")
    const names = data.map(({ id }) => id)
    assert.includeMembers(names, ids.slice(1))
    assert.notInclude(names, "secret")
    assert.deepInclude(data.find(({ id }) => id === "full"), {
      display_name: "Full",
      max_input_tokens: 64_000,
      max_tokens: 4096
    })
  })

  it("have an entry for every model of the list for codex, without the switches of a vendor's dialect", async () => {
    const { data, models } = await listOf("/v1/models?client_version=0.171.0")
    assert.deepStrictEqual(models.map(({ slug }) => slug), data.map(({ id }) => id))
    const full = models.find(({ slug }) => slug === "full")!
    assert.deepInclude(full, {
      display_name: "Full",
      description: "Does all.",
      context_window: 64_000,
      max_context_window: 64_000,
      input_modalities: ["text", "image"],
      base_instructions: instructions
    })
    assert.deepStrictEqual(
      (full["supported_reasoning_levels"] as ReadonlyArray<{ effort: string }>).map(({ effort }) => effort),
      ["low", "high", "max"]
    )
    for (const model of models) {
      assert.doesNotHaveAnyKeys(model, ["use_responses_lite", "tool_mode", "multi_agent_version"])
    }
    assert.doesNotHaveAnyKeys(models.find(({ slug }) => slug === "plain"), ["context_window", "input_modalities"])
  })
})

describe("a list that a client has", () => {
  const lists: ReadonlyArray<readonly [string, Record<string, string>]> = [
    ["/v1/models", {}],
    ["/v1/models?client_version=1", {}],
    ["/v1/models", anthropic],
    ["/v1/models?limit=2", anthropic],
    ["/v1/models/full", bearer()],
    ["/v1beta/models", {}],
    ["/msgcompat/v1/models", {}]
  ]
  it.each(lists)("is answered with 304: %s %o", async (path, headers) => {
    const first = await get(path, headers)
    const tag = first.headers.get("etag")!
    await first.text()
    for (const condition of [tag, `W/${tag}`, `"other", ${tag}`, "*"]) {
      const again = await get(path, { ...headers, "if-none-match": condition })
      assert.deepStrictEqual([again.status, again.headers.get("etag"), await again.text()], [304, tag, ""])
    }
    assert.strictEqual((await get(path, { ...headers, "if-none-match": "\"other\"" })).status, 200)
  })

  it("has another tag in another form, with a key and for other models", async () => {
    const tags = await Promise.all(
      ([{}, anthropic, bearer(), bearer(limitedKey)] as ReadonlyArray<Record<string, string>>)
        .map(async (headers) => (await get("/v1/models", headers)).headers.get("etag"))
    )
    assert.strictEqual(new Set(tags).size, tags.length)
  })
})

describe("the catalogue for operators", () => {
  it("has each model with the value and the source of every fact, hidden ones too", async () => {
    const { models } = await (await get("/admin/models", bearer(adminKey))).json() as {
      models: ReadonlyArray<Entry>
    }
    const find = (id: string) => models.find((model) => model.id === id)
    assert.deepInclude(find("secret"), { hidden: true, targets: ["default/secret"], facts: {} })
    const full = find("full")!
    assert.deepInclude(full, { hidden: false, targets: ["default/full"] })
    assert.deepInclude(full["facts"] as object, {
      display_name: { value: "Full", source: "entry" },
      context_window: { value: 64_000, source: "server" }
    })
    assert.deepInclude(find("both"), { facts: { display_name: { value: "Both", source: "entry" } } })
    assert.strictEqual((await get("/admin/models", bearer())).status, 401)
  })
})

describe("a change", () => {
  const lengthOf = async (id: string) => (await entryOf(id))?.["context_length"]
  const change = (timeouts: object, model_facts: object) =>
    Effect.runPromise(
      Context.get(gateway.services, ConfigStore).update((raw) =>
        Effect.succeed({ ...raw, model_facts, upstream: { ...raw["upstream"] as object, timeouts } } as typeof raw)
      )
    )

  it("of facts in the configuration shows in the next list, and one at the server after its list is read", async () => {
    const tag = (await get("/v1/models")).headers.get("etag")!
    await change({}, { plain: { context_window: 9000 } })
    assert.strictEqual(await lengthOf("plain"), 9000)
    assert.strictEqual((await get("/v1/models", { "if-none-match": tag })).status, 200)
    server.list(() => json(200, { data: [{ id: "wide", context_window: 32_000 }, { id: "plain" }] }))
    await change({ silence: 60 }, {})
    await untilHolds(async () => await lengthOf("full") === 32_000)
    assert.isUndefined(await lengthOf("plain"))
  })
})
