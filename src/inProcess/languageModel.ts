/**
 * The gateway's completions as a `LanguageModel` of `effect/ai`.
 */
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Caller } from "../accounts/Accounts.ts"
import { Completion } from "../completion/Completion.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { JsonSchema, StructuredOutput, ToolChoice, ToolDeclaration } from "../domain/Conversation.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { FinishReason, ReplyEvent, Usage } from "../domain/ReplyEvent.ts"
import { transduce } from "../domain/stream/transduce.ts"
import type { Machine } from "../domain/stream/transducer.ts"
import { complete, type InProcessRequest, openReply } from "./complete.ts"
import { turnsOf } from "./turnsOf.ts"

/** The model to request, and the caller. */
export interface LanguageModelOptions extends Pick<InProcessRequest, "sampling" | "stop"> {
  readonly model: string
  readonly caller?: Caller | undefined
}

const declared = (tool: Tool.Any): ToolDeclaration => ({
  name: tool.name,
  description: Tool.getDescription(tool),
  parameters: Tool.getJsonSchema(tool) as JsonSchema,
  strict: Tool.getStrictMode(tool)
})

type SentChoice = LanguageModel.ProviderOptions["toolChoice"]

const choiceOf = (choice: SentChoice): ToolChoice => {
  if (choice === "none") return { _tag: "None" }
  if (choice === "required") return { _tag: "Required" }
  if (choice === "auto") return { _tag: "Auto" }
  if ("tool" in choice) return { _tag: "Function", name: choice.tool }
  return { _tag: choice.mode === "required" ? "Required" : "Auto" }
}

/** True for a function that the choice allows. */
const mayBeCalled = (choice: SentChoice) => (tool: Tool.Any): boolean =>
  !Tool.isProviderDefined(tool) &&
  (typeof choice === "string" || !("oneOf" in choice) || choice.oneOf.includes(tool.name))

const outputOf = (format: LanguageModel.ProviderOptions["responseFormat"]): StructuredOutput | undefined =>
  format.type === "text"
    ? undefined
    : {
      _tag: "JsonSchema",
      name: format.objectName,
      description: undefined,
      schema: Tool.getJsonSchemaFromSchema(format.schema) as JsonSchema,
      strict: true
    }

const requestOf = (options: LanguageModelOptions, asked: LanguageModel.ProviderOptions): InProcessRequest => ({
  ...options,
  prompt: turnsOf(asked.prompt),
  tools: asked.tools.filter(mayBeCalled(asked.toolChoice)).map(declared),
  toolChoice: choiceOf(asked.toolChoice),
  output: outputOf(asked.responseFormat)
})

const reasonOf = (error: GatewayError): AiError.AiErrorReason => {
  const description = error.message
  if (error.code === "content_filter") return new AiError.ContentPolicyError({ description })
  if (error.status === 429) {
    return new AiError.RateLimitError(
      error.retryAfter === undefined ? {} : { retryAfter: Duration.seconds(error.retryAfter) }
    )
  }
  if (error.status >= 500) return new AiError.InternalProviderError({ description })
  return AiError.reasonFromHttpStatus({ status: error.status === 401 ? 401 : 400, description })
}

const failure = (method: string) => (error: GatewayError): AiError.AiError =>
  AiError.make({ module: "ModelGateway", method, reason: reasonOf(error) })

const finishReasons: { readonly [R in FinishReason]: Response.FinishReason } = {
  stop: "stop",
  stop_sequence: "stop",
  tool_calls: "tool-calls",
  length: "length",
  content_filter: "content-filter"
}

const finishPart = (reason: FinishReason, usage: Usage): Response.FinishPartEncoded => ({
  type: "finish",
  reason: finishReasons[reason],
  usage: {
    inputTokens: {
      total: usage.promptTokens,
      cacheRead: usage.cachedTokens,
      uncached: usage.promptTokens - usage.cachedTokens
    },
    outputTokens: {
      total: usage.completionTokens,
      reasoning: usage.reasoningTokens,
      text: usage.completionTokens - usage.reasoningTokens
    }
  }
})

const callPart = (id: string, name: string, args: string): Response.ToolCallPartEncoded => ({
  type: "tool-call",
  id,
  name,
  // A finished call's arguments are a JSON object.
  params: JSON.parse(args)
})

type StreamPart = Response.StreamPartEncoded

/** Renders the parts of a streamed reply; neighbouring deltas of one kind share a part. */
const streamParts = (): Machine<ReplyEvent, StreamPart> => {
  let open: { readonly kind: "text" | "reasoning"; readonly id: string } | undefined
  let parts = 0
  let usage: Usage = { promptTokens: 0, completionTokens: 0, reasoningTokens: 0, cachedTokens: 0 }
  const calls = new Map<number, string>()
  const close = (out: Array<StreamPart>) => {
    if (open !== undefined) out.push({ type: `${open.kind}-end`, id: open.id })
    open = undefined
  }
  const delta = (kind: "text" | "reasoning", text: string, out: Array<StreamPart>) => {
    if (open?.kind !== kind) {
      close(out)
      open = { kind, id: `part_${parts++}` }
      out.push({ type: `${kind}-start`, id: open.id })
    }
    out.push({ type: `${kind}-delta`, id: open.id, delta: text })
  }
  return {
    push(event, out) {
      switch (event._tag) {
        case "ReasoningDelta":
          return delta("reasoning", event.text, out)
        case "TextDelta":
          return delta("text", event.text, out)
        case "CallStarted":
          close(out)
          calls.set(event.index, event.id)
          out.push({ type: "tool-params-start", id: event.id, name: event.name })
          return
        case "CallArguments":
          out.push({ type: "tool-params-delta", id: calls.get(event.index)!, delta: event.delta })
          return
        case "CallFinished":
          out.push({ type: "tool-params-end", id: event.id }, callPart(event.id, event.name, event.arguments))
          return
        case "CallCutOff":
          // Without a `tool-call` part the app does not run the call.
          out.push({ type: "tool-params-end", id: event.id })
          return
        case "UsageReported":
          usage = event.usage
          return
        case "Finish":
          close(out)
          out.push(finishPart(event.reason, usage))
      }
    },
    end: close
  }
}

/** Makes a `LanguageModel` from the completion service of this process. */
export const makeLanguageModel = Effect.fnUntraced(function*(options: LanguageModelOptions) {
  const context = yield* Effect.context<Completion | ConfigStore>()
  const services = Context.pick(Completion, ConfigStore)(context)
  return yield* LanguageModel.make({
    generateText: (asked) =>
      complete(requestOf(options, asked)).pipe(
        Effect.provideContext(services),
        Effect.mapError(failure("generateText")),
        Effect.map(({ blocks, finish, id, usage }): Array<Response.PartEncoded> => [
          { type: "response-metadata", id, modelId: options.model, timestamp: undefined },
          ...blocks.flatMap((block): Array<Response.PartEncoded> => {
            switch (block._tag) {
              case "Reasoning":
                return [{ type: "reasoning", text: block.text }]
              case "Text":
                return [{ type: "text", text: block.text }]
              case "Call":
                return [callPart(block.id, block.name, block.arguments)]
              case "Extra":
                return []
            }
          }),
          finishPart(finish, usage)
        ])
      ),
    streamText: (asked) =>
      Stream.unwrap(Effect.map(openReply(requestOf(options, asked)), ({ events, id }) =>
        Stream.concat(
          Stream.make<[StreamPart]>({ type: "response-metadata", id, modelId: options.model, timestamp: undefined }),
          transduce(streamParts)(events)
        ))).pipe(
          Stream.provideContext(services),
          Stream.mapError(failure("streamText"))
        ),
    supportsSystemMessagesInHistory: Effect.succeed(true)
  })
})

/** The gateway as the `LanguageModel` of an app. `GatewayServices` provides `Completion`; the app provides `ConfigStore`. */
export const languageModel = (
  options: LanguageModelOptions
): Layer.Layer<LanguageModel.LanguageModel, never, Completion | ConfigStore> =>
  Layer.effect(LanguageModel.LanguageModel, makeLanguageModel(options))
