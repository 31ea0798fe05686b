/**
 * Renders the canonical reply as messages-style frames or as one object (spec "Messages-style stream").
 *
 * Blank text has a block of its own only if the reply has nothing else.
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import { exactArguments, isRecord, type JsonFields } from "../../domain/json.ts"
import type { Reply } from "../../domain/Reply.ts"
import type { FinishReason, ReplyEvent, ReplyExtra, Usage } from "../../domain/ReplyEvent.ts"
import type { FrameRenderer } from "../shared/FrameRenderer.ts"
import { refusalIn } from "../shared/serverExtras.ts"
import { messagesErrors } from "./errors.ts"
import { stopReasons } from "./facts.ts"
import type { Message, MessagesUsage, PageCitation, ReplyBlock } from "./schema.ts"
import { citationsOf, extraText, tierOf } from "./translated.ts"
import { type VendorMessage, vendorMessageOf, vendorStop, vendorUsage } from "./vendorMessage.ts"

type Block = typeof ReplyBlock.Type

/** What the frames of one reply need beside its events. */
export interface MessagesReplyInfo {
  /** `msg_…` */
  readonly id: string
  /** The model's name as requested. */
  readonly model: string
  /** True for the models whose reasoning is rendered. */
  readonly thinking: boolean
  /** Id of the request, for an error within the stream. */
  readonly requestId: string
}

/** `refusal` is the text by which the model refuses; empty without a refusal. */
const stopFields = (reason: FinishReason, stopSequence: string | undefined, refusal: string) => ({
  stop_reason: refusal === "" ? stopReasons[reason] : "refusal" as const,
  stop_sequence: stopSequence ?? null,
  stop_details: refusal === "" && reason !== "content_filter"
    ? null
    : { type: "refusal" as const, category: null, explanation: refusal === "" ? null : refusal },
  container: null
})

/** `input_tokens` excludes the tokens that the upstream read from its cache or wrote to it. */
const counts = (usage: Usage) => ({
  input_tokens: Math.max(0, usage.promptTokens - usage.cachedTokens - (usage.cacheWriteTokens ?? 0)),
  cache_creation_input_tokens: usage.cacheWriteTokens ?? 0,
  cache_read_input_tokens: usage.cachedTokens,
  output_tokens: usage.completionTokens,
  output_tokens_details: { thinking_tokens: usage.reasoningTokens },
  server_tool_use: null
})

type Tier = ReturnType<typeof tierOf>

const messagesUsage = (usage: Usage, tier: Tier): typeof MessagesUsage.Type => ({
  ...counts(usage),
  cache_creation: null,
  inference_geo: null,
  service_tier: tier,
  speed: null
})

/** The counts at the end of a stream, with a tier that was not known at its start. */
const lastCounts = (usage: Usage, tier: Tier) => ({
  ...counts(usage),
  ...(tier === null ? {} : { service_tier: tier })
})

const textBlock = (text: string, citations: ReadonlyArray<typeof PageCitation.Type> | null = null): Block => ({
  type: "text",
  text,
  citations
})
const thinkingBlock = (thinking: string): Block => ({ type: "thinking", thinking, signature: "" })
const toolUseBlock = (
  id: string,
  name: string,
  input: Extract<Block, { type: "tool_use" }>["input"],
  own: JsonFields | undefined
): Block => ({ type: "tool_use", id, name, input, caller: { type: "direct" }, ...own })

/** A block as the server sent it: its contract has more kinds than the gateway's. */
const asBlock = (block: JsonFields): Block => block as Block

const isBlank = (text: string): boolean => text.trim() === ""

const isBlankText = (block: Block): boolean => block.type === "text" && isBlank(block.text)

/** The blocks of a whole reply. Hidden reasoning does not split the text around it. */
const contentOf = (reply: Reply, thinking: boolean, own: VendorMessage | undefined): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let isAfterHidden = false
  for (const block of reply.blocks) {
    switch (block._tag) {
      case "Text": {
        const before = isAfterHidden && blocks.at(-1)?.type === "text" ? blocks.pop() : undefined
        blocks.push(textBlock((before?.type === "text" ? before.text : "") + block.text))
        break
      }
      case "Call":
        blocks.push(
          toolUseBlock(
            block.id,
            block.name,
            exactArguments(block.arguments),
            own === undefined ? undefined : block.sealed
          )
        )
        break
      case "Reasoning":
        if (thinking) blocks.push(thinkingBlock(block.text))
        break
      case "Extra":
        if (block.family === "messages") addOwn(block.value, blocks)
    }
    isAfterHidden = block._tag === "Reasoning" && !thinking
  }
  if (own !== undefined) return blocks
  const text = extraText(reply.extras?.message)
  if (text !== "") blocks.push(textBlock(text))
  const notBlank = blocks.filter((block) => !isBlankText(block))
  return withCitations(notBlank.length > 0 ? notBlank : blocks, citationsOf(reply.extras?.message))
}

/** The blocks with citations at the last text, or in a text of their own. */
const withCitations = (
  blocks: ReadonlyArray<Block>,
  citations: ReadonlyArray<typeof PageCitation.Type>
): ReadonlyArray<Block> => {
  if (citations.length === 0) return blocks
  const index = blocks.findLastIndex(({ type }) => type === "text")
  const last = blocks[index]
  const cited = textBlock(last?.type === "text" ? last.text : "", citations)
  return index === -1 ? [...blocks, cited] : blocks.with(index, cited)
}

/** Adds a block in the server's words: the end of the last text or thinking, or another one. */
const addOwn = (value: JsonFields, blocks: Array<Block>): void => {
  const last = blocks.at(-1)
  const continues = value["type"] === "text" ||
    (value["type"] === "thinking" && last?.type === "thinking" && !last.signature)
  if (!continues) blocks.push(asBlock(value))
  else if (last?.type === value["type"]) blocks.splice(-1, 1, asBlock({ ...last, ...value }))
}

/** Renders a reply that is not streamed. */
export const messageObject = (info: MessagesReplyInfo, reply: Reply): typeof Message.Type => {
  const own = vendorMessageOf(reply)
  const stop = stopFields(reply.finish, reply.stopSequence, refusalIn(reply.extras?.message))
  return {
    id: info.id,
    type: "message",
    role: "assistant",
    model: info.model,
    content: contentOf(reply, info.thinking || own !== undefined, own),
    ...stop,
    ...vendorStop(own?.end, stop.stop_reason),
    diagnostics: null,
    ...own?.message,
    usage: vendorUsage(messagesUsage(reply.usage, tierOf(reply.extras?.chunk)), own?.usage, reply.usage)
  }
}

const frame = (event: string, data: string): string => `event: ${event}\ndata: ${data}\n\n`

/** Renders a failure within the stream. */
export const messagesFailure = (requestId: string) => (error: GatewayError): string =>
  frame("error", messagesErrors.text(error, requestId))

const promptUsage = (promptTokens: number): Usage => ({
  promptTokens,
  completionTokens: 0,
  reasoningTokens: 0,
  cachedTokens: 0
})

const messageStart = (info: MessagesReplyInfo, inputTokens: number, own: VendorStream, tier: Tier): string => {
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
    ...own.message,
    usage: own.usage === undefined
      ? { ...messagesUsage(promptUsage(inputTokens), tier), output_tokens_details: null }
      : { input_tokens: inputTokens, output_tokens: 0, ...own.usage } as typeof MessagesUsage.Type
  }
  return frame("message_start", JSON.stringify({ type: "message_start", message }))
}

const comment = ": keep-alive\n\n"
const ping = frame("ping", `{"type":"ping"}`)
const messageStop = frame("message_stop", `{"type":"message_stop"}`)

/** What a messages server says beside the events: of the whole message, of its end, and of its token counts. */
interface VendorStream {
  message: JsonFields | undefined
  end: JsonFields | undefined
  usage: JsonFields | undefined
}

/** The field that each type of delta grows. */
const deltaFields = { text_delta: "text", thinking_delta: "thinking", input_json_delta: "partial_json" } as const

/** Starts the renderer of one streamed reply. `inputTokens` is an estimate; the last frames have the upstream's count. */
export const messagesFrames = (info: MessagesReplyInfo, inputTokens: number): FrameRenderer => {
  let started = false
  let index = -1
  let open: Block["type"] | undefined
  /** Blank text between blocks, rendered only together with text that follows it. */
  let blank = ""
  let usage = promptUsage(inputTokens)
  /** The text by which the model refuses. */
  let refusal = ""
  let tier: Tier = null
  /** The tier comes from the first frame. */
  let isTierSaid = false
  /** Citations that wait for a text. */
  const waiting: Array<typeof PageCitation.Type> = []
  const own: VendorStream = { message: undefined, end: undefined, usage: undefined }
  /** The token counts of the first frame. */
  let first: JsonFields | undefined
  /** The upstream speaks this contract. */
  let isOwn = false

  const closeBlock = (out: Array<string>) => {
    if (open === undefined) return
    open = undefined
    out.push(frame("content_block_stop", `{"type":"content_block_stop","index":${index}}`))
  }
  const openBlock = (block: Block | JsonFields, out: Array<string>) => {
    closeBlock(out)
    open = block.type as Block["type"]
    index++
    blank = ""
    const content = JSON.stringify(block)
    out.push(
      frame("content_block_start", `{"type":"content_block_start","index":${index},"content_block":${content}}`)
    )
  }
  const grow = (type: keyof typeof deltaFields, text: string, out: Array<string>) => {
    const delta = `{"type":"${type}","${deltaFields[type]}":${JSON.stringify(text)}}`
    out.push(frame("content_block_delta", `{"type":"content_block_delta","index":${index},"delta":${delta}}`))
  }
  const delta = (delta: JsonFields, out: Array<string>) =>
    out.push(
      frame(
        "content_block_delta",
        `{"type":"content_block_delta","index":${index},"delta":${JSON.stringify(delta)}}`
      )
    )
  /** Adds citations to the open text; others wait for the next text. */
  const cite = (citations: ReadonlyArray<typeof PageCitation.Type>, out: Array<string>) => {
    for (const citation of citations) {
      if (open === "text") delta({ type: "citations_delta", citation }, out)
      else waiting.push(citation)
    }
  }
  const openText = (text: string, out: Array<string>) => {
    openBlock(textBlock(""), out)
    if (text !== "") grow("text_delta", text, out)
    if (waiting.length > 0) cite(waiting.splice(0), out)
  }
  const text = (text: string, out: Array<string>) => {
    if (open === "text") grow("text_delta", text, out)
    else if (isBlank(text) && !isOwn) blank += text
    else openText(blank + text, out)
  }
  /** A block in the server's words: the end of the open text or thinking, or another one. */
  const ownBlock = (value: JsonFields, out: Array<string>) => {
    const { citations, input, signature, type } = value
    if (type === "text") {
      if (open !== "text") return
      if (Array.isArray(citations)) {
        for (const citation of citations) delta({ type: "citations_delta", citation }, out)
      }
    } else if (type === "thinking") {
      if (open !== "thinking") openBlock({ ...value, thinking: "", signature: "" }, out)
      if (typeof signature === "string") delta({ type: "signature_delta", signature }, out)
    } else {
      openBlock(isRecord(input) ? { ...value, input: {} } : value, out)
      if (isRecord(input)) delta({ type: "input_json_delta", partial_json: JSON.stringify(input) }, out)
    }
    closeBlock(out)
  }
  const addVendorFields = ({ at, value }: ReplyExtra) => {
    if (at === "chunk") own.message = { ...own.message, ...value }
    else if (at === "choice") own.end = { ...own.end, ...value }
    else if (at === "usage") own.usage = { ...own.usage, ...value }
  }

  return {
    // The vendor's clients accept no event before `message_start`.
    keepAlive: () => started ? ping : comment,
    failure: messagesFailure(info.requestId),
    frames: {
      push(event: ReplyEvent, out) {
        if (event._tag === "ReplyExtra" && event.family === "messages") {
          isOwn = true
          if (event.at !== "reasoning" && event.at !== "block") return addVendorFields(event)
        }
        if (event._tag === "ReplyExtra" && event.family === "openai" && event.at === "chunk") {
          tier ??= tierOf(event.value)
          return
        }
        if (!started) {
          started = true
          out.push(messageStart(info, inputTokens, own, tier))
          isTierSaid = tier !== null
          first = own.usage
          own.message = undefined
          own.usage = undefined
        }
        switch (event._tag) {
          case "TextDelta":
            text(event.text, out)
            return
          case "ReplyExtra": {
            if (event.family === "messages") return ownBlock(event.value, out)
            if (event.at !== "message" || event.family !== "openai") return
            refusal += refusalIn(event.value)
            if (isOwn) return
            const shown = extraText(event.value)
            if (shown !== "") text(shown, out)
            return cite(citationsOf(event.value), out)
          }
          case "ReasoningDelta":
            if (!info.thinking && !isOwn) return
            if (open !== "thinking") openBlock(thinkingBlock(""), out)
            grow("thinking_delta", event.text, out)
            return
          case "CallStarted":
            openBlock(toolUseBlock(event.id, event.name, {}, isOwn ? event.sealed : undefined), out)
            return
          case "CallArguments":
            grow("input_json_delta", event.delta, out)
            return
          case "CallFinished":
          case "CallCutOff":
            closeBlock(out)
            return
          case "UsageReported":
            usage = event.usage
            return
          case "Finish": {
            if ((index === -1 && blank !== "") || waiting.length > 0) openText(index === -1 ? blank : "", out)
            closeBlock(out)
            const stop = stopFields(event.reason, event.stopSequence, refusal)
            const last = {
              type: "message_delta",
              delta: { ...stop, ...vendorStop(own.end, stop.stop_reason) },
              usage: vendorUsage(lastCounts(usage, isTierSaid ? null : tier), own.usage ?? first, usage),
              ...own.message
            }
            out.push(frame("message_delta", JSON.stringify(last)), messageStop)
          }
        }
      },
      end() {}
    }
  }
}
