/**
 * The reply of a server that speaks this contract: its events as it sent them. Only the model's name, the numbers of the events, and
 * fields that the contract of the gateway has beside the vendor's are the gateway's own.
 *
 * Text is shown as the reply's text has it: a call that a model writes into its text ends the message, and is an item of its own, which the
 * renderer of the gateway's items writes (`OwnItems`). Later items have later indexes then.
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import { isRecord, type Json, type JsonFields, type JsonRecord } from "../../domain/json.ts"
import type { FinishReason, ReplyEvent, ReplyExtra, TextDelta, Usage } from "../../domain/ReplyEvent.ts"
import type { Original } from "../../domain/UpstreamEvent.ts"
import { responseOfItem } from "./ids.ts"
import {
  incompleteReasons,
  inProgressText,
  type RenderOptions,
  responseError,
  type ResponseInfo,
  usageFields
} from "./responseText.ts"

/** The gateway's own renderer, for items that the server does not have. */
export interface OwnItems {
  /** The text of a message of the gateway's own. */
  readonly text: (text: string, out: Array<string>) => void
  readonly closeText: (out: Array<string>) => void
  /** The events of a call. */
  readonly call: (event: ReplyEvent, out: Array<string>) => void
}

/** What the items of the server and those of the gateway have in common. */
export interface ReplySoFar {
  /** The id of the response: the gateway's own, or the server's. */
  id: string
  /** Events so far. */
  events: number
  /** Items started so far; an item that is cut off counts too, though the output leaves it out. */
  items: number
  /** The items so far, as JSON text. */
  readonly output: Array<string>
  isFinal: boolean
}

/** An item of the server that is open. */
interface OpenItem {
  /** The index that is shown. */
  readonly index: number
  /** Fields of the item as it began. */
  readonly id: Json | undefined
  readonly callId: Json | undefined
  readonly name: Json | undefined
}

/** A message of the server that is open. */
interface OpenMessage {
  readonly index: number | undefined
  /** The item as it began. */
  readonly item: JsonFields
  /** Events that wait for words: a message that has nothing but a call is not shown. */
  waiting: Array<JsonFields> | undefined
  /** The place of the next text, as fields of an event. */
  place: JsonFields
  /** The text that was shown, by the index of its part. */
  readonly texts: Map<number, string>
  /** It was ended before the server's end of it, by a call in its text. */
  isCut: boolean
  /** A part is open. */
  part: JsonFields | undefined
  /** The frame of the last piece of text, for pieces with the same original: what stands around its text and its number. */
  frame: { readonly of: Original; readonly parts: ReadonlyArray<string> } | undefined
}

/** Strings in the place of a piece's text and number, and where they are in a frame. */
const marks = { text: "\0text", number: "\0number" }
const places = /"\\u0000(text|number)"/

/** The parts of a frame that has both places once. */
const partsOfFrame = 5

/** A piece of text that is not as the server sent it, at the place of another event. */
const pieceAt = (place: JsonFields, delta: string): JsonFields => {
  const { annotations: _a, item: _i, part: _p, sequence_number: _s, ...at } = place as { readonly [name: string]: Json }
  return { ...at, type: "response.output_text.delta", delta, logprobs: [] }
}

/** An element with the text that was shown; the element itself if that is the server's. */
const withText = (element: JsonFields, text: string): JsonFields =>
  element["text"] === text ? element : { ...element, text, logprobs: [] }

const shownPart = (part: Json, text: string): Json =>
  fieldsOf(part)["type"] === "output_text" ? withText(fieldsOf(part), text) : part

/** The parts of a message, with the text that was shown. */
const contentOf = ({ texts }: OpenMessage) =>
  [...texts].toSorted(([a], [b]) => a - b)
    .map(([, text]) => ({ type: "output_text", text, annotations: [], logprobs: [] }))

/** Events that wait for the words of a message at most: then it is shown without. */
const mostWaiting = 1_000

/** The most items that are followed at the same time. A server has few. */
const mostItems = 20_000

const numberOf = (value: Json | undefined): number | undefined => typeof value === "number" ? value : undefined

const stringOf = (value: Json | undefined): string => typeof value === "string" ? value : ""

const fieldsOf = (value: Json | undefined): JsonFields => isRecord(value) ? value as JsonFields : {}

const listOf = (value: Json | undefined): ReadonlyArray<Json> => Array.isArray(value) ? value : []

/** All text of the messages among the items. */
const outputText = (output: ReadonlyArray<Json>): string =>
  output.map(fieldsOf).filter(({ type }) => type === "message").flatMap(({ content }) => listOf(content)).map(fieldsOf)
    .map(({ text, type }) => type === "output_text" ? stringOf(text) : "").join("")

/** Events within the text of a message. */
const inText: ReadonlySet<string> = new Set([
  "response.content_part.added",
  "response.content_part.done",
  "response.output_text.annotation.added",
  "response.output_text.delta",
  "response.output_text.done",
  "response.refusal.delta",
  "response.refusal.done"
])

/** Events within the input of a call, and whether they name its tool. */
const inInput: ReadonlyMap<string, boolean> = new Map([
  ["response.custom_tool_call_input.delta", false],
  ["response.custom_tool_call_input.done", true],
  ["response.function_call_arguments.delta", false],
  ["response.function_call_arguments.done", true]
])

const finalTypes: ReadonlySet<string> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
  "error"
])

/** The status of the response that an event of this type has. */
const statusOf = (type: string): string =>
  finalTypes.has(type) && type !== "error" ? type.slice("response.".length) : "in_progress"

/** Renders one reply. */
export class NativeReply {
  readonly #info: ResponseInfo
  readonly #options: RenderOptions
  readonly #reply: ReplySoFar
  readonly #own: OwnItems
  /** The response as the server described it last. */
  #response: JsonFields = {}
  #last: JsonFields | undefined
  #hasBegun = false
  /** The difference between the indexes that are shown and those of the server. */
  #shift = 0
  /** The items that are open, by the server's index and by their id. */
  readonly #items = new Map<Json, OpenItem>()
  #message: OpenMessage | undefined
  /** The ids of the server's calls, whose events are the server's own. */
  readonly #calls = new Set<string>()
  #inOwnCall = false
  /** The output is not the server's. */
  #isChanged = false
  /** Blank text after a call, which is shown together with words that follow. */
  #blank = ""
  #usage: Usage | undefined

  constructor(info: ResponseInfo, options: RenderOptions, reply: ReplySoFar, own: OwnItems) {
    this.#info = info
    this.#options = options
    this.#reply = reply
    this.#own = own
  }

  /** Takes an event of the server. */
  take({ at, value }: ReplyExtra, out: Array<string>): void {
    const type = stringOf(value["type"])
    if (at === "response") return this.#about(type, value, out)
    switch (type) {
      case "response.output_item.added":
        return this.#added(value, out)
      case "response.output_item.done":
        return this.#done(value, out)
      case "response.content_part.added":
        return this.#partAdded(value, out)
      case "response.content_part.done":
      case "response.output_text.done":
        return this.#partDone(value, out)
      default:
        return this.#emit(value, out)
    }
  }

  /** Takes an event of the gateway's: a piece of text, what says the same as events of the server, or what the server does not say. */
  push(event: ReplyEvent, out: Array<string>): void {
    switch (event._tag) {
      case "TextDelta":
        return this.#text(event, out)
      case "CallStarted":
        if (this.#calls.has(event.id)) return
        this.#cut(out)
        this.#blank = ""
        this.#inOwnCall = true
        this.#isChanged = true
        return this.#ownCall(event, out)
      case "CallArguments":
        if (this.#inOwnCall) this.#ownCall(event, out)
        return
      case "CallFinished":
      case "CallCutOff":
        if (!this.#inOwnCall) return
        this.#ownCall(event, out)
        this.#inOwnCall = false
        return
      case "UsageReported":
        this.#usage = event.usage
        return
      case "Finish":
        return this.#finish(event.reason, out)
      case "ReasoningDelta":
      case "ReplyExtra":
    }
  }

  /** The last events of a reply that fails. */
  fail(error: GatewayError, out: Array<string>): void {
    const last = this.#last ?? {}
    const response = fieldsOf(last["response"])
    const failed = { ...this.#response, ...response, status: "failed", error: responseError(error) }
    this.#end("response.failed", failed, out)
  }

  /** The response of a caller who has left. */
  cancel(): void {
    this.#finalize({ ...this.#response, status: "cancelled" }, this.#output([]))
  }

  #about(type: string, event: JsonFields, out: Array<string>): void {
    if (finalTypes.has(type)) {
      this.#last = event
      return
    }
    this.#response = fieldsOf(event["response"])
    this.#begin(type, out)
    this.#emit(event, out)
  }

  /** The response is known by the server's id from its first event on, which the contract begins with. */
  #begin(type: string, out: Array<string>): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    const reply = this.#reply
    const isNamed = Object.keys(this.#response).length > 0
    if (!isNamed) this.#response = JSON.parse(inProgressText(this.#info)) as JsonFields
    const id = stringOf(this.#response["id"])
    if (id !== "") reply.id = id
    this.#options.begun?.(JSON.stringify(this.#withOwnFields(this.#response, [])), reply.id)
    if (type !== "response.created") this.#write({ type: "response.created", response: this.#response }, out)
  }

  /** The response by the names that its caller knows, with the contract's fields where the server leaves them out. */
  #ofCaller(response: JsonFields, status = "in_progress"): JsonFields {
    const { createdAt, model, previousId } = this.#info
    return {
      id: this.#reply.id,
      object: "response",
      created_at: createdAt,
      status,
      output: [],
      ...response,
      model,
      ...(previousId === undefined ? {} : { previous_response_id: previousId })
    }
  }

  #withOwnFields(response: JsonFields, output: ReadonlyArray<Json>, status?: string): JsonFields {
    return {
      ...this.#ofCaller(response, status),
      id: this.#reply.id,
      output,
      ...(Object.hasOwn(response, "output_text") && !this.#isChanged ? {} : { output_text: outputText(output) })
    }
  }

  /** The open item that an event is about. */
  #itemOf({ item, item_id: id, output_index: index }: JsonFields): OpenItem | undefined {
    const itself = isRecord(item) ? (item as JsonFields)["id"] : undefined
    for (const key of [index, id, itself]) {
      const found = key === undefined ? undefined : this.#items.get(key)
      if (found !== undefined) return found
    }
    return undefined
  }

  #emit(event: JsonFields, out: Array<string>): void {
    const message = this.#message
    if (message !== undefined && this.#isWithin(message, event)) {
      if (message.isCut) {
        // The message has ended for the caller. What the model refuses by is text of the one that follows.
        if (event["type"] === "response.refusal.delta") this.#ownText(stringOf(event["delta"]), out)
        return
      }
      this.#show(message, out)
    }
    this.#write(event, out)
  }

  #isWithin({ index, item }: OpenMessage, { item_id: id, output_index: at, type }: JsonFields): boolean {
    if (at !== undefined && index !== undefined) return at === index
    if (id !== undefined) return id === item["id"]
    return at === undefined && inText.has(stringOf(type))
  }

  #write(event: JsonFields, out: Array<string>): void {
    this.#begin(stringOf(event["type"]), out)
    out.push(this.#frame(event, this.#reply.events++))
  }

  #frame(event: JsonFields, number: Json): string {
    const type = stringOf(event["type"])
    const { obfuscation: _, ...kept } = event as JsonFields & { readonly obfuscation?: Json }
    const written: { [name: string]: Json } = kept
    written["sequence_number"] = number
    this.#place(type, event, written)
    const { response } = written
    if (isRecord(response)) written["response"] = this.#ofCaller(response as JsonFields, statusOf(type))
    if (type === "response.created") Object.assign(written, { id: this.#reply.id, status: "in_progress" })
    return `event: ${type}\ndata: ${JSON.stringify(written)}\n\n`
  }

  /** Writes a piece of text as its original, of which only the text and the number are written anew. */
  #writePiece(message: OpenMessage, of: Original, text: string, out: Array<string>): void {
    this.#begin(stringOf(of["type"]), out)
    if (message.frame?.of !== of) {
      message.frame = { of, parts: this.#frame({ ...of, delta: marks.text }, marks.number).split(places) }
    }
    const { parts } = message.frame
    // The server itself says one of the marks.
    if (parts.length !== partsOfFrame) return this.#write({ ...of, delta: text }, out)
    const number = this.#reply.events++
    const [before, first, between, second, after] = parts
    const written = (place: string | undefined) => place === "text" ? JSON.stringify(text) : number
    out.push(`${before}${written(first)}${between}${written(second)}${after}`)
  }

  /** Adds where an event is in the response, as far as the server leaves it out. */
  #place(type: string, event: JsonFields, written: { [name: string]: Json }): void {
    const item = this.#itemOf(event)
    const given = numberOf(event["output_index"])
    const index = item?.index ?? (given === undefined ? undefined : given + this.#shift)
    const isText = inText.has(type)
    if (index !== undefined) written["output_index"] = index
    if (index !== undefined || isText) written["response_id"] ??= this.#reply.id
    if (isText) written["content_index"] ??= 0
    if (item === undefined || event["item"] !== undefined) return
    const { callId, id, name } = item
    const isNamed = inInput.get(type)
    if (id !== undefined && (isText || isNamed !== undefined)) written["item_id"] ??= id
    if (callId !== undefined) written["call_id"] ??= callId
    if (name !== undefined && isNamed === true) written["name"] ??= name
  }

  #opened(item: JsonFields, event: JsonFields, waiting: Array<JsonFields> | undefined): OpenMessage {
    return {
      index: numberOf(event["output_index"]),
      item,
      waiting,
      place: event,
      texts: new Map(),
      isCut: false,
      part: undefined,
      frame: undefined
    }
  }

  /** Shows what waited for the words of a message. */
  #show(message: OpenMessage, out: Array<string>): void {
    const { waiting } = message
    if (waiting === undefined) return
    message.waiting = undefined
    for (const event of waiting) this.#write(event, out)
  }

  #added(event: JsonFields, out: Array<string>): void {
    this.#endOwnText(out)
    const item = fieldsOf(event["item"])
    const reply = this.#reply
    const given = numberOf(event["output_index"])
    const { call_id: callId, id, name } = item
    const index = given === undefined ? reply.items : given + this.#shift
    reply.items = Math.max(reply.items, index + 1)
    for (const key of [given, id]) {
      if (key !== undefined && this.#items.size < mostItems) this.#items.set(key, { index, id, callId, name })
    }
    if (item["type"] !== "message") return this.#write(event, out)
    if (this.#message?.isCut === false) this.#show(this.#message, out)
    this.#message = this.#opened(item, event, [event])
  }

  #partAdded(event: JsonFields, out: Array<string>): void {
    const message = this.#message
    if (message === undefined || !this.#isWithin(message, event)) return this.#write(event, out)
    if (message.isCut) return
    message.part = event
    message.place = event
    if (message.waiting !== undefined && fieldsOf(event["part"])["type"] === "output_text") message.waiting.push(event)
    else this.#emit(event, out)
  }

  /** The end of a part, or of its text, with the text that was shown of it. */
  #partDone(event: JsonFields, out: Array<string>): void {
    const message = this.#message
    if (message === undefined || !this.#isWithin(message, event)) return this.#write(event, out)
    if (message.isCut) return
    this.#show(message, out)
    if (event["type"] === "response.content_part.done") message.part = undefined
    const text = message.texts.get(numberOf(event["content_index"]) ?? 0) ?? ""
    const { part = null } = event
    const shown = shownPart(part, text)
    if (event["text"] !== undefined) this.#write(withText(event, text), out)
    else this.#write(shown === part ? event : { ...event, part: shown }, out)
  }

  #done(event: JsonFields, out: Array<string>): void {
    this.#endOwnText(out)
    const item = fieldsOf(event["item"])
    const { output_index: index } = event
    const message = this.#message
    if (typeof item["call_id"] === "string") this.#calls.add(item["call_id"])
    if (
      message !== undefined && item["type"] === "message" &&
      this.#isWithin(message, { ...event, item_id: item["id"] ?? null })
    ) {
      this.#message = undefined
      if (!message.isCut) {
        this.#show(message, out)
        const kept = this.#withShownText(item, message)
        this.#write(kept === item ? event : { ...event, item: kept }, out)
        this.#reply.output.push(JSON.stringify(kept))
      }
    } else {
      this.#write(event, out)
      this.#reply.output.push(JSON.stringify(item))
    }
    for (const key of [index, item["id"]]) if (key !== undefined) this.#items.delete(key)
  }

  /** The item with the text that was shown; the item itself if that is the server's. */
  #withShownText(item: JsonFields, { texts }: OpenMessage): JsonFields {
    const content = listOf(item["content"])
    const shown = content.map((part, i) => shownPart(part, texts.get(i) ?? ""))
    if (shown.every((part, i) => part === content[i])) return item
    this.#isChanged = true
    return { ...item, content: shown }
  }

  #text({ original, text }: TextDelta, out: Array<string>): void {
    const message = this.#messageOf(original, out)
    if (message === undefined || message.isCut) return this.#ownText(text, out)
    const part = numberOf(message.place["content_index"]) ?? 0
    message.texts.set(part, (message.texts.get(part) ?? "") + text)
    if (message.waiting !== undefined && text.trim() !== "") this.#show(message, out)
    if (message.waiting === undefined && original !== undefined) return this.#writePiece(message, original, text, out)
    const event = original === undefined ? pieceAt(message.place, text) : { ...original, delta: text }
    if (message.waiting === undefined) return this.#write(event, out)
    message.waiting.push(event)
    if (message.waiting.length > mostWaiting) this.#show(message, out)
  }

  /** The message of a piece of text. */
  #messageOf(piece: JsonFields | undefined, out: Array<string>): OpenMessage | undefined {
    const message = this.#message
    if (piece === undefined) return message
    if (message !== undefined && this.#isWithin(message, piece)) {
      message.place = piece
      return message
    }
    if (message !== undefined) this.#show(message, out)
    // Some servers begin a message by its first piece.
    return this.#message = this.#opened({}, piece, undefined)
  }

  /** Text that is in no message of the server. */
  #ownText(text: string, out: Array<string>): void {
    const all = this.#blank + text
    this.#blank = all.trim() === "" ? all : ""
    if (this.#blank === "") this.#shifted((own) => own.text(all, out))
  }

  /** Ends the open message before a call in its text. A message without words is left out. */
  #cut(out: Array<string>): void {
    this.#own.closeText(out)
    const message = this.#message
    if (message === undefined || message.isCut) return
    message.isCut = true
    if (message.waiting !== undefined) {
      this.#shift--
      this.#reply.items--
      return
    }
    const content = contentOf(message)
    const last = content.at(-1)
    const { item: _i, part: _p, delta: _d, logprobs: _l, ...place } = message.place as { readonly [name: string]: Json }
    if (message.part !== undefined && last !== undefined) {
      this.#write({ ...place, type: "response.output_text.done", text: last.text, logprobs: [] }, out)
      this.#write({ ...place, type: "response.content_part.done", part: last }, out)
    }
    const item = { ...message.item, status: "completed", content }
    const { content_index: _c, item_id: _m, ...at } = place
    this.#write({ ...at, type: "response.output_item.done", item }, out)
    this.#reply.output.push(JSON.stringify(item))
  }

  #ownCall(event: ReplyEvent, out: Array<string>): void {
    this.#shifted((own) => own.call(event, out))
  }

  /** Lets the gateway's renderer make items, after which those of the server have later indexes. */
  #shifted(make: (own: OwnItems) => void): void {
    const before = this.#reply.items
    make(this.#own)
    this.#shift += this.#reply.items - before
  }

  /** Ends a message of the gateway's own. */
  #endOwnText(out: Array<string>): void {
    this.#blank = ""
    this.#own.closeText(out)
  }

  /** The items that were shown, and those of the last response where they are the same. */
  #output(own: ReadonlyArray<Json>): ReadonlyArray<Json> {
    return own.length > 0 && !this.#isChanged
      ? own
      : [...this.#reply.output.map((item) => JSON.parse(item) as Json), ...this.#unfinished()]
  }

  /** A message that was shown without its end. */
  #unfinished(): ReadonlyArray<Json> {
    const message = this.#message
    if (message === undefined || message.isCut || message.waiting !== undefined) return []
    return [{ ...message.item, status: "incomplete", content: contentOf(message) }]
  }

  #finish(reason: FinishReason, out: Array<string>): void {
    this.#endOwnText(out)
    const event = this.#last
    const response = fieldsOf(event?.["response"])
    const incomplete = incompleteReasons[reason]
    if (event !== undefined && !(this.#isChanged && incomplete !== null && response["status"] === "completed")) {
      return this.#end(stringOf(event["type"]), response, out)
    }
    // The reply ends before the server's end of it: at a sequence, a limit, or a call that was cut off.
    const status = incomplete === null ? "completed" : "incomplete"
    if (this.#message?.isCut === false) this.#endMessage(this.#message, status, out)
    const ended = {
      ...this.#response,
      ...response,
      status,
      completed_at: incomplete === null ? Math.floor(this.#options.now() / 1000) : null,
      incomplete_details: incomplete === null ? null : { reason: incomplete },
      usage: response["usage"] ?? (this.#usage === undefined ? null : usageFields(this.#usage))
    }
    this.#end(`response.${status}`, ended, out, true)
  }

  #endMessage(message: OpenMessage, status: string, out: Array<string>): void {
    this.#show(message, out)
    this.#isChanged = true
    this.#message = { ...message, item: { ...message.item, status } }
    this.#cut(out)
  }

  #end(type: string, response: JsonFields, out: Array<string>, isEarly = false): void {
    this.#begin(type, out)
    const own = isEarly ? [] : listOf(response["output"])
    const body = this.#finalize(response, this.#output(own), statusOf(type))
    const { response: _r, sequence_number: _s, type: _t, ...more } = isEarly || this.#last?.["type"] === "error"
      ? {} as JsonRecord
      : this.#last ?? {}
    const rest = JSON.stringify(more).slice(1, -1)
    const fields = `"type":"${type}","sequence_number":${this.#reply.events++},"response":${body}${
      rest === "" ? "" : `,${rest}`
    }`
    out.push(`event: ${type}\ndata: {${fields}}\n\n`, "data: [DONE]\n\n")
  }

  #finalize(response: JsonFields, output: ReadonlyArray<Json>, status?: string): string {
    const body = JSON.stringify(this.#withOwnFields(response, output, status))
    const ids = output.map((item) => stringOf(fieldsOf(item)["id"])).filter((id) =>
      id !== "" && responseOfItem(id) === undefined
    )
    this.#reply.isFinal = true
    this.#options.finalized(body, this.#reply.id, ids, this.#isHeld)
    return body
  }

  /** The server has said that it stores the response, which is what the caller has seen, by the id that the caller knows. */
  get #isHeld(): boolean {
    const type = stringOf(this.#last?.["type"])
    const { id, store } = fieldsOf(this.#last?.["response"])
    return !this.#isChanged && (type === "response.completed" || type === "response.incomplete") && store === true &&
      id === this.#reply.id
  }
}
