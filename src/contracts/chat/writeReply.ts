/**
 * Renders the canonical reply as chat-completions frames or as one object (spec "Chat-completions stream").
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import { type Reply, replyCalls, replyReasoning, replyText } from "../../domain/Reply.ts"
import type { FinishReason, ReplyEvent, ReplyExtra, Usage } from "../../domain/ReplyEvent.ts"
import { ExtraFold, isFields } from "../../domain/replyExtras.ts"
import type { FrameRenderer } from "../shared/FrameRenderer.ts"
import { openaiErrors } from "../shared/openaiErrors.ts"
import { finishReasons } from "./facts.ts"
import type { ChatAnnotation, ChatCompletion, ChatLogprobs, ChatUsage } from "./schema.ts"

/** Fields that all frames of one reply repeat. */
export interface ChatReplyInfo {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  /** The model's name as requested. */
  readonly model: string
}

const fieldsOf = (value: Json | undefined): JsonFields => isFields(value) ? value : {}

const chatUsage = (usage: Usage, extra: JsonFields = {}): typeof ChatUsage.Type => ({
  prompt_tokens: usage.promptTokens,
  completion_tokens: usage.completionTokens,
  total_tokens: usage.promptTokens + usage.completionTokens,
  ...extra,
  prompt_tokens_details: { ...fieldsOf(extra["prompt_tokens_details"]), cached_tokens: usage.cachedTokens },
  completion_tokens_details: {
    ...fieldsOf(extra["completion_tokens_details"]),
    reasoning_tokens: usage.reasoningTokens
  }
})

const stringOf = (value: Json | undefined): string | null => typeof value === "string" ? value : null

/** The server's own values, which are passed on as they are. */
const annotationsOf = (value: Json | undefined) =>
  (Array.isArray(value) ? value : []) as ReadonlyArray<unknown> as ReadonlyArray<typeof ChatAnnotation.Type>
const logprobsOf = (value: Json | undefined) => isFields(value) ? value as typeof ChatLogprobs.Type : null

/** The fields as members of an object that has others before them. */
const members = (fields: JsonFields | undefined): string =>
  fields === undefined
    ? ""
    : Object.keys(fields).map((name) => `,${JSON.stringify(name)}:${JSON.stringify(fields[name])}`).join("")

const choiceOf = (reply: Reply): (typeof ChatCompletion.Type)["choices"][number] => {
  const calls = replyCalls(reply)
  const reasoning = replyReasoning(reply)
  const text = replyText(reply)
  const { choice = {}, message = {} } = reply.extras ?? {}
  const refusal = stringOf(message["refusal"])
  return {
    index: reply.index,
    message: {
      role: "assistant",
      content: calls.length > 0 || (refusal !== null && text === "") ? null : text,
      ...message,
      refusal,
      annotations: annotationsOf(message["annotations"]),
      ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
      ...(calls.length === 0 ? {} : {
        tool_calls: calls.map((call) => ({
          id: call.id,
          type: "function" as const,
          function: { name: call.name, arguments: call.arguments },
          ...call.sealed
        }))
      })
    },
    ...choice,
    logprobs: logprobsOf(choice["logprobs"]),
    finish_reason: finishReasons[reply.finish]
  }
}

/** Renders a reply that is not streamed. */
export const chatCompletion = (info: ChatReplyInfo, reply: Reply): typeof ChatCompletion.Type => {
  const { chunk, usage } = reply.extras ?? {}
  return {
    id: info.id,
    object: "chat.completion",
    created: info.created,
    model: info.model,
    choices: [reply, ...reply.others].map(choiceOf),
    usage: chatUsage(reply.usage, usage),
    ...chunk
  }
}

const done = "data: [DONE]\n\n"

/** Renders a failure within the stream; the stream ends with it. */
export const chatFailure = (error: GatewayError): string => `data: ${openaiErrors.text(error)}\n\n${done}`

/** A choice of a streamed reply. */
class StreamedChoice {
  readonly index: number
  started = false
  /** True after the first text or call; a choice without either has empty content. */
  hasContent = false
  /** What the open call began with of what only the server reads. */
  known: JsonFields | undefined
  /** Fields that its next chunk has. */
  waiting: ExtraFold | undefined

  constructor(index: number) {
    this.index = index
  }

  wait(at: "chunk" | "choice", value: JsonFields): void {
    this.waiting ??= new ExtraFold()
    this.waiting.push({ at, value })
  }

  /** What the next chunk has: fields of the choice with `logprobs`, and of the chunk. */
  take(): { readonly choice: string; readonly chunk: string } {
    const { choice = {}, chunk } = this.waiting?.extras ?? {}
    this.waiting = undefined
    return { choice: members({ logprobs: null, ...choice }), chunk: members(chunk) }
  }
}

/** Extra fields of a streamed reply that every chunk repeats. */
class StreamedExtras {
  /** Scalars of the chunks, as members of an object. */
  repeated = ""
  /** The token counts' own. */
  usage: JsonFields | undefined
  private readonly scalars: { [name: string]: Json } = {}

  /** Takes extra fields, but for the message's. Those of the next chunk wait at its choice. Returns true if `repeated` has changed. */
  push({ at, value }: ReplyExtra, next: StreamedChoice): boolean {
    if (at === "usage") this.usage = value
    if (at !== "chunk" && at !== "choice") return false
    if (at === "choice") {
      next.wait(at, value)
      return false
    }
    for (const name of Object.keys(value)) {
      const field = value[name]!
      if (typeof field === "object") next.wait(at, { [name]: field })
      else this.scalars[name] = field
    }
    const before = this.repeated
    this.repeated = members(this.scalars)
    return before !== this.repeated
  }
}

/** Starts the renderer of one streamed reply. `includeUsage` adds the usage chunk of `stream_options.include_usage`. */
export const chatFrames = (info: ChatReplyInfo, includeUsage: boolean): FrameRenderer => {
  const begin = `{"id":${JSON.stringify(info.id)},"object":"chat.completion.chunk","created":${info.created},"model":${
    JSON.stringify(info.model)
  }`
  let head = begin
  let choice = new StreamedChoice(0)
  /** All choices by their index, of a reply of several. */
  let all: Map<number, StreamedChoice> | undefined
  let deltaHead = ""
  const headNext = () => {
    deltaHead = `data: ${head},"choices":[{"index":${choice.index},"delta":{`
  }
  headNext()
  const deltaTail = `},"logprobs":null,"finish_reason":null}]}\n\n`
  const extras = new StreamedExtras()
  /** A chunk with the extra fields that wait for one. */
  const full = (fields: string, reason: string, end: string): string => {
    const taken = choice.take()
    return `${deltaHead}${fields}}${taken.choice},"finish_reason":${reason}}]${taken.chunk}${end}}\n\n`
  }
  const delta = (fields: string): string =>
    choice.waiting === undefined ? `${deltaHead}${fields}${deltaTail}` : full(fields, "null", "")
  let usage = ""
  const over = (reason: FinishReason, out: Array<string>) => {
    if (!choice.hasContent) out.push(delta(`"content":""`))
    out.push(full("", `"${finishReasons[reason]}"`, usage))
  }
  return {
    keepAlive: () => ": keep-alive\n\n",
    failure: chatFailure,
    frames: {
      push(event: ReplyEvent, out) {
        if (event._tag === "ReplyExtra" && event.family !== "openai") return
        if (event._tag === "ReplyExtra" && extras.push(event, choice)) {
          head = `${begin}${extras.repeated}`
          headNext()
        }
        if (event._tag === "ChoiceBegan") {
          all ??= new Map([[0, choice]])
          choice = all.get(event.index) ?? new StreamedChoice(event.index)
          all.set(event.index, choice)
          return headNext()
        }
        if (!choice.started) {
          if (event._tag === "ReplyExtra" && event.at !== "message") return
          choice.started = true
          out.push(`${deltaHead}"role":"assistant"${deltaTail}`)
        }
        switch (event._tag) {
          case "TextDelta":
            choice.hasContent = true
            out.push(delta(`"content":${JSON.stringify(event.text)}`))
            return
          case "ReasoningDelta":
            out.push(delta(`"reasoning_content":${JSON.stringify(event.text)}`))
            return
          case "ReplyExtra":
            if (event.at !== "message") return
            choice.hasContent ||= event.value["refusal"] !== undefined
            out.push(delta(members(event.value).slice(1)))
            return
          case "CallStarted": {
            choice.hasContent = true
            const { id, index, name, sealed } = event
            choice.known = sealed
            out.push(
              delta(
                `"tool_calls":[{"index":${index},"id":${JSON.stringify(id)},"type":"function","function":{"name":${
                  JSON.stringify(name)
                },"arguments":""}${members(sealed)}}]`
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
            usage = `,"usage":${JSON.stringify(chatUsage(event.usage, extras.usage))}`
            return
          case "ChoiceOver":
            return over(event.reason, out)
          case "Finish":
            if (all === undefined) over(event.reason, out)
            if (includeUsage) out.push(`data: ${head},"choices":[]${usage}}\n\n`)
            out.push(done)
            return
          case "CallFinished":
            if (event.sealed !== choice.known) {
              out.push(
                delta(`"tool_calls":[{"index":${event.index},"function":{"arguments":""}${members(event.sealed)}}]`)
              )
            }
            return
          case "CallCutOff":
        }
      },
      end() {}
    }
  }
}
