/** Replies put together from the golden frames of every style, whole and streamed, and from streams that were cut off. */
import { assert, describe, it } from "@effect/vitest"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import { cutFrames } from "../../src/recordings/frames.ts"
import { assembleReply, assembleRounds } from "../../src/recordings/recordedReply.ts"
import { type GoldenReply, repliesIn } from "../golden/replies.ts"

const styles = ["chat", "responses", "messages", "generate"]

const replies = new Map(styles.map((style) => [
  style,
  new Map(repliesIn(style, "embedded").map((reply) => [reply.name, reply]))
]))

/** The reply of an exchange: its content type and body. */
const replyIn = (style: string, name: string): GoldenReply => {
  const reply = replies.get(style)!.get(name)
  assert.isDefined(reply, `${style}: ${name}`)
  return reply!
}

const assembled = (style: string, { bytes, contentType }: Pick<GoldenReply, "bytes" | "contentType">) => {
  const frames = cutFrames({ bytes, contentType, marks: [], truncated: false }, 0)
  return runSync(assembleReply(style, frames, contentType))!
}

/** A reply without what differs between whole and streamed replies of the same words. */
const comparable = (style: string, name: string) => {
  const { calls, finish, reasoning, text } = assembled(style, replyIn(style, name))
  return {
    text,
    reasoning,
    finish,
    calls: calls.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) as unknown }))
  }
}

describe("a reply put together", () => {
  for (const style of styles) {
    it(`${style}: is the same from a stream as from a whole body`, () => {
      for (const kind of ["reasoning", "text", "parallel-calls", "call-without-arguments", "length", "stop", "tools"]) {
        const whole = comparable(style, `${kind}, whole`)
        const streamed = comparable(style, `${kind}, streamed`)
        // A whole chat completion with calls has no text.
        const text = style === "chat" && whole.calls.length > 0 ? "" : streamed.text
        assert.deepStrictEqual({ ...streamed, text }, whole, kind)
        assert.isNotEmpty(whole.text + whole.reasoning + whole.calls.map(({ name }) => name).join(""), kind)
        assert.isDefined(whole.finish, kind)
      }
    })
  }

  it("has the same words in every style", () => {
    for (const kind of ["reasoning", "text", "parallel-calls", "stop"]) {
      const [first, ...others] = styles.map((style) => {
        const { finish: _, ...rest } = comparable(style, `${kind}, streamed`)
        return rest
      })
      for (const other of others) assert.deepStrictEqual(other, first, kind)
    }
    assert.deepInclude(comparable("chat", "reasoning, streamed"), { text: "Four.", reasoning: "Two and two." })
    assert.deepStrictEqual(
      styles.map((style) => comparable(style, "reasoning, streamed").finish),
      ["stop", "completed", "end_turn", "STOP"]
    )
  })

  it("has what arrived of a stream that was cut off, wherever the cut is", () => {
    for (const style of styles) {
      for (const kind of ["reasoning", "parallel-calls"]) {
        const reply = replyIn(style, `${kind}, streamed`)
        const whole = assembled(style, reply)
        let last = 0
        for (let end = 0; end < reply.bytes.length; end += 97) {
          const cut = assembled(style, { ...reply, bytes: reply.bytes.subarray(0, end) })
          assert.isTrue(whole.text.startsWith(cut.text) && whole.reasoning.startsWith(cut.reasoning))
          cut.calls.forEach((call, i) => {
            assert.isTrue(whole.calls[i]!.arguments.startsWith(call.arguments))
            assert.strictEqual(call.name, whole.calls[i]!.name)
          })
          const size = cut.text.length + cut.reasoning.length + cut.calls.reduce((n, { name }) => n + name.length, 0)
          assert.isAtLeast(size, last)
          last = size
        }
      }
    }
  })

  it("is absent for styles whose replies are no conversation", () => {
    assert.isUndefined(runSync(assembleReply("embeddings", [{ at_ms: 0, data: "{}" }], "application/json")))
    assert.isUndefined(runSync(assembleReply("carried", [{ at_ms: 0, data: "{}" }], "application/json")))
  })

  it("is read from the upstream's side in the format of each protocol", () => {
    const round = (protocol: "openai" | "messages" | "generate", style: string, name: string) => {
      const { bytes, contentType } = replyIn(style, name)
      return runSync(assembleRounds([{ protocol, bytes, contentType }]))
    }
    for (const [protocol, style] of [["openai", "chat"], ["messages", "messages"], ["generate", "generate"]] as const) {
      for (const form of ["streamed", "whole"]) {
        assert.deepInclude(round(protocol, style, `reasoning, ${form}`), {
          text: "Four.",
          reasoning: "Two and two.",
          calls: [],
          finish: "stop"
        }, `${style} ${form}`)
        const { calls } = round(protocol, style, `parallel-calls, ${form}`)
        assert.deepStrictEqual(
          calls.map(({ name }) => name),
          comparable(style, `parallel-calls, ${form}`).calls.map(({ name }) => name)
        )
      }
    }
  })
})
