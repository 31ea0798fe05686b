/**
 * The import of other gateways' configuration: what becomes of each part, the report, and the models that the results serve.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { decodeConfig } from "../../../src/config/decodeConfig.ts"
import { isJsonObject, type RawConfig } from "../../../src/config/json.ts"
import { CurrentVariables } from "../../../src/config/references.ts"
import { importText } from "../../../src/server/cli/import/importFile.ts"
import { text } from "../../styles/replies.ts"
import { runs, seed } from "../../support/effort.ts"
import { startGateway } from "../../support/gateway.ts"
import { json, type SeenRequest } from "../../support/openaiServer.ts"
import { countSteps } from "../../support/steps.ts"
import { untilValue } from "../../support/until.ts"
import { generate } from "../../upstream/matrix/generate.ts"
import { messages } from "../../upstream/matrix/messages.ts"
import { openai } from "../../upstream/matrix/openai.ts"
import { responses } from "../../upstream/matrix/responses.ts"
import { run } from "./process.ts"

type Gateway = "litellm" | "cliproxyapi"

const fixture = (gateway: Gateway): string => path.join(import.meta.dirname, `../../fixtures/import/${gateway}.yaml`)

const variables: Readonly<Record<string, string>> = { ROUTER_BASE: "https://router.example/v1" }

const imported = (gateway: Gateway, content: unknown) =>
  importText(
    gateway,
    "file",
    typeof content === "string" ? content : JSON.stringify(content),
    (name) => variables[name]
  )

/** The result of an import, and the lines of its report. */
const read = async (gateway: Gateway, content: unknown) => {
  const { raw, report } = await Effect.runPromise(imported(gateway, content))
  return { raw, lines: report.lines }
}

const refused = async (gateway: Gateway, content: unknown): Promise<string> => {
  const { message } = await Effect.runPromise(Effect.flip(imported(gateway, content)))
  return message
}

const example = (gateway: Gateway) => read(gateway, readFileSync(fixture(gateway), "utf8"))

/** The checks of `check-config`, in an environment where every variable is set. */
const check = (raw: RawConfig) =>
  Effect.runPromise(
    Effect.provideService(decodeConfig(raw, { duplicates: "refuse" }), CurrentVariables, (name) => `value of ${name}`)
  )

const entry = (model_name: string, model: string, params: object = {}, more: object = {}) => ({
  model_name,
  litellm_params: { model, ...params },
  ...more
})

const at = (lines: ReadonlyArray<string>, place: string): ReadonlyArray<string> =>
  lines.filter((line) => line.startsWith(`${place}: `)).map((line) => line.slice(place.length + 2))

describe("a file of many names", () => {
  const names = (n: number, name: (i: number) => string) => Array.from({ length: n }, (_, i) => name(i))
  const server = { api_key: "sk-a", api_base: "http://one.example/v1" }
  const files: { readonly [about: string]: (n: number) => object } = {
    "models of one server": (n) => ({
      model_list: names(n, (i) => `m-${i}`).map((name) => entry(name, `openai/${name}`, server))
    }),
    "models of one name": (n) => ({ model_list: names(n, () => "m").map((name) => entry(name, "openai/m", server)) }),
    "servers of one name": (n) => ({
      model_list: names(n, (i) => `m-${i}`).map((name, i) =>
        entry(name, `openai/${name}`, { ...server, api_base: `http://one.example/v${i}` })
      )
    }),
    "aliases": (n) => ({
      model_list: [entry("m", "openai/m", server)],
      router_settings: {
        model_group_alias: Object.fromEntries(names(n, (i) => `alias-${i}`).map((name) => [name, "m"]))
      }
    }),
    "fallbacks of all models": (n) => ({
      model_list: names(n, (i) => `m-${i}`).map((name) => entry(name, `openai/${name}`, server)),
      litellm_settings: { default_fallbacks: names(n, (i) => `m-${i}`) }
    }),
    "fallbacks of one model after another": (n) => ({
      model_list: names(n, (i) => `m-${i}`).map((name) => entry(name, `openai/${name}`, server)),
      litellm_settings: { fallbacks: names(n, (i) => `m-${i}`).map((name) => ({ [name]: ["m-0", "m-1"] })) }
    })
  }

  it.each(Object.entries(files))("takes a bounded number of steps for each: %s", async (_, file) => {
    // The list prices are read by the first one.
    await Effect.runPromise(imported("litellm", file(1)))
    const steps = [200, 400, 800].map((n) => {
      const content = file(n)
      return countSteps(() => Effect.runSync(imported("litellm", content))) / n
    })
    assert.isAbove(steps[0]!, 1)
    assert.isAtMost(steps[2]!, 1.5 * steps[0]!, `steps for each of 200, 400 and 800: ${steps.join(", ")}`)
  })
})

describe("a configuration of LiteLLM", () => {
  it("has an upstream for each provider and address, with its keys as accounts", async () => {
    const { lines, raw } = await read("litellm", {
      model_list: [
        entry("small", "openai/gpt-4o-mini", { api_key: "sk-1" }),
        entry("large", "gpt-4o", { api_key: "os.environ/SECOND_KEY", organization: "org" }),
        entry("large", "openai/gpt-4o", { api_key: "sk-${1}" }),
        entry("claude", "claude-sonnet-4-5"),
        entry("near", "openai/own", { api_base: "http://near.example:8000/v1/" })
      ]
    })
    assert.deepEqual(raw["accounts"], [
      { upstream: "openai", token: "sk-1" },
      { upstream: "openai", token: "sk-$${1}" },
      { upstream: "openai-2", token: "${SECOND_KEY}" },
      { upstream: "anthropic", token: "${ANTHROPIC_API_KEY}" }
    ])
    assert.deepEqual(raw["upstreams"], {
      openai: {
        driver: "openai",
        base_url: "https://api.openai.com/v1",
        models: { small: "gpt-4o-mini", large: "gpt-4o" }
      },
      "openai-2": {
        driver: "openai",
        base_url: "https://api.openai.com/v1",
        models: { large: "gpt-4o" },
        headers: { "OpenAI-Organization": "org" }
      },
      anthropic: {
        driver: "messages",
        base_url: "https://api.anthropic.com",
        models: { claude: "claude-sonnet-4-5" }
      },
      // The provider's key does not go to a server of another address.
      "openai-3": { driver: "openai", base_url: "http://near.example:8000/v1", models: { near: "own" } }
    })
    assert.deepEqual(at(lines, "model_list[1].litellm_params.api_key"), [
      "changed: is ${SECOND_KEY}: set this variable in the environment of the gateway"
    ])
    assert.deepEqual(at(lines, "model_list[0].litellm_params"), [
      "changed: all keys of this server serve all of its models"
    ])
  })

  it("has a route for a name of several servers, evenly or in their order, and other targets for its fallbacks", async () => {
    const base = (host: string) => ({ api_base: `https://${host}.example/v1`, api_key: "k" })
    const { lines, raw } = await read("litellm", {
      model_list: [
        entry("even", "openai/a", base("a")),
        entry("even", "openai/b", base("b")),
        entry("ordered", "openai/a", { ...base("a"), order: 2 }),
        entry("ordered", "openai/b", { ...base("b"), order: 1 }),
        entry("pool", "openai/c1", base("a")),
        entry("pool", "openai/c2", base("a")),
        entry("one", "openai/d", base("a"))
      ],
      router_settings: { fallbacks: [{ one: ["even", "nothing"] }], model_group_alias: { uno: "one", even: "one" } },
      litellm_settings: { context_window_fallbacks: [{ ordered: ["one"] }] }
    })
    assert.deepEqual(raw["routes"], {
      even: { targets: ["openai/even", "openai-2/even"], spread: "even" },
      ordered: { targets: ["openai-2/ordered", "openai/ordered", "openai/one"], also_on: ["context_length"] },
      pool: { targets: ["openai/c1", "openai/c2"], spread: "even" },
      one: ["openai/one", "openai/even", "openai-2/even"]
    })
    assert.deepEqual((raw["upstreams"] as { readonly [name: string]: RawConfig })["openai"]?.["models"], {
      even: "a",
      ordered: "a",
      one: "d",
      // Names that only the route uses.
      c1: { model: "c1", hidden: true },
      c2: { model: "c2", hidden: true }
    })
    assert.deepEqual(raw["model_aliases"], { uno: "one" })
    assert.deepEqual(at(lines, "router_settings.fallbacks[0].one[1]"), ["left out: it names no model of the result"])
    assert.deepEqual(at(lines, "router_settings.model_group_alias.even"), [
      "left out: a model has this name, and an alias never stands before it"
    ])
  })

  it("has weights of targets, unless they are asked in order or by another strategy", async () => {
    const base = (host: string, weight?: number) => ({
      api_base: `https://${host}.example/v1`,
      api_key: "k",
      ...weight === undefined ? {} : { weight }
    })
    const model_list = [
      entry("split", "openai/a", base("a", 0.9)),
      entry("split", "openai/b", base("b", 0.1)),
      entry("keys", "openai/a", base("a", 2)),
      entry("keys", "openai/a", { ...base("a", 3), api_key: "k-2" }),
      entry("keys", "openai/b", base("b", 100_000)),
      entry("some", "openai/a", base("a", 4)),
      entry("some", "openai/b", base("b")),
      entry("ordered", "openai/a", { ...base("a", 1), order: 2 }),
      entry("ordered", "openai/b", { ...base("b", 9), order: 1 })
    ]
    const { lines, raw } = await read("litellm", { model_list })
    const weighted = (name: string, first: number, second: number) => ({
      spread: "weighted",
      targets: [{ target: `openai/${name}`, weight: first }, { target: `openai-2/${name}`, weight: second }]
    })
    assert.deepEqual(raw["routes"], {
      split: weighted("split", 9, 1),
      keys: weighted("keys", 1, 1_000),
      some: weighted("some", 4, 1),
      ordered: ["openai-2/ordered", "openai/ordered"]
    })
    assert.deepEqual(lines.filter((line) => line.startsWith("the model ")), [
      "the model keys: changed: keys of one server are taken evenly, and their weights count together",
      "the model some: changed: targets without a weight have the smallest one",
      "the model ordered: left out: its targets are asked in order, and have no weights"
    ])
    await check(raw)
    const busy = await read("litellm", { model_list, router_settings: { routing_strategy: "least-busy" } })
    assert.deepInclude(busy.raw["routes"], { split: { targets: ["openai/split", "openai-2/split"], spread: "even" } })
  })

  it("has facts of models, prices for a million tokens, times and limits of concurrent requests", async () => {
    const { lines, raw } = await read("litellm", {
      model_list: [
        entry("a", "groq/a", { api_key: "k", max_parallel_requests: 3 }),
        entry("a", "groq/a", { api_key: "k", max_parallel_requests: 3, timeout: 20 }, {
          model_info: {
            input_cost_per_token: 1.5e-7,
            output_cost_per_token: "0.000001",
            lost_cost: 1,
            max_input_tokens: 128_000,
            supports_vision: true,
            supports_prompt_caching: true
          }
        }),
        entry("b", "groq/b", { api_key: "k", max_parallel_requests: 4 })
      ],
      general_settings: { global_max_parallel_requests: 9 },
      litellm_settings: { request_timeout: 10 }
    })
    assert.deepEqual(raw["prices"], { "groq/a": { input: 0.15, output: 1 } })
    assert.deepInclude((raw["upstreams"] as RawConfig)["groq"], {
      models: { a: { model: "a", context_window: 128_000, input: ["text", "image"] }, b: "b" },
      max_inflight: 7,
      timeouts: { first_byte: 20, silence: 20 }
    })
    assert.deepEqual(raw["runtime"], { account_max_inflight: 256, global_max_inflight: 9 })
    assert.deepEqual(at(lines, "the field lost_cost of models"), ["left out: prices have no such unit"])
    assert.deepEqual(at(lines, "model_list[1].model_info.supports_prompt_caching"), [
      "left out: it has no counterpart here"
    ])
  })

  it("has addresses of Azure as the API's version asks for them, and the values of variables in other addresses", async () => {
    const azure = (more: object) => ({ api_base: "https://r.openai.azure.com/", api_key: "k", ...more })
    const { lines, raw } = await read("litellm", {
      model_list: [
        entry("dated", "azure/d-1", azure({ api_version: "2024-10-21" })),
        entry("plain", "azure/d-2", azure({})),
        entry("routed", "openrouter/x/y", { api_base: "os.environ/ROUTER_BASE" }),
        entry("gone", "openrouter/x/z", { api_base: "os.environ/NOWHERE" })
      ]
    })
    const upstreams = Object.values(raw["upstreams"] as RawConfig) as ReadonlyArray<RawConfig>
    assert.deepEqual(upstreams.map(({ base_url, credential_header }) => [base_url, credential_header]), [
      ["https://r.openai.azure.com/openai/deployments/d-1?api-version=2024-10-21", "api-key"],
      ["https://r.openai.azure.com/openai/v1", "api-key"],
      ["https://router.example/v1", undefined],
      ["https://openrouter.ai/api/v1", undefined]
    ])
    assert.deepEqual(at(lines, "model_list[3].litellm_params.api_base"), [
      "left out: the variable NOWHERE is not set for the import, which takes its value"
    ])
  })

  it("has the place and the credential of deployments at clouds, and says what to add by hand", async () => {
    const vertex = { vertex_project: "my-project", vertex_location: "us-east5" }
    const aws = { aws_region_name: "eu-central-1" }
    const { lines, raw } = await read("litellm", {
      model_list: [
        entry("sonnet", "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", {
          ...aws,
          aws_role_name: "arn:aws:iam::123456789012:role/gateway",
          aws_session_name: "team"
        }),
        entry("haiku", "bedrock/converse/us-west-2/anthropic.claude-haiku-4-5-20251001-v1:0", {
          aws_access_key_id: "AKID",
          aws_secret_access_key: "os.environ/AWS_SECRET"
        }),
        entry("opus", "bedrock/invoke/anthropic.claude-opus-4-6-v1", { ...aws, api_key: "bedrock-api-key" }),
        entry("gemini", "vertex_ai/gemini-2.5-pro", vertex),
        entry("claude", "vertex_ai/claude-sonnet-4-5@20250929", { ...vertex, vertex_credentials: "/secrets/sa.json" }),
        entry("gpt", "azure/d", {
          api_base: "https://r.openai.azure.com/",
          tenant_id: "T",
          client_id: "C",
          client_secret: "a-secret"
        }),
        entry("session", "bedrock/anthropic.claude-opus-4-6-v1", {
          aws_region_name: "us-east-1",
          aws_access_key_id: "AKID",
          aws_secret_access_key: "S",
          aws_session_token: "T"
        }),
        entry("nova", "bedrock/amazon.nova-pro-v1:0", aws),
        entry("nowhere", "bedrock/anthropic.claude-opus-4-6-v1"),
        entry("projectless", "vertex_ai/gemini-2.5-pro", { vertex_location: "global" }),
        entry("llama", "vertex_ai/meta/llama-4", vertex)
      ]
    })
    await check(raw)
    const driver = "messages"
    const models = (name: string, model: string) => ({ models: { [name]: model } })
    assert.deepEqual(raw["upstreams"], {
      bedrock: {
        driver,
        models: { sonnet: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", opus: "anthropic.claude-opus-4-6-v1" },
        vendor: "bedrock-runtime",
        region: "eu-central-1"
      },
      "bedrock-2": {
        driver,
        ...models("haiku", "anthropic.claude-haiku-4-5-20251001-v1:0"),
        vendor: "bedrock-runtime",
        region: "us-west-2"
      },
      "vertex-ai": {
        driver: "generate",
        ...models("gemini", "gemini-2.5-pro"),
        vendor: "vertex",
        project: "my-project",
        region: "us-east5"
      },
      "vertex-ai-2": {
        driver,
        ...models("claude", "claude-sonnet-4-5@20250929"),
        vendor: "vertex",
        project: "my-project",
        region: "us-east5"
      },
      azure: {
        driver: "openai",
        base_url: "https://r.openai.azure.com/openai/v1",
        ...models("gpt", "d"),
        credential_header: "api-key"
      },
      "bedrock-3": {
        driver,
        ...models("session", "anthropic.claude-opus-4-6-v1"),
        vendor: "bedrock-runtime",
        region: "us-east-1"
      }
    })
    assert.deepEqual(raw["accounts"], [
      {
        upstream: "bedrock",
        credential: { from: "aws", role: "arn:aws:iam::123456789012:role/gateway", session: "team" }
      },
      { upstream: "bedrock", token: "bedrock-api-key" },
      { upstream: "bedrock-2", credential: { from: "aws", key: "AKID", secret: "${AWS_SECRET}" } },
      { upstream: "vertex-ai", credential: { from: "google" } },
      { upstream: "vertex-ai-2", credential: { from: "google", file: "/secrets/sa.json" } },
      { upstream: "azure", credential: { from: "entra", tenant: "T", client: "C", secret: "a-secret" } },
      { upstream: "bedrock-3", credential: { from: "aws" } }
    ])
    const params = (i: number, field = "") => at(lines, `model_list[${i}].litellm_params${field}`)
    assert.deepEqual(params(6, ".aws_session_token"), [
      "left out: keys of a session end: give the account a profile or a role"
    ])
    assert.deepEqual([7, 8, 9, 10].map((i) => params(i)), [
      ["left out: Claude alone is served by InvokeModel: add other models of Bedrock by hand, by vendor bedrock"],
      ["left out: it has no aws_region_name: add it by hand, by vendor bedrock-runtime"],
      ["left out: it has no vertex_project and vertex_location: add it by hand, by vendor vertex"],
      ["left out: Gemini and Claude alone are served by Vertex AI here"]
    ])
  })
})

describe("a configuration of CLIProxyAPI", () => {
  it("names the entry with a limit that has no place, and where prices and clients' keys come from", async () => {
    const gpu = { api_base: "http://gpu:8000/v1", api_key: "k" }
    const { lines } = await read("litellm", {
      model_list: [entry("a", "openai/a", gpu), entry("b", "openai/b", { ...gpu, max_parallel_requests: 3 })]
    })
    assert.deepEqual(at(lines, "model_list[1].litellm_params.max_parallel_requests"), [
      "left out: other models of the same server have no limit, and limits belong to upstreams here"
    ])
    assert.deepEqual(at(lines, "prices of the result"), [
      "changed: do not exist, since no model of the file has costs: model-gateway prices import reads LiteLLM's list of prices"
    ])
    assert.deepEqual(at(lines, "keys of the result"), [
      "changed: do not exist: clients need keys of this gateway, which POST /admin/keys or the console makes"
    ])
    const priced = await read("litellm", {
      model_list: [entry("a", "openai/a", { ...gpu, input_cost_per_token: 0.000001, output_cost_per_token: 0.000002 })],
      general_settings: { master_key: "sk-1234567890" }
    })
    assert.deepEqual(priced.raw["prices"], { "openai/a": { input: 1, output: 2 } })
    assert.deepEqual(at(priced.lines, "prices of the result"), [
      "changed: come from the models with costs in the file: model-gateway prices check names the others"
    ])
    assert.deepEqual(at(priced.lines, "general_settings.master_key"), [
      "left out: the keys of clients are made here: the first start prints one"
    ])
  })

  it("has keys, and an upstream for entries of one server with the same models", async () => {
    const models = [
      {
        name: "claude-sonnet-4-5",
        alias: "sonnet",
        "display-name": "Sonnet",
        "max-context-length": 200_000,
        "input-modalities": ["image", "text", "smell"],
        thinking: { levels: ["high", "low"] }
      },
      { name: "claude-opus-4-1" }
    ]
    const sonnet = {
      model: "claude-sonnet-4-5",
      display_name: "Sonnet",
      context_window: 200_000,
      input: ["text", "image"],
      efforts: ["low", "high"]
    }
    const { lines, raw } = await read("cliproxyapi", {
      "api-keys": ["one", "two", "one"],
      port: 8317,
      "proxy-url": "http://proxy.example:8080",
      "claude-api-key": [
        { "api-key": "k-1", models, "excluded-models": ["claude-*-1"] },
        { "api-key": "k-2", models, "excluded-models": ["claude-*-1"], "proxy-url": "direct" },
        { "api-key": "k-3", models, prefix: "team", "base-url": "https://own.example" }
      ]
    })
    assert.deepEqual(raw["keys"], ["one", "two"])
    assert.deepEqual(raw["accounts"], [
      { upstream: "claude", token: "k-1" },
      { upstream: "claude", token: "k-2", proxy: "direct" },
      { upstream: "claude-2", token: "k-3" }
    ])
    const proxy = "http://proxy.example:8080"
    assert.deepEqual(raw["upstreams"], {
      claude: {
        driver: "messages",
        base_url: "https://api.anthropic.com",
        models: { sonnet },
        proxy
      },
      "claude-2": {
        driver: "messages",
        base_url: "https://own.example",
        models: {
          "team/sonnet": sonnet,
          sonnet,
          "team/claude-opus-4-1": "claude-opus-4-1",
          "claude-opus-4-1": "claude-opus-4-1"
        },
        proxy
      }
    })
    assert.deepEqual(raw["routes"], { sonnet: { targets: ["claude/sonnet", "claude-2/sonnet"], spread: "even" } })
    assert.deepEqual(at(lines, "claude-api-key[0].models[0].input-modalities"), [
      "left out: some of its words are not known here"
    ])
    assert.deepEqual(at(lines, "port"), ["changed: start with --port 8317"])
  })

  it("serves TLS by the files of the certificate, where it is on", async () => {
    const file = (tls: object) =>
      read("cliproxyapi", { "xai-api-key": [{ "api-key": "k", models: [{ name: "m" }] }], tls })
    const files = { cert: "/tls/tls.crt", key: "/tls/tls.key" }
    const [on, off, without] = await Promise.all([
      file({ enable: true, ...files }),
      file({ enable: false, ...files }),
      file({ enable: true, cert: "/tls/tls.crt", key: "" })
    ])
    assert.deepEqual([on, off, without].map(({ raw }) => raw["server"]), [{ tls: files }, undefined, undefined])
    assert.deepEqual([on, off, without].map(({ lines }) => at(lines, "tls")), [
      [],
      [],
      ["left out: it names no files of cert and key"]
    ])
  })

  /** Three keys of one model, the last one at a server of its own. */
  const ranked = (routing: object, ...ranks: readonly [object, object, object]) => {
    const models = [{ name: "claude-sonnet-4-5", alias: "sonnet" }]
    const places = [{}, {}, { "base-url": "https://own.example" }]
    return read("cliproxyapi", {
      routing,
      "claude-api-key": ranks.map((rank, i) => ({ "api-key": `k-${i + 1}`, models, ...rank, ...places[i] }))
    })
  }

  const choiceOf = ({ upstreams }: RawConfig): RawConfig[string] | undefined =>
    (upstreams as { readonly [name: string]: RawConfig })["claude"]?.["choose"]

  it("has the weights of keys where the strategy counts them", async () => {
    const weights = [{ weight: 5 }, {}, { weight: 2 }] as const
    const { raw } = await ranked({ strategy: "weighted-round-robin" }, ...weights)
    assert.strictEqual(choiceOf(raw), "weighted")
    assert.deepEqual(raw["accounts"], [
      { upstream: "claude", token: "k-1", weight: 5 },
      { upstream: "claude", token: "k-2", weight: 1 },
      { upstream: "claude-2", token: "k-3" }
    ])
    assert.deepEqual(raw["routes"], {
      sonnet: {
        targets: [{ target: "claude/sonnet", weight: 6 }, { target: "claude-2/sonnet", weight: 2 }],
        spread: "weighted"
      }
    })
    await check(raw)
    const even = await ranked({}, ...weights)
    assert.isUndefined(choiceOf(even.raw))
    assert.deepEqual(at(even.lines, "claude-api-key[0].weight"), [
      "left out: it counts only for the strategy weighted-round-robin"
    ])
  })

  it("uses keys and servers by their priorities, or in the order of the file", async () => {
    const { lines, raw } = await ranked({}, { priority: -5 }, { priority: 2_000 }, { priority: 7 })
    assert.strictEqual(choiceOf(raw), "fill_first")
    assert.deepEqual(raw["accounts"], [
      { upstream: "claude", token: "k-1", priority: -5 },
      { upstream: "claude", token: "k-2", priority: 1_000 },
      { upstream: "claude-2", token: "k-3" }
    ])
    assert.deepEqual(raw["routes"], { sonnet: ["claude/sonnet", "claude-2/sonnet"] })
    assert.deepEqual(at(lines, "claude-api-key[0]"), [
      "changed: its keys are used by priority, and those of one priority in their order"
    ])
    await check(raw)
    assert.strictEqual(choiceOf((await ranked({ strategy: "fill-first" }, {}, {}, {})).raw), "fill_first")
  })

  it("serves what the server of one entry without models lists, and says where that is not possible", async () => {
    const { lines, raw } = await read("cliproxyapi", {
      "routing": { strategy: "fill-first", "session-affinity": true },
      "gemini-api-key": [{ "api-key": "k-1" }, { "api-key": "k-2", "base-url": "https://own.example" }],
      "claude-api-key": [{ "api-key": "k-3", prefix: "p" }]
    })
    assert.deepEqual(raw, {
      accounts: [{ token: "k-1" }],
      upstream: { driver: "generate", base_url: "https://generativelanguage.googleapis.com" },
      compat: { family_models: false },
      runtime: { account_max_inflight: 256, sticky: true }
    })
    assert.deepEqual(at(lines, "gemini-api-key[1]"), [
      "left out: it names no models, and one upstream alone can serve all that its server lists: name them in the configuration"
    ])
    assert.deepEqual(at(lines, "claude-api-key[0]"), [
      "left out: it has a prefix and no models: name its models in the configuration"
    ])
  })
})

/** The places of the examples that have no counterpart. */
const leftOut: Readonly<Record<Gateway, ReadonlyArray<string>>> = {
  litellm: [
    "environment_variables.LANGFUSE_SECRET_KEY",
    "model_list[0].litellm_params.rpm",
    "model_list[5].litellm_params.stream_timeout",
    "model_list[6].litellm_params.stream_timeout",
    "model_list[7].litellm_params.temperature",
    "model_list[11].litellm_params",
    "model_list[12]",
    "general_settings.master_key",
    "general_settings.database_url",
    "litellm_settings.drop_params",
    "litellm_settings.num_retries",
    "litellm_settings.success_callback",
    "router_settings.fallbacks[0].smart[1]",
    "router_settings.routing_strategy",
    "router_settings.redis_password",
    "model_list[0].litellm_params.max_parallel_requests",
    "router_settings.model_group_alias.gone"
  ],
  cliproxyapi: [
    "claude-api-key[2].cloak",
    "gemini-api-key[0].weight",
    "codex-api-key[1]",
    "remote-management",
    "auth-dir",
    "request-retry",
    "quota-exceeded",
    "oauth-model-alias",
    "payload"
  ]
}

describe("the report of an import", () => {
  it.each(["litellm", "cliproxyapi"] as const)(
    "of the example for %s names each part that is left out, and no secret",
    async (gateway) => {
      const { lines, raw } = await example(gateway)
      const without = lines.filter((line) => line.includes(": left out: "))
      assert.deepEqual(without.map((line) => line.replace(/: left out: .*/, "")), leftOut[gateway])
      for (const line of lines) {
        assert.match(line, /^[^:]+: (?:changed|left out): \S/)
        assert.notMatch(line, /secret-|-secret|:secret/)
      }
      assert.lengthOf(new Set(lines), lines.length)
      const { warnings } = await check(raw)
      assert.deepEqual(warnings, [])
    }
  )

  it("names what only the checks find, and takes it out of the result", async () => {
    const { lines, raw } = await read("litellm", {
      model_list: [
        entry("a.b", "openai/x", {
          api_key: "sk-secret",
          extra_headers: { Host: "secret", Authorization: "secret", "X-A": "1" }
        }),
        entry("c", "openai/y", { api_base: "https://***@host.example/v1" }),
        entry("", "openai/z"),
        entry("d", "nobody/z")
      ]
    })
    assert.deepEqual(Object.keys(raw["upstreams"] as RawConfig), ["openai"])
    assert.deepInclude((raw["upstreams"] as RawConfig)["openai"], { headers: { "X-A": "1" } })
    assert.include(
      lines,
      "upstreams.openai.headers.Host of the result: left out: it is a header that the gateway sets itself"
    )
    assert.include(lines, "model_list[2]: left out: it has no model_name")
    assert.include(
      lines,
      "model_list[3].litellm_params: left out: its provider has no protocol of this gateway, or is not known"
    )
    assert.notMatch(lines.join("\n"), /secret/)
    await check(raw)
  })
})

/** Nine lists, each of nine times the one before. */
const bomb = [
  "a: &a [x]",
  ...[..."bcdefghi"].map((name, i) => `${name}: &${name} [${Array(9).fill(`*${"abcdefgh"[i]}`).join(",")}]`)
]
  .join("\n")

describe("a file that is refused", () => {
  it.each(
    [
      ["with a broken list", "a: [1,\n b: {sk-secret", /^file is no YAML document \(line 2, column \d+\)$/],
      ["of two documents", "a: 1\n---\nb: 2", /^file is no YAML document \(line 2, column 1\)$/],
      ["that names a field twice", "a: 1\na: 2", /^file is no YAML document \(line 2, column 1\)$/],
      ["of a list", "- a", /^file is no object$/],
      ["without content", "", /^file is no object$/],
      ["of fifty thousand braces", "{".repeat(50_000), /^file is no YAML document \(line 1, column \d+\)$/],
      ["with an alias of nothing", "a: *b", /^file (?:is no YAML document|has an alias without an anchor)/],
      ["with an alias of itself", "&a { b: *a }", /^file has more than 200000 values, or more than 64 of them/],
      ["with aliases of aliases", bomb, /^file has (?:an alias without an anchor, or too many aliases|more than)/],
      ["without models", "{}", /no model of the file can be served here$/]
    ] as ReadonlyArray<readonly [about: string, content: string, message: RegExp]>
  )("%s is named with the place and no word of it", async (_about, content, message) => {
    const said = await refused("litellm", content)
    assert.match(said, message)
    assert.notInclude(said, "secret")
  })
})

describe("the result of an import", () => {
  const word = fc.constantFrom(
    "",
    "a",
    "a/b",
    "openai/x",
    "anthropic/y",
    "*",
    "os.environ/X",
    "https://h.example/v1",
    "${",
    "direct",
    "http://[",
    "default"
  )
  const names =
    "model_list model_name litellm_params model api_key api_base extra_headers order timeout fallbacks router_settings " +
    "model_group_alias claude-api-key openai-compatibility api-key base-url prefix models name alias headers api-key-entries"
  const { value } = fc.letrec<{ readonly value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      word,
      fc.integer({ min: -1, max: 3 }),
      fc.boolean(),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.oneof(word, fc.constantFrom(...names.split(" "))), tie("value"), { maxKeys: 5 })
    )
  }))
  const provider = fc.record({
    model: fc.constantFrom(
      "openai/x",
      "anthropic/y",
      "gpt-4o",
      "*",
      "nothing",
      "azure/z",
      "bedrock/anthropic.claude-x"
    ),
    api_base: fc.option(word, { nil: undefined }),
    api_key: value,
    order: value,
    extra_headers: value
  }, { requiredKeys: ["model"] })
  const liteLlm = fc.record({
    model_list: fc.array(
      fc.record({ model_name: word, litellm_params: fc.oneof(provider, value), model_info: value }),
      { maxLength: 6 }
    ),
    router_settings: value,
    litellm_settings: fc.record({
      fallbacks: value,
      context_window_fallbacks: fc.array(fc.dictionary(word, fc.array(word)))
    })
  })
  const server = fc.record({
    "api-key": value,
    "base-url": word,
    prefix: word,
    headers: value,
    name: word,
    models: fc.array(fc.record({ name: word, alias: word }))
  })
  const cliProxyApi = fc.record({
    "api-keys": value,
    "proxy-url": word,
    "claude-api-key": fc.array(fc.oneof(server, value), { maxLength: 3 }),
    "openai-compatibility": fc.array(server, { maxLength: 4 })
  })

  it.each([["litellm", liteLlm], ["cliproxyapi", cliProxyApi]] as const)(
    "of any file for %s passes the checks",
    async (gateway, files) => {
      let passed = 0
      await fc.assert(
        fc.asyncProperty(files, async (file) => {
          const result = await Effect.runPromise(Effect.option(imported(gateway, file)))
          if (result._tag === "None") return
          passed++
          await check(result.value.raw)
        }),
        { numRuns: runs(150), seed }
      )
      assert.isAbove(passed, runs(20))
    }
  )

  const drivers = [
    [/\/messages(?:\?|$)/, messages],
    [/:generateContent/, generate],
    [/\/responses(?:\?|$)/, responses],
    [/./, openai]
  ] as const

  /** Asks for each name at a gateway with the configuration, whose servers are one scripted server. */
  const serve = async (raw: RawConfig, names: ReadonlyArray<string>) => {
    const { server } = await openai.start()
    server.list(() => json(200, { models: [{ name: "models/gemini-2.5-pro" }] }))
    server.answer((request) =>
      drivers.find(([path]) => path.test(request.path))![1].write([text("Served")], "stop", false)
    )
    const { host, protocol } = new URL(server.baseUrl)
    const here = (upstream: RawConfig): RawConfig => {
      const { proxy: _, ...others } = upstream
      return {
        ...others,
        base_url: Object.assign(new URL(String(upstream["base_url"])), { host, protocol }).href.replace(/\/$/, "")
      }
    }
    const secrets = JSON.stringify(raw).replaceAll(/\$\{(\w+)\}/g, "value of $1")
    const copy = JSON.parse(secrets) as RawConfig
    const gateway = await startGateway({
      ...copy,
      keys: ["k"],
      accounts: (copy["accounts"] as ReadonlyArray<RawConfig>).map(({ proxy: _, ...account }) => account),
      upstreams: Object.fromEntries(
        Object.entries(copy["upstreams"] as RawConfig).map(([name, upstream]) => [name, here(upstream as RawConfig)])
      ),
      ...(isJsonObject(copy["upstream"]) ? { upstream: here(copy["upstream"]) } : {})
    })
    if (isJsonObject(raw["upstream"])) {
      await untilValue(
        "the server's list of models",
        async () => (await fetch(`${gateway.url}/v1/models`)).text(),
        (list) => list.includes("gemini-2.5-pro")
      )
    }
    const asked: Array<readonly [name: string, status: number, model: unknown, request: SeenRequest | undefined]> = []
    for (const name of names) {
      const before = server.requests.length
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: "Bearer k", "content-type": "application/json" },
        body: JSON.stringify({ model: name, messages: [{ role: "user", content: "Hi" }] })
      })
      const body = await response.json() as { readonly model?: string }
      asked.push([name, response.status, body.model, server.requests[before]])
    }
    await gateway.stop()
    await server.stop()
    return asked
  }

  /** What arrives for a name: the server's model, and the key of its server. */
  type Arrival = readonly [path: string, model: string, keys: ReadonlyArray<string>]

  const assertServed = async (gateway: Gateway, arrivals: Readonly<Record<string, ReadonlyArray<Arrival>>>) => {
    const { raw } = await example(gateway)
    for (const [name, status, model, request] of await serve(raw, Object.keys(arrivals))) {
      assert.deepEqual([name, status, model], [name, 200, name])
      const path = request?.path ?? ""
      const sent = request?.body["model"] ?? /models\/([^:]+):/.exec(path)?.[1]
      const found = arrivals[name]!.find(([at, wanted]) => path === at && sent === wanted)
      assert.isDefined(found, `${name} arrives as ${String(sent)} at ${path}`)
      const key = request?.headers["api-key"]?.toString() ?? request?.key
      assert.include(found![2], key ?? "", name)
    }
  }

  const chat = "/v1/chat/completions"
  const openAiKeys = ["value of OPENAI_API_KEY", "sk-secret-second", "sk-secret-main"]

  it("serves each model name of the example for LiteLLM with the keys of its server", () => {
    const gpt: ReadonlyArray<Arrival> = [
      [chat, "gpt-4o", openAiKeys],
      ["/openai/deployments/prod-4o/chat/completions?api-version=2024-10-21", "prod-4o", ["sk-secret-azure"]]
    ]
    const coder: ReadonlyArray<Arrival> = [[chat, "Qwen/Qwen3-8B", [""]], [chat, "Qwen/Qwen3-32B", [""]]]
    return assertServed("litellm", {
      "gpt-4o": gpt,
      "gpt-4": gpt,
      smart: [["/v1beta/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro", ["value of GEMINI_API_KEY"]]],
      coder,
      "hidden-one": coder,
      local: [[chat, "llama3.1", [""]]],
      "openai/gpt-5": [["/v1/responses", "gpt-5", openAiKeys]],
      elsewhere: [[chat, "vendor/large", ["value of ROUTER_KEY"]]]
    })
  })

  it("serves each model name of the example for CLIProxyAPI with the keys of its server", () =>
    assertServed("cliproxyapi", {
      "claude-sonnet-latest": [["/v1/messages", "claude-sonnet-4-5-20250929", ["sk-ant-secret-1", "sk-ant-secret-2"]]],
      haiku: [["/v1/messages", "claude-haiku-4-5", ["sk-ant-secret-3"]]],
      "team/haiku": [["/v1/messages", "claude-haiku-4-5", ["sk-ant-secret-3"]]],
      "gemini-2.5-pro": [["/v1beta/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro", ["AIza-secret-1"]]],
      "codex-latest": [["/v1/responses", "gpt-5-codex", ["sk-secret-codex"]]],
      "grok-latest": [["/v1/responses", "grok-4.5", ["xai-secret"]]],
      "kimi-k2": [
        ["/api/v1/chat/completions", "moonshotai/kimi-k2:free", ["sk-or-secret-1", "sk-or-secret-2"]],
        [chat, "kimi-k2-instruct", ["sk-other-secret"]]
      ],
      pool: [
        ["/api/v1/chat/completions", "deepseek-v3.1", ["sk-or-secret-1", "sk-or-secret-2"]],
        ["/api/v1/chat/completions", "glm-5", ["sk-or-secret-1", "sk-or-secret-2"]]
      ]
    }))
})

describe("the command import", () => {
  it("writes a configuration that check-config accepts, and fails with --strict for what is left out", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "import-"))
    const [out, unwritten, broken] = ["out.json", "unwritten.json", "broken.yaml"].map((name) =>
      path.join(folder, name)
    )
    writeFileSync(broken!, "model_list: [")
    const [written, strict, refused] = await Promise.all([
      run(["import", "cliproxyapi", fixture("cliproxyapi"), "--out", out!]),
      run(["import", "litellm", fixture("litellm"), "--strict", "--out", unwritten!], { env: variables }),
      run(["import", "litellm", broken!])
    ])
    assert.deepEqual([written.code, written.stdout], [0, ""])
    assert.include(written.stderr, `${fixture("cliproxyapi")}: port: changed: start with --port 8317\n`)
    assert.deepEqual([strict.code, strict.stdout, existsSync(unwritten!)], [1, "", false])
    assert.match(strict.stderr, /: parts of it were left out, and --strict is set\n$/)
    assert.deepEqual([refused.code, refused.stdout, refused.stderr], [
      1,
      "",
      `${broken} is no YAML document (line 1, column 14)\n`
    ])
    const [checked, again] = await Promise.all([
      run(["check-config", "--strict", out!]),
      run(["import", "cliproxyapi", fixture("cliproxyapi"), "--out", out!])
    ])
    assert.deepEqual([checked.code, checked.stderr, again.code], [0, "", 1])
    assert.include(again.stderr, `${out} already exists: name another file, or remove it\n`)
    rmSync(folder, { recursive: true })
  })
})
