/** The import of prices: which field of the common form has which place, and what an import changes. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { makeConfigFile } from "../../src/config/ConfigFile.ts"
import { readPrices, savePrices } from "../../src/config/importPrices.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { NodeServices } from "../usage/support.ts"

const read = (entry: RawConfig) =>
  Effect.map(readPrices({ m: entry }), ({ placeless, prices }) => ({ price: prices["m"], placeless: [...placeless] }))

describe("the fields of the common form", () => {
  it.effect("have their places: units, steps, tiers, tools and factors", () =>
    Effect.gen(function*() {
      const { placeless, price } = yield* read({
        litellm_provider: "anthropic",
        mode: "chat",
        max_tokens: 64_000,
        supports_prompt_caching: true,
        prompt_cache_min_tokens: 1024,
        input_cost_per_token: 3e-6,
        output_cost_per_token: 1.5e-5,
        cache_read_input_token_cost: 3e-7,
        cache_creation_input_token_cost: 3.75e-6,
        cache_creation_input_token_cost_above_1hr: 6e-6,
        cache_creation_input_token_cost_above_1hr_above_200k_tokens: 1.2e-5,
        input_cost_per_token_above_200k_tokens: 6e-6,
        output_cost_per_token_above_200k_tokens_batches: 1.125e-5,
        input_cost_per_token_batches: 1.5e-6,
        input_cost_per_token_priority: 5e-6,
        output_cost_per_token_flex: 7e-6,
        output_cost_per_reasoning_token: 1.6e-5,
        input_cost_per_audio_token: 1e-6,
        cache_read_input_audio_token_cost: 1e-7,
        output_cost_per_audio_token: 2e-6,
        input_cost_per_image_token: 4e-6,
        output_cost_per_image_token: 5e-6,
        output_cost_per_image: 0.04,
        input_cost_per_image: 0.002,
        input_cost_per_second: 0,
        output_cost_per_second: "0.0005666666666666667",
        input_cost_per_character: 1.5e-5,
        input_cost_per_query: 0.001,
        ocr_cost_per_page: 0.003,
        search_context_cost_per_query: { search_context_size_low: 0.01, search_context_size_medium: 0.02 },
        file_search_cost_per_1k_calls: 2.5,
        code_interpreter_cost_per_session: 0.03,
        google_maps_grounding_cost_per_query: 0.025,
        regional_processing_uplift_multiplier_eu: 1.1,
        provider_specific_entry: { fast: 6, us: 1.1, realtime_ga_only: 1 }
      })
      assert.deepStrictEqual(placeless, [])
      assert.deepStrictEqual(price, {
        input: 3,
        cached_input: 0.3,
        cache_write: 3.75,
        cache_write_1h: 6,
        output: 15,
        reasoning: 16,
        audio_input: 1,
        audio_cached_input: 0.1,
        audio_output: 2,
        image_input: 4,
        image_output: 5,
        per_image: 0.04,
        per_input_image: 0.002,
        per_second: 0.000566667,
        per_character: 0.000015,
        per_query: 0.001,
        per_page: 0.003,
        per_tool_call: { file_search: 0.0025, code_interpreter: 0.03, google_maps: 0.025, web_search: 0.02 },
        above: [{ tokens: 200_000, input: 6, cache_write_1h: 12 }],
        tiers: {
          batch: { input: 1.5, above: [{ tokens: 200_000, output: 11.25 }] },
          priority: { input: 5 },
          flex: { output: 7 }
        },
        factors: { inference_geo: { eu: 1.1, us: 1.1 }, speed: { fast: 6 } }
      })
    }))

  it.effect("are ranges of the prompt too, whose first one is the base", () =>
    Effect.gen(function*() {
      const { placeless, price } = yield* read({
        tiered_pricing: [
          { range: [0, 256_000], input_cost_per_token: 4e-7, output_cost_per_reasoning_token: 4e-6 },
          { range: [256_000, 1_000_000], input_cost_per_token: 1.2e-6 }
        ]
      })
      assert.deepStrictEqual(placeless, [])
      assert.deepStrictEqual(price, { input: 0.4, reasoning: 4, above: [{ tokens: 256_000, input: 1.2 }] })
    }))

  it.effect("name the search of `generate` by its own name, and fields without a place", () =>
    Effect.gen(function*() {
      const { placeless, price } = yield* read({
        litellm_provider: "gemini",
        input_cost_per_token: 1e-6,
        search_context_cost_per_query: { search_context_size_medium: 0.035 },
        input_cost_per_pixel: 1e-8,
        output_cost_per_pixel: 0,
        input_cost_per_token_ultrafast: 6e-5,
        fedramp_uplift_multiplier: 1.1,
        off_peak_pricing: { input_cost_per_token: 1 },
        tiered_pricing: [{ max_results_range: [1, 10], input_cost_per_query: 1 }]
      })
      assert.deepStrictEqual(price, { input: 1, per_tool_call: { google_search: 0.035 } })
      assert.deepStrictEqual(placeless, [
        ["input_cost_per_pixel", 1],
        ["input_cost_per_token_ultrafast", 1],
        ["fedramp_uplift_multiplier", 1],
        ["off_peak_pricing", 1],
        ["tiered_pricing", 1]
      ])
    }))
})

/** The prices of a file after an import of the price 2 for `m` and `n`, and the difference. */
const imported = (before: RawConfig, options: Partial<Parameters<typeof savePrices>[2]>) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = `${yield* fs.makeTempDirectoryScoped({ prefix: "prices-" })}/config.json`
    const text = JSON.stringify({ prices: before })
    yield* fs.writeFileString(path, text)
    const file = yield* makeConfigFile(path)
    const price = { input: 2, above: [{ tokens: 10, output: 3 }] }
    const now = Date.UTC(2027, 5, 1)
    const { changes, unchanged } = yield* savePrices(file, { m: price, n: price }, { now, ...options })
    const written = yield* fs.readFileString(path)
    const { prices } = JSON.parse(written) as { readonly prices: RawConfig }
    return {
      prices,
      unchanged,
      isUntouched: written === text,
      changes: changes.map((
        { after, before, name }
      ) => [name, before && Object.fromEntries(before), Object.fromEntries(after)])
    }
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

const price = { input: 2, above: [{ tokens: 10, output: 3 }] }
const amounts = { input: "2", "above.10.output": "3" }

describe("an import", () => {
  it.effect("leaves names that the file lacks, and names with the same prices as they are written", () =>
    Effect.gen(function*() {
      const same = { above: [{ output: "3.0", tokens: 10 }], input: "2.00" }
      const { changes, prices, unchanged } = yield* imported({
        other: { input: 1 },
        M: same,
        n: { input: 1, output: 5 }
      }, {})
      assert.deepStrictEqual(prices, { other: { input: 1 }, M: same, n: price })
      assert.deepStrictEqual(changes, [["n", { input: "1", output: "5" }, amounts]])
      assert.strictEqual(unchanged, 1)
    }))

  it.effect("writes nothing in a trial", () =>
    Effect.gen(function*() {
      const { changes, isUntouched } = yield* imported({ m: { input: 1 } }, { isTrial: true })
      assert.isTrue(isUntouched)
      assert.deepStrictEqual(changes, [["m", { input: "1" }, amounts], ["n", undefined, amounts]])
    }))

  it.effect("adds dated prices behind those in force, in place of those of the same beginning", () =>
    Effect.gen(function*() {
      const { changes, prices } = yield* imported({
        m: { input: 1 },
        n: [
          { input: 7 },
          { from: "2027-01-01", input: 8 },
          { from: "2027-07-01", input: 9 },
          { from: "2027-09-01", input: 10 }
        ]
      }, { from: "2027-07-01" })
      assert.deepStrictEqual(prices, {
        m: [{ input: 1 }, { from: "2027-07-01", ...price }],
        n: [{ from: "2027-01-01", input: 8 }, { from: "2027-09-01", input: 10 }, { from: "2027-07-01", ...price }]
      })
      assert.deepStrictEqual(changes.map(([name, before]) => [name, before]), [["m", { input: "1" }], ["n", {
        input: "8"
      }]])
    }))
})
