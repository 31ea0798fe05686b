/**
 * The span of an attempt, from the lease to the end of the reply, by OpenTelemetry's GenAI conventions. It contains messages only
 * if `telemetry.capture_content` is on.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import type { Conversation, Part } from "../domain/Conversation.ts"
import type { Model } from "../domain/models.ts"
import { foldReply, type ReplyBlock } from "../domain/Reply.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { type AnsweringTarget, targetOf } from "./RequestStats.ts"

/** The span of a running attempt. */
export interface AttemptSpan {
  /** Makes the spans of an effect children of this span. */
  readonly inSpan: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Records events of the reply. */
  readonly events: (events: ReadonlyArray<ReplyEvent>) => void
  /** Records the error code of a failed attempt. */
  readonly failed: (code: string) => void
}

const partOf = (part: Part): object => {
  switch (part._tag) {
    case "Text":
      return { type: "text", content: part.text }
    case "Reasoning":
      return { type: "reasoning", content: part.text }
    case "Call":
      return { type: "tool_call", id: part.id, name: part.name, arguments: part.arguments }
    case "Result":
      return { type: "tool_call_response", id: part.callId, response: part.content.map(partOf) }
    case "Image":
      return { type: "blob", modality: "image" }
    case "File":
      return { type: "blob", modality: part.kind }
  }
}

const blockOf = (block: ReplyBlock): object => {
  switch (block._tag) {
    case "Call":
      return { type: "tool_call", id: block.id, name: block.name, arguments: block.arguments }
    case "Extra":
      return { type: block.at === "reasoning" ? "reasoning" : "other", content: "" }
    default:
      return { type: block._tag === "Text" ? "text" : "reasoning", content: block.text }
  }
}

const input = ({ turns }: Conversation): string =>
  JSON.stringify(turns.map(({ parts, role }) => ({ role, parts: parts.map(partOf) })))

/** Characters of the declarations of tools from which on only names remain. */
const mostDeclared = 32_768

/** The declared tools as one attribute, so that many tools take the place of no other attribute. */
const toolDefinitions = ({ tools }: Conversation): string | undefined => {
  if (tools.length === 0) return undefined
  const named = tools.map(({ name }) => ({ type: "function", name }))
  const whole = JSON.stringify(
    tools.map(({ description, parameters }, i) => ({ ...named[i], description, parameters }))
  )
  return whole.length > mostDeclared ? JSON.stringify(named).slice(0, mostDeclared) : whole
}

/** Attributes of a new span. */
interface AttemptFacts {
  readonly model: Model
  readonly conversation: Conversation
  /** By the conventions. */
  readonly provider: string
  readonly accountHash: string | undefined
  /** Absent in a configuration of one upstream. */
  readonly target: AnsweringTarget | undefined
  /** Counted from 1. */
  readonly attempt: number
  readonly captureContent: boolean
}

/** Starts the span of an attempt; it ends with the scope. */
export const attemptSpan = Effect.fnUntraced(
  function*(facts: AttemptFacts): Effect.fn.Return<AttemptSpan, never, Scope.Scope> {
    const { conversation, model } = facts
    const { sampling } = conversation
    const span = yield* Effect.makeSpanScoped(`chat ${model.id}`, {
      kind: "client",
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": facts.provider,
        "gen_ai.request.model": model.id,
        "gateway.attempt": facts.attempt
      }
    })
    const note = (name: string, value: unknown) => {
      if (value !== undefined) span.attribute(name, value)
    }
    note("gateway.account", facts.accountHash)
    note("gateway.upstream", facts.target?.upstream)
    note("gateway.target", targetOf(facts))
    note("gen_ai.request.temperature", sampling.temperature)
    note("gen_ai.request.top_p", sampling.topP)
    note("gen_ai.request.max_tokens", sampling.maxTokens ?? sampling.maxCompletionTokens)
    if (facts.captureContent) {
      note("gen_ai.input.messages", input(conversation))
      note("gen_ai.tool.definitions", toolDefinitions(conversation))
    }
    const fold = facts.captureContent ? foldReply() : undefined
    return {
      inSpan: (effect) => Effect.provideService(effect, Tracer.ParentSpan, span),
      failed: (code) => note("error.type", code),
      events: (events) => {
        for (const event of events) {
          fold?.push(event)
          if (event._tag === "UsageReported") {
            note("gen_ai.usage.input_tokens", event.usage.promptTokens)
            note("gen_ai.usage.output_tokens", event.usage.completionTokens)
          } else if (event._tag === "Finish") {
            note("gen_ai.response.finish_reasons", [event.reason])
            if (fold === undefined) continue
            const { blocks, finish } = fold.reply()
            const message = { role: "assistant", parts: blocks.map(blockOf), finish_reason: finish }
            note("gen_ai.output.messages", JSON.stringify([message]))
          }
        }
      }
    }
  }
)
