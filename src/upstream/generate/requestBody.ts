/**
 * From the canonical conversation to the body of a content generation. What a caller of this family says goes back in the caller's
 * own words.
 */
import type {
  Conversation,
  Sampling,
  StructuredOutput,
  ToolChoice,
  ToolDeclaration
} from "../../domain/Conversation.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { contentsOf, type HistoryReasoning, nativeOf } from "./contents.ts"
import { thinkingConfig, type ThinkingModel } from "./thinking.ts"

/** Stop sequences that the vendor accepts; the gateway applies the others. */
const mostStops = 5

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

const fieldNames = {
  temperature: "temperature",
  topP: "topP",
  topK: "topK",
  seed: "seed",
  presencePenalty: "presencePenalty",
  frequencyPenalty: "frequencyPenalty"
} as const satisfies { readonly [Key in keyof Sampling]?: string }

const samplingKeys = Object.keys(fieldNames) as ReadonlyArray<keyof typeof fieldNames>

const samplingFields = (sampling: Sampling): Record<string, Json> => {
  const fields: Record<string, Json> = {}
  for (const key of samplingKeys) {
    const value = sampling[key]
    if (value !== undefined) fields[fieldNames[key]] = value
  }
  const most = sampling.maxCompletionTokens ?? sampling.maxTokens
  if (most !== undefined) fields["maxOutputTokens"] = most
  return fields
}

const generationConfig = (conversation: Conversation, model: ThinkingModel): JsonFields => {
  const { output, sampling, stop } = conversation
  const thinking = thinkingConfig(conversation, model)
  return {
    ...samplingFields(sampling),
    ...(stop.length === 0 ? {} : { stopSequences: stop.slice(0, mostStops) }),
    ...(output === undefined ? {} : outputFields(output)),
    ...(thinking === undefined ? {} : { thinkingConfig: thinking })
  }
}

/** A caller's own words, but for stop sequences that the server would refuse. */
const ownConfig = (own: JsonFields): JsonFields => {
  const stop = own["stopSequences"]
  return Array.isArray(stop) && stop.length > mostStops ? { ...own, stopSequences: stop.slice(0, mostStops) } : own
}

const isObject = (value: Json | undefined): value is JsonFields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The request of a conversation, as an object to send. */
export function* generateRequest(
  conversation: Conversation,
  model: ThinkingModel,
  history?: HistoryReasoning
): Cooperative<JsonFields> {
  const { contents, systemInstruction } = yield* contentsOf(conversation, history)
  const own = nativeOf(conversation)?.fields
  const ownGeneration = own?.["generationConfig"]
  const config = own === undefined
    ? generationConfig(conversation, model)
    : isObject(ownGeneration)
    ? ownConfig(ownGeneration)
    : {}
  return {
    ...(own ?? declaredTools(conversation)),
    contents,
    ...(systemInstruction === undefined ? {} : { systemInstruction }),
    ...(Object.keys(config).length === 0 && ownGeneration === undefined ? {} : { generationConfig: config })
  }
}
