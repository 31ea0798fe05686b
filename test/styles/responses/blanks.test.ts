import { assert, describe, it, vi } from "@effect/vitest"
import { responseInfo } from "../../../src/contracts/responses/responseText.ts"
import { responseFrames } from "../../../src/contracts/responses/writeReply.ts"
import * as Reply from "../../../src/domain/ReplyEvent.ts"

const info = responseInfo("0123456789abcdef0123456789abcdef", 7, { model: "gpt-5", input: "Hi" }, new Map())

describe("Blanks before a text", () => {
  it("are read one time each, however many come", () => {
    const blanks = 2_000
    let body = ""
    const { frames } = responseFrames(info, {
      now: () => 9000,
      finalized: (text) => body = text,
      begun: undefined,
      compaction: undefined
    })
    const trim = vi.spyOn(String.prototype, "trim")
    for (let i = 0; i < blanks; i++) frames.push(Reply.TextDelta("\n"), [])
    frames.push(Reply.TextDelta("x"), [])
    frames.push(Reply.Finish("stop"), [])
    const looked = trim.mock.contexts.reduce<number>((sum, text) => sum + String(text).length, 0)
    trim.mockRestore()
    assert.strictEqual(JSON.parse(body).output_text, `${"\n".repeat(blanks)}x`)
    assert.isAtLeast(looked, blanks)
    assert.isAtMost(looked, 2 * blanks)
  })
})
