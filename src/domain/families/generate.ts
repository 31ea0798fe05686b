/** The requests of the `generate` contract: content generation and its embeddings. */
import { type Family, hint, modelled, object, refusedByDecoder, required, told, toldByDecoder } from "./Family.ts"

/** Longer keys, in characters, name no field; renaming them would be slow. */
const longestField = 64

/** The name of a field in camelCase, from either spelling that the vendor accepts. */
export const camelCase = (key: string): string =>
  key.length <= longestField && key.includes("_")
    ? key.replace(/(?<=[a-z0-9])_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    : key

const vendorOnly = "Belongs to the vendor's own servers."
const noProbabilities = "Replies have no probabilities in this style."
const noMedia = "Replies are text."

export const generateFamily: Family = {
  name: "generate",
  vendor: "generate",
  open: true,
  spelling: camelCase,
  fields: new Map(Object.entries({
    contents: modelled,
    systemInstruction: modelled,
    tools: modelled,
    toolConfig: object({
      functionCallingConfig: modelled,
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
      responseMimeType: modelled,
      responseSchema: modelled,
      responseJsonSchema: modelled,
      thinkingConfig: modelled,
      responseModalities: refusedByDecoder("Only TEXT is supported."),
      responseFormat: told("Use responseMimeType and responseJsonSchema."),
      responseLogprobs: told(noProbabilities, false),
      logprobs: told(noProbabilities, 0),
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
    model: hint("The path names the model.")
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
    taskType: { ...modelled, why: "Sent as input_type if upstream.fields lists that, otherwise told." },
    title: toldByDecoder("The title is not embedded."),
    autoTruncate: told("The server decides what becomes of long texts."),
    mimeType: told("Contents are text."),
    documentOcr: told("Contents are text.", false),
    audioTrackExtraction: told("Contents are text.", false)
  }))
}
