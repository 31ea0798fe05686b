/**
 * Passes a relayed reply on: JSON and the events of a stream with the model's name as it was requested, everything else byte for byte.
 * It reads the token counts on the way.
 */
import type { OpenRelayed } from "../../completion/relay.ts"
import type { RequestStats } from "../../completion/RequestStats.ts"
import { asCount, parseJson } from "../../contracts/shared/json.ts"
import { openaiErrors } from "../../contracts/shared/openaiErrors.ts"
import { usageOf } from "../../contracts/shared/usage.ts"
import { saidDetails } from "../../contracts/shared/usageDetails.ts"
import { estimateTokens, withMargin } from "../../domain/estimateTokens.ts"
import { type GatewayError, gatewayError } from "../../domain/GatewayError.ts"
import { isRecord } from "../../domain/json.ts"
import type { Limits } from "../../domain/limits.ts"
import { EventCut } from "../../domain/stream/EventCut.ts"
import { encodeSse } from "../../domain/stream/sse.ts"
import { TopLevel } from "../../domain/stream/TopLevel.ts"
import type { Usage, UsageDetails } from "../../domain/units.ts"
import { tooMuchHeld } from "../../http/receiveBody.ts"
import type { ReplyRenderer } from "../../http/ReplyResponse.ts"
import { type Frame, type StreamHead, streamHeaders } from "../../http/ResponseBuffer.ts"
import { isEventStream, isJson, isText } from "../../upstream/relayedReply.ts"

/** What the renderer needs of the request. */
export interface RelayedFacts {
  readonly stats: RequestStats
  /** The model's name as it was requested. */
  readonly requested: string
  /** Estimated tokens of the request, for replies without counts. */
  readonly estimate: number
  /** Replies have their text in `choices`. */
  readonly hasChoices: boolean
  /** Replies have pictures in `data`, or each in an event of its own. */
  readonly hasPictures: boolean
  /** Characters that the server speaks. */
  readonly characters: number
  /** The tokens of output that strict limits have reserved; `undefined` without such limits. */
  readonly most: number | undefined
  readonly limits: Limits
}

/** Headers of the server that callers get. */
const passedHeaders = ["content-encoding", "content-disposition"]

const keptMembers = ["usage", "error", "service_tier", "type", "meta", "billed_units"]

/** The search units of a rerank (`meta.billed_units` of Cohere's API; other servers have `billed_units` at the top). */
const searchUnitsOf = (kept: ReadonlyMap<string, string>): number => {
  const meta = parseJson(kept.get("meta") ?? "")
  const units = isRecord(meta) ? meta["billed_units"] : parseJson(kept.get("billed_units") ?? "")
  return isRecord(units) ? asCount(units["search_units"]) ?? 0 : 0
}

const tooMuchOutput = gatewayError(
  "upstream_error",
  "The upstream's reply is longer than max_tokens, which a strict limit or budget has reserved"
)

const eventTooLong = gatewayError("upstream_error", "An event of the upstream's reply is too long")

const dataLine = /^data: ?(\{.*)$/m

export class RelayRenderer implements ReplyRenderer<Uint8Array, Frame> {
  readonly frames: ReplyRenderer<Uint8Array, Frame>["frames"]
  readonly head: StreamHead
  /** A part of an event stream that keeps the connection alive; `undefined` for other replies. */
  readonly keepAlive: (() => string) | undefined
  /** The reply is text, which recordings keep. */
  readonly isRecorded: boolean
  readonly isBilled = false
  private readonly facts: RelayedFacts
  private readonly budget: OpenRelayed["budget"]
  private readonly decoder: TextDecoder | undefined
  private readonly events: EventCut | undefined
  private readonly body: TopLevel<Frame> | undefined
  private readonly model: string
  private counted: Usage | undefined
  private details: UsageDetails | undefined
  private pictures = 0
  private searches = 0
  private fault: GatewayError | undefined
  private completionTokens = 0

  constructor({ budget, header, status }: OpenRelayed, facts: RelayedFacts) {
    this.facts = facts
    this.budget = budget
    this.model = JSON.stringify(facts.requested)
    const contentType = header("content-type") ?? "application/octet-stream"
    const encoding = header("content-encoding") ?? "identity"
    const isPlain = encoding === "identity"
    const isEvents = isPlain && isEventStream(contentType)
    this.isRecorded = isPlain && isText(contentType)
    this.events = isEvents ? new EventCut() : undefined
    this.body = isPlain && isJson(contentType) ? new TopLevel<Frame>(this.model, keptMembers) : undefined
    const isChanged = isEvents || this.body !== undefined
    this.decoder = isChanged ? new TextDecoder("utf-8", { ignoreBOM: true }) : undefined
    this.keepAlive = isEvents ? () => ": keep-alive\n\n" : undefined
    const length = Number(header("content-length") ?? Number.NaN)
    const headers: Record<string, string> = isEvents ? { ...streamHeaders } : {}
    for (const name of passedHeaders) {
      const value = header(name)
      if (value !== undefined) headers[name] = value
    }
    this.frames = {
      push: (bytes, out) => this.push(bytes, out),
      end: (out) => this.end(out),
      failure: () => this.fault
    }
    this.head = { status, contentType, headers, contentLength: isChanged || Number.isNaN(length) ? undefined : length }
  }

  private push(bytes: Uint8Array, out: Array<Frame>): void {
    if (this.decoder === undefined) out.push(bytes)
    else this.text(this.decoder.decode(bytes, { stream: true }), out)
  }

  /** The reply is complete. */
  private end(out: Array<Frame>): void {
    const { stats } = this.facts
    if (this.decoder !== undefined) this.text(this.decoder.decode(), out)
    if (this.fault === undefined) this.rest(out)
    stats.usage = this.usage()
    stats.progress = "done"
  }

  private rest(out: Array<Frame>): void {
    const last: Array<string> = []
    this.events?.end(last)
    if (this.body !== undefined) this.note(this.body)
    this.budget.hold(0)
    for (const event of last) out.push(this.event(event))
  }

  /** The last frame of an event stream that fails; other replies break off. */
  failure(error: GatewayError): string | undefined {
    return this.events === undefined ? undefined : encodeSse(undefined, openaiErrors.text(error))
  }

  /** The server's token counts, otherwise estimated ones. */
  usage(): Usage {
    const usage = this.counted ?? {
      promptTokens: this.facts.estimate,
      completionTokens: this.completionTokens,
      reasoningTokens: 0,
      cachedTokens: 0
    }
    const details = this.billed(usage)
    return details === undefined ? usage : { ...usage, details }
  }

  /** What the bill counts beside plain tokens. The output of pictures is pictures. */
  private billed({ completionTokens }: Usage): UsageDetails | undefined {
    const { characters, hasPictures } = this.facts
    const pieces = {
      ...this.details?.pieces,
      ...this.pictures === 0 ? {} : { per_image: this.pictures },
      ...this.searches === 0 ? {} : { per_query: this.searches },
      ...characters === 0 ? {} : { per_character: characters }
    }
    return saidDetails({
      ...this.details,
      imageOutputTokens: this.details?.imageOutputTokens ?? (hasPictures ? completionTokens : 0),
      pieces: Object.keys(pieces).length === 0 ? undefined : pieces
    })
  }

  promptReported(): boolean {
    return false
  }

  estimated(): boolean {
    return this.counted === undefined
  }

  /** Appends what to send of the text. An event that is too long ends the reply. */
  private text(text: string, out: Array<Frame>): void {
    const { body, events } = this
    body?.push(text, out)
    if (events === undefined) return
    const finished: Array<string> = []
    events.push(text, finished)
    if (events.held > this.facts.limits.reply_chars) this.fault = eventTooLong
    else if (!this.budget.hold(events.held)) this.fault = tooMuchHeld
    else for (const event of finished) out.push(this.event(event))
  }

  /** Finished events in one piece, up to one with more output than was reserved. */
  private event(text: string): string {
    const out: Array<string> = []
    for (const line of text.split(/(?<=\n|\r(?!\n))/)) {
      if (this.fault === tooMuchOutput) break
      const data = dataLine.exec(line)?.[1]
      if (data === undefined) {
        out.push(line)
        continue
      }
      const at = line.indexOf("{")
      const scan = new TopLevel(this.model, keptMembers)
      out.push(line.slice(0, at))
      scan.push(line.slice(at), out)
      this.note(scan)
      if (this.facts.hasChoices && this.counted === undefined) this.estimateText(data)
      if (this.isTooLong()) this.fault ??= tooMuchOutput
    }
    return out.join("")
  }

  /** An estimate has a margin. */
  private isTooLong(): boolean {
    const { facts: { most = Infinity } } = this
    return this.completionTokens > withMargin(most) && this.counted === undefined
  }

  private note({ items, kept }: Pick<TopLevel<Frame>, "items" | "kept">): void {
    const usage = parseJson(kept.get("usage") ?? "")
    if (this.facts.hasPictures) this.pictures += kept.get("type")?.endsWith(".completed\"") === true ? 1 : items
    this.searches = Math.max(this.searches, searchUnitsOf(kept))
    if (isRecord(usage)) {
      const tier = parseJson(kept.get("service_tier") ?? "")
      const { cachedTokens = 0, completionTokens = 0, details, promptTokens = 0, reasoningTokens = 0 } = usageOf(
        usage,
        {
          tier,
          toolCalls: undefined
        }
      )
      this.details = details ?? this.details
      if (promptTokens > 0 || completionTokens > 0) {
        this.counted = { promptTokens, completionTokens, reasoningTokens, cachedTokens }
      }
    }
    const error = parseJson(kept.get("error") ?? "")
    if (isRecord(error) && Object.keys(error).length > 0) this.facts.stats.error ??= "upstream_error"
  }

  private estimateText(data: string): void {
    const value = parseJson(data)
    const choices = isRecord(value) ? value["choices"] : undefined
    if (!Array.isArray(choices)) return
    for (const choice of choices as ReadonlyArray<unknown>) {
      if (isRecord(choice) && typeof choice["text"] === "string") {
        this.completionTokens += estimateTokens(choice["text"])
      }
    }
  }
}
