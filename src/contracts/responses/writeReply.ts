/**
 * Renders the canonical reply as Responses frames (spec "Responses-style stream") and as the response object.
 *
 * One machine makes both, so that they always agree: a reply that is not streamed is the object that the machine finalizes.
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import type { JsonRecord } from "../../domain/json.ts"
import type { FinishReason, ReplyEvent, Usage } from "../../domain/ReplyEvent.ts"
import { isEventPlace } from "../../domain/replyExtras.ts"
import type { FrameRenderer } from "../shared/FrameRenderer.ts"
import {
  type Citation,
  citationsIn,
  imagesIn,
  imageText,
  refusalIn,
  type ServerImage,
  tokensIn,
  transcriptIn
} from "../shared/serverExtras.ts"
import { clientTools, type ClientToolType, shellCommands } from "./clientTools.ts"
import { outputItemId, responseId } from "./ids.ts"
import type { OutputCompaction } from "./items.ts"
import { NativeReply, type ReplySoFar } from "./nativeReply.ts"
import {
  incompleteReasons,
  inProgressText,
  type RenderOptions,
  type ResponseInfo,
  type ResponseState,
  responseText
} from "./responseText.ts"
import { annotationText, textFormats, type TextKind } from "./textFormats.ts"
import { isClientTarget, plainFunction, type ToolTarget } from "./toolNames.ts"
import { customInput } from "./tools.ts"

/** Fields of every item that is still growing. */
interface OpenItem {
  readonly id: string
  /** JSON fields that place an event in the response. */
  readonly inResponse: string
  /** JSON fields that place an event in the item. */
  readonly inItem: string
  /** The beginning of the item's delta frames, up to the sequence number. */
  readonly deltaHead: string
}

interface OpenText extends OpenItem {
  readonly kind: TextKind
  /** Escaped. */
  text: string
  /** JSON, separated by commas. */
  annotations: string
  logprobs: string
}

/** A call of one of the vendor's tools. Its item needs the complete arguments, so nothing of it is shown before. */
interface HeldCall {
  readonly kind: "held"
  readonly callId: string
  readonly type: ClientToolType
}

interface OpenCall extends OpenItem {
  readonly kind: "call"
  readonly callId: string
  /** The tool's name in JSON fields, with its namespace if it has one. */
  readonly name: string
  readonly isCustom: boolean
}

/** A renderer that also makes the response object. */
export interface ResponseRenderer extends FrameRenderer {
  /** Finalizes a response whose client has disconnected; does nothing when it is final. */
  readonly cancel: () => void
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

const textItem = ({ annotations, id, kind, logprobs, text }: OpenText, status: "completed" | "incomplete"): string =>
  textFormats[kind].item(id, status, textFormats[kind].part(text, annotations, logprobs))

const nameFields = ({ name, namespace }: ToolTarget): string =>
  `"name":${JSON.stringify(name)}${namespace === undefined ? "" : `,"namespace":${JSON.stringify(namespace)}`}`

const callItem = ({ callId, id, isCustom, name }: OpenCall, status: string, payload: string): string => {
  const [type, field] = isCustom ? ["custom_tool_call", "input"] : ["function_call", "arguments"]
  return `{"id":"${id}","type":"${type}","status":"${status}","call_id":${JSON.stringify(callId)},${name},"${field}":${
    JSON.stringify(payload)
  }}`
}

const compactionText = (id: string, seal: string): string =>
  JSON.stringify({ id, type: "compaction", encrypted_content: seal } satisfies typeof OutputCompaction.Type)

/** A picture whose data the server sent. Others have an address, which is text. */
type Picture = Extract<ServerImage, { readonly data: string }>

const isPicture = (image: ServerImage): image is Picture => "data" in image

const outputFormats = /^image\/(png|webp|jpeg|gif|svg)(?:\+xml)?$/

/** The format of a picture as a field of its item. */
const outputFormat = (mediaType: string): string => {
  const format = outputFormats.exec(mediaType)?.[1]
  return format === undefined ? "" : `,"output_format":"${format}"`
}

const done = "data: [DONE]\n\n"

/** Starts the renderer of one response. */
export const responseFrames = (info: ResponseInfo, options: RenderOptions): ResponseRenderer => {
  let started = false
  let open: OpenText | OpenCall | HeldCall | undefined
  const reply: ReplySoFar = { id: responseId(info.seed), events: 0, items: 0, output: [], isFinal: false }
  let text = ""
  let usage: Usage | undefined
  let serviceTier: string | undefined
  /** Citations that wait for the text, and the number of those of the open message. */
  const waiting: Array<Citation> = []
  let cited = 0
  /** Log probabilities that wait for the text, as JSON separated by commas. */
  let waitingLogprobs = ""
  /** Blank text between items: rendered only together with text that follows, else it would be an empty message. */
  let blank = ""
  /** The reply of a server that speaks this contract. */
  let native: NativeReply | undefined

  const frame = (type: string, fields: string): string =>
    `event: ${type}\ndata: {"type":"${type}","sequence_number":${reply.events++},${fields}}\n\n`
  const deltaHead = (type: string, fields: string): string =>
    `event: ${type}\ndata: {"type":"${type}",${fields},"sequence_number":`
  const deltaFrame = ({ deltaHead }: OpenItem, delta: string): string =>
    `${deltaHead}${reply.events++},"delta":"${delta}"}\n\n`

  const start = (out: Array<string>) => {
    if (started) return
    started = true
    const object = inProgressText(info)
    options.begun?.(object, reply.id)
    out.push(
      frame("response.created", `"id":"${reply.id}","status":"in_progress","response":${object}`),
      frame("response.in_progress", `"response":${object}`)
    )
    const seal = options.compaction?.()
    if (seal === undefined) return
    const item = compactionText(outputItemId(info.seed, "compaction", reply.items), seal)
    const place = { inResponse: nextInResponse() }
    out.push(itemAdded(place, item), itemDone(place, item))
  }

  const itemAdded = ({ inResponse }: Pick<OpenItem, "inResponse">, item: string): string =>
    frame("response.output_item.added", `${inResponse},"item":${item}`)

  const itemDone = ({ inResponse }: Pick<OpenItem, "inResponse">, item: string): string => {
    reply.output.push(item)
    return frame("response.output_item.done", `${inResponse},"item":${item}`)
  }

  const nextInResponse = (): string => `"response_id":${JSON.stringify(reply.id)},"output_index":${reply.items++}`

  const openText = (kind: TextKind, out: Array<string>) => {
    const { extra, index, item, part, partEvent, textEvent } = textFormats[kind]
    const id = outputItemId(info.seed, kind === "refusal" ? "message" : kind, reply.items)
    const inResponse = nextInResponse()
    const inItem = `${inResponse},"item_id":"${id}","${index}":0`
    cited = 0
    open = {
      kind,
      id,
      inResponse,
      inItem,
      deltaHead: deltaHead(`${textEvent}.delta`, inItem + extra("")),
      text: "",
      annotations: "",
      logprobs: ""
    }
    out.push(
      itemAdded(open, item(id, "in_progress", "")),
      frame(`${partEvent}.added`, `${inItem},"part":${part("", "", "")}`)
    )
  }

  const growText = (kind: TextKind, delta: string, out: Array<string>) => {
    if (open?.kind !== kind) {
      closeText("completed", out)
      openText(kind, out)
    }
    const item = open
    if (item === undefined || item.kind === "call" || item.kind === "held") return
    const piece = escaped(delta)
    item.text += piece
    if (kind === "message") text += piece
    const logprobs = kind === "message" ? takeLogprobs(item) : ""
    out.push(
      logprobs === "" ? deltaFrame(item, piece) : frame(
        `${textFormats[kind].textEvent}.delta`,
        `${item.inItem}${textFormats[kind].extra(logprobs)},"delta":"${piece}"`
      )
    )
    if (waiting.length > 0 && kind === "message") cite(waiting.splice(0), out)
  }

  /** Adds the log probabilities that wait to the message, and returns them. */
  const takeLogprobs = (item: OpenText): string => {
    const taken = waitingLogprobs
    if (taken === "") return ""
    item.logprobs += item.logprobs === "" ? taken : `,${taken}`
    waitingLogprobs = ""
    return taken
  }

  /** Adds citations to the open message; those that come before its text wait for it. */
  const cite = (citations: ReadonlyArray<Citation>, out: Array<string>) => {
    const item = open
    if (item?.kind !== "message") {
      for (const citation of citations) waiting.push(citation)
      return
    }
    for (const citation of citations) {
      const annotation = annotationText(citation)
      item.annotations += item.annotations === "" ? annotation : `,${annotation}`
      const fields = `${item.inItem},"annotation_index":${cited++},"annotation":${annotation}`
      out.push(frame("response.output_text.annotation.added", fields))
    }
  }

  const closeText = (status: "completed" | "incomplete", out: Array<string>) => {
    const item = open
    if (item === undefined || item.kind === "call" || item.kind === "held") return
    open = undefined
    if (item.kind === "message") takeLogprobs(item)
    const { extra, field, part, partEvent, textEvent } = textFormats[item.kind]
    out.push(
      frame(`${textEvent}.done`, `${item.inItem},"${field}":"${item.text}"${extra(item.logprobs)}`),
      frame(`${partEvent}.done`, `${item.inItem},"part":${part(item.text, item.annotations, item.logprobs)}`),
      itemDone(item, textItem(item, status))
    )
  }

  /** A picture is an item of its own, as the vendor's servers make pictures. */
  const show = ({ data, mediaType }: Picture, out: Array<string>) => {
    closeText("completed", out)
    blank = ""
    const id = outputItemId(info.seed, "image_generation_call", reply.items)
    const place = { inResponse: nextInResponse() }
    const inItem = `${place.inResponse},"item_id":"${id}"`
    const fields = `"id":"${id}","type":"image_generation_call"`
    out.push(
      itemAdded(place, `{${fields},"status":"in_progress","result":null}`),
      ...["in_progress", "generating", "completed"].map((state) =>
        frame(`response.image_generation_call.${state}`, inItem)
      ),
      itemDone(place, `{${fields},"status":"completed","result":${JSON.stringify(data)}${outputFormat(mediaType)}}`)
    )
  }

  const openCall = (callId: string, name: string, out: Array<string>) => {
    closeText("completed", out)
    blank = ""
    const target = info.targets.get(name) ?? plainFunction(name)
    if (isClientTarget(target)) {
      open = { kind: "held", callId, type: target.type }
      return
    }
    const isCustom = target.type === "custom"
    const id = outputItemId(info.seed, isCustom ? "custom_tool_call" : "function_call", reply.items)
    const inResponse = nextInResponse()
    const inItem = `${inResponse},"item_id":"${id}","call_id":${JSON.stringify(callId)}`
    const event = isCustom ? "response.custom_tool_call_input.delta" : "response.function_call_arguments.delta"
    open = {
      kind: "call",
      id,
      callId,
      name: nameFields(target),
      isCustom,
      inResponse,
      inItem,
      deltaHead: deltaHead(event, inItem)
    }
    out.push(itemAdded(open, callItem(open, "in_progress", "")))
  }

  const closeHeldCall = ({ callId, type }: HeldCall, args: string, out: Array<string>) => {
    open = undefined
    const { fields, item, prefix } = clientTools[type]
    const parsed: JsonRecord = JSON.parse(args)
    const id = `${prefix}_${info.seed}_${reply.items}`
    const place = { inResponse: nextInResponse() }
    const withFields = (status: string, fields: string): string =>
      `{"id":"${id}","type":"${item}","status":"${status}","call_id":${JSON.stringify(callId)},${fields}}`
    out.push(itemAdded(place, withFields("in_progress", fields(parsed, args))))
    if (type === "shell") {
      shellCommands(parsed).forEach((command, i) => {
        const inCommand = `${place.inResponse},"item_id":"${id}","command_index":${i}`
        const json = JSON.stringify(command)
        out.push(
          frame("response.shell_call_command.added", `${inCommand},"command":""`),
          frame("response.shell_call_command.delta", `${inCommand},"delta":${json}`),
          frame("response.shell_call_command.done", `${inCommand},"command":${json}`)
        )
      })
    }
    out.push(itemDone(place, withFields("completed", fields(parsed, args))))
  }

  const closeCall = (args: string, out: Array<string>) => {
    const call = open
    if (call?.kind === "held") return closeHeldCall(call, args, out)
    if (call?.kind !== "call") return
    open = undefined
    const { inItem, isCustom, name } = call
    const payload = isCustom ? customInput(args) : args
    const json = JSON.stringify(payload)
    if (isCustom) {
      // The input is a string within the JSON of the arguments, so it is known once they are complete.
      out.push(
        deltaFrame(call, escaped(payload)),
        frame("response.custom_tool_call_input.done", `${inItem},${name},"input":${json}`)
      )
    } else {
      out.push(frame("response.function_call_arguments.done", `${inItem},${name},"arguments":${json}`))
    }
    out.push(itemDone(call, callItem(call, "completed", payload)))
  }

  /** Makes the final object. An open text is in it as incomplete; an open call is left out, so that no client runs it. */
  const finalize = (state: Pick<ResponseState, "status" | "error" | "incomplete">): string => {
    const unfinished = open === undefined || open.kind === "call" || open.kind === "held"
      ? []
      : [textItem(open, "incomplete")]
    const body = responseText(info, {
      ...state,
      completedAt: state.status === "completed" ? Math.floor(options.now() / 1000) : null,
      output: [...reply.output, ...unfinished],
      text,
      usage,
      serviceTier
    })
    reply.isFinal = true
    options.finalized(body, reply.id)
    return body
  }

  const finish = (reason: FinishReason, out: Array<string>) => {
    const incomplete = incompleteReasons[reason]
    const status = incomplete === null ? "completed" : "incomplete"
    if (blank !== "" && reply.output.length === 0) growText("message", blank, out)
    if (waiting.length > 0) growText("message", "", out)
    closeText(status, out)
    const body = finalize({ status, error: null, incomplete })
    out.push(frame(`response.${status}`, `"response":${body}`), done)
  }

  const nativeReply = (): NativeReply =>
    native ??= new NativeReply(info, options, reply, {
      text: (text, out) => growText("message", text, out),
      closeText: (out) => closeText("completed", out),
      call: (event, out) => shown(event, out)
    })

  const shown = (event: ReplyEvent, out: Array<string>): void => {
    switch (event._tag) {
      case "TextDelta": {
        if (open?.kind === "message") return growText("message", event.text, out)
        const before = blank
        const isBlank = event.text.trim() === ""
        blank = isBlank ? before + event.text : ""
        return isBlank ? undefined : growText("message", before + event.text, out)
      }
      case "ReplyExtra": {
        const refusal = refusalIn(event.value)
        if (refusal !== "") growText("refusal", refusal, out)
        const images = imagesIn(event.value)
        const spoken = transcriptIn(event.value) + imageText(images.filter((image) => !isPicture(image)))
        if (spoken !== "") growText("message", spoken, out)
        cite(citationsIn(event.value), out)
        for (const image of images) if (isPicture(image)) show(image, out)
        return
      }
      case "ReasoningDelta":
        return growText("reasoning", event.text, out)
      case "CallStarted":
        return openCall(event.id, event.name, out)
      case "CallArguments":
        if (open?.kind === "call" && !open.isCustom) out.push(deltaFrame(open, escaped(event.delta)))
        return
      case "CallFinished":
        return closeCall(event.arguments, out)
      case "CallCutOff":
        // The item gets no closing frame, and the output leaves it out.
        open = undefined
        return
      case "UsageReported":
        usage = event.usage
        return
      case "Finish":
        return finish(event.reason, out)
    }
  }

  return {
    keepAlive: () => ": keep-alive\n\n",
    failure(error: GatewayError) {
      const out: Array<string> = []
      if (native !== undefined) {
        native.fail(error, out)
        return out.join("")
      }
      start(out)
      const body = finalize({ status: "failed", error, incomplete: null })
      out.push(frame("response.failed", `"response":${body}`), done)
      return out.join("")
    },
    cancel() {
      if (reply.isFinal) return
      if (native === undefined) finalize({ status: "cancelled", error: null, incomplete: null })
      else native.cancel()
    },
    frames: {
      push(event: ReplyEvent, out) {
        if (event._tag === "ReplyExtra" && isEventPlace(event.at)) return nativeReply().take(event, out)
        if (native !== undefined) return native.push(event, out)
        if (event._tag === "ReplyExtra" && event.family !== "openai") return
        if (event._tag === "ReplyExtra" && event.at !== "message") {
          const tier = event.at === "chunk" ? event.value["service_tier"] : undefined
          if (typeof tier === "string") serviceTier = tier
          if (event.at === "choice" && event.value["logprobs"] === null) waitingLogprobs = ""
          const logprobs = event.at === "choice" ? JSON.stringify(tokensIn(event.value)).slice(1, -1) : ""
          if (logprobs !== "") waitingLogprobs += waitingLogprobs === "" ? logprobs : `,${logprobs}`
          return
        }
        start(out)
        shown(event, out)
      },
      end() {}
    }
  }
}
