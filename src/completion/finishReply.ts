/**
 * Makes the canonical reply of its parts: numbers the calls, holds their limits, counts and estimates tokens, and says why the
 * reply ended.
 */
import { TokenCounter } from "../domain/estimateTokens.ts"
import type { FinishReason, ReplyEvent, Usage } from "../domain/ReplyEvent.ts"
import * as Reply from "../domain/ReplyEvent.ts"
import type { HoldingMachine } from "../domain/stream/transducer.ts"
import type { PartialUsage } from "../domain/UpstreamEvent.ts"
import type { ReasoningCalls } from "../sieve/reasoningCalls.ts"
import type { CallBegun, CallOver, Ending, ReplyPart } from "./ReplyPart.ts"

/** How one reply is finished. */
export interface FinishOptions {
  /** Finds the calls at the end of the reasoning of a reply that has neither text nor calls; `undefined` without tools. */
  readonly reasoningCalls: (() => Pick<ReasoningCalls, "push" | "end" | "held">) | undefined
  /** The reply ends after its first call. */
  readonly singleCall: boolean
  /** The model has reasoning to show; else it is dropped, but counted, and searched for calls. */
  readonly showReasoning: boolean
  /** Counts a call of the reply; false where it may have no more, and is cut there. */
  readonly addCall: () => boolean
  /** Id of the call with this index. */
  readonly callId: (index: number) => string
  /** Estimates the prompt's tokens where the upstream gives no count. */
  readonly promptTokens: () => number
}

/** What is known of a reply's tokens while it comes: the upstream's figures, or estimates of what it has not told. */
export interface UsageSoFar {
  readonly usage: () => Usage
  /** True where a figure is not the upstream's. */
  readonly estimated: () => boolean
  /** The upstream has told the prompt's tokens. */
  readonly promptTold: () => boolean
}

/** The machine, which can be asked for its tokens at any time, and whether it has told the end. */
export interface FinishMachine extends HoldingMachine<ReplyPart, ReplyEvent>, UsageSoFar {
  readonly finished: () => boolean
}

const noCall = { id: "", name: "" }

/** A count of tokens, where it is one: any other number would spoil a key's limits and all sums of usage. */
const count = (told: number | undefined): number | undefined =>
  told !== undefined && Number.isFinite(told) && told >= 0 ? Math.round(told) : undefined

/** What the upstream has told, once it tells more. What it leaves out stays. */
const toldOf = (before: PartialUsage, more: PartialUsage): PartialUsage => ({
  promptTokens: count(more.promptTokens) ?? before.promptTokens,
  completionTokens: count(more.completionTokens) ?? before.completionTokens,
  reasoningTokens: count(more.reasoningTokens) ?? before.reasoningTokens,
  cachedTokens: count(more.cachedTokens) ?? before.cachedTokens
})

class Finisher implements FinishMachine {
  /** What the upstream has told. */
  private told: PartialUsage = {}
  private readonly reasoning = new TokenCounter()
  /** Counts text and calls. */
  private readonly written = new TokenCounter()
  /** Looks for calls in the reasoning, as long as the reply has neither text other than blanks nor calls. */
  private reasoningCalls: ReturnType<NonNullable<FinishOptions["reasoningCalls"]>> | undefined
  private mayCallInReasoning: boolean
  private calls = 0
  private current = noCall
  /** Ids of the calls so far. */
  private ids: Set<string> | undefined
  private cutOff = false
  private isFinished = false
  private readonly options: FinishOptions

  constructor(options: FinishOptions) {
    this.options = options
    this.mayCallInReasoning = options.reasoningCalls !== undefined
  }

  get held(): number {
    return this.reasoningCalls?.held ?? 0
  }

  estimated(): boolean {
    return this.told.promptTokens === undefined || this.told.completionTokens === undefined
  }

  promptTold(): boolean {
    return this.told.promptTokens !== undefined
  }

  finished(): boolean {
    return this.isFinished
  }

  push(part: ReplyPart, out: Array<ReplyEvent>): void {
    if (this.isFinished) return
    switch (part._tag) {
      case "Text":
        this.written.push(part.text)
        if (this.mayCallInReasoning && part.text.trim() !== "") this.leaveReasoning()
        out.push(Reply.TextDelta(part.text))
        return
      case "Reasoning":
        this.reasoning.push(part.text)
        if (this.mayCallInReasoning) (this.reasoningCalls ??= this.options.reasoningCalls?.())?.push(part.text)
        if (this.options.showReasoning) out.push(Reply.ReasoningDelta(part.text))
        return
      case "CallBegun":
        return this.begin(part, out)
      case "CallGrown":
        return this.grow(part.delta, out)
      case "CallOver":
        return this.over(part, out)
      case "UpstreamUsage":
        this.told = toldOf(this.told, part.usage)
        return
      case "Ending":
        this.conclude(part, out)
    }
  }

  end(): void {}

  usage(): Usage {
    const reasoningTokens = this.told.reasoningTokens ?? this.reasoning.total()
    const completionTokens = this.told.completionTokens ?? reasoningTokens + this.written.total()
    const promptTokens = this.told.promptTokens ?? this.options.promptTokens()
    return {
      promptTokens,
      completionTokens,
      reasoningTokens: Math.min(reasoningTokens, completionTokens),
      cachedTokens: Math.min(this.told.cachedTokens ?? 0, promptTokens)
    }
  }
  private finish(reason: FinishReason, out: Array<ReplyEvent>, stopSequence?: string): void {
    this.isFinished = true
    out.push(
      Reply.UsageReported(this.usage()),
      Reply.Finish(reason, reason === "stop_sequence" ? stopSequence : undefined)
    )
  }

  private begin({ id, name }: Pick<CallBegun, "id" | "name">, out: Array<ReplyEvent>): void {
    if (!this.options.addCall()) return this.finish("length", out)
    const index = this.calls++
    this.leaveReasoning()
    this.ids ??= new Set()
    // An upstream's id tells its call from the others only where no other has it too.
    this.current = { id: id === undefined || this.ids.has(id) ? this.options.callId(index) : id, name }
    this.ids.add(this.current.id)
    this.written.push(name)
    out.push(Reply.CallStarted(index, this.current.id, name))
  }
  private grow(delta: string, out: Array<ReplyEvent>): void {
    this.written.push(delta)
    out.push(Reply.CallArguments(this.calls - 1, delta))
  }
  private over({ arguments: args, whole }: Pick<CallOver, "arguments" | "whole">, out: Array<ReplyEvent>): void {
    const { id, name } = this.current
    if (!whole) this.cutOff = true
    out.push(
      whole ? Reply.CallFinished(this.calls - 1, id, name, args) : Reply.CallCutOff(this.calls - 1, id, name, args)
    )
    if (this.options.singleCall) this.finish(whole ? "tool_calls" : "length", out)
  }

  /** The reply has something beside its reasoning, which then has no calls. */
  private leaveReasoning(): void {
    this.mayCallInReasoning = false
    this.reasoningCalls = undefined
  }

  /** A reply that is nothing but reasoning may have its calls there. */
  private fromReasoning(out: Array<ReplyEvent>): void {
    for (const { arguments: args, name } of this.reasoningCalls?.end() ?? []) {
      if (this.isFinished) return
      this.begin({ id: undefined, name }, out)
      if (this.isFinished) return
      this.grow(args, out)
      this.over({ whole: true, arguments: args }, out)
    }
  }

  private conclude({ reason, stopSequence }: Ending, out: Array<ReplyEvent>): void {
    if (reason === "content_filter") return this.finish(reason, out)
    this.fromReasoning(out)
    if (this.isFinished) return
    if (reason === "length") return this.finish(reason, out)
    // Calls say more than how the text around them ended, and a call that was cut off says most.
    this.finish(this.cutOff ? "length" : this.calls > 0 ? "tool_calls" : reason, out, stopSequence)
  }
}

/** Starts the machine for one reply. After it has emitted `Finish` whatever is pushed is dropped. */
export const finishReply = (options: FinishOptions): FinishMachine => new Finisher(options)
