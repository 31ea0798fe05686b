/**
 * The conversation as the contents of a content generation: a system instruction, and turns of the roles `user` and `model`.
 *
 * The results of calls follow their calls in one content of the user, and adjacent turns of one role are one content.
 */
import {
  type CallPart,
  type Conversation,
  type FilePart,
  type ImagePart,
  type Part,
  type ResultPart,
  Text,
  type Turn
} from "../../domain/Conversation.ts"
import { exactArguments, isRecord, type Json, type JsonFields } from "../../domain/json.ts"
import { isMadeId } from "../../domain/linkCalls.ts"
import { isFields } from "../../domain/replyExtras.ts"
import { signatureOf, standInSignature } from "../../domain/sealed.ts"
import { type Cooperative, flatMapCooperatively, Slice } from "../../domain/stream/cooperative.ts"
import type { VendorFields } from "../../domain/VendorFields.ts"
import { parseJson } from "../shared/json.ts"

/** The turns whose thinking goes back: all, those since the last question, or none. */
export type HistoryReasoning = "all" | "current" | "none"

/** Returns the vendor's own fields of an element, as far as they are sent; `undefined` for elements of other families. */
export type SentVendorFields = (
  element: { readonly vendorFields?: VendorFields | undefined }
) => VendorFields | undefined

const media = (data: string | undefined, uri: string | undefined, mimeType: string | undefined): JsonFields => {
  if (data !== undefined) return { inlineData: { mimeType: mimeType ?? "application/octet-stream", data } }
  return { fileData: { ...(mimeType === undefined ? {} : { mimeType }), fileUri: uri ?? "" } }
}

const imagePart = ({ data, mediaType, url }: ImagePart): JsonFields =>
  media(data, url, mediaType ?? (data === undefined ? undefined : "image/png"))

/** Media types of data without one. */
const defaultTypes = { audio: "audio/wav", video: "video/mp4", file: undefined } as const

const filePart = ({ data, id, kind, mediaType, name, url }: FilePart): JsonFields =>
  data === undefined && url === undefined && id?.startsWith("files/") !== true
    ? { text: `[${kind} omitted: ${name ?? id ?? "no content"}]` }
    : media(data, url ?? id, mediaType ?? (data === undefined ? undefined : defaultTypes[kind]))

/** The arguments as an object; other text is kept under a name. */
const argumentsOf = (text: string): JsonFields => isRecord(parseJson(text)) ? exactArguments(text) : { arguments: text }

/** The id of a call. Servers that send none match results by order and name. */
const idOf = (id: string): JsonFields => isMadeId(id) ? {} : { id }

const callPart = ({ arguments: text, id, name, sealed }: CallPart): JsonFields => {
  const signature = signatureOf(sealed)
  return {
    functionCall: { ...idOf(id), name, args: argumentsOf(text) },
    ...(signature === undefined ? {} : { thoughtSignature: signature })
  }
}

/** A result with the pictures and files that came with it. By the vendor's convention `error` holds the text of a failure. */
const resultParts = ({ callId, content, isError, name }: ResultPart): ReadonlyArray<JsonFields> => {
  const text = content.flatMap((part) => part._tag === "Text" ? [part.text] : []).join("\n\n")
  return [
    { functionResponse: { ...idOf(callId), name: name ?? "", response: { [isError ? "error" : "output"]: text } } },
    ...content.flatMap((part) =>
      part._tag === "Image" ? [imagePart(part)] : part._tag === "File" ? [filePart(part)] : []
    )
  ]
}

const partsOf = (part: Part): ReadonlyArray<JsonFields> => {
  switch (part._tag) {
    case "Text":
      return part.text === "" ? [] : [{ text: part.text }]
    case "Image":
      return [imagePart(part)]
    case "File":
      return [filePart(part)]
    case "Reasoning":
      return part.text === "" ? [] : [{ text: part.text, thought: true }]
    case "Call":
      return [callPart(part)]
    case "Result":
      return resultParts(part)
  }
}

/** Fields of a part, and of the object that holds its content, beside those that the gateway models. */
const merged = (part: JsonFields, own: JsonFields): JsonFields => {
  const all: Record<string, Json> = { ...part }
  for (const name of Object.keys(own)) {
    const [before, more] = [part[name], own[name]!]
    all[name] = isFields(before) && isFields(more) ? { ...before, ...more } : more
  }
  return all
}

/** The parts of an element, with the vendor's own fields if it has them. */
const sentParts = (part: Part, vendorFields: VendorFields | undefined): ReadonlyArray<JsonFields> => {
  if (vendorFields === undefined) return partsOf(part)
  if (vendorFields.wholeElement === true) return [vendorFields.fields]
  if (part._tag === "Text") return [{ text: part.text, ...vendorFields.fields }]
  const [first = {}, ...others] = partsOf(part)
  // The vendor fields of a result have its pictures and files too.
  return [merged(first, vendorFields.fields), ...(Object.hasOwn(vendorFields.fields, "functionResponse") ? [] : others)]
}

interface Content {
  readonly role: "user" | "model"
  /** All but the parts. */
  readonly fields: JsonFields
  readonly parts: Array<JsonFields>
}

/** What the vendor ran stands among the model's parts, results included. */
const isModels = (part: JsonFields): boolean => "executableCode" in part || "codeExecutionResult" in part

/** The contents and the system instruction of a request. */
export interface Contents {
  readonly contents: ReadonlyArray<Json>
  readonly systemInstruction: JsonFields | undefined
}

class ContentList {
  readonly list: Array<Content> = []

  /** Adds parts. A turn with the vendor's own fields is a content of its own. */
  add(role: Content["role"], parts: ReadonlyArray<JsonFields>, own: JsonFields | undefined): void {
    let isFirst = own !== undefined
    for (const part of parts) {
      const of = isModels(part) ? "model" : role
      const last = this.list.at(-1)
      if (!isFirst && last?.role === of) {
        last.parts.push(part)
      } else {
        this.list.push({ fields: own !== undefined && of === role ? own : { role: of }, role: of, parts: [part] })
      }
      isFirst = false
    }
  }
}

const headed = (turn: Turn): ReadonlyArray<Part> =>
  turn.name === undefined ? turn.parts : [Text(`${turn.name}:`), ...turn.parts]

/** The parts of a turn, of which the first call has a signature if the model wants one. */
const signed = (parts: ReadonlyArray<JsonFields>): ReadonlyArray<JsonFields> => {
  const first = parts.findIndex((part) => part["functionCall"] !== undefined)
  return first === -1 || parts.some((part) => part["functionCall"] !== undefined && part["thoughtSignature"])
    ? parts
    : parts.with(first, { ...parts[first], thoughtSignature: standInSignature })
}

function* partsOfTurn(
  turn: Turn,
  sendsThoughts: boolean,
  wantsSignatures: boolean,
  own: SentVendorFields,
  slice: Slice
): Cooperative<ReadonlyArray<JsonFields>> {
  const parts = yield* flatMapCooperatively(
    slice,
    headed(turn),
    (part) => part._tag === "Reasoning" && !sendsThoughts ? [] : sentParts(part, own(part))
  )
  return wantsSignatures && turn.role === "assistant" ? signed(parts) : parts
}

/** The contents of a conversation with linked calls. */
export function* contentsOf(
  conversation: Conversation,
  own: SentVendorFields,
  history: HistoryReasoning,
  wantsSignatures: boolean
): Cooperative<Contents> {
  const slice = new Slice()
  const { turns } = conversation
  const other = turns.findIndex(({ role }) => role !== "system")
  // A request needs contents, so that instructions alone are the user's.
  const leading = other === -1 ? 0 : other
  const after = history === "current" ? turns.findLastIndex(({ role }) => role === "user") : -1
  const all = new ContentList()
  const system: Array<JsonFields> = []
  for (const [i, turn] of turns.entries()) {
    if (slice.add(1)) yield slice.end()
    const parts = yield* partsOfTurn(turn, history !== "none" && i > after, wantsSignatures, own, slice)
    if (i < leading) {
      for (const part of parts) system.push(part)
    } else {
      all.add(turn.role === "assistant" ? "model" : "user", parts, own(turn)?.fields)
    }
  }
  return {
    contents: all.list.map(({ fields, parts }) => ({ ...fields, parts })),
    systemInstruction: system.length === 0 ? undefined : { parts: system }
  }
}
