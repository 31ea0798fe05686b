/**
 * Schemas of the content-generation contract: request, reply, stream, counts, vectors and lists (spec "Content-generation style").
 */
import * as Schema from "effect/Schema"
import { dimensionsRange } from "../../domain/Embeddings.ts"
import { optional, ParsedJson, ParsedObject } from "../../domain/schemas.ts"
import { opaque, supported } from "../shared/Family.ts"
import { reads, request } from "../shared/requestSchema.ts"
import {
  blobFields,
  callFields,
  configFields,
  contentForm,
  functionCallingFields,
  functionFields,
  instructionFields,
  instructionForm,
  partForm,
  partKind,
  partKinds,
  resultFields,
  toolConfigFields,
  toolKind,
  vendorTools
} from "./family.ts"

const Blob = Schema.Struct({
  data: Schema.NonEmptyString,
  mimeType: optional(Schema.String),
  displayName: optional(Schema.String)
}).annotate(request({ fields: blobFields }))
const FileData = Schema.Struct({
  fileUri: Schema.NonEmptyString,
  mimeType: optional(Schema.String),
  displayName: optional(Schema.String)
}).annotate(request({ fields: blobFields }))

/** A part of a function's response. */
export const MediaPart = Schema.Struct({ inlineData: optional(Blob), fileData: optional(FileData) })

/** A part of a content. Unknown fields are kept, so that the decoder can name the part's kind. */
export const Part = Schema.StructWithRest(
  Schema.Struct({
    text: optional(Schema.String),
    thought: optional(Schema.Boolean),
    inlineData: optional(Blob),
    fileData: optional(FileData),
    functionCall: optional(
      Schema.Struct({
        id: optional(Schema.String),
        name: Schema.NonEmptyString,
        args: optional(ParsedObject)
      }).annotate(request({ fields: callFields }))
    ),
    functionResponse: optional(
      Schema.Struct({
        id: optional(Schema.String),
        name: optional(Schema.String),
        response: optional(ParsedJson),
        parts: optional(Schema.Array(MediaPart)).annotate(request({ fate: opaque }))
      }).annotate(request({ fields: resultFields, also: { whole: true } }))
    )
  }),
  [Schema.Record(Schema.String, Schema.Unknown)]
).annotate({
  identifier: "Part",
  ...request({ kinds: { by: partKind, rows: partKinds }, also: { form: partForm } })
})

/** A turn of the conversation; the default role is `user`. */
export const Content = Schema.Struct({
  role: optional(Schema.Literals(["user", "model", "function", "tool", "system"])),
  parts: optional(Schema.Array(Part))
}).annotate({ identifier: "Content", ...request({ also: { form: contentForm } }) })

/** A declared function; `parameters` has the vendor's upper-case types, `parametersJsonSchema` is JSON Schema. */
export const FunctionDeclaration = Schema.Struct({
  name: Schema.NonEmptyString,
  description: optional(Schema.String),
  parameters: optional(ParsedObject),
  parametersJsonSchema: optional(ParsedObject)
}).annotate({ identifier: "FunctionDeclaration", ...request({ fields: functionFields }) })

/** A tool; tools without function declarations are accepted and ignored. */
export const GenerateTool = Schema.Struct({
  functionDeclarations: optional(Schema.Array(FunctionDeclaration)).annotate(request({ counted: "functions" }))
}).annotate(request({
  kinds: {
    by: toolKind,
    rows: { functionDeclarations: reads(["functionDeclarations"], vendorTools), ...vendorTools }
  }
}))

/** How functions may be called. */
export const ToolConfig = Schema.Struct({
  functionCallingConfig: optional(Schema.Struct({
    mode: optional(Schema.Literals(["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"])),
    allowedFunctionNames: optional(Schema.Array(Schema.String)).annotate(request({ counted: "toolNames" }))
  })).annotate(request({ fields: functionCallingFields, also: { whole: true } }))
}).annotate(request({ fields: toolConfigFields }))

/** Sampling, limits and the format of the output. */
export const GenerationConfig = Schema.Struct({
  stopSequences: optional(Schema.Array(Schema.String)).annotate(request({ counted: "stops" })),
  maxOutputTokens: optional(Schema.Int),
  temperature: optional(Schema.Finite),
  topP: optional(Schema.Finite),
  topK: optional(Schema.Finite),
  seed: optional(Schema.Int),
  presencePenalty: optional(Schema.Finite),
  frequencyPenalty: optional(Schema.Finite),
  candidateCount: optional(Schema.Int),
  responseMimeType: optional(Schema.String),
  responseModalities: optional(Schema.Array(Schema.String)).annotate({
    description: "Only `TEXT`, except at a server of this contract."
  }),
  responseSchema: optional(ParsedObject),
  responseJsonSchema: optional(ParsedObject),
  thinkingConfig: optional(Schema.Struct({
    includeThoughts: optional(Schema.Boolean),
    thinkingBudget: optional(Schema.Finite),
    thinkingLevel: optional(Schema.String)
  }))
}).annotate({ identifier: "GenerationConfig", ...request({ fields: configFields }) })

/** Body of a content generation; fields that are not named here are accepted and ignored. */
export const GenerateRequest = Schema.Struct({
  contents: Schema.NonEmptyArray(Content).annotate({
    description: "The conversation so far.",
    ...request({ counted: "turns" })
  }),
  systemInstruction: optional(Content).annotate({
    description: "System prompt.",
    ...request({ counted: "parts", fields: instructionFields, also: { form: instructionForm } })
  }),
  tools: optional(Schema.Array(GenerateTool)).annotate({
    description: "Function declarations that the model may call.",
    ...request({ also: { whole: true } })
  }),
  toolConfig: optional(ToolConfig),
  cachedContent: optional(Schema.String).annotate({ description: "Refused, except at a server of this contract." }),
  generationConfig: optional(GenerationConfig)
}).annotate({ identifier: "GenerateRequest" })

/** The tokens of one kind. */
export const ModalityTokens = Schema.Struct({
  modality: Schema.Literals(["TEXT", "IMAGE", "AUDIO", "VIDEO"]),
  tokenCount: Schema.Int
})

/** Token counts of a reply; the candidates' count excludes the thoughts. */
export const UsageMetadata = Schema.Struct({
  promptTokenCount: Schema.Int,
  candidatesTokenCount: Schema.Int,
  totalTokenCount: Schema.Int,
  thoughtsTokenCount: Schema.Int,
  cachedContentTokenCount: Schema.Int,
  /** Absent where all tokens are text. */
  promptTokensDetails: Schema.optionalKey(Schema.Array(ModalityTokens)),
  candidatesTokensDetails: Schema.optionalKey(Schema.Array(ModalityTokens))
}).annotate({ identifier: "UsageMetadata" })

/** A part of a reply. */
export const ReplyPart = Schema.Union([
  Schema.Struct({ text: Schema.String, thought: Schema.optionalKey(Schema.Literal(true)) }),
  Schema.Struct({
    functionCall: Schema.Struct({ id: Schema.String, name: Schema.String, args: ParsedObject }),
    thoughtSignature: Schema.optionalKey(Schema.String)
  }),
  Schema.Struct({ inlineData: Schema.Struct({ mimeType: Schema.String, data: Schema.String }) }),
  Schema.Struct({ fileData: Schema.Struct({ fileUri: Schema.String }) })
])

const Token = Schema.Struct({ token: Schema.String, logProbability: Schema.Finite })

const LogprobsResult = Schema.Struct({
  chosenCandidates: Schema.Array(Token),
  topCandidates: Schema.optionalKey(Schema.Array(Schema.Struct({ candidates: Schema.Array(Token) })))
})

const GroundingMetadata = Schema.Struct({
  groundingChunks: Schema.Array(
    Schema.Struct({ web: Schema.Struct({ uri: Schema.String, title: Schema.optionalKey(Schema.String) }) })
  ),
  groundingSupports: Schema.optionalKey(Schema.Array(Schema.Struct({
    segment: Schema.Struct({ startIndex: Schema.Int, endIndex: Schema.Int }),
    groundingChunkIndices: Schema.Array(Schema.Int)
  })))
})

const candidate = {
  content: Schema.Struct({ role: Schema.Literal("model"), parts: Schema.Array(ReplyPart) }),
  index: Schema.Literal(0),
  /** The text by which the model refuses. */
  finishMessage: Schema.optionalKey(Schema.String),
  /** Of the text of this reply, or of this chunk. */
  logprobsResult: Schema.optionalKey(LogprobsResult),
  /** The pages that the text cites. A stream has them in its last chunk. */
  groundingMetadata: Schema.optionalKey(GroundingMetadata)
}
const FinishReason = Schema.Literals(["STOP", "MAX_TOKENS", "SAFETY"])

/** Reply of a content generation. */
export const GenerateResponse = Schema.Struct({
  /** Absent if the server blocked the prompt. */
  candidates: Schema.optionalKey(Schema.Array(Schema.Struct({ ...candidate, finishReason: FinishReason }))),
  usageMetadata: UsageMetadata,
  modelVersion: Schema.String,
  responseId: Schema.String
}).annotate({ identifier: "GenerateResponse" })

/** One chunk of a streamed reply; the last chunk has the finish reason and the token counts. */
export const GenerateChunk = Schema.Struct({
  candidates: Schema.optionalKey(
    Schema.Array(Schema.Struct({ ...candidate, finishReason: Schema.optionalKey(FinishReason) }))
  ),
  usageMetadata: Schema.optionalKey(UsageMetadata),
  modelVersion: Schema.String,
  responseId: Schema.String
}).annotate({ identifier: "GenerateChunk" })

/** Body of a token count: a request, or one within `generateContentRequest`. */
export const CountTokensBody = Schema.Union([
  Schema.Struct({ generateContentRequest: GenerateRequest }),
  GenerateRequest
])

/** Reply of a token count. */
export const TokenCount = Schema.Struct({ totalTokens: Schema.Int }).annotate({ identifier: "CountTokensResponse" })

/** Body of an embedding. */
export const EmbedContentRequest = Schema.Struct({
  model: optional(Schema.String).annotate({ description: "Must be the model of the path when present." }),
  content: Content.annotate(request({ counted: "parts", fate: supported })).annotateKey({
    description: "The text, in one or more parts."
  }),
  taskType: optional(Schema.String).annotate({
    description:
      "Sent to a server of this contract, and as `input_type` if `upstream.fields` lists that; otherwise without effect."
  }),
  title: optional(Schema.String).annotate({
    description: "Sent to a server of this contract; otherwise without effect."
  }),
  outputDimensionality: optional(Schema.Int.check(Schema.isBetween(dimensionsRange))).annotate({
    description: "Length of the vector. The default is 256 for vectors of the gateway, else the upstream's."
  })
}).annotate({ identifier: "EmbedContentRequest" })

/** Body of several embeddings of the same dimensions. */
export const BatchEmbedContentsRequest = Schema.Struct({
  requests: Schema.NonEmptyArray(EmbedContentRequest).annotate({
    description: "Contents to embed, all with the same model and dimensions.",
    ...request({ counted: "turns", fate: supported })
  })
})
  .annotate({ identifier: "BatchEmbedContentsRequest" })

const ContentEmbedding = Schema.Struct({ values: Schema.Array(Schema.Finite) })
const embedUsage = { usageMetadata: Schema.Struct({ promptTokenCount: Schema.Int }) }

/** Reply with one embedding. */
export const EmbedContentResponse = Schema.Struct({ embedding: ContentEmbedding, ...embedUsage })
  .annotate({ identifier: "EmbedContentResponse" })

/** Reply with several embeddings, in the order of the requests. */
export const BatchEmbedContentsResponse = Schema.Struct({
  embeddings: Schema.Array(ContentEmbedding),
  ...embedUsage
}).annotate({ identifier: "BatchEmbedContentsResponse" })

/** An entry of the style's model list. */
export const GenerateModel = Schema.Struct({
  name: Schema.String,
  version: Schema.String,
  displayName: Schema.String,
  description: Schema.String,
  inputTokenLimit: Schema.Int,
  outputTokenLimit: Schema.Int,
  supportedGenerationMethods: Schema.Array(Schema.String),
  thinking: Schema.Boolean
}).annotate({ identifier: "GenerateModel" })
