/**
 * Renders the canonical reply as content-generation chunks or as one object (spec "Content-generation stream").
 *
 * A call is rendered once it is complete; a call that was cut off is left out.
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import { exactArguments, type JsonFields } from "../../domain/json.ts"
import type { Reply } from "../../domain/Reply.ts"
import type { FinishReason, ReplyEvent, Usage } from "../../domain/ReplyEvent.ts"
import { signatureOf } from "../../domain/sealed.ts"
import { generateErrors } from "../../http/errorShapes.ts"
import type { FrameRenderer } from "../../http/FrameRenderer.ts"
import { imagesIn, refusalIn, transcriptIn } from "../shared/serverExtras.ts"
import type { GenerateResponse, ReplyPart, UsageMetadata } from "./Api.ts"

/** What the chunks of one reply need beside its events. */
export interface GenerateReplyInfo {
  readonly id: string
  /** The model's name as requested. */
  readonly model: string
  /** True when reasoning is rendered, as thoughts. */
  readonly thoughts: boolean
}

const finishReasons = {
  stop: "STOP",
  stop_sequence: "STOP",
  tool_calls: "STOP",
  length: "MAX_TOKENS",
  content_filter: "SAFETY"
} as const satisfies Record<FinishReason, string>

/** `candidatesTokenCount` excludes the tokens of the thoughts. */
const usageMetadata = (usage: Usage): typeof UsageMetadata.Type => ({
  promptTokenCount: usage.promptTokens,
  candidatesTokenCount: usage.completionTokens - usage.reasoningTokens,
  totalTokenCount: usage.promptTokens + usage.completionTokens,
  thoughtsTokenCount: usage.reasoningTokens,
  cachedContentTokenCount: usage.cachedTokens
})

const callPart = (
  call: {
    readonly id: string
    readonly name: string
    readonly arguments: string
    readonly sealed?: JsonFields | undefined
  }
) => {
  const signature = signatureOf(call.sealed)
  return {
    functionCall: { id: call.id, name: call.name, args: exactArguments(call.arguments) },
    ...(signature === undefined ? {} : { thoughtSignature: signature })
  }
}

/** What of a server's extra fields the style has parts for. */
const extraParts = (message: JsonFields | undefined): ReadonlyArray<typeof ReplyPart.Type> => {
  const text = refusalIn(message) + transcriptIn(message)
  const images = imagesIn(message).map((image) =>
    "url" in image
      ? { fileData: { fileUri: image.url } }
      : { inlineData: { mimeType: image.mediaType, data: image.data } }
  )
  return text === "" ? images : [{ text }, ...images]
}

/** The part of a reply without content: clients expect at least one part. */
const emptyPart = { text: "" }

const partsOf = (reply: Reply, thoughts: boolean): ReadonlyArray<typeof ReplyPart.Type> => {
  const parts: Array<typeof ReplyPart.Type> = []
  for (const block of reply.blocks) {
    if (block._tag === "Call") parts.push(callPart(block))
    else if (block._tag === "Text") parts.push({ text: block.text })
    else if (block._tag === "Reasoning" && thoughts) parts.push({ text: block.text, thought: true })
  }
  for (const part of extraParts(reply.extras?.message)) parts.push(part)
  return parts.length === 0 ? [emptyPart] : parts
}

/** Renders a reply that is not streamed. */
export const generateResponse = (info: GenerateReplyInfo, reply: Reply): typeof GenerateResponse.Type => {
  const refusal = refusalIn(reply.extras?.message)
  return {
    candidates: [{
      content: { role: "model", parts: partsOf(reply, info.thoughts) },
      finishReason: refusal === "" ? finishReasons[reply.finish] : "SAFETY",
      index: 0,
      ...(refusal === "" ? {} : { finishMessage: refusal })
    }],
    usageMetadata: usageMetadata(reply.usage),
    modelVersion: info.model,
    responseId: info.id
  }
}

/** Renders a failure within the stream. */
export const generateFailure = (error: GatewayError): string => `data: ${generateErrors.text(error)}\n\n`

/** Starts the renderer of one streamed reply. */
export const generateFrames = (info: GenerateReplyInfo): FrameRenderer => {
  const tail = `"modelVersion":${JSON.stringify(info.model)},"responseId":${JSON.stringify(info.id)}}\n\n`
  const open = `data: {"candidates":[{"content":{"role":"model","parts":[`
  const chunk = (part: typeof ReplyPart.Type): string => `${open}${JSON.stringify(part)}]},"index":0}],${tail}`
  let usage = ""
  /** The text by which the model refuses. */
  let refusal = ""
  return {
    keepAlive: () => ": keep-alive\n\n",
    failure: generateFailure,
    frames: {
      push(event: ReplyEvent, out) {
        switch (event._tag) {
          case "TextDelta":
            out.push(chunk({ text: event.text }))
            return
          case "ReasoningDelta":
            if (info.thoughts) out.push(chunk({ text: event.text, thought: true }))
            return
          case "CallFinished":
            out.push(chunk(callPart(event)))
            return
          case "ReplyExtra":
            if (event.at !== "message" || event.family !== "openai") return
            refusal += refusalIn(event.value)
            for (const part of extraParts(event.value)) out.push(chunk(part))
            return
          case "UsageReported":
            usage = `"usageMetadata":${JSON.stringify(usageMetadata(event.usage))},`
            return
          case "Finish": {
            const reason = refusal === "" ? finishReasons[event.reason] : "SAFETY"
            const message = refusal === "" ? "" : `,"finishMessage":${JSON.stringify(refusal)}`
            out.push(
              `${open}${JSON.stringify(emptyPart)}]},"finishReason":"${reason}","index":0${message}}],${usage}${tail}`
            )
            return
          }
          case "CallStarted":
          case "CallArguments":
          case "CallCutOff":
        }
      },
      end() {}
    }
  }
}
