/**
 * Asserts that every style shows the same reply: one upstream reply, requested in all four styles, streamed and whole, and read by the
 * vendors' SDKs.
 *
 * The permitted differences between styles are in `expected` and `comparable` only:
 * - Chat completions have one field for text and one for calls, so their relative order is lost. A whole reply with calls has no text.
 * - In messages and Responses, blank text has no block or item unless the reply has nothing else.
 * - A truncated call is missing from whole replies, and from content generation, which sends complete calls only. The other streams keep
 *   the part that was sent.
 * - Each style has its own finish reasons.
 */
import { assert } from "@effect/vitest"
import type { FinishReason } from "../../src/domain/ReplyEvent.ts"
import {
  type Ask,
  type Block,
  type CutOff,
  type Failed,
  type Got,
  type StyleClient,
  type StyleName,
  styleNames
} from "./styleClients.ts"

export type Clients = Readonly<Record<StyleName, StyleClient>>

export const ways = ["whole", "streamed"] as const
export type Way = typeof ways[number]

const finishWords: Readonly<Record<StyleName, Readonly<Record<FinishReason, string>>>> = {
  chat: {
    stop: "stop",
    stop_sequence: "stop",
    tool_calls: "tool_calls",
    length: "length",
    content_filter: "content_filter"
  },
  responses: {
    stop: "completed",
    stop_sequence: "completed",
    tool_calls: "completed",
    length: "max_output_tokens",
    content_filter: "content_filter"
  },
  messages: {
    stop: "end_turn",
    stop_sequence: "stop_sequence",
    tool_calls: "tool_use",
    length: "max_tokens",
    content_filter: "refusal"
  },
  generate: {
    stop: "STOP",
    stop_sequence: "STOP",
    tool_calls: "STOP",
    length: "MAX_TOKENS",
    content_filter: "SAFETY"
  }
}

/** A reply as the model wrote it. */
export interface Written {
  readonly pieces: ReadonlyArray<Block | { readonly _tag: "CutOff"; readonly call: CutOff }>
  readonly finish: FinishReason
}

const isBlank = (piece: Block): boolean => piece._tag === "Text" && piece.text.trim() === ""

const merged = (blocks: ReadonlyArray<Block>): ReadonlyArray<Block> => {
  const out: Array<Block> = []
  for (const block of blocks) {
    const last = out.at(-1)
    if (last !== undefined && last._tag !== "Call" && block._tag === last._tag) {
      out[out.length - 1] = { _tag: block._tag, text: last.text + block.text }
    } else {
      out.push(block)
    }
  }
  return out
}

/** The reply that a style must show. */
export const expected = (
  style: StyleName,
  way: Way,
  { finish, pieces }: Written
): Pick<Got, "blocks" | "cutOff" | "finish"> => {
  const whole = pieces.filter((piece) => piece._tag !== "CutOff")
  const cutOff = way === "whole" || style === "generate"
    ? []
    : pieces.flatMap((piece) => piece._tag === "CutOff" ? [piece.call] : [])
  const rest = { cutOff, finish: finishWords[style][finish] }
  switch (style) {
    case "generate":
      return { ...rest, blocks: merged(whole) }
    case "messages":
    case "responses": {
      const shown = whole.filter((piece) => !isBlank(piece))
      return { ...rest, blocks: merged(shown.length > 0 ? shown : whole) }
    }
    case "chat": {
      const of = (tag: Block["_tag"]) => whole.filter((piece) => piece._tag === tag)
      const calls = of("Call")
      const text = way === "whole" && calls.length > 0 ? [] : of("Text")
      return { ...rest, blocks: [...merged(of("Reasoning")), ...merged(text), ...calls] }
    }
  }
}

/** Sends the request in several styles, streamed and whole, in parallel. */
export const everywhere = async (clients: Clients, ask: Ask, styles: ReadonlyArray<StyleName> = styleNames) =>
  Promise.all(
    styles.flatMap((style) => ways.map(async (way) => ({ style, way, result: await clients[style][way](ask) })))
  )

/** The reply. A failed request fails the test. */
export const gotten = (result: Got | Failed, where: string): Got => {
  if (result._tag === "Failed") assert.fail(`${where}: ${JSON.stringify(result)}`)
  return result
}

/**
 * Asserts that the reply is the same in all styles, and that an SDK accumulates a stream to the object of the whole reply. Returns the
 * token counts.
 */
export const assertSame = async (
  clients: Clients,
  ask: Ask,
  written: Written,
  styles: ReadonlyArray<StyleName> = styleNames
) => {
  const replies = (await everywhere(clients, ask, styles)).map(({ result, style, way }) => {
    const where = `${style}, ${way}`
    return { style, way, where, reply: gotten(result, where) }
  })
  const usage = replies[0]!.reply.usage
  for (const { reply, style, way, where } of replies) {
    const { blocks, cutOff, finish } = reply
    assert.deepStrictEqual({ blocks, cutOff, finish }, expected(style, way, written), where)
    assert.deepStrictEqual(reply.usage, usage, `the usage of ${where}`)
  }
  if (written.pieces.every((piece) => piece._tag !== "CutOff")) {
    for (const style of styles) {
      const [whole, streamed] = replies.filter((reply) => reply.style === style).map(({ reply }) => reply.object)
      assert.deepStrictEqual(streamed, whole, `the objects of ${style}`)
    }
  }
  return usage
}

/** A script whose reply is this text. The text must not contain markup, which the prompt would escape. */
export const saying = (text: string): string =>
  `!say "${text.replaceAll(/[^ A-Za-z0-9]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)}"`
