/** Fields of the `generate` contract that the schemas of content generation and of its embeddings lack. */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import {
  ignorable,
  local,
  oneOf,
  passed,
  refusedByDecoder,
  reported,
  reportedByDecoder,
  required,
  type Row,
  supported,
  type Table,
  translated
} from "../shared/Family.ts"
import { reads } from "../shared/requestSchema.ts"

/** Longer keys, in characters, name no field; renaming them would be slow. */
const longestField = 64

/** The name of a field in camelCase, from either spelling that the vendor accepts. */
export const camelCase = (key: string): string =>
  key.length <= longestField && key.includes("_")
    ? key.replace(/(?<=[a-z0-9])_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    : key

const vendorOnly = "Belongs to the provider's own servers."
const noMedia = "Replies are text."
const ownReading = "The server decides how it reads media."
const noPieces = "Calls are whole."

/** A row that is refused elsewhere, unless the value is one that every server has. */
const requiredUnless = (why: string, isSilent: (value: unknown) => boolean): Row => ({ ...required(why), isSilent })

/** Fields that describe a part; they are not its content. */
const attributes: Table = {
  thought: supported,
  thoughtSignature: ignorable("Only the provider's own servers read it."),
  videoMetadata: reported(ownReading),
  mediaResolution: reported(ownReading),
  mediaProcessing: reported(ownReading),
  partMetadata: ignorable("A note of the client's."),
  speechMetadata: reported(noMedia)
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

export const blobFields: Table = { displayName: reported("Other servers get names of files only.") }

export const callFields: Table = { partialArgs: reported(noPieces), willContinue: reported(noPieces, false) }

export const resultFields: Table = {
  scheduling: reported("Other servers answer when the results are there."),
  willContinue: reported("Results are whole.", false)
}

/** The kinds of parts, by the field that holds the content. */
export const partKinds = {
  // A part without content: only the vendor's own servers read what describes it.
  "": translated(),
  text: reads(["text"], attributes),
  inlineData: reads(["inlineData"], attributes),
  fileData: reads(["fileData"], attributes),
  functionCall: reads(["functionCall"], { ...attributes, thoughtSignature: supported }),
  functionResponse: reads(["functionResponse"], attributes),
  executableCode: translated(),
  codeExecutionResult: translated(),
  toolCall: reported("The gateway runs none of the provider's tools."),
  toolResponse: reported("The gateway runs none of the provider's tools."),
  audioTranscription: reported(noMedia)
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

const vendorTool = reported("The gateway runs none of the provider's tools.")

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
  response: reported("Other servers have no schema of results."),
  responseJsonSchema: reported("Other servers have no schema of results."),
  behavior: reported("Other servers wait for results.", "UNSPECIFIED", "BLOCKING")
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
  ...reported("The mode VALIDATED is AUTO elsewhere: other servers check no arguments. The other modes are supported."),
  isSilent: (mode) => mode !== "VALIDATED"
}

export const functionCallingFields: Table = {
  mode: functionMode,
  streamFunctionCallArguments: reported(noPieces, false)
}

export const toolConfigFields: Table = {
  retrievalConfig: reported("The gateway runs none of the provider's tools."),
  includeServerSideToolInvocations: reported("The gateway runs none of the provider's tools.", false)
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
  responseFormat: reported("Use responseMimeType and responseJsonSchema."),
  responseLogprobs: passed({ as: "logprobs", isSilent: oneOf(false) }),
  logprobs: passed({ as: "top_logprobs", isSilent: oneOf(0) }),
  mediaResolution: reported("The server decides how it reads pictures.", "MEDIA_RESOLUTION_UNSPECIFIED"),
  speechConfig: reported(noMedia),
  imageConfig: reported(noMedia),
  audioTimestamp: reported("The server decides how it reads audio.", false),
  audioTranscriptionConfig: reported(noMedia),
  translationConfig: reported(noMedia),
  enableAffectiveDialog: reported(noMedia, false),
  enableEnhancedCivicAnswers: reported(vendorOnly, false),
  routingConfig: reported("The model is the one in the path."),
  modelSelectionConfig: reported("The model is the one in the path.")
}

/** Fields of a content generation. */
export const generateFields: Table = {
  cachedContent: required("the upstream stores no content; send it in contents instead"),
  safetySettings: reported("The server's own filters apply."),
  serviceTier: reported(vendorOnly),
  modelArmorConfig: reported(vendorOnly),
  continuationToken: reported("Replies are not continued."),
  generationOutputConfig: reported(vendorOnly),
  store: reported("The gateway stores no generated contents.", false),
  labels: ignorable("Labels for the provider's bills."),
  model: local(ignorable("The path names the model."))
}

/** Fields of embeddings. */
export const embedFields: Table = {
  taskType: {
    ...supported,
    why: "Sent to a server of this contract, and as input_type if upstream.fields lists that; otherwise reported."
  },
  title: reportedByDecoder("Sent to a server of this contract only."),
  autoTruncate: reported("The server decides what becomes of long texts."),
  mimeType: reported("Contents are text."),
  documentOcr: reported("Contents are text.", false),
  audioTrackExtraction: reported("Contents are text.", false)
}
