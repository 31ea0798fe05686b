/**
 * Renders the canonical reply as content-generation chunks or as one object (spec "Content-generation stream").
 *
 * A call is rendered once it is complete; a call that was cut off is left out.
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import { exactArguments, type Json, type JsonFields } from "../../domain/json.ts"
import type { Reply } from "../../domain/Reply.ts"
import type { FinishReason, ReplyEvent, ReplyExtra, Usage } from "../../domain/ReplyEvent.ts"
import { ExtraFold } from "../../domain/replyExtras.ts"
import { signatureOf } from "../../domain/sealed.ts"
import type { FrameRenderer } from "../shared/FrameRenderer.ts"
import { audioDataIn, type Citation, citationsIn, imagesIn, refusalIn, transcriptIn } from "../shared/serverExtras.ts"
import { generateErrors } from "./clientErrors.ts"
import { finishReasons } from "./facts.ts"
import type { GenerateResponse, ReplyPart, UsageMetadata } from "./schema.ts"
import { Base64Pieces, candidateFields, citedFields, countDetails } from "./translated.ts"

type ReplyPartOf = typeof ReplyPart.Type

/** What the chunks of one reply need beside its events. */
export interface GenerateReplyInfo {
  readonly id: string
  /** The model's name as requested. */
  readonly model: string
  /** True when reasoning is rendered, as thoughts. */
  readonly thoughts: boolean
  /** The media type of the reply's audio. */
  readonly audioType: string
}

/** `candidatesTokenCount` excludes the tokens of the thoughts. */
const usageMetadata = (usage: Usage, extra: JsonFields | undefined): typeof UsageMetadata.Type => ({
  promptTokenCount: usage.promptTokens,
  candidatesTokenCount: usage.completionTokens - usage.reasoningTokens,
  totalTokenCount: usage.promptTokens + usage.completionTokens,
  thoughtsTokenCount: usage.reasoningTokens,
  cachedContentTokenCount: usage.cachedTokens,
  ...countDetails(usage, extra)
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

const dataPart = (mimeType: string, data: string): ReadonlyArray<ReplyPartOf> =>
  data === "" ? [] : [{ inlineData: { mimeType, data } }]

/** What of a server's extra fields the style has parts for. `audio` is the data of the message's audio. */
const extraParts = (
  message: JsonFields | undefined,
  { audioType }: GenerateReplyInfo,
  audio: string
): ReadonlyArray<ReplyPartOf> => {
  const text = refusalIn(message) + transcriptIn(message)
  const images = imagesIn(message).flatMap((image): ReadonlyArray<ReplyPartOf> =>
    "url" in image ? [{ fileData: { fileUri: image.url } }] : dataPart(image.mediaType, image.data)
  )
  return [...(text === "" ? [] : [{ text }]), ...dataPart(audioType, audio), ...images]
}

/** The part of a reply without content: clients expect at least one part. */
const emptyPart = { text: "" }

/** True for a part with text alone, which the signature of the part may follow. */
const isPlainText = (part: ReplyPartOf | undefined): part is Extract<ReplyPartOf, { readonly text: string }> =>
  part !== undefined && "text" in part && !("thoughtSignature" in part)

/** Adds a part as the server sent it. One without text belongs to the text before it. */
const addOwnPart = (parts: Array<ReplyPartOf>, own: JsonFields): void => {
  const last = parts.at(-1)
  if (own["text"] === "" && isPlainText(last) && (last.thought === true) === (own["thought"] === true)) {
    parts[parts.length - 1] = { ...own, ...last }
  } else parts.push(own as ReplyPartOf)
}

const partsOf = (reply: Reply, info: GenerateReplyInfo): ReadonlyArray<ReplyPartOf> => {
  const { thoughts } = info
  const message = reply.extras?.message
  const parts: Array<ReplyPartOf> = []
  for (const block of reply.blocks) {
    switch (block._tag) {
      case "Call":
        parts.push(callPart(block))
        break
      case "Text":
        parts.push({ text: block.text })
        break
      case "Reasoning":
        if (thoughts) parts.push({ text: block.text, thought: true })
        break
      case "Extra":
        if (block.family === "generate" && (thoughts || block.at === "block")) addOwnPart(parts, block.value)
    }
  }
  for (const part of extraParts(message, info, audioDataIn(message))) parts.push(part)
  return parts
}

const said = (fields: JsonFields): JsonFields =>
  Object.fromEntries(Object.entries(fields).filter(([, field]) => field !== null))

/** The server's own fields of a candidate, with its reason of the end unless the gateway ended the reply. */
const ownCandidate = (choice: JsonFields, finish: FinishReason): JsonFields => {
  const { finishReason, ...fields } = choice
  return finishReason === undefined || finish === "stop_sequence" ? fields : { finishReason, ...fields }
}

/** Renders a reply that is not streamed. */
export const generateResponse = (info: GenerateReplyInfo, reply: Reply): typeof GenerateResponse.Type => {
  const refusal = refusalIn(reply.extras?.message)
  const { choice = {}, chunk = {}, message = {}, usage } = reply.vendorExtras?.family === "generate"
    ? reply.vendorExtras.extras
    : {}
  const { promptFeedback, ...ended } = message
  const parts = partsOf(reply, info)
  const candidate = {
    content: { role: "model" as const, parts: parts.length === 0 ? [emptyPart] : parts },
    finishReason: refusal === "" ? finishReasons[reply.finish] : "SAFETY" as const,
    index: 0 as const,
    ...(refusal === "" ? {} : { finishMessage: refusal }),
    ...said(candidateFields(reply.extras?.choice ?? {})),
    ...citedFields(citationsIn(reply.extras?.message)),
    ...ownCandidate({ ...choice, ...ended }, reply.finish)
  }
  return {
    ...(parts.length === 0 && promptFeedback !== undefined ? { promptFeedback } : { candidates: [candidate] }),
    usageMetadata: usage === undefined
      ? usageMetadata(reply.usage, reply.extras?.usage)
      : usage as typeof UsageMetadata.Type,
    modelVersion: info.model,
    responseId: info.id,
    ...chunk
  }
}

/** Renders a failure within the stream. */
export const generateFailure = (error: GatewayError): string => `data: ${generateErrors.text(error)}\n\n`

/** Fields as members of an object that has others before them. */
const members = (fields: JsonFields): string =>
  Object.keys(fields).map((name) => `,${JSON.stringify(name)}:${JSON.stringify(fields[name])}`).join("")

/** The fields of a streamed reply that the next chunk has. */
class StreamedExtras {
  /** The reply's id, if the server said it. */
  id: Json | undefined
  usage: JsonFields | undefined
  isBlocked = false
  private candidate: ExtraFold | undefined
  private finishReason: Json | undefined
  private chunk: JsonFields = {}

  push({ at, value }: Pick<ReplyExtra, "at" | "value">): void {
    if (at === "usage") this.usage = value
    else if (at === "choice") this.choice(value)
    else if (at === "chunk") {
      const { responseId, ...fields } = value
      this.id = responseId ?? this.id
      this.chunk = { ...this.chunk, ...fields }
    } else if (at === "message") {
      const { promptFeedback, ...ended } = value
      this.choice(ended)
      if (promptFeedback === undefined) return
      this.isBlocked = true
      this.chunk = { ...this.chunk, promptFeedback }
    }
  }

  /** Members of the next chunk: of its candidate, and of the chunk. The reason of the end waits for the end. */
  take(): { readonly candidate: string; readonly chunk: string } {
    const fields = this.candidate?.extras.choice
    const taken = { candidate: fields === undefined ? "" : members(said(fields)), chunk: members(this.chunk) }
    this.candidate = undefined
    this.chunk = {}
    return taken
  }

  /** The server's reason of the end, if the gateway models none for it. */
  reason(finish: FinishReason): Json | undefined {
    const { finishReason } = this
    return finishReason === undefined ? undefined : ownCandidate({ finishReason }, finish)["finishReason"]
  }

  private choice({ finishReason, ...fields }: JsonFields): void {
    this.finishReason = finishReason ?? this.finishReason
    if (Object.keys(fields).length === 0) return
    this.candidate ??= new ExtraFold()
    this.candidate.push({ at: "choice", value: fields })
  }
}

/** Starts the renderer of one streamed reply. */
export const generateFrames = (info: GenerateReplyInfo): FrameRenderer => {
  const extras = new StreamedExtras()
  const begin = `"modelVersion":${JSON.stringify(info.model)},"responseId":`
  let tail = `${begin}${JSON.stringify(info.id)}`
  const open = `data: {"candidates":[{"content":{"role":"model","parts":[`
  let hasShown = false
  /** A chunk with a part, and at the end of the reply with its reason and the token counts. */
  const chunk = (part: ReplyPartOf | JsonFields, end = "", counts = ""): string => {
    hasShown = true
    const { candidate, chunk } = extras.take()
    return `${open}${JSON.stringify(part)}]}${end},"index":0${candidate}}],${counts}${tail}${chunk}}\n\n`
  }
  let usage = ""
  /** What an OpenAI-compatible server says of its token counts. */
  let usageExtra: JsonFields | undefined
  /** The text by which the model refuses. */
  let refusal = ""
  /** The last chunk has all of them: repeated in more chunks, their cost would be quadratic. */
  const cited: Array<Citation> = []
  let pieces: Base64Pieces | undefined
  const extra = (event: ReplyExtra, out: Array<string>) => {
    if (event.family === "generate") {
      extras.push(event)
      if (event.at === "chunk" && extras.id !== undefined) tail = `${begin}${JSON.stringify(extras.id)}`
      if (event.at === "block" || (event.at === "reasoning" && info.thoughts)) out.push(chunk(event.value))
    } else if (event.family === "openai" && event.at === "message") {
      refusal += refusalIn(event.value)
      for (const citation of citationsIn(event.value)) cited.push(citation)
      const data = audioDataIn(event.value)
      const audio = data === "" ? "" : (pieces ??= new Base64Pieces()).take(data)
      for (const part of extraParts(event.value, info, audio)) out.push(chunk(part))
    } else if (event.family === "openai" && event.at === "choice") {
      extras.push({ at: "choice", value: candidateFields(event.value) })
    } else if (event.family === "openai" && event.at === "usage") usageExtra = event.value
  }
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
            return extra(event, out)
          case "UsageReported":
            usage = `"usageMetadata":${JSON.stringify(extras.usage ?? usageMetadata(event.usage, usageExtra))},`
            return
          case "Finish": {
            if (!hasShown && extras.isBlocked) {
              out.push(`data: {${usage}${tail}${extras.take().chunk}}\n\n`)
              return
            }
            for (const part of dataPart(info.audioType, pieces?.end() ?? "")) out.push(chunk(part))
            extras.push({ at: "choice", value: citedFields(cited) })
            const reason = refusal === "" ? extras.reason(event.reason) ?? finishReasons[event.reason] : "SAFETY"
            const message = refusal === "" ? "" : `,"finishMessage":${JSON.stringify(refusal)}`
            out.push(chunk(emptyPart, `,"finishReason":${JSON.stringify(reason)}${message}`, usage))
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
