/**
 * From a content-generation request to the canonical conversation.
 */
import type * as Result from "effect/Result"
import type {
  Conversation,
  FilePart,
  ImagePart,
  Json,
  Part,
  ResultPart,
  StructuredOutput,
  ToolChoice,
  ToolDeclaration,
  Turn
} from "../../domain/Conversation.ts"
import { Text, userTurns } from "../../domain/Conversation.ts"
import { shownName } from "../../domain/GatewayError.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { isRecord } from "../../domain/json.ts"
import { flatMapSliced, Slice, type Sliced } from "../../domain/stream/slices.ts"
import { Faults } from "../../http/Faults.ts"
import { type Content, type GenerateRequest, type Part as RequestPart, partAttributes } from "./Api.ts"
import { toJsonSchema } from "./jsonSchema.ts"

type Request = typeof GenerateRequest.Type
type GenerationConfig = NonNullable<Request["generationConfig"]>
type InlineData = NonNullable<typeof RequestPart.Type["inlineData"]>
type FileData = NonNullable<typeof RequestPart.Type["fileData"]>
type FunctionResponse = NonNullable<typeof RequestPart.Type["functionResponse"]>

const media = (
  source: { readonly url: string | undefined; readonly data: string | undefined },
  mimeType: string | undefined,
  name: string | undefined
): ImagePart | FilePart => {
  const mediaType = mimeType?.toLowerCase()
  if (mediaType?.startsWith("image/")) return { _tag: "Image", ...source, mediaType, detail: undefined }
  const kind = mediaType?.startsWith("audio/") ? "audio" : mediaType?.startsWith("video/") ? "video" : "file"
  return { _tag: "File", kind, name, id: undefined, ...source, mediaType }
}

const inlineMedia = (blob: InlineData): ImagePart | FilePart =>
  media({ url: undefined, data: blob.data }, blob.mimeType ?? undefined, blob.displayName ?? undefined)

const fileMedia = (file: FileData): ImagePart | FilePart =>
  media({ url: file.fileUri, data: undefined }, file.mimeType ?? undefined, file.displayName ?? undefined)

/** The vendor's convention: an `error` or else an `output` stands for the whole response where it has one. */
const functionResult = (answer: FunctionResponse): ResultPart => {
  const response: Json = answer.response ?? {}
  const failed = isRecord(response) && Object.hasOwn(response, "error")
  const key = failed ? "error" : "output"
  const value: Json = isRecord(response) && Object.hasOwn(response, key) ? response[key]! : response
  return {
    _tag: "Result",
    callId: answer.id ?? "",
    name: answer.name ?? undefined,
    content: [
      Text(typeof value === "string" ? value : JSON.stringify(value)),
      ...(answer.parts ?? []).flatMap((part) => [
        ...(part.inlineData ? [inlineMedia(part.inlineData)] : []),
        ...(part.fileData ? [fileMedia(part.fileData)] : [])
      ])
    ],
    isError: failed
  }
}

const partOf = (
  part: typeof RequestPart.Type,
  fromModel: boolean,
  field: string,
  faults: Faults
): ReadonlyArray<Part> => {
  if (typeof part.text === "string") {
    if (part.text === "") return []
    return [part.thought === true && fromModel ? { _tag: "Reasoning", text: part.text } : Text(part.text)]
  }
  if (part.inlineData) return [inlineMedia(part.inlineData)]
  if (part.fileData) return [fileMedia(part.fileData)]
  if (part.functionCall) {
    if (!fromModel) faults.at(`${field}.functionCall`, "function calls stand in contents of the role model only")
    const { args, id, name } = part.functionCall
    return [{ _tag: "Call", id: id ?? "", name, arguments: JSON.stringify(args ?? {}) }]
  }
  if (part.functionResponse) {
    if (fromModel) faults.at(`${field}.functionResponse`, "function responses stand in contents of the role user only")
    return [functionResult(part.functionResponse)]
  }
  // Never dropped silently: what cannot be carried is named to the model.
  const kind = Object.keys(part).find((key) => !partAttributes.has(key) && part[key] !== null)
  return kind === undefined ? [] : [Text(`[${kind} omitted]`)]
}

const contentParts = (
  content: typeof Content.Type,
  fromModel: boolean,
  field: string,
  faults: Faults,
  slice: Slice
): Sliced<ReadonlyArray<Part>> =>
  flatMapSliced(slice, content.parts ?? [], (part, i) => partOf(part, fromModel, `${field}.parts[${i}]`, faults))

const isEmpty = (content: typeof Content.Type): boolean =>
  (content.parts ?? []).every((part) => Object.keys(part).length === 0)

function* turns(
  content: typeof Content.Type,
  field: string,
  faults: Faults,
  slice: Slice
): Sliced<ReadonlyArray<Turn>> {
  const fromModel = content.role === "model"
  if ((content.role ?? "user") === "user" && isEmpty(content)) faults.at(`${field}.parts`, "is required")
  const parts = yield* contentParts(content, fromModel, field, faults, slice)
  if (fromModel) return [{ role: "assistant", parts }]
  return content.role === "system" ? [{ role: "system", parts }] : userTurns(parts)
}

function* systemTurns(
  instruction: Request["systemInstruction"],
  faults: Faults,
  slice: Slice
): Sliced<ReadonlyArray<Turn>> {
  if (instruction === undefined || instruction === null) return []
  const parts = yield* contentParts(instruction, false, "systemInstruction", faults, slice)
  return parts.length === 0 ? [] : [{ role: "system", parts }]
}

function* declarations(tools: Request["tools"], slice: Slice): Sliced<ReadonlyArray<ToolDeclaration>> {
  const declared: Array<ToolDeclaration> = []
  for (const { functionDeclarations } of tools ?? []) {
    for (const { description, name, parameters, parametersJsonSchema } of functionDeclarations ?? []) {
      if (slice.add(1)) yield slice.end()
      declared.push({
        name,
        description: description ?? undefined,
        parameters: parametersJsonSchema ?? (parameters ? yield* toJsonSchema(parameters, slice) : undefined),
        strict: undefined
      })
    }
  }
  return declared
}

const configField = "toolConfig.functionCallingConfig"

/** What may be called and what has to be. `allowedFunctionNames` counts in the modes in which the vendor lets it. */
const calling = (
  config: Request["toolConfig"],
  declared: ReadonlyArray<ToolDeclaration>,
  faults: Faults
): { readonly tools: ReadonlyArray<ToolDeclaration>; readonly toolChoice: ToolChoice } => {
  const { allowedFunctionNames, mode } = config?.functionCallingConfig ?? {}
  if (mode === "NONE") return { tools: declared, toolChoice: { _tag: "None" } }
  if (mode !== "ANY" && mode !== "VALIDATED") return { tools: declared, toolChoice: { _tag: "Auto" } }
  const names = allowedFunctionNames ?? []
  const known = new Set(declared.map((tool) => tool.name))
  const wanted = new Set(names)
  names.forEach((name, i) => {
    if (known.has(name)) return
    faults.at(`${configField}.allowedFunctionNames[${i}]`, `the function "${shownName(name)}" is not declared in tools`)
  })
  const tools = names.length === 0 ? declared : declared.filter((tool) => wanted.has(tool.name))
  if (mode === "VALIDATED") return { tools, toolChoice: { _tag: "Auto" } }
  if (tools.length === 0) faults.at(`${configField}.mode`, "ANY asks for a call but no functions are declared")
  return { tools, toolChoice: names.length === 1 ? { _tag: "Function", name: names[0]! } : { _tag: "Required" } }
}

function* output(config: GenerationConfig, faults: Faults, slice: Slice): Sliced<StructuredOutput | undefined> {
  const mimeType = config.responseMimeType ?? undefined
  if (mimeType !== undefined && mimeType !== "text/plain" && mimeType !== "application/json") {
    faults.at("generationConfig.responseMimeType", "only text/plain and application/json are supported")
  }
  const schema = config.responseJsonSchema ??
    (config.responseSchema ? yield* toJsonSchema(config.responseSchema, slice) : undefined)
  if (schema === undefined) return mimeType === "application/json" ? { _tag: "JsonObject" } : undefined
  return { _tag: "JsonSchema", name: undefined, description: undefined, schema, strict: undefined }
}

/** The conversation that a request asks to continue. */
export function* decodeGenerate(request: Request): Sliced<Result.Result<Conversation, GatewayError>> {
  const faults = new Faults()
  const slice = new Slice()
  const config = request.generationConfig ?? {}
  if (config.candidateCount !== undefined && config.candidateCount !== null && config.candidateCount !== 1) {
    faults.at("generationConfig.candidateCount", "only 1 candidate is supported")
  }
  const system = yield* systemTurns(request.systemInstruction, faults, slice)
  const conversation = yield* flatMapSliced(
    slice,
    request.contents,
    (content, i) => turns(content, `contents[${i}]`, faults, slice)
  )
  return faults.result<Conversation>({
    turns: system.concat(conversation),
    ...calling(request.toolConfig, yield* declarations(request.tools, slice), faults),
    parallelToolCalls: true,
    stop: config.stopSequences ?? [],
    sampling: {
      temperature: config.temperature ?? undefined,
      topP: config.topP ?? undefined,
      topK: config.topK ?? undefined,
      maxTokens: config.maxOutputTokens ?? undefined,
      seed: config.seed ?? undefined,
      presencePenalty: config.presencePenalty ?? undefined,
      frequencyPenalty: config.frequencyPenalty ?? undefined,
      reasoningEffort: config.thinkingConfig?.thinkingLevel?.toLowerCase() ?? undefined
    },
    output: yield* output(config, faults, slice)
  })
}

/** Whether the reply shows the model's thoughts: unless the caller says no. */
export const showsThoughts = (request: Request): boolean =>
  request.generationConfig?.thinkingConfig?.includeThoughts !== false
