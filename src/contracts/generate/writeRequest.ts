/**
 * From the canonical conversation to the body of a content generation. What a caller of this family says goes back as the caller
 * sent it.
 */
import type {
  Conversation,
  Sampling,
  SamplingNames,
  StructuredOutput,
  ToolChoice,
  ToolDeclaration
} from "../../domain/Conversation.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import { wantsSignatures } from "../../domain/sealed.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import type { HistoryReasoning } from "../shared/serverThinking.ts"
import { validHistory, withAcceptedTools } from "../shared/validHistory.ts"
import { contentsOf, type SentVendorFields } from "./contents.ts"
import { generateLimits } from "./facts.ts"
import { thinkingConfig, type ThinkingModel } from "./writeThinking.ts"

const declaration = ({ description, name, parameters }: ToolDeclaration): JsonFields => ({
  name,
  ...(description === undefined ? {} : { description }),
  ...(parameters === undefined ? {} : { parametersJsonSchema: parameters })
})

const callingConfig = (choice: ToolChoice): JsonFields | undefined => {
  switch (choice._tag) {
    case "Auto":
      return undefined
    case "None":
      return { mode: "NONE" }
    case "Required":
      return { mode: "ANY" }
    case "Function":
      return { mode: "ANY", allowedFunctionNames: [choice.name] }
  }
}

const declaredTools = ({ toolChoice, tools }: Conversation): JsonFields => {
  if (tools.length === 0) return {}
  const config = callingConfig(toolChoice)
  return {
    tools: [{ functionDeclarations: tools.map(declaration) }],
    ...(config === undefined ? {} : { toolConfig: { functionCallingConfig: config } })
  }
}

const outputFields = (output: StructuredOutput): JsonFields => ({
  responseMimeType: "application/json",
  ...(output._tag === "JsonSchema" ? { responseJsonSchema: output.schema } : {})
})

/** The fields of sampling parameters. Of two limits the later one counts. */
export const samplingNames: SamplingNames = {
  temperature: "temperature",
  topP: "topP",
  topK: "topK",
  maxTokens: "maxOutputTokens",
  maxCompletionTokens: "maxOutputTokens",
  seed: "seed",
  presencePenalty: "presencePenalty",
  frequencyPenalty: "frequencyPenalty",
  logitBias: undefined
}

const samplingKeys = Object.keys(samplingNames) as ReadonlyArray<keyof Sampling>

const samplingFields = (sampling: Sampling): Record<string, Json> => {
  const fields: Record<string, Json> = {}
  for (const key of samplingKeys) {
    const name = samplingNames[key]
    const value = sampling[key]
    if (name !== undefined && value !== undefined) fields[name] = value
  }
  return fields
}

const stopFields = (stop: ReadonlyArray<string>): JsonFields =>
  stop.length === 0 ? {} : { stopSequences: stop.slice(0, generateLimits.stopSequences) }

/** The caller's own settings without a schema, for a reply that is asked for in another way. */
const withoutSchema = (config: JsonFields): JsonFields => {
  const { responseJsonSchema, responseMimeType: _, responseSchema, response_mime_type: __, ...rest } = config
  return responseJsonSchema === undefined && responseSchema === undefined ? config : rest
}

/** The caller's vendor fields win: the canonical forms of what they say are left out. */
const generationConfig = (
  conversation: Conversation,
  model: ThinkingModel,
  own: JsonFields | undefined
): JsonFields => {
  const { output, sampling, stop, thinking } = conversation
  const ownConfig = own?.["generationConfig"]
  const callers = isFields(ownConfig) ? ownConfig : {}
  const said = output === undefined ? withoutSchema(callers) : callers
  const wanted = own === undefined ? thinkingConfig(thinking, model) : thinkingConfig(undefined, model)
  return {
    ...samplingFields(sampling),
    ...stopFields(stop),
    ...(output === undefined || own !== undefined ? {} : outputFields(output)),
    ...(wanted === undefined ? {} : { thinkingConfig: wanted }),
    ...said
  }
}

/** What a driver knows of a request beside the conversation. */
export interface RequestOptions {
  readonly model: ThinkingModel
  readonly own: SentVendorFields
  readonly history: HistoryReasoning
}

/** A server of which nothing is known but its name of the model. */
export const plainServer = (name: string): RequestOptions => ({
  model: { model: { id: name, reasoning: "auto", search: false }, name, words: undefined },
  own: () => undefined,
  history: "all"
})

/** The request of a conversation, as an object to send. */
export function* generateRequest(
  said: Conversation,
  { history, model, own }: RequestOptions
): Cooperative<JsonFields> {
  const valid = yield* validHistory(said, generateLimits)
  // Tools that their caller has declared in this contract go as they are.
  const conversation = own(said)?.fields["tools"] === undefined ? withAcceptedTools(valid, generateLimits) : valid
  const { contents, systemInstruction } = yield* contentsOf(conversation, own, history, wantsSignatures(model.name))
  const fields = own(conversation)?.fields
  const sentInstruction = fields?.["systemInstruction"]
  const config = generationConfig(conversation, model, fields)
  return {
    ...fields,
    ...(fields?.["tools"] === undefined ? declaredTools(conversation) : {}),
    contents,
    ...(systemInstruction === undefined
      ? {}
      : { systemInstruction: { ...(isFields(sentInstruction) ? sentInstruction : {}), ...systemInstruction } }),
    ...(Object.keys(config).length === 0 && fields?.["generationConfig"] === undefined
      ? {}
      : { generationConfig: config })
  }
}
