/**
 * From a messages-style request to the canonical conversation.
 */
import type * as Result from "effect/Result"
import type {
  Conversation,
  FilePart,
  ImagePart,
  Part,
  StructuredOutput,
  TextPart,
  ToolChoice,
  ToolDeclaration,
  Turn
} from "../../domain/Conversation.ts"
import { dataUrl, Text, userTurns } from "../../domain/Conversation.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { flatMapSliced, Slice, type Sliced } from "../../domain/stream/slices.ts"
import { Faults } from "../../http/Faults.ts"
import type { MessageParam, MessagesRequest } from "./Api.ts"
import type { ContentBlock, ResultBlock, SystemBlock } from "./contentBlocks.ts"

type Request = typeof MessagesRequest.Type
type Message = typeof MessageParam.Type
type Block = typeof ContentBlock.Type
type ImageBlock = Extract<Block, { readonly type: "image" }>
type DocumentBlock = Extract<Block, { readonly type: "document" }>
type Carried = TextPart | ImagePart | FilePart

/** Never dropped silently: what cannot be carried is named to the model. */
const omitted = (type: string): TextPart => Text(`[${type} omitted]`)

const file = (fields: Partial<FilePart>): FilePart => ({
  _tag: "File",
  kind: "file",
  name: undefined,
  url: undefined,
  id: undefined,
  data: undefined,
  mediaType: undefined,
  ...fields
})

const image = ({ source }: ImageBlock): Carried => {
  if ("data" in source) {
    return {
      _tag: "Image",
      url: undefined,
      data: source.data,
      mediaType: source.media_type ?? undefined,
      detail: undefined
    }
  }
  if ("url" in source) {
    const inline = dataUrl(source.url)
    return {
      _tag: "Image",
      url: inline === undefined ? source.url : undefined,
      data: inline?.data,
      mediaType: inline?.mediaType,
      detail: undefined
    }
  }
  return "file_id" in source ? file({ id: source.file_id }) : omitted("image")
}

const documentSource = ({ source, title }: DocumentBlock): ReadonlyArray<Carried> => {
  const name = title ?? undefined
  if ("url" in source) return [file({ name, url: source.url })]
  if ("file_id" in source) return [file({ name, id: source.file_id })]
  if ("content" in source) {
    return typeof source.content === "string" ? [Text(source.content)] : source.content.flatMap(carried)
  }
  if (!("data" in source)) return [omitted("document")]
  return source.type === "text"
    ? [Text(source.data)]
    : [file({ name, data: source.data, mediaType: source.media_type ?? undefined })]
}

/** A document whose content is text becomes text, under its title. */
const document = (block: DocumentBlock): ReadonlyArray<Carried> => {
  const parts = documentSource(block)
  const heading = [parts[0]?._tag === "Text" ? block.title : undefined, block.context].filter(Boolean).join("\n")
  return heading === "" ? parts : [Text(heading), ...parts]
}

/** Blocks that may stand anywhere. */
const carried = (block: typeof ResultBlock.Type): ReadonlyArray<Carried> => {
  if ("text" in block) return block.text === "" ? [] : [Text(block.text)]
  if (!("source" in block)) return [omitted(block.type)]
  switch (block.type) {
    case "image":
      return [image(block)]
    case "document":
      return document(block)
    case "search_result":
      return [Text([block.title, block.source, ...block.content.map((part) => part.text)].join("\n"))]
  }
}

function* blockParts(
  block: Block,
  role: Message["role"],
  field: string,
  faults: Faults,
  slice: Slice
): Sliced<ReadonlyArray<Part>> {
  if ("thinking" in block) {
    if (role !== "assistant") faults.at(`${field}.type`, "thinking blocks stand in assistant messages only")
    return block.thinking === "" ? [] : [{ _tag: "Reasoning", text: block.thinking }]
  }
  if ("name" in block) {
    if (role !== "assistant") faults.at(`${field}.type`, "tool_use blocks stand in assistant messages only")
    return [{ _tag: "Call", id: block.id, name: block.name, arguments: JSON.stringify(block.input ?? {}) }]
  }
  if ("tool_use_id" in block) {
    if (role !== "user") faults.at(`${field}.type`, "tool_result blocks stand in user messages only")
    const { content } = block
    return [{
      _tag: "Result",
      callId: block.tool_use_id,
      name: undefined,
      content: typeof content === "string" ? [Text(content)] : yield* flatMapSliced(slice, content ?? [], carried),
      isError: block.is_error === true
    }]
  }
  // Only the vendor can read it.
  return block.type === "redacted_thinking" ? [] : carried(block)
}

function* blockTurns(
  role: Message["role"],
  blocks: ReadonlyArray<Block>,
  field: string,
  faults: Faults,
  slice: Slice
): Sliced<ReadonlyArray<Turn>> {
  const parts = yield* flatMapSliced(
    slice,
    blocks,
    (block, i) => blockParts(block, role, `${field}[${i}]`, faults, slice)
  )
  return role === "user" ? userTurns(parts) : [{ role, parts }]
}

const turns = (
  { content, role }: Message,
  index: number,
  faults: Faults,
  slice: Slice
): ReadonlyArray<Turn> | Sliced<ReadonlyArray<Turn>> =>
  typeof content === "string"
    ? [{ role, parts: content === "" ? [] : [Text(content)] }]
    : blockTurns(role, content, `messages[${index}].content`, faults, slice)

const systemTurns = (system: string | ReadonlyArray<typeof SystemBlock.Type> | null | undefined): Array<Turn> => {
  if (system === undefined || system === null) return []
  const parts = typeof system === "string"
    ? [Text(system)]
    : system.map((block) => "text" in block ? Text(block.text) : omitted(block.type))
  return parts.every((part) => part.text === "") ? [] : [{ role: "system", parts }]
}

/** Tools with a type of their own are run by the vendor: they are accepted and declare nothing. */
const tools = (declared: Request["tools"], faults: Faults): ReadonlyArray<ToolDeclaration> =>
  (declared ?? []).flatMap((tool, i) => {
    if (tool.type !== undefined && tool.type !== null && tool.type !== "custom") return []
    if (!tool.name) faults.at(`tools[${i}].name`, "is required")
    if (!tool.input_schema) faults.at(`tools[${i}].input_schema`, "is required")
    return [{
      name: tool.name ?? "",
      description: tool.description ?? undefined,
      parameters: tool.input_schema ?? undefined,
      strict: tool.strict ?? undefined
    }]
  })

const toolChoice = (choice: Request["tool_choice"], faults: Faults): ToolChoice => {
  switch (choice?.type) {
    case undefined:
    case "auto":
      return { _tag: "Auto" }
    case "any":
      return { _tag: "Required" }
    case "none":
      return { _tag: "None" }
    case "tool":
      if (!choice?.name) faults.at("tool_choice.name", "is required")
      return { _tag: "Function", name: choice?.name ?? "" }
  }
}

const output = (request: Request): StructuredOutput | undefined => {
  const format = request.output_config?.format ?? request.output_format
  return format === undefined || format === null
    ? undefined
    : { _tag: "JsonSchema", name: undefined, description: undefined, schema: format.schema, strict: undefined }
}

/**
 * The conversation that a request asks to continue. `max_tokens` counts only where the caller gave it: the 8192 that stand
 * for an absent one are not enforced (spec "Limits").
 */
export function* decodeMessages(request: Request): Sliced<Result.Result<Conversation, GatewayError>> {
  const faults = new Faults()
  const slice = new Slice()
  const conversation = yield* flatMapSliced(
    slice,
    request.messages,
    (message, i) => turns(message, i, faults, slice)
  )
  return faults.result<Conversation>({
    turns: systemTurns(request.system).concat(conversation),
    tools: tools(request.tools, faults),
    toolChoice: toolChoice(request.tool_choice, faults),
    parallelToolCalls: request.tool_choice?.disable_parallel_tool_use !== true,
    stop: request.stop_sequences ?? [],
    sampling: {
      temperature: request.temperature ?? undefined,
      topP: request.top_p ?? undefined,
      topK: request.top_k ?? undefined,
      maxTokens: request.max_tokens ?? undefined,
      reasoningEffort: request.output_config?.effort ?? undefined
    },
    output: output(request)
  })
}
