/**
 * A driver for any `LanguageModel` of `effect/ai`.
 *
 * The interface has no sampling fields, so the sampling fields of a request are ignored.
 */
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import {
  type Conversation,
  type ToolChoice,
  toolChoiceWords,
  type ToolDeclaration,
  toolsEnabled
} from "../domain/Conversation.ts"
import {
  UpstreamCall,
  type UpstreamEvent,
  UpstreamFinish,
  UpstreamReasoning,
  UpstreamText,
  UpstreamUsage
} from "../domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { UpstreamModel } from "../domain/UpstreamModel.ts"
import { makeDriver } from "../upstream/makeDriver.ts"
import type { Driver } from "../upstream/Upstream.ts"
import type { Upstreams } from "../upstream/Upstreams.ts"
import { fixedUpstream } from "./driver.ts"
import { promptOf } from "./promptOf.ts"

/** Options of the driver. */
export interface LanguageModelDriverOptions {
  /** Returns the `LanguageModel` that serves a model of the gateway. */
  readonly select: (model: UpstreamModel) => LanguageModel.LanguageModel
  /** Models beside the native ones. Callers may request the models in `upstream.models` of the configuration. */
  readonly models?: ReadonlyArray<UpstreamModel> | undefined
}

const factsOf = (reason: AiError.AiErrorReason): Partial<ConstructorParameters<typeof UpstreamFailure>[0]> => {
  switch (reason._tag) {
    case "RateLimitError":
      return {
        status: 429,
        ...(reason.retryAfter === undefined ? {} : { retryAfter: Duration.toSeconds(reason.retryAfter) })
      }
    case "QuotaExhaustedError":
      return { status: 429 }
    case "AuthenticationError":
      return { status: reason.kind === "InsufficientPermissions" ? 403 : 401 }
    case "InvalidRequestError":
    case "UnsupportedSchemaError":
    case "ToolConfigurationError":
      return { status: 400 }
    case "ContentPolicyError":
      return { kind: "withdrawn" }
    case "NetworkError":
      return { kind: "transport" }
    case "InvalidResponseError":
    case "InvalidOutputError":
      return { kind: "malformed" }
    default:
      return { status: 503 }
  }
}

const failureOf = (error: AiError.AiError, phase: "completion" | "stream"): UpstreamFailure =>
  new UpstreamFailure({ phase, kind: "refused", message: error.reason.message, ...factsOf(error.reason) })

const toolOf = ({ description, name, parameters }: ToolDeclaration) =>
  Tool.dynamic(name, { description, parameters: parameters ?? { type: "object" } })

const choiceOf = (choice: ToolChoice) =>
  choice._tag === "Function" ? { tool: choice.name } : toolChoiceWords[choice._tag]

/** Tool calls go to the caller: they are neither run nor checked here. */
const partsOf = (model: LanguageModel.LanguageModel, conversation: Conversation) => {
  const prompt = promptOf(conversation)
  const unresolved = { disableToolCallResolution: true, toolCallValidation: "deferred" } as const
  if (!toolsEnabled(conversation)) return model.streamText({ prompt, ...unresolved })
  return model.streamText({
    prompt,
    toolkit: Toolkit.make(...conversation.tools.map(toolOf)),
    toolChoice: choiceOf(conversation.toolChoice),
    ...unresolved
  })
}

const finishReasons: Readonly<Record<Response.FinishReason, UpstreamFinish["reason"] | undefined>> = {
  stop: "stop",
  length: "length",
  "content-filter": "content_filter",
  "tool-calls": "tool_calls",
  other: "length",
  pause: "length",
  unknown: "length",
  error: undefined
}

/** Reasons that leave open whether the reply is whole. */
const unnamed: ReadonlySet<Response.FinishReason> = new Set(["other", "unknown"])

const usageOf = ({ inputTokens, outputTokens }: Response.Usage): UpstreamUsage =>
  UpstreamUsage({
    promptTokens: inputTokens.total,
    cachedTokens: inputTokens.cacheRead,
    completionTokens: outputTokens.total,
    reasoningTokens: outputTokens.reasoning
  })

/** A call whose arguments arrive in pieces. */
interface OpenCall {
  readonly index: number
  hasArguments: boolean
}

/** The number of calls so far, and the open calls by id. A later call may reuse the id of a closed one. */
interface Calls {
  count: number
  readonly open: Map<string, OpenCall>
}

type Part = Response.StreamPart<Record<string, Tool.Any>, "deferred">

const broken = (message: string) => new UpstreamFailure({ phase: "stream", kind: "malformed", message })

const argumentsOf = (params: unknown): string => JSON.stringify(params ?? {})

const eventsOf = (calls: Calls, part: Part): ReadonlyArray<UpstreamEvent> | UpstreamFailure => {
  switch (part.type) {
    case "text-delta":
      return [UpstreamText(part.delta)]
    case "reasoning-delta":
      return [UpstreamReasoning(part.delta)]
    case "tool-params-start": {
      if (part.providerExecuted) return []
      const index = calls.count++
      calls.open.set(part.id, { index, hasArguments: false })
      return [UpstreamCall(index, part.id, part.name, "")]
    }
    case "tool-params-delta": {
      const call = calls.open.get(part.id)
      if (call === undefined) return []
      call.hasArguments ||= part.delta !== ""
      return [UpstreamCall(call.index, undefined, undefined, part.delta)]
    }
    case "tool-call": {
      if (part.providerExecuted) return []
      const call = calls.open.get(part.id)
      calls.open.delete(part.id)
      if (call === undefined) return [UpstreamCall(calls.count++, part.id, part.name, argumentsOf(part.params))]
      // The part repeats the whole call; it counts when no pieces of the arguments came before.
      return call.hasArguments ? [] : [UpstreamCall(call.index, undefined, undefined, argumentsOf(part.params))]
    }
    case "error":
      return broken("The language model reported an error")
    case "finish": {
      const reason = finishReasons[part.reason]
      if (reason === undefined) return broken("The language model ended with an error")
      return [
        usageOf(part.usage),
        UpstreamFinish(reason, undefined, unnamed.has(part.reason) ? part.reason : undefined)
      ]
    }
    default:
      return []
  }
}

/** Makes a driver whose answers come from `LanguageModel`s of the app. */
export const makeLanguageModelDriver = ({ models = [], select }: LanguageModelDriverOptions): Driver =>
  makeDriver({
    name: "language-model",
    models,
    complete: ({ conversation, model }) =>
      Effect.sync(() => {
        let begun = false
        let finished = false
        const events = partsOf(select(model), conversation).pipe(
          Stream.mapError((error) => failureOf(error, begun ? "stream" : "completion")),
          Stream.mapAccumArrayEffect(
            (): Calls => ({ count: 0, open: new Map() }),
            (calls, parts): Effect.Effect<readonly [Calls, ReadonlyArray<UpstreamEvent>], UpstreamFailure> => {
              begun = true
              const events: Array<UpstreamEvent> = []
              for (const part of parts) {
                const made = eventsOf(calls, part)
                if (made instanceof UpstreamFailure) return Effect.fail(made)
                events.push(...made)
                finished ||= part.type === "finish"
              }
              return Effect.succeed([calls, events])
            }
          ),
          Stream.concat(
            Stream.suspend(() =>
              finished ? Stream.empty : Stream.fail(new UpstreamFailure({ phase: "stream", kind: "truncated" }))
            )
          )
        )
        return { id: `chatcmpl-${crypto.randomUUID()}`, sessionId: undefined, events }
      })
  })

/** The app's `LanguageModel` as the upstream of all models. */
export const languageModelUpstream: Layer.Layer<Upstreams, never, LanguageModel.LanguageModel> = Layer.unwrap(
  Effect.map(LanguageModel.LanguageModel, (model) => fixedUpstream(makeLanguageModelDriver({ select: () => model })))
)
