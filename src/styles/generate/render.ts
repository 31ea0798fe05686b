/**
 * From the canonical reply to content-generation chunks and objects (spec "Content-generation stream").
 *
 * A call is told when it is complete; nothing of one that was cut off is.
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import { exactArguments } from "../../domain/json.ts"
import type { Reply } from "../../domain/Reply.ts"
import type { FinishReason, ReplyEvent, Usage } from "../../domain/ReplyEvent.ts"
import { generateErrors } from "../../http/errorShapes.ts"
import type { FrameRenderer } from "../../http/FrameRenderer.ts"
import type { GenerateResponse, ReplyPart, UsageMetadata } from "./Api.ts"

/** What the chunks of one reply have in common. */
export interface GenerateReplyInfo {
  readonly id: string
  /** The name that was asked for. */
  readonly model: string
  /** Reasoning is shown, as thoughts. */
  readonly thoughts: boolean
}

const finishReasons = {
  stop: "STOP",
  stop_sequence: "STOP",
  tool_calls: "STOP",
  length: "MAX_TOKENS",
  content_filter: "SAFETY"
} as const satisfies Record<FinishReason, string>

/** In this style the candidates' tokens do not include those of the thoughts. */
const usageMetadata = (usage: Usage): typeof UsageMetadata.Type => ({
  promptTokenCount: usage.promptTokens,
  candidatesTokenCount: usage.completionTokens - usage.reasoningTokens,
  totalTokenCount: usage.promptTokens + usage.completionTokens,
  thoughtsTokenCount: usage.reasoningTokens,
  cachedContentTokenCount: usage.cachedTokens
})

const callPart = (call: { readonly id: string; readonly name: string; readonly arguments: string }) => ({
  functionCall: { id: call.id, name: call.name, args: exactArguments(call.arguments) }
})

/** What a reply carries that has nothing to show, so that clients find a part where they look for one. */
const emptyPart = { text: "" }

const partsOf = (reply: Reply, thoughts: boolean): ReadonlyArray<typeof ReplyPart.Type> => {
  const parts: Array<typeof ReplyPart.Type> = []
  for (const block of reply.blocks) {
    if (block._tag === "Call") parts.push(callPart(block))
    else if (block._tag === "Text") parts.push({ text: block.text })
    else if (thoughts) parts.push({ text: block.text, thought: true })
  }
  return parts.length === 0 ? [emptyPart] : parts
}

/** The object of a reply that is not streamed. */
export const generateResponse = (info: GenerateReplyInfo, reply: Reply): typeof GenerateResponse.Type => ({
  candidates: [{
    content: { role: "model", parts: partsOf(reply, info.thoughts) },
    finishReason: finishReasons[reply.finish],
    index: 0
  }],
  usageMetadata: usageMetadata(reply.usage),
  modelVersion: info.model,
  responseId: info.id
})

/** The chunk of a failure within the stream. */
export const generateFailure = (error: GatewayError): string => `data: ${generateErrors.text(error)}\n\n`

/** Starts the renderer of one streamed reply. */
export const generateFrames = (info: GenerateReplyInfo): FrameRenderer => {
  const tail = `"modelVersion":${JSON.stringify(info.model)},"responseId":${JSON.stringify(info.id)}}\n\n`
  const open = `data: {"candidates":[{"content":{"role":"model","parts":[`
  const close = `]},"index":0}],${tail}`
  let usage = ""
  return {
    keepAlive: () => ": keep-alive\n\n",
    failure: generateFailure,
    frames: {
      push(event: ReplyEvent, out) {
        switch (event._tag) {
          case "TextDelta":
            out.push(`${open}{"text":${JSON.stringify(event.text)}}${close}`)
            return
          case "ReasoningDelta":
            if (info.thoughts) out.push(`${open}{"text":${JSON.stringify(event.text)},"thought":true}${close}`)
            return
          case "CallFinished":
            out.push(`${open}${JSON.stringify(callPart(event))}${close}`)
            return
          case "UsageReported":
            usage = `"usageMetadata":${JSON.stringify(usageMetadata(event.usage))},`
            return
          case "Finish":
            out.push(
              `${open}${JSON.stringify(emptyPart)}]},"finishReason":"${
                finishReasons[event.reason]
              }","index":0}],${usage}${tail}`
            )
            return
          case "CallStarted":
          case "CallArguments":
          case "CallCutOff":
        }
      },
      end() {}
    }
  }
}
