/**
 * The sentence about the prompt cache on the page of a request.
 */
import { assert, describe, it } from "@effect/vitest"
import { missReasons, moveCauses } from "../../../src/domain/warmth.ts"
import { cacheSentence, toolAt } from "../../../src/web/pages/requests/PromptCache.tsx"
import { later as en } from "../../../src/web/texts/later.ts"
import { zh } from "../../../src/web/texts/zh.ts"

type Cache = Parameters<typeof cacheSentence>[1]

const cache = (given: Partial<Cache>): Cache => ({
  prompt: 9_000,
  read: 0,
  written: 0,
  predicted: 0,
  result: "none",
  reason: null,
  at: null,
  because: null,
  age_s: null,
  ...given
})

const miss = { result: "miss", predicted: 8_400 } as const

const cases: ReadonlyArray<readonly [given: Partial<Cache>, english: string, chinese: string, tool?: string]> = [
  [
    { result: "hit", read: 8_100, predicted: 8_400 },
    "8,100 of 8,400 expected tokens were read.",
    "预期的 8,400 个 Token 中读取了 8,100 个。"
  ],
  [
    { result: "hit", read: 8_500, predicted: 8_400 },
    "8,500 of 9,000 prompt tokens were read.",
    "提示词的 9,000 个 Token 中读取了 8,500 个。"
  ],
  [
    { result: "hit", read: 600 },
    "600 of 9,000 prompt tokens were read.",
    "提示词的 9,000 个 Token 中读取了 600 个。"
  ],
  [
    { result: "partial", read: 3_000, predicted: 8_400, reason: "not_kept" },
    "3,000 of 8,400 expected tokens were read: the server no longer had the prompt.",
    "预期的 8,400 个 Token 中读取了 3,000 个：服务器已不再保留该提示词。"
  ],
  [
    { reason: "first_turn" },
    "Nothing was read: this is the first turn of the conversation.",
    "没有读取：这是对话的第一轮。"
  ],
  [
    { ...miss, reason: "not_reported" },
    "Unknown: the server does not count cached tokens.",
    "未知：服务器不统计缓存的 Token。"
  ],
  [
    { reason: "too_small" },
    "Nothing was read: the prompt is shorter than those that the server keeps.",
    "没有读取：提示词短于服务器保留的最小长度。"
  ],
  [
    { reason: "moved", because: "full" },
    "Nothing was read: another account answered, because the last one had no free slot.",
    "没有读取：由其他账号回答，因为上次的账号没有空闲槽位。"
  ],
  [
    { reason: "expired", age_s: 362 },
    "Nothing was read: the last turn was 6 min 02 s ago, longer than the server keeps a prompt.",
    "没有读取：上一轮在 6 min 02 s前，超过服务器的保留时间。"
  ],
  [
    { ...miss, reason: "changed", at: "tools[1]" },
    `Missed: the tool "zebra" changed.`,
    "未命中：工具“zebra”有改动。",
    "zebra"
  ],
  [{ ...miss, reason: "changed", at: "tools[1]" }, "Missed: tools[1] changed.", "未命中：tools[1] 有改动。"],
  [{ reason: "changed", at: "system" }, "Nothing was read: the system prompt changed.", "没有读取：系统提示词有改动。"],
  [{ ...miss, reason: "changed", at: "messages[3]" }, "Missed: messages[3] changed.", "未命中：messages[3] 有改动。"],
  [
    { ...miss, reason: "not_kept" },
    "Missed: the server no longer had the prompt.",
    "未命中：服务器已不再保留该提示词。"
  ]
]

describe("the sentence about the prompt cache in the console", () => {
  it("says what was read, or why it was not, in both languages", () => {
    for (const [given, english, chinese, tool] of cases) {
      assert.strictEqual(cacheSentence(en.promptCache, cache(given), tool), english)
      assert.strictEqual(cacheSentence(zh.promptCache, cache(given), tool), chinese)
    }
    assert.sameMembers([...new Set(cases.flatMap(([{ reason }]) => reason ?? []))], [...missReasons])
  })

  it("differs for each cause of a move", () => {
    for (const { promptCache } of [en, zh]) {
      const sentences = moveCauses.map((because) => cacheSentence(promptCache, cache({ reason: "moved", because })))
      assert.strictEqual(new Set(sentences).size, moveCauses.length)
      for (const sentence of sentences) assert.notInclude(sentence, "undefined")
    }
  })
})

describe("the name of a tool at a place of a prompt", () => {
  const [one, two] = [{ name: "antelope" }, { name: "zebra" }]

  it.each([
    ["chat completions", [{ type: "function", function: one }, { type: "function", function: two }]],
    ["Responses", [{ type: "function", ...one }, { type: "custom", ...two }]],
    ["messages", [{ ...one, input_schema: {} }, { ...two, type: "web_search_20250305" }]],
    ["content generation", [{ functionDeclarations: [one] }, { functionDeclarations: [two] }]]
  ])("comes from the recorded body: %s", (_, tools) => {
    assert.strictEqual(toolAt("tools[0]", JSON.stringify({ tools })), "antelope")
    assert.strictEqual(toolAt("tools[1]", JSON.stringify({ tools })), "zebra")
    assert.isUndefined(toolAt("tools[2]", JSON.stringify({ tools })))
  })

  it("is unknown for other places, without the whole body, and among tools of other forms", () => {
    const body = JSON.stringify({ tools: [one, two] })
    assert.isUndefined(toolAt("messages[1]", body))
    assert.isUndefined(toolAt("tools[1]", ""))
    assert.isUndefined(toolAt("tools[1]", body.slice(0, -3)))
    for (const other of [{ type: "mcp" }, { type: "namespace", name: "n", tools: [one] }, { googleSearch: {} }]) {
      assert.isUndefined(toolAt("tools[1]", JSON.stringify({ tools: [one, two, other] })))
    }
  })
})
