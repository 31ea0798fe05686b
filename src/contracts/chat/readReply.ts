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
  UpstreamChoice,
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
import { mostChoices } from "./facts.ts"

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

/** How a reply is read. */
export interface ReplyForm {
  /** The sequences that were sent with the request. */
  readonly stop: ReadonlyArray<string>
  /** Learns the names by which the server sends thinking. */
  readonly names: ReasoningNames
  /** Sees each usage. */
  readonly counted: (usage: Pick<PartialUsage, "completionTokens">) => void
  /** The choices that were asked for; `undefined` for a recorded reply, which has any number. */
  readonly choices: number | undefined
}

/** How a recorded reply is read. */
export const recordedForm = (): ReplyForm => ({
  stop: [],
  names: unknownNames(),
  counted: () => {},
  choices: undefined
})

type Fail = (facts: Omit<ConstructorParameters<typeof UpstreamFailure>[0], "phase">) => void

/** Reads one choice of a reply. */
class ChoiceReader {
  finish: Finish | undefined
  /** The finish reason was the last part of the choice so far. */
  isComplete = false
  readonly #stop: ReadonlyArray<string>
  readonly #names: ReasoningNames
  readonly #extras: Extras
  readonly #fail: Fail
  readonly #inline = inlineReasoning()
  readonly #indexOf = callIndexes()
  /** Lists of calls so far. */
  #lists = 0
  /** The server's word for the end, if no table knows it. */
  #unknown: string | undefined
  /** The server has a place for finish reasons, if only for `null`. */
  #hasReasons = false
  #stopSequence: string | undefined
  readonly #texts = new WholeCharacters()
  readonly #reasonings = new WholeCharacters()
  /** Held parts of characters of calls whose arguments were cut within one. */
  #cutArguments: Map<number, WholeCharacters> | undefined
  /** What pieces of the message have said. */
  readonly #said = new Set<string>()

  constructor({ names, stop }: ReplyForm, extras: Extras, fail: Fail) {
    this.#stop = stop
    this.#names = names
    this.#extras = extras
    this.#fail = fail
  }

  /** True at the end of the stream if the choice is whole. Proxies end cut streams with the sentinel: it is the end by itself only where a server has no finish reasons. */
  isOver(isSentinelSeen: boolean): boolean {
    return this.isComplete || (isSentinelSeen && (this.finish !== undefined || !this.#hasReasons))
  }

  take(choice: JsonRecord, out: Array<UpstreamEvent>): void {
    this.#extras.choice(choice, out)
    const { delta, message } = choice
    if (isRecord(delta)) this.#delta(delta, out)
    if (isRecord(message)) this.#delta(this.#unsaid(message), out)
    this.#hasReasons ||= "finish_reason" in choice
    const reason = asString(choice["finish_reason"])
    if (reason === undefined) return
    const word = reason.trim().toLowerCase()
    if (noReasons.has(word)) return
    // Gateways of other vendors add the reason of the vendor.
    const end = endOf(word.startsWith("content_filter:") ? "content_filter" : word, finishReasons)
    if (end === undefined) return this.#fail(gaveUp(reason))
    this.finish = end.reason
    this.#unknown = end.unknown
    this.isComplete = true
    this.#stopSequence = matchedStop(choice, this.#stop)
  }

  text(reasoning: string | undefined, text: string, out: Array<UpstreamEvent>): void {
    if (reasoning !== undefined) {
      const whole = this.#reasonings.take(reasoning)
      if (whole !== "") out.push(UpstreamReasoning(whole))
    }
    this.#inline.push(this.#texts.take(text), out)
  }

  /** A whole object is not cut off. */
  wholeObject(): void {
    this.#hasReasons = false
  }

  /** Emits held parts of characters. */
  endPieces(out: Array<UpstreamEvent>): void {
    const reasoning = this.#reasonings.end()
    if (reasoning !== "") out.push(UpstreamReasoning(reasoning))
    this.#inline.push(this.#texts.end(), out)
    this.#inline.end(out)
    this.#cutArguments?.forEach((cut, index) => {
      const rest = cut.end()
      if (rest !== "") out.push(UpstreamCall(index, undefined, undefined, rest))
    })
  }

  end(out: Array<UpstreamEvent>): void {
    out.push(UpstreamFinish(this.finish ?? "stop", this.#stopSequence, this.#unknown))
  }

  /** The choice continues after its finish reason. */
  #goOn(): void {
    this.isComplete = false
    this.#stopSequence = undefined
  }

  #wholeArguments(index: number, delta: string): string {
    let known = this.#cutArguments?.get(index)
    if (known === undefined) {
      if (!endsWithin(delta)) return delta
      known = new WholeCharacters()
      this.#cutArguments ??= new Map()
      this.#cutArguments.set(index, known)
    }
    return known.take(delta)
  }

  #call(call: unknown, out: Array<UpstreamEvent>): void {
    if (!isRecord(call)) return
    const fn = isRecord(call["function"]) ? call["function"] : {}
    const index = asCount(call["index"])
    const id = asString(call["id"])
    const name = asString(fn["name"])
    const args = fn["arguments"]
    const delta = typeof args === "string" ? args : isRecord(args) ? writeJson(args) : ""
    if (this.isComplete && (name !== undefined || delta !== "")) this.#goOn()
    if (delta === undefined) {
      return this.#fail({ kind: "malformed", message: "the arguments of a call are nested too deeply" })
    }
    if (id !== undefined && id.length > longestId) {
      return this.#fail({ kind: "malformed", message: "the id of a call is too long" })
    }
    const at = this.#indexOf({ index, id, name, argumentsDelta: delta }, this.#lists)
    out.push(UpstreamCall(at, id, name, this.#wholeArguments(at, delta), sealedOf(call)))
  }

  /** What of a whole message, which some servers add at the end, its pieces have not said. */
  #unsaid(message: JsonRecord): JsonRecord {
    if (this.#said.size === 0) return message
    return Object.fromEntries(Object.entries(message).filter(([name]) => !this.#said.has(kindOf(name))))
  }

  #delta(delta: JsonRecord, out: Array<UpstreamEvent>): void {
    for (const name of Object.keys(delta)) {
      if (this.#said.size < mostNames && says(delta[name])) this.#said.add(kindOf(name))
    }
    const reasoning = reasoningText(delta, this.#names)
    const text = contentText(delta["content"])
    // Blanks after the finish reason do not continue the choice.
    if (this.isComplete && ((reasoning ?? "").trim() !== "" || text.trim() !== "" || refusalOf(delta) !== "")) {
      this.#goOn()
    }
    this.#extras.message(delta, out)
    this.text(reasoning, text, out)
    // The older form knows one call only.
    const calls = delta["tool_calls"] ??
      (isRecord(delta["function_call"]) ? [{ index: 0, function: delta["function_call"] }] : [])
    if (!Array.isArray(calls) || calls.length === 0) return
    this.#inline.interrupt(out)
    this.#lists++
    for (const call of calls) this.#call(call, out)
  }
}

/** Starts a decoder. `Reader` compares events. A reply of which one choice was asked for is its first one, whatever its index. */
export const chunkDecoder = (form: ReplyForm, Reader = RepeatedEvents): ChunkDecoder => {
  const extras = new Extras()
  const repeated = new Reader(pieceOf, padding)
  const least = form.choices ?? 1
  const most = form.choices ?? mostChoices
  let failure: UpstreamFailure | undefined
  /** The last usage, as the server wrote it. */
  let lastUsage: JsonRecord | undefined
  /** The service tier that the server has named last. */
  let tier: unknown
  let began = false
  let done = false

  const fail: Fail = (facts) => {
    // A complete reply stays complete, whatever follows it.
    if (!isComplete()) failure ??= new UpstreamFailure({ phase: "stream", ...facts })
  }
  /** The choice of the last event, and all choices so far by their index: at most `most`. */
  let index = 0
  let choice = new ChoiceReader(form, extras, fail)
  let others: Map<number, ChoiceReader> | undefined

  const every = (test: (each: ChoiceReader) => boolean): boolean => {
    if (others === undefined) return least === 1 && test(choice)
    if (others.size < least) return false
    for (const each of others.values()) if (!test(each)) return false
    return true
  }
  const isComplete = () => every((each) => each.isComplete)
  const withdrawn = () => every((each) => each.finish === "content_filter")

  /** Goes on with the choice of an index. */
  const turnTo = (to: number, out: Array<UpstreamEvent>): void => {
    if (to === index) return
    others ??= new Map([[index, choice]])
    index = to
    choice = others.get(to) ?? new ChoiceReader(form, extras, fail)
    others.set(to, choice)
    out.push(UpstreamChoice(to))
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
    form.counted(usage)
    out.push(UpstreamUsage(usage))
  }

  const takeChunk = (value: JsonRecord, out: Array<UpstreamEvent>) => {
    if (isError(value)) return fail({ kind: "refused", ...errorFacts(value), ...errorBody(value) })
    began = true
    const list: ReadonlyArray<unknown> = Array.isArray(value["choices"]) ? value["choices"] : []
    takeUsage(value, list[0], out)
    if (withdrawn()) return
    extras.chunk(value, out)
    const read = most === 1 ? Math.min(list.length, 1) : list.length
    for (let i = 0; i < read; i++) {
      const each = list[i]
      if (!isRecord(each)) continue
      if (most > 1) {
        const at = asCount(each["index"]) ?? i
        if (at >= most) continue
        turnTo(at, out)
        if (choice.finish === "content_filter") continue
      }
      choice.take(each, out)
    }
  }

  const push: ChunkDecoder["push"] = ({ data, event }, out) => {
    if (failure !== undefined || done) return
    const piece = event === "error" ? undefined : repeated.next(data)
    if (piece !== undefined) {
      return piece.kind === "content" ? choice.text(undefined, piece.text, out) : choice.text(piece.text, "", out)
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
    repeated.parsed(data, value, failure === undefined && choice.finish === undefined && isTextOnly(out, from))
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
      for (const each of others?.values() ?? [choice]) each.wholeObject()
      done = true
    },
    end(out) {
      if (failure !== undefined) return
      const all = others === undefined ? [[index, choice] as const] : [...others]
      // A server may make fewer choices than it was asked for.
      if (!all.every(([, each]) => each.isOver(done))) return fail({ kind: began ? "truncated" : "empty" })
      for (const [at, each] of all) {
        turnTo(at, out)
        each.endPieces(out)
        if (each === all[0]![1]) extras.usage(lastUsage, out)
        each.end(out)
      }
    },
    failure: () => failure,
    finishing: () => isComplete() || done,
    withdrawn,
    done: () => done
  }
}
