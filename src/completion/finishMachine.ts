/**
 * Makes the reply events of a reply's parts: numbers the calls, enforces their limit, counts and estimates tokens, and determines
 * the finish reason.
 */
import { contracts } from "../contracts/contracts.ts"
import { TokenCounter, withMargin } from "../domain/estimateTokens.ts"
import type { JsonFields } from "../domain/json.ts"
import { collectSeals } from "../domain/makers.ts"
import type { FinishReason, ReplyEvent, Usage } from "../domain/ReplyEvent.ts"
import * as Reply from "../domain/ReplyEvent.ts"
import { ExtraFold, isBoundPlace } from "../domain/replyExtras.ts"
import { TextPieces } from "../domain/stream/text.ts"
import type { HoldingMachine } from "../domain/stream/transducer.ts"
import { mostTokens } from "../domain/units.ts"
import type { PartialUsage, UpstreamExtra } from "../domain/UpstreamEvent.ts"
import type { ReasoningCalls } from "../sieve/reasoningCalls.ts"
import type { CallBegun, CallOver, Ending, ReplyPart } from "./ReplyPart.ts"

/** Options of one reply. */
export interface FinishOptions {
  /** Finds calls at the end of the reasoning if the reply has neither text nor calls; `undefined` without tools. */
  readonly reasoningCalls: (() => Pick<ReasoningCalls, "push" | "end" | "held">) | undefined
  /** The reply ends after its first call. */
  readonly singleCall: boolean
  /** Emits the reasoning; otherwise it is dropped, but counted and searched for calls. */
  readonly showReasoning: boolean
  /** Counts a call. Returns false at the limit, where the reply is cut. */
  readonly addCall: () => boolean
  /** Id of the call with this index. */
  readonly callId: (index: number) => string
  /** Keeps the fields of a call that only the upstream reads, and the thinking of its reply, for the requests that send the call back. */
  readonly keepSealed: ((callId: string, sealed: JsonFields, thinking: string) => void) | undefined
  /** Keeps who made a seal that the reply has. */
  readonly keepSeal: ((seal: string) => void) | undefined
  /** Estimates the prompt's tokens if the upstream does not report them. */
  readonly promptTokens: () => number
}

/** The tokens of a reply in progress: the upstream's figures, or estimates. */
export interface UsageSoFar {
  readonly usage: () => Usage
  /** True if a figure is an estimate. */
  readonly estimated: () => boolean
  /** True if the upstream has reported the prompt's tokens. */
  readonly promptReported: () => boolean
  /** True if the upstream has reported how many tokens its cache had. */
  readonly cacheReported: () => boolean
  /** True if the reply has more tokens than `most`, by the server's count or by an estimate with its margin. */
  readonly exceeds: (most: number) => boolean
}

/** The machine, with the tokens so far and whether `Finish` was emitted. */
export interface FinishMachine extends HoldingMachine<ReplyPart, ReplyEvent>, UsageSoFar {
  readonly finished: () => boolean
}

/** A call that has begun. */
interface Call {
  readonly id: string
  readonly name: string
  /** Items of reasoning that go back before the call. */
  items?: ReadonlyArray<JsonFields>
}

/** Extra fields and events that wait for something to show at most. */
const mostBefore = 1_000

/** Characters of thinking that are kept for a call at most. */
const mostThinking = 256 * 1024

const noCall: Call = { id: "", name: "" }

/** A valid count of tokens; any other number would corrupt the limits of keys and the sums of usage. */
const count = (figure: number | undefined): number | undefined =>
  figure !== undefined && figure >= 0 && figure <= mostTokens ? Math.round(figure) : undefined

/** Merges reported figures; a missing one keeps its earlier value. */
const mergeUsage = (before: PartialUsage, more: PartialUsage): PartialUsage => ({
  promptTokens: count(more.promptTokens) ?? before.promptTokens,
  completionTokens: count(more.completionTokens) ?? before.completionTokens,
  reasoningTokens: count(more.reasoningTokens) ?? before.reasoningTokens,
  cachedTokens: count(more.cachedTokens) ?? before.cachedTokens,
  cacheWriteTokens: count(more.cacheWriteTokens) ?? before.cacheWriteTokens,
  details: more.details ?? before.details
})

/** The figures that a server has reported of a reply. */
export class ReportedUsage {
  #reported: PartialUsage = {}

  add(more: PartialUsage): void {
    this.#reported = mergeUsage(this.#reported, more)
  }

  get completionTokens(): number {
    return this.#reported.completionTokens ?? 0
  }

  estimated(): boolean {
    return this.#reported.promptTokens === undefined || this.#reported.completionTokens === undefined
  }

  promptReported(): boolean {
    return this.#reported.promptTokens !== undefined
  }

  cacheReported(): boolean {
    return this.#reported.cachedTokens !== undefined
  }

  /** The tokens of the reply: what is reported, and for the rest the tokens that were counted. */
  usage(reasoning: number, written: number, prompt: () => number): Usage {
    const reported = this.#reported
    const reasoningTokens = reported.reasoningTokens ?? reasoning
    const completionTokens = reported.completionTokens ?? reasoningTokens + written
    const promptTokens = reported.promptTokens ?? prompt()
    const cachedTokens = Math.min(reported.cachedTokens ?? 0, promptTokens)
    const usage: Usage = {
      promptTokens,
      completionTokens,
      reasoningTokens: Math.min(reasoningTokens, completionTokens),
      cachedTokens
    }
    const { cacheWriteTokens, details } = reported
    const withWritten = cacheWriteTokens === undefined
      ? usage
      : { ...usage, cacheWriteTokens: Math.min(cacheWriteTokens, promptTokens - cachedTokens) }
    return details === undefined ? withWritten : { ...withWritten, details }
  }
}

class ReplyFinisher implements FinishMachine {
  readonly #reported = new ReportedUsage()
  readonly #reasoning = new TokenCounter()
  /** Counts text and calls. */
  readonly #written = new TokenCounter()
  /** Searches the reasoning for calls while the reply has neither non-blank text nor calls. */
  #reasoningCalls: ReturnType<NonNullable<FinishOptions["reasoningCalls"]>> | undefined
  #mayCallInReasoning: boolean
  #calls = 0
  #current = noCall
  /** The first call, with what only the upstream reads of it. */
  #first: (Call & { sealed: JsonFields | undefined }) | undefined
  /** What only the upstream reads of the message that has the calls, and its characters. */
  #details: ExtraFold | undefined
  #sealedChars = 0
  /** The thinking before the first call; too much is not kept. */
  #thinking: TextPieces | undefined
  #thinkingChars = 0
  /** Items of reasoning that belong to the next call. */
  #items: ReadonlyArray<JsonFields> = []
  /** Extra fields that wait for something to show. */
  #extras: Array<UpstreamExtra> | undefined
  #hasShown = false
  /** Ids of the calls so far. */
  #ids: Set<string> | undefined
  #cutOff = false
  #isFinished = false
  readonly #options: FinishOptions

  constructor(options: FinishOptions) {
    this.#options = options
    this.#mayCallInReasoning = options.reasoningCalls !== undefined
    if (this.#mayCallInReasoning && options.keepSealed !== undefined) this.#thinking = new TextPieces()
  }

  get held(): number {
    return (this.#reasoningCalls?.held ?? 0) + this.#sealedChars + this.#thinkingChars
  }

  estimated(): boolean {
    return this.#reported.estimated()
  }

  promptReported(): boolean {
    return this.#reported.promptReported()
  }

  cacheReported(): boolean {
    return this.#reported.cacheReported()
  }

  exceeds(most: number): boolean {
    return this.#reported.completionTokens > most || this.#reasoning.total() + this.#written.total() > withMargin(most)
  }

  finished(): boolean {
    return this.#isFinished
  }

  push(part: ReplyPart, out: Array<ReplyEvent>): void {
    if (this.#isFinished) return
    switch (part._tag) {
      case "UpstreamText":
        this.#written.push(part.text)
        if (this.#mayCallInReasoning && part.text.trim() !== "") this.#leaveReasoning()
        this.#show(out)
        out.push(Reply.TextDelta(part.text, part.original))
        return
      case "UpstreamReasoning":
        this.#reasoning.push(part.text)
        if (this.#first === undefined) this.#keepThinking(part.text)
        if (this.#mayCallInReasoning) (this.#reasoningCalls ??= this.#options.reasoningCalls?.())?.push(part.text)
        if (this.#options.showReasoning) {
          this.#show(out)
          out.push(Reply.ReasoningDelta(part.text))
        } else if (this.#extras !== undefined) {
          // Logprobs repeat the text that they belong to.
          this.#extras = this.#extras.filter(({ at }) => at !== "choice")
        }
        return
      case "CallBegun":
        return this.#begin(part, out)
      case "CallGrown":
        return this.#grow(part.delta, out)
      case "CallOver":
        return this.#over(part, out)
      case "UpstreamExtra":
        return this.#extra(part, out)
      case "UpstreamUsage":
        this.#reported.add(part.usage)
        return
      case "Ending":
        this.#conclude(part, out)
    }
  }

  end(): void {}

  usage(): Usage {
    return this.#reported.usage(this.#reasoning.total(), this.#written.total(), this.#options.promptTokens)
  }

  /** Something is shown now: what waited for it comes before it. */
  #show(out: Array<ReplyEvent>): void {
    this.#hasShown = true
    if (this.#extras === undefined) return
    for (const { at, family, value } of this.#extras) out.push(Reply.ReplyExtra(family, at, value))
    this.#extras = undefined
  }
  #extra(part: UpstreamExtra, out: Array<ReplyEvent>): void {
    const { at, family, value } = part
    if (at === "message" || at === "block") return this.#content(part, out)
    if (at === "item") this.#keepSeals(value)
    if (at === "reasoning") {
      const kept = contracts[family].facts.keptReasoning(value)
      if (kept?._tag === "Details") this.#keepDetails(kept.fields)
      else if (kept?._tag === "Item") this.#keepItem(kept.item)
      if (!this.#options.showReasoning) return
    }
    // An item shows the reply. What the server says before its first item waits for it.
    if (isBoundPlace(at) || (this.#extras?.length ?? 0) >= mostBefore) this.#show(out)
    if (this.#hasShown) out.push(Reply.ReplyExtra(family, at, value))
    else {
      this.#extras ??= []
      this.#extras.push(part)
    }
  }
  /** Keeps who made the seals of an item, which are whole at its end. */
  #keepSeals({ item = null }: JsonFields): void {
    const { keepSeal } = this.#options
    if (keepSeal === undefined) return
    const seals: Array<string> = []
    collectSeals(item, seals)
    for (const seal of seals) keepSeal(seal)
  }
  #content({ at, family, value }: UpstreamExtra, out: Array<ReplyEvent>): void {
    const { reasoning_details: details, ...rest } = value
    if (details !== undefined) this.#keepDetails({ reasoning_details: details })
    const shown = details === undefined || !this.#options.showReasoning ? rest : { ...rest, reasoning_details: details }
    if (Object.keys(shown).length === 0) return
    if (rest["refusal"] !== undefined) this.#written.push(String(rest["refusal"]))
    this.#leaveReasoning()
    this.#show(out)
    out.push(Reply.ReplyExtra(family, at, shown))
  }
  #keepDetails(value: JsonFields): void {
    this.#details ??= new ExtraFold()
    this.#details.push({ at: "message", value })
    this.#sealedChars += JSON.stringify(value).length
  }
  #keepThinking(text: string): void {
    if (this.#thinking === undefined) return
    this.#thinkingChars += text.length
    if (this.#thinkingChars <= mostThinking) return this.#thinking.push(text)
    this.#thinking = undefined
    this.#thinkingChars = 0
  }
  /** Keeps an item of reasoning for the call that follows it. */
  #keepItem(item: JsonFields): void {
    this.#items = [...this.#items, item]
    this.#sealedChars += JSON.stringify(item).length
  }
  /** Keeps what only the upstream reads of the calls. */
  #seal(): void {
    const first = this.#first
    const details = this.#details?.extras.message
    const thinking = this.#thinking?.toString() ?? ""
    if (first !== undefined && (details !== undefined || thinking !== "")) {
      const items = first.items === undefined ? {} : { reasoning_items: first.items }
      this.#options.keepSealed?.(first.id, { ...first.sealed, ...details, ...items }, thinking)
    }
  }
  #finish(reason: FinishReason, out: Array<ReplyEvent>, stopSequence?: string): void {
    this.#isFinished = true
    this.#seal()
    this.#show(out)
    out.push(
      Reply.UsageReported(this.usage()),
      Reply.Finish(reason, reason === "stop_sequence" ? stopSequence : undefined)
    )
  }

  #begin({ id, name, sealed }: Pick<CallBegun, "id" | "name" | "sealed">, out: Array<ReplyEvent>): void {
    if (!this.#options.addCall()) return this.#finish("length", out)
    const index = this.#calls++
    this.#leaveReasoning()
    this.#ids ??= new Set()
    // An id that the upstream uses twice is replaced.
    this.#current = { id: id === undefined || this.#ids.has(id) ? this.#options.callId(index) : id, name }
    this.#ids.add(this.#current.id)
    if (this.#items.length > 0) {
      this.#options.keepSealed?.(this.#current.id, { ...sealed, reasoning_items: this.#items }, "")
      this.#current.items = this.#items
      this.#items = []
    }
    this.#first ??= { ...this.#current, sealed: undefined }
    this.#written.push(name)
    this.#show(out)
    out.push(Reply.CallStarted(index, this.#current.id, name, sealed))
  }
  #grow(delta: string, out: Array<ReplyEvent>): void {
    this.#written.push(delta)
    out.push(Reply.CallArguments(this.#calls - 1, delta))
  }
  #over(
    { arguments: args, sealed, whole }: Pick<CallOver, "arguments" | "sealed" | "whole">,
    out: Array<ReplyEvent>
  ): void {
    const { id, items, name } = this.#current
    if (!whole) this.#cutOff = true
    if (sealed !== undefined) {
      this.#options.keepSealed?.(id, items === undefined ? sealed : { ...sealed, reasoning_items: items }, "")
      if (this.#first?.id === id) this.#first.sealed = sealed
    }
    out.push(
      whole
        ? Reply.CallFinished(this.#calls - 1, id, name, args, sealed)
        : Reply.CallCutOff(this.#calls - 1, id, name, args)
    )
    if (this.#options.singleCall) this.#finish(whole ? "tool_calls" : "length", out)
  }

  /** Stops the search of the reasoning: the reply has text or calls. */
  #leaveReasoning(): void {
    this.#mayCallInReasoning = false
    this.#reasoningCalls = undefined
  }

  /** Emits the calls of a reply that is only reasoning. */
  #fromReasoning(out: Array<ReplyEvent>): void {
    for (const { arguments: args, name } of this.#reasoningCalls?.end() ?? []) {
      if (this.#isFinished) return
      this.#begin({ id: undefined, name }, out)
      if (this.#isFinished) return
      this.#grow(args, out)
      this.#over({ whole: true, arguments: args }, out)
    }
  }

  #conclude({ reason, stopSequence }: Ending, out: Array<ReplyEvent>): void {
    if (reason === "content_filter") return this.#finish(reason, out)
    this.#fromReasoning(out)
    if (this.#isFinished) return
    if (reason === "length") return this.#finish(reason, out)
    // A call that was cut off determines the reason, then any call, then the end of the text.
    this.#finish(this.#cutOff ? "length" : this.#calls > 0 ? "tool_calls" : reason, out, stopSequence)
  }
}

/** Starts the machine for one reply. It ignores everything after it has emitted `Finish`. */
export const finishMachine = (options: FinishOptions): FinishMachine => new ReplyFinisher(options)
