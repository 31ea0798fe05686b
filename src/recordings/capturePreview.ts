/**
 * The text of a capture chain for lists and search: the last user message, and the reply decoded from its event streams.
 */
import { contractOfDriver } from "../contracts/contractOf.ts"
import { serverReader } from "../contracts/recordedReader.ts"
import { readPrompt } from "../contracts/session/writeRequest.ts"
import { shorten } from "../domain/redact.ts"
import { type Cooperative, pieceChars, runSync } from "../domain/stream/cooperative.ts"
import { makeSseDecoder, type SseEvent } from "../domain/stream/sse.ts"
import type { UpstreamEvent } from "../domain/UpstreamEvent.ts"
import { type CaptureChain, type CapturedRound, responseText } from "./CapturedRound.ts"
import { isEventStream } from "./frames.ts"

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

/** The model that a body of a request names; `null` without one. */
export const namedModel = (body: string): string | null => {
  const model = fieldOf(parse(body), "model")
  return typeof model === "string" && model !== "" ? model : null
}

/** The last user message of a request; the whole body if it has no known format. */
const requestWords = ({ protocol, requestBody: body }: CapturedRound): string => {
  const request = parse(body)
  const prompt = fieldOf(request, "prompt")
  if (typeof prompt === "string") return readPrompt(prompt).findLast(({ role }) => role === "user")?.text ?? prompt
  const turns = fieldOf(request, contractOfDriver(protocol)?.facts.words.turns ?? "")
  if (typeof turns === "string") return turns
  const last: unknown = Array.isArray(turns) ? turns.findLast((turn) => fieldOf(turn, "role") === "user") : undefined
  return contentText(fieldOf(last, "content") ?? fieldOf(last, "parts")) || body
}

/** The reply of a round, as far as it was recorded. */
export type RecordedReplyRound = Pick<CapturedRound, "protocol" | "contentType" | "bytes">

/** Decodes the events of a stream, those without their final blank line apart. */
function* sseEvents(
  { bytes }: RecordedReplyRound,
  push: (event: SseEvent) => void,
  pushUnterminated: (event: SseEvent) => void
): Cooperative<void> {
  const decoder = makeSseDecoder()
  const events: Array<SseEvent> = []
  for (let at = 0; at < bytes.length; at += pieceChars) {
    decoder.push(bytes.subarray(at, at + pieceChars), events)
    events.forEach(push)
    events.length = 0
    yield { items: 1, chars: pieceChars }
  }
  decoder.end(events)
  events.forEach(pushUnterminated)
}

const isStream = ({ contentType }: RecordedReplyRound): boolean => isEventStream(contentType)

/** The events of a reply that took these rounds. */
export function* replyEvents(rounds: ReadonlyArray<RecordedReplyRound>): Cooperative<ReadonlyArray<UpstreamEvent>> {
  const events: Array<UpstreamEvent> = []
  const [first] = rounds
  if (first === undefined) return events
  const reader = serverReader(first.protocol)
  for (const [index, round] of rounds.entries()) {
    if (index > 0) reader.nextRound(events)
    if (isStream(round)) {
      yield* sseEvents(round, (event) => reader.push(event, events), (event) => reader.pushUnterminated(event, events))
    } else reader.pushWhole(decoder.decode(round.bytes), events)
  }
  reader.end(events)
  return events
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** The text of a reply, or its reasoning, or the raw body of the last round. */
const replyWords = (chain: CaptureChain): string => {
  const events = runSync(replyEvents(chain.filter(isStream)))
  const text = { UpstreamText: "", UpstreamReasoning: "" }
  for (const event of events) {
    if (event._tag === "UpstreamText" || event._tag === "UpstreamReasoning") text[event._tag] += event.text
  }
  return text.UpstreamText || text.UpstreamReasoning || responseText(chain[chain.length - 1]!)
}

const preview = (text: string): string => shorten(text.trim(), previewLength)

/** Shortened texts of the request and the reply. */
export const previews = (chain: CaptureChain): { readonly request: string; readonly response: string } => ({
  request: preview(requestWords(chain[0])),
  response: preview(replyWords(chain))
})

/** True if the chain contains every word of `words` (in lower case), in its raw bodies or their decoded texts. */
export const chainHolds = (chain: CaptureChain, words: ReadonlyArray<string>): boolean => {
  if (words.length === 0) return true
  const texts = [
    requestWords(chain[0]),
    replyWords(chain),
    ...chain.flatMap((round) => [round.requestBody, responseText(round)])
  ].map((text) => text.toLowerCase())
  return words.every((word) => texts.some((text) => text.includes(word)))
}
