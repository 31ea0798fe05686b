/**
 * The client API styles, in the order of the API documents. The contract, the errors of paths without a route, hints for
 * wrong addresses, replayed samples and metrics are made from this list; `handlers.ts` lists their handlers.
 */
import { ChatGroup } from "./chat/Api.ts"
import { EmbeddingsGroup } from "./embeddings/Api.ts"
import { GenerateGroup } from "./generate/Api.ts"
import { MessagesGroup } from "./messages/Api.ts"
import { ModelsGroup } from "./models/Api.ts"
import { RelayedGroup } from "./relayed/Api.ts"
import { ResponsesGroup } from "./responses/Api.ts"
import { sampleFunctions, type SamplePrompt, type SampleRequest, type Styles } from "./Style.ts"
import { UsageGroup } from "./usage/Api.ts"

const chat = {
  group: ChatGroup,
  basePaths: ["/v1"],
  operation: "chat",
  ask: (prompt: SamplePrompt): SampleRequest => ["/v1/chat/completions", {
    model: prompt.model,
    stream: prompt.stream,
    messages: [{ role: "user", content: prompt.text }],
    tools: sampleFunctions(prompt).map((tool) => ({ type: "function", function: tool }))
  }]
} as const

const responses = {
  group: ResponsesGroup,
  basePaths: ["/v1"],
  operation: "chat",
  ask: (prompt: SamplePrompt): SampleRequest => ["/v1/responses", {
    model: prompt.model,
    stream: prompt.stream,
    input: prompt.text,
    tools: sampleFunctions(prompt).map((tool) => ({ type: "function", ...tool }))
  }]
} as const

const embeddings = { group: EmbeddingsGroup, basePaths: ["/v1"], operation: "embeddings" } as const

const relayed = { group: RelayedGroup, basePaths: ["/v1"], operation: "carried" } as const

const messages = {
  group: MessagesGroup,
  basePaths: ["/v1"],
  operation: "chat",
  ask: (prompt: SamplePrompt): SampleRequest => ["/v1/messages", {
    model: prompt.model,
    stream: prompt.stream,
    max_tokens: 8192,
    messages: [{ role: "user", content: prompt.text }],
    tools: sampleFunctions(prompt).map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters }))
  }]
} as const

const generate = {
  group: GenerateGroup,
  basePaths: ["/v1beta"],
  operation: "generate_content",
  ask: (prompt: SamplePrompt): SampleRequest => {
    const method = prompt.stream ? "streamGenerateContent?alt=sse" : "generateContent"
    const functionDeclarations = sampleFunctions(prompt)
      .map(({ parameters, ...tool }) => ({ ...tool, parametersJsonSchema: parameters }))
    return [`/v1beta/models/${encodeURIComponent(prompt.model)}:${method}`, {
      contents: [{ role: "user", parts: [{ text: prompt.text }] }],
      tools: functionDeclarations.length === 0 ? [] : [{ functionDeclarations }]
    }]
  }
} as const

const models = { group: ModelsGroup, basePaths: ["/v1"], operation: "chat" } as const

const usage = { group: UsageGroup, basePaths: ["/v1"], operation: "chat" } as const

export const styles = [
  chat,
  responses,
  embeddings,
  relayed,
  messages,
  generate,
  models,
  usage
] as const satisfies Styles

/** The names of the styles' groups. */
export type StyleId = (typeof styles)[number]["group"]["identifier"]
