/** The catalogue: which source a fact of a target is from, field by field. */
import { assert, describe, it } from "@effect/vitest"
import { isHome } from "../../src/contracts/drivers.ts"
import { catalogueOf } from "../../src/domain/catalogue.ts"
import { knownModels } from "../../src/domain/knownModels.ts"
import type { ModelFacts } from "../../src/domain/modelFacts.ts"
import { makeNameTable, noNames } from "../../src/domain/nameTable.ts"
import {
  makeRouteTable,
  resolveRoute,
  type RoutedModel,
  type ServersModel,
  withListed
} from "../../src/domain/routes.ts"

interface Setting {
  readonly driver?: string
  readonly isHome?: boolean
  readonly models?: ReadonlyArray<Partial<RoutedModel> & { readonly id: string }>
  readonly listed?: ReadonlyArray<ServersModel>
  readonly model_facts?: { readonly [name: string]: ModelFacts }
}

const setUp = ({ driver = "openai", isHome = false, listed = [], model_facts = {}, models = [] }: Setting) => {
  const route_table = withListed(
    makeRouteTable({
      upstreams: [{
        name: "default",
        driver,
        isHome,
        enabled: true,
        models: models.map((model) => ({ reasoning: "auto", search: false, ...model }))
      }],
      unnamed: "default",
      routes: [],
      aliases: new Map(),
      mapping: { fast: "upstream-chat", slow: "upstream-reasoner" },
      families: false,
      mapped: undefined,
      listed: undefined
    }),
    listed
  )
  const config = { route_table, model_facts: makeNameTable(Object.entries(model_facts)) }
  return { config, factsOf: (name: string) => catalogueOf(config).ofRoute(resolveRoute(route_table, "usual", name)!) }
}

/** A model of the product's table. */
const known = "gpt-4o"
const knownWindow = knownModels.exact.get(known)!.context_window!

describe("a fact", () => {
  it("about strict schemas is known of a vendor's model at the vendor's own server alone", () => {
    const schemasOf = (driver: string, address: string, model: string) =>
      setUp({ driver, isHome: isHome(driver, address), models: [{ id: model }] }).factsOf(model).schemas
    const binding = { value: "binding", source: "known" } as const
    const [openAi, anthropic, google] = [
      "https://api.openai.com/v1",
      "https://api.anthropic.com",
      "https://generativelanguage.googleapis.com/v1beta"
    ]
    assert.deepEqual(
      [
        schemasOf("openai", openAi, "gpt-4o"),
        schemasOf("responses", "https://eu.api.openai.com/v1", "gpt-5-2025-08-07"),
        schemasOf("messages", anthropic, "claude-sonnet-4-5-20250929"),
        schemasOf("generate", google, "gemini-2.5-pro")
      ],
      [binding, binding, binding, binding]
    )
    assert.deepEqual(
      [
        schemasOf("openai", openAi, "gpt-4-turbo"),
        schemasOf("openai", "https://hosted.example/v1", "gpt-4o"),
        schemasOf("openai", "https://api.openai.com.example/v1", "gpt-4o"),
        schemasOf("openai", `${anthropic}/v1`, "claude-sonnet-4-5"),
        schemasOf("openai", `${google}/openai`, "gemini-2.5-pro"),
        schemasOf("openai", "https://api.deepseek.com/v1", "deepseek-chat"),
        schemasOf("responses", "https://my-resource.openai.azure.com/openai/v1", "gpt-4o"),
        schemasOf("messages", "https://bedrock-runtime.eu-central-1.amazonaws.com", "claude-sonnet-4-5")
      ].filter((found) => found !== undefined),
      []
    )
  })

  it("is the entry's, else the server's, else that of model_facts, else the product's", () => {
    const { factsOf } = setUp({
      models: [{ id: "m", served: known, facts: { tools: false } }],
      listed: [{ id: known, facts: { tools: true, display_name: "Of the server" } }],
      model_facts: { m: { display_name: "Given", tools: true, max_output_tokens: 7 } }
    })
    const facts = factsOf("m")
    assert.deepStrictEqual(facts.tools, { value: false, source: "entry" })
    assert.deepStrictEqual(facts.display_name, { value: "Of the server", source: "server" })
    assert.deepStrictEqual(facts.max_output_tokens, { value: 7, source: "model_facts" })
    assert.deepStrictEqual(facts.context_window, { value: knownWindow, source: "known" })
    assert.isUndefined(facts.description)
  })

  it("comes from the server's own name, with its publisher and the date of its release left out", () => {
    for (const served of [known, `openai/${known}`, `${known}-2026-01-31`, `openai/${known}-20260131`]) {
      const { factsOf } = setUp({ models: [{ id: "m", served }] })
      assert.strictEqual(factsOf("m").context_window?.value, knownWindow, served)
    }
    const { factsOf } = setUp({ models: [{ id: known, served: "qwen3:8b" }] })
    assert.deepStrictEqual(factsOf(known), {})
  })

  it("of the server comes from the tag latest where the name has no tag", () => {
    const listed = [{ id: "qwen3:latest", facts: { tools: true } }]
    const { factsOf } = setUp({ models: [{ id: "m", served: "qwen3" }], listed })
    assert.deepStrictEqual(factsOf("m").tools, { value: true, source: "server" })
  })

  it("is known of a server's models only: an upstream of another kind has names of its own", () => {
    for (const driver of ["embedded", "session"]) {
      assert.deepStrictEqual(setUp({ driver, models: [{ id: known }] }).factsOf(known), {})
    }
  })

  it("of the window is the server's or the entry's alone where the server sets the window", () => {
    const of = (facts: ModelFacts | undefined, listed: Partial<Exclude<ServersModel, string>>) =>
      setUp({
        models: [{ id: known, ...(facts === undefined ? {} : { facts }) }],
        listed: ["other", { id: known, setsWindow: true, ...listed }],
        model_facts: { [known]: { context_window: 1, description: "Given" } }
      }).factsOf(known)
    assert.isUndefined(of(undefined, {}).context_window)
    assert.strictEqual(of(undefined, {}).description?.value, "Given")
    assert.strictEqual(of(undefined, {}).max_output_tokens?.source, "known")
    assert.deepStrictEqual(of(undefined, { facts: { context_window: 5 } }).context_window, {
      value: 5,
      source: "server"
    })
    assert.deepStrictEqual(of({ context_window: 6 }, {}).context_window, { value: 6, source: "entry" })
  })
})

describe("a catalogue", () => {
  it("is the same one while routes and facts are, and another one after a change of either", () => {
    const { config } = setUp({ models: [{ id: "m" }] })
    const catalogue = catalogueOf(config)
    assert.strictEqual(catalogueOf({ ...config }), catalogue)
    assert.notStrictEqual(catalogueOf({ ...config, model_facts: noNames }), catalogue)
    const route_table = withListed(config.route_table, [{ id: "m", facts: { tools: true } }])
    const route = resolveRoute(route_table, "usual", "m")!
    assert.deepStrictEqual(catalogueOf({ ...config, route_table }).factsOf(route), { tools: true })
  })

  it("has the facts of all models of the product's table, each with a window", () => {
    assert.isAbove(knownModels.exact.size, 50)
    for (const [name, { context_window, efforts = [] }] of knownModels.exact) {
      assert.isAbove(context_window ?? 0, 1_000, name)
      assert.strictEqual(new Set(efforts).size, efforts.length, name)
    }
  })
})

describe("a name that begins with claude:", () => {
  it("means the rest, unless a model has the whole name", () => {
    const { config: { route_table } } = setUp({
      models: [{ id: "big" }, { id: "claude:own" }],
      listed: ["claude:7b", "qwen3:8b"]
    })
    const idOf = (name: string) => resolveRoute(route_table, "mapped", name)?.id
    assert.strictEqual(idOf("claude:big"), "big")
    assert.strictEqual(idOf("CLAUDE:Qwen3:8b"), "qwen3:8b")
    assert.strictEqual(idOf("claude:own"), "claude:own")
    assert.strictEqual(idOf("claude:7b"), "claude:7b")
    for (const name of ["claude:", "claude:none", "claude:claude:big"]) assert.isUndefined(idOf(name), name)
  })
})
