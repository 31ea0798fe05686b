/**
 * The canonical conversation, to which every style's request is decoded and which every driver sends.
 *
 * It covers everything that a style can express. A driver that cannot send a part names it in the prompt instead of dropping it.
 */

import type { BodyVendorFields } from "../contracts/shared/BodyVendorFields.ts"
import type { GatewayError } from "./GatewayError.ts"
import type { Json } from "./json.ts"
import type { VendorFields } from "./VendorFields.ts"

/** Plain text. */
export interface TextPart {
  readonly _tag: "Text"
  readonly text: string
  readonly vendorFields: VendorFields | undefined
}

/** An image: a URL, or Base64 data with its media type. */
export interface ImagePart {
  readonly _tag: "Image"
  readonly url: string | undefined
  readonly data: string | undefined
  readonly mediaType: string | undefined
  /** `low`, `high` or `auto`, if the caller set it. */
  readonly detail: string | undefined
  readonly vendorFields: VendorFields | undefined
}

/** A file, audio clip or video: a URL, an id at the vendor, or Base64 data. */
export interface FilePart {
  readonly _tag: "File"
  readonly kind: "file" | "audio" | "video"
  readonly name: string | undefined
  readonly url: string | undefined
  readonly id: string | undefined
  readonly data: string | undefined
  readonly mediaType: string | undefined
  readonly vendorFields: VendorFields | undefined
}

/** Reasoning of an earlier assistant turn, sent back by the caller. */
export interface ReasoningPart {
  readonly _tag: "Reasoning"
  readonly text: string
  readonly vendorFields: VendorFields | undefined
}

/** An earlier tool call of the assistant. `arguments` is JSON text as the caller sent it. */
export interface CallPart {
  readonly _tag: "Call"
  readonly id: string
  readonly name: string
  readonly arguments: string
  /**
   * What only the upstream reads of the call, as an OpenAI-compatible server writes it: fields of the call, and
   * `reasoning_details` of its message.
   */
  readonly sealed: { readonly [field: string]: Json } | undefined
  readonly vendorFields: VendorFields | undefined
}

/** A tool's result. `name` is the name of the call with this id, if known. */
export interface ResultPart {
  readonly _tag: "Result"
  readonly callId: string
  readonly name: string | undefined
  /** The caller's own message has the name, as those of chat completions may. */
  readonly isNamed: true | undefined
  readonly content: ReadonlyArray<TextPart | ImagePart | FilePart>
  readonly isError: boolean
  readonly vendorFields: VendorFields | undefined
}

export type Part = TextPart | ImagePart | FilePart | ReasoningPart | CallPart | ResultPart

export type Role = "system" | "user" | "assistant" | "tool"

/** One turn. Only `tool` turns contain results; only `assistant` turns contain calls and reasoning. */
export interface Turn {
  readonly role: Role
  readonly parts: ReadonlyArray<Part>
  /** The participant's name, if the caller set one. */
  readonly name?: string
  readonly vendorFields?: VendorFields | undefined
}

/** A JSON Schema object. */
export type JsonSchema = { readonly [key: string]: Json }

/** A tool that the model may call. Without `parameters` it takes an object of any shape. */
export interface ToolDeclaration {
  readonly name: string
  readonly description?: string | undefined
  readonly parameters?: JsonSchema | undefined
  readonly strict?: boolean | undefined
  readonly vendorFields?: VendorFields | undefined
}

/** `function` forces one declared tool. */
export type ToolChoice =
  | { readonly _tag: "Auto" }
  | { readonly _tag: "None" }
  | { readonly _tag: "Required" }
  | { readonly _tag: "Function"; readonly name: string }

/** What the vendors say for a choice of no single function. */
export const toolChoiceWords = { Auto: "auto", None: "none", Required: "required" } as const

/** The caller's sampling fields, in the upstream's units, without the gateway's defaults. */
export interface Sampling {
  readonly temperature: number | undefined
  readonly topP: number | undefined
  readonly topK: number | undefined
  readonly maxTokens: number | undefined
  /** The newer limit, which includes reasoning. */
  readonly maxCompletionTokens: number | undefined
  readonly seed: number | undefined
  readonly presencePenalty: number | undefined
  readonly frequencyPenalty: number | undefined
  readonly logitBias: { readonly [token: string]: number } | undefined
}

/** A contract's field of each sampling parameter; `undefined` for one that it does not have. A new parameter needs an entry in each contract. */
export type SamplingNames = { readonly [Name in keyof Sampling]: string | undefined }

/** Whether and how much the model should think, as the caller said. */
export interface Thinking {
  readonly mode: "auto" | "on" | "off"
  readonly effort: string | undefined
  /** Tokens. */
  readonly budget: number | undefined
  /** Paths of the vendor's fields that say it; `undefined` if only fields of servers do. */
  readonly fields: ReadonlyArray<string> | undefined
}

/** The fields in which servers read about thinking. Callers of every style may send them. */
export const thinkingWords = [
  "reasoning_effort",
  "reasoning",
  "thinking",
  "enable_thinking",
  "thinking_budget",
  "think",
  "chat_template_kwargs"
] as const

/** Structured output: any JSON object, or one that a schema describes. */
export type StructuredOutput =
  | { readonly _tag: "JsonObject" }
  | {
    readonly _tag: "JsonSchema"
    readonly name: string | undefined
    readonly description: string | undefined
    readonly schema: JsonSchema
    readonly strict: boolean | undefined
  }

/** A tool that the vendor's own servers run, and its place among all tools of the request. */
export interface VendorTool {
  readonly index: number
  readonly vendorFields: VendorFields
}

/** What a decoder found that no other contract has. */
export interface Untranslated {
  /** Paths of what has no effect elsewhere. Bounded by the request's elements. */
  readonly paths: ReadonlyArray<string>
  /** The error of a request that cannot be translated. */
  readonly refused: GatewayError | undefined
}

/** A whole request of any style. */
export interface Conversation {
  readonly turns: ReadonlyArray<Turn>
  /** The path of each turn in the caller's request, where it is not the turn's place in a list. */
  readonly places?: ReadonlyArray<string>
  readonly tools: ReadonlyArray<ToolDeclaration>
  readonly toolChoice: ToolChoice
  readonly parallelToolCalls: boolean
  /** Sequences that end the reply; they are not part of it. */
  readonly stop: ReadonlyArray<string>
  readonly sampling: Sampling
  readonly output: StructuredOutput | undefined
  /** The choices of the reply, at least 1. */
  readonly choices: number
  /** `undefined`: the caller said nothing. */
  readonly thinking: Thinking | undefined
  /** Fields of the request that belong to its vendor's contract and are not modelled. */
  readonly vendorFields: VendorFields | undefined
  /** Tools that the vendor's own servers run, whole. */
  readonly vendorTools: ReadonlyArray<VendorTool> | undefined
  /** What only a driver that sends the request as its caller wrote it has a place for. */
  readonly untranslated: Untranslated | undefined
  /** All vendor fields of the request, for the report of those that are not sent. */
  readonly bodyVendorFields: BodyVendorFields | undefined
  /** Top-level fields of the caller's body that its family's contract does not have, for a driver of the openai family. */
  readonly serverFields: { readonly [name: string]: Json } | undefined
}

/** A part of plain text. */
export const Text = (text: string): TextPart => ({ _tag: "Text", text, vendorFields: undefined })
export const Reasoning = (text: string): ReasoningPart => ({ _tag: "Reasoning", text, vendorFields: undefined })

/** The sampling of a request that says nothing of it. */
export const noSampling: Sampling = {
  temperature: undefined,
  topP: undefined,
  topK: undefined,
  maxTokens: undefined,
  maxCompletionTokens: undefined,
  seed: undefined,
  presencePenalty: undefined,
  frequencyPenalty: undefined,
  logitBias: undefined
}

/** A conversation that says nothing, as requests without any field do. */
export const plainConversation: Conversation = {
  turns: [],
  tools: [],
  toolChoice: { _tag: "Auto" },
  parallelToolCalls: true,
  stop: [],
  sampling: noSampling,
  output: undefined,
  choices: 1,
  thinking: undefined,
  vendorFields: undefined,
  vendorTools: undefined,
  untranslated: undefined,
  bodyVendorFields: undefined,
  serverFields: undefined
}

/** The element with its vendor fields, if it has any. */
export const withVendorFields = <A extends object>(element: A, vendorFields: VendorFields | undefined): A =>
  vendorFields === undefined ? element : { ...element, vendorFields }

/** True when tools are declared and the model may call them; only then are they sent and is the reply sieved. */
export const toolsEnabled = (conversation: Conversation): boolean =>
  conversation.tools.length > 0 && conversation.toolChoice._tag !== "None"

/** Media type and Base64 text of a `data:` URL (RFC 2397); `undefined` for other URLs. */
export const dataUrl = (url: string): { readonly mediaType: string; readonly data: string } | undefined => {
  if (!url.startsWith("data:")) return undefined
  const comma = url.indexOf(",")
  const head = url.slice(5, comma)
  if (comma === -1 || !head.endsWith(";base64")) return undefined
  const mediaType = head.slice(0, head.indexOf(";"))
  return { mediaType: mediaType === "" ? "application/octet-stream" : mediaType, data: url.slice(comma + 1) }
}

/**
 * Splits the parts of a user message into turns, in order: adjacent results share a `tool` turn, other adjacent parts a `user` turn.
 * For styles whose user messages contain tool results.
 */
export const userTurns = (parts: ReadonlyArray<Part>): ReadonlyArray<Turn> => {
  if (parts.length === 0) return [{ role: "user", parts }]
  const turns: Array<Turn> = []
  let from = 0
  for (let i = 1; i <= parts.length; i++) {
    const isResult = parts[from]!._tag === "Result"
    if (i < parts.length && (parts[i]!._tag === "Result") === isResult) continue
    turns.push({ role: isResult ? "tool" : "user", parts: parts.slice(from, i) })
    from = i
  }
  return turns
}
