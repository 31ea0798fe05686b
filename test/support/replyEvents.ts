/**
 * Generated replies: canonical events in every order and cut that the contract of `ReplyEvent` allows.
 */
import * as fc from "fast-check"
import type { FinishReason, ReplyEvent, Usage } from "../../src/domain/ReplyEvent.ts"
import * as Reply from "../../src/domain/ReplyEvent.ts"
import { cutsOf } from "./cuts.ts"

const piece = fc.oneof(
  fc.string({ minLength: 1, maxLength: 12, unit: "binary" }),
  fc.constantFrom(" ", "\n\n", "Hello", "\u2028", "data: [DONE]\n\n", "</tool>", "日本語", "👩‍👧")
)
const pieces = fc.array(piece, { minLength: 1, maxLength: 4 })

const argumentsText = fc.tuple(
  // A client's accumulator cannot build an object with that key.
  fc.dictionary(fc.string({ maxLength: 8 }).filter((key) => key !== "__proto__"), fc.jsonValue({ maxDepth: 2 }), {
    maxKeys: 4
  }).filter((value) => !JSON.stringify(value).includes("__proto__")),
  fc.constantFrom(0, 2)
).map(([value, indent]) => JSON.stringify(value, null, indent))

const call = fc.tuple(fc.stringMatching(/^[a-z_]{1,12}$/), argumentsText).chain(([name, text]) =>
  cutsOf(text).map((deltas) => ({ name, text, deltas: deltas.filter((delta) => delta !== "") }))
)

type Block =
  | { readonly kind: "text" | "reasoning"; readonly pieces: ReadonlyArray<string> }
  | { readonly kind: "call"; readonly name: string; readonly text: string; readonly deltas: ReadonlyArray<string> }

const block: fc.Arbitrary<Block> = fc.oneof(
  pieces.map((pieces): Block => ({ kind: "text", pieces })),
  pieces.map((pieces): Block => ({ kind: "reasoning", pieces })),
  call.map((made): Block => ({ kind: "call", ...made }))
)

const usage: fc.Arbitrary<Usage> = fc.tuple(fc.nat(9999), fc.nat(9999), fc.nat(9999), fc.nat(9999)).map(
  ([prompt, completion, reasoning, cached]) => ({
    promptTokens: prompt,
    completionTokens: completion,
    reasoningTokens: Math.min(reasoning, completion),
    cachedTokens: Math.min(cached, prompt)
  })
)

const eventsOf = (blocks: ReadonlyArray<Block>): Array<ReplyEvent> => {
  const events: Array<ReplyEvent> = []
  let calls = 0
  for (const made of blocks) {
    if (made.kind !== "call") {
      for (const text of made.pieces) {
        events.push(made.kind === "text" ? Reply.TextDelta(text) : Reply.ReasoningDelta(text))
      }
      continue
    }
    const index = calls++
    const id = `call_${index}`
    events.push(Reply.CallStarted(index, id, made.name))
    for (const delta of made.deltas) events.push(Reply.CallArguments(index, delta))
    events.push(Reply.CallFinished(index, id, made.name, made.text))
  }
  return events
}

const endings: fc.Arbitrary<FinishReason> = fc.constantFrom("stop", "stop_sequence", "length", "content_filter")

/** Whole replies, without calls that were cut off. */
export const replies: fc.Arbitrary<ReadonlyArray<ReplyEvent>> = fc.tuple(
  fc.array(block, { maxLength: 6 }),
  usage,
  endings
).map(([blocks, usage, ending]) => {
  const events = eventsOf(blocks)
  const reason = ending === "stop" && blocks.some((made) => made.kind === "call") ? "tool_calls" : ending
  events.push(Reply.UsageReported(usage), Reply.Finish(reason, reason === "stop_sequence" ? "END" : undefined))
  return events
})
