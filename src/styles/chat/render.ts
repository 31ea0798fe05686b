/**
 * From the canonical reply to chat-completions frames and objects (spec "Chat-completions stream").
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import type { Reply } from "../../domain/Reply.ts"
import { replyCalls, replyReasoning, replyText } from "../../domain/Reply.ts"
import type { FinishReason, ReplyEvent, Usage } from "../../domain/ReplyEvent.ts"
import { openaiErrors } from "../../http/errorShapes.ts"
import type { FrameRenderer } from "../../http/FrameRenderer.ts"
import type { ChatCompletion, ChatUsage } from "./Api.ts"

/** What the frames of one reply have in common. */
export interface ChatReplyInfo {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  /** The name that was asked for. */
  readonly model: string
}

const finishReasons = {
  stop: "stop",
  stop_sequence: "stop",
  tool_calls: "tool_calls",
  length: "length",
  content_filter: "content_filter"
} as const satisfies Record<FinishReason, string>

const chatUsage = (usage: Usage): typeof ChatUsage.Type => ({
  prompt_tokens: usage.promptTokens,
  completion_tokens: usage.completionTokens,
  total_tokens: usage.promptTokens + usage.completionTokens,
  prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  completion_tokens_details: { reasoning_tokens: usage.reasoningTokens }
})

/** The object of a reply that is not streamed. */
export const chatCompletion = (info: ChatReplyInfo, reply: Reply): typeof ChatCompletion.Type => {
  const calls = replyCalls(reply)
  const reasoning = replyReasoning(reply)
  return {
    id: info.id,
    object: "chat.completion",
    created: info.created,
    model: info.model,
    choices: [{
      index: 0,
      message: {
        role: "assistant",
        content: calls.length > 0 ? null : replyText(reply),
        refusal: null,
        annotations: [],
        ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
        ...(calls.length === 0 ? {} : {
          tool_calls: calls.map((call) => ({
            id: call.id,
            type: "function" as const,
            function: { name: call.name, arguments: call.arguments }
          }))
        })
      },
      logprobs: null,
      finish_reason: finishReasons[reply.finish]
    }],
    usage: chatUsage(reply.usage)
  }
}

const done = "data: [DONE]\n\n"

/** The frames of a failure within the stream. */
export const chatFailure = (error: GatewayError): string => `data: ${openaiErrors.text(error)}\n\n${done}`

/** Starts the renderer of one streamed reply. `includeUsage`: the caller wants the usage chunk of its SDK too. */
export const chatFrames = (info: ChatReplyInfo, includeUsage: boolean): FrameRenderer => {
  const head = `{"id":${JSON.stringify(info.id)},"object":"chat.completion.chunk","created":${info.created},"model":${
    JSON.stringify(info.model)
  }`
  const open = `data: ${head},"choices":[{"index":0,"delta":{`
  const close = `},"logprobs":null,"finish_reason":null}]}\n\n`
  let begun = false
  /** Text or a call has been shown: without either the reply's content is the empty text. */
  let filled = false
  let usage = ""
  return {
    keepAlive: () => ": keep-alive\n\n",
    failure: chatFailure,
    frames: {
      push(event: ReplyEvent, out) {
        if (!begun) {
          begun = true
          out.push(`${open}"role":"assistant"${close}`)
        }
        switch (event._tag) {
          case "TextDelta":
            filled = true
            out.push(`${open}"content":${JSON.stringify(event.text)}${close}`)
            return
          case "ReasoningDelta":
            out.push(`${open}"reasoning_content":${JSON.stringify(event.text)}${close}`)
            return
          case "CallStarted":
            filled = true
            out.push(
              `${open}"tool_calls":[{"index":${event.index},"id":${
                JSON.stringify(event.id)
              },"type":"function","function":{"name":${JSON.stringify(event.name)},"arguments":""}}]${close}`
            )
            return
          case "CallArguments":
            out.push(
              `${open}"tool_calls":[{"index":${event.index},"function":{"arguments":${
                JSON.stringify(event.delta)
              }}}]${close}`
            )
            return
          case "UsageReported":
            usage = JSON.stringify(chatUsage(event.usage))
            return
          case "Finish": {
            if (!filled) out.push(`${open}"content":""${close}`)
            const counts = usage === "" ? "" : `,"usage":${usage}`
            out.push(`${open}},"logprobs":null,"finish_reason":"${finishReasons[event.reason]}"}]${counts}}\n\n`)
            if (includeUsage) out.push(`data: ${head},"choices":[]${counts}}\n\n`)
            out.push(done)
            return
          }
          case "CallFinished":
          case "CallCutOff":
        }
      },
      end() {}
    }
  }
}
