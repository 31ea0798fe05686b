/**
 * From the events of an OpenAI-compatible server to upstream events.
 *
 * Servers differ more than their documents say: reasoning has two names or is inline, call indexes are missing, usage is in a
 * separate chunk, the sentinel is omitted. Unambiguous content is accepted; unreadable content fails the reply.
 */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { endsWithin, WholeCharacters } from "../../domain/stream/text.ts"
import {
  type PartialUsage,
  UpstreamCall,
  type UpstreamEvent,
  UpstreamFinish,
  UpstreamReasoning,
  UpstreamUsage
} from "../../domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { type ReasoningNames, unknownNames } from "../shared/chatThinking.ts"
import type { ChunkDecoder } from "../shared/ChunkDecoder.ts"
import { endOf, gaveUp } from "../shared/ends.ts"
import { errorBody } from "../shared/errorBody.ts"
import { errorFacts, isError } from "../shared/errorFacts.ts"
import { says } from "../shared/extraFields.ts"
import { inlineReasoning } from "../shared/inlineReasoning.ts"
import { asCount, asString, parseJson, writeJson } from "../shared/json.ts"
import { isTextOnly, type Piece, RepeatedEvents } from "../shared/RepeatedEvents.ts"
import { timingsUsage, usageIn, usageOf } from "../shared/usage.ts"
import { callIndexes } from "./callIndexes.ts"
import { Extras, refusalOf, sealedOf } from "./extras.ts"

/** Characters of a call's id, which every frame of the call repeats. */
const longestId = 256

/** Names of fields that are remembered of the pieces of a message. */
const mostNames = 64

/** What a field of a message is about: reasoning has several names. */
const kindOf = (name: string): string => name.startsWith("reasoning") ? "reasoning" : name

/** Content is a string, or a list of parts of which the text counts. */
const contentText = (content: unknown): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
    ? content.map((part: unknown) => isRecord(part) ? asString(part["text"]) ?? "" : "").join("")
    : ""

/** The text of a list's elements that have the type, at the field. */
const textOf = (list: ReadonlyArray<unknown>, type: string, field: string): string =>
  list.map((each) => isRecord(each) && each["type"] === type ? asString(each[field]) ?? "" : "").join("")

/** Reasoning in the structured forms: a list of details, or parts of the content whose own parts are the text. */
const structuredReasoning = ({ content, reasoning_details: details }: JsonRecord): string | undefined => {
  if (Array.isArray(details)) {
    return asString(textOf(details, "reasoning.text", "text") + textOf(details, "reasoning.summary", "summary"))
  }
  if (!Array.isArray(content)) return undefined
  return asString(
    content.map((part: unknown) => {
      if (!isRecord(part) || part["type"] !== "thinking") return ""
      const { thinking } = part
      return Array.isArray(thinking) ? textOf(thinking, "text", "text") : asString(thinking) ?? ""
    }).join("")
  )
}

/** The reasoning of a delta, by whichever names the server has for it. Notes these names. */
const reasoningText = (delta: JsonRecord, names: ReasoningNames): string | undefined => {
  const content = asString(delta["reasoning_content"])
  const reasoning = asString(delta["reasoning"])
  if (content !== undefined) names.content = true
  if (reasoning !== undefined) names.reasoning = true
  if (Array.isArray(delta["reasoning_details"])) names.details = true
  return content ?? reasoning ?? structuredReasoning(delta)
}

type Finish = UpstreamFinish["reason"]

/** Finish reasons, also of other vendors and of the servers that they forward. */
const finishReasons: ReadonlyMap<string, Finish> = new Map([
  ..."stop stop_sequence end end_turn eos eos_token complete completed done finish finished"
    .split(" ").map((word): [string, Finish] => [word, "stop"]),
  ..."tool_calls tool_call tool_use function_call function_calls"
    .split(" ").map((word): [string, Finish] => [word, "tool_calls"]),
  ..."length max_tokens max_output_tokens max_new_tokens model_length model_context_window_exceeded"
    .split(" ").map((word): [string, Finish] => [word, "length"]),
  ..."content_filter safety sensitive recitation refusal blocklist prohibited_content spii"
    .split(" ").map((word): [string, Finish] => [word, "content_filter"])
])

/** Placeholders of servers that send a finish reason with every chunk. */
const noReasons: ReadonlySet<string> = new Set(["", "null", "none"])

const pieceFields = ["content", "reasoning_content", "reasoning"] as const

/** A chunk that says nothing but a piece of text or reasoning. */
export const pieceOf = (value: unknown): Piece<typeof pieceFields[number]> | undefined => {
  const choices = isRecord(value) ? value["choices"] : undefined
  const choice: unknown = Array.isArray(choices) && choices.length === 1 ? choices[0] : undefined
  const delta = isRecord(choice) ? choice["delta"] : undefined
  if (!isRecord(delta)) return undefined
  let piece: Piece<typeof pieceFields[number]> | undefined
  for (const name of Object.keys(delta)) {
    const field = delta[name]
    if (name === "role" || field === null) continue
    const kind = pieceFields.find((known) => known === name)
    if (kind === undefined || typeof field !== "string" || field === "" || piece !== undefined) return undefined
    piece = { kind, text: field }
  }
  return piece
}

/** Padding, by which OpenAI hides the length of pieces. */
const padding = /"(obfuscation)": ?"[^"\\]*"/g

/** The stop sequence that ended the reply, if the server reports it: vLLM by one name, SGLang by another. */
const matchedStop = (choice: JsonRecord, stop: ReadonlyArray<string>): string | undefined =>
  stop.find((sequence) => sequence === choice["stop_reason"] || sequence === choice["matched_stop"])

/**
 * Starts a decoder. `Reader` compares events. `stop` are the sequences that were sent with the request, and `names` learns the names by which the server sends
 * thinking. `counted` sees each usage.
 */
export const chunkDecoder = (
  stop: ReadonlyArray<string>,
  names = unknownNames(),
  Reader = RepeatedEvents,
  counted?: (usage: Pick<PartialUsage, "completionTokens">) => void
): ChunkDecoder => {
  const inline = inlineReasoning()
  const indexOf = callIndexes()
  /** Lists of calls so far. */
  let lists = 0
  let failure: UpstreamFailure | undefined
  let finish: Finish | undefined
  /** The server's word for the end, if no table knows it. */
  let unknown: string | undefined
  /** The finish reason was the last part of the reply so far. */
  let isComplete = false
  /** The server has a place for finish reasons, if only for `null`. */
  let hasReasons = false
  let stopSequence: string | undefined
  const texts = new WholeCharacters()
  const reasonings = new WholeCharacters()
  /** Held parts of characters of calls whose arguments were cut within one. */
  let cutArguments: Map<number, WholeCharacters> | undefined
  const extras = new Extras()
  const repeated = new Reader(pieceOf, padding)
  /** The last usage, as the server wrote it. */
  let lastUsage: JsonRecord | undefined
  /** The service tier that the server has named last. */
  let tier: unknown
  /** What pieces of the message have said. */
  const said = new Set<string>()
  let began = false
  let done = false

  const fail = (facts: Omit<ConstructorParameters<typeof UpstreamFailure>[0], "phase">) => {
    // A complete reply stays complete, whatever follows it.
    if (!isComplete) failure ??= new UpstreamFailure({ phase: "stream", ...facts })
  }

  /** The reply continues after its finish reason. */
  const goOn = () => {
    isComplete = false
    stopSequence = undefined
  }

  const wholeArguments = (index: number, delta: string): string => {
    let known = cutArguments?.get(index)
    if (known === undefined) {
      if (!endsWithin(delta)) return delta
      known = new WholeCharacters()
      cutArguments ??= new Map()
      cutArguments.set(index, known)
    }
    return known.take(delta)
  }

  /** Emits held parts of characters. */
  const endPieces = (out: Array<UpstreamEvent>) => {
    const reasoning = reasonings.end()
    if (reasoning !== "") out.push(UpstreamReasoning(reasoning))
    inline.push(texts.end(), out)
    inline.end(out)
    cutArguments?.forEach((cut, index) => {
      const rest = cut.end()
      if (rest !== "") out.push(UpstreamCall(index, undefined, undefined, rest))
    })
  }

  const toolCall = (call: unknown, list: number, out: Array<UpstreamEvent>) => {
    if (!isRecord(call)) return
    const fn = isRecord(call["function"]) ? call["function"] : {}
    const index = asCount(call["index"])
    const id = asString(call["id"])
    const name = asString(fn["name"])
    const args = fn["arguments"]
    const delta = typeof args === "string" ? args : isRecord(args) ? writeJson(args) : ""
    if (isComplete && (name !== undefined || delta !== "")) goOn()
    if (delta === undefined) {
      return fail({ kind: "malformed", message: "the arguments of a call are nested too deeply" })
    }
    if (id !== undefined && id.length > longestId) {
      return fail({ kind: "malformed", message: "the id of a call is too long" })
    }
    const at = indexOf({ index, id, name, argumentsDelta: delta }, list)
    out.push(UpstreamCall(at, id, name, wholeArguments(at, delta), sealedOf(call)))
  }

  const takeText = (reasoning: string | undefined, text: string, out: Array<UpstreamEvent>) => {
    if (reasoning !== undefined) {
      const whole = reasonings.take(reasoning)
      if (whole !== "") out.push(UpstreamReasoning(whole))
    }
    inline.push(texts.take(text), out)
  }

  /** What of a whole message, which some servers add at the end, its pieces have not said. */
  const unsaid = (message: JsonRecord): JsonRecord => {
    if (said.size === 0) return message
    return Object.fromEntries(Object.entries(message).filter(([name]) => !said.has(kindOf(name))))
  }

  const takeDelta = (delta: JsonRecord, out: Array<UpstreamEvent>) => {
    for (const name of Object.keys(delta)) {
      if (said.size < mostNames && says(delta[name])) said.add(kindOf(name))
    }
    const reasoning = reasoningText(delta, names)
    const text = contentText(delta["content"])
    // Blanks after the finish reason do not continue the reply.
    if (isComplete && ((reasoning ?? "").trim() !== "" || text.trim() !== "" || refusalOf(delta) !== "")) goOn()
    extras.message(delta, out)
    takeText(reasoning, text, out)
    // The older form knows one call only.
    const calls = delta["tool_calls"] ??
      (isRecord(delta["function_call"]) ? [{ index: 0, function: delta["function_call"] }] : [])
    if (!Array.isArray(calls) || calls.length === 0) return
    inline.interrupt(out)
    lists++
    for (const call of calls) toolCall(call, lists, out)
  }

  const takeUsage = (value: JsonRecord, choice: unknown, out: Array<UpstreamEvent>) => {
    const reported = usageIn(value, choice)
    tier = value["service_tier"] ?? tier
    const usage = reported !== undefined
      ? usageOf(reported, { tier, toolCalls: undefined })
      : lastUsage === undefined
      ? timingsUsage(value)
      : undefined
    lastUsage = reported ?? lastUsage
    if (usage === undefined) return
    counted?.(usage)
    out.push(UpstreamUsage(usage))
  }

  const takeChunk = (value: JsonRecord, out: Array<UpstreamEvent>) => {
    if (isError(value)) return fail({ kind: "refused", ...errorFacts(value), ...errorBody(value) })
    began = true
    const choices = value["choices"]
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
    takeUsage(value, choice, out)
    if (finish === "content_filter") return
    extras.chunk(value, out)
    if (!isRecord(choice)) return
    extras.choice(choice, out)
    const { delta, message } = choice
    if (isRecord(delta)) takeDelta(delta, out)
    if (isRecord(message)) takeDelta(unsaid(message), out)
    hasReasons ||= "finish_reason" in choice
    const reason = asString(choice["finish_reason"])
    if (reason === undefined) return
    const word = reason.trim().toLowerCase()
    if (noReasons.has(word)) return
    // Gateways of other vendors add the reason of the vendor.
    const end = endOf(word.startsWith("content_filter:") ? "content_filter" : word, finishReasons)
    if (end === undefined) return fail(gaveUp(reason))
    finish = end.reason
    unknown = end.unknown
    isComplete = true
    stopSequence = matchedStop(choice, stop)
  }

  const push: ChunkDecoder["push"] = ({ data, event }, out) => {
    if (failure !== undefined || done) return
    const piece = event === "error" ? undefined : repeated.next(data)
    if (piece !== undefined) {
      return piece.kind === "content" ? takeText(undefined, piece.text, out) : takeText(piece.text, "", out)
    }
    const text = data.trim()
    if (text === "") return
    if (text === "[DONE]") {
      done = true
      return
    }
    const from = out.length
    const value = parseJson(data)
    // Some servers name the event instead of wrapping the error.
    if (event === "error") return fail({ kind: "refused", ...errorFacts(value), ...errorBody(value) })
    // Some servers say nothing in this way.
    if (value === null) return
    if (!isRecord(value)) return fail({ kind: "malformed" })
    takeChunk(value, out)
    // What is said beside the text was said before, or else it is among the events.
    repeated.parsed(data, value, failure === undefined && finish === undefined && isTextOnly(out, from))
  }

  return {
    push,
    pushUnterminated(event, out) {
      if (event.data.trim() === "[DONE]" || parseJson(event.data) !== undefined) push(event, out)
    },
    pushWhole(body, out) {
      const value = parseJson(body)
      if (!isRecord(value) || !(isError(value) || Array.isArray(value["choices"]))) {
        return fail({ kind: "malformed", ...errorFacts(value) })
      }
      takeChunk(value, out)
      // A whole object is not cut off.
      hasReasons = false
      done = true
    },
    end(out) {
      if (failure !== undefined) return
      // Proxies end cut streams with the sentinel. It is the end by itself only where a server has no finish reasons.
      const isOver = isComplete || (done && (finish !== undefined || !hasReasons))
      if (!isOver) return fail({ kind: began ? "truncated" : "empty" })
      endPieces(out)
      extras.usage(lastUsage, out)
      out.push(UpstreamFinish(finish ?? "stop", stopSequence, unknown))
    },
    failure: () => failure,
    finishing: () => isComplete || done,
    withdrawn: () => finish === "content_filter",
    done: () => done
  }
}
