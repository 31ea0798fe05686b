/**
 * Renders the canonical reply as chat-completions frames or as one object (spec "Chat-completions stream").
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import { type Reply, replyCalls, replyReasoning, replyText } from "../../domain/Reply.ts"
import type { FinishReason, ReplyEvent, Usage } from "../../domain/ReplyEvent.ts"
import { openaiErrors } from "../../http/errorShapes.ts"
import type { FrameRenderer } from "../../http/FrameRenderer.ts"
import type { ChatCompletion, ChatUsage } from "./Api.ts"

/** Fields that all frames of one reply repeat. */
export interface ChatReplyInfo {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  /** The model's name as requested. */
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

/** Renders a reply that is not streamed. */
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

/** Renders a failure within the stream; the stream ends with it. */
export const chatFailure = (error: GatewayError): string => `data: ${openaiErrors.text(error)}\n\n${done}`

/** Starts the renderer of one streamed reply. `includeUsage` adds the usage chunk of `stream_options.include_usage`. */
export const chatFrames = (info: ChatReplyInfo, includeUsage: boolean): FrameRenderer => {
  const head = `{"id":${JSON.stringify(info.id)},"object":"chat.completion.chunk","created":${info.created},"model":${
    JSON.stringify(info.model)
  }`
  const deltaHead = `data: ${head},"choices":[{"index":0,"delta":{`
  const deltaTail = `},"logprobs":null,"finish_reason":null}]}\n\n`
  const delta = (fields: string): string => `${deltaHead}${fields}${deltaTail}`
  let started = false
  /** True after the first text or call; a reply without either has empty content. */
  let hasContent = false
  let usage = ""
  return {
    keepAlive: () => ": keep-alive\n\n",
    failure: chatFailure,
    frames: {
      push(event: ReplyEvent, out) {
        if (!started) {
          started = true
          out.push(delta(`"role":"assistant"`))
        }
        switch (event._tag) {
          case "TextDelta":
            hasContent = true
            out.push(delta(`"content":${JSON.stringify(event.text)}`))
            return
          case "ReasoningDelta":
            out.push(delta(`"reasoning_content":${JSON.stringify(event.text)}`))
            return
          case "CallStarted": {
            hasContent = true
            const { id, index, name } = event
            out.push(
              delta(
                `"tool_calls":[{"index":${index},"id":${JSON.stringify(id)},"type":"function","function":{"name":${
                  JSON.stringify(name)
                },"arguments":""}}]`
              )
            )
            return
          }
          case "CallArguments":
            out.push(
              delta(`"tool_calls":[{"index":${event.index},"function":{"arguments":${JSON.stringify(event.delta)}}}]`)
            )
            return
          case "UsageReported":
            usage = `,"usage":${JSON.stringify(chatUsage(event.usage))}`
            return
          case "Finish": {
            if (!hasContent) out.push(delta(`"content":""`))
            const reason = finishReasons[event.reason]
            out.push(`${deltaHead}},"logprobs":null,"finish_reason":"${reason}"}]${usage}}\n\n`)
            if (includeUsage) out.push(`data: ${head},"choices":[]${usage}}\n\n`)
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
