/**
 * Makes the canonical reply of its parts: numbers the calls, holds their limits, counts and estimates tokens, and says why the
 * reply ended.
 */
import { estimateTokens } from "../domain/estimateTokens.ts"
import type { FinishReason, ReplyEvent, SieveEvent } from "../domain/ReplyEvent.ts"
import * as Reply from "../domain/ReplyEvent.ts"
import type { PartialUsage, Usage } from "../domain/Usage.ts"
import { TextPieces } from "../stream/TextPieces.ts"
import type { Machine } from "../stream/transducer.ts"
import type { CallBegun, CallOver, Ending, ReplyPart } from "./ReplyPart.ts"

/** How one reply is finished. */
export interface FinishOptions {
  /** Calls written at the end of the reasoning of a reply that has neither text nor calls. */
  readonly reasoningCalls: ((reasoning: string) => ReadonlyArray<SieveEvent>) | undefined
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
export interface FinishMachine extends Machine<ReplyPart, ReplyEvent>, UsageSoFar {
  readonly finished: () => boolean
}

/** Starts the machine for one reply. After it has emitted `Finish` whatever is pushed is dropped. */
export const finishReply = (options: FinishOptions): FinishMachine => {
  let usage: PartialUsage = {}
  const reasoning = new TextPieces()
  /** Text and calls, for the estimate of tokens. */
  const written = new TextPieces()
  /** Something other than blanks was written. */
  let hasInk = false
  let calls = 0
  let current = { id: "", name: "" }
  let cutOff = false
  let finished = false

  const wholeUsage = (): Usage => {
    const reasoningTokens = usage.reasoningTokens ?? estimateTokens(reasoning.toString())
    const completionTokens = usage.completionTokens ?? reasoningTokens + estimateTokens(written.toString())
    return {
      promptTokens: usage.promptTokens ?? options.promptTokens(),
      completionTokens,
      reasoningTokens: Math.min(reasoningTokens, completionTokens),
      cachedTokens: usage.cachedTokens ?? 0
    }
  }
  const finish = (reason: FinishReason, out: Array<ReplyEvent>, stopSequence?: string) => {
    finished = true
    out.push(
      Reply.UsageReported(wholeUsage()),
      Reply.Finish(reason, reason === "stop_sequence" ? stopSequence : undefined)
    )
  }

  const begin = ({ id, name }: Pick<CallBegun, "id" | "name">, out: Array<ReplyEvent>) => {
    if (!options.addCall()) return finish("length", out)
    const index = calls++
    current = { id: id ?? options.callId(index), name }
    written.push(name)
    out.push(Reply.CallStarted(index, current.id, name))
  }
  const grow = (delta: string, out: Array<ReplyEvent>) => {
    written.push(delta)
    out.push(Reply.CallArguments(calls - 1, delta))
  }
  const over = ({ arguments: args, whole }: Pick<CallOver, "arguments" | "whole">, out: Array<ReplyEvent>) => {
    const { id, name } = current
    if (!whole) cutOff = true
    out.push(
      whole ? Reply.CallFinished(calls - 1, id, name, args) : Reply.CallCutOff(calls - 1, id, name, args)
    )
    if (options.singleCall) finish(whole ? "tool_calls" : "length", out)
  }

  /** A reply that is nothing but reasoning may have its calls there. */
  const fromReasoning = (out: Array<ReplyEvent>) => {
    if (calls > 0 || hasInk || reasoning.length === 0 || options.reasoningCalls === undefined) return
    for (const event of options.reasoningCalls(reasoning.toString())) {
      if (finished) return
      if (event._tag === "CallStarted") begin({ id: undefined, name: event.name }, out)
      else if (event._tag === "CallArguments") grow(event.delta, out)
      else if (event._tag === "CallFinished") over({ whole: true, arguments: event.arguments }, out)
    }
  }

  const end = ({ reason, stopSequence }: Ending, out: Array<ReplyEvent>) => {
    if (reason === "content_filter") return finish(reason, out)
    fromReasoning(out)
    if (finished) return
    if (reason === "length") return finish(reason, out)
    // Calls say more than how the text around them ended, and a call that was cut off says most.
    finish(cutOff ? "length" : calls > 0 ? "tool_calls" : reason, out, stopSequence)
  }

  return {
    usage: wholeUsage,
    estimated: () => usage.promptTokens === undefined || usage.completionTokens === undefined,
    promptTold: () => usage.promptTokens !== undefined,
    finished: () => finished,
    push(part, out) {
      if (finished) return
      switch (part._tag) {
        case "Text":
          written.push(part.text)
          hasInk ||= part.text.trim() !== ""
          out.push(Reply.TextDelta(part.text))
          return
        case "Reasoning":
          reasoning.push(part.text)
          if (options.showReasoning) out.push(Reply.ReasoningDelta(part.text))
          return
        case "CallBegun":
          return begin(part, out)
        case "CallGrown":
          return grow(part.delta, out)
        case "CallOver":
          return over(part, out)
        case "UpstreamUsage":
          usage = { ...usage, ...part.usage }
          return
        case "Ending":
          end(part, out)
      }
    },
    end() {}
  }
}
