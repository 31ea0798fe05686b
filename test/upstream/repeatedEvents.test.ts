/** Events that are read by comparison mean what they mean when they are parsed, and few are parsed. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { chunkDecoder, recordedForm } from "../../src/contracts/chat/readReply.ts"
import { chunkDecoder as generateDecoder } from "../../src/contracts/generate/readReply.ts"
import { eventDecoder } from "../../src/contracts/messages/readReply.ts"
import { eventDecoder as responsesDecoder } from "../../src/contracts/responses/readReply.ts"
import type { ChunkDecoder } from "../../src/contracts/shared/ChunkDecoder.ts"
import { RepeatedEvents } from "../../src/contracts/shared/RepeatedEvents.ts"
import type { UpstreamEvent } from "../../src/domain/UpstreamEvent.ts"

/** A reader that leaves every event to the parser. */
class Parsing<K> extends RepeatedEvents<K> {
  override next(): undefined {
    return undefined
  }
}

interface Server {
  readonly decoder: (reader: typeof RepeatedEvents) => ChunkDecoder
  /** Events with a place for a piece; the index makes some of them different. */
  readonly form: (piece: string, i: number) => object
}

const openai = (form: Server["form"]): Server => ({
  decoder: (Reader) => chunkDecoder({ ...recordedForm(), choices: 1 }, Reader),
  form
})
const messages = (form: Server["form"]): Server => ({ decoder: (Reader) => eventDecoder(Reader), form })
const responses = (form: Server["form"], passesEvents = false): Server => ({
  decoder: (Reader) => responsesDecoder({ passesEvents, onThinking: undefined, budget: undefined }, Reader),
  form
})
const generate = (form: Server["form"]): Server => ({ decoder: (Reader) => generateDecoder(true, Reader), form })

const chunk = (delta: object, more: object = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  model: "m",
  choices: [{ index: 0, delta, logprobs: null, finish_reason: null }],
  ...more
})

const added = { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "msg_0" } }

const delta = (piece: string, i: number) => ({
  type: "response.output_text.delta",
  sequence_number: i,
  item_id: "msg_0",
  output_index: 0,
  content_index: 0,
  delta: piece,
  logprobs: [],
  obfuscation: "x".repeat(i % 7)
})

const servers: Readonly<Record<string, Server>> = {
  openai: openai((content) => chunk({ content }, { system_fingerprint: "fp", service_tier: "default", usage: null })),
  "openai, with changing fields": openai((content, i) => chunk({ content }, { system_fingerprint: `fp${i % 3}` })),
  "openai, with padding": openai((content, i) => chunk({ content }, { obfuscation: "x".repeat(i % 4) })),
  "openai, with log probabilities": openai((content) => ({
    choices: [{
      delta: { content },
      logprobs: { content: [{ token: content, logprob: -1, bytes: null, top_logprobs: [] }] }
    }]
  })),
  vllm: openai((content, i) =>
    chunk(i === 0 ? { role: "assistant", content: "" } : { content }, { stop_reason: null })
  ),
  "llama.cpp": openai((content, i) =>
    chunk({ role: "assistant", content }, i % 4 === 3 ? { timings: { predicted_n: i } } : {})
  ),
  "reasoning, then text": openai((piece, i) =>
    chunk(i % 6 < 3 ? { reasoning_content: piece, content: null } : { content: piece })
  ),
  "inline reasoning": openai((content, i) => chunk({ content: i === 0 ? "<think>" : i === 5 ? "</think>" : content })),
  "calls between texts": openai((content, i) =>
    chunk(
      i % 4 === 2
        ? { tool_calls: [{ index: i, id: `c${i}`, function: { name: "f", arguments: content } }] }
        : { content }
    )
  ),
  "a refusal": openai((refusal) => chunk({ refusal })),
  "text after the end": openai((content, i) => ({
    choices: [{ delta: { content }, finish_reason: i === 3 ? "stop" : null }]
  })),
  "usage in every chunk": openai((content, i) =>
    chunk({ content }, { usage: { prompt_tokens: 5, completion_tokens: i, total_tokens: 5 + i } })
  ),
  "the text stands elsewhere too": openai((content) => ({ model: content, choices: [{ delta: { content } }] })),
  messages: messages((text, i) =>
    i === 0
      ? { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }
      : { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }
  ),
  "messages, without starts": messages((text, i) => ({
    type: "content_block_delta",
    index: i % 5,
    delta: i % 3 === 0 ? { type: "thinking_delta", thinking: text } : { type: "text_delta", text }
  })),
  "messages, a call": messages((text, i) =>
    i === 0
      ? { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "t", name: "f", input: {} } }
      : { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: text } }
  ),
  responses: responses(delta),
  "responses, for a caller of the contract": responses((piece, i) => i === 0 ? added : delta(piece, i), true),
  "responses, with log probabilities": responses((piece, i) => ({
    ...delta(piece, i),
    logprobs: i % 3 === 0 ? [] : [{ token: piece, logprob: -1 }]
  })),
  "responses, of two messages": responses((piece, i) =>
    i < 2
      ? { ...added, output_index: i, item: { type: "message", id: `msg_${i}` } }
      : { ...delta(piece, i), item_id: `msg_${i % 5 < 3 ? 0 : 1}`, output_index: i % 5 < 3 ? 0 : 1 }
  ),
  generate: generate((text) => ({
    candidates: [{ content: { parts: [{ text }], role: "model" }, index: 0 }],
    modelVersion: "m"
  })),
  "generate, with thoughts": generate((text, i) => ({
    candidates: [{
      content: { parts: [i % 4 < 2 ? { text, thought: true } : { text }] },
      ...(i === 5 ? { finishReason: "STOP" } : {})
    }]
  })),
  "generate, with usage": generate((text, i) => ({
    candidates: [{ content: { parts: [{ text }] } }],
    usageMetadata: { promptTokenCount: 5, totalTokenCount: i }
  }))
}

const piece = fc.oneof(
  { weight: 8, arbitrary: fc.string({ unit: "grapheme", minLength: 1, maxLength: 6 }) },
  fc.string({ unit: "binary", maxLength: 3 }),
  fc.constantFrom(
    "",
    "m",
    "stop",
    "\"",
    "\\",
    "\n",
    "\ud83d",
    "\ude00",
    "😀",
    "\u0000",
    "\u2028",
    "a\"}]}",
    "text",
    "content"
  )
)

/** An event without what its original has only of one of the pieces that share it. */
const shared = (event: UpstreamEvent) => {
  if (event._tag !== "UpstreamText" || event.original === undefined) return event
  const { delta: _d, obfuscation: _o, sequence_number: _s, ...value } = event.original as Record<string, unknown>
  return { ...event, original: value }
}

/** All that a decoder says of a stream. */
const decoded = (decoder: ChunkDecoder, texts: ReadonlyArray<string>, event?: string) => {
  const out: Array<UpstreamEvent> = []
  const states = texts.map((data) => {
    decoder.push({ event, data }, out)
    return [out.length, decoder.finishing(), decoder.done(), decoder.failure()?.kind]
  })
  decoder.end(out)
  return { out: out.map(shared), states, failure: decoder.failure() }
}

const assertSame = ({ decoder }: Server, texts: ReadonlyArray<string>) => {
  assert.deepStrictEqual(decoded(decoder(RepeatedEvents), texts), decoded(decoder(Parsing), texts), texts.join("\n"))
}

const writers: ReadonlyArray<(value: unknown) => string> = [
  (value) => JSON.stringify(value),
  (value) => JSON.stringify(value, null, 1),
  // Escapes where none is needed.
  (value) => JSON.stringify(value).replaceAll("a", "\\u0061").replaceAll("/", "\\/")
]

describe.each(Object.entries(servers))("the events of a server (%s)", (_, server) => {
  it("mean the same whether they are compared or parsed", () => {
    fc.assert(fc.property(fc.array(piece, { maxLength: 14 }), fc.constantFrom(...writers), (pieces, write) => {
      assertSame(server, pieces.map((text, i) => write(server.form(text, i))))
    }))
  })

  it("mean the same where one of their characters is another", () => {
    const change = fc.record({
      at: fc.nat(400),
      by: fc.constantFrom("\"", "\\", "x", ",", ":", "}", "1", " ", "\n", "\u0001", "")
    })
    fc.assert(
      fc.property(fc.array(piece, { minLength: 3, maxLength: 9 }), fc.nat(), change, (pieces, which, { at, by }) => {
        const texts = pieces.map((text, i) => JSON.stringify(server.form(text, i)))
        const changed = texts[which % texts.length]!
        texts[which % texts.length] = changed.slice(0, at % changed.length) + by +
          changed.slice(at % changed.length + 1)
        assertSame(server, texts)
      })
    )
  })
})

describe("of a reply in pieces", () => {
  const parsesOf = (name: string, count: number) => {
    const { decoder, form } = servers[name]!
    const texts = Array.from({ length: count }, (_, i) => JSON.stringify(form(`piece ${i}`, i)))
    const started = decoder(RepeatedEvents)
    const parse = JSON.parse
    let parses = 0
    JSON.parse = (...args: Parameters<typeof parse>): unknown => {
      parses++
      return parse(...args)
    }
    try {
      decoded(started, texts)
    } finally {
      JSON.parse = parse
    }
    return parses
  }

  it.each([
    "openai",
    "openai, with padding",
    "messages",
    "responses",
    "responses, for a caller of the contract",
    "generate"
  ])("few events are parsed (%s)", (name) => {
    assert.isAtMost(parsesOf(name, 200), 5)
  })

  it("events that never repeat cost a bounded number of parses more", () => {
    assert.isAtMost(parsesOf("openai, with changing fields", 1000), 1000 + 32)
    assert.isAtMost(parsesOf("reasoning, then text", 1000), 1000)
  })
})
