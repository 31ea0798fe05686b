/**
 * From the chunks of a content-generation server to upstream events. A chunk is a reply of its own: parts of the first candidate,
 * token counts so far, and at the end the reason of the end.
 */
import { isRecord, type Json, type JsonFields, type JsonRecord, readExactly } from "../../domain/json.ts"
import { sealedBy } from "../../domain/sealed.ts"
import { runSync } from "../../domain/stream/cooperative.ts"
import type { SseEvent } from "../../domain/stream/sse.ts"
import { WholeCharacters } from "../../domain/stream/text.ts"
import {
  UpstreamCall,
  type UpstreamEvent,
  UpstreamExtra,
  UpstreamFinish,
  UpstreamReasoning,
  UpstreamText,
  UpstreamUsage
} from "../../domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { ChunkDecoder } from "../shared/ChunkDecoder.ts"
import { endOf, gaveUp } from "../shared/ends.ts"
import { errorBody } from "../shared/errorBody.ts"
import { Changed, names, others } from "../shared/extraFields.ts"
import { asString, isObjectText, isShallow, parseJson, writeJson } from "../shared/json.ts"
import { isTextOnly, type Piece, RepeatedEvents } from "../shared/RepeatedEvents.ts"
import { errorFacts, isError } from "./errors.ts"
import { usageOf } from "./usage.ts"

/** Characters of a call's id, which every frame of the call repeats. */
const longestId = 256

/** Modelled fields by place. `modelVersion` names the server's model, which callers know by another name. */
const ofChunk = names("candidates usageMetadata modelVersion error promptFeedback __proto__")
const ofCandidate = names("content finishReason index __proto__")
const ofText = names("text thought __proto__")

type Finish = UpstreamFinish["reason"]

/** The reasons that the gateway models. All others are kept as the server says them. */
const supportedReasons: ReadonlySet<string> = names("STOP MAX_TOKENS SAFETY")

/** The reasons of filters that withdrew the reply. */
const filterReasons: ReadonlySet<string> = names(
  "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION"
)

const knownReasons: ReadonlyMap<string, Finish> = new Map([
  ["STOP", "stop"],
  ["MAX_TOKENS", "length"],
  ...[...filterReasons].map((reason): [string, Finish] => [reason, "content_filter"])
])

/** The reasons by which the server says that it has failed, beside those whose words say so (https://ai.google.dev/api/generate-content). */
const failures: ReadonlySet<string> = names(
  "LANGUAGE OTHER NO_IMAGE IMAGE_OTHER TOO_MANY_TOOL_CALLS MISSING_THOUGHT_SIGNATURE"
)

const noReasons: ReadonlySet<string> = names("FINISH_REASON_UNSPECIFIED")

const isBlocked = (feedback: unknown): boolean => {
  const reason = isRecord(feedback) ? asString(feedback["blockReason"]) : undefined
  return reason !== undefined && reason !== "BLOCK_REASON_UNSPECIFIED" && reason !== "BLOCKED_REASON_UNSPECIFIED"
}

/** True for content after which a reply that had ended goes on. */
const isContent = (part: JsonRecord): boolean =>
  typeof part["text"] === "string"
    ? part["text"].trim() !== ""
    : Object.keys(part).some((name) => name !== "thought" && name !== "thoughtSignature")

/** A chunk that says nothing but a piece of text or of the thoughts. */
export const pieceOf = (value: unknown): Piece<"text" | "thought"> | undefined => {
  const candidates = isRecord(value) ? value["candidates"] : undefined
  const candidate: unknown = Array.isArray(candidates) && candidates.length === 1 ? candidates[0] : undefined
  const content = isRecord(candidate) ? candidate["content"] : undefined
  const parts = isRecord(content) ? content["parts"] : undefined
  const part: unknown = Array.isArray(parts) && parts.length === 1 ? parts[0] : undefined
  if (!isRecord(part)) return undefined
  const { text, thought } = part
  const isAlone = Object.keys(part).length === (thought === undefined ? 1 : 2)
  if (!isAlone || typeof text !== "string" || text === "") return undefined
  return thought === undefined ? { kind: "text", text } : thought === true ? { kind: "thought", text } : undefined
}

/** The number of queries of the vendor's search in the first candidate. */
const searchesIn = (candidates: unknown): number => {
  const candidate: unknown = Array.isArray(candidates) ? candidates[0] : undefined
  const grounding = isRecord(candidate) ? candidate["groundingMetadata"] : undefined
  const queries = isRecord(grounding) ? grounding["webSearchQueries"] : undefined
  return Array.isArray(queries) ? queries.length : 0
}

/** Starts a decoder of one reply. `isOwn`: the client speaks the contract, and knows each reason. `Reader` compares events. */
export const chunkDecoder = (isOwn = true, Reader = RepeatedEvents): ChunkDecoder => {
  let failure: UpstreamFailure | undefined
  let finish: Finish | undefined
  /** The server's word for the end, if no table knows it. */
  let unknown: string | undefined
  /** A reason of the end was the last that the server said. */
  let isComplete = false
  let began = false
  let hasContent = false
  let done = false
  let calls = 0
  const repeated = new Reader(pieceOf)
  const texts = new WholeCharacters()
  const thoughts = new WholeCharacters()
  const ofReply = new Changed()
  const ofChoice = new Changed()
  let lastUsage: JsonFields | undefined
  let tier: unknown
  /** The queries of the vendor's search so far. */
  let searches = 0

  const fail = (facts: Omit<ConstructorParameters<typeof UpstreamFailure>[0], "phase">) => {
    // A complete reply stays complete, whatever follows it.
    if (!isComplete) failure ??= new UpstreamFailure({ phase: "stream", ...facts })
  }

  const takeText = (part: JsonRecord, text: string, out: Array<UpstreamEvent>) => {
    if (part["thought"] === true) {
      const whole = thoughts.take(text)
      if (whole !== "") out.push(UpstreamReasoning(whole))
    } else {
      const whole = texts.take(text)
      if (whole !== "") out.push(UpstreamText(whole))
    }
    const fields = others(part, ofText)
    if (fields === undefined) return
    // The vendor too sends a signature in a part without text.
    out.push(
      part["thought"] === true
        ? UpstreamExtra("generate", "reasoning", { text: "", thought: true, ...fields })
        : UpstreamExtra("generate", "block", { text: "", ...fields })
    )
  }

  const takeCall = (call: JsonRecord, signature: unknown, out: Array<UpstreamEvent>) => {
    const { args, id: sent, name: called } = call
    const id = asString(sent)
    const name = asString(called)
    const text = args === undefined || args === null
      ? "{}"
      : isRecord(args)
      ? writeJson(args)
      : isObjectText(args)
      ? args
      : undefined
    if (name === undefined || text === undefined) {
      return fail({ kind: "malformed", message: "a call has no name, or arguments that cannot be read" })
    }
    if (id !== undefined && id.length > longestId) {
      return fail({ kind: "malformed", message: "the id of a call is too long" })
    }
    out.push(UpstreamCall(calls++, id, name, text, sealedBy(signature)))
  }

  const takePart = (part: unknown, out: Array<UpstreamEvent>) => {
    if (!isRecord(part)) return
    const isSaid = isContent(part)
    if (isComplete && isSaid) isComplete = false
    hasContent ||= isSaid
    const text = part["text"]
    const call = part["functionCall"]
    if (typeof text === "string") return takeText(part, text, out)
    if (isRecord(call)) return takeCall(call, part["thoughtSignature"], out)
    const block = others(part, names("__proto__"))
    if (block !== undefined) out.push(UpstreamExtra("generate", "block", block))
  }

  const takeFinish = (candidate: JsonRecord, out: Array<UpstreamEvent>) => {
    const reason = asString(candidate["finishReason"])
    if (reason === undefined || noReasons.has(reason)) return
    const end = failures.has(reason) ? undefined : endOf(reason, knownReasons)
    if (end === undefined && !isOwn) return fail(gaveUp(reason, asString(candidate["finishMessage"])))
    finish = end?.reason ?? "length"
    unknown = end?.unknown
    isComplete = true
    // Without content, the reason is all that the reply has.
    if (!hasContent && reason !== "STOP" && reason !== "MAX_TOKENS") {
      out.push(UpstreamExtra("generate", "message", { finishReason: reason }))
    } else if (!supportedReasons.has(reason)) out.push(UpstreamExtra("generate", "choice", { finishReason: reason }))
  }

  const takeCandidate = (candidate: JsonRecord, out: Array<UpstreamEvent>) => {
    const fields = ofChoice.changed(others(candidate, ofCandidate))
    if (fields !== undefined) out.push(UpstreamExtra("generate", "choice", fields))
    const content = candidate["content"]
    const parts: unknown = isRecord(content) ? content["parts"] : undefined
    if (Array.isArray(parts)) { for (const part of parts) takePart(part, out) }
    takeFinish(candidate, out)
  }

  const takeChunk = (value: JsonRecord, out: Array<UpstreamEvent>) => {
    if (isError(value)) return fail({ kind: "refused", ...errorFacts(value), ...errorBody(value) })
    began = true
    const usage = value["usageMetadata"]
    tier = value["serviceTier"] ?? tier
    searches = Math.max(searches, searchesIn(value["candidates"]))
    if (isRecord(usage)) {
      lastUsage = others(usage, names("__proto__")) ?? lastUsage
      out.push(UpstreamUsage(usageOf(usage, { tier, searches })))
    }
    if (finish === "content_filter") return
    const feedback = value["promptFeedback"]
    if (isRecord(feedback) && isShallow(feedback)) {
      out.push(
        UpstreamExtra("generate", isBlocked(feedback) ? "message" : "chunk", { promptFeedback: feedback as JsonFields })
      )
    }
    const fields = ofReply.changed(others(value, ofChunk))
    if (fields !== undefined) out.push(UpstreamExtra("generate", "chunk", fields))
    const candidates = value["candidates"]
    const candidate: unknown = Array.isArray(candidates) ? candidates[0] : undefined
    if (isRecord(candidate)) takeCandidate(candidate, out)
    else if (isBlocked(feedback)) {
      finish = "content_filter"
      isComplete = true
    }
  }

  /** The value of a chunk. Only arguments of calls have integers whose digits matter. */
  const read = (data: string): unknown => {
    const value = parseJson(data)
    return value !== undefined && data.includes("\"functionCall\"") ? runSync(readExactly(data)) ?? value : value
  }

  const push: ChunkDecoder["push"] = ({ data, event }, out) => {
    if (failure !== undefined || done) return
    const piece = event === "error" ? undefined : repeated.next(data)
    if (piece !== undefined) {
      return takePart(piece.kind === "text" ? { text: piece.text } : { text: piece.text, thought: true }, out)
    }
    const text = data.trim()
    if (text === "") return
    // Proxies add the sentinel of another protocol.
    if (text === "[DONE]") {
      done = true
      return
    }
    const from = out.length
    const value = read(data)
    if (event === "error") return fail({ kind: "refused", ...errorFacts(value), ...errorBody(value) })
    // An error may be the only element of a list.
    const chunk: unknown = Array.isArray(value) ? value[0] : value
    if (chunk === null) return
    if (!isRecord(chunk)) return fail({ kind: "malformed" })
    takeChunk(chunk, out)
    // What is said beside the text was said before, or else it is among the events.
    repeated.parsed(data, value, failure === undefined && finish === undefined && isTextOnly(out, from))
  }

  return {
    push,
    pushUnterminated(event: SseEvent, out) {
      if (parseJson(event.data) !== undefined) push(event, out)
    },
    pushWhole(body, out) {
      const value = read(body)
      for (const chunk of Array.isArray(value) ? value as ReadonlyArray<Json> : [value]) {
        if (!isRecord(chunk) || !(isError(chunk) || isReply(chunk))) {
          return fail({ kind: "malformed", ...errorFacts(value) })
        }
        if (failure === undefined) takeChunk(chunk, out)
      }
      done = isComplete
    },
    end(out) {
      if (failure !== undefined) return
      if (!isComplete) return fail({ kind: began ? "truncated" : "empty" })
      const thought = thoughts.end()
      const text = texts.end()
      if (thought !== "") out.push(UpstreamReasoning(thought))
      if (text !== "") out.push(UpstreamText(text))
      if (lastUsage !== undefined) out.push(UpstreamExtra("generate", "usage", lastUsage))
      out.push(UpstreamFinish(finish ?? "stop", undefined, unknown))
    },
    failure: () => failure,
    finishing: () => isComplete || done,
    withdrawn: () => finish === "content_filter",
    done: () => done
  }
}

/** True for a body that is a reply, or a part of one. */
const isReply = (value: JsonRecord): boolean =>
  Array.isArray(value["candidates"]) || isRecord(value["promptFeedback"]) || isRecord(value["usageMetadata"])
