/**
 * Constructors of the canonical conversation's values, for the decoders of all styles. A field that the caller left out or
 * set to `null` becomes `undefined`.
 */
import {
  type CallPart,
  dataUrl,
  type FilePart,
  type ImagePart,
  type ResultPart,
  type StructuredOutput,
  Text,
  type TextPart,
  type ToolChoice,
  type ToolDeclaration
} from "../../domain/Conversation.ts"

/** Content of a user's message or of a tool's result. */
export type Content = TextPart | ImagePart | FilePart

/** The fields of a part or a declaration as a caller sends them. */
type Sent<A> = { readonly [K in Exclude<keyof A, "_tag">]?: A[K] | null | undefined }

/** Replaces content that the conversation cannot carry, so that the model learns of it: nothing is dropped silently. */
export const omitted = (kind: string): TextPart => Text(`[${kind} omitted]`)

export const image = ({ data, detail, mediaType, url }: Sent<ImagePart>): ImagePart => ({
  _tag: "Image",
  url: url ?? undefined,
  data: data ?? undefined,
  mediaType: mediaType ?? undefined,
  detail: detail ?? undefined,
  vendorFields: undefined
})

/** The image at an address; a Base64 `data:` address becomes its data. */
export const imageAt = (url: string, detail?: string | null): ImagePart =>
  image({ detail, ...(dataUrl(url) ?? { url }) })

export const file = ({ data, id, kind, mediaType, name, url }: Sent<FilePart>): FilePart => ({
  _tag: "File",
  kind: kind ?? "file",
  name: name ?? undefined,
  url: url ?? undefined,
  id: id ?? undefined,
  data: data ?? undefined,
  mediaType: mediaType ?? undefined,
  vendorFields: undefined
})

/** A tool call of an earlier turn; arguments that are not text yet become JSON text, absent ones `{}`. */
export const call = (
  id: string | null | undefined,
  name: string,
  args: string | object | null | undefined,
  sealed?: CallPart["sealed"]
): CallPart => ({
  _tag: "Call",
  id: id ?? "",
  name,
  arguments: typeof args === "string" ? args : JSON.stringify(args ?? {}),
  sealed,
  vendorFields: undefined
})

/** A tool's result. */
export const result = ({ callId, content, isError, isNamed, name }: Sent<ResultPart>): ResultPart => ({
  _tag: "Result",
  callId: callId ?? "",
  name: name ?? undefined,
  content: content ?? [],
  isError: isError ?? false,
  isNamed: isNamed && name ? true : undefined,
  vendorFields: undefined
})

/** A declared tool. */
export const declaration = (
  { description, name, parameters, strict }: Sent<ToolDeclaration> & Pick<ToolDeclaration, "name">
): ToolDeclaration => ({
  name,
  description: description ?? undefined,
  parameters: parameters ?? undefined,
  strict: strict ?? undefined
})

/** Output that a JSON Schema describes. */
export const jsonSchemaOutput = (
  { description, name, schema, strict }: Sent<Extract<StructuredOutput, { readonly _tag: "JsonSchema" }>>
): StructuredOutput => ({
  _tag: "JsonSchema",
  name: name ?? undefined,
  description: description ?? undefined,
  schema: schema ?? {},
  strict: strict ?? undefined
})

/** The tool choices that name no tool, by their name in the chat-completions family; `auto` is the default. */
export const toolChoices = {
  auto: { _tag: "Auto" },
  none: { _tag: "None" },
  required: { _tag: "Required" }
} as const satisfies { readonly [choice: string]: ToolChoice }
