/**
 * The text of a capture chain for lists and search: the last user message, and the reply decoded from its event streams.
 */
import { shorten } from "../domain/redact.ts"
import { makeSseDecoder, type SseEvent } from "../domain/stream/sse.ts"
import type { UpstreamEvent } from "../domain/UpstreamEvent.ts"
import * as generate from "../upstream/generate/decodeChunks.ts"
import { eventDecoder } from "../upstream/messages/decodeEvents.ts"
import * as openai from "../upstream/openai/decodeChunks.ts"
import type { ChunkDecoder } from "../upstream/replyDecoder.ts"
import { ReplyDecoder } from "../upstream/session/decodeReply.ts"
import { readPrompt } from "../upstream/session/prompt.ts"
import { type CaptureChain, type CapturedRound, responseText } from "./CapturedRound.ts"

/** Characters of a preview. */
const previewLength = 240

const fieldOf = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined

/** The parsed JSON; `undefined` for invalid JSON, such as a truncated body. */
const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const contentText = (content: unknown): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
    ? content.map((part: unknown) => {
      const text = fieldOf(part, "text")
      return typeof text === "string" ? text : ""
    }).join("")
    : ""

/** The last user message of a request; the whole body if it has no known format. */
const requestWords = (body: string): string => {
  const request = parse(body)
  const prompt = fieldOf(request, "prompt")
  if (typeof prompt === "string") return readPrompt(prompt).findLast(({ role }) => role === "user")?.text ?? prompt
  const messages = fieldOf(request, "messages") ?? fieldOf(request, "contents")
  const last: unknown = Array.isArray(messages)
    ? messages.findLast((message) => fieldOf(message, "role") === "user")
    : undefined
  return contentText(fieldOf(last, "content") ?? fieldOf(last, "parts")) || body
}

const eventStream = /^text\/event-stream\b/i

const sseEvents = (
  { bytes }: CapturedRound,
  push: (event: SseEvent) => void,
  pushUnterminated: (event: SseEvent) => void
) => {
  const decoder = makeSseDecoder()
  const events: Array<SseEvent> = []
  decoder.push(bytes, events)
  events.forEach(push)
  events.length = 0
  decoder.end(events)
  events.forEach(pushUnterminated)
}

const sessionReply = (rounds: ReadonlyArray<CapturedRound>, out: Array<UpstreamEvent>): void => {
  const reply = new ReplyDecoder()
  rounds.forEach((round, index) => {
    if (index > 0) {
      reply.endRound()
      reply.startRound()
    }
    sseEvents(round, (event) => reply.push(event, out), (event) => reply.pushUnterminated(event, out))
  })
}

/** The decoders of the protocols whose replies have one round. */
const decoders = {
  openai: () => openai.chunkDecoder([]),
  messages: eventDecoder,
  generate: generate.chunkDecoder
}

const singleReply = (decode: () => ChunkDecoder, round: CapturedRound, out: Array<UpstreamEvent>): void => {
  const reply = decode()
  sseEvents(round, (event) => reply.push(event, out), (event) => reply.pushUnterminated(event, out))
}

/** The text of a reply, or its reasoning, or the raw body of the last round. */
const replyWords = (chain: CaptureChain): string => {
  const streams = chain.filter(({ contentType }) => eventStream.test(contentType ?? ""))
  const events: Array<UpstreamEvent> = []
  const { protocol } = chain[0]
  if (protocol === "session") sessionReply(streams, events)
  else for (const round of streams) singleReply(decoders[protocol], round, events)
  const text = { UpstreamText: "", UpstreamReasoning: "" }
  for (const event of events) {
    if (event._tag === "UpstreamText" || event._tag === "UpstreamReasoning") text[event._tag] += event.text
  }
  return text.UpstreamText || text.UpstreamReasoning || responseText(chain[chain.length - 1]!)
}

const preview = (text: string): string => shorten(text.trim(), previewLength)

/** Shortened texts of the request and the reply. */
export const previews = (chain: CaptureChain): { readonly request: string; readonly response: string } => ({
  request: preview(requestWords(chain[0].requestBody)),
  response: preview(replyWords(chain))
})

/** True if the chain contains every word of `words` (in lower case), in its raw bodies or their decoded texts. */
export const chainHolds = (chain: CaptureChain, words: ReadonlyArray<string>): boolean => {
  if (words.length === 0) return true
  const texts = [
    requestWords(chain[0].requestBody),
    replyWords(chain),
    ...chain.flatMap((round) => [round.requestBody, responseText(round)])
  ].map((text) => text.toLowerCase())
  return words.every((word) => texts.some((text) => text.includes(word)))
}
