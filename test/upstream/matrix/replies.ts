/**
 * Replies that every server can make: what the model wrote, and what callers of every style are shown.
 */
import type { FinishReason } from "../../../src/domain/ReplyEvent.ts"
import { cutOff, oslo, reasoning, rome, text } from "../../styles/replies.ts"
import { citySchema, tools } from "../../styles/support.ts"
import type { Written } from "../../support/sameReply.ts"
import type { Ask, Block } from "../../support/styleClients.ts"

export interface SharedReply {
  readonly name: string
  /** What the server writes. */
  readonly written: ReadonlyArray<Block>
  readonly ends: FinishReason
  /** What is shown, where it is not what is written. */
  readonly shown?: Written
  readonly ask?: Partial<Ask>
}

const leaked = `<tool_call>{"name":"get_weather","arguments":{"city":"Oslo"}}</tool_call>`

export const sharedReplies: ReadonlyArray<SharedReply> = [
  { name: "text", written: [text("Hello 🌍")], ends: "stop" },
  {
    name: "thinking and text",
    written: [reasoning("Two and two."), text("Four.")],
    ends: "stop",
    ask: { reasoner: true }
  },
  { name: "calls after text", written: [text("Let me see."), oslo, rome], ends: "tool_calls", ask: { tools } },
  {
    name: "calls after thinking",
    written: [reasoning("Hm."), oslo, rome],
    ends: "tool_calls",
    ask: { tools, reasoner: true }
  },
  {
    name: "a call that leaked into the text",
    written: [text(leaked)],
    ends: "stop",
    shown: { pieces: [oslo], finish: "tool_calls" },
    ask: { tools }
  },
  {
    name: "a leaked call that is cut off",
    written: [text(`So. ${leaked.slice(0, leaked.indexOf("lo\""))}`)],
    ends: "stop",
    shown: { pieces: [text("So. "), cutOff("get_weather", `{"city":"Os`)], finish: "length" },
    ask: { tools }
  },
  { name: "text that ends by length", written: [text("So far")], ends: "length" },
  { name: "text by a schema", written: [text(`{"city":"Oslo"}`)], ends: "stop", ask: { schema: citySchema } }
]
