/**
 * Decodes a messages-style request to the canonical conversation.
 */
import type * as Result from "effect/Result"
import {
  type Conversation,
  noSampling,
  type Part,
  plainConversation,
  type StructuredOutput,
  Text,
  type TextPart,
  type ToolChoice,
  type ToolDeclaration,
  type Turn,
  userTurns,
  withVendorFields
} from "../../domain/Conversation.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { type Cooperative, flatMapCooperatively, Slice } from "../../domain/stream/cooperative.ts"
import type { VendorFields } from "../../domain/VendorFields.ts"
import {
  call,
  type Content,
  declaration,
  file,
  image,
  imageAt,
  jsonSchemaOutput,
  omitted,
  result,
  toolChoices
} from "../shared/conversation.ts"
import { Faults } from "../shared/Faults.ts"
import { effortSaid, thinkingFields, typeSaid } from "../shared/thinking.ts"
import { clientTool } from "./clientTools.ts"
import {
  type ContentBlock,
  isOtherBlock,
  type OtherBlock,
  type ResultBlock,
  type SystemBlock
} from "./contentBlocks.ts"
import type { MessageParam, MessagesRequest } from "./schema.ts"
import { answeredCalls, serverBlock } from "./serverBlocks.ts"
import { asList, continued, inWords, requestFields, systemFields, wholeOf } from "./vendorFields.ts"

type Request = typeof MessagesRequest.Type
type Message = typeof MessageParam.Type
type Block = typeof ContentBlock.Type
type ImageBlock = Extract<Block, { readonly type: "image" }>
type DocumentBlock = Extract<Block, { readonly type: "document" }>
type KnownContent = Exclude<typeof ResultBlock.Type, OtherBlock>

const none: ReadonlySet<string> = new Set()

const isContent = (part: Part): part is Content => part._tag === "Text" || part._tag === "Image" || part._tag === "File"

const imageContent = ({ source }: ImageBlock): Content => {
  if ("data" in source) return image({ data: source.data, mediaType: source.media_type })
  if ("url" in source) return imageAt(source.url)
  return "file_id" in source ? file({ id: source.file_id }) : omitted("image")
}

const documentSource = ({ source, title: name }: DocumentBlock): ReadonlyArray<Content> => {
  if ("url" in source) return [file({ name, url: source.url })]
  if ("file_id" in source) return [file({ name, id: source.file_id })]
  if ("content" in source) {
    return typeof source.content === "string"
      ? [Text(source.content)]
      : source.content.flatMap((part) => "text" in part || "source" in part ? contentOf(part) : [omitted(part.type)])
  }
  if (!("data" in source)) return [omitted("document")]
  return source.type === "text"
    ? [Text(source.data)]
    : [file({ name, data: source.data, mediaType: source.media_type })]
}

/** A document as text or as a file. Its context, and the title of a text document, come before it as text. */
const documentContent = (block: DocumentBlock): ReadonlyArray<Content> => {
  const parts = documentSource(block)
  const title = parts[0]?._tag === "Text" ? block.title : undefined
  const heading = [title, block.context].filter(Boolean).join("\n")
  return heading === "" ? parts : [Text(heading), ...parts]
}

/** A block of a type without a Schema: its words, or its name if it has none. */
const otherContent = (block: OtherBlock, field: string, faults: Faults): ReadonlyArray<Part> => {
  const parts = serverBlock(block, new Set())
  if (parts === undefined) faults.noteIgnored(field)
  return inWords(parts ?? [omitted(block.type)], wholeOf(block, faults.attach(field)))
}

/** The content of a block that both messages and tool results may have. */
const contentOf = (block: KnownContent): ReadonlyArray<Content> => {
  if ("text" in block) return block.text === "" ? [] : [Text(block.text)]
  switch (block.type) {
    case "image":
      return [imageContent(block)]
    case "document":
      return documentContent(block)
    case "search_result":
      return [Text([block.title, block.source, ...block.content.map((part) => part.text)].join("\n"))]
  }
}

/** The content of a block, with its vendor fields. */
const ownContent = (block: KnownContent, field: string, faults: Faults): ReadonlyArray<Content> => {
  const vendorFields = faults.attach(field)
  const parts = contentOf(block)
  if (block.type === "text") {
    return vendorFields === undefined
      ? parts
      : parts.map((part) => withVendorFields(part, vendorFields))
  }
  // Several sources of a block have the same parts.
  return block.type === "image" && !("file_id" in block.source)
    ? parts.map((part) => withVendorFields(part, vendorFields))
    : inWords(parts, wholeOf(block, vendorFields))
}

/** The content of a block of a tool's result. */
const resultContent = (block: typeof ResultBlock.Type, field: string, faults: Faults): ReadonlyArray<Content> =>
  isOtherBlock(block) ? otherContent(block, field, faults).filter(isContent) : ownContent(block, field, faults)

function* blockParts(
  block: Block,
  role: Message["role"],
  answered: ReadonlySet<string>,
  field: string,
  faults: Faults,
  slice: Slice
): Cooperative<ReadonlyArray<Part>> {
  const onlyIn = (allowed: Message["role"]) => {
    if (role !== allowed) faults.at(`${field}.type`, `${block.type} blocks stand in ${allowed} messages only`)
  }
  if (isOtherBlock(block)) {
    const parts = role === "assistant" ? serverBlock(block, answered) : undefined
    return parts === undefined
      ? otherContent(block, field, faults)
      : inWords(parts, wholeOf(block, faults.attach(field)))
  }
  if ("thinking" in block) {
    onlyIn("assistant")
    return [{ _tag: "Reasoning", text: block.thinking, vendorFields: faults.attach(field) ?? asList }]
  }
  if ("name" in block) {
    onlyIn("assistant")
    return [withVendorFields(call(block.id, block.name, block.input), faults.attach(field))]
  }
  if ("tool_use_id" in block) {
    onlyIn("user")
    const { content: sent, is_error: isError, tool_use_id: callId } = block
    const content = typeof sent === "string" ? [Text(sent)] : listed(
      yield* flatMapCooperatively(
        slice,
        sent ?? [],
        (each, i) => resultContent(each, `${field}.content[${i}]`, faults)
      )
    )
    return [withVendorFields(result({ callId, content, isError }), faults.attach(field))]
  }
  // Only the vendor can decrypt redacted thinking.
  return block.type === "redacted_thinking"
    ? [{ _tag: "Reasoning", text: "", vendorFields: wholeOf(block, faults.attach(field)) }]
    : ownContent(block, field, faults)
}

/** Marks a single text that stands in a list, which is otherwise a string. */
const listed = <A extends Part>(parts: ReadonlyArray<A>): ReadonlyArray<A> => {
  const [first, ...others] = parts
  return first?._tag === "Text" && first.vendorFields === undefined && others.length === 0
    ? [{ ...first, vendorFields: asList }]
    : parts
}

/** The turns of one message, with its vendor fields. */
const asMessage = (turns: ReadonlyArray<Turn>, vendorFields: VendorFields | undefined): ReadonlyArray<Turn> =>
  turns.length === 1 && vendorFields === undefined
    ? turns
    : turns.map((turn, i) => withVendorFields(turn, i === 0 ? vendorFields : continued))

function* messageTurns(
  { content, role }: Message,
  path: string,
  faults: Faults,
  slice: Slice
): Cooperative<ReadonlyArray<Turn>> {
  const field = `${path}.content`
  const said = faults.attach(path)
  const vendorFields = role === "system" ? systemFields(said) : said
  if (typeof content === "string") {
    return asMessage([{ role, parts: content === "" ? [] : [Text(content)] }], vendorFields)
  }
  const answered = role === "assistant" ? answeredCalls(content) : none
  const parts = listed(
    yield* flatMapCooperatively(
      slice,
      content,
      (block, i) => blockParts(block, role, answered, `${field}[${i}]`, faults, slice)
    )
  )
  if (role === "user") return asMessage(userTurns(parts), vendorFields)
  // The results of the vendor's own tools stand in the assistant's message.
  return asMessage(
    role === "assistant" && answered.size > 0
      ? userTurns(parts).map((turn) => turn.role === "user" ? { role, parts: turn.parts } : turn)
      : [{ role, parts }],
    vendorFields
  )
}

/**
 * The line by which Claude Code tells its vendor who pays, at the head of the system prompt. It changes with each request, so that no prefix
 * of the prompt is ever the same: only the vendor gets it.
 */
const billing = /^x-anthropic-billing-header:[^\n]*\n*/

/** A text of the system prompt, whose line for the vendor alone is in its vendor fields. */
const systemText = (block: { readonly text: string }, vendorFields: VendorFields | undefined): TextPart => {
  const text = block.text.replace(billing, "")
  return text === block.text
    ? withVendorFields(Text(text), vendorFields)
    : withVendorFields(Text(text), wholeOf({ type: "text", ...block }, vendorFields))
}

const systemTurns = (
  system: string | ReadonlyArray<typeof SystemBlock.Type> | null | undefined,
  faults: Faults
): Array<Turn> => {
  const parts = typeof system === "string"
    ? [systemText({ text: system }, undefined)]
    : listed((system ?? []).map((block, i) => {
      const vendorFields = faults.attach(`system[${i}]`)
      return "text" in block
        ? systemText(block, vendorFields)
        : withVendorFields(omitted(block.type), vendorFields)
    }))
  return parts.every((part) => part.text === "" && part.vendorFields?.wholeElement !== true)
    ? []
    : [{ role: "system", parts }]
}

/** The tools that the caller runs, and those that the vendor runs, which have another `type`. */
const tools = (sent: Request["tools"], faults: Faults): Pick<Conversation, "tools" | "vendorTools"> => {
  const declared: Array<ToolDeclaration> = []
  let vendorTools: Array<{ readonly index: number; readonly vendorFields: VendorFields }> | undefined
  for (const [index, tool] of (sent ?? []).entries()) {
    const field = `tools[${index}]`
    const { description, input_schema: parameters, name, strict, type } = tool
    if ((type ?? "custom") === "custom") {
      if (!name) faults.at(`${field}.name`, "is required")
      if (!parameters) faults.at(`${field}.input_schema`, "is required")
      faults.noteTool(`${field}.name`, name ?? "")
      declared.push(
        withVendorFields(declaration({ name: name ?? "", description, parameters, strict }), faults.attach(field))
      )
      continue
    }
    const own = clientTool(type ?? "", tool)
    if (own !== undefined) {
      declared.push(
        withVendorFields(declaration({ ...own, name: name || own.name, strict }), wholeOf(tool, faults.attach(field)))
      )
      continue
    }
    faults.noteIgnored(field)
    vendorTools ??= []
    vendorTools.push({ index, vendorFields: wholeOf(tool, faults.attach(field)) })
  }
  return { tools: declared, vendorTools }
}

const toolChoice = (choice: Request["tool_choice"], faults: Faults): ToolChoice => {
  switch (choice?.type) {
    case undefined:
    case "auto":
      return toolChoices.auto
    case "any":
      return toolChoices.required
    case "none":
      return toolChoices.none
    case "tool":
      if (!choice?.name) faults.at("tool_choice.name", "is required")
      return { _tag: "Function", name: choice?.name ?? "" }
  }
}

const output = (request: Request): StructuredOutput | undefined => {
  const format = request.output_config?.format ?? request.output_format
  return format ? jsonSchemaOutput({ schema: format.schema }) : undefined
}

/** True if the caller asked for the model's thinking, and to see it. */
export const asksForThinking = ({ thinking }: Pick<Request, "thinking">): boolean =>
  !!thinking && thinking.type !== "disabled" && thinking.display !== "omitted"

/**
 * Decodes a request. Fails with the first fault, which names its field; `faults` has what has no effect too. An absent `max_tokens` stays absent: its default of
 * 8192 is not enforced (spec "Limits").
 */
export function* decodeMessages(
  request: Request,
  faults = new Faults()
): Cooperative<Result.Result<Conversation, GatewayError>> {
  const slice = new Slice()
  const system = systemTurns(request.system, faults)
  const places = system.map(() => "system")
  const turns = yield* flatMapCooperatively(slice, request.messages, function*(message, i) {
    const path = `messages[${i}]`
    const turns = yield* messageTurns(message, path, faults, slice)
    for (const _ of turns) places.push(path)
    return turns
  })
  return faults.result<Conversation>({
    ...plainConversation,
    turns: system.concat(turns),
    places,
    ...tools(request.tools, faults),
    toolChoice: toolChoice(request.tool_choice, faults),
    parallelToolCalls: request.tool_choice?.disable_parallel_tool_use !== true,
    stop: request.stop_sequences ?? [],
    sampling: {
      ...noSampling,
      temperature: request.temperature ?? undefined,
      topP: request.top_p ?? undefined,
      topK: request.top_k ?? undefined,
      maxTokens: request.max_tokens ?? undefined
    },
    output: output(request),
    vendorFields: requestFields(request, faults.attach("")),
    ...thinkingFields(request, [
      typeSaid(request.thinking?.type, request.thinking?.budget_tokens, "thinking"),
      effortSaid(request.output_config?.effort, "output_config.effort")
    ], ["thinking"])
  })
}
