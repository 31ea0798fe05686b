import { assert, describe, it } from "@effect/vitest"
import type { RequestStats } from "../../../src/completion/RequestStats.ts"
import { noDriver, noteUnsaidThinking } from "../../../src/completion/unsentFields.ts"
import { saysThinking, type ThinkingWords } from "../../../src/contracts/shared/serverThinking.ts"
import type { Thinking } from "../../../src/domain/Conversation.ts"
import { type Sends, sendsNothing } from "../../../src/upstream/Upstream.ts"

const model = { id: "m", reasoning: "auto", search: false } as const

/** The fields that are noted for a server with these words. */
const noted = (thinking: Thinking, words: ThinkingWords | undefined) => {
  const stats: Pick<RequestStats, "ignored" | "ignoredMore"> = { ignored: undefined, ignoredMore: 0 }
  const sends: Sends = { ...sendsNothing, thinking: (_: unknown, said: Thinking) => saysThinking(said, words) }
  for (const _ of [1, 2]) noteUnsaidThinking(thinking, model, { contract: undefined, sends }, stats)
  return stats.ignored ?? []
}

describe("what a server does not hear of thinking", () => {
  const fields = ["thinking", "output_config.effort"]
  const amount: Thinking = { mode: "on", effort: "high", fields, budget: undefined }
  const off: Thinking = { mode: "off", fields, effort: undefined, budget: undefined }
  const auto: Thinking = { mode: "auto", fields, effort: undefined, budget: undefined }

  it("is noted once by the caller's fields", () => {
    assert.deepStrictEqual(noted(amount, "none"), fields)
    assert.deepStrictEqual(noted(off, "none"), fields)
    assert.deepStrictEqual(noted(amount, "template"), fields)
    assert.deepStrictEqual(noted({ mode: "on", effort: undefined, fields: undefined, budget: undefined }, "none"), [])
  })

  it("is nothing where its words have all of it", () => {
    for (const words of [undefined, "effort", "budget"] as const) {
      for (const thinking of [amount, off, auto]) assert.deepStrictEqual(noted(thinking, words), [])
    }
    for (const thinking of [off, auto, { ...off, mode: "on" } as const]) {
      assert.deepStrictEqual(noted(thinking, "template"), [])
    }
    assert.deepStrictEqual(noted(auto, "none"), [])
  })

  it("is all of it for a driver that passes nothing on", () => {
    const stats: Pick<RequestStats, "ignored" | "ignoredMore"> = { ignored: undefined, ignoredMore: 0 }
    noteUnsaidThinking(amount, model, noDriver, stats)
    assert.deepStrictEqual(stats.ignored, fields)
  })
})
