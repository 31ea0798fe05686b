/** The requests of the `generate` contract: content generation and its embeddings. */
import { isRecord, type JsonRecord } from "../json.ts"
import {
  carried,
  type Family,
  hint,
  listOf,
  local,
  modelled,
  object,
  objectBy,
  oneOf,
  opaque,
  refusedByDecoder,
  required,
  type Row,
  told,
  toldByDecoder,
  translated
} from "./Family.ts"

/** Longer keys, in characters, name no field; renaming them would be slow. */
const longestField = 64

/** The name of a field in camelCase, from either spelling that the vendor accepts. */
export const camelCase = (key: string): string =>
  key.length <= longestField && key.includes("_")
    ? key.replace(/(?<=[a-z0-9])_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    : key

const vendorOnly = "Belongs to the vendor's own servers."
const noMedia = "Replies are text."
const ownReading = "The server decides how it reads media."
const noPieces = "Calls are whole."

/** A row whose field is sent whole to a server of the contract. */
const whole = (row: Row): Row => ({ ...row, ...translated() })

/** A row that is refused elsewhere, unless the value is one that every server has. */
const requiredUnless = (why: string, isSilent: (value: unknown) => boolean): Row => ({ ...required(why), isSilent })

/** Fields that describe a part; they are not its content. */
const attributes = {
  thought: modelled,
  thoughtSignature: hint("Only the vendor's own servers read it."),
  videoMetadata: told(ownReading),
  mediaResolution: told(ownReading),
  mediaProcessing: told(ownReading),
  partMetadata: hint("A note of the caller's."),
  speechMetadata: told(noMedia)
}

/** Names of the fields that describe a part. */
export const partAttributes: ReadonlySet<string> = new Set(Object.keys(attributes))

/** The field that holds the content of a part. */
const partKind = (value: JsonRecord): string | undefined => {
  const kinds = Object.keys(value).filter((key) => value[key] !== null && !partAttributes.has(camelCase(key))).map(
    camelCase
  )
  return kinds.find((kind) => partRows[kind] !== undefined) ?? kinds[0]
}

const blob = { mimeType: modelled, displayName: told("Other servers get names of files only.") }

const partRows: { readonly [kind: string]: Row } = {
  // A part without content: only the vendor's own servers read what describes it.
  "": translated(),
  text: object({ text: modelled, ...attributes }),
  inlineData: object({ inlineData: object({ data: modelled, ...blob }), ...attributes }),
  fileData: object({ fileData: object({ fileUri: modelled, ...blob }), ...attributes }),
  functionCall: object({
    functionCall: object({
      id: modelled,
      name: modelled,
      args: opaque,
      partialArgs: told(noPieces),
      willContinue: told(noPieces, false)
    }),
    ...attributes,
    thoughtSignature: modelled
  }),
  functionResponse: object({
    functionResponse: whole(object({
      id: modelled,
      name: modelled,
      response: opaque,
      parts: opaque,
      scheduling: told("Other servers answer when the results are there."),
      willContinue: told("Results are whole.", false)
    })),
    ...attributes
  }),
  executableCode: translated(),
  codeExecutionResult: translated(),
  toolCall: told("The gateway runs none of the vendor's tools."),
  toolResponse: told("The gateway runs none of the vendor's tools."),
  audioTranscription: told(noMedia)
}

const part: Row = {
  ...objectBy(partKind, partRows),
  form: (value) => typeof value === "string" ? { text: value } : value
}

const parts = listOf(part)

/** A content may be sent as its text, or as its only part. */
const contentOf = (value: unknown): unknown =>
  typeof value === "string"
    ? { parts: [value] }
    : isRecord(value) && !("parts" in value || "role" in value)
    ? { parts: [value] }
    : value

const content: Row = { ...object({ role: modelled, parts }), form: contentOf }

const instruction: Row = {
  ...object({ role: translated(), parts }),
  form: (value) => Array.isArray(value) ? { parts: value } : contentOf(value)
}

const vendorTool = told("The gateway runs none of the vendor's tools.")

const vendorTools = {
  retrieval: vendorTool,
  googleMaps: vendorTool,
  mcpServers: vendorTool,
  codeExecution: vendorTool,
  computerUse: vendorTool,
  enterpriseWebSearch: vendorTool,
  exaAiSearch: vendorTool,
  googleSearch: vendorTool,
  googleSearchRetrieval: vendorTool,
  parallelAiSearch: vendorTool,
  urlContext: vendorTool,
  fileSearch: vendorTool
}

const functions = object({
  functionDeclarations: listOf(object({
    name: modelled,
    description: modelled,
    parameters: opaque,
    parametersJsonSchema: opaque,
    response: told("Other servers have no schema of results."),
    responseJsonSchema: told("Other servers have no schema of results."),
    behavior: told("Other servers wait for results.", "UNSPECIFIED", "BLOCKING")
  })),
  ...vendorTools
})

/** A tool of functions, or one that the vendor runs. */
const toolKind = (value: JsonRecord): string | undefined => {
  const kinds = Object.keys(value).map(camelCase)
  return kinds.includes("functionDeclarations") ? "functionDeclarations" : kinds[0]
}

const isText = (modality: unknown): boolean =>
  typeof modality === "string" && /^(?:text|modality_unspecified)$/i.test(modality)

/** The modalities of a reply, of which servers of other contracts have text only. */
const modalities: Row = {
  ...requiredUnless("only TEXT is supported", (value) => Array.isArray(value) && value.every(isText)),
  faultIn: (value) => Array.isArray(value) ? `[${value.findIndex((modality) => !isText(modality))}]` : ""
}

export const generateFamily: Family = {
  name: "generate",
  vendor: "generate",
  open: true,
  spelling: camelCase,
  fields: new Map(Object.entries({
    contents: listOf(content),
    systemInstruction: instruction,
    tools: whole(listOf(objectBy(toolKind, { functionDeclarations: functions, ...vendorTools }))),
    toolConfig: object({
      functionCallingConfig: whole(object({
        mode: {
          ...told(
            "The mode VALIDATED is AUTO elsewhere: other servers check no arguments. The other modes are modelled."
          ),
          isSilent: (mode) => mode !== "VALIDATED"
        },
        allowedFunctionNames: modelled,
        streamFunctionCallArguments: told(noPieces, false)
      })),
      retrievalConfig: told("The gateway runs none of the vendor's tools."),
      includeServerSideToolInvocations: told("The gateway runs none of the vendor's tools.", false)
    }),
    generationConfig: object({
      stopSequences: modelled,
      maxOutputTokens: modelled,
      temperature: modelled,
      topP: modelled,
      topK: modelled,
      seed: modelled,
      presencePenalty: modelled,
      frequencyPenalty: modelled,
      candidateCount: refusedByDecoder("A reply has one candidate."),
      responseMimeType: requiredUnless(
        "only text/plain and application/json are supported",
        (value) => value === "text/plain" || value === "application/json"
      ),
      responseSchema: translated(),
      responseJsonSchema: translated(),
      thinkingConfig: translated(),
      responseModalities: modalities,
      responseFormat: told("Use responseMimeType and responseJsonSchema."),
      responseLogprobs: carried({ as: "logprobs", isSilent: oneOf(false) }),
      logprobs: carried({ as: "top_logprobs", isSilent: oneOf(0) }),
      mediaResolution: told("The server decides how it reads pictures.", "MEDIA_RESOLUTION_UNSPECIFIED"),
      speechConfig: told(noMedia),
      imageConfig: told(noMedia),
      audioTimestamp: told("The server decides how it reads audio.", false),
      audioTranscriptionConfig: told(noMedia),
      translationConfig: told(noMedia),
      enableAffectiveDialog: told(noMedia, false),
      enableEnhancedCivicAnswers: told(vendorOnly, false),
      routingConfig: told("The model is the one in the path."),
      modelSelectionConfig: told("The model is the one in the path.")
    }),
    cachedContent: required("the upstream stores no content; send it in contents instead"),
    safetySettings: told("The server's own filters apply."),
    serviceTier: told(vendorOnly),
    modelArmorConfig: told(vendorOnly),
    continuationToken: told("Replies are not continued."),
    generationOutputConfig: told(vendorOnly),
    store: told("The gateway stores no generated contents.", false),
    labels: hint("Labels for the vendor's bills."),
    model: local(hint("The path names the model."))
  }))
}

export const embedFamily: Family = {
  name: "generate embeddings",
  open: true,
  spelling: camelCase,
  fields: new Map(Object.entries({
    content: modelled,
    requests: modelled,
    model: modelled,
    outputDimensionality: modelled,
    taskType: {
      ...modelled,
      why: "Sent to a server of this contract, and as input_type if upstream.fields lists that; otherwise told."
    },
    title: toldByDecoder("Sent to a server of this contract only."),
    autoTruncate: told("The server decides what becomes of long texts."),
    mimeType: told("Contents are text."),
    documentOcr: told("Contents are text.", false),
    audioTrackExtraction: told("Contents are text.", false)
  }))
}
