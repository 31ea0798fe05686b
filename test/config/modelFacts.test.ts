/** Facts about models in the configuration, and their import from files. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import { readModelFacts } from "../../src/config/importModelFacts.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { findNamed } from "../../src/domain/nameTable.ts"
import { listedRoutes } from "../../src/domain/routeLists.ts"
import { resolveRoute } from "../../src/domain/routes.ts"

const decoded = (raw: RawConfig) =>
  Effect.runSync(Effect.map(decodeConfig(raw, { duplicates: "refuse" }), ({ snapshot }) => snapshot.config))
const faultsOf = (raw: RawConfig): ReadonlyArray<string> => {
  const result = Effect.runSync(Effect.result(decodeConfig(raw, { duplicates: "refuse" })))
  return Result.isFailure(result) ? result.failure.faults.map(({ message }) => message) : []
}
const upstreamWith = (entry: RawConfig): RawConfig => ({ upstream: { models: { m: { model: "m", ...entry } } } })

describe("facts in the configuration", () => {
  it("come from an entry, in the order of their words", () => {
    const { upstreams } = decoded(upstreamWith({
      context_window: 8192,
      max_output_tokens: 1024,
      input: ["image", "text"],
      output: ["text"],
      efforts: ["high", "low"],
      tools: true,
      display_name: " Mine ",
      description: "For tests."
    }))
    const [model] = upstreams.get("default")!.models
    assert.deepStrictEqual(model?.facts, {
      display_name: "Mine",
      description: "For tests.",
      context_window: 8192,
      max_output_tokens: 1024,
      input: ["text", "image"],
      output: ["text"],
      efforts: ["low", "high"],
      tools: true
    })
    assert.isTrue(model?.images)
  })

  it("say that a model takes no pictures, as images does", () => {
    const of = (entry: RawConfig) => decoded(upstreamWith(entry)).upstreams.get("default")!.models[0]!
    assert.isFalse(of({ input: ["text", "pdf"] }).images)
    assert.deepStrictEqual(of({ images: false }).facts, { input: ["text"] })
    assert.isUndefined(of({ images: true }).facts)
  })

  it("are refused with their place", () => {
    const wrong: ReadonlyArray<readonly [RawConfig, string]> = [
      [{ context_window: 0 }, "upstream.models.m.context_window must be between 1 and 1000000000"],
      [{ max_output_tokens: 1.5 }, "upstream.models.m.max_output_tokens must be an integer"],
      [{ input: ["smell"] }, "upstream.models.m.input[0] must be one of text, image, pdf, audio, video"],
      [{ efforts: ["low", "low"] }, "upstream.models.m.efforts must name each word once"],
      [{ display_name: " " }, "upstream.models.m.display_name must not be empty"],
      [
        { images: true, input: ["text"] },
        "upstream.models.m must say the same about pictures in images and input"
      ]
    ]
    for (const [entry, fault] of wrong) assert.include(faultsOf(upstreamWith(entry)).join("\n"), fault)
    assert.deepStrictEqual(faultsOf({ model_facts: { "a*b": {}, A: {}, a: { tools: 1 } } }), [
      "model_facts.a*b may have * at its end only",
      "model_facts.a is named twice, but for case and blanks",
      "model_facts.a.tools must be true or false"
    ])
    assert.deepStrictEqual(faultsOf({ model_facts: [] }), ["model_facts must be an object"])
  })

  it("of the group model_facts are found by name and by beginning", () => {
    const { model_facts } = decoded({ model_facts: { "Qwen3*": { tools: true }, m: { context_window: 5 } } })
    assert.deepStrictEqual(
      findNamed(
        model_facts,
        { upstream: "default", model: "qwen3:8b", served: undefined, asked: undefined },
        (facts) => facts
      )?.found,
      { tools: true }
    )
    assert.deepStrictEqual(
      findNamed(model_facts, { upstream: "default", model: "M", served: undefined, asked: undefined }, (facts) => facts)
        ?.found,
      {
        context_window: 5
      }
    )
  })

  it("hide a model and a route from lists, and not from requests", () => {
    const { route_table } = decoded({
      upstream: { models: { shown: "a", gone: { model: "b", hidden: true } } },
      routes: {
        open: ["default/gone"],
        closed: { targets: ["default/shown"], hidden: true },
        "upstream-chat": { targets: ["default/upstream-reasoner"], hidden: true }
      }
    })
    const names = listedRoutes(route_table).map(({ id }) => id)
    assert.includeMembers(names, ["shown", "open", "upstream-reasoner"])
    for (const name of ["gone", "closed", "upstream-chat"]) {
      assert.notInclude(names, name)
      assert.isDefined(resolveRoute(route_table, "usual", name))
    }
  })
})

const read = (file: RawConfig) => Effect.runSync(readModelFacts(file))

describe("an import of facts", () => {
  it("reads the form of models.dev; the first entry of a name counts", () => {
    const { facts, left } = read({
      one: {
        id: "one",
        name: "One",
        models: {
          "Big-1": {
            id: "big-1",
            name: "Big 1",
            reasoning: false,
            tool_call: true,
            modalities: { input: ["text", "image", "pdf", "smell"], output: ["text"] },
            limit: { context: 200_000, output: 8192 }
          },
          thinker: { reasoning: true, limit: { context: 0 } }
        }
      },
      two: { models: { "big-1": { limit: { context: 1 } }, other: { limit: { context: 9 } }, bad: null } }
    })
    assert.deepStrictEqual([...facts], [
      ["big-1", {
        display_name: "Big 1",
        context_window: 200_000,
        max_output_tokens: 8192,
        input: ["text", "image", "pdf"],
        output: ["text"],
        efforts: [],
        tools: true
      }],
      ["other", { context_window: 9 }]
    ])
    assert.strictEqual(left, 3)
  })

  it("reads the form of model_prices_and_context_window.json; a name as it stands comes before one with its provider", () => {
    const { facts, left } = read({
      sample_spec: { max_input_tokens: 1 },
      "azure/big": { litellm_provider: "azure", max_input_tokens: 5 },
      big: {
        litellm_provider: "openai",
        max_input_tokens: 272_000,
        max_output_tokens: 128_000,
        max_tokens: 128_000,
        supported_modalities: ["text", "image"],
        supported_output_modalities: ["text"],
        supports_pdf_input: true,
        supports_function_calling: true,
        supports_reasoning: true,
        supports_none_reasoning_effort: false,
        supports_xhigh_reasoning_effort: true
      },
      "mistral/small": { litellm_provider: "mistral", max_input_tokens: 32_000, supports_vision: false },
      plain: { litellm_provider: "openai", supports_reasoning: true, max_tokens: 4096 },
      steps: { litellm_provider: "openai", supports_reasoning: true, reasoning_effort_levels: ["high", "low"] }
    })
    assert.deepStrictEqual([...facts], [
      ["big", {
        context_window: 272_000,
        max_output_tokens: 128_000,
        input: ["text", "image", "pdf"],
        output: ["text"],
        efforts: ["low", "medium", "high", "xhigh"],
        tools: true
      }],
      ["steps", { efforts: ["low", "high"] }],
      ["small", { context_window: 32_000, input: ["text"] }]
    ])
    assert.strictEqual(left, 2)
  })

  it("gives facts that the configuration takes", () => {
    const { facts } = read({ p: { models: { m: { name: "M", tool_call: false, limit: { context: 7 } } } } })
    assert.deepStrictEqual(faultsOf({ model_facts: Object.fromEntries(facts) as unknown as RawConfig }), [])
  })
})
