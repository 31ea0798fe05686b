/** Fields of the `generate` contract that the schemas of content generation and of its embeddings lack. */
import { isRecord, type JsonRecord } from "../json.ts"
import {
  carried,
  hint,
  local,
  modelled,
  oneOf,
  refusedByDecoder,
  required,
  type Row,
  type Table,
  told,
  toldByDecoder,
  translated
} from "./Family.ts"
import { reads } from "./requestSchema.ts"

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

/** A row that is refused elsewhere, unless the value is one that every server has. */
const requiredUnless = (why: string, isSilent: (value: unknown) => boolean): Row => ({ ...required(why), isSilent })

/** Fields that describe a part; they are not its content. */
const attributes: Table = {
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
export const partKind = (value: JsonRecord): string | undefined => {
  const kinds = Object.keys(value).filter((key) => value[key] !== null && !partAttributes.has(camelCase(key))).map(
    camelCase
  )
  return kinds.find((kind) => Object.hasOwn(partKinds, kind)) ?? kinds[0]
}

export const blobFields: Table = { displayName: told("Other servers get names of files only.") }

export const callFields: Table = { partialArgs: told(noPieces), willContinue: told(noPieces, false) }

export const resultFields: Table = {
  scheduling: told("Other servers answer when the results are there."),
  willContinue: told("Results are whole.", false)
}

/** The kinds of parts, by the field that holds the content. */
export const partKinds = {
  // A part without content: only the vendor's own servers read what describes it.
  "": translated(),
  text: reads(["text"], attributes),
  inlineData: reads(["inlineData"], attributes),
  fileData: reads(["fileData"], attributes),
  functionCall: reads(["functionCall"], { ...attributes, thoughtSignature: modelled }),
  functionResponse: reads(["functionResponse"], attributes),
  executableCode: translated(),
  codeExecutionResult: translated(),
  toolCall: told("The gateway runs none of the vendor's tools."),
  toolResponse: told("The gateway runs none of the vendor's tools."),
  audioTranscription: told(noMedia)
}

/** A part may be sent as its text. */
export const partForm = (value: unknown): unknown => typeof value === "string" ? { text: value } : value

/** A content may be sent as its text, or as its only part. */
export const contentForm = (value: unknown): unknown =>
  typeof value === "string"
    ? { parts: [value] }
    : isRecord(value) && !("parts" in value || "role" in value)
    ? { parts: [value] }
    : value

/** System instructions may also be sent as a list of parts. */
export const instructionForm = (value: unknown): unknown => Array.isArray(value) ? { parts: value } : contentForm(value)

export const instructionFields: Table = { role: translated() }

const vendorTool = told("The gateway runs none of the vendor's tools.")

/** Tools that the vendor runs. */
export const vendorTools: Table = {
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

export const functionFields: Table = {
  response: told("Other servers have no schema of results."),
  responseJsonSchema: told("Other servers have no schema of results."),
  behavior: told("Other servers wait for results.", "UNSPECIFIED", "BLOCKING")
}

/** The kind of a tool: one of functions, or one that the vendor runs. */
export const toolKind = (value: JsonRecord): string | undefined => {
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

export const functionMode: Row = {
  ...told("The mode VALIDATED is AUTO elsewhere: other servers check no arguments. The other modes are modelled."),
  isSilent: (mode) => mode !== "VALIDATED"
}

export const functionCallingFields: Table = {
  mode: functionMode,
  streamFunctionCallArguments: told(noPieces, false)
}

export const toolConfigFields: Table = {
  retrievalConfig: told("The gateway runs none of the vendor's tools."),
  includeServerSideToolInvocations: told("The gateway runs none of the vendor's tools.", false)
}

/** Fields of the configuration. Some are in its Schema, which checks their values. */
export const configFields: Table = {
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
}

/** Fields of a content generation. */
export const generateFields: Table = {
  cachedContent: required("the upstream stores no content; send it in contents instead"),
  safetySettings: told("The server's own filters apply."),
  serviceTier: told(vendorOnly),
  modelArmorConfig: told(vendorOnly),
  continuationToken: told("Replies are not continued."),
  generationOutputConfig: told(vendorOnly),
  store: told("The gateway stores no generated contents.", false),
  labels: hint("Labels for the vendor's bills."),
  model: local(hint("The path names the model."))
}

/** Fields of embeddings. */
export const embedFields: Table = {
  taskType: {
    ...modelled,
    why: "Sent to a server of this contract, and as input_type if upstream.fields lists that; otherwise told."
  },
  title: toldByDecoder("Sent to a server of this contract only."),
  autoTruncate: told("The server decides what becomes of long texts."),
  mimeType: told("Contents are text."),
  documentOcr: told("Contents are text.", false),
  audioTrackExtraction: told("Contents are text.", false)
}
