/**
 * From the canonical reply to messages-style frames and objects (spec "Messages-style stream").
 *
 * Both follow one rule for text: blank text makes no block of its own unless the reply has nothing else.
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import { exactArguments } from "../../domain/json.ts"
import type { Reply } from "../../domain/Reply.ts"
import type { FinishReason, ReplyEvent, Usage } from "../../domain/ReplyEvent.ts"
import { messagesErrors } from "../../http/errorShapes.ts"
import type { FrameRenderer } from "../../http/FrameRenderer.ts"
import type { Message, MessagesUsage, ReplyBlock } from "./Api.ts"

type Block = typeof ReplyBlock.Type

/** What the frames of one reply have in common. */
export interface MessagesReplyInfo {
  /** `msg_…` */
  readonly id: string
  /** The name that was asked for. */
  readonly model: string
  /** Reasoning is shown: the model is one of those that the spec names. */
  readonly thinking: boolean
  /** Id of the request, for an error within the stream. */
  readonly requestId: string
}

const stopReasons = {
  stop: "end_turn",
  stop_sequence: "stop_sequence",
  tool_calls: "tool_use",
  length: "max_tokens",
  content_filter: "refusal"
} as const satisfies Record<FinishReason, string>

const refusal = { type: "refusal", category: null, explanation: null } as const

const stopFields = (reason: FinishReason, stopSequence: string | undefined) => ({
  stop_reason: stopReasons[reason],
  stop_sequence: stopSequence ?? null,
  stop_details: reason === "content_filter" ? refusal : null,
  container: null
})

/** Tokens that the upstream served from its cache are no part of `input_tokens` in this style. */
const counts = (usage: Usage) => ({
  input_tokens: Math.max(0, usage.promptTokens - usage.cachedTokens),
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: usage.cachedTokens,
  output_tokens: usage.completionTokens,
  output_tokens_details: { thinking_tokens: usage.reasoningTokens },
  server_tool_use: null
})

const messagesUsage = (usage: Usage): typeof MessagesUsage.Type => ({
  ...counts(usage),
  cache_creation: null,
  inference_geo: null,
  service_tier: null,
  speed: null
})

const textBlock = (text: string): Block => ({ type: "text", text, citations: null })
const thinkingBlock = (thinking: string): Block => ({ type: "thinking", thinking, signature: "" })
const toolUseBlock = (id: string, name: string, input: Extract<Block, { type: "tool_use" }>["input"]): Block => ({
  type: "tool_use",
  id,
  name,
  input,
  caller: { type: "direct" }
})

const isBlank = (text: string): boolean => text.trim() === ""

const isBlankText = (block: Block): boolean => block.type === "text" && isBlank(block.text)

const contentOf = (reply: Reply, thinking: boolean): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let text: string | undefined
  const closeText = () => {
    if (text !== undefined) blocks.push(textBlock(text))
    text = undefined
  }
  let hidden = false
  for (const block of reply.blocks) {
    if (block._tag === "Reasoning" && !thinking) {
      hidden = true
      continue
    }
    // Text goes on where only hidden reasoning came between.
    if (block._tag !== "Text" || !hidden) closeText()
    hidden = false
    if (block._tag === "Text") text = (text ?? "") + block.text
    else if (block._tag === "Reasoning") blocks.push(thinkingBlock(block.text))
    else blocks.push(toolUseBlock(block.id, block.name, exactArguments(block.arguments)))
  }
  closeText()
  const shown = blocks.filter((block) => !isBlankText(block))
  return shown.length > 0 ? shown : blocks
}

/** The object of a reply that is not streamed. */
export const messageObject = (info: MessagesReplyInfo, reply: Reply): typeof Message.Type => ({
  id: info.id,
  type: "message",
  role: "assistant",
  model: info.model,
  content: contentOf(reply, info.thinking),
  ...stopFields(reply.finish, reply.stopSequence),
  diagnostics: null,
  usage: messagesUsage(reply.usage)
})

const frame = (event: string, data: string): string => `event: ${event}\ndata: ${data}\n\n`

/** The frame of a failure within the stream. */
export const messagesFailure = (requestId: string) => (error: GatewayError): string =>
  frame("error", messagesErrors.text(error, requestId))

const messageStart = (info: MessagesReplyInfo, inputTokens: number): string => {
  const message: typeof Message.Type = {
    id: info.id,
    type: "message",
    role: "assistant",
    model: info.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: {
      ...messagesUsage({ promptTokens: inputTokens, completionTokens: 0, reasoningTokens: 0, cachedTokens: 0 }),
      output_tokens_details: null
    }
  }
  return frame("message_start", JSON.stringify({ type: "message_start", message }))
}

const comment = ": keep-alive\n\n"
const ping = frame("ping", `{"type":"ping"}`)
const messageStop = frame("message_stop", `{"type":"message_stop"}`)
const deltaHead = `event: content_block_delta\ndata: {"type":"content_block_delta","index":`

/** Starts the renderer of one streamed reply. `inputTokens`: estimate of the prompt's tokens; the end has the figure. */
export const messagesFrames = (info: MessagesReplyInfo, inputTokens: number): FrameRenderer => {
  let begun = false
  let index = -1
  let open: Block["type"] | undefined
  /** Blank text that becomes part of a block only with the text that follows it. */
  let blank = ""
  let usage: Usage = { promptTokens: inputTokens, completionTokens: 0, reasoningTokens: 0, cachedTokens: 0 }

  const close = (out: Array<string>) => {
    if (open === undefined) return
    open = undefined
    out.push(frame("content_block_stop", `{"type":"content_block_stop","index":${index}}`))
  }
  const start = (block: Block, out: Array<string>) => {
    close(out)
    open = block.type
    index++
    blank = ""
    const content = JSON.stringify(block)
    out.push(
      frame("content_block_start", `{"type":"content_block_start","index":${index},"content_block":${content}}`)
    )
  }
  const text = (piece: string, out: Array<string>) => {
    out.push(`${deltaHead}${index},"delta":{"type":"text_delta","text":${JSON.stringify(piece)}}}\n\n`)
  }
  const startText = (piece: string, out: Array<string>) => {
    start(textBlock(""), out)
    text(piece, out)
  }

  return {
    // The vendor's clients expect nothing before `message_start`.
    keepAlive: () => begun ? ping : comment,
    failure: messagesFailure(info.requestId),
    frames: {
      push(event: ReplyEvent, out) {
        if (!begun) {
          begun = true
          out.push(messageStart(info, inputTokens))
        }
        switch (event._tag) {
          case "TextDelta":
            if (open === "text") text(event.text, out)
            else if (isBlank(event.text)) blank += event.text
            else startText(blank + event.text, out)
            return
          case "ReasoningDelta":
            if (!info.thinking) return
            if (open !== "thinking") start(thinkingBlock(""), out)
            out.push(
              `${deltaHead}${index},"delta":{"type":"thinking_delta","thinking":${JSON.stringify(event.text)}}}\n\n`
            )
            return
          case "CallStarted":
            start(toolUseBlock(event.id, event.name, {}), out)
            return
          case "CallArguments":
            out.push(
              `${deltaHead}${index},"delta":{"type":"input_json_delta","partial_json":${
                JSON.stringify(event.delta)
              }}}\n\n`
            )
            return
          case "CallFinished":
          case "CallCutOff":
            close(out)
            return
          case "UsageReported":
            usage = event.usage
            return
          case "Finish": {
            if (index === -1 && blank !== "") startText(blank, out)
            close(out)
            const delta = JSON.stringify(stopFields(event.reason, event.stopSequence))
            out.push(
              frame(
                "message_delta",
                `{"type":"message_delta","delta":${delta},"usage":${JSON.stringify(counts(usage))}}`
              ),
              messageStop
            )
          }
        }
      },
      end() {}
    }
  }
}
