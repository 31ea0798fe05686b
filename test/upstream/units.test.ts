/** The units that each driver reads of a reply: service tiers, words, modalities, tools and the server's own cost. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { chunkDecoder as openaiDecoder, recordedForm } from "../../src/contracts/chat/readReply.ts"
import { chunkDecoder as generateDecoder } from "../../src/contracts/generate/readReply.ts"
import { eventDecoder as messagesDecoder } from "../../src/contracts/messages/readReply.ts"
import { eventDecoder as responsesDecoder } from "../../src/contracts/responses/readReply.ts"
import type { ChunkDecoder } from "../../src/contracts/shared/ChunkDecoder.ts"
import { serverCostOf } from "../../src/contracts/shared/usageDetails.ts"
import { defaultLimits } from "../../src/domain/limits.ts"
import type { PartialUsage, UpstreamEvent } from "../../src/domain/UpstreamEvent.ts"
import { RequestBudget } from "../../src/upstream/budget.ts"
import { replyDecoder } from "../../src/upstream/decodeBody.ts"
import { cutsOf } from "../support/cuts.ts"
import { chunk as generateChunk } from "../support/generateServer.ts"
import { events as messages, messageEvents, textBlock } from "../support/messagesServer.ts"
import { chunk, frames } from "../support/openaiServer.ts"
import { events as responses, eventsOf, messageItem, responseOf } from "../support/responsesServer.ts"

const encoder = new TextEncoder()

/** The counts of a reply: later ones replace earlier ones. */
const usageIn = (decoder: ChunkDecoder, pieces: ReadonlyArray<string>): PartialUsage => {
  const budget = new RequestBudget(defaultLimits, { monotonicTimeNanosUnsafe: () => 0n })
  const body = replyDecoder(decoder, () => undefined, budget, undefined)
  const out: Array<UpstreamEvent> = []
  for (const piece of pieces) body.push(encoder.encode(piece), out)
  body.end(out)
  assert.isUndefined(body.failure())
  return Object.assign({}, ...out.flatMap((event) => event._tag === "UpstreamUsage" ? [event.usage] : []))
}

const search = (status: string) => ({
  type: "web_search_call",
  id: "ws",
  status,
  action: { type: "search", query: "q" }
})

const cases: ReadonlyArray<
  readonly [name: string, decoder: () => ChunkDecoder, stream: string, details: PartialUsage["details"]]
> = [
  [
    "openai",
    () => openaiDecoder({ ...recordedForm(), choices: 1 }),
    frames(
      chunk({ content: "Yes" }, null, { service_tier: "Flex" }),
      chunk({}, "stop"),
      {
        ...chunk({}),
        choices: [],
        usage: {
          prompt_tokens: 9,
          completion_tokens: 8,
          total_tokens: 17,
          prompt_tokens_details: { audio_tokens: 3, image_tokens: 2 },
          completion_tokens_details: { audio_tokens: 4, image_tokens: null },
          cost: { total_cost: "0.5" },
          speed: "fast"
        }
      },
      "[DONE]"
    ),
    {
      audioTokens: 3,
      imageTokens: 2,
      audioOutputTokens: 4,
      tier: "flex",
      words: { speed: "fast" },
      serverCost: 500_000_000n
    }
  ],
  [
    "messages",
    messagesDecoder,
    messages(...messageEvents([textBlock("Yes")], {
      usage: {
        input_tokens: 1,
        output_tokens: 2,
        cache_creation: { ephemeral_5m_input_tokens: 4, ephemeral_1h_input_tokens: 3 },
        server_tool_use: { web_search_requests: 2, web_fetch_requests: 0 },
        service_tier: "batch",
        inference_geo: "us"
      }
    })),
    { cacheWrite1hTokens: 3, toolCalls: { web_search: 2 }, tier: "batch", words: { inference_geo: "us" } }
  ],
  [
    "generate",
    generateDecoder,
    frames(
      generateChunk([{ text: "Yes" }], { groundingMetadata: { webSearchQueries: ["a", "b"] } }),
      generateChunk([], { finishReason: "STOP" }, {
        usageMetadata: {
          promptTokenCount: 20,
          candidatesTokenCount: 7,
          promptTokensDetails: [{ modality: "TEXT", tokenCount: 8 }, { modality: "AUDIO", tokenCount: 12 }],
          cacheTokensDetails: [{ modality: "AUDIO", tokenCount: 5 }],
          candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 6 }],
          serviceTier: "PRIORITY"
        }
      })
    ),
    { audioTokens: 12, cachedAudioTokens: 5, imageOutputTokens: 6, toolCalls: { google_search: 2 }, tier: "priority" }
  ],
  [
    "responses",
    () => responsesDecoder({ passesEvents: false, onThinking: undefined, budget: undefined }),
    responses(...eventsOf(responseOf([search("completed"), search("completed"), search("failed"), messageItem("Yes")], {
      service_tier: "default",
      usage: { input_tokens: 5, output_tokens: 4, total_tokens: 9, input_tokens_details: { cached_tokens: 0 } }
    }))),
    { toolCalls: { web_search: 2 } }
  ]
]

describe("the units of a reply", () => {
  it.each(cases)("of a server of %s are read, wherever the network cuts it", (_, decoder, stream, details) => {
    assert.deepStrictEqual(usageIn(decoder(), [stream]).details, details)
    fc.assert(fc.property(cutsOf(stream), (pieces) => {
      assert.deepStrictEqual(usageIn(decoder(), pieces), usageIn(decoder(), [stream]))
    }))
  })

  it("are nothing more than today for plain tokens", () => {
    const usage = {
      prompt_tokens: 1,
      completion_tokens: 2,
      total_tokens: 3,
      prompt_tokens_details: { audio_tokens: 0 }
    }
    const stream = frames(chunk({ content: "a" }, "stop", { service_tier: "default", usage }), "[DONE]")
    assert.deepStrictEqual(usageIn(openaiDecoder({ ...recordedForm(), choices: 1 }), [stream]), {
      promptTokens: 1,
      completionTokens: 2
    })
  })
})

describe("the server's own cost", () => {
  it("is a decimal number of at least 0, and anything else is ignored", () => {
    const costs: ReadonlyArray<readonly [usage: Record<string, unknown>, cost: bigint | undefined]> = [
      [{ cost: 0 }, 0n],
      [{ cost: "1.5e-3" }, 1_500_000n],
      [{ cost: 1e-10 }, 0n],
      [{ cost: 5e-10 }, 1n],
      [{ cost: { total_cost: 2 } }, 2_000_000_000n],
      [{ cost: -1 }, undefined],
      [{ cost: "free" }, undefined],
      [{ cost: null, cost_in_usd_ticks: 15 }, 2n],
      [{ cost_in_usd_ticks: -5 }, undefined],
      [{ cost: 4e-10, is_byok: true, cost_details: { upstream_inference_cost: 4e-10 } }, 1n],
      [{ cost: 1, is_byok: false, cost_details: { upstream_inference_cost: 1 } }, 1_000_000_000n],
      [{}, undefined]
    ]
    for (const [usage, cost] of costs) assert.strictEqual(serverCostOf(usage), cost, JSON.stringify(usage))
  })
})
