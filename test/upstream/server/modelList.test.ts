/** What the lists of models of servers say, by bodies as the servers send them. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { readFileSync } from "node:fs"
import path from "node:path"
import { generateModels, listedModels, mostListed } from "../../../src/upstream/server/modelList.ts"

const bodies = JSON.parse(
  readFileSync(path.join(import.meta.dirname, "../../fixtures/modelLists/lists.json"), "utf8")
) as { readonly [server: string]: unknown }

/** Written by `npm run test:servers -- --record`. */
const recorded = JSON.parse(
  readFileSync(path.join(import.meta.dirname, "../../fixtures/modelLists/recorded.json"), "utf8")
) as { readonly [server: string]: { readonly answers: { readonly [asked: string]: unknown } } }

const expected: { readonly [server: string]: ReadonlyArray<unknown> } = {
  SGLang: [{ id: "llama-3.3-70b", facts: { context_window: 131_072 }, setsWindow: true }],
  OpenRouter: [
    {
      id: "moonshotai/kimi-k2",
      facts: {
        context_window: 131_072,
        max_output_tokens: 32_768,
        input: ["text", "image", "pdf"],
        output: ["text"],
        efforts: ["low", "medium", "high"],
        tools: true,
        display_name: "MoonshotAI: Kimi K2",
        description: "A large model."
      }
    },
    {
      id: "example/plain",
      facts: {
        context_window: 8192,
        input: ["text"],
        output: ["text"],
        efforts: [],
        tools: false,
        display_name: "Plain"
      }
    }
  ],
  Groq: [{ id: "llama-3.3-70b-versatile", facts: { context_window: 131_072, max_output_tokens: 32_768 } }],
  Mistral: [{
    id: "mistral-medium-2508",
    facts: {
      context_window: 131_072,
      tools: true,
      display_name: "mistral-medium-2508",
      description: "A multimodal model."
    }
  }],
  Anthropic: [
    {
      id: "claude-opus-9",
      facts: {
        context_window: 1_000_000,
        max_output_tokens: 128_000,
        input: ["text", "image", "pdf"],
        efforts: ["low", "medium", "high", "max"],
        schemas: "binding",
        display_name: "Claude Opus 9"
      }
    },
    { id: "claude-old", facts: { display_name: "Claude Old" } }
  ],
  "a server with names alone": ["gpt-x"]
}

describe("a list of models", () => {
  it.each(Object.entries(expected))("has the facts that %s says", (server, models) => {
    assert.deepStrictEqual(listedModels(bodies[server]), models)
  })

  it.each([
    ["llama.cpp", [{ id: "thinker", setsWindow: true }]],
    ["vLLM", [{ id: "thinker", facts: { context_window: 4096 }, setsWindow: true }]],
    ["LiteLLM", ["thinker", "writer", "caller", "beginner", "reasoner", "endless", "embedder"]],
    ["transformers", []]
  ])("has the facts that a real %s says", (server, models) => {
    assert.deepStrictEqual(listedModels(recorded[server]!.answers["GET /v1/models"]), models)
  })

  it("has the facts that Google says", () => {
    const models = generateModels({
      models: [
        {
          name: "models/gemini-9-flash",
          version: "001",
          displayName: "Gemini 9 Flash",
          description: "Fast.",
          inputTokenLimit: 1_048_576,
          outputTokenLimit: 65_536,
          supportedGenerationMethods: ["generateContent"],
          thinking: true
        },
        { name: "models/gemma-9", inputTokenLimit: 8192, outputTokenLimit: 2048, thinking: false },
        { name: "tunedModels/mine" },
        { displayName: "Nameless" },
        null
      ]
    })
    assert.deepStrictEqual(models, [
      {
        id: "gemini-9-flash",
        facts: {
          context_window: 1_048_576,
          max_output_tokens: 65_536,
          display_name: "Gemini 9 Flash",
          description: "Fast."
        }
      },
      { id: "gemma-9", facts: { context_window: 8192, max_output_tokens: 2048, efforts: [] } },
      "tunedModels/mine"
    ])
  })

  it("has what tests of its server have shown of schemas, unless the list says it", () => {
    const data = [{ id: "a", owned_by: "vllm" }, { id: "b", owned_by: "other" }, {
      id: "c",
      type: "model",
      owned_by: "vllm",
      capabilities: { structured_outputs: { supported: false } }
    }]
    assert.deepStrictEqual(listedModels({ data }, new Map([["vllm", "advisory"]])), [
      { id: "a", facts: { schemas: "advisory" }, setsWindow: true },
      "b",
      { id: "c", facts: { schemas: "none" }, setsWindow: true }
    ])
  })

  it("says nothing of the trained maximum", () => {
    const entry = { id: "m", owned_by: "llamacpp", meta: { n_ctx_train: 131_072, n_params: 1 } }
    assert.deepStrictEqual(listedModels({ data: [entry] }), [{ id: "m", setsWindow: true }])
  })

  it("gives no fact for a value of another kind", () => {
    for (const wrong of [0, -1, 1.5, "8192", null, 1e12, {}, []]) {
      assert.deepStrictEqual(listedModels({ data: [{ id: "m", context_window: wrong }] }), ["m"])
      assert.deepStrictEqual(listedModels([{ id: "m", max_model_len: wrong, owned_by: "vllm" }]), [
        { id: "m", setsWindow: true }
      ])
    }
  })

  it("is read up to a number of models and a length of words", () => {
    const data = Array.from({ length: mostListed + 5 }, (_, i) => ({ id: `m${i}` }))
    assert.lengthOf(listedModels({ data })!, mostListed)
    const [model] = listedModels({ data: [{ id: "m", context_length: 1, description: "d".repeat(9_000), name: " " }] })!
    assert.deepStrictEqual(model, { id: "m", facts: { context_window: 1, description: "d".repeat(4_000) } })
  })

  it("of any shape gives names and known facts, or nothing", () => {
    const json = fc.jsonValue()
    const body = fc.oneof(
      json,
      fc.record({
        data: fc.array(
          fc.oneof(json, fc.record({ id: fc.string(), context_length: json, architecture: json, type: json }))
        )
      })
    )
    fc.assert(fc.property(body, (body) => {
      for (const models of [listedModels(body), generateModels(body)]) {
        for (const model of models ?? []) {
          const { facts = {}, id } = typeof model === "string" ? { id: model } : model
          assert.isNotEmpty(id.trim())
          assert.isTrue(Object.values(facts).every((value) => value !== undefined && value !== 0))
        }
      }
    }))
  })
})
