/**
 * From the events of an OpenAI-compatible server to upstream events.
 *
 * Servers differ more than their documents say: reasoning comes under two names or inline, indexes of calls are missing,
 * usage has a chunk of its own, the sentinel may be left out. What is certain is taken; what contradicts itself fails.
 */
import type { UpstreamEvent } from "../../domain/UpstreamEvent.ts"
import {
  UpstreamCall,
  UpstreamFinish,
  UpstreamReasoning,
  UpstreamText,
  UpstreamUsage
} from "../../domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { PartialUsage } from "../../domain/Usage.ts"
import type { SseEvent } from "../../stream/sse.ts"

/** A decoder of one reply. */
export interface ChunkDecoder {
  /** Takes one event and appends what it yields. */
  readonly push: (event: SseEvent, out: Array<UpstreamEvent>) => void
  /** The stream is over: appends the end, unless the reply has failed or was cut off. */
  readonly end: (out: Array<UpstreamEvent>) => void
  /** What the reply failed with. */
  readonly failure: () => UpstreamFailure | undefined
  /** The server said why the reply ended: only usage and the sentinel may follow. */
  readonly finishing: () => boolean
  /** The sentinel was seen: nothing follows. */
  readonly done: () => boolean
}

type JsonRecord = { readonly [key: string]: unknown }

const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const asString = (value: unknown): string | undefined => typeof value === "string" && value !== "" ? value : undefined

const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.floor(value) : undefined

const parseRecord = (text: string): JsonRecord | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

const usageOf = (value: JsonRecord): PartialUsage => {
  const completion = isRecord(value["completion_tokens_details"]) ? value["completion_tokens_details"] : {}
  const prompt = isRecord(value["prompt_tokens_details"]) ? value["prompt_tokens_details"] : {}
  const counts = {
    promptTokens: asCount(value["prompt_tokens"]),
    completionTokens: asCount(value["completion_tokens"]),
    reasoningTokens: asCount(completion["reasoning_tokens"]),
    cachedTokens: asCount(prompt["cached_tokens"])
  }
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== undefined))
}

/** Content is a string, or a list of parts of which the text counts. */
const contentText = (content: unknown): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
    ? content.map((part: unknown) => isRecord(part) ? asString(part["text"]) ?? "" : "").join("")
    : ""

/** The facts of an `error` object as such servers send it, in a body or within a stream. */
export const errorFacts = (
  error: unknown
): { readonly reason?: string; readonly message?: string; status?: number } => {
  if (typeof error === "string") return { message: error }
  if (!isRecord(error)) return {}
  const code = asString(error["code"]) ?? asString(error["type"])
  const message = asString(error["message"]) ?? asString(error["detail"])
  const status = [error["code"], error["status"]].find((each) => typeof each === "number" && each >= 400 && each < 600)
  return {
    ...(code === undefined ? {} : { reason: code }),
    ...(message === undefined ? {} : { message }),
    ...(typeof status === "number" ? { status } : {})
  }
}

const openTag = "<think>"
const closeTag = "</think>"

/** Splits inline reasoning, `<think>…</think>` at the very start of a reply, from its text. */
const inlineReasoning = () => {
  let state: "start" | "reasoning" | "separator" | "text" = "start"
  let held = ""
  const push = (piece: string, out: Array<UpstreamEvent>): void => {
    if (piece === "" && held === "") return
    switch (state) {
      case "text":
        out.push(UpstreamText(piece))
        return
      case "start": {
        held += piece
        const text = held.trimStart()
        if (text.length < openTag.length && openTag.startsWith(text)) return
        const rest = held
        held = ""
        state = text.startsWith(openTag) ? "reasoning" : "text"
        return push(state === "text" ? rest : text.slice(openTag.length), out)
      }
      case "reasoning": {
        const text = held + piece
        held = ""
        const end = text.indexOf(closeTag)
        if (end !== -1) {
          if (end > 0) out.push(UpstreamReasoning(text.slice(0, end)))
          state = "separator"
          return push(text.slice(end + closeTag.length), out)
        }
        let keep = Math.min(text.length, closeTag.length - 1)
        while (keep > 0 && !closeTag.startsWith(text.slice(text.length - keep))) keep--
        held = text.slice(text.length - keep)
        if (text.length > keep) out.push(UpstreamReasoning(text.slice(0, text.length - keep)))
        return
      }
      case "separator": {
        // The line breaks between the reasoning and the answer belong to neither.
        const text = piece.replace(/^[\r\n]+/, "")
        if (text === "") return
        state = "text"
        return push(text, out)
      }
    }
  }
  return {
    push,
    end(out: Array<UpstreamEvent>) {
      if (held === "") return
      out.push(state === "reasoning" ? UpstreamReasoning(held) : UpstreamText(held))
      held = ""
    }
  }
}

/** Gives structured calls the indexes that some servers leave out. */
const callIndexes = () => {
  let last = -1
  let highest = -1
  const ids = new Map<string, number>()
  return (call: JsonRecord, isNew: boolean): number => {
    const given = call["index"]
    const id = asString(call["id"])
    if (typeof given === "number") last = given
    else if (id !== undefined && ids.has(id)) last = ids.get(id)!
    else if (id !== undefined || isNew || last === -1) last = highest + 1
    highest = Math.max(highest, last)
    if (id !== undefined) ids.set(id, last)
    return last
  }
}

type Finish = UpstreamFinish["reason"]

const finishReason = (word: string): Finish => {
  switch (word) {
    case "length":
    case "max_tokens":
    case "model_length":
      return "length"
    case "tool_calls":
    case "function_call":
      return "tool_calls"
    case "content_filter":
      return "content_filter"
    default:
      return "stop"
  }
}

/** Starts a decoder. */
export const chunkDecoder = (): ChunkDecoder => {
  const inline = inlineReasoning()
  const indexOf = callIndexes()
  let failure: UpstreamFailure | undefined
  let finish: Finish | undefined
  let done = false

  const fail = (facts: Omit<ConstructorParameters<typeof UpstreamFailure>[0], "phase">) => {
    failure ??= new UpstreamFailure({ phase: "stream", ...facts })
  }

  const toolCall = (call: unknown, out: Array<UpstreamEvent>) => {
    if (!isRecord(call)) return
    const fn = isRecord(call["function"]) ? call["function"] : {}
    const name = asString(fn["name"])
    const args = fn["arguments"]
    const delta = typeof args === "string" ? args : isRecord(args) ? JSON.stringify(args) : ""
    out.push(UpstreamCall(indexOf(call, name !== undefined), asString(call["id"]), name, delta))
  }

  const delta = (value: JsonRecord, out: Array<UpstreamEvent>) => {
    const reasoning = asString(value["reasoning_content"]) ?? asString(value["reasoning"])
    if (reasoning !== undefined) out.push(UpstreamReasoning(reasoning))
    const text = contentText(value["content"]) + (asString(value["refusal"]) ?? "")
    if (text !== "") inline.push(text, out)
    const calls = value["tool_calls"]
    if (Array.isArray(calls)) {
      if (calls.length > 0) inline.end(out)
      for (const call of calls) toolCall(call, out)
    } else if (isRecord(value["function_call"])) {
      inline.end(out)
      toolCall({ index: 0, function: value["function_call"] }, out)
    }
  }

  const chunk = (value: JsonRecord, out: Array<UpstreamEvent>) => {
    if (value["error"] !== undefined && value["error"] !== null) {
      return fail({ kind: "refused", ...errorFacts(value["error"]) })
    }
    if (isRecord(value["usage"])) out.push(UpstreamUsage(usageOf(value["usage"])))
    const choices = value["choices"]
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
    if (!isRecord(choice)) return
    const content = choice["delta"] ?? choice["message"]
    if (isRecord(content)) delta(content, out)
    const reason = asString(choice["finish_reason"])
    if (reason === undefined) return
    if (reason === "error") return fail({ kind: "gave_up", reason })
    finish = finishReason(reason)
  }

  return {
    failure: () => failure,
    finishing: () => finish !== undefined,
    done: () => done,
    push(event, out) {
      if (failure !== undefined || done) return
      if (event.data.trim() === "[DONE]") {
        done = true
        return
      }
      const value = parseRecord(event.data)
      if (value === undefined) return fail({ kind: "malformed" })
      // Some servers name the event instead of wrapping the error.
      if (event.event === "error") return fail({ kind: "refused", ...errorFacts(value["error"] ?? value) })
      chunk(value, out)
    },
    end(out) {
      if (failure !== undefined) return
      if (finish === undefined && !done) return fail({ kind: "truncated" })
      inline.end(out)
      out.push(UpstreamFinish(finish ?? "stop"))
    }
  }
}
