/**
 * From the events of a messages server to upstream events.
 *
 * What the upstream events do not model is passed on as vendor fields: fields of the message and its end, all token counts,
 * sealed thinking, and blocks of tools that the server runs.
 */
import { isRecord, type Json, type JsonFields, type JsonRecord } from "../../domain/json.ts"
import type { SseEvent } from "../../domain/stream/sse.ts"
import { TextPieces, WholeCharacters } from "../../domain/stream/text.ts"
import {
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
import { endOf, gaveUp } from "../shared/ends.ts"
import { errorBody } from "../shared/errorBody.ts"
import { errorFacts, isError as isOtherError } from "../shared/errorFacts.ts"
import { asString, isObjectText, isShallow, otherFields, parseJson } from "../shared/json.ts"
import { type Piece, RepeatedEvents } from "../shared/RepeatedEvents.ts"
import { usageOf } from "./usage.ts"

/** True if an object is an error instead of a reply, in the form of this or of the `openai` contract. */
export const isError = (value: JsonRecord): boolean => value["type"] === "error" || isOtherError(value)

type Finish = UpstreamFinish["reason"]

/** Stop reasons. A turn that the server pauses is not over: the client goes on with it. */
const finishReasons: ReadonlyMap<string, Finish> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "length"],
  ["compaction", "length"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["refusal", "content_filter"]
])

const names = (text: string): ReadonlySet<string> => new Set(text.split(" "))

const ofMessage = names("type role model content usage stop_reason stop_sequence stop_details container __proto__")
const ofEnd = names("type delta usage __proto__")
const ofCall = names("type id name input __proto__")
const ofText = names("type text __proto__")
const all = names("__proto__")

const always = () => true

/** Fields of a call that say more than the usual. */
const isUnusual = (field: unknown, name: string): boolean =>
  field !== null && field !== undefined &&
  !(name === "caller" && isRecord(field) && field["type"] === "direct" && Object.keys(field).length === 1)

const isSaid = (field: unknown): boolean =>
  field !== null && field !== undefined && !(Array.isArray(field) && field.length === 0)

const lastFields: ReadonlySet<string> = new Set(["stop_reason", "stop_sequence", "stop_details", "container"])

/** A block in progress. `fields` come from its start, and from its deltas except growing text. */
interface Block {
  readonly kind: "text" | "thinking" | "redacted_thinking" | "tool_use" | "other"
  readonly fields: Record<string, Json>
  /** Characters of text, thinking or arguments; a piece may end within one. */
  readonly characters: WholeCharacters
  /** The thinking, or the input of a tool that the server runs. */
  readonly pieces: TextPieces
  /** The index of a call. */
  readonly call: number
  /** Something of its text or arguments was emitted. */
  hasContent: boolean
  /** The characters of the reply's text before it. */
  readonly from: number
}

/** Blocks of calls whose pieces may arrive after other blocks have begun. */
const mostBlocks = 1_000

const hasInput = (input: Json | undefined): boolean =>
  isObjectText(input) || (isRecord(input) && Object.keys(input).length > 0)

/** The pages that a text cites, in the form of OpenAI-compatible servers, which the other styles read. */
const annotationsOf = (citations: Json | undefined, from: number, to: number): ReadonlyArray<Json> =>
  (Array.isArray(citations) ? citations : []).flatMap((citation: Json) => {
    if (!isRecord(citation) || typeof citation["url"] !== "string") return []
    const { title, url } = citation
    return [{
      type: "url_citation",
      url_citation: { start_index: from, end_index: to, title: typeof title === "string" ? title : "", url }
    }]
  })

const kinds: ReadonlySet<string> = new Set(["text", "thinking", "redacted_thinking", "tool_use"])

const kindOf = (type: unknown): Block["kind"] =>
  typeof type === "string" && kinds.has(type) ? type as Block["kind"] : "other"

/** The kind of block that a delta without a start belongs to. */
const deltaKinds: ReadonlyMap<unknown, string> = new Map([["text_delta", "text"], ["thinking_delta", "thinking"]])

/** The fields of a delta by its type. */
const deltaFields: ReadonlyMap<unknown, string> = new Map([
  ["text_delta", "text"],
  ["thinking_delta", "thinking"],
  ["input_json_delta", "partial_json"]
])

/** A delta that is nothing but a piece of a block. */
export const pieceOf = (value: unknown): Piece<unknown> | undefined => {
  if (!isRecord(value) || value["type"] !== "content_block_delta") return undefined
  const { delta } = value
  const kind = isRecord(delta) && Object.keys(delta).length === 2 ? delta["type"] : undefined
  const field = deltaFields.get(kind)
  const text = field === undefined ? undefined : asString((delta as JsonRecord)[field])
  return text === undefined ? undefined : { kind, text }
}

class EventDecoder implements ChunkDecoder {
  private failed: UpstreamFailure | undefined
  private reason: Finish | undefined
  /** The server's word for the end, if no table knows it. */
  private unknown: string | undefined
  private stopSequence: string | undefined
  private block: Block | undefined
  /** The last block was text whose end was not said. */
  private isAfterText = false
  private calls = 0
  /** The calls by the numbers of their blocks, for pieces that come after other blocks have begun. */
  private readonly callsOfBlocks = new Map<unknown, number>()
  /** Calls without arguments whose block nothing has ended. */
  private readonly open = new Set<number>()
  /** Characters of the text so far. */
  private textLength = 0
  /** The token counts by the server's names; later ones replace earlier ones. */
  private readonly counts: Record<string, unknown> = {}
  private readonly repeated: RepeatedEvents<unknown>
  private began = false
  private isDone = false

  constructor(Reader: typeof RepeatedEvents) {
    this.repeated = new Reader(pieceOf)
  }

  push({ data, event }: SseEvent, out: Array<UpstreamEvent>): void {
    if (this.failed !== undefined || this.isDone) return
    const piece = event === "error" ? undefined : this.repeated.next(data)
    if (piece !== undefined) {
      return this.grow({ type: piece.kind, [deltaFields.get(piece.kind)!]: piece.text }, out)
    }
    if (data.trim() === "") return
    const value = parseJson(data)
    if (event === "error") return this.fail({ kind: "refused", ...errorFacts(value), ...errorBody(value) })
    if (value === null || data.trim() === "[DONE]") return
    if (!isRecord(value)) return this.fail({ kind: "malformed" })
    if (isError(value)) return this.fail({ kind: "refused", ...errorFacts(value), ...errorBody(value) })
    this.take(value, out)
    this.repeated.parsed(data, value, true)
  }

  pushUnterminated(event: SseEvent, out: Array<UpstreamEvent>): void {
    if (parseJson(event.data) !== undefined) this.push(event, out)
  }

  pushWhole(body: string, out: Array<UpstreamEvent>): void {
    const value = parseJson(body)
    if (!isRecord(value) || isError(value) || !Array.isArray(value["content"])) {
      return this.fail({
        kind: isRecord(value) && isError(value) ? "refused" : "malformed",
        ...errorFacts(value),
        ...errorBody(value)
      })
    }
    this.began = true
    const { usage, ...message } = value
    this.startMessage(message, out)
    this.takeUsage(usage, true, out)
    for (const block of value["content"]) {
      if (isRecord(block)) {
        this.startBlock(block, out)
        this.endBlock(out)
      }
    }
    this.takeEnd(Object.fromEntries(Object.entries(value).filter(([name]) => lastFields.has(name))), out)
    this.isDone = true
  }

  end(out: Array<UpstreamEvent>): void {
    if (this.failed !== undefined) return
    if (!this.finishing()) return this.fail({ kind: this.began ? "truncated" : "empty" })
    this.endBlock(out)
    for (const call of this.open) out.push(UpstreamCall(call, undefined, undefined, "{}"))
    out.push(UpstreamFinish(this.reason ?? "stop", this.stopSequence, this.unknown))
  }

  failure(): UpstreamFailure | undefined {
    return this.failed
  }

  finishing(): boolean {
    return this.reason !== undefined || this.isDone
  }

  /** Nothing that follows a refusal counts, but its token counts come with it. */
  withdrawn(): boolean {
    return false
  }

  done(): boolean {
    return this.isDone
  }

  private fail(facts: Omit<ConstructorParameters<typeof UpstreamFailure>[0], "phase">): void {
    // A complete reply stays complete, whatever follows it.
    if (!this.finishing()) this.failed ??= new UpstreamFailure({ phase: "stream", ...facts })
  }

  private take(value: JsonRecord, out: Array<UpstreamEvent>): void {
    const { content_block: block, delta, message, type } = value
    switch (type) {
      case "message_start":
        this.began = true
        if (isRecord(message)) {
          this.startMessage(message, out)
          this.takeUsage(message["usage"], false, out)
        }
        return
      case "content_block_start":
        this.began = true
        if (isRecord(block)) this.startBlock(block, out, value["index"])
        return
      case "content_block_delta":
        this.began = true
        if (isRecord(delta) && !this.growEarlier(value["index"], delta, out)) this.grow(delta, out)
        return
      case "content_block_stop":
        return this.earlierCall(value["index"]) === undefined ? this.endBlock(out) : undefined
      case "message_delta": {
        this.began = true
        this.endBlock(out)
        const others = otherFields(value, ofEnd, always)
        if (others !== undefined) out.push(UpstreamExtra("messages", "chunk", others))
        this.takeUsage(value["usage"], true, out)
        if (isRecord(delta)) this.takeEnd(delta, out)
        return
      }
      case "message_stop":
        this.isDone = true
        return
      default:
        // Pings, and events that later versions add.
    }
  }

  private startMessage(message: JsonRecord, out: Array<UpstreamEvent>): void {
    const fields = otherFields(message, ofMessage, always)
    if (fields !== undefined) out.push(UpstreamExtra("messages", "chunk", fields))
  }

  /** The first counts of a stream have no output yet. */
  private takeUsage(usage: unknown, isLast: boolean, out: Array<UpstreamEvent>): void {
    if (!isRecord(usage)) return
    const fields = otherFields(usage, all, always)
    if (fields === undefined) return
    for (const name of Object.keys(fields)) if (fields[name] !== null) this.counts[name] = fields[name]
    out.push(UpstreamUsage(usageOf(this.counts, isLast)), UpstreamExtra("messages", "usage", fields))
  }

  private takeEnd(delta: JsonRecord, out: Array<UpstreamEvent>): void {
    const reason = asString(delta["stop_reason"])
    const fields = otherFields(delta, all, always)
    const end = reason === undefined ? undefined : endOf(reason, finishReasons)
    if (reason !== undefined && end === undefined) return this.fail(gaveUp(reason))
    if (fields !== undefined) out.push(UpstreamExtra("messages", "choice", fields))
    if (end === undefined) return
    this.reason = end.reason
    this.unknown = end.unknown
    this.stopSequence = asString(delta["stop_sequence"])
    if (reason !== "refusal") return
    const details = delta["stop_details"]
    const refusal = isRecord(details) ? asString(details["explanation"]) ?? "" : ""
    out.push(UpstreamExtra("openai", "message", { refusal }))
  }

  private startBlock(start: JsonRecord, out: Array<UpstreamEvent>, index?: unknown): void {
    if (this.block?.kind === "tool_use" && !this.block.hasContent && !hasInput(this.block.fields["input"])) {
      this.open.add(this.block.call)
      this.block = undefined
    }
    this.endBlock(out)
    const kind = kindOf(start["type"])
    const fields = { ...otherFields(start, all, always) }
    if (this.isAfterText && kind === "text") out.push(UpstreamExtra("messages", "block", { type: "text" }))
    this.isAfterText = false
    const block: Block = {
      kind,
      fields,
      characters: new WholeCharacters(),
      pieces: new TextPieces(),
      call: kind === "tool_use" ? this.calls++ : -1,
      hasContent: false,
      from: this.textLength
    }
    this.block = block
    if (kind === "tool_use") {
      if (this.callsOfBlocks.size < mostBlocks) this.callsOfBlocks.set(index, block.call)
      const sealed = otherFields(start, ofCall, isUnusual)
      out.push(UpstreamCall(block.call, asString(start["id"]), asString(start["name"]), "", sealed))
    } else if (kind === "text") this.growText(block, asString(start["text"]) ?? "", out)
    else if (kind === "thinking") this.growThinking(block, asString(start["thinking"]) ?? "", out)
  }

  private growText(block: Block, piece: string, out: Array<UpstreamEvent>): void {
    const text = block.characters.take(piece)
    if (text === "") return
    block.hasContent = true
    this.textLength += text.length
    out.push(UpstreamText(text))
  }

  private growThinking(block: Block, piece: string, out: Array<UpstreamEvent>): void {
    const text = block.characters.take(piece)
    if (text === "") return
    block.pieces.push(text)
    out.push(UpstreamReasoning(text))
  }

  private growInput(block: Block, piece: string, out: Array<UpstreamEvent>): void {
    const text = block.characters.take(piece)
    if (text === "") return
    block.hasContent = true
    if (block.kind === "tool_use") out.push(UpstreamCall(block.call, undefined, undefined, text))
    else block.pieces.push(text)
  }

  /** The call of a block that is not the last one. */
  private earlierCall(index: unknown): number | undefined {
    const call = this.callsOfBlocks.get(index)
    return call === this.block?.call ? undefined : call
  }

  /** Takes a piece of the arguments of an earlier call. Returns false for other pieces. */
  private growEarlier(index: unknown, delta: JsonRecord, out: Array<UpstreamEvent>): boolean {
    const call = delta["type"] === "input_json_delta" ? this.earlierCall(index) : undefined
    if (call === undefined) return false
    const piece = asString(delta["partial_json"])
    if (piece === undefined) return true
    this.open.delete(call)
    out.push(UpstreamCall(call, undefined, undefined, piece))
    return true
  }

  private grow(delta: JsonRecord, out: Array<UpstreamEvent>): void {
    const type = delta["type"]
    const started = deltaKinds.get(type)
    // Some servers begin a block by its first delta.
    if (started !== undefined && this.block?.kind !== started && this.block?.kind !== "other") {
      this.startBlock({ type: started }, out)
    }
    const { block } = this
    if (block === undefined) return
    if (type === "text_delta" && block.kind === "text") {
      return this.growText(block, asString(delta["text"]) ?? "", out)
    }
    if (type === "thinking_delta" && block.kind === "thinking") {
      return this.growThinking(block, asString(delta["thinking"]) ?? "", out)
    }
    if (type === "input_json_delta") return this.growInput(block, asString(delta["partial_json"]) ?? "", out)
    if (type === "citations_delta") {
      const { citation } = delta
      if (!isRecord(citation) || !isShallow(citation)) return
      const before = block.fields["citations"]
      if (Array.isArray(before)) before.push(citation as JsonFields)
      else block.fields["citations"] = [citation as JsonFields]
      return
    }
    for (const [name, field] of Object.entries(delta)) {
      if (name === "type" || name === "estimated_tokens" || field === null || !isShallow(field)) continue
      const before = block.fields[name]
      block.fields[name] = typeof before === "string" && typeof field === "string" ? before + field : field as Json
    }
  }

  private endBlock(out: Array<UpstreamEvent>): void {
    const { block } = this
    if (block === undefined) return
    this.block = undefined
    const { characters, fields, kind, pieces } = block
    const rest = characters.end()
    switch (kind) {
      case "text": {
        if (rest !== "") out.push(UpstreamText(rest))
        const others = otherFields(fields, ofText, isSaid)
        if (others === undefined) {
          this.isAfterText = block.hasContent
          return
        }
        const annotations = annotationsOf(others["citations"], block.from, this.textLength)
        if (annotations.length > 0) out.push(UpstreamExtra("openai", "message", { annotations }))
        out.push(UpstreamExtra("messages", "block", { type: "text", ...others }))
        return
      }
      case "thinking": {
        if (rest !== "") {
          pieces.push(rest)
          out.push(UpstreamReasoning(rest))
        }
        out.push(UpstreamExtra("messages", "reasoning", { ...fields, thinking: pieces.toString() }))
        return
      }
      case "redacted_thinking":
        out.push(UpstreamExtra("messages", "reasoning", fields))
        return
      case "tool_use": {
        const { input } = fields
        const last = block.hasContent
          ? rest
          : isObjectText(input)
          ? input
          : JSON.stringify(isRecord(input) ? input : {})
        if (last !== "") out.push(UpstreamCall(block.call, undefined, undefined, last))
        return
      }
      case "other": {
        const text = pieces.toString() + rest
        const input = text === "" ? undefined : parseJson(text)
        const isInput = isRecord(input) && isShallow(input)
        out.push(UpstreamExtra("messages", "block", isInput ? { ...fields, input: input as JsonFields } : fields))
      }
    }
  }
}

/** Starts a decoder of one reply. `Reader` compares events. */
export const eventDecoder = (Reader = RepeatedEvents): ChunkDecoder => new EventDecoder(Reader)
