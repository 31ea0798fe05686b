import { assert, describe, it } from "@effect/vitest"
import { resolveMessagesModel, resolveModel } from "../../src/domain/models.ts"

const table = {
  models: [{ id: "Local-70B", reasoning: false, search: false }],
  aliases: new Map([["my-model", "upstream-reasoner"], ["gpt-4o", "upstream-chat-search"], ["big", "local-70b"]])
}
const resolved = (name: string) => resolveModel(table, name)?.id

describe("model names", () => {
  it("resolve to native models first, then to configured ids and aliases, then to families", () => {
    assert.strictEqual(resolved("upstream-chat"), "upstream-chat")
    assert.strictEqual(resolved("local-70b"), "Local-70B")
    assert.strictEqual(resolved("my-model"), "upstream-reasoner")
    assert.strictEqual(resolved("gpt-4o"), "upstream-chat-search")
    assert.strictEqual(resolved("big"), "Local-70B")
    assert.strictEqual(resolved("gpt-4o-mini"), "upstream-chat")
  })

  it("ignore case and surrounding blanks", () => {
    assert.strictEqual(resolved("  GPT-4.1 "), "upstream-chat")
    assert.strictEqual(resolved(" Upstream-Reasoner"), "upstream-reasoner")
  })

  it("select reasoning and search by the words in them", () => {
    for (const name of ["o1-mini", "o3", "o4-mini", "gpt-5-codex", "claude-opus-4", "qwen-r1", "kimi-k2-thinking"]) {
      assert.strictEqual(resolved(name), "upstream-reasoner", name)
    }
    assert.strictEqual(resolved("gpt-4o-search-preview"), "upstream-chat-search")
    assert.strictEqual(resolved("o3-search"), "upstream-reasoner-search")
  })

  it("do not resolve when unknown", () => {
    for (const name of ["", "davinci", "upstream", "my-model-2"]) assert.strictEqual(resolved(name), undefined, name)
  })
})

describe("messages-style names", () => {
  const mapping = { fast: "upstream-chat", slow: "upstream-reasoner" }
  const of = (name: string) => resolveMessagesModel(table, mapping, name)?.id

  it("resolve by the mapping in the style's own family", () => {
    assert.strictEqual(of("msgcompat-sonnet-4-5"), "upstream-chat")
    assert.strictEqual(of("msgcompat-opus-4-6"), "upstream-reasoner")
    assert.strictEqual(of("claude-haiku-4-5"), "upstream-chat")
    assert.strictEqual(resolveMessagesModel(table, { ...mapping, fast: "big" }, "claude-x"), undefined)
    assert.strictEqual(resolveMessagesModel(table, { ...mapping, fast: "local-70b" }, "claude-x")?.id, "Local-70B")
  })

  it("resolve like in other styles outside that family", () => {
    assert.strictEqual(of("upstream-chat-search"), "upstream-chat-search")
    assert.strictEqual(of("my-model"), "upstream-reasoner")
    assert.strictEqual(of("o3"), "upstream-reasoner")
    assert.strictEqual(of("nothing"), undefined)
  })
})
