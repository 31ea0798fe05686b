/**
 * From the events of a Responses server to upstream events.
 *
 * For callers of the same contract each event also passes as the server sent it: a piece of text as the original of its text, any other
 * event directly before the upstream events that say the same (`EventPlace`). A whole response becomes the events of which a server would
 * make it.
 */
import { isRecord, type Json, type JsonFields, type JsonRecord } from "../../domain/json.ts"
import { quotaEvent } from "../../domain/quota.ts"
import type { EventPlace } from "../../domain/replyExtras.ts"
import type { SseEvent } from "../../domain/stream/sse.ts"
import { WholeCharacters } from "../../domain/stream/text.ts"
import {
  type Original,
  UpstreamCall,
  type UpstreamEvent,
  UpstreamExtra,
  UpstreamFinish,
  UpstreamReasoning,
  UpstreamText,
  UpstreamUsage
} from "../../domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { ChunkDecoder } from "../shared/ChunkDecoder.ts"
import { type End, endOf } from "../shared/ends.ts"
import { inlineReasoning } from "../shared/inlineReasoning.ts"
import { asString, isShallow, parseJson } from "../shared/json.ts"
import { RepeatedEvents } from "../shared/RepeatedEvents.ts"
import { usageOf } from "../shared/usage.ts"
import { ChargedCalls } from "./chargedCalls.ts"
import { replyErrorFacts } from "./errors.ts"
import { eventsOf, lastTypeOf } from "./eventsOf.ts"
import { type Item, mostOpen, OpenItems } from "./OpenItems.ts"
import { annotated, callOf, isNeeded, listOf, pictureOf, sealable, textsOf } from "./replyItems.ts"
import { differing, pieceOf, startedBy, textPiece } from "./replyPieces.ts"

/** How the events of a reply are read. */
export interface EventOptions {
  /** The caller speaks the contract: the events pass as they are. */
  readonly passesEvents: boolean
  /** Called when the server sends the thinking itself, and not only summaries. */
  readonly onThinking: (() => void) | undefined
  /** Learns what the server states of the account's quota. */
  readonly budget: { statedQuota: unknown } | undefined
}

const plainEvents: EventOptions = { passesEvents: false, onThinking: undefined, budget: undefined }

/** Why a response is incomplete. */
const reasons: ReadonlyMap<string, UpstreamFinish["reason"]> = new Map([
  ["max_output_tokens", "length"],
  ["max_tokens", "length"],
  ["content_filter", "content_filter"]
])

/** How deep an event may be nested, which repeats the schemas of the request. */
const deepest = 256

const places: ReadonlyMap<string, EventPlace> = new Map([
  ["error", "response"],
  ["response.output_item.added", "begin"],
  ["response.content_part.added", "begin"],
  ["response.output_item.done", "item"]
])

const placeOf = (type: string, event: JsonRecord): EventPlace =>
  isRecord(event["response"]) ? "response" : places.get(type) ?? "event"

class EventDecoder implements ChunkDecoder {
  #failed: UpstreamFailure | undefined
  #finish: End | undefined
  #began = false
  readonly #items = new OpenItems()
  /** The types of the items that came as events; a final response may have others. */
  readonly #said = new Set<string>()
  #calls = 0
  readonly #callIds = new Set<string>()
  readonly #charged = new ChargedCalls()
  /** Text of an earlier message was emitted, and no call since. */
  #isAfterText = false
  readonly #passes: boolean
  /** Finds the thinking that local servers leave within the text, except in a reply that passes as it is. */
  readonly #inline: ReturnType<typeof inlineReasoning> | undefined
  readonly #onThinking: EventOptions["onThinking"]
  #hasThinking = false
  readonly #budget: EventOptions["budget"]
  readonly #repeated: RepeatedEvents<unknown>
  /** The last piece of text that was parsed. */
  #piece: Original | undefined

  constructor({ budget, onThinking, passesEvents = false }: EventOptions, Reader: typeof RepeatedEvents) {
    this.#repeated = new Reader(pieceOf, differing)
    this.#passes = passesEvents
    this.#inline = passesEvents ? undefined : inlineReasoning()
    this.#onThinking = onThinking
    this.#budget = budget
  }

  push({ data, event: name }: SseEvent, out: Array<UpstreamEvent>): void {
    if (this.#failed !== undefined || this.#finish !== undefined) return
    const piece = this.#repeated.next(data)
    // An empty piece passes as an event without text.
    if (piece !== undefined && piece.text !== "") {
      return this.#text(this.#items.get(piece.kind), piece.text, out, this.#piece)
    }
    const text = data.trim()
    // Without a final event before it, the marker ends a reply that is cut off.
    if (text === "" || text === "[DONE]") return
    const value = parseJson(data)
    if (value === null) return
    if (!isRecord(value)) return this.#fail({ kind: "malformed" })
    this.#take(asString(value["type"]) ?? name ?? "", value, out)
    this.#repeated.parsed(data, value, true)
  }

  pushUnterminated(event: SseEvent, out: Array<UpstreamEvent>): void {
    if (parseJson(event.data) !== undefined) this.push(event, out)
  }

  pushWhole(body: string, out: Array<UpstreamEvent>): void {
    const value = parseJson(body)
    if (!isRecord(value) || !Array.isArray(value["output"])) {
      const isError = isRecord(value) && (isRecord(value["error"]) || value["object"] === "error")
      return this.#fail(isError ? replyErrorFacts(value) : { kind: "malformed" })
    }
    for (const event of eventsOf(value)) this.#take(event.type, event, out)
  }

  end(out: Array<UpstreamEvent>): void {
    if (this.#failed !== undefined) return
    if (this.#finish === undefined) return this.#fail({ kind: this.#began ? "truncated" : "empty" })
    this.#inline?.end(out)
    out.push(UpstreamFinish(this.#finish.reason, undefined, this.#finish.unknown))
  }

  failure(): UpstreamFailure | undefined {
    return this.#failed
  }

  finishing(): boolean {
    return this.#finish !== undefined
  }

  withdrawn(): boolean {
    return false
  }

  done(): boolean {
    return this.#finish !== undefined
  }

  #fail(facts: Omit<ConstructorParameters<typeof UpstreamFailure>[0], "phase">): void {
    this.#failed ??= new UpstreamFailure({ phase: "stream", ...facts })
  }

  #take(type: string, event: JsonRecord, out: Array<UpstreamEvent>): void {
    const response = event["response"]
    if (isRecord(response)) return this.#response(type, event, response, out)
    if (type === "error" || (type === "" && isRecord(event["error"]))) {
      this.#pass("error", event, out)
      return this.#fail(replyErrorFacts(event))
    }
    this.#began = true
    if (type === quotaEvent && this.#budget !== undefined) this.#budget.statedQuota = event
    const { item } = event
    // A piece that a server sends whole at its end is a piece all the same, and comes before the end.
    this.#beforeEnd(type, event, out)
    if (type === textPiece) return this.#textPiece(event, out)
    this.#pass(type, event, out)
    if (isRecord(item)) {
      if (type === "response.output_item.added") this.#started(event, item, out)
      else if (type === "response.output_item.done") {
        this.#charged.take(item)
        this.#ended(event, item, out)
      }
      return
    }
    this.#part(type, event, out)
  }

  #pass(type: string, event: JsonRecord, out: Array<UpstreamEvent>): void {
    const original = this.#original(type, event)
    if (original !== undefined) out.push(UpstreamExtra("responses", placeOf(type, event), original))
  }

  #original(type: string, event: JsonRecord): Original | undefined {
    if (!this.#passes) return undefined
    if (isShallow(event, deepest)) return (event["type"] === type ? event : { ...event, type }) as JsonFields
    this.#fail({ kind: "malformed", message: "an event is nested too deeply" })
    return undefined
  }

  #textPiece(event: JsonRecord, out: Array<UpstreamEvent>): void {
    const { logprobs } = event
    const piece = asString(event["delta"])
    if (!this.#passes && Array.isArray(logprobs) && logprobs.length > 0) {
      out.push(UpstreamExtra("openai", "choice", { logprobs: { content: logprobs as ReadonlyArray<Json> } }))
    }
    if (piece === undefined) this.#pass(textPiece, event, out)
    else this.#text(this.#itemOf("message", event, out), piece, out, this.#piece = this.#original(textPiece, event))
  }

  #response(named: string, event: JsonRecord, response: JsonRecord, out: Array<UpstreamEvent>): void {
    // vLLM names the last event of an incomplete response `response.completed` too, so the status decides.
    const isLast = named === "response.completed" && response["status"] !== "in_progress"
    const type = isLast ? lastTypeOf(response) : named
    switch (type) {
      case "response.completed":
      case "response.incomplete":
        return this.#final(type, event, response, out)
      case "response.failed":
      case "response.cancelled":
        this.#usage(response, out)
        this.#pass(type, event, out)
        return this.#fail(
          type === "response.failed"
            ? replyErrorFacts(isRecord(response["error"]) ? response["error"] : response)
            : { kind: "gave_up", reason: "cancelled" }
        )
      default:
        this.#began = true
        this.#pass(type, event, out)
    }
  }

  #final(type: string, event: JsonRecord, response: JsonRecord, out: Array<UpstreamEvent>): void {
    this.#began = true
    this.#unsaid(response, out)
    this.#usage(response, out)
    const tier = asString(response["service_tier"])
    if (!this.#passes && tier !== undefined) out.push(UpstreamExtra("openai", "chunk", { service_tier: tier }))
    this.#pass(type, event, out)
    const details = response["incomplete_details"]
    const reason = isRecord(details) ? details["reason"] : undefined
    const word = asString(reason) ?? (response["status"] === "incomplete" ? undefined : asString(response["status"]))
    this.#finish = type === "response.completed"
      ? { reason: "stop", unknown: undefined }
      : endOf(word ?? "max_output_tokens", reasons) ?? { reason: "length", unknown: word }
  }

  /** Emits the items of a final response that no event has brought: all of them, or the messages and calls that are missing. */
  #unsaid(response: JsonRecord, out: Array<UpstreamEvent>): void {
    const said = new Set(this.#said)
    const output = listOf(response["output"])
    const items = said.size === 0 ? output : output.filter(({ type }) => !said.has(String(type)) && isNeeded(type))
    if (items.length === 0) return
    for (const each of eventsOf({ ...response, output: items })) {
      if (!isRecord(each["response"])) this.#take(each.type, each, out)
    }
  }

  #usage({ service_tier: tier, usage }: JsonRecord, out: Array<UpstreamEvent>): void {
    const toolCalls = this.#charged.counts
    if (isRecord(usage)) out.push(UpstreamUsage(usageOf(usage, { tier, toolCalls })))
    else if (toolCalls !== undefined) out.push(UpstreamUsage({ details: { toolCalls } }))
  }

  /** The item of a piece. Some servers begin an item by its first piece. */
  #itemOf(type: string, event: JsonRecord, out: Array<UpstreamEvent>): Item | undefined {
    const key = event["output_index"] ?? event["item_id"]
    const known = this.#items.get(key)
    if (known !== undefined && (key !== undefined || known.type === type)) return known
    this.#started({ output_index: key }, { type }, out)
    return this.#items.get(key)
  }

  #started(event: JsonRecord, item: JsonRecord, out: Array<UpstreamEvent>): void {
    const type = asString(item["type"]) ?? ""
    if (this.#said.size < mostOpen) this.#said.add(type)
    const isCall = type === "function_call" || type === "custom_tool_call"
    const started: Item = {
      type,
      call: isCall ? this.#calls++ : -1,
      hasContent: false,
      hasThinking: false,
      part: undefined,
      annotations: 0,
      characters: new WholeCharacters()
    }
    this.#items.open(event["output_index"] ?? item["id"], started)
    if (this.#passes) return
    if (type === "message" && this.#isAfterText) this.#say("\n\n", out)
    if (type === "message") this.#isAfterText = false
    if (isCall) {
      this.#isAfterText = false
      this.#inline?.interrupt(out)
      out.push(UpstreamCall(started.call, asString(item["call_id"]), asString(item["name"]), ""))
    }
  }

  /** Emits what a server says only at the end of a part. */
  #beforeEnd(type: string, event: JsonRecord, out: Array<UpstreamEvent>): void {
    const isItem = type === "response.output_item.done"
    const done = event["item"]
    const isText = type === "response.output_text.done"
    const known = isItem && isRecord(done) ? this.#items.get(this.#items.keyOf(event, done)) : this.#items.at(event)
    // Some servers say a text at its end alone.
    const item = known ?? (isText && !this.#said.has("message") ? this.#itemOf("message", event, out) : undefined)
    if (item === undefined || !(isItem || isText)) return
    if (item.type === "message") {
      // Half a character that nothing completes.
      const rest = item.characters.end()
      if (rest !== "") this.#say(rest, out)
    }
    if (item.hasContent) return
    if (isText) this.#text(item, asString(event["text"]) ?? "", out)
    if (!isItem || item.type !== "message") return
    const parts = listOf(isRecord(event["item"]) ? event["item"]["content"] : undefined)
    this.#text(item, parts.map(({ text }) => asString(text) ?? "").join(""), out)
  }

  /** A piece that passes as it is may end within a character. */
  #text(item: Item | undefined, piece: string, out: Array<UpstreamEvent>, original?: Original): void {
    const text = original === undefined ? item?.characters.take(piece) ?? piece : piece
    if (text === "") return
    if (item !== undefined) item.hasContent = true
    this.#say(text, out, original)
  }

  #say(text: string, out: Array<UpstreamEvent>, original?: Original): void {
    if (this.#inline === undefined) out.push(UpstreamText(text, original))
    else this.#inline.push(text, out)
  }

  #noteThinking(): void {
    if (this.#hasThinking) return
    this.#hasThinking = true
    this.#onThinking?.()
  }

  #think(item: Item, piece: string | undefined, out: Array<UpstreamEvent>): void {
    const text = piece === undefined ? "" : item.characters.take(piece)
    if (text === "") return
    item.hasContent = true
    out.push(UpstreamReasoning(text))
  }

  #part(type: string, event: JsonRecord, out: Array<UpstreamEvent>): void {
    const started = startedBy.get(type)
    const item = started === undefined ? this.#items.at(event) : this.#itemOf(started, event, out)
    const delta = asString(event["delta"])
    switch (type) {
      case "response.output_text.annotation.added": {
        const { annotation } = event
        if (this.#passes || !isRecord(annotation)) return
        if (item !== undefined) item.annotations++
        out.push(annotated([annotation]))
        return
      }
      case "response.refusal.delta":
        if (item !== undefined) item.hasContent = true
        if (!this.#passes && delta !== undefined) out.push(UpstreamExtra("openai", "message", { refusal: delta }))
        return
      case "response.reasoning_text.delta":
        this.#noteThinking()
        if (item === undefined) return
        item.hasThinking = true
        return this.#think(item, delta, out)
      case "response.reasoning_summary_text.delta": {
        if (item === undefined || item.hasThinking) return
        const part = event["summary_index"]
        const isNext = item.hasContent && item.part !== part
        item.part = part
        return this.#think(item, isNext && delta !== undefined ? `\n\n${delta}` : delta, out)
      }
      case "response.function_call_arguments.delta":
        if (this.#passes || item === undefined || item.call < 0 || delta === undefined) return
        return this.#arguments(item, delta, out)
      default:
    }
  }

  #arguments(item: Item, piece: string, out: Array<UpstreamEvent>): void {
    const text = item.characters.take(piece)
    if (text === "") return
    item.hasContent = true
    out.push(UpstreamCall(item.call, undefined, undefined, text))
  }

  #ended(event: JsonRecord, item: JsonRecord, out: Array<UpstreamEvent>): void {
    const key = this.#items.keyOf(event, item)
    if (this.#items.get(key) === undefined) {
      this.#started(event, item, out)
      this.#beforeEnd("response.output_item.done", event, out)
    }
    const known = this.#items.get(key)
    this.#items.delete(key)
    const rest = known?.characters.end() ?? ""
    switch (item["type"]) {
      case "message": {
        if (rest !== "") this.#say(rest, out)
        this.#isAfterText ||= known?.hasContent === true
        if (this.#passes) return
        const annotations = listOf(item["content"]).flatMap((part) => listOf(part["annotations"]))
        const unsaid = annotations.slice(known?.annotations ?? 0)
        if (unsaid.length > 0) out.push(annotated(unsaid))
        if (known?.hasContent === false) {
          const refusal = listOf(item["content"]).map((part) => asString(part["refusal"]) ?? "").join("")
          if (refusal !== "") out.push(UpstreamExtra("openai", "message", { refusal }))
        }
        return
      }
      case "reasoning": {
        if (rest !== "") out.push(UpstreamReasoning(rest))
        const { content, summary } = item
        if (listOf(content).length > 0) this.#noteThinking()
        if (known?.hasContent === false) {
          const text = textsOf(content) || textsOf(summary)
          if (text !== "") out.push(UpstreamReasoning(text))
        }
        if (!this.#passes && sealable(item)) {
          const { status: _, ...kept } = item as JsonFields & { readonly status?: Json }
          out.push(UpstreamExtra("responses", "reasoning", kept))
        }
        return
      }
      case "image_generation_call": {
        const picture = this.#passes ? undefined : pictureOf(item)
        if (picture !== undefined) out.push(picture)
        return
      }
      case "function_call":
      case "custom_tool_call":
        return this.#call(item, known, rest, out)
      default:
    }
  }

  /** A call for callers of the contract is one event, once it is whole; its pieces pass as they are. */
  #call(item: JsonRecord, known: Item | undefined, rest: string, out: Array<UpstreamEvent>): void {
    if (this.#passes) {
      const whole = callOf(item)
      const id = asString(item["call_id"])
      if (whole === undefined || id === undefined || this.#callIds.has(id)) return
      this.#callIds.add(id)
      out.push(
        UpstreamCall(known !== undefined && known.call >= 0 ? known.call : this.#calls++, id, whole.name, whole.args)
      )
      return
    }
    if (known === undefined || known.call < 0) return
    // The input of a custom tool is read as a whole.
    const args = known.hasContent ? rest : asString(item["arguments"]) ?? (callOf(item)?.args ?? "")
    if (args !== "") out.push(UpstreamCall(known.call, undefined, undefined, args))
  }
}

/** Starts a decoder of one reply. */
export const eventDecoder = (options: EventOptions = plainEvents, Reader = RepeatedEvents): ChunkDecoder =>
  new EventDecoder(options, Reader)
