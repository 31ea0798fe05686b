/**
 * Decodes a content-generation request, as `normalizeRequest` returns it, to the canonical conversation.
 */
import type * as Result from "effect/Result"
import {
  type Conversation,
  noSampling,
  type Part,
  plainConversation,
  Reasoning,
  type ResultPart,
  type StructuredOutput,
  Text,
  type ToolChoice,
  type ToolDeclaration,
  type Turn,
  userTurns,
  withVendorFields
} from "../../domain/Conversation.ts"
import { type GatewayError, shortenName } from "../../domain/GatewayError.ts"
import { isRecord, type Json, type JsonRecord } from "../../domain/json.ts"
import { sealedBy } from "../../domain/sealed.ts"
import { type Cooperative, flatMapCooperatively, Slice } from "../../domain/stream/cooperative.ts"
import type { VendorFields } from "../../domain/VendorFields.ts"
import {
  call,
  type Content as PartContent,
  declaration,
  file,
  image,
  jsonSchemaOutput,
  omitted,
  result,
  toolChoices
} from "../shared/conversation.ts"
import { Faults } from "../shared/Faults.ts"
import { budgetSaid, effortSaid, thinkingFields } from "../shared/thinking.ts"
import { partAttributes } from "./family.ts"
import { isSchemaObject, toJsonSchema } from "./jsonSchema.ts"
import type { Content, GenerateRequest, Part as RequestPart } from "./schema.ts"

type Request = typeof GenerateRequest.Type
type GenerationConfig = NonNullable<Request["generationConfig"]>
type Media = NonNullable<typeof RequestPart.Type["inlineData"] | typeof RequestPart.Type["fileData"]>
type FunctionResponse = NonNullable<typeof RequestPart.Type["functionResponse"]>

const media = (sent: Media): PartContent => {
  const mediaType = sent.mimeType?.toLowerCase()
  const source = "data" in sent ? { data: sent.data } : { url: sent.fileUri }
  if (mediaType?.startsWith("image/")) return image({ ...source, mediaType })
  const kind = mediaType?.startsWith("audio/") ? "audio" : mediaType?.startsWith("video/") ? "video" : "file"
  return file({ ...source, kind, mediaType, name: sent.displayName })
}

/** A function's result. By the vendor's convention a field `error` or `output` that stands alone holds the whole response. */
const functionResult = (sent: FunctionResponse): ResultPart => {
  const response: Json = sent.response ?? {}
  const fields: { readonly [key: string]: Json } = isSchemaObject(response) ? response : {}
  const isError = Object.hasOwn(fields, "error")
  const key = isError ? "error" : "output"
  const value = Object.hasOwn(fields, key) && Object.keys(fields).length === 1 ? fields[key]! : response
  const files = (sent.parts ?? []).flatMap(({ fileData, inlineData }) => [inlineData, fileData])
  return result({
    callId: sent.id,
    name: sent.name,
    content: [
      Text(typeof value === "string" ? value : JSON.stringify(value)),
      ...files.flatMap((sent) => sent ? [media(sent)] : [])
    ],
    isError
  })
}

const textOf = (value: unknown): string => typeof value === "string" ? value : ""

const codeOf = (part: typeof RequestPart.Type | undefined): JsonRecord | undefined =>
  isRecord(part?.["executableCode"]) ? part["executableCode"] : undefined

const outcomeOf = (part: typeof RequestPart.Type | undefined): JsonRecord | undefined =>
  isRecord(part?.["codeExecutionResult"]) ? part["codeExecutionResult"] : undefined

/** The name of calls that stand for code that the vendor ran. */
const executed = "code_execution"

/** Code that the vendor ran, or its result: a call and its result where both are there, else text. */
const executedPart = (parts: ReadonlyArray<typeof RequestPart.Type>, i: number): ReadonlyArray<Part> => {
  const code = codeOf(parts[i])
  if (code !== undefined) {
    const language = textOf(code["language"]).toLowerCase()
    const source = textOf(code["code"])
    return outcomeOf(parts[i + 1]) === undefined
      ? [Text(`\`\`\`${language}\n${source}\n\`\`\``)]
      : [call(textOf(code["id"]), executed, { language, code: source })]
  }
  const outcome = outcomeOf(parts[i])
  if (outcome === undefined) return []
  const content = [Text(textOf(outcome["output"]) || textOf(outcome["outcome"]))]
  const before = codeOf(parts[i - 1])
  const isError = !["", "OUTCOME_OK"].includes(textOf(outcome["outcome"]))
  return before === undefined
    ? content
    : [result({ callId: textOf(before["id"]), name: executed, content, isError })]
}

const partOf = (
  parts: ReadonlyArray<typeof RequestPart.Type>,
  i: number,
  isModel: boolean,
  field: string,
  faults: Faults
): ReadonlyArray<Part> => {
  const part = parts[i]!
  if (typeof part.text === "string") {
    if (part.text === "") return []
    return [part.thought === true && isModel ? Reasoning(part.text) : Text(part.text)]
  }
  if (part.inlineData) return [media(part.inlineData)]
  if (part.fileData) return [media(part.fileData)]
  if (part.functionCall) {
    if (!isModel) faults.at(`${field}.functionCall`, "function calls are allowed in contents of the role model only")
    const { args, id, name } = part.functionCall
    return [call(id, name, args, sealedBy(part["thoughtSignature"]))]
  }
  if (part.functionResponse) {
    if (isModel) {
      faults.at(`${field}.functionResponse`, "function responses are allowed in contents of the role user only")
    }
    return [functionResult(part.functionResponse)]
  }
  if (isModel && (codeOf(part) ?? outcomeOf(part)) !== undefined) return executedPart(parts, i)
  const kind = Object.keys(part).find((key) => !partAttributes.has(key) && part[key] !== null)
  if (kind === undefined) return []
  faults.noteIgnored(field)
  return [omitted(kind)]
}

/** A part with its vendor fields. */
const partWithFields = (
  parts: ReadonlyArray<typeof RequestPart.Type>,
  i: number,
  isModel: boolean,
  field: string,
  faults: Faults
): ReadonlyArray<Part> => {
  const decoded = partOf(parts, i, isModel, field, faults)
  const vendorFields = faults.attach(field)
  if (vendorFields === undefined) return decoded
  const [first = Text(""), ...others] = decoded
  return [withVendorFields(first, vendorFields), ...others]
}

const contentParts = (
  content: typeof Content.Type,
  field: string,
  faults: Faults,
  slice: Slice
): Cooperative<ReadonlyArray<Part>> => {
  const isModel = content.role === "model"
  const parts = content.parts ?? []
  return flatMapCooperatively(
    slice,
    parts,
    (_, i) => partWithFields(parts, i, isModel, `${field}.parts[${i}]`, faults)
  )
}

const isEmpty = (content: typeof Content.Type): boolean =>
  (content.parts ?? []).every((part) => Object.keys(part).length === 0)

/** A content that would be joined with the one before it stays one of its own where the server has contents too. */
const ownContent = (
  content: typeof Content.Type,
  before: typeof Content.Type | undefined
): VendorFields | undefined => {
  const side = ({ role }: typeof Content.Type) => role === "model" || role === "system" ? role : "user"
  const role = side(content)
  return role !== "system" && before !== undefined && side(before) === role
    ? { vendor: "generate", fields: { role } }
    : undefined
}

function* contentTurns(
  content: typeof Content.Type,
  vendorFields: VendorFields | undefined,
  field: string,
  faults: Faults,
  slice: Slice
): Cooperative<ReadonlyArray<Turn>> {
  const role = content.role ?? "user"
  if (role === "user" && isEmpty(content)) faults.at(`${field}.parts`, "is required")
  const parts = yield* contentParts(content, field, faults, slice)
  if (role === "system") return [{ role, parts }]
  const [first, ...others] = userTurns(parts).map((turn): Turn =>
    // The results of code that the vendor ran stand among the model's parts.
    role === "model" && turn.role === "user" ? { role: "assistant", parts: turn.parts } : turn
  )
  return [withVendorFields(first!, vendorFields), ...others]
}

function* systemTurns(
  instruction: Request["systemInstruction"],
  faults: Faults,
  slice: Slice
): Cooperative<ReadonlyArray<Turn>> {
  if (!instruction) return []
  const parts = yield* contentParts({ parts: instruction.parts ?? [] }, "systemInstruction", faults, slice)
  return parts.length === 0 ? [] : [{ role: "system", parts }]
}

interface Tools {
  readonly declared: ReadonlyArray<ToolDeclaration>
  readonly vendorTools: NonNullable<Conversation["vendorTools"]>
}

function* toolsOf(tools: Request["tools"], faults: Faults, slice: Slice): Cooperative<Tools> {
  const declared: Array<ToolDeclaration> = []
  const vendorTools: Array<Tools["vendorTools"][number]> = []
  for (const [i, { functionDeclarations }] of (tools ?? []).entries()) {
    const vendorFields = faults.attach(`tools[${i}]`)
    if (vendorFields !== undefined) vendorTools.push({ index: i, vendorFields })
    // A tool of another kind is one that the vendor runs.
    if (!functionDeclarations) faults.noteIgnored(`tools[${i}]`)
    for (const [k, sent] of (functionDeclarations ?? []).entries()) {
      if (slice.add(1)) yield slice.end()
      const { description, name, parameters, parametersJsonSchema } = sent
      const schema = parametersJsonSchema ?? (parameters ? yield* toJsonSchema(parameters, slice) : undefined)
      faults.noteTool(`tools[${i}].functionDeclarations[${k}].name`, name)
      const tool = declaration({ name, description, parameters: schema })
      declared.push(withVendorFields(tool, faults.attach(`tools[${i}].functionDeclarations[${k}]`)))
    }
  }
  return { declared, vendorTools }
}

const callingField = "toolConfig.functionCallingConfig"

/** The tools that may be called and the choice among them. `allowedFunctionNames` counts in the modes ANY and VALIDATED. */
const calling = (
  config: Request["toolConfig"],
  declared: ReadonlyArray<ToolDeclaration>,
  faults: Faults
): { readonly tools: ReadonlyArray<ToolDeclaration>; readonly toolChoice: ToolChoice } => {
  const { allowedFunctionNames, mode } = config?.functionCallingConfig ?? {}
  if (mode === "NONE") return { tools: declared, toolChoice: toolChoices.none }
  if (mode !== "ANY" && mode !== "VALIDATED") return { tools: declared, toolChoice: toolChoices.auto }
  const names = allowedFunctionNames ?? []
  const known = new Set(declared.map((tool) => tool.name))
  names.forEach((name, i) => {
    if (known.has(name)) return
    faults.at(
      `${callingField}.allowedFunctionNames[${i}]`,
      `the function "${shortenName(name)}" is not declared in tools`
    )
  })
  const allowed = new Set(names)
  const tools = names.length === 0 ? declared : declared.filter((tool) => allowed.has(tool.name))
  if (mode === "VALIDATED") return { tools, toolChoice: toolChoices.auto }
  if (tools.length === 0) faults.at(`${callingField}.mode`, "ANY asks for a call but no functions are declared")
  return { tools, toolChoice: names.length === 1 ? { _tag: "Function", name: names[0]! } : toolChoices.required }
}

function* output(config: GenerationConfig, slice: Slice): Cooperative<StructuredOutput | undefined> {
  const schema = config.responseJsonSchema ??
    (config.responseSchema ? yield* toJsonSchema(config.responseSchema, slice) : undefined)
  if (schema !== undefined) return jsonSchemaOutput({ schema })
  return config.responseMimeType === "application/json" ? { _tag: "JsonObject" } : undefined
}

const thinkingField = "generationConfig.thinkingConfig"

/** The level of thinking as an effort. */
const thinkingLevel = (config: GenerationConfig["thinkingConfig"]): string | undefined => {
  const level = config?.thinkingLevel?.toLowerCase()
  return level === "thinking_level_unspecified" ? undefined : level
}

/** Decodes a request. Fails with the first fault, which names its field; `faults` has what has no effect too. */
export function* decodeGenerate(
  request: Request,
  faults = new Faults()
): Cooperative<Result.Result<Conversation, GatewayError>> {
  const slice = new Slice()
  const config = request.generationConfig ?? {}
  if ((config.candidateCount ?? 1) !== 1) {
    faults.at("generationConfig.candidateCount", "only 1 candidate is supported")
  }
  const system = yield* systemTurns(request.systemInstruction, faults, slice)
  const places = system.map(() => "systemInstruction")
  const turns = yield* flatMapCooperatively(slice, request.contents, function*(content, i) {
    const path = `contents[${i}]`
    const own = ownContent(content, request.contents[i - 1])
    const turns = yield* contentTurns(content, own, path, faults, slice)
    for (const _ of turns) places.push(path)
    return turns
  })
  const { declared, vendorTools } = yield* toolsOf(request.tools, faults, slice)
  return faults.result<Conversation>({
    ...plainConversation,
    turns: system.concat(turns),
    places,
    ...calling(request.toolConfig, declared, faults),
    vendorTools: vendorTools.length === 0 ? undefined : vendorTools,
    stop: config.stopSequences ?? [],
    sampling: {
      ...noSampling,
      temperature: config.temperature ?? undefined,
      topP: config.topP ?? undefined,
      topK: config.topK ?? undefined,
      maxTokens: config.maxOutputTokens ?? undefined,
      seed: config.seed ?? undefined,
      presencePenalty: config.presencePenalty ?? undefined,
      frequencyPenalty: config.frequencyPenalty ?? undefined
    },
    output: yield* output(config, slice),
    ...thinkingFields({}, [
      effortSaid(thinkingLevel(config.thinkingConfig), `${thinkingField}.thinkingLevel`),
      budgetSaid(config.thinkingConfig?.thinkingBudget, `${thinkingField}.thinkingBudget`)
    ])
  })
}

/** True unless the caller sets `includeThoughts` to false: the reply then hides the model's thoughts. */
export const showsThoughts = (request: Request): boolean =>
  request.generationConfig?.thinkingConfig?.includeThoughts !== false
