/**
 * Passes a carried reply on: JSON and the events of a stream with the model's name as it was requested, everything else byte for byte.
 * It reads the token counts on the way.
 */
import type { OpenCarried } from "../../completion/carry.ts"
import type { RequestStats } from "../../completion/RequestStats.ts"
import { estimateTokens } from "../../domain/estimateTokens.ts"
import { type GatewayError, gatewayError } from "../../domain/GatewayError.ts"
import { isRecord } from "../../domain/json.ts"
import type { Limits } from "../../domain/limits.ts"
import type { Usage } from "../../domain/ReplyEvent.ts"
import { EventCut } from "../../domain/stream/EventCut.ts"
import { encodeSse } from "../../domain/stream/sse.ts"
import { TopLevel } from "../../domain/stream/TopLevel.ts"
import { openaiErrors } from "../../http/errorShapes.ts"
import { tooMuchHeld } from "../../http/receiveBody.ts"
import { type StreamHead, streamHeaders } from "../../http/ResponseBuffer.ts"
import { isEventStream, isJson, isText } from "../../upstream/carriedReply.ts"
import { parseJson } from "../../upstream/json.ts"
import { usageOf } from "../../upstream/server/usage.ts"

/** What the renderer needs of the request. */
export interface CarriedFacts {
  readonly stats: RequestStats
  /** The model's name as it was requested. */
  readonly requested: string
  /** Estimated tokens of the request, for replies without counts. */
  readonly estimate: number
  /** Replies have their text in `choices`. */
  readonly hasChoices: boolean
  readonly limits: Limits
}

/** Headers of the server that callers get. */
const passedHeaders = ["content-encoding", "content-disposition"]

const keptMembers = ["usage", "error"]

const eventTooLong = gatewayError("upstream_error", "An event of the upstream's reply is too long")

const dataLine = /^data: ?(\{.*)$/m

export class CarriedRenderer {
  readonly head: StreamHead
  /** A part of an event stream that keeps the connection alive; `undefined` for other replies. */
  readonly keepAlive: (() => string) | undefined
  /** The reply is text, which recordings keep. */
  readonly isRecorded: boolean
  private readonly facts: CarriedFacts
  private readonly budget: OpenCarried["budget"]
  private readonly decoder: TextDecoder | undefined
  private readonly events: EventCut | undefined
  private readonly body: TopLevel<string> | undefined
  private readonly model: string
  private counted: Usage | undefined
  private completionTokens = 0

  constructor({ budget, header, status }: OpenCarried, facts: CarriedFacts) {
    this.facts = facts
    this.budget = budget
    this.model = JSON.stringify(facts.requested)
    const contentType = header("content-type") ?? "application/octet-stream"
    const encoding = header("content-encoding") ?? "identity"
    const isPlain = encoding === "identity"
    const isEvents = isPlain && isEventStream(contentType)
    this.isRecorded = isPlain && isText(contentType)
    this.events = isEvents ? new EventCut() : undefined
    this.body = isPlain && isJson(contentType) ? new TopLevel(this.model, keptMembers) : undefined
    const isChanged = isEvents || this.body !== undefined
    this.decoder = isChanged ? new TextDecoder("utf-8", { ignoreBOM: true }) : undefined
    this.keepAlive = isEvents ? () => ": keep-alive\n\n" : undefined
    const length = Number(header("content-length") ?? Number.NaN)
    const headers: Record<string, string> = isEvents ? { ...streamHeaders } : {}
    for (const name of passedHeaders) {
      const value = header(name)
      if (value !== undefined) headers[name] = value
    }
    this.head = { status, contentType, headers, contentLength: isChanged || Number.isNaN(length) ? undefined : length }
  }

  /** The text or bytes to send for these bytes; an error ends the reply. */
  push(bytes: Uint8Array): string | Uint8Array | GatewayError {
    if (this.decoder === undefined) return bytes
    return this.text(this.decoder.decode(bytes, { stream: true }))
  }

  /** The rest of the reply, which is complete. */
  end(): string | GatewayError {
    const { stats } = this.facts
    const last = this.decoder === undefined ? "" : this.rest(this.decoder)
    stats.usage = this.usage()
    stats.progress = "done"
    return last
  }

  private rest(decoder: TextDecoder): string | GatewayError {
    const last = this.text(decoder.decode())
    if (typeof last !== "string") return last
    const out: Array<string> = []
    this.events?.end(out)
    if (this.body !== undefined) this.note(this.body)
    this.budget.hold(0)
    return last + out.map((event) => this.event(event)).join("")
  }

  /** The last frame of an event stream that fails; other replies break off. */
  failure(error: GatewayError): string | undefined {
    return this.events === undefined ? undefined : encodeSse(undefined, openaiErrors.text(error))
  }

  /** The server's token counts, otherwise estimated ones. */
  usage(): Usage {
    return this.counted ?? {
      promptTokens: this.facts.estimate,
      completionTokens: this.completionTokens,
      reasoningTokens: 0,
      cachedTokens: 0
    }
  }

  estimated(): boolean {
    return this.counted === undefined
  }

  private text(text: string): string | GatewayError {
    const out: Array<string> = []
    if (this.body !== undefined) {
      this.body.push(text, out)
      return out.join("")
    }
    const { events } = this
    if (events === undefined) return text
    events.push(text, out)
    if (events.held > this.facts.limits.reply_chars) return eventTooLong
    if (!this.budget.hold(events.held)) return tooMuchHeld
    return out.map((finished) => this.event(finished)).join("")
  }

  /** Finished events in one piece. */
  private event(text: string): string {
    const out: Array<string> = []
    for (const line of text.split(/(?<=\n|\r(?!\n))/)) {
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
    }
    return out.join("")
  }

  private note({ kept }: TopLevel<string>): void {
    const usage = parseJson(kept.get("usage") ?? "")
    if (isRecord(usage)) {
      const { cachedTokens = 0, completionTokens = 0, promptTokens = 0, reasoningTokens = 0 } = usageOf(usage)
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
